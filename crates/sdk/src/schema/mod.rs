//! JSON Schema, within bounds: nothing is fetched, and nothing takes longer than it may.
//!
//! Schemas come from others, and some of them are bombs: they loop, or take a time that grows
//! exponentially with the depth of what they are held against. Here no part of a schema that leads to
//! others is held against the same part of a value twice, and all that is done is counted:
//!
//! ```text
//!   compile   places    ── too large, too deep, leads elsewhere, a dialect nobody knows ──┐
//!      │      reader    ── what the keywords ask for; patterns in linear time ────────────┴─► SchemaError
//!      │
//!   check     check     ── each pair once ── loops, or more work than it may be ──► ValidationError, undecided
//!             problem   ── what is wrong, in a sentence ──────────────────────────► ValidationError
//! ```
//!
//! Whether a value fits has three answers: where a pattern cannot be matched, that is unknown, and nothing
//! is refused for it (`truth.rs`).

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

/// A schema may be nested so deep.
const DEPTH: usize = 64;
/// And have so many parts.
const PARTS: usize = 20_000;
/// So many parts of a schema and of a value lead to each other, one within the other.
const LEVELS: usize = 256;
/// So many characters of what is wrong are told.
const TOLD: usize = 300;

/// A JSON Schema (2020-12 unless it says otherwise; draft 4, 6, 7 and 2019-09 are understood, too).
///
/// All keywords that ask for something are understood, and references within the schema. What is not makes
/// all of the schema one that cannot be used: references to elsewhere (nothing is ever fetched), parts in
/// another dialect. Formats are not checked, as the standard has it.
///
/// Patterns that look ahead or behind, refer to their groups or are very large cannot be matched here
/// ([`Schema::unsupported_patterns`]). They are passed over: nothing is refused because of them, and what
/// else is wrong with a value is found as ever.
///
/// ```
/// use belay::schema::Schema;
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
    /// How many anchors depend on where one comes from.
    names: usize,
    /// And in which resources they are.
    dynamic: Vec<Vec<(usize, Part)>>,
    /// Whether anything asks for what was seen of a value.
    notes: bool,
    unsupported: BTreeSet<String>,
}

/// A part of a schema.
struct Node {
    rules: Vec<Rule>,
    resource: usize,
    leads_on: bool,
    /// More than one way leads here, so that it can come up again for the same value, or without an end.
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
    pub(crate) fn new(problem: impl Into<String>) -> Self {
        Self(cut(&problem.into(), TOLD))
    }
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the schema cannot be used: {}", self.0)
    }
}

impl std::error::Error for SchemaError {}

/// Why a value does not fit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ValidationError {
    problem: String,
    undecided: bool,
}

impl ValidationError {
    /// Whether this could not be found out: the schema loops, or asks for more work than it may. Nothing is
    /// known to be wrong with the value then.
    ///
    /// ```
    /// use belay::schema::Schema;
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
            Undecided::Deep => {
                "this is nested too deep to be held against the schema; nest it less"
            }
            Undecided::Work => "this is too much work to hold against the schema; make it smaller",
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
    /// Reads a schema. Nothing is fetched: a `$ref` to elsewhere makes it one that cannot be used.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        let mut reader = Reader::new(Places::of(schema)?);
        let mut nodes: Vec<Node> = Vec::new();
        // References can lead to parts that nothing else leads to.
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

    /// The patterns in it that cannot be matched, in linear time and within bounds. What depends on them is
    /// not checked.
    ///
    /// ```
    /// use belay::schema::Schema;
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

    /// The same in words, for a log; `None` if there are none.
    #[cfg(any(feature = "client", feature = "server"))]
    pub(crate) fn unsupported_in_words(&self) -> Option<String> {
        let patterns = self.unsupported.iter();
        let any = !self.unsupported.is_empty();
        any.then(|| text::listed(patterns.map(|pattern| text::quoted(pattern))))
    }

    /// Holds a value against it. `Ok` is for a value with which nothing is known to be wrong.
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

/// Finds the parts that more than one way leads to. Where it depends on the way what an anchor means, that
/// can be any.
fn mark_shared(nodes: &mut [Node], has_dynamic: bool) {
    let mut ways = vec![0_u8; nodes.len()];
    // The first is where everybody begins.
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
