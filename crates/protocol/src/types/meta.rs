//! `_meta`: what travels beside the parameters.

use std::fmt;
use std::sync::OnceLock;

use serde::de::{self, Deserialize, DeserializeOwned, Deserializer};
use serde::ser::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::jsonrpc::check_object;

/// The keys of `_meta` that the specification reserves.
pub mod meta_key {
    /// Opts a request into progress notifications.
    pub const PROGRESS_TOKEN: &str = "progressToken";
    /// The protocol version of a modern request.
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// Who sends a modern request.
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// What the sender of a modern request can do.
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// Who answered a modern request.
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    /// From which level on a modern request wants log messages.
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// The listen request that a notification belongs to.
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
    /// W3C trace context: which span this belongs to.
    pub const TRACEPARENT: &str = "traceparent";
    /// W3C trace context: what the tracing systems on the way know of it.
    pub const TRACESTATE: &str = "tracestate";
    /// W3C baggage.
    pub const BAGGAGE: &str = "baggage";
}

/// The contents of `_meta`: keys and values in the order in which they came.
///
/// It comes with every modern result, and hardly anybody looks at it: so it is kept as text until
/// somebody does.
///
/// ```
/// use belay_protocol::types::{Meta, ProgressToken, meta_key};
///
/// let mut meta = Meta::default();
/// meta.set(meta_key::PROGRESS_TOKEN, 7).unwrap();
/// let token: Option<ProgressToken> = meta.get(meta_key::PROGRESS_TOKEN).unwrap();
/// assert_eq!(token, Some(7.into()));
/// ```
#[derive(Clone, Default)]
pub struct Meta {
    /// As it came, unless it was changed since: an object that `map` can be made of.
    text: Option<Box<RawValue>>,
    map: OnceLock<Map<String, Value>>,
}

/// `serde_json` decodes nothing that is nested deeper than 128, and `_meta` stands in something.
const DEPTH: usize = 100;

impl Meta {
    /// The value at `key`, decoded. An error names the key.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, serde_json::Error> {
        let value = self.as_map().get(key);
        value
            .map(|value| T::deserialize(value).map_err(|error| named(key, &error)))
            .transpose()
    }

    /// Sets the value at `key`.
    pub fn set(&mut self, key: &str, value: impl Serialize) -> Result<(), serde_json::Error> {
        let value = serde_json::to_value(value)?;
        self.as_mut_map().insert(key.to_owned(), value);
        Ok(())
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.as_map().is_empty()
    }

    /// Takes the value at `key` out.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        self.as_mut_map().shift_remove(key)
    }

    /// The keys and values.
    pub fn as_map(&self) -> &Map<String, Value> {
        self.map.get_or_init(|| match &self.text {
            Some(text) => serde_json::from_str(text.get())
                .expect("it was found to be an object of bounded depth when it came"),
            None => Map::new(),
        })
    }

    fn as_mut_map(&mut self) -> &mut Map<String, Value> {
        self.as_map();
        self.text = None;
        self.map.get_mut().expect("it was made right above")
    }
}

impl PartialEq for Meta {
    fn eq(&self, other: &Self) -> bool {
        self.as_map() == other.as_map()
    }
}

impl Eq for Meta {}

impl fmt::Debug for Meta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Meta").field(self.as_map()).finish()
    }
}

impl Serialize for Meta {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_map().serialize(serializer)
    }
}

fn named(key: &str, error: &serde_json::Error) -> serde_json::Error {
    de::Error::custom(format_args!("`_meta`: `{key}`: {error}"))
}

/// An object, of which no key may stand in it twice, where `serde_json` would silently keep the last.
impl<'de> Deserialize<'de> for Meta {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        check_object(text.get(), DEPTH).map_err(de::Error::custom)?;
        Ok(Self {
            text: Some(text),
            map: OnceLock::new(),
        })
    }
}

/// Whether this can be the identifier of an extension: a name with a prefix, as in
/// `com.example/receipts` (2026-07-28, basic/versioning).
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
