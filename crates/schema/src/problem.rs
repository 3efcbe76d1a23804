//! Describes what is wrong with a value in one sentence: where, what was found, what was expected.

use serde_json::Value;

use super::LEVELS;
use super::check::{Check, Undecided};
use super::pairs::{Asked, Pair, Step};
use super::places::Part;
use super::rules::{Leading, Limit, Plain, Properties, Rule, Size};
use super::scopes::Scope;
use super::seen::Seen;
use super::text::{escaped, listed, named, shown};
use super::truth::Truth;

/// The maximum number of options that are described one by one.
const OPTIONS: usize = 10;
/// The maximum number of path steps that are shown: the last ones.
const STEPS: usize = 6;

/// Finds the reason why a value does not match.
pub(super) struct Problem<'c, 's> {
    check: &'c mut Check<'s>,
    path: Vec<String>,
    /// Whether the options of a union are being described.
    in_options: bool,
}

impl<'c, 's> Problem<'c, 's> {
    pub(super) fn new(check: &'c mut Check<'s>) -> Self {
        // The second pass gets the same budget of work again.
        check.work = 0;
        check.remembers_all = true;
        Self {
            check,
            path: Vec::new(),
            in_options: false,
        }
    }

    /// The first rule that the value violates, with its path.
    pub(super) fn find(
        &mut self,
        part: Part,
        value: &Value,
        scope: Scope,
    ) -> Result<String, Undecided> {
        if self.check.level == LEVELS {
            return Err(Undecided::Deep);
        }
        self.check.level += 1;
        let problem = self.first_broken(part, value, scope);
        self.check.level -= 1;
        problem
    }

    fn first_broken(
        &mut self,
        part: Part,
        value: &Value,
        scope: Scope,
    ) -> Result<String, Undecided> {
        let schema = self.check.schema;
        let scope = self.check.entered(scope, part)?;
        let mut seen = Seen::default();
        for rule in &schema.nodes[part].rules {
            let mut before = seen.clone();
            if self.check.follows(rule, value, scope, &mut seen)? == Truth::No {
                return match rule {
                    Rule::Plain(rule) => Ok(self.here(&plain(rule, value))),
                    Rule::Leading(rule) => self.deeper(rule, value, scope, &mut before),
                };
            }
        }
        Ok(self.here("it does not fit"))
    }

    fn deeper(
        &mut self,
        rule: &Leading,
        value: &Value,
        scope: Scope,
        seen: &mut Seen,
    ) -> Result<String, Undecided> {
        let mut broken = None;
        self.check
            .each_pair(rule, value, scope, seen, |check, pair, seen| {
                if check.meets(&pair, scope, seen)? == Truth::No {
                    broken = Some(pair);
                }
                Ok(broken.is_none())
            })?;
        if let Some(pair) = broken {
            return self.inside(rule, &pair, scope);
        }
        let found = shown(value);
        let problem = match rule {
            Leading::Any(parts) | Leading::One(parts) => self.no_option(parts, value, scope)?,
            Leading::PropertyNames(part) => self.bad_name(*part, value, scope)?,
            Leading::Contains { least, most, .. } => match most {
                Some(most) => format!("not between {least} and {most} of its items fit"),
                None => format!("less than {least} of its items fit"),
            },
            Leading::Not(_) => format!("{found} is what it must not be"),
            _ => format!("{found} does not fit"),
        };
        Ok(self.here(&problem))
    }

    /// What is wrong with a part of a value, or with the value itself.
    fn inside(
        &mut self,
        rule: &Leading,
        pair: &Pair<'_>,
        scope: Scope,
    ) -> Result<String, Undecided> {
        let step = match pair.step {
            Step::Here => return self.asked(&pair.asked, pair.value, scope),
            Step::Member(_, name) => escaped(name),
            Step::Item(at) => at.to_string(),
        };
        if let Asked::Part(part) = pair.asked
            && self.check.schema.nodes[part].is_never()
        {
            let problem = match rule {
                Leading::Properties(rule) => self.unexpected(&step, rule),
                _ => format!("`{step}` is not expected"),
            };
            return Ok(self.here(&problem));
        }
        self.path.push(step);
        let problem = self.asked(&pair.asked, pair.value, scope);
        self.path.pop();
        problem
    }

    fn asked(&mut self, asked: &Asked, value: &Value, scope: Scope) -> Result<String, Undecided> {
        match asked {
            Asked::Part(part) => self.find(*part, value, scope),
            Asked::Either(options) => {
                let options: Vec<Part> = options.iter().copied().flatten().collect();
                let problem = self.no_option(&options, value, scope)?;
                Ok(self.here(&problem))
            }
        }
    }

    /// Describes an unexpected member, and lists the expected ones.
    fn unexpected(&self, step: &str, rule: &Properties) -> String {
        let known = rule.named.iter();
        let mut known: Vec<&str> = known
            .filter(|(_, part)| !self.check.schema.nodes[**part].is_never())
            .map(|(name, _)| name.as_str())
            .collect();
        known.sort_unstable();
        match known.is_empty() {
            true => format!("`{step}` is not expected"),
            false => {
                let known = listed(known.into_iter().map(named));
                format!("`{step}` is not expected; expected are {known}")
            }
        }
    }

    /// Describes why a value matches none of several subschemas, or more than one.
    fn no_option(
        &mut self,
        parts: &[Part],
        value: &Value,
        scope: Scope,
    ) -> Result<String, Undecided> {
        let found = shown(value);
        for part in parts {
            if self.check.fits(*part, value, scope)?.fits == Truth::Yes {
                return Ok(format!("{found} fits more than one of several options"));
            }
        }
        // Nested unions are not described, to keep the sentence short.
        if self.in_options || parts.len() > OPTIONS || parts.is_empty() {
            return Ok(format!("{found} fits none of {} options", parts.len()));
        }
        self.in_options = true;
        let path = std::mem::take(&mut self.path);
        let problems: Result<Vec<String>, _> = parts
            .iter()
            .map(|part| self.find(*part, value, scope))
            .collect();
        self.path = path;
        self.in_options = false;
        let mut problems = problems?;
        problems.dedup();
        Ok(problems.join(", or "))
    }

    fn bad_name(&mut self, part: Part, value: &Value, scope: Scope) -> Result<String, Undecided> {
        for name in self.check.names(value)?.iter() {
            if self.check.fits(part, name, scope)?.fits == Truth::No {
                let path = std::mem::take(&mut self.path);
                let problem = self.find(part, name, scope);
                self.path = path;
                return Ok(format!("the name of a member: {}", problem?));
            }
        }
        Ok("the name of a member does not fit".into())
    }

    /// The problem, with its path.
    fn here(&self, problem: &str) -> String {
        let skipped = self.path.len().saturating_sub(STEPS);
        let path = self.path[skipped..].join(".");
        match (self.path.is_empty(), skipped) {
            (true, _) => problem.to_owned(),
            (false, 0) => format!("`{path}`: {problem}"),
            (false, _) => format!("`….{path}`: {problem}"),
        }
    }
}

/// Describes which plain rule the value violates.
fn plain(rule: &Plain, value: &Value) -> String {
    let found = shown(value);
    match rule {
        Plain::Never => format!("{found} is not expected"),
        Plain::Types(types) => format!("{found} is not {}", types.words()),
        Plain::Const { expected, .. } => format!("{found} is not {}", shown(expected)),
        Plain::Enum(options) if options.values.is_empty() => format!("{found} is not expected"),
        Plain::Enum(options) => {
            let options = listed(options.values.iter().map(shown));
            format!("{found} is none of {options}")
        }
        Plain::Limit(limit, bound) => match limit {
            Limit::Minimum => format!("{found} is less than {bound}"),
            Limit::ExclusiveMinimum => format!("{found} is not more than {bound}"),
            Limit::Maximum => format!("{found} is more than {bound}"),
            Limit::ExclusiveMaximum => format!("{found} is not less than {bound}"),
        },
        Plain::MultipleOf(step) => format!("{found} is not a multiple of {step}"),
        Plain::Size(size, bound) => match size {
            Size::MinLength => format!("{found} is shorter than {bound} characters"),
            Size::MaxLength => format!("{found} is longer than {bound} characters"),
            Size::MinItems => format!("it has less than {bound} items"),
            Size::MaxItems => format!("it has more than {bound} items"),
            Size::MinProperties => format!("it has less than {bound} members"),
            Size::MaxProperties => format!("it has more than {bound} members"),
        },
        Plain::Pattern(pattern) => format!("{found} does not match the pattern {pattern}"),
        Plain::UniqueItems => "it has an item twice".into(),
        Plain::Required(names) => {
            let missing = names.names.iter().find(|name| value.get(name).is_none());
            format!("{} is missing", named(missing.map_or("", String::as_str)))
        }
        Plain::DependentRequired { all, .. } => {
            let has = |name: &String| value.get(name).is_some();
            let mut broken = all.iter().filter(|(name, _)| has(name));
            let missing = broken.find_map(|(name, others)| {
                let missing = named(others.names.iter().find(|other| !has(other))?);
                Some(format!("{missing} is missing, which {} needs", named(name)))
            });
            missing.unwrap_or_else(|| "something is missing".into())
        }
    }
}
