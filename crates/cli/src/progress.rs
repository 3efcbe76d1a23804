//! Progress of a call: a progress bar on a terminal, lines elsewhere.

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use belay::types::ProgressParams;

use crate::output;

const WIDTH: usize = 30;

/// The progress bar on the terminal, if one is shown.
#[derive(Clone)]
pub(crate) struct Bar(Arc<Mutex<Screen>>);

struct Screen {
    shown: bool,
    /// Progress is hidden: a form is open, or the output is JSON.
    quiet: bool,
}

impl Bar {
    pub(crate) fn new(quiet: bool) -> Self {
        let shown = false;
        Self(Arc::new(Mutex::new(Screen { shown, quiet })))
    }

    pub(crate) fn tell(&self, progress: &ProgressParams) {
        let mut screen = self.lock();
        if screen.quiet {
            return;
        }
        let message = progress.message.as_deref().unwrap_or_default();
        let counted = match progress.total {
            Some(total) => format!("{} of {total}", progress.progress),
            None => progress.progress.to_string(),
        };
        let line = output::one_line(&format!("{counted} {message}"));
        let mut stderr = io::stderr().lock();
        if !stderr.is_terminal() {
            drop(stderr);
            return output::tell(&line);
        }
        let total = progress.total.map(|total| total.0);
        let bar = total.map_or(String::new(), |total| drawn(progress.progress.0 / total));
        // A longer line would wrap, and only its last line would be erased.
        let fits: String = format!("{bar}{line}").chars().take(columns()).collect();
        // Return to the start of the line and erase it.
        let _ = write!(stderr, "\r\x1b[2K{fits}");
        let _ = stderr.flush();
        screen.shown = true;
    }

    /// Erases the bar.
    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    /// Erases the bar and hides progress while `quiet` is set.
    pub(crate) fn pause(&self, quiet: bool) {
        let mut screen = self.lock();
        screen.clear();
        screen.quiet = quiet;
    }

    fn lock(&self) -> MutexGuard<'_, Screen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Screen {
    fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            let mut stderr = io::stderr().lock();
            let _ = write!(stderr, "\r\x1b[2K");
            let _ = stderr.flush();
        }
    }
}

/// Width of the terminal minus one column.
fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stderr());
    let columns = size.map_or(0, |size| usize::from(size.ws_col));
    match columns {
        0 => 79,
        columns => columns - 1,
    }
}

fn drawn(part: f64) -> String {
    let part = part.clamp(0.0, 1.0);
    // NaN (0 of 0) becomes 0 by the cast.
    let full = (part * WIDTH as f64) as usize;
    format!("[{}{}] ", "#".repeat(full), " ".repeat(WIDTH - full))
}

#[cfg(test)]
mod tests {
    use super::drawn;

    #[test]
    fn a_bar_is_never_longer_than_it_is() {
        for part in [-1.0, 0.0, 0.5, 1.0, 7.0, f64::NAN, f64::INFINITY] {
            assert_eq!(drawn(part).len(), 33, "{part}");
        }
        assert!(drawn(0.5).starts_with("[###############  "));
    }
}
