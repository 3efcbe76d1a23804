//! Types that only the legacy era has: the handshake, `ping`, and settings of a session.

mod initialize;
mod level;
mod news;
mod ping;
mod subscribe;
pub mod tasks;

pub use initialize::{Initialize, InitializeParams, InitializeResult, InitializedParams};
pub use level::{SetLevel, SetLevelParams};
pub use news::{ElicitationCompleteParams, RootsListChangedParams, UrlElicitationRequiredData};
pub use ping::{Ping, PingParams};
pub use subscribe::{Subscribe, SubscribeParams, Unsubscribe};
