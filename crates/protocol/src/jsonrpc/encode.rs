//! Envelope fields in, one frame out.

use bytes::Bytes;

use super::{ErrorObject, RawJson, RequestId};

/// Writes one frame, field by field, into one buffer.
///
/// Nothing written here contains a newline: strings are escaped, and [`RawJson`] holds none.
pub(crate) struct FrameWriter {
    buffer: Vec<u8>,
}

impl FrameWriter {
    pub(crate) fn new() -> Self {
        Self::with_room_for(64)
    }

    /// `payload` is how many bytes will follow beside the envelope: one allocation then suffices.
    pub(crate) fn with_room_for(payload: usize) -> Self {
        let mut buffer = Vec::with_capacity(payload + 96);
        buffer.extend_from_slice(br#"{"jsonrpc":"2.0""#);
        Self { buffer }
    }

    pub(crate) fn id(mut self, id: &RequestId) -> Self {
        self.raw(br#","id":"#);
        self.json(id);
        self
    }

    pub(crate) fn method(mut self, method: &str) -> Self {
        self.raw(br#","method":"#);
        self.json(method);
        self
    }

    pub(crate) fn params(mut self, params: Option<&RawJson>) -> Self {
        if let Some(params) = params {
            self.raw(br#","params":"#);
            self.raw(params.as_bytes());
        }
        self
    }

    pub(crate) fn body(mut self, body: &Result<RawJson, ErrorObject>) -> Self {
        match body {
            Ok(result) => {
                self.raw(br#","result":"#);
                self.raw(result.as_bytes());
                self
            }
            Err(error) => self.error(error),
        }
    }

    pub(crate) fn error(mut self, error: &ErrorObject) -> Self {
        self.raw(br#","error":"#);
        self.json(error);
        self
    }

    /// Bytes that are JSON already and hold no newline.
    pub(crate) fn raw(&mut self, json: &[u8]) {
        self.buffer.extend_from_slice(json);
    }

    /// A value that cannot fail to become JSON: our own small types, strings and numbers.
    pub(crate) fn json<T: serde::Serialize + ?Sized>(&mut self, value: &T) {
        serde_json::to_writer(&mut self.buffer, value)
            .expect("strings, numbers and our own structs are always valid JSON");
    }

    pub(crate) fn finish(mut self) -> Bytes {
        self.raw(b"}");
        self.buffer.into()
    }
}
