//! Rules that apply subschemas to parts of a value: which subschema applies to which part.

use serde_json::Value;

use super::check::{Check, Undecided};
use super::places::Part;
use super::rules::{Leading, Properties, name_cost};
use super::scopes::Scope;
use super::seen::Seen;
use super::truth::Truth;

/// A part of a value, and the subschema that it has to match.
pub(super) struct Pair<'v> {
    pub(super) asked: Asked,
    pub(super) value: &'v Value,
    pub(super) step: Step<'v>,
    /// Whether the part then counts as evaluated.
    pub(super) evaluated: Truth,
}

/// What a part of a value has to match.
pub(super) enum Asked {
    Part(Part),
    /// One or more of these subschemas; which of them is unknown, since it depends on a pattern
    /// that cannot be matched. `None` always matches.
    Either(Vec<Option<Part>>),
}

/// The step from a value to the part that is checked.
#[derive(Clone, Copy)]
pub(super) enum Step<'v> {
    /// The part is the value itself.
    Here,
    /// The index of the member, and its name.
    Member(usize, &'v str),
    Item(usize),
}

impl<'v> Pair<'v> {
    fn new(part: Part, value: &'v Value, step: Step<'v>) -> Self {
        Self {
            asked: Asked::Part(part),
            value,
            step,
            evaluated: Truth::Yes,
        }
    }

    /// For a subschema that applies only to parts that were not evaluated before.
    fn unless(self, was_seen: Truth) -> Option<Self> {
        match (was_seen, self.asked) {
            (Truth::Yes, _) => None,
            (Truth::Unknown, Asked::Part(part)) => Some(Self {
                asked: Asked::Either(vec![Some(part), None]),
                ..self
            }),
            (_, asked) => Some(Self { asked, ..self }),
        }
    }
}

impl Check<'_> {
    /// Calls `visit` for each pair of a rule, until it returns false.
    pub(super) fn each_pair<'v>(
        &mut self,
        rule: &Leading,
        value: &'v Value,
        scope: Scope,
        seen: &mut Seen,
        mut visit: impl FnMut(&mut Self, Pair<'v>, &mut Seen) -> Result<bool, Undecided>,
    ) -> Result<(), Undecided> {
        for asked in self.asked_here(rule, value, scope, seen)? {
            let pair = Pair {
                asked,
                value,
                step: Step::Here,
                evaluated: Truth::Yes,
            };
            if !visit(self, pair, seen)? {
                return Ok(());
            }
        }
        match (rule, value) {
            (Leading::Properties(rule), Value::Object(members)) => {
                for (at, (name, member)) in members.iter().enumerate() {
                    let step = Step::Member(at, name);
                    if !self.each_of_member(rule, member, step, seen, &mut visit)? {
                        break;
                    }
                }
            }
            (Leading::Items { first, rest }, Value::Array(items)) => {
                self.spend(items.len() as u64)?;
                for (at, item) in items.iter().enumerate() {
                    let Some(part) = first.get(at).or(rest.as_ref()) else {
                        break;
                    };
                    if !visit(self, Pair::new(*part, item, Step::Item(at)), seen)? {
                        break;
                    }
                }
            }
            (Leading::UnevaluatedItems(part), Value::Array(items)) => {
                self.spend(items.len() as u64)?;
                for (at, item) in items.iter().enumerate() {
                    let pair = Pair::new(*part, item, Step::Item(at)).unless(seen.has(at));
                    if let Some(pair) = pair
                        && !visit(self, pair, seen)?
                    {
                        break;
                    }
                }
            }
            (Leading::UnevaluatedProperties(part), Value::Object(members)) => {
                self.spend(members.len() as u64)?;
                for (at, (name, member)) in members.iter().enumerate() {
                    let step = Step::Member(at, name);
                    let pair = Pair::new(*part, member, step).unless(seen.has(at));
                    if let Some(pair) = pair
                        && !visit(self, pair, seen)?
                    {
                        break;
                    }
                }
            }
            // The rule does not apply to this type of value, or only to the value itself.
            _ => {}
        }
        Ok(())
    }

    /// The subschemas that a rule applies to the value itself.
    fn asked_here(
        &mut self,
        rule: &Leading,
        value: &Value,
        scope: Scope,
        seen: &mut Seen,
    ) -> Result<Vec<Asked>, Undecided> {
        Ok(match (rule, value) {
            (Leading::Ref(part), _) => vec![Asked::Part(*part)],
            (Leading::DynamicRef { name, otherwise }, _) => {
                let meant = self.scopes.meant(scope, *name);
                vec![Asked::Part(meant.unwrap_or(*otherwise))]
            }
            (Leading::All(parts), _) => {
                self.spend(parts.len() as u64)?;
                parts.iter().copied().map(Asked::Part).collect()
            }
            (
                Leading::If {
                    condition,
                    then,
                    otherwise,
                },
                _,
            ) => {
                let next = match self.also(*condition, value, scope, seen)? {
                    Truth::Yes => then.map(Asked::Part),
                    Truth::No => otherwise.map(Asked::Part),
                    Truth::Unknown => Some(Asked::Either(vec![*then, *otherwise])),
                };
                next.into_iter().collect()
            }
            (Leading::DependentSchemas { all, cost }, Value::Object(members)) => {
                self.spend(*cost)?;
                let needed = all.iter().filter(|(name, _)| members.contains_key(name));
                needed.map(|(_, part)| Asked::Part(*part)).collect()
            }
            _ => Vec::new(),
        })
    }

    /// Visits the pairs of one member of an object. Returns whether to go on.
    fn each_of_member<'v>(
        &mut self,
        rule: &Properties,
        member: &'v Value,
        step: Step<'v>,
        seen: &mut Seen,
        visit: &mut impl FnMut(&mut Self, Pair<'v>, &mut Seen) -> Result<bool, Undecided>,
    ) -> Result<bool, Undecided> {
        let Step::Member(_, name) = step else {
            return Ok(true);
        };
        self.spend(name_cost(name))?;
        let mut is_known = false;
        // The subschemas of patterns that cannot be matched.
        let mut options = Vec::new();
        if let Some(part) = rule.named.get(name) {
            is_known = true;
            if !visit(self, Pair::new(*part, member, step), seen)? {
                return Ok(false);
            }
        }
        for (pattern, part) in &rule.patterns {
            self.spend(pattern.cost(name))?;
            match pattern.is_match(name) {
                Truth::No => {}
                Truth::Unknown => options.push(Some(*part)),
                Truth::Yes => {
                    is_known = true;
                    if !visit(self, Pair::new(*part, member, step), seen)? {
                        return Ok(false);
                    }
                }
            }
        }
        let others = rule.others.filter(|_| !is_known);
        if options.is_empty() {
            return match others {
                Some(part) => visit(self, Pair::new(part, member, step), seen),
                None => Ok(true),
            };
        }
        options.push(others);
        let evaluated = match is_known || others.is_some() {
            true => Truth::Yes,
            false => Truth::Unknown,
        };
        let pair = Pair {
            asked: Asked::Either(options),
            value: member,
            step,
            evaluated,
        };
        visit(self, pair, seen)
    }
}
