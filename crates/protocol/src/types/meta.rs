//! `_meta`: metadata that travels with parameters and results.

use std::fmt;

use serde::Serialize;
use serde::de::{self, Deserialize, DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};

/// The keys of `_meta` that the specification reserves.
pub mod meta_key {
    /// Opts a request into progress notifications.
    pub const PROGRESS_TOKEN: &str = "progressToken";
    /// The protocol version of a modern request.
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// The name and version of the sender of a modern request.
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// The capabilities of the sender of a modern request.
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// The name and version of the server that answered a modern request.
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    /// The lowest level of log messages that a modern request asks for.
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// The listen request that a notification belongs to.
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
    /// W3C trace context: the trace and the parent span.
    pub const TRACEPARENT: &str = "traceparent";
    /// W3C trace context: vendor-specific state of the tracing systems.
    pub const TRACESTATE: &str = "tracestate";
    /// W3C baggage.
    pub const BAGGAGE: &str = "baggage";
}

/// The contents of `_meta`: keys and values in the order in which they came.
///
/// ```
/// use belay_protocol::types::{Meta, ProgressToken, meta_key};
///
/// let mut meta = Meta::default();
/// meta.set(meta_key::PROGRESS_TOKEN, 7).unwrap();
/// let token: Option<ProgressToken> = meta.get(meta_key::PROGRESS_TOKEN).unwrap();
/// assert_eq!(token, Some(7.into()));
/// ```
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize)]
#[serde(transparent)]
pub struct Meta(Map<String, Value>);

impl Meta {
    /// The value at `key`, decoded. An error names the key.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, serde_json::Error> {
        self.0
            .get(key)
            .map(|value| T::deserialize(value).map_err(|error| named(key, &error)))
            .transpose()
    }

    /// Sets the value at `key`.
    pub fn set(&mut self, key: &str, value: impl Serialize) -> Result<(), serde_json::Error> {
        let value = serde_json::to_value(value)?;
        self.0.insert(key.to_owned(), value);
        Ok(())
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes the value at `key` and returns it.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        self.0.shift_remove(key)
    }

    /// All keys and values.
    pub fn as_map(&self) -> &Map<String, Value> {
        &self.0
    }
}

fn named(key: &str, error: &serde_json::Error) -> serde_json::Error {
    de::Error::custom(format_args!("`_meta`: `{key}`: {error}"))
}

impl<'de> Deserialize<'de> for Meta {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(UniqueKeys).map(Self)
    }
}

/// Reads an object and refuses a duplicate key, where `serde_json` would silently keep the last
/// value.
pub(crate) struct UniqueKeys;

impl<'de> Visitor<'de> for UniqueKeys {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let value = access.next_value()?;
            super::record::insert_unique(&mut map, key, value)?;
        }
        Ok(map)
    }
}

/// Whether this is a valid extension identifier: a name with a prefix, as in `com.example/receipts`
/// (2026-07-28, basic/versioning).
///
/// ```
/// use belay_protocol::types::is_extension_identifier;
/// assert!(is_extension_identifier("com.example/receipts"));
/// assert!(!is_extension_identifier("receipts"));
/// ```
pub fn is_extension_identifier(text: &str) -> bool {
    let Some((prefix, name)) = text.split_once('/') else {
        return false;
    };
    let is_label = |label: &str| {
        let inside = label
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let first = label.starts_with(|first: char| first.is_ascii_alphabetic());
        inside && first && label.ends_with(|last: char| last.is_ascii_alphanumeric())
    };
    let is_name = |name: &str| {
        let inside = name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        let edge = |edge: char| edge.is_ascii_alphanumeric();
        inside && name.starts_with(edge) && name.ends_with(edge)
    };
    prefix.split('.').all(is_label) && is_name(name)
}
