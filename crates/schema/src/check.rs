//! Checks a value against a schema.
//!
//! A subschema that refers to others is checked against the same part of a value only once, however
//! many references lead to it, and all work is counted. Where only one reference leads to it, the
//! verdict need not be remembered.

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

/// The work that a check of a small value may take: about this many parts are looked at.
pub(super) const WORK: u64 = 500_000;
/// The additional work for each part of the value, or 64 bytes of text. A part of a plain table
/// takes about five units; with unions and patterns, ten. This stops work that multiplies (large
/// schemas, dynamic anchors), however large the value is: a check takes at most ten times as long
/// as parsing the value, or half a second for 4 MiB of text if all of it is in patterns that are
/// hard to match.
pub(super) const WORK_PER_PART: u64 = 16;
/// Remembering a verdict takes longer than looking at a part.
const PAIR: u64 = 7;
/// The maximum number of verdicts remembered at once, so that memory does not grow with the value.
pub(super) const REMEMBERED: u64 = 500_000;

/// Why a check was given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Undecided {
    /// The schema refers to itself without going deeper into the value.
    Endless,
    /// The check is nested too deeply.
    Deep,
    /// The check takes too much work.
    Work,
}

/// Whether a value is valid, and which of its members or items were evaluated.
#[derive(Clone)]
pub(super) struct Verdict {
    pub(super) fits: Truth,
    /// Mostly `None`.
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
    /// Remembers all verdicts, for the second pass that finds out what is wrong.
    pub(super) remembers_all: bool,
    /// The size of `known`: its entries, and what they have evaluated.
    pub(super) remembered: u64,
    pub(super) level: usize,
    pub(super) work: u64,
    pub(super) most_work: u64,
    /// The value, until its size was measured.
    unmeasured: Option<&'s Value>,
    pub(super) scopes: Scopes,
    names: HashMap<usize, Rc<Vec<Value>>>,
}

/// A subschema, the address of a part of the value, and the dynamic scope.
type Key = (Part, usize, Scope);

enum Known {
    /// The check is still running.
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

    /// Whether a value matches a subschema.
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

    /// Whether a value matches a subschema that refers to others.
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

    /// Whether a value follows all rules of a subschema.
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
            // An unknown result can still become a failure.
            if fits == Truth::No {
                break;
            }
        }
        Ok(fits)
    }

    /// Remembers a verdict. When there are too many, all earlier ones are dropped: most belong to
    /// parts of the value that are finished. A dropped verdict is computed and counted again if it
    /// is needed, and a loop is found in its next round.
    fn remember(&mut self, key: Key, verdict: &Verdict) {
        let cost = 1 + verdict.seen_cost();
        if self.remembered + cost > REMEMBERED {
            self.known.clear();
            self.remembered = 0;
        }
        self.remembered += cost;
        self.known.insert(key, Known::Verdict(verdict.clone()));
    }

    /// The dynamic scope after entering a subschema from `scope`.
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

    /// Whether a value follows a rule. Adds what was evaluated to `seen`.
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
                    // The other subschemas may evaluate more of the value.
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

    /// Whether a part of a value matches what is asked of it. Adds what was evaluated to `seen`.
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
                // If all options fail, the one that would have evaluated it did not apply.
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

    /// Whether the value matches if it is unknown which option applies, and whether it matches any
    /// option.
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
                    // This may not be the option that applies.
                    self.add(&verdict, fits.and(Truth::Unknown), seen)?;
                }
            }
            all = Some(all.map_or(fits, |all: Truth| all.either(fits)));
        }
        Ok((all.unwrap_or(Truth::Yes), any))
    }

    /// Checks a further subschema, and adds what it evaluated to `seen`.
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

    /// Records that a member or item was evaluated, if any keyword asks for it.
    fn note(&self, at: usize, was_seen: Truth, seen: &mut Seen) {
        if self.schema.notes {
            seen.note(at, was_seen);
        }
    }

    /// The names of an object's members as values. They are stored, because verdicts are remembered
    /// by address.
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

    /// Counts work before it is done.
    pub(super) fn spend(&mut self, work: u64) -> Result<(), Undecided> {
        let work = self.work.saturating_add(work);
        if work > self.most_work
            && let Some(value) = self.unmeasured.take()
        {
            // Measured only now: most checks never get here.
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
