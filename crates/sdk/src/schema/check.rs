//! Holding a value against a schema.
//!
//! A part of the schema that leads to others is held against a part of the value once, whatever number of
//! ways lead there, and all that is done is counted. Where only one way leads there, nothing has to be
//! remembered for that.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::rc::Rc;

use serde_json::Value;

use super::number::weight;
use super::pairs::{Asked, Pair, Step};
use super::places::{Part, address};
use super::rules::{Leading, Rule, name_cost};
use super::scopes::{Scope, Scopes};
use super::seen::Seen;
use super::truth::{Count, Truth};
use super::{LEVELS, Schema};

/// So much is done to hold a small value against a schema: about so many parts are looked at.
pub(super) const WORK: u64 = 500_000;
/// And so much more for each part of the value, or 64 bytes of text. Each part of a plain table takes about
/// five; where there are unions and patterns, ten. Work that multiplies (large schemas, meanings of anchors)
/// comes to an end here however large the value is: it takes at most ten times as long as it took to read
/// the value, or half a second for 4 MiB of text, if all of it is in patterns that are hard to match.
pub(super) const WORK_PER_PART: u64 = 16;
/// To remember a verdict takes longer than to look at a part.
const PAIR: u64 = 7;
/// So many verdicts are remembered at once. Memory does not grow with the value.
pub(super) const REMEMBERED: u64 = 500_000;

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
#[derive(Clone)]
pub(super) struct Verdict {
    pub(super) fits: Truth,
    /// Nothing, mostly.
    seen: Option<Rc<Seen>>,
}

impl Verdict {
    fn seen_cost(&self) -> u64 {
        self.seen.as_ref().map_or(0, |seen| seen.cost())
    }
}

/// One check of one value.
pub(super) struct Check<'s> {
    pub(super) schema: &'s Schema,
    known: HashMap<Key, Known>,
    /// Everything is remembered: the value is looked at again, to find out what is wrong with it.
    pub(super) remembers_all: bool,
    /// How much is in `known`: its entries, and what they have seen.
    pub(super) remembered: u64,
    pub(super) level: usize,
    pub(super) work: u64,
    pub(super) most_work: u64,
    /// The value, as long as nobody has measured it.
    unmeasured: Option<&'s Value>,
    pub(super) scopes: Scopes,
    names: HashMap<usize, Rc<Vec<Value>>>,
}

/// A part of the schema, a part of the value, and what anchors mean here.
type Key = (Part, usize, Scope);

enum Known {
    /// It is being found out.
    Open,
    Verdict(Verdict),
}

impl<'s> Check<'s> {
    pub(super) fn new(schema: &'s Schema, value: &'s Value) -> Self {
        Self {
            schema,
            known: HashMap::new(),
            remembers_all: false,
            remembered: 0,
            level: 0,
            work: 0,
            most_work: WORK,
            unmeasured: Some(value),
            scopes: Scopes::new(schema.names),
            names: HashMap::new(),
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
            let mut seen = Seen::default();
            let fits = self.keeps_all(part, value, scope, &mut seen)?;
            return Ok(verdict(fits, seen));
        }
        let scope = self.entered(scope, part)?;
        if !node.is_shared && !self.remembers_all {
            return self.deeper(part, value, scope);
        }
        let key = (part, address(value), scope);
        match self.known.entry(key) {
            Entry::Occupied(known) => match known.get() {
                Known::Open => return Err(Undecided::Endless),
                Known::Verdict(verdict) => return Ok(verdict.clone()),
            },
            Entry::Vacant(unknown) => _ = unknown.insert(Known::Open),
        }
        self.spend(PAIR)?;
        let verdict = self.deeper(part, value, scope)?;
        self.remember(key, &verdict);
        Ok(verdict)
    }

    /// Whether a value fits a part of the schema that leads to others.
    fn deeper(&mut self, part: Part, value: &Value, scope: Scope) -> Result<Verdict, Undecided> {
        if self.level == LEVELS {
            return Err(Undecided::Deep);
        }
        self.level += 1;
        let mut seen = Seen::default();
        let fits = self.keeps_all(part, value, scope, &mut seen)?;
        self.level -= 1;
        Ok(verdict(fits, seen))
    }

    /// Whether a value does what all rules of a part ask for.
    fn keeps_all(
        &mut self,
        part: Part,
        value: &Value,
        scope: Scope,
        seen: &mut Seen,
    ) -> Result<Truth, Undecided> {
        let mut fits = Truth::Yes;
        for rule in &self.schema.nodes[part].rules {
            fits = fits.and(self.follows(rule, value, scope, seen)?);
            // What is unknown can still turn out to be wrong.
            if fits == Truth::No {
                break;
            }
        }
        Ok(fits)
    }

    /// Keeps a verdict for the next that asks. When there are many, all before are forgotten: most belong
    /// to parts of the value that are done with. What is asked again is counted again, and what loops is
    /// found the next time round.
    fn remember(&mut self, key: Key, verdict: &Verdict) {
        let cost = 1 + verdict.seen_cost();
        if self.remembered + cost > REMEMBERED {
            self.known.clear();
            self.remembered = 0;
        }
        self.remembered += cost;
        self.known.insert(key, Known::Verdict(verdict.clone()));
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
        let entered = self.scopes.enter(scope, resource, anchors);
        entered.ok_or(Undecided::Work)
    }

    /// Whether a value does what a rule asks for. What was seen of it is added to `seen`.
    pub(super) fn follows(
        &mut self,
        rule: &Rule,
        value: &Value,
        scope: Scope,
        seen: &mut Seen,
    ) -> Result<Truth, Undecided> {
        match rule {
            Rule::Plain(rule) => self.keeps(rule, value),
            Rule::Leading(rule) => self.leads(rule, value, scope, seen),
        }
    }

    fn leads(
        &mut self,
        rule: &Leading,
        value: &Value,
        scope: Scope,
        seen: &mut Seen,
    ) -> Result<Truth, Undecided> {
        match (rule, value) {
            (Leading::Any(parts), _) => {
                let mut any = Truth::No;
                for part in parts {
                    any = any.or(self.also(*part, value, scope, seen)?);
                    // The others may see more of it.
                    if any == Truth::Yes && !self.schema.notes {
                        break;
                    }
                }
                Ok(any)
            }
            (Leading::One(parts), _) => {
                let mut fitting = Count::default();
                for part in parts {
                    fitting.add(self.also(*part, value, scope, seen)?);
                    if fitting.is_within(0, 1) == Truth::No {
                        break;
                    }
                }
                Ok(fitting.is_within(1, 1))
            }
            (Leading::Not(part), _) => Ok(self.fits(*part, value, scope)?.fits.not()),
            (Leading::PropertyNames(part), Value::Object(_)) => {
                let mut all = Truth::Yes;
                for name in self.names(value)?.iter() {
                    all = all.and(self.fits(*part, name, scope)?.fits);
                    if all == Truth::No {
                        break;
                    }
                }
                Ok(all)
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
                let mut found = Count::default();
                for (at, item) in items.iter().enumerate() {
                    let fits = self.fits(*part, item, scope)?.fits;
                    found.add(fits);
                    if *evaluates {
                        self.note(at, fits, seen);
                    }
                }
                Ok(found.is_within(*least, most.unwrap_or(u64::MAX)))
            }
            (rule, value) => {
                let mut all = Truth::Yes;
                self.each_pair(rule, value, scope, seen, |check, pair, seen| {
                    all = all.and(check.meets(&pair, scope, seen)?);
                    Ok(all != Truth::No)
                })?;
                Ok(all)
            }
        }
    }

    /// Whether a part of a value fits what is asked of it. What was seen is added to `seen`.
    pub(super) fn meets(
        &mut self,
        pair: &Pair<'_>,
        scope: Scope,
        seen: &mut Seen,
    ) -> Result<Truth, Undecided> {
        let (fits, evaluated) = match &pair.asked {
            Asked::Part(part) => {
                let verdict = self.fits(*part, pair.value, scope)?;
                if matches!(pair.step, Step::Here) {
                    self.add(&verdict, verdict.fits, seen)?;
                }
                (verdict.fits, pair.evaluated)
            }
            Asked::Either(options) => {
                let (fits, any) = self.either(options, pair, scope, seen)?;
                // If all else fits, then what would have evaluated it did not apply.
                let evaluated = match any {
                    Truth::No if pair.evaluated == Truth::Unknown => Truth::No,
                    _ => pair.evaluated,
                };
                (fits, evaluated)
            }
        };
        if let Step::Member(at, _) | Step::Item(at) = pair.step {
            self.note(at, evaluated, seen);
        }
        Ok(fits)
    }

    /// Whether it fits whichever of some parts counts, and whether it fits any.
    fn either(
        &mut self,
        options: &[Option<Part>],
        pair: &Pair<'_>,
        scope: Scope,
        seen: &mut Seen,
    ) -> Result<(Truth, Truth), Undecided> {
        let (mut all, mut any) = (None, Truth::No);
        for option in options {
            let mut fits = Truth::Yes;
            if let Some(part) = option {
                let verdict = self.fits(*part, pair.value, scope)?;
                fits = verdict.fits;
                any = any.or(fits);
                if matches!(pair.step, Step::Here) {
                    // It may not be the one that counts.
                    self.add(&verdict, fits.and(Truth::Unknown), seen)?;
                }
            }
            all = Some(all.map_or(fits, |all: Truth| all.either(fits)));
        }
        Ok((all.unwrap_or(Truth::Yes), any))
    }

    /// Whether it fits another part as well, which may have seen more of it.
    pub(super) fn also(
        &mut self,
        part: Part,
        value: &Value,
        scope: Scope,
        seen: &mut Seen,
    ) -> Result<Truth, Undecided> {
        let verdict = self.fits(part, value, scope)?;
        self.add(&verdict, verdict.fits, seen)?;
        Ok(verdict.fits)
    }

    fn add(&mut self, more: &Verdict, fits: Truth, seen: &mut Seen) -> Result<(), Undecided> {
        if let Some(more) = &more.seen {
            self.spend(more.cost())?;
            seen.add(more, fits);
        }
        Ok(())
    }

    /// Notes what was seen, where somebody asks.
    fn note(&self, at: usize, was_seen: Truth, seen: &mut Seen) {
        if self.schema.notes {
            seen.note(at, was_seen);
        }
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

    /// Counts what is about to be done.
    pub(super) fn spend(&mut self, work: u64) -> Result<(), Undecided> {
        let work = self.work.saturating_add(work);
        if work > self.most_work
            && let Some(value) = self.unmeasured.take()
        {
            // Most values never get here, so that most are never measured.
            self.most_work = WORK.saturating_add(weight(value).saturating_mul(WORK_PER_PART));
        }
        if work > self.most_work {
            return Err(Undecided::Work);
        }
        self.work = work;
        Ok(())
    }
}

fn verdict(fits: Truth, seen: Seen) -> Verdict {
    let seen = Some(seen).filter(|seen| fits != Truth::No && seen.cost() > 0);
    let seen = seen.map(Rc::new);
    Verdict { fits, seen }
}
