//! Types that only the modern era has: discovery, input requests, listening, and the errors of
//! per-request metadata.

mod discover;
mod input;
mod subscriptions;
mod unsupported;

pub use discover::{Discover, DiscoverParams, DiscoverResult};
pub use input::{InputRequest, InputRequiredResult, InputResponses};
pub use subscriptions::{
    AcknowledgedParams, Listen, ListenParams, ListenResult, SubscriptionFilter,
};
pub use unsupported::{MissingCapabilityData, UnsupportedVersionData};
