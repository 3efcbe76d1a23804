//! JSON Schema validation within bounds: nothing is fetched, and the work is limited.
//!
//! Schemas come from other parties, and some are malicious: they loop, or take time that grows
//! exponentially with the depth of the value. Here a subschema that refers to others is checked
//! against the same part of a value only once, and all work is counted:
//!
//! ```text
//!   compile   places    ── too large, too deep, external, unknown dialect ─┐
//!      │      reader    ── rules of the keywords; linear-time patterns ────┴─► SchemaError
//!      │
//!   check     check     ── each pair once ── loop, too much work ─► ValidationError, undecided
//!             problem   ── describes the failure ────────────────► ValidationError
//! ```
//!
//! A check has three results. If a pattern cannot be matched, the result is unknown, and nothing is
//! refused for it (`truth.rs`).

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use check::{Check, Undecided};
use places::{Part, Places};
use problem::Problem;
use reader::Reader;
use rules::{Leading, Plain, Rule};
use text::cut;
use truth::Truth;

mod check;
mod dialect;
mod number;
mod pairs;
mod pattern;
mod percent;
mod places;
mod plain;
mod problem;
mod reader;
mod rules;
mod scopes;
mod seen;
#[cfg(test)]
mod tests;
mod text;
mod truth;

/// The maximum nesting depth of a schema.
const DEPTH: usize = 64;
/// The maximum number of parts of a schema.
const PARTS: usize = 20_000;
/// The maximum depth of subschemas and parts of a value that are checked one within the other.
const LEVELS: usize = 256;
/// The maximum length of an error message in characters.
const TOLD: usize = 300;

/// A compiled JSON Schema: 2020-12 by default, and draft 4, 6, 7 or 2019-09 if `$schema` says so.
///
/// All keywords that validate are supported, and references within the schema. Compilation fails on
/// anything else: on references to other documents (nothing is ever fetched), and on subschemas in
/// another dialect. Formats are not checked, as the standard allows.
///
/// Patterns with lookaround or backreferences, and very large ones, cannot be matched here
/// ([`Schema::unsupported_patterns`]). They are ignored: no value is refused because of them, and
/// the rest of the schema is checked as usual.
///
/// ```
/// use belay_schema::Schema;
/// use serde_json::json;
///
/// let schema = Schema::compile(&json!({
///     "type": "object",
///     "properties": { "age": { "type": "integer", "minimum": 18 } }
/// }))
/// .unwrap();
/// assert!(schema.check(&json!({ "age": 36 })).is_ok());
/// let unfit = schema.check(&json!({ "age": 7 })).unwrap_err();
/// assert_eq!(unfit.to_string(), "`age`: 7 is less than 18");
/// ```
pub struct Schema {
    nodes: Vec<Node>,
    /// The number of dynamic anchor names.
    names: usize,
    /// The dynamic anchors of each resource.
    dynamic: Vec<Vec<(usize, Part)>>,
    /// Whether any keyword needs to know which members and items were evaluated.
    notes: bool,
    unsupported: BTreeSet<String>,
}

/// A subschema.
struct Node {
    rules: Vec<Rule>,
    resource: usize,
    leads_on: bool,
    /// Several references lead here, so that it can come up again for the same value, or in a loop.
    is_shared: bool,
}

impl Node {
    fn is_never(&self) -> bool {
        matches!(self.rules[..], [Rule::Plain(Plain::Never)])
    }
}

/// Why a schema cannot be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SchemaError(String);

impl SchemaError {
    /// An error with this message, for a schema that could not even be read. A long message is cut.
    pub fn new(problem: impl Into<String>) -> Self {
        Self(cut(&problem.into(), TOLD))
    }
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the schema cannot be used: {}", self.0)
    }
}

impl std::error::Error for SchemaError {}

/// Why a value does not match a schema.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ValidationError {
    problem: String,
    undecided: bool,
}

impl ValidationError {
    /// Whether the check was given up, because the schema loops or the check takes too much work.
    /// Then the value may be valid.
    ///
    /// ```
    /// use belay_schema::Schema;
    /// use serde_json::json;
    ///
    /// let endless = Schema::compile(&json!({ "$ref": "#" })).unwrap();
    /// assert!(endless.check(&json!(7)).unwrap_err().is_undecided());
    /// ```
    pub fn is_undecided(&self) -> bool {
        self.undecided
    }

    fn undecided(why: Undecided) -> Self {
        let problem = match why {
            Undecided::Endless => {
                "the schema refers to itself without an end, and has to be changed"
            }
            Undecided::Deep => "the value is nested too deeply to be validated; nest it less",
            Undecided::Work => "the value takes too much work to validate; make it smaller",
        };
        Self {
            problem: problem.into(),
            undecided: true,
        }
    }
}

impl fmt::Display for ValidationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)
    }
}

impl std::error::Error for ValidationError {}

impl Schema {
    /// Compiles a schema. Nothing is fetched: a `$ref` to another document is an error.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        let mut reader = Reader::new(Places::of(schema)?);
        let mut nodes: Vec<Node> = Vec::new();
        // References can lead to subschemas that no keyword contains; those are appended to the
        // list.
        while let Some(place) = reader.places.get(nodes.len()) {
            let rules = reader.rules(place)?;
            nodes.push(Node {
                leads_on: rules.iter().any(|rule| matches!(rule, Rule::Leading(_))),
                resource: place.resource,
                is_shared: false,
                rules,
            });
        }
        let asks = |rule: &Rule| {
            use Leading::{UnevaluatedItems, UnevaluatedProperties};
            matches!(
                rule,
                Rule::Leading(UnevaluatedItems(_) | UnevaluatedProperties(_))
            )
        };
        let notes = nodes.iter().any(|node| node.rules.iter().any(asks));
        let unsupported = std::mem::take(&mut reader.unsupported);
        let (names, dynamic) = reader.places.into_dynamic();
        mark_shared(&mut nodes, names > 0);
        Ok(Self {
            nodes,
            names,
            dynamic,
            notes,
            unsupported,
        })
    }

    /// The patterns that cannot be matched in linear time and within bounds. Rules that depend on
    /// them are not checked.
    ///
    /// ```
    /// use belay_schema::Schema;
    /// use serde_json::json;
    ///
    /// let not_blank = json!({ "type": "string", "pattern": r"^(?!\s*$).+" });
    /// let schema = Schema::compile(&not_blank).unwrap();
    /// assert!(schema.unsupported_patterns().eq([r"^(?!\s*$).+"]));
    /// assert!(schema.check(&json!("  ")).is_ok(), "nobody knows");
    /// assert!(schema.check(&json!(7)).is_err());
    /// ```
    pub fn unsupported_patterns(&self) -> impl Iterator<Item = &str> {
        self.unsupported.iter().map(String::as_str)
    }

    /// The unsupported patterns as one line of text, for a log; `None` if there are none.
    pub fn unsupported_in_words(&self) -> Option<String> {
        let patterns = self.unsupported.iter();
        let any = !self.unsupported.is_empty();
        any.then(|| text::listed(patterns.map(|pattern| text::quoted(pattern))))
    }

    /// Validates a value. `Ok` means that nothing is known to be wrong with it.
    pub fn check(&self, value: &Value) -> Result<(), ValidationError> {
        let mut check = Check::new(self, value);
        if check
            .fits(0, value, 0)
            .map_err(ValidationError::undecided)?
            .fits
            != Truth::No
        {
            return Ok(());
        }
        let problem = Problem::new(&mut check).find(0, value, 0);
        let problem = problem.unwrap_or_else(|_| "it does not fit".into());
        Err(ValidationError {
            problem: cut(&problem, TOLD),
            undecided: false,
        })
    }
}

/// Marks the subschemas that several references lead to. With dynamic anchors that can be any.
fn mark_shared(nodes: &mut [Node], has_dynamic: bool) {
    let mut ways = vec![0_u8; nodes.len()];
    // The root counts as referenced once, since every check begins there.
    let leading = nodes.iter().flat_map(|node| &node.rules);
    let parts = leading.flat_map(|rule| match rule {
        Rule::Plain(_) => Vec::new(),
        Rule::Leading(rule) => rule.parts(),
    });
    for part in parts.chain([0]) {
        ways[part] = ways[part].saturating_add(1);
    }
    for (node, ways) in nodes.iter_mut().zip(ways) {
        node.is_shared = has_dynamic || ways > 1;
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Schema({} parts)", self.nodes.len())
    }
}
