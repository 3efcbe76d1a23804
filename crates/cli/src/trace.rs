//! Wire trace: protocol messages on stderr with `>` and `<` as in curl, or in a file.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use belay::transport::Direction;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::output;

pub(crate) struct Trace {
    shown: bool,
    file: Option<Mutex<File>>,
    since: Instant,
}

impl Trace {
    /// `None` if neither `--verbose` nor `--trace-file` was given.
    pub(crate) fn open(shown: bool, file: Option<&Path>) -> Result<Option<Self>, String> {
        let file = match file {
            None => None,
            Some(path) => match create(path) {
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

    pub(crate) fn frame(&self, way: Direction, frame: &[u8]) {
        let text = String::from_utf8_lossy(frame);
        if self.shown {
            let mark = match way {
                Direction::Out => '>',
                Direction::In => '<',
            };
            output::tell(&format!("{mark} {}", output::escaped(&text)));
        }
        if let Some(file) = &self.file {
            let way = match way {
                Direction::Out => "out",
                Direction::In => "in",
            };
            let ms = self.since.elapsed().as_secs_f64() * 1e3;
            let raw = serde_json::from_str(&text).ok();
            let line = Line {
                ms,
                way,
                // A frame that is not JSON is written as a string.
                text: raw.is_none().then_some(&*text),
                frame: raw,
            };
            let line = serde_json::to_string(&line).unwrap_or_default();
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = writeln!(file, "{line}");
        }
    }
}

/// One line of the trace file. The frame is written unchanged.
#[derive(Serialize)]
struct Line<'a> {
    ms: f64,
    way: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    frame: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
}

/// Creates the file with mode 0600, because messages may contain secrets.
fn create(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = File::options();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path)
}
