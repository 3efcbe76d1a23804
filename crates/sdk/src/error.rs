//! `Error`: why a call gave no result.

use std::error::Error as StdError;
use std::fmt::{self, Write as _};
use std::time::Duration;

use belay_protocol::engine::{By, Clock, Loss, LossKind, Outcome, Sent};
use belay_protocol::jsonrpc::{ErrorObject, RawJson};
use belay_protocol::types::modern::InputRequiredResult;

/// Why a call gave no result.
///
/// It is opaque, and methods tell what happened. A lost connection is never reported as a
/// cancellation, and a peer's error is never mistaken for a local one.
///
/// ```
/// # fn handle(error: belay::Error) {
/// if error.is_lost() && error.safe_to_retry() {
///     // connect again, and call again
/// } else if error.is_timeout() {
///     // the peer was told
/// } else if error.is_cancelled() {
///     // somebody pressed Ctrl-C; never the death of the server
/// }
/// # }
/// ```
pub struct Error(Box<Inner>);

enum Inner {
    Ended(Outcome),
    /// The peer's result could not be decoded, or is not valid for the request.
    BadResult(serde_json::Error),
    /// The parameters could not be encoded as JSON.
    BadParams(serde_json::Error),
    #[cfg(feature = "client")]
    /// A list has more pages or items than allowed.
    ListTooLong(usize, &'static str),
    /// The peer asked for input, and the client did not provide it.
    #[cfg(feature = "client")]
    Unanswered(Outcome, Unanswered),
    /// A transport could not be opened.
    Connect(String, Option<Box<dyn StdError + Send + Sync>>),
}

/// Why a client did not answer a server's input request.
#[cfg(feature = "client")]
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// No handler is registered for this method.
    Nobody(String),
    /// The handler for this method failed.
    Failed(String, ErrorObject),
    /// The server still asks after this many rounds.
    Rounds(u32),
}

/// The kinds of [`Error`]: the ways in which a call can end without a result.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The peer answered with an error.
    Refused,
    /// The peer asked for input, and the client did not provide it.
    InputRequired,
    /// The call was cancelled by its caller, by the peer or by a shutdown.
    Cancelled,
    /// A local deadline passed.
    TimedOut,
    /// The connection, the process or the stream was lost, or could not be opened.
    Lost,
    /// The peer broke the protocol.
    Violated,
    /// A local limit or rule stopped the call. Nothing of it was sent, except the
    /// pages of a list that is too long.
    Rejected,
}

impl Error {
    /// The kind of this error.
    pub fn kind(&self) -> ErrorKind {
        match &*self.0 {
            Inner::Ended(outcome) => match outcome {
                // An answer that ended up as an error is one that could not be used.
                Outcome::Answered(_) | Outcome::Violated(_) => ErrorKind::Violated,
                Outcome::InputRequired(_) => ErrorKind::InputRequired,
                Outcome::Refused(_) => ErrorKind::Refused,
                Outcome::Cancelled { .. } => ErrorKind::Cancelled,
                Outcome::TimedOut { .. } => ErrorKind::TimedOut,
                Outcome::Lost { .. } => ErrorKind::Lost,
                Outcome::Rejected(_) => ErrorKind::Rejected,
            },
            #[cfg(feature = "client")]
            Inner::Unanswered(..) => ErrorKind::InputRequired,
            #[cfg(feature = "client")]
            Inner::ListTooLong(..) => ErrorKind::Rejected,
            Inner::BadResult(_) => ErrorKind::Violated,
            Inner::BadParams(_) => ErrorKind::Rejected,
            Inner::Connect(..) => ErrorKind::Lost,
        }
    }

    /// Whether the connection, the process or the stream was lost, or could not be opened.
    pub fn is_lost(&self) -> bool {
        self.kind() == ErrorKind::Lost
    }

    /// Whether the call was cancelled: by its caller, by the peer, or by a shutdown.
    pub fn is_cancelled(&self) -> bool {
        self.kind() == ErrorKind::Cancelled
    }

    /// Whether a local deadline passed.
    pub fn is_timeout(&self) -> bool {
        self.kind() == ErrorKind::TimedOut
    }

    /// Whether the peer answered with an error.
    pub fn is_refused(&self) -> bool {
        self.kind() == ErrorKind::Refused
    }

    /// The peer's error, if it answered with one.
    pub fn refusal(&self) -> Option<&ErrorObject> {
        match &*self.0 {
            Inner::Ended(Outcome::Refused(error)) => Some(error),
            _ => None,
        }
    }

    /// Who cancelled the call, if it was cancelled.
    pub fn cancelled_by(&self) -> Option<By> {
        match &*self.0 {
            Inner::Ended(Outcome::Cancelled { by, .. }) => Some(*by),
            _ => None,
        }
    }

    /// Which deadline passed, if the call timed out.
    pub fn clock(&self) -> Option<Clock> {
        match &*self.0 {
            Inner::Ended(Outcome::TimedOut { clock, .. }) => Some(*clock),
            _ => None,
        }
    }

    /// How the server's process exited, if it is a child process and its exit lost the call.
    #[cfg(all(feature = "stdio", feature = "client", unix))]
    pub fn exited(&self) -> Option<&crate::client::ProcessExit> {
        match &*self.0 {
            Inner::Ended(Outcome::Lost { cause, .. }) => cause.source()?.downcast_ref(),
            _ => None,
        }
    }

    /// The HTTP status that ended the call, if one did. See also [`http_answer`](Self::http_answer).
    #[cfg(all(feature = "http", feature = "client"))]
    pub fn http_status(&self) -> Option<u16> {
        match &*self.0 {
            Inner::Ended(Outcome::Lost { cause, .. }) => match cause.kind {
                LossKind::HttpStatus(status) => Some(status),
                _ => None,
            },
            _ => None,
        }
    }

    /// The HTTP response that ended the call, if one did.
    #[cfg(all(feature = "http", feature = "client"))]
    pub fn http_answer(&self) -> Option<&crate::http::HttpAnswer> {
        self.causes().find_map(|cause| cause.downcast_ref())
    }

    /// The causes of this error, outermost first, for downcasting. `Display` includes them all, so
    /// `source()` does not repeat them.
    ///
    /// ```
    /// # fn handle(error: belay::Error) {
    /// let refused = error.causes().any(|cause| {
    ///     let io = cause.downcast_ref::<std::io::Error>();
    ///     io.is_some_and(|io| io.kind() == std::io::ErrorKind::ConnectionRefused)
    /// });
    /// # }
    /// ```
    pub fn causes(&self) -> impl Iterator<Item = &(dyn StdError + 'static)> {
        let first: Option<&(dyn StdError + 'static)> = match &*self.0 {
            Inner::Ended(Outcome::Lost { cause, .. }) => Some(cause),
            #[cfg(feature = "client")]
            Inner::Unanswered(_, Unanswered::Failed(_, error)) => Some(error),
            Inner::BadResult(error) | Inner::BadParams(error) => Some(error),
            Inner::Connect(_, source) => match source.as_deref() {
                Some(source) => Some(source),
                None => None,
            },
            _ => None,
        };
        std::iter::successors(first, |&cause| cause.source())
    }

    /// What happened, without its causes. `Display` adds those.
    pub fn summary(&self) -> String {
        struct First<'a>(&'a Error);
        impl fmt::Display for First<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt_first(f)
            }
        }
        First(self).to_string()
    }

    /// Whether the request was sent. `None` if the peer has answered.
    pub fn sent(&self) -> Option<Sent> {
        match &*self.0 {
            Inner::Ended(outcome) => outcome.sent(),
            Inner::BadParams(_) | Inner::Connect(..) => Some(Sent::Never),
            #[cfg(feature = "client")]
            Inner::Unanswered(..) => None,
            #[cfg(feature = "client")]
            Inner::ListTooLong(..) => Some(Sent::Never),
            Inner::BadResult(_) => None,
        }
    }

    /// Whether nothing was sent, so that repeating the call cannot repeat its effects.
    pub fn safe_to_retry(&self) -> bool {
        self.sent() == Some(Sent::Never)
    }

    /// The call's outcome, if it had begun.
    pub fn outcome(&self) -> Option<&Outcome> {
        match &*self.0 {
            Inner::Ended(outcome) => Some(outcome),
            #[cfg(feature = "client")]
            Inner::Unanswered(outcome, _) => Some(outcome),
            _ => None,
        }
    }

    /// What the peer asks for, if the call ended because of that.
    pub fn input_required(&self) -> Option<InputRequiredResult> {
        match self.outcome()? {
            Outcome::InputRequired(asked) => asked.decode().ok(),
            _ => None,
        }
    }

    #[cfg(feature = "client")]
    pub(crate) fn list_too_long(most: usize, of: &'static str) -> Self {
        Self(Box::new(Inner::ListTooLong(most, of)))
    }

    #[cfg(feature = "client")]
    pub(crate) fn unanswered(asked: RawJson, why: Unanswered) -> Self {
        Self(Box::new(Inner::Unanswered(
            Outcome::InputRequired(asked),
            why,
        )))
    }

    pub(crate) fn bad_result(error: serde_json::Error) -> Self {
        Self(Box::new(Inner::BadResult(error)))
    }

    pub(crate) fn bad_params(error: serde_json::Error) -> Self {
        Self(Box::new(Inner::BadParams(error)))
    }

    /// A transport could not be opened.
    pub(crate) fn connect(
        what: impl Into<String>,
        source: impl Into<Option<Box<dyn StdError + Send + Sync>>>,
    ) -> Self {
        Self(Box::new(Inner::Connect(what.into(), source.into())))
    }
}

impl From<Outcome> for Error {
    fn from(outcome: Outcome) -> Self {
        Self(Box::new(Inner::Ended(outcome)))
    }
}

/// What happened, with all its causes: an exit status and the last words of a process, an HTTP status,
/// a refused connection. So one line is enough to act on. It contains text of the peer, such as the
/// start of an HTTP body, with control characters escaped.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_first(f)?;
        for cause in self.causes() {
            // The HTTP answer below it says the same, and more.
            let is_status = cause.downcast_ref::<Loss>().is_some_and(|loss| {
                matches!(loss.kind, LossKind::HttpStatus(_)) && loss.source.is_some()
            });
            if !is_status {
                f.write_str(": ")?;
                write!(Printable(f), "{cause}")?;
            }
        }
        Ok(())
    }
}

impl Error {
    /// What happened, without its causes.
    fn fmt_first(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Inner::Ended(outcome) => match outcome {
                Outcome::Answered(_) => f.write_str("the answer could not be used"),
                Outcome::InputRequired(_) => f.write_str("the peer needs input first"),
                Outcome::Refused(error) => write!(f, "refused: {error}"),
                Outcome::Cancelled { by, reason, .. } => {
                    let who = match by {
                        By::Caller => "the caller",
                        By::Peer => "the peer",
                        By::Shutdown => "a shutdown",
                    };
                    write!(f, "cancelled by {who}")?;
                    match reason {
                        Some(reason) => write!(f, ": {reason}"),
                        None => Ok(()),
                    }
                }
                Outcome::TimedOut { clock, after, .. } => {
                    let after =
                        Duration::from_millis(after.as_millis().try_into().unwrap_or(u64::MAX));
                    match clock {
                        Clock::Idle => write!(f, "timed out: no progress for {after:?}"),
                        Clock::Total => write!(f, "timed out after {after:?}"),
                    }
                }
                Outcome::Lost { sent, .. } => {
                    let sent = match sent {
                        Sent::Never => "never sent",
                        Sent::Maybe => "sent, and may have been received",
                        Sent::Yes => "received",
                    };
                    write!(f, "connection lost (the request was {sent})")
                }
                Outcome::Violated(violation) => {
                    write!(f, "the peer broke the protocol: {violation}")
                }
                Outcome::Rejected(rejection) => write!(f, "rejected: {rejection}"),
            },
            #[cfg(feature = "client")]
            Inner::ListTooLong(most, of) => {
                write!(f, "rejected: a list of more than {most} {of}")
            }
            #[cfg(feature = "client")]
            Inner::Unanswered(_, why) => {
                f.write_str("the peer needs input first: ")?;
                match why {
                    Unanswered::Nobody(method) => write!(f, "nobody here answers `{method}`"),
                    Unanswered::Failed(method, _) => write!(f, "`{method}` failed here"),
                    Unanswered::Rounds(count) => write!(f, "{count} rounds were not enough"),
                }
            }
            Inner::BadResult(_) => f.write_str("the peer's result does not fit"),
            Inner::BadParams(_) => f.write_str("the parameters cannot be written as JSON"),
            Inner::Connect(what, _) => f.write_str(what),
        }
    }
}

/// Writes control characters as escapes. The body of an HTTP response and the last line of a child's
/// stderr are the peer's text: they must not move the cursor of a terminal, nor add a line to a log.
struct Printable<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl fmt::Write for Printable<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for part in text.split_inclusive(char::is_control) {
            match part.chars().next_back().filter(|last| last.is_control()) {
                Some(last) => {
                    self.0.write_str(&part[..part.len() - last.len_utf8()])?;
                    write!(self.0, "{}", last.escape_default())?;
                }
                None => self.0.write_str(part)?,
            }
        }
        Ok(())
    }
}

/// `Display` includes all causes, so there is no `source()`: see [`Error::causes`].
impl StdError for Error {}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({self})")
    }
}
