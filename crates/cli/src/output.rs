//! Results to stdout, everything else to stderr.

use std::error::Error as _;
use std::io::{self, Write};

use belay::engine::Sent;
use belay::{Error, ErrorKind, Exited};
use serde_json::json;

use crate::exit::{self, Code};

/// Prints a line to stdout. A closed pipe is not an error: whoever read it has read enough.
pub(crate) fn print(line: &str) -> Code {
    let mut stdout = io::stdout().lock();
    match writeln!(stdout, "{line}").and_then(|()| stdout.flush()) {
        Ok(()) => exit::OK,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => exit::OK,
        Err(error) => {
            eprintln!("belay: stdout: {error}");
            exit::USAGE
        }
    }
}

/// Tells a failure with its whole chain of causes, and what to try.
pub(crate) fn fail(error: &Error, as_json: bool) -> Code {
    match as_json {
        true => eprintln!("{}", failure(error)),
        false => {
            eprintln!("belay: {error}");
            let mut cause = error.source();
            while let Some(error) = cause {
                eprintln!("  because: {error}");
                if let Some(exited) = error.downcast_ref::<Exited>() {
                    tell_stderr(exited.stderr());
                }
                cause = error.source();
            }
        }
    }
    Code::of(error)
}

/// The last words of a server that is gone.
fn tell_stderr(stderr: &str) {
    let lines: Vec<&str> = stderr.lines().collect();
    let tail = &lines[lines.len().saturating_sub(10)..];
    if tail.len() > 1 {
        eprintln!("  its stderr ended with:");
        for line in tail {
            eprintln!("    {line}");
        }
    }
}

/// A failure as one line of JSON.
fn failure(error: &Error) -> serde_json::Value {
    let mut causes = Vec::new();
    let mut cause = error.source();
    while let Some(error) = cause {
        causes.push(error.to_string());
        cause = error.source();
    }
    let cause = match causes.is_empty() {
        true => None,
        false => Some(causes.join(": ")),
    };
    let sent = error.sent().map(|sent| match sent {
        Sent::Never => "never",
        Sent::Maybe => "maybe",
        Sent::Yes => "yes",
    });
    let end = match error.kind() {
        ErrorKind::Refused => "refused",
        ErrorKind::InputRequired => "input_required",
        ErrorKind::Cancelled => "cancelled",
        ErrorKind::TimedOut => "timed_out",
        ErrorKind::Lost => "lost",
        ErrorKind::Violated => "violated",
        _ => "rejected",
    };
    json!({ "error": { "end": end, "message": error.to_string(), "cause": cause, "sent": sent } })
}

/// Tells a mistake on the command line.
pub(crate) fn usage(problem: &str, as_json: bool) -> Code {
    match as_json {
        true => {
            let error = json!({ "error": { "end": "usage", "message": problem } });
            eprintln!("{error}");
        }
        false => eprintln!("belay: {problem}"),
    }
    exit::USAGE
}
