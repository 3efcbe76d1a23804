//! Metrics in the text format of Prometheus.

use std::fmt::{self, Write};

use belay_protocol::engine::{Book, End};

use super::service::HttpService;
use crate::driver::{BUCKETS, CAUSES, Pool};

impl HttpService {
    /// The ledger and the gauges of this server, in the text format of Prometheus.
    pub fn metrics(&self) -> String {
        let mut page = Page(String::new());
        match page.write(self) {
            Ok(()) => page.0,
            // Writing to a `String` cannot fail.
            Err(fmt::Error) => String::new(),
        }
    }
}

struct Page(String);

impl Page {
    fn write(&mut self, service: &HttpService) -> fmt::Result {
        let ledger = service.ledger();
        self.book("requests", "Requests of clients", &ledger.requests)?;
        self.book("calls", "Requests to clients", &ledger.calls)?;
        for (name, help, value) in [
            (
                "late_answers",
                "Answers that nobody waited for",
                ledger.late_answers,
            ),
            (
                "stray_cancels",
                "Cancels that named nothing",
                ledger.stray_cancels,
            ),
            (
                "silenced",
                "What handlers said after their end",
                ledger.silenced,
            ),
            ("malformed", "Messages that were none", ledger.malformed),
        ] {
            self.single(&format!("{name}_total"), "counter", help, value)?;
        }
        let shared = service.shared();
        let stats = shared.connections.stats();
        self.head(
            "handler_stops_total",
            "counter",
            "Handlers that were told to stop",
        )?;
        for (cause, count) in CAUSES.iter().zip(stats.stops()) {
            writeln!(
                self.0,
                "belay_handler_stops_total{{cause=\"{cause}\"}} {count}"
            )?;
        }
        self.took(stats.took())?;
        for (name, help, value) in [
            ("handlers", "Handlers that exist", service.handlers()),
            (
                "handlers_overrun",
                "Handlers that were dropped and are still there",
                stats.overrun(),
            ),
            (
                "sessions",
                "Legacy sessions that are open",
                service.sessions(),
            ),
            ("streams", "Streams that are open", service.streams()),
            (
                "kept_bytes",
                "Bytes that clients make it keep, of those that are budgeted",
                shared.peers.pools().used(Pool::Bytes),
            ),
        ] {
            self.single(name, "gauge", help, value as u64)?;
        }
        Ok(())
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) -> fmt::Result {
        writeln!(self.0, "# HELP belay_{name} {help}.")?;
        writeln!(self.0, "# TYPE belay_{name} {kind}")
    }

    fn single(&mut self, name: &str, kind: &str, help: &str, value: u64) -> fmt::Result {
        self.head(name, kind, help)?;
        writeln!(self.0, "belay_{name} {value}")
    }

    /// The counters of one direction. `started = ended + in flight` holds at every
    /// read (**ledger**).
    fn book(&mut self, name: &str, help: &str, book: &Book) -> fmt::Result {
        let started = format!("{name}_started_total");
        self.single(
            &started,
            "counter",
            &format!("{help} that began"),
            book.started(),
        )?;
        let ended = format!("{name}_ended_total");
        self.head(
            &ended,
            "counter",
            &format!("{help} that ended, by their end"),
        )?;
        for end in End::ALL {
            let count = book.ended_as(end);
            writeln!(self.0, "belay_{ended}{{end=\"{}\"}} {count}", end.as_str())?;
        }
        let running = format!("{name}_in_flight");
        self.single(
            &running,
            "gauge",
            &format!("{help} that have not ended"),
            book.in_flight(),
        )
    }

    fn took(
        &mut self,
        (took, in_all): ([u64; BUCKETS.len() + 1], std::time::Duration),
    ) -> fmt::Result {
        let name = "cancel_to_stop_seconds";
        self.head(
            name,
            "histogram",
            "From telling a handler to stop until it was gone",
        )?;
        let mut count = 0;
        for (bound, bucket) in BUCKETS.iter().zip(took) {
            count += bucket;
            let bound = *bound as f64 / 1e3;
            writeln!(self.0, "belay_{name}_bucket{{le=\"{bound}\"}} {count}")?;
        }
        count += took[BUCKETS.len()];
        writeln!(self.0, "belay_{name}_bucket{{le=\"+Inf\"}} {count}")?;
        writeln!(self.0, "belay_{name}_sum {}", in_all.as_secs_f64())?;
        writeln!(self.0, "belay_{name}_count {count}")
    }
}
