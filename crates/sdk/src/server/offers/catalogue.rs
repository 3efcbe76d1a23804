//! What a server offers, by name, in the order in which it was offered.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLockReadGuard};

use belay_protocol::jsonrpc::{ErrorObject, Params};
use belay_protocol::types::{PaginatedParams, error_code};

use crate::server::changes::{Changes, List};
use crate::sync::RwLock;

/// Something that is offered by a name that nothing else has.
pub(in crate::server) trait Offer: Send + Sync + 'static {
    /// Its name, or its URI.
    fn key(&self) -> &str;
}

/// What is offered. It can change while the server runs; whoever wants to know is told.
pub(in crate::server) struct Catalogue<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    list: List,
    changes: Changes,
    /// Somebody can offer something, or has. What was said to be offered stays so.
    offered: AtomicBool,
    items: RwLock<Items<T>>,
}

/// Places are never given twice, so a page that begins after one is the same page later.
struct Items<T> {
    by_place: BTreeMap<u64, Slot<T>>,
    places: HashMap<String, u64>,
    last: u64,
}

struct Slot<T> {
    item: Arc<T>,
    enabled: bool,
}

impl<T: Offer> Catalogue<T> {
    pub(in crate::server) fn new(list: List, changes: Changes) -> Self {
        let items = Items {
            by_place: BTreeMap::new(),
            places: HashMap::new(),
            last: 0,
        };
        Self {
            shared: Arc::new(Shared {
                list,
                changes,
                offered: AtomicBool::new(false),
                items: RwLock::new(items),
            }),
        }
    }

    /// From now on something of this kind can be asked for.
    pub(in crate::server) fn offer(&self) {
        self.shared.offered.store(true, Ordering::Relaxed);
    }

    pub(in crate::server) fn is_offered(&self) -> bool {
        self.shared.offered.load(Ordering::Relaxed)
    }

    /// Tells that it is not what it was.
    pub(in crate::server) fn changed(&self) {
        self.shared.changes.listed(self.shared.list);
    }

    /// Adds one, or replaces the one of the same name in its place.
    pub(in crate::server) fn add(&self, item: T) {
        self.offer();
        let replaced = self.change(|items| {
            let key = item.key().to_owned();
            let place = *items.places.entry(key).or_insert_with(|| {
                items.last += 1;
                items.last
            });
            let slot = Slot {
                item: Arc::new(item),
                enabled: true,
            };
            Some(items.by_place.insert(place, slot))
        });
        drop(replaced);
    }

    /// Removes one. False if there was none.
    pub(in crate::server) fn remove(&self, key: &str) -> bool {
        let removed = self.change(|items| {
            let place = items.places.remove(key)?;
            Some(items.by_place.remove(&place))
        });
        removed.is_some()
    }

    /// Takes one out of sight, or back. False if there is none, or nothing changed.
    pub(in crate::server) fn set_enabled(&self, key: &str, enabled: bool) -> bool {
        let changed = self.change(|items| {
            let place = items.places.get(key)?;
            let slot = items.by_place.get_mut(place)?;
            (slot.enabled != enabled).then(|| slot.enabled = enabled)
        });
        changed.is_some()
    }

    /// Changes the items; whoever wants to know is told, if it did. What was taken out is given back,
    /// to be dropped outside the lock: its destructor is not ours.
    fn change<R>(&self, change: impl FnOnce(&mut Items<T>) -> Option<R>) -> Option<R> {
        let changed = {
            let mut items = self.shared.items.write();
            change(&mut items)
        }?;
        self.changed();
        Some(changed)
    }

    fn items(&self) -> RwLockReadGuard<'_, Items<T>> {
        self.shared.items.read()
    }

    /// The one of this name, if it is in sight.
    pub(in crate::server) fn get(&self, key: &str) -> Option<Arc<T>> {
        let items = self.items();
        let slot = items.by_place.get(items.places.get(key)?)?;
        slot.enabled.then(|| slot.item.clone())
    }

    /// The first that is good for something.
    pub(in crate::server) fn find<R>(&self, good: impl FnMut(&Arc<T>) -> Option<R>) -> Option<R> {
        let items = self.items();
        let enabled = items.by_place.values().filter(|slot| slot.enabled);
        enabled.map(|slot| &slot.item).find_map(good)
    }

    /// The names of those in sight.
    pub(in crate::server) fn names(&self) -> Vec<String> {
        let items = self.items();
        let enabled = items.by_place.values().filter(|slot| slot.enabled);
        enabled.map(|slot| slot.item.key().to_owned()).collect()
    }

    /// One page, and where the next one begins.
    pub(in crate::server) fn page<D>(
        &self,
        params: Option<&Params>,
        size: Option<usize>,
        describe: impl Fn(&T) -> D,
    ) -> Result<(Vec<D>, Option<String>), ErrorObject> {
        let after = begins_after(params)?;
        let size = size.unwrap_or(usize::MAX).max(1);
        let items = self.items();
        let rest = items.by_place.range(after.saturating_add(1)..);
        let mut rest = rest.filter(|(_, slot)| slot.enabled);
        let mut page = Vec::new();
        let mut last = after;
        for (place, slot) in rest.by_ref().take(size) {
            page.push(describe(&slot.item));
            last = *place;
        }
        let next = rest.next().map(|_| last.to_string());
        Ok((page, next))
    }
}

/// The place that a page begins after.
fn begins_after(params: Option<&Params>) -> Result<u64, ErrorObject> {
    let invalid = |problem: String| ErrorObject::new(error_code::INVALID_PARAMS, problem);
    let Some(params) = params else {
        return Ok(0);
    };
    let params: PaginatedParams = params
        .decode()
        .map_err(|error| invalid(error.to_string()))?;
    match params.cursor {
        None => Ok(0),
        Some(cursor) => cursor.parse().map_err(|_| {
            let problem = format!("`cursor` {cursor:?} was not given out here; begin without one");
            invalid(problem)
        }),
    }
}

impl<T> Clone for Catalogue<T> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
        }
    }
}
