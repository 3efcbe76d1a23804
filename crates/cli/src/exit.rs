//! Every exit code, and what it means. One for each end of a call.

use std::process::ExitCode;

use belay::engine::By;
use belay::{Error, ErrorKind};

/// An exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Code(pub(crate) u8);

/// Answered: all is well.
pub(crate) const OK: Code = Code(0);
/// The command line is wrong.
pub(crate) const USAGE: Code = Code(1);
/// The peer refused, or broke the protocol.
pub(crate) const REFUSED: Code = Code(2);
/// The server wants to know who asks, or does not let them.
pub(crate) const AUTH: Code = Code(3);
/// The connection, the process or the stream was lost, or could not be had.
pub(crate) const LOST: Code = Code(4);
/// The tool itself failed.
pub(crate) const TOOL_ERROR: Code = Code(5);
/// A deadline passed.
pub(crate) const TIMED_OUT: Code = Code(6);
/// A check failed: something was not as promised.
pub(crate) const CHECK_FAILED: Code = Code(7);
/// A limit of our own stopped it.
pub(crate) const REJECTED: Code = Code(8);
/// The peer needs input, and there is nobody to ask.
pub(crate) const INPUT_REQUIRED: Code = Code(9);
/// The peer cancelled it.
pub(crate) const CANCELLED: Code = Code(10);
/// Ctrl-C, SIGTERM or SIGHUP: what was under way was cancelled.
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

/// Whether a server on HTTP did not let us in.
pub(crate) fn is_auth(error: &Error) -> bool {
    matches!(error.http_status(), Some(401 | 403))
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code.0)
    }
}
