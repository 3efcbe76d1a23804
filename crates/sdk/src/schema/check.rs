//! Holding a value against a schema.
//!
//! Each pair of a part of the schema and a part of the value is looked at once, whatever number of ways
//! lead to it, and all that is done is counted.

use std::collections::{HashMap, HashSet};
use std::hash::RandomState;
use std::rc::Rc;

use serde_json::Value;

use super::number::{compare, hashed, is_multiple, same, weight};
use super::places::{Part, address};
use super::rules::{Limit, Properties, Rule, Size};
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
    known: HashMap<Pair, Verdict>,
    open: HashSet<Pair>,
    pub(super) level: usize,
    pub(super) work: u64,
    scopes: Scopes,
    names: HashMap<usize, Rc<Vec<Value>>>,
    nothing: Rc<Seen>,
    /// Whether the options of something are being told.
    pub(super) in_options: bool,
}

/// A part of the schema, a part of the value, and what anchors mean here.
type Pair = (Part, usize, Scope);

/// What the anchors mean that depend on where one comes from: the number of such a meaning.
pub(super) type Scope = usize;

/// All meanings that came up.
struct Scopes {
    meanings: Vec<Vec<Option<Part>>>,
    numbers: HashMap<Vec<Option<Part>>, Scope>,
}

impl Scopes {
    fn new(names: usize) -> Self {
        let none = vec![None; names];
        Self {
            meanings: vec![none.clone()],
            numbers: HashMap::from([(none, 0)]),
        }
    }

    /// The meaning in a resource: the first that had an anchor keeps it.
    fn entered(&mut self, scope: Scope, anchors: &[(usize, Part)]) -> Scope {
        let before = &self.meanings[scope];
        if anchors.iter().all(|(name, _)| before[*name].is_some()) {
            return scope;
        }
        let mut meaning = before.clone();
        for (name, part) in anchors {
            meaning[*name].get_or_insert(*part);
        }
        let next = self.meanings.len();
        *self.numbers.entry(meaning).or_insert_with_key(|meaning| {
            self.meanings.push(meaning.clone());
            next
        })
    }
}

impl<'s> Check<'s> {
    pub(super) fn new(schema: &'s Schema) -> Self {
        Self {
            schema,
            known: HashMap::new(),
            open: HashSet::new(),
            level: 0,
            work: 0,
            scopes: Scopes::new(schema.names),
            names: HashMap::new(),
            nothing: Rc::default(),
            in_options: false,
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
        let schema = self.schema;
        let node = &schema.nodes[part];
        let scope = self.entered(scope, part);
        if !node.leads_on {
            let mut seen = Seen::default();
            for rule in &node.rules {
                if !self.keeps(rule, value, scope, &mut seen)? {
                    return Ok(None);
                }
            }
            return Ok(Some(self.nothing.clone()));
        }
        let pair = (part, address(value), scope);
        if let Some(known) = self.known.get(&pair) {
            return Ok(known.clone());
        }
        if !self.open.insert(pair) {
            return Err(Undecided::Endless);
        }
        if self.level == LEVELS {
            return Err(Undecided::Deep);
        }
        self.level += 1;
        let mut seen = Some(Seen::default());
        for rule in &node.rules {
            if let Some(so_far) = &mut seen
                && !self.keeps(rule, value, scope, so_far)?
            {
                seen = None;
            }
        }
        self.level -= 1;
        self.open.remove(&pair);
        let verdict = seen.map(Rc::new);
        self.known.insert(pair, verdict.clone());
        Ok(verdict)
    }

    /// What anchors mean in a part, if one comes from `scope`.
    pub(super) fn entered(&mut self, scope: Scope, part: Part) -> Scope {
        let schema = self.schema;
        match schema.dynamic.get(schema.nodes[part].resource) {
            Some(anchors) if !anchors.is_empty() => self.scopes.entered(scope, anchors),
            _ => scope,
        }
    }

    /// What a reference leads to that depends on where one comes from.
    pub(super) fn meant(&self, scope: Scope, name: usize, otherwise: Part) -> Part {
        self.scopes.meanings[scope][name].unwrap_or(otherwise)
    }

    /// Whether a value keeps a rule. What was seen of it is added to `seen`.
    pub(super) fn keeps(
        &mut self,
        rule: &Rule,
        value: &Value,
        scope: Scope,
        seen: &mut Seen,
    ) -> Result<bool, Undecided> {
        match (rule, value) {
            (Rule::Never, _) => Ok(false),
            (Rule::Types(types), value) => Ok(types.has(value)),
            (Rule::Const { expected, cost }, value) => {
                self.spend(*cost)?;
                Ok(same(expected, value))
            }
            (Rule::Enum { options, cost }, value) => {
                self.spend(*cost)?;
                Ok(options.iter().any(|option| same(option, value)))
            }
            (Rule::Limit(limit, bound), Value::Number(number)) => {
                let order = compare(number, bound);
                Ok(match limit {
                    Limit::Minimum => order.is_ge(),
                    Limit::ExclusiveMinimum => order.is_gt(),
                    Limit::Maximum => order.is_le(),
                    Limit::ExclusiveMaximum => order.is_lt(),
                })
            }
            (Rule::MultipleOf(step), Value::Number(number)) => Ok(is_multiple(number, step)),
            (Rule::Size(size, bound), value) => self.has_size(*size, *bound, value),
            (Rule::Pattern(pattern), Value::String(text)) => {
                self.spend(pattern.cost(text))?;
                Ok(pattern.is_match(text))
            }
            (Rule::UniqueItems, Value::Array(items)) => self.are_unique(items),
            (Rule::Required(names), Value::Object(members)) => {
                self.spend(names.len() as u64)?;
                Ok(names.iter().all(|name| members.contains_key(name)))
            }
            (Rule::DependentRequired(all), Value::Object(members)) => {
                self.spend(all.iter().map(|(_, names)| names.len() as u64 + 1).sum())?;
                Ok(all.iter().all(|(name, others)| {
                    !members.contains_key(name)
                        || others.iter().all(|other| members.contains_key(other))
                }))
            }
            (rule, value) => self.leads(rule, value, scope, seen),
        }
    }

    /// The rules that lead to other parts of the schema.
    fn leads(
        &mut self,
        rule: &Rule,
        value: &Value,
        scope: Scope,
        seen: &mut Seen,
    ) -> Result<bool, Undecided> {
        match (rule, value) {
            (Rule::Ref(part), _) => self.also(*part, value, scope, seen),
            (Rule::DynamicRef { name, otherwise }, _) => {
                let part = self.meant(scope, *name, *otherwise);
                self.also(part, value, scope, seen)
            }
            (Rule::All(parts), _) => {
                for part in parts {
                    if !self.also(*part, value, scope, seen)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Rule::Any(parts), _) => {
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
            (Rule::One(parts), _) => {
                let mut fitting = 0;
                for part in parts {
                    fitting += u32::from(self.also(*part, value, scope, seen)?);
                    if fitting == 2 {
                        break;
                    }
                }
                Ok(fitting == 1)
            }
            (Rule::Not(part), _) => Ok(self.fits(*part, value, scope)?.is_none()),
            (
                Rule::If {
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
                match next {
                    Some(part) => self.also(*part, value, scope, seen),
                    None => Ok(true),
                }
            }
            (Rule::DependentSchemas(all), Value::Object(members)) => {
                self.spend(all.len() as u64)?;
                for (_, part) in all.iter().filter(|(name, _)| members.contains_key(name)) {
                    if !self.also(*part, value, scope, seen)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Rule::PropertyNames(part), Value::Object(_)) => {
                for name in self.names(value)?.iter() {
                    if self.fits(*part, name, scope)?.is_none() {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Rule::Properties(rule), Value::Object(members)) => {
                for (at, (name, member)) in members.iter().enumerate() {
                    let parts = self.parts_for(rule, name)?;
                    if !parts.is_empty() {
                        self.see(|| seen.member(at));
                    }
                    for part in parts {
                        if self.fits(part, member, scope)?.is_none() {
                            return Ok(false);
                        }
                    }
                }
                Ok(true)
            }
            (Rule::Items { first, rest }, Value::Array(items)) => {
                for (at, item) in items.iter().enumerate() {
                    let Some(part) = first.get(at).or(rest.as_ref()) else {
                        break;
                    };
                    self.see(|| seen.item(at));
                    if self.fits(*part, item, scope)?.is_none() {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (
                Rule::Contains {
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
                            self.see(|| seen.item(at));
                        }
                    }
                }
                Ok(found >= *least && most.is_none_or(|most| found <= most))
            }
            (Rule::UnevaluatedItems(part), Value::Array(items)) => {
                for (at, item) in items.iter().enumerate() {
                    if !seen.has_item(at) && self.fits(*part, item, scope)?.is_none() {
                        return Ok(false);
                    }
                    seen.item(at);
                }
                Ok(true)
            }
            (Rule::UnevaluatedProperties(part), Value::Object(members)) => {
                for (at, member) in members.values().enumerate() {
                    if !seen.has_member(at) && self.fits(*part, member, scope)?.is_none() {
                        return Ok(false);
                    }
                    seen.member(at);
                }
                Ok(true)
            }
            // It says nothing about values of this type.
            _ => Ok(true),
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
        let Some(more) = self.fits(part, value, scope)? else {
            return Ok(false);
        };
        if self.schema.notes {
            self.spend(more.cost())?;
            seen.add(&more);
        }
        Ok(true)
    }

    /// Notes what was seen, where somebody asks.
    fn see(&self, note: impl FnOnce()) {
        if self.schema.notes {
            note();
        }
    }

    /// The parts that a member has to fit.
    pub(super) fn parts_for(
        &mut self,
        rule: &Properties,
        name: &str,
    ) -> Result<Vec<Part>, Undecided> {
        let mut parts: Vec<Part> = rule.named.get(name).copied().into_iter().collect();
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
        let names = object
            .as_object()
            .into_iter()
            .flat_map(|object| object.keys());
        let names: Vec<Value> = names.cloned().map(Value::String).collect();
        self.spend(names.iter().map(weight).sum())?;
        let names = Rc::new(names);
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

    pub(super) fn spend(&mut self, work: u64) -> Result<(), Undecided> {
        self.work = self.work.saturating_add(work);
        match self.work > WORK {
            true => Err(Undecided::Work),
            false => Ok(()),
        }
    }
}
