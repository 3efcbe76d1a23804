//! Rules about a value itself.

use std::collections::HashMap;
use std::hash::RandomState;

use serde_json::Value;

use super::check::{Check, Undecided};
use super::number::{compare, hashed, is_multiple, same, weight};
use super::rules::{Limit, Plain, Size};
use super::truth::Truth;

impl Check<'_> {
    /// Whether a value does what a plain rule asks for.
    pub(super) fn keeps(&mut self, rule: &Plain, value: &Value) -> Result<Truth, Undecided> {
        if let (Plain::Pattern(pattern), Value::String(text)) = (rule, value) {
            self.spend(pattern.cost(text))?;
            return Ok(pattern.is_match(text));
        }
        self.keeps_known(rule, value).map(Truth::from)
    }

    /// The same for the rules that are always known to be kept or broken: all but patterns.
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
            // They say nothing about values of other types.
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
        self.spend(items.iter().map(weight).sum())?;
        let keys = RandomState::new();
        let mut known: HashMap<u64, Vec<&Value>> = HashMap::with_capacity(items.len());
        for item in items {
            let alike = known.entry(hashed(item, &keys)).or_default();
            if alike.iter().any(|other| same(other, item)) {
                return Ok(false);
            }
            alike.push(item);
        }
        Ok(true)
    }
}
