//! Encodes the fields of an envelope into one frame.

use bytes::Bytes;

use super::{ErrorObject, RawJson, RequestId};

/// Writes one frame, field by field, into one buffer.
///
/// The frame contains no newline: strings are escaped, and [`RawJson`] holds none.
pub(crate) struct FrameWriter {
    buffer: Vec<u8>,
}

impl FrameWriter {
    pub(crate) fn new() -> Self {
        Self::with_room_for(64)
    }

    /// `payload` is the number of bytes beside the envelope, so that one allocation suffices.
    pub(crate) fn with_room_for(payload: usize) -> Self {
        Self::with_capacity(payload + 96)
    }

    fn with_capacity(capacity: usize) -> Self {
        Self::within(Vec::with_capacity(capacity))
    }

    /// Writes into this buffer, which must be empty.
    pub(super) fn within(mut buffer: Vec<u8>) -> Self {
        buffer.extend_from_slice(br#"{"jsonrpc":"2.0""#);
        Self { buffer }
    }

    /// Reserves exactly the size of this answer, so that the buffer becomes the frame without a
    /// copy.
    pub(crate) fn for_result(id: &RequestId, result: &RawJson) -> Self {
        const ENVELOPE: usize = r#"{"jsonrpc":"2.0","id":,"result":}"#.len();
        let id = match id {
            RequestId::Number(number) => {
                let digits = number.unsigned_abs().checked_ilog10().unwrap_or(0) + 1;
                digits as usize + usize::from(*number < 0)
            }
            RequestId::String(string) => string.len() + 2,
        };
        Self::with_capacity(ENVELOPE + id + result.as_bytes().len())
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

    /// Appends bytes that are JSON already and contain no newline.
    pub(crate) fn raw(&mut self, json: &[u8]) {
        self.buffer.extend_from_slice(json);
    }

    /// Appends a value whose encoding cannot fail: our own small types, strings and numbers.
    pub(crate) fn json<T: serde::Serialize + ?Sized>(&mut self, value: &T) {
        serde_json::to_writer(&mut self.buffer, value)
            .expect("strings, numbers and our own structs are always valid JSON");
    }

    /// The bytes written so far, for a caller that writes the rest itself.
    pub(super) fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    pub(crate) fn finish(mut self) -> Bytes {
        self.raw(b"}");
        self.buffer.into()
    }
}
