//! Which of the peer's requests has which id: by a look at all of them while they are few, by an index
//! when they are many, so that the next one costs the same.

use std::collections::HashMap;

use super::RequestKey;
use super::requests::Serving;
use super::table::Table;
use crate::jsonrpc::RequestId;

/// More requests than these are not looked at one by one.
const FEW: usize = 32;

#[derive(Clone, Default, Debug)]
pub(super) struct Ids {
    /// The highest number that a request was called by, since there was none. Most peers count, so a
    /// higher one is new, and nobody has to look.
    highest: Option<i64>,
    /// Kept from the moment on that there are many, until there is none. On HTTP several requests can
    /// have the same id, each on its exchange.
    index: Option<HashMap<RequestId, Vec<RequestKey>>>,
}

impl Ids {
    /// A request was added to the others.
    pub(super) fn began(&mut self, key: RequestKey, all: &Table<RequestKey, Serving>) {
        if let Some(RequestId::Number(number)) = all.get(key).map(|serving| &serving.id) {
            self.highest = self.highest.max(Some(*number));
        }
        match &mut self.index {
            Some(index) => {
                if let Some(serving) = all.get(key) {
                    index.entry(serving.id.clone()).or_default().push(key);
                }
            }
            None if all.len() > FEW => {
                let mut index: HashMap<_, Vec<_>> = HashMap::new();
                for (key, serving) in all.iter() {
                    index.entry(serving.id.clone()).or_default().push(key);
                }
                self.index = Some(index);
            }
            None => {}
        }
    }

    /// A request was taken away from the others.
    pub(super) fn ended(&mut self, key: RequestKey, id: &RequestId, left: usize) {
        if left == 0 {
            *self = Self::default();
        }
        if let Some(index) = &mut self.index
            && let Some(keys) = index.get_mut(id)
        {
            keys.retain(|known| *known != key);
            if keys.is_empty() {
                index.remove(id);
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
        let indexed = known.and_then(|index| index.get(id)).into_iter().flatten();
        let indexed = indexed.filter_map(|key| Some((*key, all.get(*key)?)));
        let looks = index.is_none() && !is_new;
        let looked_at = looks.then(|| all.iter()).into_iter().flatten();
        indexed.chain(looked_at.filter(move |(_, serving)| serving.id == *id))
    }
}
