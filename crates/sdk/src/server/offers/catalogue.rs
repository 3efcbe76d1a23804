//! The registry of a server's tools, prompts or resources, by name, in the order of registration.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLockReadGuard};

use belay_protocol::jsonrpc::{ErrorObject, Params};
use belay_protocol::types::{PaginatedParams, error_code};

use crate::server::changes::{Changes, List};
use crate::sync::RwLock;

/// An entry of the registry, with a unique key.
pub(in crate::server) trait Offer: Send + Sync + 'static {
    /// The name or the URI.
    fn key(&self) -> &str;
}

/// A registry of entries. It can change while the server runs, and subscribers are notified.
pub(in crate::server) struct Catalogue<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    list: List,
    changes: Changes,
    /// Whether the feature is declared. Once it was declared it stays so, even with no entries.
    offered: AtomicBool,
    items: RwLock<Items<T>>,
}

/// Places are never reused, so a cursor, which names a place, stays valid after changes.
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

    /// Declares the feature, even without entries.
    pub(in crate::server) fn offer(&self) {
        self.shared.offered.store(true, Ordering::Relaxed);
    }

    pub(in crate::server) fn is_offered(&self) -> bool {
        self.shared.offered.load(Ordering::Relaxed)
    }

    /// Notifies subscribers that the list has changed.
    pub(in crate::server) fn changed(&self) {
        self.shared.changes.listed(self.shared.list);
    }

    /// Adds an entry, or replaces the one with the same key in its place.
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

    /// Removes an entry. Returns false if there was none.
    pub(in crate::server) fn remove(&self, key: &str) -> bool {
        let removed = self.change(|items| {
            let place = items.places.remove(key)?;
            Some(items.by_place.remove(&place))
        });
        removed.is_some()
    }

    /// Hides or shows an entry. Returns false if there is none, or if nothing changed.
    pub(in crate::server) fn set_enabled(&self, key: &str, enabled: bool) -> bool {
        let changed = self.change(|items| {
            let place = items.places.get(key)?;
            let slot = items.by_place.get_mut(place)?;
            (slot.enabled != enabled).then(|| slot.enabled = enabled)
        });
        changed.is_some()
    }

    /// Changes the entries, and notifies subscribers if there was a change. Removed entries are
    /// returned, to be dropped outside of the lock, because their destructors are user code.
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

    /// The entry with this key, if it is enabled.
    pub(in crate::server) fn get(&self, key: &str) -> Option<Arc<T>> {
        let items = self.items();
        let slot = items.by_place.get(items.places.get(key)?)?;
        slot.enabled.then(|| slot.item.clone())
    }

    /// The first enabled entry for which `good` returns a value.
    pub(in crate::server) fn find<R>(&self, good: impl FnMut(&Arc<T>) -> Option<R>) -> Option<R> {
        let items = self.items();
        let enabled = items.by_place.values().filter(|slot| slot.enabled);
        enabled.map(|slot| &slot.item).find_map(good)
    }

    /// The keys of the enabled entries.
    pub(in crate::server) fn names(&self) -> Vec<String> {
        let items = self.items();
        let enabled = items.by_place.values().filter(|slot| slot.enabled);
        enabled.map(|slot| slot.item.key().to_owned()).collect()
    }

    /// One page of descriptions, and the cursor of the next page.
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

/// The place that a page begins after, from its cursor.
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
