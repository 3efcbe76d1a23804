//! What is wrong with a value, in one sentence that says where, what was found, and what was expected.

use std::fmt::Write as _;

use serde_json::Value;

use super::LEVELS;
use super::check::{Check, Scope, Undecided};
use super::places::Part;
use super::rules::{Limit, Rule, Size};
use super::seen::Seen;

/// So many characters of a value are shown.
const SHOWN: usize = 60;
/// And so many of several options.
const OPTIONS: usize = 10;

impl Check<'_> {
    /// Why a value does not fit: the first rule that it breaks, and in which part of it.
    pub(super) fn problem(
        &mut self,
        part: Part,
        value: &Value,
        scope: Scope,
        path: &str,
    ) -> Result<String, Undecided> {
        if self.level == LEVELS {
            return Err(Undecided::Deep);
        }
        self.level += 1;
        let problem = self.first_broken(part, value, scope, path);
        self.level -= 1;
        problem
    }

    fn first_broken(
        &mut self,
        part: Part,
        value: &Value,
        scope: Scope,
        path: &str,
    ) -> Result<String, Undecided> {
        let schema = self.schema;
        let scope = self.entered(scope, part);
        let mut seen = Seen::default();
        for rule in &schema.nodes[part].rules {
            let before = seen.clone();
            if !self.keeps(rule, value, scope, &mut seen)? {
                return self.broken(rule, value, scope, path, &before);
            }
        }
        Ok(at(path, "it does not fit"))
    }

    fn broken(
        &mut self,
        rule: &Rule,
        value: &Value,
        scope: Scope,
        path: &str,
        seen: &Seen,
    ) -> Result<String, Undecided> {
        // Inside of the value, or in another part of the schema.
        let inside = match (rule, value) {
            (Rule::Ref(part), _) => self.first_unfit([(*part, value, String::new())], scope)?,
            (Rule::DynamicRef { name, otherwise }, _) => {
                let part = self.meant(scope, *name, *otherwise);
                self.first_unfit([(part, value, String::new())], scope)?
            }
            (Rule::All(parts), _) => {
                let all = parts.iter().map(|part| (*part, value, String::new()));
                self.first_unfit(all, scope)?
            }
            (
                Rule::If {
                    condition,
                    then,
                    otherwise,
                },
                _,
            ) => {
                let fits = self.fits(*condition, value, scope)?.is_some();
                let next = if fits { then } else { otherwise };
                let next = next.map(|part| (part, value, String::new()));
                self.first_unfit(next, scope)?
            }
            (Rule::DependentSchemas(all), Value::Object(members)) => {
                let needed = all.iter().filter(|(name, _)| members.contains_key(name));
                let needed = needed.map(|(_, part)| (*part, value, String::new()));
                self.first_unfit(needed, scope)?
            }
            (Rule::Properties(rule), Value::Object(members)) => {
                let mut pairs = Vec::new();
                for (name, member) in members {
                    let parts = self.parts_for(rule, name)?;
                    pairs.extend(parts.into_iter().map(|part| (part, member, name.clone())));
                }
                self.first_unfit(pairs, scope)?
            }
            (Rule::Items { first, rest }, Value::Array(items)) => {
                let all = items.iter().enumerate();
                let pairs = all.map_while(|(at, item)| {
                    let part = first.get(at).or(rest.as_ref())?;
                    Some((*part, item, at.to_string()))
                });
                self.first_unfit(pairs, scope)?
            }
            (Rule::UnevaluatedProperties(part), Value::Object(members)) => {
                let all = members.iter().enumerate();
                let pairs = all
                    .filter(|(at, _)| !seen.has_member(*at))
                    .map(|(_, (name, member))| (*part, member, name.clone()));
                self.first_unfit(pairs, scope)?
            }
            (Rule::UnevaluatedItems(part), Value::Array(items)) => {
                let all = items.iter().enumerate();
                let pairs = all
                    .filter(|(at, _)| !seen.has_item(*at))
                    .map(|(at, item)| (*part, item, at.to_string()));
                self.first_unfit(pairs, scope)?
            }
            _ => None,
        };
        let Some((part, inner, step)) = inside else {
            let problem = self.plain(rule, value, scope)?;
            return Ok(at(path, &problem));
        };
        if self.schema.nodes[part].is_never() && !step.is_empty() {
            let problem = match rule {
                Rule::Properties(rule) if !rule.named.is_empty() => {
                    let mut known: Vec<&str> = rule.named.keys().map(String::as_str).collect();
                    known.sort_unstable();
                    let known = known.iter().map(|name| format!("`{name}`"));
                    format!("`{step}` is not expected; expected are {}", listed(known))
                }
                _ => format!("`{step}` is not expected"),
            };
            return Ok(at(path, &problem));
        }
        let path = match (path, step.as_str()) {
            (path, "") => path.to_owned(),
            ("", step) => step.to_owned(),
            (path, step) => format!("{path}.{step}"),
        };
        self.problem(part, inner, scope, &path)
    }

    /// The first of these pairs that does not fit.
    fn first_unfit<'v>(
        &mut self,
        pairs: impl IntoIterator<Item = (Part, &'v Value, String)>,
        scope: Scope,
    ) -> Result<Option<(Part, &'v Value, String)>, Undecided> {
        for pair in pairs {
            if self.fits(pair.0, pair.1, scope)?.is_none() {
                return Ok(Some(pair));
            }
        }
        Ok(None)
    }

    /// What is wrong with the value itself.
    fn plain(&mut self, rule: &Rule, value: &Value, scope: Scope) -> Result<String, Undecided> {
        let found = shown(value);
        Ok(match rule {
            Rule::Types(types) => format!("{found} is not {}", types.words()),
            Rule::Const { expected, .. } => format!("{found} is not {}", shown(expected)),
            Rule::Enum { options, .. } => {
                format!("{found} is none of {}", listed(options.iter().map(shown)))
            }
            Rule::Limit(limit, bound) => match limit {
                Limit::Minimum => format!("{found} is less than {bound}"),
                Limit::ExclusiveMinimum => format!("{found} is not more than {bound}"),
                Limit::Maximum => format!("{found} is more than {bound}"),
                Limit::ExclusiveMaximum => format!("{found} is not less than {bound}"),
            },
            Rule::MultipleOf(step) => format!("{found} is not a multiple of {step}"),
            Rule::Size(size, bound) => match size {
                Size::MinLength => format!("{found} is shorter than {bound} characters"),
                Size::MaxLength => format!("{found} is longer than {bound} characters"),
                Size::MinItems => format!("it has less than {bound} items"),
                Size::MaxItems => format!("it has more than {bound} items"),
                Size::MinProperties => format!("it has less than {bound} members"),
                Size::MaxProperties => format!("it has more than {bound} members"),
            },
            Rule::Pattern(pattern) => format!("{found} does not match the pattern {pattern}"),
            Rule::UniqueItems => "it has an item twice".into(),
            Rule::Required(names) => {
                let missing = names.iter().find(|name| value.get(name.as_str()).is_none());
                let missing = missing.map_or("", String::as_str);
                format!("`{missing}` is missing")
            }
            Rule::DependentRequired(all) => {
                let has = |name: &String| value.get(name.as_str()).is_some();
                let mut broken = all.iter().filter(|(name, _)| has(name));
                let missing = broken.find_map(|(name, others)| {
                    let missing = others.iter().find(|other| !has(other))?;
                    Some(format!("`{missing}` is missing, which `{name}` needs"))
                });
                missing.unwrap_or_default()
            }
            Rule::Any(parts) | Rule::One(parts) => self.no_option(parts, value, scope)?,
            Rule::Not(_) => format!("{found} is what it must not be"),
            Rule::PropertyNames(part) => {
                for name in self.names(value)?.iter() {
                    if self.fits(*part, name, scope)?.is_none() {
                        let problem = self.problem(*part, name, scope, "")?;
                        return Ok(format!("the name of a member: {problem}"));
                    }
                }
                String::new()
            }
            Rule::Contains { least, most, .. } => match most {
                Some(most) => format!("not between {least} and {most} of its items fit"),
                None => format!("less than {least} of its items fit"),
            },
            _ => format!("{found} is not expected"),
        })
    }

    /// Why a value fits none of several parts, or more than one.
    fn no_option(
        &mut self,
        parts: &[Part],
        value: &Value,
        scope: Scope,
    ) -> Result<String, Undecided> {
        let found = shown(value);
        let mut unfit = Vec::new();
        for part in parts {
            match self.fits(*part, value, scope)? {
                Some(_) => return Ok(format!("{found} fits more than one of several options")),
                None => unfit.push(*part),
            }
        }
        // Options within options would make a long story.
        if self.in_options || parts.len() > OPTIONS {
            return Ok(format!("{found} fits none of {} options", parts.len()));
        }
        self.in_options = true;
        let problems: Result<Vec<String>, _> = unfit
            .into_iter()
            .map(|part| self.problem(part, value, scope, ""))
            .collect();
        self.in_options = false;
        let mut problems = problems?;
        problems.dedup();
        Ok(problems.join(", or "))
    }
}

fn at(path: &str, problem: &str) -> String {
    match path {
        "" => problem.to_owned(),
        path => format!("`{path}`: {problem}"),
    }
}

/// The beginning of it.
fn shown(value: &Value) -> String {
    let what = match value {
        Value::Array(items) if items.len() > OPTIONS => return "an array".into(),
        Value::Object(members) if members.len() > OPTIONS => return "an object".into(),
        Value::String(text) => Value::String(text.chars().take(SHOWN + 1).collect()).to_string(),
        value => value.to_string(),
    };
    match what.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &what[..end]),
        None => what,
    }
}

fn listed(options: impl ExactSizeIterator<Item = String>) -> String {
    let more = options.len().saturating_sub(OPTIONS);
    let mut list = options.take(OPTIONS).collect::<Vec<_>>().join(", ");
    if more > 0 {
        let _ = write!(list, " and {more} more");
    }
    list
}
