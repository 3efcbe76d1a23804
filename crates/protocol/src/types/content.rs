//! The content of results and messages.

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
        /// A text.
        Text(TextContent) = "text",
        /// An image.
        Image(ImageContent) = "image",
        /// Audio.
        Audio(AudioContent) = "audio",
        /// A link to a resource.
        ResourceLink(ResourceLink) = "resource_link",
        /// A resource, embedded.
        Resource(EmbeddedResource) = "resource",
    }
}

impl ContentBlock {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }

    /// An image from its bytes.
    pub fn image(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        Self::Image(ImageContent::new(base64::encode(bytes.as_ref()), mime_type))
    }

    /// Audio from its bytes.
    pub fn audio(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        Self::Audio(AudioContent::new(base64::encode(bytes.as_ref()), mime_type))
    }

    /// A link to a resource: its URI and its programmatic name.
    pub fn link(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self::ResourceLink(ResourceLink::new(uri, name))
    }

    /// An embedded resource.
    pub fn resource(resource: ResourceContents) -> Self {
        Self::Resource(EmbeddedResource::new(resource))
    }

    /// The text, if this is a text.
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
    /// A text.
    pub struct TextContent {
        required {
            /// The text.
            text: String = "text",
        }
        optional {
            /// Hints about audience, priority and last change.
            annotations: Annotations = "annotations",
        }
    }
}

record! {
    /// An image.
    pub struct ImageContent {
        required {
            /// The image, in base64.
            data: String = "data",
            /// The MIME type.
            mime_type: String = "mimeType",
        }
        optional {
            /// Hints about audience, priority and last change.
            annotations: Annotations = "annotations",
        }
    }
}

record! {
    /// Audio.
    pub struct AudioContent {
        required {
            /// The audio, in base64.
            data: String = "data",
            /// The MIME type.
            mime_type: String = "mimeType",
        }
        optional {
            /// Hints about audience, priority and last change.
            annotations: Annotations = "annotations",
        }
    }
}

record! {
    /// A link to a resource.
    pub struct ResourceLink {
        required {
            /// Its URI.
            uri: String = "uri",
            /// The programmatic name.
            name: String = "name",
        }
        optional {
            /// The display name.
            title: String = "title",
            /// The description.
            description: String = "description",
            /// The MIME type.
            mime_type: String = "mimeType",
            /// Hints about audience, priority and last change.
            annotations: Annotations = "annotations",
            /// The size in bytes.
            size: u64 = "size",
            /// Icons for display.
            icons: Vec<Icon> = "icons",
        }
    }
}

record! {
    /// A resource that is embedded in a message or a result.
    pub struct EmbeddedResource {
        required {
            /// The resource.
            resource: ResourceContents = "resource",
        }
        optional {
            /// Hints about audience, priority and last change.
            annotations: Annotations = "annotations",
        }
    }
}

record! {
    /// The contents of a resource: a text, or bytes in base64.
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
            /// The MIME type.
            mime_type: String = "mimeType",
            /// The text, if the contents are text.
            text: String = "text",
            /// The bytes in base64, if the contents are not text.
            blob: String = "blob",
        }
    }
}

impl ResourceContents {
    /// Sets the contents to these bytes, in base64.
    pub fn bytes(self, bytes: impl AsRef<[u8]>) -> Self {
        self.blob(base64::encode(bytes.as_ref()))
    }

    /// The bytes of the text, or the decoded bytes of the base64. `None` if the base64 is invalid
    /// or there are no contents.
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        match (&self.text, &self.blob) {
            (Some(text), _) => Some(text.clone().into_bytes()),
            (None, Some(blob)) => base64::decode(blob),
            (None, None) => None,
        }
    }
}

record! {
    /// Hints for the client that displays the content.
    pub struct Annotations {
        optional {
            /// For which roles the content is meant.
            audience: Vec<Role> = "audience",
            /// The priority, from 0 (optional) to 1 (required).
            priority: f64 = "priority",
            /// When it was last changed, in ISO 8601.
            last_modified: String = "lastModified",
        }
    }
}

/// The speaker or the audience of a message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
}
