//! Rules about the value itself.

use std::hash::RandomState;

use serde_json::Value;

use super::check::{Check, Undecided};
use super::number::{compare, hashed, is_multiple, same, weight};
use super::rules::{Limit, Plain, Size};
use super::truth::Truth;

impl Check<'_> {
    /// Whether a value follows a plain rule.
    pub(super) fn keeps(&mut self, rule: &Plain, value: &Value) -> Result<Truth, Undecided> {
        if let (Plain::Pattern(pattern), Value::String(text)) = (rule, value) {
            self.spend(pattern.cost(text))?;
            return Ok(pattern.is_match(text));
        }
        self.keeps_known(rule, value).map(Truth::from)
    }

    /// The same for every rule except patterns, whose result is always known.
    fn keeps_known(&mut self, rule: &Plain, value: &Value) -> Result<bool, Undecided> {
        match (rule, value) {
            (Plain::Never, _) => Ok(false),
            (Plain::Types(types), value) => Ok(types.has(value)),
            (Plain::Const { expected, cost }, value) => {
                self.spend(*cost)?;
                Ok(same(expected, value))
            }
            (Plain::Enum(options), value) => {
                self.spend(weight(value))?;
                Ok(options.has(value))
            }
            (Plain::Limit(limit, bound), Value::Number(number)) => {
                let order = compare(number, bound);
                Ok(match limit {
                    Limit::Minimum => order.is_ge(),
                    Limit::ExclusiveMinimum => order.is_gt(),
                    Limit::Maximum => order.is_le(),
                    Limit::ExclusiveMaximum => order.is_lt(),
                })
            }
            (Plain::MultipleOf(step), Value::Number(number)) => {
                self.spend(4)?;
                Ok(is_multiple(number, step))
            }
            (Plain::Size(size, bound), value) => self.has_size(*size, *bound, value),
            (Plain::UniqueItems, Value::Array(items)) => self.are_unique(items),
            (Plain::Required(names), Value::Object(members)) => {
                self.spend(names.cost)?;
                Ok(names.names.iter().all(|name| members.contains_key(name)))
            }
            (Plain::DependentRequired { all, cost }, Value::Object(members)) => {
                self.spend(*cost)?;
                let has = |name: &String| members.contains_key(name);
                let kept = |others: &[String]| others.iter().all(has);
                Ok(all
                    .iter()
                    .all(|(name, others)| !has(name) || kept(&others.names)))
            }
            // These rules do not apply to values of other types.
            (
                Plain::Limit(..)
                | Plain::MultipleOf(_)
                | Plain::Pattern(_)
                | Plain::UniqueItems
                | Plain::Required(_)
                | Plain::DependentRequired { .. },
                _,
            ) => Ok(true),
        }
    }

    fn has_size(&mut self, size: Size, bound: u64, value: &Value) -> Result<bool, Undecided> {
        let found = match (size, value) {
            (Size::MinLength | Size::MaxLength, Value::String(text)) => {
                self.spend(weight(value))?;
                text.chars().count()
            }
            (Size::MinItems | Size::MaxItems, Value::Array(items)) => items.len(),
            (Size::MinProperties | Size::MaxProperties, Value::Object(members)) => members.len(),
            _ => return Ok(true),
        };
        Ok(match size {
            Size::MinLength | Size::MinItems | Size::MinProperties => found as u64 >= bound,
            Size::MaxLength | Size::MaxItems | Size::MaxProperties => found as u64 <= bound,
        })
    }

    fn are_unique(&mut self, items: &[Value]) -> Result<bool, Undecided> {
        self.spend(items.iter().map(|item| weight(item) + 1).sum())?;
        let keys = RandomState::new();
        // A sorted list, because a map would take several times the memory for long arrays.
        let hashed = items.iter().map(|item| (hashed(item, &keys), item));
        let mut hashed: Vec<(u64, &Value)> = hashed.collect();
        hashed.sort_unstable_by_key(|(hash, _)| *hash);
        let alike = hashed.chunk_by(|(one, _), (other, _)| one == other);
        Ok(alike
            .map(|alike| alike.iter().map(|(_, item)| *item))
            .all(all_differ))
    }
}

fn all_differ<'v>(mut items: impl Iterator<Item = &'v Value> + Clone) -> bool {
    while let Some(item) = items.next() {
        if items.clone().any(|other| same(item, other)) {
            return false;
        }
    }
    true
}
