//! Results to stdout, everything else to stderr.

use std::borrow::Cow;
use std::error::Error as _;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use belay::engine::Sent;
use belay::{Error, ErrorKind};
use serde_json::json;

use crate::exit::{self, Code};

/// Prints a line to stdout. A closed pipe is not an error: whoever read it has read enough.
pub(crate) fn print(line: &str) -> Code {
    print_on(line).err().unwrap_or(exit::OK)
}

/// The same, for whoever has more to print. `Err` if nobody reads on.
pub(crate) fn print_on(line: &str) -> Result<(), Code> {
    let mut stdout = io::stdout().lock();
    let line = printable(line, stdout.is_terminal());
    let printed = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
    printed.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => exit::OK,
        _ => {
            tell(&format!("belay: stdout: {error}"));
            exit::USAGE
        }
    })
}

/// Prints a line to stderr. If that is closed, nobody wants to know.
pub(crate) fn tell(line: &str) {
    let mut stderr = io::stderr().lock();
    let line = printable(line, stderr.is_terminal());
    let _ = writeln!(stderr, "{line}");
}

/// What a server says may hold commands for a terminal. They are shown, not obeyed.
pub(crate) fn printable(text: &str, on_terminal: bool) -> Cow<'_, str> {
    let command = |c: char| c.is_control() && c != '\n' && c != '\t';
    match on_terminal && text.contains(command) {
        true => text.replace(command, "\u{fffd}").into(),
        false => text.into(),
    }
}

/// Two columns, the first as wide as it must be.
pub(crate) fn columns<'a>(rows: impl Iterator<Item = (&'a str, String)>) -> String {
    let rows: Vec<(&str, String)> = rows.collect();
    let width = rows.iter().map(|(first, _)| first.chars().count()).max();
    let width = width.unwrap_or(0).min(48);
    let lines = rows
        .iter()
        .map(|(first, second)| format!("{first:<width$}  {second}").trim_end().to_owned());
    lines.collect::<Vec<_>>().join("\n")
}

/// Tells a failure with its whole chain of causes, and what to try.
pub(crate) fn fail(error: &Error, as_json: bool) -> Code {
    fail_to("", error, as_json)
}

/// The same, with what could not be done.
pub(crate) fn fail_to(what: &str, error: &Error, as_json: bool) -> Code {
    match as_json {
        true => tell(&failure(error).to_string()),
        false => {
            match what {
                "" => tell(&format!("belay: {error}")),
                what => tell(&format!("belay: cannot {what}: {error}")),
            }
            let mut cause = error.source();
            while let Some(error) = cause {
                tell(&format!("  because: {error}"));
                cause = error.source();
            }
            if let Some(exited) = error.exited() {
                tell_stderr(exited.stderr());
            }
            if exit::is_auth(error) {
                tell("  try: -H 'Authorization: Bearer …'");
            }
        }
    }
    Code::of(error)
}

/// Tells that the time given on the command line is over, and what for.
pub(crate) fn out_of_time(after: Duration, what: &str, as_json: bool) -> Code {
    let message = format!("timed out after {after:?}: {what}");
    end("timed_out", &message, as_json);
    exit::TIMED_OUT
}

/// Tells an end that is no error of a call.
pub(crate) fn end(end: &str, message: &str, as_json: bool) {
    match as_json {
        true => {
            let error = json!({ "end": end, "message": message, "cause": null, "sent": null });
            tell(&json!({ "error": error }).to_string());
        }
        false => tell(&format!("belay: {message}")),
    }
}

/// The last words of a server that is gone.
fn tell_stderr(stderr: &str) {
    let lines: Vec<&str> = stderr.lines().collect();
    let tail = &lines[lines.len().saturating_sub(10)..];
    if tail.len() > 1 {
        tell("  its stderr ended with:");
        for line in tail {
            tell(&format!("    {line}"));
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
        ErrorKind::Lost if exit::is_auth(error) => "auth",
        ErrorKind::Lost => "lost",
        ErrorKind::Violated => "violated",
        _ => "rejected",
    };
    json!({ "error": { "end": end, "message": error.to_string(), "cause": cause, "sent": sent } })
}

/// Tells a mistake on the command line.
pub(crate) fn usage(problem: &str, as_json: bool) -> Code {
    end("usage", problem, as_json);
    exit::USAGE
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn a_terminal_is_not_commanded_by_a_server() {
        let text = "\u{1b}[2Jgone\tor\nnot\u{9b}";
        let shown = "\u{fffd}[2Jgone\tor\nnot\u{fffd}";
        assert_eq!(printable(text, true), shown);
        assert_eq!(printable(text, false), text, "a file gets what was said");
    }
}
