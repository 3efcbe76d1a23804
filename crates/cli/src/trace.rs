//! What goes over the wire, shown as curl shows it, or kept in a file.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use belay::Passed;
use serde_json::json;
use serde_json::value::RawValue;

use crate::output;

pub(crate) struct Trace {
    shown: bool,
    file: Option<Mutex<File>>,
    since: Instant,
}

impl Trace {
    /// `None` if nobody wants to see anything.
    pub(crate) fn open(shown: bool, file: Option<&Path>) -> Result<Option<Self>, String> {
        let file = match file {
            None => None,
            Some(path) => match File::create(path) {
                Ok(file) => Some(Mutex::new(file)),
                Err(error) => return Err(format!("--trace-file {}: {error}", path.display())),
            },
        };
        let trace = Self {
            since: Instant::now(),
            shown,
            file,
        };
        Ok(Some(trace).filter(|trace| trace.shown || trace.file.is_some()))
    }

    pub(crate) fn frame(&self, way: Passed, frame: &[u8]) {
        let text = String::from_utf8_lossy(frame);
        if self.shown {
            let mark = match way {
                Passed::Out => '>',
                Passed::In => '<',
            };
            output::tell(&format!("{mark} {text}"));
        }
        if let Some(file) = &self.file {
            let way = match way {
                Passed::Out => "out",
                Passed::In => "in",
            };
            let millis = self.since.elapsed().as_secs_f64() * 1e3;
            // What is no JSON is kept as a text.
            let frame = match serde_json::from_str::<&RawValue>(&text) {
                Ok(frame) => json!({ "ms": millis, "way": way, "frame": frame }),
                Err(_) => json!({ "ms": millis, "way": way, "text": text }),
            };
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = writeln!(file, "{frame}");
        }
    }
}
