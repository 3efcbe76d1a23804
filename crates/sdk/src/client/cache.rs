//! The cache of results. Modern only: the server sets the time to live and the scope.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::sync::{Mutex, MutexGuard};
use belay_protocol::jsonrpc::{Notification, RawJson};
use belay_protocol::types::modern::Discover;
use belay_protocol::types::{
    CacheScope, ListPrompts, ListResourceTemplates, ListResources, ListTools, Millis,
    Notification as _, PromptListChangedParams, ReadResource, Request as _,
    ResourceListChangedParams, ResourceUpdatedParams, ToolListChangedParams,
};
use tokio::time::Instant;

/// Results that may be used again, as long as the server allows it.
///
/// Each client has one of its own. One that is given to several clients is shared by them: what a
/// server says is for everybody is used by all who ask that server, and what is private only by
/// clients with the same credentials.
///
/// ```
/// use belay::client::Cache;
///
/// let cache = Cache::new(1000, 16 << 20);
/// let one = belay::Client::builder("editor", "1.0.0").cache(&cache);
/// let other = belay::Client::builder("editor", "1.0.0").cache(&cache);
/// ```
#[derive(Clone)]
pub struct Cache {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    entries: HashMap<Key, Entry>,
    bytes: usize,
    most_entries: usize,
    most_bytes: usize,
    /// Counts uses, for the eviction of the least recently used entry.
    clock: u64,
    /// Counts invalidations. A result is not stored if this has changed since its request.
    changes: u64,
}

/// Identifies the request whose result is cached.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    /// The server's address.
    place: Arc<str>,
    /// The credentials of the owner of a private result, or `None` for a public one.
    owner: Option<Arc<[u8]>>,
    method: &'static str,
    /// As they were encoded: equal parameters in another order are another key.
    params: Box<str>,
}

struct Entry {
    result: RawJson,
    until: Instant,
    used: u64,
}

impl Default for Cache {
    fn default() -> Self {
        Self::new(256, 8 << 20)
    }
}

impl Cache {
    /// A cache of at most this many results, and this many bytes of them.
    pub fn new(entries: usize, bytes: usize) -> Self {
        let inner = Inner {
            entries: HashMap::new(),
            bytes: 0,
            most_entries: entries,
            most_bytes: bytes,
            clock: 0,
            changes: 0,
        };
        Self {
            inner: Arc::new(Mutex::new(inner)),
        }
    }

    /// Removes all results.
    pub fn clear(&self) {
        let mut inner = self.lock();
        inner.entries.clear();
        inner.bytes = 0;
        // Results of requests that are in flight now are not stored either.
        inner.changes += 1;
    }

    /// The number of cached results.
    pub fn len(&self) -> usize {
        self.lock().entries.len()
    }

    /// Whether the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("len", &self.len()).finish()
    }
}

/// One client's view of a cache: its server and its credentials.
#[derive(Clone)]
pub(crate) struct Shelf {
    cache: Cache,
    place: Arc<str>,
    owner: Arc<[u8]>,
}

/// The methods whose results can be cached.
const KEPT: [&str; 6] = [
    Discover::METHOD,
    ListTools::METHOD,
    ListPrompts::METHOD,
    ListResources::METHOD,
    ListResourceTemplates::METHOD,
    ReadResource::METHOD,
];

/// Whether the results of a method can be cached.
pub(crate) fn is_kept(method: &str) -> bool {
    KEPT.contains(&method)
}

impl Shelf {
    /// A view for clients of this server with these credentials.
    pub(crate) fn new(cache: Cache, place: Arc<str>, owner: Arc<[u8]>) -> Self {
        Self {
            cache,
            place,
            owner,
        }
    }

    fn key(&self, method: &str, params: &RawJson, shared: bool) -> Option<Key> {
        let method = KEPT.into_iter().find(|kept| *kept == method)?;
        let [responses, state] = params.fields(["inputResponses", "requestState"]);
        // The result of a request with input responses depends on those.
        if responses.is_some() || state.is_some() {
            return None;
        }
        Some(Key {
            place: self.place.clone(),
            owner: (!shared).then(|| self.owner.clone()),
            method,
            params: params.as_str().into(),
        })
    }

    /// A cached result that has not expired.
    pub(crate) fn get(&self, method: &str, params: &RawJson) -> Option<RawJson> {
        let keys = [false, true].map(|shared| self.key(method, params, shared));
        let mut inner = self.cache.lock();
        let now = Instant::now();
        keys.into_iter()
            .flatten()
            .find_map(|key| inner.get(&key, now))
    }

    /// The count of invalidations, to be taken before a request and passed to `put` after it.
    pub(crate) fn stamp(&self) -> u64 {
        self.cache.lock().changes
    }

    /// Caches a result, if the server allows it and nothing was invalidated since
    /// its request was made.
    pub(crate) fn put(&self, method: &str, params: &RawJson, result: &RawJson, stamp: u64) {
        let [millis, scope] = result.fields(["ttlMs", "cacheScope"]);
        let millis: Millis = millis.and_then(|it| it.decode().ok()).unwrap_or_default();
        let millis = millis.0;
        let shared = scope.and_then(|scope| scope.decode().ok()) == Some(CacheScope::Public);
        let until = Instant::now().checked_add(Duration::from_millis(millis));
        let mut inner = self.cache.lock();
        // The new result replaces an earlier one of either scope.
        for owned in [true, false] {
            if let Some(before) = self.key(method, params, owned) {
                inner.remove(&before);
            }
        }
        if let Some(key) = self.key(method, params, shared)
            && let Some(until) = until.filter(|_| millis > 0)
            && inner.changes == stamp
        {
            inner.put(key, result, until);
        }
    }

    /// Removes the results of one method.
    pub(crate) fn forget(&self, method: &str) {
        let mut inner = self.cache.lock();
        inner.retain(|key| key.place != self.place || key.method != method);
    }

    /// Removes what a change notification makes stale, for every owner.
    pub(crate) fn notified(&self, notification: &Notification) {
        let stale: &[&str] = match &*notification.method {
            ToolListChangedParams::METHOD => &[ListTools::METHOD],
            PromptListChangedParams::METHOD => &[ListPrompts::METHOD],
            ResourceListChangedParams::METHOD => {
                &[ListResources::METHOD, ListResourceTemplates::METHOD]
            }
            // The URI may name a part of a resource that was read, so all results
            // of `resources/read` go.
            ResourceUpdatedParams::METHOD => &[ReadResource::METHOD],
            _ => return,
        };
        let mut inner = self.cache.lock();
        inner.retain(|key| key.place != self.place || !stale.contains(&key.method));
    }

    /// Removes all results of this server.
    pub(crate) fn clear(&self) {
        let mut inner = self.cache.lock();
        inner.retain(|key| key.place != self.place);
    }
}

impl Inner {
    fn get(&mut self, key: &Key, now: Instant) -> Option<RawJson> {
        self.clock += 1;
        let entry = self.entries.get_mut(key)?;
        if entry.until <= now {
            self.remove(key);
            return None;
        }
        entry.used = self.clock;
        Some(entry.result.clone())
    }

    fn put(&mut self, key: Key, result: &RawJson, until: Instant) {
        let size = result.as_bytes().len();
        if size > self.most_bytes || self.most_entries == 0 {
            return;
        }
        self.remove(&key);
        while self.entries.len() >= self.most_entries || self.bytes + size > self.most_bytes {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else {
                break;
            };
            self.remove(&oldest);
        }
        self.clock += 1;
        let entry = Entry {
            result: result.detached(),
            until,
            used: self.clock,
        };
        self.bytes += size;
        self.entries.insert(key, entry);
    }

    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= entry.result.as_bytes().len();
        }
    }

    /// Removes the entries that `keep` rejects, and counts an invalidation.
    fn retain(&mut self, keep: impl Fn(&Key) -> bool) {
        self.changes += 1;
        let gone: Vec<Key> = self
            .entries
            .keys()
            .filter(|key| !keep(key))
            .cloned()
            .collect();
        for key in gone {
            self.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use belay_protocol::jsonrpc::Message;

    use super::*;

    fn shelf(cache: &Cache, place: &str, owner: &str) -> Shelf {
        Shelf::new(cache.clone(), place.into(), owner.as_bytes().into())
    }

    fn raw(text: &str) -> RawJson {
        RawJson::parse(text.to_owned()).unwrap()
    }

    fn result(millis: i64, scope: &str) -> RawJson {
        raw(&format!(
            r#"{{"tools":[],"ttlMs":{millis},"cacheScope":"{scope}"}}"#
        ))
    }

    const LIST: &str = ListTools::METHOD;

    /// As when a user logs out while a list is being requested.
    #[tokio::test]
    async fn what_was_asked_before_it_was_cleared_is_not_kept() {
        let cache = Cache::default();
        let shelf = shelf(&cache, "a", "");
        let stamp = shelf.stamp();
        cache.clear();
        shelf.put(
            LIST,
            &RawJson::empty_object(),
            &result(1000, "private"),
            stamp,
        );
        assert!(cache.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn results_are_good_for_as_long_as_the_server_says() {
        let shelf = shelf(&Cache::default(), "a", "");
        let params = RawJson::empty_object();
        shelf.put(LIST, &params, &result(1000, "private"), shelf.stamp());
        assert!(shelf.get(LIST, &params).is_some());
        assert!(shelf.get(LIST, &raw(r#"{"cursor":"2"}"#)).is_none());
        assert!(shelf.get(ListPrompts::METHOD, &params).is_none());
        tokio::time::advance(Duration::from_millis(999)).await;
        assert!(shelf.get(LIST, &params).is_some());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(shelf.get(LIST, &params).is_none());
        for silent in [
            result(0, "private"),
            result(-5, "private"),
            raw(r#"{"tools":[]}"#),
        ] {
            shelf.put(LIST, &params, &silent, shelf.stamp());
            assert!(shelf.get(LIST, &params).is_none());
        }
        shelf.put(
            "tools/call",
            &params,
            &result(1000, "public"),
            shelf.stamp(),
        );
        assert!(shelf.cache.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_answered_in_rounds_is_not_kept() {
        let shelf = shelf(&Cache::default(), "a", "");
        let params = raw(r#"{"uri":"file:///a","inputResponses":{}}"#);
        shelf.put(
            ReadResource::METHOD,
            &params,
            &result(1000, "public"),
            shelf.stamp(),
        );
        assert!(shelf.cache.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn private_results_stay_with_their_owner() {
        let cache = Cache::default();
        let (alice, bob) = (shelf(&cache, "a", "alice"), shelf(&cache, "a", "bob"));
        let elsewhere = shelf(&cache, "b", "alice");
        let params = RawJson::empty_object();
        alice.put(LIST, &params, &result(1000, "private"), alice.stamp());
        assert!(alice.get(LIST, &params).is_some());
        assert!(bob.get(LIST, &params).is_none());
        alice.put(
            ListPrompts::METHOD,
            &params,
            &result(1000, "public"),
            alice.stamp(),
        );
        assert!(bob.get(ListPrompts::METHOD, &params).is_some());
        assert!(elsewhere.get(ListPrompts::METHOD, &params).is_none());
        // An unknown scope counts as private.
        alice.put(LIST, &params, &result(1000, "galactic"), alice.stamp());
        assert!(bob.get(LIST, &params).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn news_make_results_stale() {
        let cache = Cache::default();
        let (here, there) = (shelf(&cache, "a", ""), shelf(&cache, "b", ""));
        let params = RawJson::empty_object();
        for shelf in [&here, &there] {
            shelf.put(LIST, &params, &result(1000, "public"), shelf.stamp());
            shelf.put(
                ListPrompts::METHOD,
                &params,
                &result(1000, "public"),
                shelf.stamp(),
            );
        }
        let text = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
        let Ok(Message::Notification(changed)) = belay_protocol::jsonrpc::decode(&text.into(), 64)
        else {
            unreachable!("it is a notification");
        };
        here.notified(&changed);
        assert!(here.get(LIST, &params).is_none());
        assert!(here.get(ListPrompts::METHOD, &params).is_some());
        assert!(there.get(LIST, &params).is_some());
        there.clear();
        assert_eq!(cache.len(), 1);
        // The result of a request that was in flight when the notification came is stale.
        let stamp = here.stamp();
        here.notified(&changed);
        here.put(LIST, &params, &result(1000, "public"), stamp);
        assert!(here.get(LIST, &params).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_answer_stands_whatever_its_scope() {
        let cache = Cache::default();
        let (alice, bob) = (shelf(&cache, "a", "alice"), shelf(&cache, "a", "bob"));
        let params = RawJson::empty_object();
        for scope in ["private", "public", "private"] {
            alice.put(LIST, &params, &result(1000, scope), alice.stamp());
            assert_eq!(cache.len(), 1);
            assert!(alice.get(LIST, &params).is_some());
            assert_eq!(bob.get(LIST, &params).is_some(), scope == "public");
        }
        alice.put(LIST, &params, &result(0, "public"), alice.stamp());
        assert!(cache.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_bounded() {
        let cache = Cache::new(2, 1 << 20);
        let shelf = shelf(&cache, "a", "");
        let page = |number: u32| raw(&format!(r#"{{"cursor":"{number}"}}"#));
        for number in 0..3 {
            shelf.put(LIST, &page(number), &result(1000, "public"), shelf.stamp());
            shelf.get(LIST, &page(0));
        }
        // The most recently used entry stays.
        assert_eq!(cache.len(), 2);
        assert!(shelf.get(LIST, &page(0)).is_some());
        assert!(shelf.get(LIST, &page(1)).is_none());
        let small = Cache::new(10, 100);
        let shelf = super::Shelf::new(small.clone(), "a".into(), [].as_slice().into());
        for number in 0..9 {
            shelf.put(LIST, &page(number), &result(1000, "public"), shelf.stamp());
            assert!(small.lock().bytes <= 100);
        }
        assert!(small.len() == 2 || small.len() == 1);
        small.clear();
        assert_eq!(small.lock().bytes, 0);
    }
}
