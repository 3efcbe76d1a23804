//! Revisions of the protocol, and the two eras they fall into.

use std::fmt;
use std::str::FromStr;

/// A revision of the specification that Belay supports.
///
/// ```
/// use belay_protocol::types::{Era, ProtocolVersion};
///
/// let version: ProtocolVersion = "2025-11-25".parse().unwrap();
/// assert_eq!(version.era(), Era::Legacy);
/// assert_eq!(ProtocolVersion::LATEST.era(), Era::Modern);
/// assert!("1900-01-01".parse::<ProtocolVersion>().is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum ProtocolVersion {
    /// 2024-11-05, the first one: HTTP+SSE.
    V2024_11_05,
    /// 2025-03-26: Streamable HTTP, and the only one with batches.
    V2025_03_26,
    /// 2025-06-18: elicitation and structured output.
    V2025_06_18,
    /// 2025-11-25, the last one with a handshake.
    V2025_11_25,
    /// 2026-07-28: stateless, each request carries its metadata.
    V2026_07_28,
}

/// The era of a revision: how a connection is opened and how requests end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Era {
    /// 2024-11-05 to 2025-11-25: a handshake, then a session.
    Legacy,
    /// 2026-07-28 and later: no handshake, every request carries its own metadata.
    Modern,
}

impl ProtocolVersion {
    /// The newest revision.
    pub const LATEST: Self = Self::V2026_07_28;
    /// The newest revision that has the `initialize` handshake.
    pub const LATEST_LEGACY: Self = Self::V2025_11_25;
    /// All supported revisions, newest first.
    pub const ALL: [Self; 5] = [
        Self::V2026_07_28,
        Self::V2025_11_25,
        Self::V2025_06_18,
        Self::V2025_03_26,
        Self::V2024_11_05,
    ];

    /// The era of this revision.
    pub fn era(self) -> Era {
        match self {
            Self::V2026_07_28 => Era::Modern,
            _ => Era::Legacy,
        }
    }

    /// Whether this revision has batches: several messages in one JSON array.
    pub fn has_batches(self) -> bool {
        self == Self::V2025_03_26
    }

    /// Whether a server begins an event stream with an empty event, so that the stream can be
    /// resumed from its very beginning. Older clients take that event for a malformed message.
    pub fn greets_streams(self) -> bool {
        self == Self::V2025_11_25
    }

    /// Whether elicitation has a mode, and forms have option titles, multiple choice and defaults.
    pub fn has_elicitation_modes(self) -> bool {
        self >= Self::V2025_11_25
    }

    /// Whether an elicited page visit has an id, and the server notifies the client of its
    /// completion.
    pub fn names_visits(self) -> bool {
        self == Self::V2025_11_25
    }

    /// The date that names the revision on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }
}

/// A revision that Belay does not support.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("unknown protocol version {0:?}")]
pub struct UnknownVersion(pub String);

impl FromStr for ProtocolVersion {
    type Err = UnknownVersion;

    fn from_str(text: &str) -> Result<Self, UnknownVersion> {
        Self::ALL
            .into_iter()
            .find(|version| version.as_str() == text)
            .ok_or_else(|| UnknownVersion(text.to_owned()))
    }
}

impl fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
