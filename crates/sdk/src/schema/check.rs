//! Holding a value against a schema.
//!
//! A part of the schema that leads to others is held against a part of the value once, whatever number of
//! ways lead there, and all that is done is counted.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::RandomState;
use std::rc::Rc;

use serde_json::Value;

use super::number::{compare, hashed, is_multiple, same, weight};
use super::places::{Part, address};
use super::rules::{Leading, Limit, Plain, Properties, Rule, Size, name_cost};
use super::scopes::{Scope, Scopes};
use super::seen::Seen;
use super::{LEVELS, Schema, WORK};

/// It could not be found out whether a value fits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Undecided {
    /// The schema refers to itself without going deeper into the value.
    Endless,
    /// It goes too deep.
    Deep,
    /// It takes more work than it may.
    Work,
}

/// Whether a value fits, and what of it was seen then.
pub(super) type Verdict = Option<Rc<Seen>>;

/// One check of one value.
pub(super) struct Check<'s> {
    pub(super) schema: &'s Schema,
    known: HashMap<Key, Known>,
    pub(super) level: usize,
    pub(super) work: u64,
    scopes: Scopes,
    names: HashMap<usize, Rc<Vec<Value>>>,
    nothing: Rc<Seen>,
}

/// A part of the schema, a part of the value, and what anchors mean here.
type Key = (Part, usize, Scope);

enum Known {
    /// It is being found out.
    Open,
    Verdict(Verdict),
}

/// A part of the schema that a part of the value has to fit.
pub(super) struct Pair<'v> {
    pub(super) part: Part,
    pub(super) value: &'v Value,
    pub(super) step: Step<'v>,
}

/// From a value to the part of it that is looked at.
#[derive(Clone, Copy)]
pub(super) enum Step<'v> {
    /// It is the value itself.
    Here,
    /// The number of the member, and its name.
    Member(usize, &'v str),
    Item(usize),
}

impl<'s> Check<'s> {
    pub(super) fn new(schema: &'s Schema) -> Self {
        Self {
            schema,
            known: HashMap::new(),
            level: 0,
            work: 0,
            scopes: Scopes::new(schema.names),
            names: HashMap::new(),
            nothing: Rc::default(),
        }
    }

    /// Whether a value fits a part of the schema.
    pub(super) fn fits(
        &mut self,
        part: Part,
        value: &Value,
        scope: Scope,
    ) -> Result<Verdict, Undecided> {
        self.spend(1)?;
        let node = &self.schema.nodes[part];
        if !node.leads_on {
            for rule in &node.rules {
                if let Rule::Plain(rule) = rule
                    && !self.keeps(rule, value)?
                {
                    return Ok(None);
                }
            }
            return Ok(Some(self.nothing.clone()));
        }
        let scope = self.entered(scope, part)?;
        let key = (part, address(value), scope);
        match self.known.entry(key) {
            Entry::Occupied(known) => match known.get() {
                Known::Open => return Err(Undecided::Endless),
                Known::Verdict(verdict) => return Ok(verdict.clone()),
            },
            Entry::Vacant(unknown) => _ = unknown.insert(Known::Open),
        }
        if self.level == LEVELS {
            return Err(Undecided::Deep);
        }
        self.level += 1;
        let mut seen = Seen::default();
        let mut fits = true;
        for rule in &node.rules {
            fits = self.follows(rule, value, scope, &mut seen)?;
            if !fits {
                break;
            }
        }
        self.level -= 1;
        let verdict = match (fits, seen.cost()) {
            (false, _) => None,
            (true, 0) => Some(self.nothing.clone()),
            (true, _) => Some(Rc::new(seen)),
        };
        self.known.insert(key, Known::Verdict(verdict.clone()));
        Ok(verdict)
    }

    /// What anchors mean in a part, if one comes from `scope`.
    pub(super) fn entered(&mut self, scope: Scope, part: Part) -> Result<Scope, Undecided> {
        let schema = self.schema;
        let resource = schema.nodes[part].resource;
        let anchors = match schema.dynamic.get(resource) {
            Some(anchors) if !anchors.is_empty() => anchors,
            _ => return Ok(scope),
        };
        if let Some(known) = self.scopes.known(scope, resource) {
            return Ok(known);
        }
        self.spend((schema.names + anchors.len()) as u64)?;
        Ok(self.scopes.enter(scope, resource, anchors))
    }

    /// Whether a value does what a rule asks for. What was seen of it is added to `seen`.
    pub(super) fn follows(
        &mut self,
        rule: &Rule,
        value: &Value,
        scope: Scope,
        seen: &mut Seen,
    ) -> Result<bool, Undecided> {
        match rule {
            Rule::Plain(rule) => self.keeps(rule, value),
            Rule::Leading(rule) => self.leads(rule, value, scope, seen),
        }
    }

    fn keeps(&mut self, rule: &Plain, value: &Value) -> Result<bool, Undecided> {
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
            (Plain::Pattern(pattern), Value::String(text)) => {
                self.spend(pattern.cost(text))?;
                Ok(pattern.is_match(text))
            }
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

    fn leads(
        &mut self,
        rule: &Leading,
        value: &Value,
        scope: Scope,
        seen: &mut Seen,
    ) -> Result<bool, Undecided> {
        match (rule, value) {
            (Leading::Any(parts), _) => {
                let mut any = false;
                for part in parts {
                    any |= self.also(*part, value, scope, seen)?;
                    // The others may see more of it.
                    if any && !self.schema.notes {
                        break;
                    }
                }
                Ok(any)
            }
            (Leading::One(parts), _) => {
                let mut fitting = 0;
                for part in parts {
                    fitting += u32::from(self.also(*part, value, scope, seen)?);
                    if fitting == 2 {
                        break;
                    }
                }
                Ok(fitting == 1)
            }
            (Leading::Not(part), _) => Ok(self.fits(*part, value, scope)?.is_none()),
            (Leading::PropertyNames(part), Value::Object(_)) => {
                for name in self.names(value)?.iter() {
                    if self.fits(*part, name, scope)?.is_none() {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (
                Leading::Contains {
                    part,
                    least,
                    most,
                    evaluates,
                },
                Value::Array(items),
            ) => {
                let mut found = 0;
                for (at, item) in items.iter().enumerate() {
                    if self.fits(*part, item, scope)?.is_some() {
                        found += 1;
                        if *evaluates {
                            self.see(Step::Item(at), seen);
                        }
                    }
                }
                Ok(found >= *least && most.is_none_or(|most| found <= most))
            }
            (rule, value) => {
                for pair in self.pairs(rule, value, scope, seen)? {
                    let Some(more) = self.fits(pair.part, pair.value, scope)? else {
                        return Ok(false);
                    };
                    match pair.step {
                        Step::Here => self.add(&more, seen)?,
                        step => self.see(step, seen),
                    }
                }
                Ok(true)
            }
        }
    }

    /// For the rules that ask that all of some pairs fit: which these are.
    pub(super) fn pairs<'v>(
        &mut self,
        rule: &Leading,
        value: &'v Value,
        scope: Scope,
        seen: &mut Seen,
    ) -> Result<Vec<Pair<'v>>, Undecided> {
        let here = |part: &Part| Pair {
            part: *part,
            value,
            step: Step::Here,
        };
        match (rule, value) {
            (Leading::Ref(part), _) => Ok(vec![here(part)]),
            (Leading::DynamicRef { name, otherwise }, _) => {
                let meant = self.scopes.meant(scope, *name);
                Ok(vec![here(&meant.unwrap_or(*otherwise))])
            }
            (Leading::All(parts), _) => {
                self.spend(parts.len() as u64)?;
                Ok(parts.iter().map(here).collect())
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
                    true => then,
                    false => otherwise,
                };
                Ok(next.iter().map(here).collect())
            }
            (Leading::DependentSchemas { all, cost }, Value::Object(members)) => {
                self.spend(*cost)?;
                let needed = all.iter().filter(|(name, _)| members.contains_key(name));
                Ok(needed.map(|(_, part)| here(part)).collect())
            }
            (Leading::Properties(rule), Value::Object(members)) => {
                let mut pairs = Vec::new();
                for (at, (name, member)) in members.iter().enumerate() {
                    for part in self.parts_for(rule, name)? {
                        pairs.push(Pair {
                            part,
                            value: member,
                            step: Step::Member(at, name),
                        });
                    }
                }
                Ok(pairs)
            }
            (Leading::Items { first, rest }, Value::Array(items)) => {
                self.spend(items.len() as u64)?;
                let all = items.iter().enumerate();
                let pairs = all.map_while(|(at, value)| {
                    let part = *first.get(at).or(rest.as_ref())?;
                    let step = Step::Item(at);
                    Some(Pair { part, value, step })
                });
                Ok(pairs.collect())
            }
            (Leading::UnevaluatedItems(part), Value::Array(items)) => {
                self.spend(items.len() as u64)?;
                let unseen = items
                    .iter()
                    .enumerate()
                    .filter(|(at, _)| !seen.has_item(*at));
                let pair = |(at, value)| Pair {
                    part: *part,
                    value,
                    step: Step::Item(at),
                };
                Ok(unseen.map(pair).collect())
            }
            (Leading::UnevaluatedProperties(part), Value::Object(members)) => {
                self.spend(members.len() as u64)?;
                let all = members.iter().enumerate();
                let unseen = all.filter(|(at, _)| !seen.has_member(*at));
                let pair = |(at, (name, value)): (usize, (&'v String, &'v Value))| Pair {
                    part: *part,
                    value,
                    step: Step::Member(at, name),
                };
                Ok(unseen.map(pair).collect())
            }
            // It says nothing about values of this type, or is no such rule.
            (
                Leading::DependentSchemas { .. }
                | Leading::Properties(_)
                | Leading::Items { .. }
                | Leading::UnevaluatedItems(_)
                | Leading::UnevaluatedProperties(_)
                | Leading::Any(_)
                | Leading::One(_)
                | Leading::Not(_)
                | Leading::PropertyNames(_)
                | Leading::Contains { .. },
                _,
            ) => Ok(Vec::new()),
        }
    }

    /// Whether it fits another part as well, which may have seen more of it.
    fn also(
        &mut self,
        part: Part,
        value: &Value,
        scope: Scope,
        seen: &mut Seen,
    ) -> Result<bool, Undecided> {
        match self.fits(part, value, scope)? {
            Some(more) => self.add(&more, seen).map(|()| true),
            None => Ok(false),
        }
    }

    fn add(&mut self, more: &Seen, seen: &mut Seen) -> Result<(), Undecided> {
        self.spend(more.cost())?;
        seen.add(more);
        Ok(())
    }

    /// Notes what was seen, where somebody asks.
    fn see(&self, step: Step<'_>, seen: &mut Seen) {
        match step {
            Step::Member(at, _) if self.schema.notes => seen.member(at),
            Step::Item(at) if self.schema.notes => seen.item(at),
            _ => {}
        }
    }

    /// The parts that a member has to fit.
    fn parts_for(&mut self, rule: &Properties, name: &str) -> Result<Vec<Part>, Undecided> {
        self.spend(name_cost(name))?;
        let mut parts = Vec::new();
        parts.extend(rule.named.get(name));
        for (pattern, part) in &rule.patterns {
            self.spend(pattern.cost(name))?;
            if pattern.is_match(name) {
                parts.push(*part);
            }
        }
        if parts.is_empty() {
            parts.extend(rule.others);
        }
        Ok(parts)
    }

    /// The names of the members of an object, as values that stay where they are.
    pub(super) fn names(&mut self, object: &Value) -> Result<Rc<Vec<Value>>, Undecided> {
        if let Some(names) = self.names.get(&address(object)) {
            return Ok(names.clone());
        }
        let members = object.as_object().into_iter();
        let members = members.flat_map(|object| object.keys());
        self.spend(members.clone().map(|name| name_cost(name)).sum())?;
        let names: Rc<Vec<Value>> = Rc::new(members.cloned().map(Value::String).collect());
        self.names.insert(address(object), names.clone());
        Ok(names)
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

    fn spend(&mut self, work: u64) -> Result<(), Undecided> {
        self.work = self.work.saturating_add(work);
        match self.work > WORK {
            true => Err(Undecided::Work),
            false => Ok(()),
        }
    }
}
