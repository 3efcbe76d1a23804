//! Results to stdout, everything else to stderr.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use belay::outcome::Sent;
use belay::{Error, ErrorKind};
use serde_json::json;
use tokio::sync::oneshot;

use crate::exit::{self, Code};

/// Prints a line to stdout. A closed pipe is not an error: the reader has read enough.
pub(crate) fn print(line: &str) -> Code {
    print_on(line).err().unwrap_or(exit::OK)
}

/// The same on a thread, so that a signal can interrupt it while the reader does not read.
pub(crate) async fn put(line: String) -> Code {
    put_on(line).await.err().unwrap_or(exit::OK)
}

/// The same, for a caller that prints more lines. `Err` with the exit code if the pipe is closed.
pub(crate) async fn put_on(line: String) -> Result<(), Code> {
    on_thread(move || print_on(&line)).await
}

/// Writes bytes to stdout unchanged.
pub(crate) async fn put_bytes(bytes: Vec<u8>) -> Result<(), Code> {
    on_thread(move || written(|stdout| stdout.write_all(&bytes))).await
}

/// Runs a write on a thread of its own. A stuck write does not keep the process from exiting.
async fn on_thread(print: impl FnOnce() -> Result<(), Code> + Send + 'static) -> Result<(), Code> {
    let (done, printed) = oneshot::channel();
    std::thread::spawn(move || {
        let _ = done.send(print());
    });
    printed.await.unwrap_or(Err(exit::USAGE))
}

fn print_on(line: &str) -> Result<(), Code> {
    let on_terminal = io::stdout().is_terminal();
    written(|stdout| writeln!(stdout, "{}", printable(line, on_terminal)))
}

fn written(write: impl FnOnce(&mut io::StdoutLock<'_>) -> io::Result<()>) -> Result<(), Code> {
    let mut stdout = io::stdout().lock();
    let written = write(&mut stdout).and_then(|()| stdout.flush());
    written.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => exit::OK,
        _ => {
            tell(&format!("belay: cannot write to stdout: {error}"));
            exit::USAGE
        }
    })
}

/// Prints a line to stderr. Errors are ignored: stderr may be closed.
pub(crate) fn tell(line: &str) {
    let mut stderr = io::stderr().lock();
    let line = printable(line, stderr.is_terminal());
    let _ = writeln!(stderr, "{line}");
}

/// The same without blocking: prints nothing and returns false if stderr is a full pipe. A line
/// must be shorter than what a pipe takes at once (4 KiB).
pub(crate) fn tell_if_read(line: &str) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stderr = io::stderr();
    let mut ready = [PollFd::new(&stderr, PollFlags::OUT)];
    let is_ready = poll(&mut ready, Some(&Timespec::default())).is_ok_and(|count| count > 0);
    if is_ready {
        tell(line);
    }
    is_ready
}

/// Replaces control characters (terminal escape sequences), invisible characters and changes of the
/// writing direction in a server's text, if it is printed to a terminal.
pub(crate) fn printable(text: &str, on_terminal: bool) -> Cow<'_, str> {
    match on_terminal && text.contains(is_hidden) {
        true => text.replace(is_hidden, "\u{fffd}").into(),
        false => text.into(),
    }
}

fn is_hidden(letter: char) -> bool {
    match letter {
        '\n' | '\t' => false,
        // Bidirectional controls and marks.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' => true,
        '\u{2066}'..='\u{2069}' => true,
        // Zero width, line separators, tag characters.
        '\u{200b}' | '\u{2060}' | '\u{feff}' | '\u{2028}' | '\u{2029}' => true,
        '\u{e0000}'..='\u{e007f}' => true,
        letter => letter.is_control(),
    }
}

/// Escapes a foreign name for the middle of a line, so that it cannot end the line or forge another
/// one. Line breaks and hidden characters are escaped as in Rust, as in `{name:?}`.
pub(crate) fn escaped(name: &str) -> Cow<'_, str> {
    let is_odd = |letter: char| matches!(letter, '\n' | '\t') || is_hidden(letter);
    if !name.contains(is_odd) {
        return name.into();
    }
    let mut shown = String::with_capacity(name.len());
    for letter in name.chars() {
        match is_odd(letter) {
            true => shown.extend(letter.escape_default()),
            false => shown.push(letter),
        }
    }
    shown.into()
}

/// Joins the lines of a text into one.
pub(crate) fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    escaped(&words.join(" ")).into_owned()
}

/// The first line of a description.
pub(crate) fn first_line(description: &str) -> String {
    escaped(description.lines().next().unwrap_or_default()).into_owned()
}

/// Indents the lines of a message after the first, so that a peer cannot forge lines of belay.
fn indented(message: &str) -> String {
    let lines: Vec<Cow<'_, str>> = message.lines().map(escaped).collect();
    lines.join("\n    ")
}

/// Two aligned columns. The first is at most 48 characters wide.
pub(crate) fn columns<'a>(rows: impl Iterator<Item = (Cow<'a, str>, String)>) -> String {
    let rows: Vec<(Cow<'_, str>, String)> = rows.collect();
    let width = rows.iter().map(|(first, _)| first.chars().count()).max();
    let width = width.unwrap_or(0).min(48);
    let lines = rows
        .iter()
        .map(|(first, second)| format!("{first:<width$}  {second}").trim_end().to_owned());
    lines.collect::<Vec<_>>().join("\n")
}

/// Reports an error with its chain of causes and a hint, and returns its exit code.
pub(crate) fn fail(error: &Error, as_json: bool) -> Code {
    fail_to("", error, as_json)
}

/// The same, with the action that failed: `cannot {what}: …`.
pub(crate) fn fail_to(what: &str, error: &Error, as_json: bool) -> Code {
    match as_json {
        true => tell(&failure(error).to_string()),
        false => {
            match what {
                "" => tell(&format!("belay: {}", indented(&error.to_string()))),
                what => tell(&format!(
                    "belay: cannot {what}: {}",
                    indented(&error.to_string())
                )),
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

/// Whether a server does not implement the method.
pub(crate) fn is_unknown(error: &Error) -> bool {
    let code = error.refusal().map(|refusal| refusal.code);
    code == Some(belay::types::error_code::METHOD_NOT_FOUND)
}

/// Reports that a timeout of the command line has passed, and what was waited for.
pub(crate) fn out_of_time(after: Duration, what: &str, as_json: bool) -> Code {
    let message = format!("timed out after {after:?}: {what}");
    end("timed_out", &message, as_json);
    exit::TIMED_OUT
}

/// Reports an end that is not an SDK error: a usage error, a local timeout, an interruption.
pub(crate) fn end(end: &str, message: &str, as_json: bool) {
    match as_json {
        true => {
            let error = json!({ "end": end, "message": message, "cause": null, "sent": null });
            tell(&json!({ "error": error }).to_string());
        }
        false => tell(&format!("belay: {message}")),
    }
}

/// Reports something that does not end the command.
pub(crate) fn note(message: &str, as_json: bool) {
    match as_json {
        true => tell(&json!({ "note": message }).to_string()),
        false => tell(&format!("belay: {message}")),
    }
}

/// Prints the last lines that a dead server wrote to stderr.
fn tell_stderr(stderr: &str) {
    let lines: Vec<&str> = stderr.lines().collect();
    let tail = &lines[lines.len().saturating_sub(10)..];
    if tail.len() > 1 {
        tell("  its stderr ended with:");
        for line in tail {
            tell(&format!("    {}", escaped(line)));
        }
    }
}

/// An error as JSON, for one line on stderr.
fn failure(error: &Error) -> serde_json::Value {
    let causes: Vec<String> = error.causes().map(ToString::to_string).collect();
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
    json!({ "error": { "end": end, "message": error.summary(), "cause": cause, "sent": sent } })
}

/// Reports a mistake on the command line.
pub(crate) fn usage(problem: &str, as_json: bool) -> Code {
    end("usage", problem, as_json);
    exit::USAGE
}

#[cfg(test)]
mod tests {
    use super::{escaped, one_line, printable};

    #[test]
    fn a_name_stays_within_its_line() {
        assert_eq!(escaped("echo_1.é"), "echo_1.é");
        assert_eq!(
            escaped("a\nb\r\u{85}\u{2028}\t\u{1b}"),
            r"a\nb\r\u{85}\u{2028}\t\u{1b}"
        );
        assert_eq!(one_line("a\n b\tc\u{202e}"), r"a b c\u{202e}");
    }

    #[test]
    fn a_terminal_is_not_commanded_by_a_server() {
        let text = "\u{1b}[2Jgone\tor\nnot\u{9b}";
        let shown = "\u{fffd}[2Jgone\tor\nnot\u{fffd}";
        assert_eq!(printable(text, true), shown);
        assert_eq!(printable(text, false), text, "a file gets what was said");
        let turned = "\u{202e}dab\u{2066}\u{200b}";
        assert_eq!(printable(turned, true), "\u{fffd}dab\u{fffd}\u{fffd}");
        let fine = "é 👩‍👩‍👧 سلام می‌خواهم";
        assert_eq!(printable(fine, true), fine);
    }
}
