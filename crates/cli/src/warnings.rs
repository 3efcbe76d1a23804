//! A tracing subscriber for `belay serve`: prints warnings and errors of the SDK to stderr.
//!
//! A peer can cause warnings, so they are rate-limited: within a second each line is shown once,
//! and at most [`LINES`] different lines. Suppressed lines are counted, and the count is printed
//! before the next line that is shown.

use std::fmt::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::output;

const WINDOW: Duration = Duration::from_secs(1);
/// Maximum number of different lines within a second.
const LINES: usize = 10;
/// Maximum length of a line in bytes. A pipe that is ready for writing takes it at once.
const LENGTH: usize = 1024;

/// Installs the subscriber.
pub(crate) fn show() {
    let warnings = Warnings(Mutex::new(Recent::new(Instant::now())));
    // An error means that another subscriber is installed, which then gets the events.
    let _ = tracing::subscriber::set_global_default(warnings);
}

struct Warnings(Mutex<Recent>);

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= Level::WARN
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::WARN)
    }

    fn event(&self, event: &Event<'_>) {
        let line = line(event);
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for line in recent.shown(line, Instant::now()) {
            if !output::tell_if_read(&line) {
                recent.missed += 1;
            }
        }
    }

    // Spans are not shown, so they can share one id.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// `belay: warning: what happened (field: value, …)`
fn line(event: &Event<'_>) -> String {
    let mut fields = Fields::default();
    event.record(&mut fields);
    let level = match *event.metadata().level() {
        Level::ERROR => "error",
        _ => "warning",
    };
    let mut line = format!("belay: {level}: {}", fields.message);
    if !fields.others.is_empty() {
        let _ = write!(line, " ({})", fields.others);
    }
    let line = output::escaped(&line);
    let mut ends = (0..=line.len().min(LENGTH)).rev();
    let end = ends.find(|end| line.is_char_boundary(*end)).unwrap_or(0);
    line[..end].to_owned()
}

#[derive(Default)]
struct Fields {
    message: String,
    others: String,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            let _ = write!(self.message, "{value:?}");
            return;
        }
        let comma = if self.others.is_empty() { "" } else { ", " };
        let _ = write!(self.others, "{comma}{}: {value:?}", field.name());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }
}

/// The lines of the last second.
struct Recent {
    since: Instant,
    lines: Vec<String>,
    /// Number of lines that were suppressed or could not be written.
    missed: u64,
}

impl Recent {
    fn new(now: Instant) -> Self {
        Self {
            since: now,
            lines: Vec::new(),
            missed: 0,
        }
    }

    /// Takes a new line and returns the lines to print now.
    fn shown(&mut self, line: String, now: Instant) -> Vec<String> {
        if now.saturating_duration_since(self.since) >= WINDOW {
            self.since = now;
            self.lines.clear();
        }
        if self.lines.len() >= LINES || self.lines.contains(&line) {
            self.missed += 1;
            return Vec::new();
        }
        self.lines.push(line.clone());
        let missed = std::mem::take(&mut self.missed);
        let told = (missed > 0).then(|| format!("belay: warnings that were not shown: {missed}"));
        told.into_iter().chain([line]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounded_a_line_is_shown_once_in_a_second_and_the_rest_is_counted() {
        let start = Instant::now();
        let mut recent = Recent::new(start);
        let mut shown = |line: &str, millis| {
            let now = start + Duration::from_millis(millis);
            recent.shown(line.to_owned(), now)
        };
        assert_eq!(shown("a", 0), ["a"]);
        for _ in 0..1000 {
            assert_eq!(shown("a", 500), [""; 0]);
        }
        assert_eq!(
            shown("b", 999),
            ["belay: warnings that were not shown: 1000", "b"]
        );
        assert_eq!(shown("a", 999), [""; 0]);
        assert_eq!(
            shown("a", 1000),
            ["belay: warnings that were not shown: 1", "a"]
        );
        // Different lines are bounded, too.
        let flood = (0..1000).flat_map(|n| shown(&format!("line {n}"), 1500));
        assert_eq!(flood.count(), LINES - 1);
        assert_eq!(shown("c", 2000).len(), 2);
    }

    #[test]
    fn an_event_is_one_plain_line_of_bounded_length() {
        static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());
        struct Kept;
        impl Subscriber for Kept {
            fn event(&self, event: &Event<'_>) {
                LINES.lock().unwrap().push(line(event));
            }
            fn enabled(&self, _: &Metadata<'_>) -> bool {
                true
            }
            fn new_span(&self, _: &Attributes<'_>) -> Id {
                Id::from_u64(1)
            }
            fn record(&self, _: &Id, _: &Record<'_>) {}
            fn record_follows_from(&self, _: &Id, _: &Id) {}
            fn enter(&self, _: &Id) {}
            fn exit(&self, _: &Id) {}
        }
        tracing::subscriber::with_default(Kept, || {
            tracing::warn!(error = %"a\nb", tool = "t\u{1b}", n = 7, "it went wrong");
            tracing::error!("x");
            tracing::error!("{}", "y".repeat(5000));
        });
        let lines = LINES.lock().unwrap();
        let first = r"belay: warning: it went wrong (error: a\nb, tool: t\u{1b}, n: 7)";
        assert_eq!(lines[..2], [first, "belay: error: x"]);
        assert_eq!(lines[2].len(), LENGTH);
    }
}
