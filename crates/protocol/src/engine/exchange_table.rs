//! All exchanges of an engine, and the sums of their queues. It records which exchanges may have
//! changed, so that settling costs the same however many there are.

use super::ExchangeId;
use super::exchange::{Exchange, Sums};
use super::table::Table;

#[derive(Clone, Debug)]
pub(super) struct Exchanges<X> {
    table: Table<ExchangeId, Exchange<X>>,
    /// The sums of all queues, each as of when its exchange was last settled.
    sums: Sums,
    /// Exchanges that may have changed since they were settled.
    touched: Vec<ExchangeId>,
}

impl<X> Exchanges<X> {
    pub(super) fn with_capacity(capacity: usize) -> Self {
        Self {
            table: Table::with_capacity(capacity),
            sums: Sums::default(),
            touched: Vec::new(),
        }
    }

    pub(super) fn insert(&mut self, id: ExchangeId, mut exchange: Exchange<X>) {
        exchange.touched = true;
        self.touched.push(id);
        self.table.insert(id, exchange);
    }

    pub(super) fn get(&self, id: ExchangeId) -> Option<&Exchange<X>> {
        self.table.get(id)
    }

    /// Marks the exchange as touched.
    pub(super) fn get_mut(&mut self, id: ExchangeId) -> Option<&mut Exchange<X>> {
        let exchange = self.table.get_mut(id)?;
        if !std::mem::replace(&mut exchange.touched, true) {
            self.touched.push(id);
        }
        Some(exchange)
    }

    /// The application's data for an exchange. It does not concern the engine, so the exchange is
    /// not touched.
    pub(super) fn kept_mut(&mut self, id: ExchangeId) -> Option<&mut X> {
        self.table.get_mut(id).map(|exchange| &mut exchange.kept)
    }

    pub(super) fn remove(&mut self, id: ExchangeId) -> Option<Exchange<X>> {
        let exchange = self.table.remove(id)?;
        self.sums -= exchange.settled;
        Some(exchange)
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (ExchangeId, &Exchange<X>)> {
        self.table.iter()
    }

    pub(super) fn keys_where(&self, matches: impl Fn(&Exchange<X>) -> bool) -> Vec<ExchangeId> {
        self.table.keys_where(matches)
    }

    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// The sums of all queues, as they are now.
    pub(super) fn sums(&self) -> Sums {
        let mut sums = self.sums;
        for exchange in self.touched.iter().filter_map(|id| self.table.get(*id)) {
            sums -= exchange.settled;
            sums += exchange.queue.sums();
        }
        sums
    }

    /// Returns the next touched exchange, and settles it.
    pub(super) fn next_touched(&mut self) -> Option<ExchangeId> {
        while let Some(id) = self.touched.pop() {
            if let Some(exchange) = self.table.get_mut(id) {
                exchange.touched = false;
                self.sums -= exchange.settled;
                exchange.settled = exchange.queue.sums();
                self.sums += exchange.settled;
                return Some(id);
            }
        }
        None
    }

    /// Frees spare memory.
    pub(super) fn shrink(&mut self) {
        self.table.shrink();
        for (_, exchange) in self.table.iter_mut() {
            exchange.queue.shrink();
        }
        self.touched.shrink_to_fit();
    }
}
