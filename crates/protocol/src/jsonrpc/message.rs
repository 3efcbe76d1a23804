//! One message, whose envelope is decoded.

use std::fmt;
use std::ops::Deref;

use bytes::Bytes;

use super::encode::FrameWriter;
use super::{ErrorObject, Params, RawJson, RequestId};

/// One JSON-RPC message.
///
/// ```
/// use belay_protocol::jsonrpc::{Message, Notification};
/// let message = Message::from(Notification::new("notifications/initialized", None));
/// assert_eq!(message.encode(), r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// A request, which gets an answer.
    Request(Request),
    /// A notification, which gets none.
    Notification(Notification),
    /// The answer to a request.
    Response(Response),
    /// An error without an id: the peer could not read a message of ours, and cannot say which one.
    Unaddressed(ErrorObject),
}

/// A message that gets an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// The id that the sender chose.
    pub id: RequestId,
    /// The method.
    pub method: Text,
    /// The parameters.
    pub params: Option<Params>,
}

/// A message that gets no answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Notification {
    /// The method.
    pub method: Text,
    /// The parameters; always an object.
    pub params: Option<RawJson>,
}

/// The answer to a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Response {
    /// The id of the request, exactly as its sender wrote it.
    pub id: RequestId,
    /// The result, or the error.
    pub body: Result<RawJson, ErrorObject>,
}

impl Message {
    /// Encodes the message, compactly and without newlines.
    pub fn encode(&self) -> Bytes {
        match self {
            Self::Request(Request { id, method, params }) => FrameWriter::new()
                .id(id)
                .method(method)
                .params(params.as_deref())
                .finish(),
            Self::Notification(Notification { method, params }) => FrameWriter::new()
                .method(method)
                .params(params.as_ref())
                .finish(),
            Self::Response(Response { id, body }) => FrameWriter::new().id(id).body(body).finish(),
            Self::Unaddressed(error) => FrameWriter::new().error(error).finish(),
        }
    }
}

impl Notification {
    /// Creates a notification.
    pub fn new(method: &str, params: Option<RawJson>) -> Self {
        Self {
            method: method.into(),
            params,
        }
    }
}

impl Request {
    /// Creates a request.
    pub fn new(id: impl Into<RequestId>, method: &str, params: Option<RawJson>) -> Self {
        Self {
            id: id.into(),
            method: method.into(),
            params: params.map(Params::from),
        }
    }
}

impl From<Request> for Message {
    fn from(request: Request) -> Self {
        Self::Request(request)
    }
}

impl From<Notification> for Message {
    fn from(notification: Notification) -> Self {
        Self::Notification(notification)
    }
}

impl From<Response> for Message {
    fn from(response: Response) -> Self {
        Self::Response(response)
    }
}

/// A string that shares the buffer of the frame it arrived in.
///
/// ```
/// use belay_protocol::jsonrpc::Text;
/// assert_eq!(&*Text::from("tools/call"), "tools/call");
/// ```
// Invariant: the bytes are UTF-8; every constructor starts from a `str`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Text(Bytes);

impl Text {
    /// `part` must be a slice of `frame`.
    pub(super) fn slice(frame: &Bytes, part: &str) -> Self {
        Self(frame.slice_ref(part.as_bytes()))
    }

    /// Creates a text without an allocation.
    pub const fn from_static(text: &'static str) -> Self {
        Self(Bytes::from_static(text.as_bytes()))
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        str::from_utf8(&self.0).expect("every constructor starts from a str")
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(Bytes::copy_from_slice(text.as_bytes()))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}
