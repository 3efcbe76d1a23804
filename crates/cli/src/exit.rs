//! All exit codes and their meanings, one for each end of a call.

use std::process::ExitCode;

use belay::outcome::By;
use belay::{Error, ErrorKind};

/// An exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Code(pub(crate) u8);

/// Answered: success.
pub(crate) const OK: Code = Code(0);
/// The command line is wrong.
pub(crate) const USAGE: Code = Code(1);
/// The peer refused, or broke the protocol.
pub(crate) const REFUSED: Code = Code(2);
/// Authentication failed or access is denied (HTTP 401 or 403).
pub(crate) const AUTH: Code = Code(3);
/// The connection, the process or the stream was lost, or could not be opened.
pub(crate) const LOST: Code = Code(4);
/// The tool itself failed.
pub(crate) const TOOL_ERROR: Code = Code(5);
/// A timeout passed.
pub(crate) const TIMED_OUT: Code = Code(6);
/// A check of `belay demo` failed.
pub(crate) const CHECK_FAILED: Code = Code(7);
/// A local limit rejected the request.
pub(crate) const REJECTED: Code = Code(8);
/// The peer needs input, and the user cannot be asked.
pub(crate) const INPUT_REQUIRED: Code = Code(9);
/// The peer cancelled it.
pub(crate) const CANCELLED: Code = Code(10);
/// Ctrl-C, SIGTERM or SIGHUP; running requests were cancelled.
pub(crate) const INTERRUPTED: Code = Code(130);

impl Code {
    /// The code for the end of a call.
    pub(crate) fn of(error: &Error) -> Self {
        match error.kind() {
            ErrorKind::Refused | ErrorKind::Violated => REFUSED,
            ErrorKind::InputRequired => INPUT_REQUIRED,
            ErrorKind::Cancelled => match error.cancelled_by() {
                Some(By::Peer) => CANCELLED,
                _ => INTERRUPTED,
            },
            ErrorKind::TimedOut => TIMED_OUT,
            ErrorKind::Lost if is_auth(error) => AUTH,
            ErrorKind::Lost => LOST,
            _ => REJECTED,
        }
    }
}

/// Whether an HTTP server answered 401 or 403.
pub(crate) fn is_auth(error: &Error) -> bool {
    matches!(error.http_status(), Some(401 | 403))
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code.0)
    }
}
