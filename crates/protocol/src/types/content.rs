//! What results and messages are made of.

use super::Icon;
use crate::base64;

kinds! {
    /// A piece of content.
    ///
    /// ```
    /// use belay_protocol::types::ContentBlock;
    /// let block: ContentBlock = serde_json::from_str(r#"{"type":"text","text":"hi"}"#).unwrap();
    /// assert_eq!(block.as_text(), Some("hi"));
    /// ```
    pub enum ContentBlock {
        /// Text.
        Text(TextContent) = "text",
        /// A picture.
        Image(ImageContent) = "image",
        /// A sound.
        Audio(AudioContent) = "audio",
        /// Where a resource is to be read.
        ResourceLink(ResourceLink) = "resource_link",
        /// A resource itself.
        Resource(EmbeddedResource) = "resource",
    }
}

impl ContentBlock {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }

    /// A picture, from its bytes.
    pub fn image(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        Self::Image(ImageContent::new(base64::encode(bytes.as_ref()), mime_type))
    }

    /// A sound, from its bytes.
    pub fn audio(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        Self::Audio(AudioContent::new(base64::encode(bytes.as_ref()), mime_type))
    }

    /// Where a resource is to be read: its URI, and its name for programs.
    pub fn link(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self::ResourceLink(ResourceLink::new(uri, name))
    }

    /// A resource itself.
    pub fn resource(resource: ResourceContents) -> Self {
        Self::Resource(EmbeddedResource::new(resource))
    }

    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(content) => Some(&content.text),
            _ => None,
        }
    }
}

impl From<&str> for ContentBlock {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for ContentBlock {
    fn from(text: String) -> Self {
        Self::text(text)
    }
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
    ///
    /// ```
    /// use belay_protocol::types::ResourceContents;
    ///
    /// let memo = ResourceContents::new("memo://1").text("Buy milk.").mime_type("text/plain");
    /// let photo = ResourceContents::new("photo://1").bytes(b"\x89PNG").mime_type("image/png");
    /// assert_eq!(memo.to_bytes().unwrap(), b"Buy milk.");
    /// assert_eq!(photo.to_bytes().unwrap(), b"\x89PNG");
    /// ```
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

impl ResourceContents {
    /// The bytes, if it is not a text.
    pub fn bytes(self, bytes: impl AsRef<[u8]>) -> Self {
        self.blob(base64::encode(bytes.as_ref()))
    }

    /// The bytes: of the text, or of what is in base64. `None` if that is not base64, or nothing is
    /// there.
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        match (&self.text, &self.blob) {
            (Some(text), _) => Some(text.clone().into_bytes()),
            (None, Some(blob)) => base64::decode(blob),
            (None, None) => None,
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
