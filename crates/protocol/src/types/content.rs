//! What results and messages are made of.

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use super::Icon;
use super::meta::UniqueKeys;

/// A piece of content.
///
/// ```
/// use belay_protocol::types::ContentBlock;
/// let block: ContentBlock = serde_json::from_str(r#"{"type":"text","text":"hi"}"#).unwrap();
/// assert_eq!(block.as_text(), Some("hi"));
/// ```
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum ContentBlock {
    /// Text.
    Text(TextContent),
    /// A picture.
    Image(ImageContent),
    /// A sound.
    Audio(AudioContent),
    /// Where a resource is to be read.
    ResourceLink(ResourceLink),
    /// A resource itself.
    Resource(EmbeddedResource),
    /// A kind that this version of Belay does not know, kept as it came.
    Other(Map<String, Value>),
}

impl ContentBlock {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }

    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(content) => Some(&content.text),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for ContentBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        fn of_kind<T: for<'a> Deserialize<'a>, E: serde::de::Error>(
            mut map: Map<String, Value>,
        ) -> Result<T, E> {
            map.remove("type");
            T::deserialize(Value::Object(map)).map_err(E::custom)
        }
        let map = deserializer.deserialize_map(UniqueKeys)?;
        match map.get("type").and_then(Value::as_str) {
            Some("text") => of_kind(map).map(Self::Text),
            Some("image") => of_kind(map).map(Self::Image),
            Some("audio") => of_kind(map).map(Self::Audio),
            Some("resource_link") => of_kind(map).map(Self::ResourceLink),
            Some("resource") => of_kind(map).map(Self::Resource),
            Some(_) => Ok(Self::Other(map)),
            None => Err(D::Error::custom("`type`: missing, or not a string")),
        }
    }
}

impl Serialize for ContentBlock {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(content) => tagged(serializer, "text", content),
            Self::Image(content) => tagged(serializer, "image", content),
            Self::Audio(content) => tagged(serializer, "audio", content),
            Self::ResourceLink(content) => tagged(serializer, "resource_link", content),
            Self::Resource(content) => tagged(serializer, "resource", content),
            Self::Other(map) => map.serialize(serializer),
        }
    }
}

/// The fields of `content` after a `type`.
fn tagged<S: Serializer>(
    serializer: S,
    kind: &str,
    content: &impl Serialize,
) -> Result<S::Ok, S::Error> {
    let Value::Object(fields) = serde_json::to_value(content).map_err(serde::ser::Error::custom)?
    else {
        return Err(serde::ser::Error::custom("content must be an object"));
    };
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry("type", kind)?;
    for (key, value) in &fields {
        map.serialize_entry(key, value)?;
    }
    map.end()
}

record! {
    /// Text.
    pub struct TextContent {
        required {
            /// The text.
            text: String = "text",
        }
        optional {
            /// For whom, and how much it matters.
            annotations: Annotations = "annotations",
        }
    }
}

record! {
    /// A picture.
    pub struct ImageContent {
        required {
            /// The picture, in base64.
            data: String = "data",
            /// Its type.
            mime_type: String = "mimeType",
        }
        optional {
            /// For whom, and how much it matters.
            annotations: Annotations = "annotations",
        }
    }
}

record! {
    /// A sound.
    pub struct AudioContent {
        required {
            /// The sound, in base64.
            data: String = "data",
            /// Its type.
            mime_type: String = "mimeType",
        }
        optional {
            /// For whom, and how much it matters.
            annotations: Annotations = "annotations",
        }
    }
}

record! {
    /// Where a resource is to be read.
    pub struct ResourceLink {
        required {
            /// Its URI.
            uri: String = "uri",
            /// Its name, for programs.
            name: String = "name",
        }
        optional {
            /// Its name, for people.
            title: String = "title",
            /// What is in it.
            description: String = "description",
            /// Its type.
            mime_type: String = "mimeType",
            /// For whom, and how much it matters.
            annotations: Annotations = "annotations",
            /// How many bytes it has.
            size: u64 = "size",
            /// What it looks like.
            icons: Vec<Icon> = "icons",
        }
    }
}

record! {
    /// A resource, in the middle of something else.
    pub struct EmbeddedResource {
        required {
            /// The resource.
            resource: ResourceContents = "resource",
        }
        optional {
            /// For whom, and how much it matters.
            annotations: Annotations = "annotations",
        }
    }
}

record! {
    /// What a resource holds: text, or bytes in base64.
    pub struct ResourceContents {
        required {
            /// Its URI.
            uri: String = "uri",
        }
        optional {
            /// Its type.
            mime_type: String = "mimeType",
            /// The text, if it is one.
            text: String = "text",
            /// The bytes in base64, if it is not.
            blob: String = "blob",
        }
    }
}

record! {
    /// Hints for whoever shows it.
    pub struct Annotations {
        optional {
            /// For whom it is meant.
            audience: Vec<Role> = "audience",
            /// From 0, not needed, to 1, indispensable.
            priority: f64 = "priority",
            /// When it was last changed, in ISO 8601.
            last_modified: String = "lastModified",
        }
    }
}

/// Who speaks, or is spoken to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
}
