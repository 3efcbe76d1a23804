//! The contents of a resource, as its handler returns them.

use belay_protocol::types::ResourceContents;

use crate::server::offers::request_error::RequestError;

/// The contents that a resource handler returned.
#[derive(Debug)]
pub struct Contents(Vec<Content>);

#[derive(Debug)]
enum Content {
    Text(String),
    Bytes(Vec<u8>),
    Whole(Box<ResourceContents>),
}

impl Contents {
    pub(super) fn of(self, uri: &str, mime_type: Option<&str>) -> Vec<ResourceContents> {
        let whole = |content| {
            let mut contents = match content {
                Content::Text(text) => ResourceContents::new(uri).text(text),
                Content::Bytes(bytes) => ResourceContents::new(uri).bytes(bytes),
                Content::Whole(contents) => *contents,
            };
            let kind = || mime_type.map(str::to_owned);
            contents.mime_type = contents.mime_type.or_else(kind);
            contents
        };
        self.0.into_iter().map(whole).collect()
    }
}

/// A type that a resource handler can return.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be what a resource holds",
    label = "what a resource holds",
    note = "give a `String`, a `Vec<u8>`, `ResourceContents` or several of them, an `Option` of one of these, or a `Result` with a `belay::RequestError`"
)]
pub trait IntoContents {
    /// Converts it to the contents of the resource.
    fn into_contents(self) -> Result<Contents, RequestError>;
}

impl IntoContents for String {
    fn into_contents(self) -> Result<Contents, RequestError> {
        Ok(Contents(vec![Content::Text(self)]))
    }
}

impl IntoContents for &str {
    fn into_contents(self) -> Result<Contents, RequestError> {
        self.to_owned().into_contents()
    }
}

impl IntoContents for Vec<u8> {
    fn into_contents(self) -> Result<Contents, RequestError> {
        Ok(Contents(vec![Content::Bytes(self)]))
    }
}

impl IntoContents for ResourceContents {
    fn into_contents(self) -> Result<Contents, RequestError> {
        Ok(Contents(vec![Content::Whole(Box::new(self))]))
    }
}

impl IntoContents for Vec<ResourceContents> {
    fn into_contents(self) -> Result<Contents, RequestError> {
        let whole = |contents| Content::Whole(Box::new(contents));
        Ok(Contents(self.into_iter().map(whole).collect()))
    }
}

impl<T: IntoContents> IntoContents for Option<T> {
    fn into_contents(self) -> Result<Contents, RequestError> {
        self.ok_or_else(RequestError::not_found)?.into_contents()
    }
}

impl<T: IntoContents, E: Into<RequestError>> IntoContents for Result<T, E> {
    fn into_contents(self) -> Result<Contents, RequestError> {
        self.map_err(Into::into)?.into_contents()
    }
}
