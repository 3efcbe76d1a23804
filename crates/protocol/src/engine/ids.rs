//! Finds incoming requests by their id: by a linear search while there are few, by an index when
//! there are many, so that the cost of one more stays the same.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::RequestKey;
use super::requests::Serving;
use super::table::Table;
use crate::jsonrpc::RequestId;

/// With more requests than this, an index is built.
const FEW: usize = 32;

type Index = HashMap<RequestId, Keys, BuildHasherDefault<IdHasher>>;

/// The requests with one id. Mostly there is one.
#[derive(Clone, Debug)]
enum Keys {
    One(RequestKey),
    Several(Vec<RequestKey>),
}

impl Keys {
    fn as_slice(&self) -> &[RequestKey] {
        match self {
            Self::One(key) => std::slice::from_ref(key),
            Self::Several(keys) => keys,
        }
    }

    fn push(&mut self, key: RequestKey) {
        match self {
            Self::One(first) => *self = Self::Several(vec![*first, key]),
            Self::Several(keys) => keys.push(key),
        }
    }
}

/// A fast hash that does not resist chosen collisions. A peer that chooses its ids to collide only
/// slows itself down, and only among the requests it may have in flight.
#[derive(Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // 2^64 divided by the golden ratio: neighbours end up far apart.
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn write_i64(&mut self, number: i64) {
        self.write_u64(number.cast_unsigned());
    }

    fn write_isize(&mut self, number: isize) {
        self.write_u64(number as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

fn add(index: &mut Index, id: &RequestId, key: RequestKey) {
    match index.get_mut(id) {
        Some(keys) => keys.push(key),
        None => _ = index.insert(id.clone(), Keys::One(key)),
    }
}

#[derive(Clone, Default, Debug)]
pub(super) struct Ids {
    /// The highest number used as an id since the table was last empty. Most peers count upwards,
    /// so a higher id is new and needs no search.
    highest: Option<i64>,
    /// Built when there are many requests, and kept until there are none. On HTTP several requests
    /// can have the same id, each on its own exchange.
    index: Option<Index>,
}

impl Ids {
    /// A request was added to the table.
    pub(super) fn began(&mut self, key: RequestKey, all: &Table<RequestKey, Serving>) {
        if let Some(RequestId::Number(number)) = all.get(key).map(|serving| &serving.id) {
            self.highest = self.highest.max(Some(*number));
        }
        match &mut self.index {
            Some(index) => {
                if let Some(serving) = all.get(key) {
                    add(index, &serving.id, key);
                }
            }
            None if all.len() > FEW => {
                let mut index = Index::default();
                for (key, serving) in all.iter() {
                    add(&mut index, &serving.id, key);
                }
                self.index = Some(index);
            }
            None => {}
        }
    }

    /// A request was removed from the table.
    pub(super) fn ended(&mut self, key: RequestKey, id: &RequestId, left: usize) {
        if left == 0 {
            *self = Self::default();
        }
        if let Some(index) = &mut self.index
            && let Some(keys) = index.get_mut(id)
        {
            match keys {
                Keys::Several(keys) if keys.len() > 1 => keys.retain(|known| *known != key),
                _ => _ = index.remove(id),
            }
        }
    }

    /// The requests with this id, in order.
    pub(super) fn with_id<'a>(
        &'a self,
        id: &'a RequestId,
        all: &'a Table<RequestKey, Serving>,
    ) -> impl Iterator<Item = (RequestKey, &'a Serving)> {
        let is_new = matches!(id, RequestId::Number(number) if Some(*number) > self.highest);
        let index = self.index.as_ref();
        let known = index.filter(|_| !is_new);
        let indexed = known.and_then(|index| index.get(id));
        let indexed = indexed.map_or(&[][..], Keys::as_slice).iter();
        let indexed = indexed.filter_map(|key| Some((*key, all.get(*key)?)));
        let looks = index.is_none() && !is_new;
        let looked_at = looks.then(|| all.iter()).into_iter().flatten();
        indexed.chain(looked_at.filter(move |(_, serving)| serving.id == *id))
    }
}
