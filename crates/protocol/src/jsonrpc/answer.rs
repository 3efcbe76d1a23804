//! A result that is encoded once, directly into its frame.

use std::cell::Cell;
use std::ops::Range;

use bytes::Bytes;
use memchr::memchr2;
use serde::Serialize;

use super::encode::FrameWriter;
use super::{RawJson, RequestId};

/// The result of a request, encoded as the frame that is sent.
///
/// ```
/// use belay_protocol::jsonrpc::{RawJson, ResultFrame};
///
/// let more = [("_meta", &RawJson::empty_object())];
/// let frame = ResultFrame::write(&7.into(), &serde_json::json!({ "a": 1 }), more).unwrap();
/// assert_eq!(frame.as_bytes(), br#"{"jsonrpc":"2.0","id":7,"result":{"a":1,"_meta":{}}}"#);
/// assert_eq!(frame.result().as_str(), r#"{"a":1,"_meta":{}}"#);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResultFrame {
    frame: Bytes,
    result: Range<usize>,
}

impl ResultFrame {
    /// Encodes a result, which must be an object, and adds members that it must not have yet.
    pub fn write<'a, T: Serialize + ?Sized>(
        id: &RequestId,
        result: &T,
        more: impl IntoIterator<Item = (&'a str, &'a RawJson)>,
    ) -> Result<Self, serde_json::Error> {
        let mut frame = FrameWriter::within(SCRATCH.take()).id(id).into_buffer();
        frame.extend_from_slice(br#","result":"#);
        let start = frame.len();
        serde_json::to_writer(&mut frame, result)?;
        for (key, value) in more {
            if frame.last() != Some(&b'}') {
                return Err(serde::ser::Error::custom("a result must be an object"));
            }
            frame.pop();
            if frame.last() != Some(&b'{') {
                frame.push(b',');
            }
            serde_json::to_writer(&mut frame, key)?;
            frame.push(b':');
            frame.extend_from_slice(value.as_bytes());
            frame.push(b'}');
        }
        // A newline can only be white space, since strings escape it. `RawValue` lets it through.
        while let Some(newline) = memchr2(b'\n', b'\r', &frame[start..]) {
            frame[start + newline] = b' ';
        }
        let result = start..frame.len();
        frame.push(b'}');
        Ok(Self {
            frame: exactly(frame),
            result,
        })
    }

    /// The result alone.
    pub fn result(&self) -> RawJson {
        RawJson::from_written(self.frame.slice(self.result.clone()))
    }

    /// The length of the result alone.
    pub fn result_len(&self) -> usize {
        self.result.len()
    }

    /// The whole frame.
    pub fn as_bytes(&self) -> &[u8] {
        &self.frame
    }

    pub(crate) fn into_frame(self) -> Bytes {
        self.frame
    }
}

thread_local! {
    /// Reused buffer for small results, whose length is only known once they are encoded.
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A frame longer than this is not copied into a buffer of its own size.
const COPIED: usize = 4 << 10;

/// Moves a frame into a buffer of exactly its size, since it may wait long to be read. A buffer
/// without spare capacity also becomes `Bytes` without another allocation.
fn exactly(mut frame: Vec<u8>) -> Bytes {
    if frame.len() > COPIED {
        frame.shrink_to_fit();
        return frame.into();
    }
    let exact = Bytes::copy_from_slice(&frame);
    if frame.capacity() <= 2 * COPIED {
        frame.clear();
        SCRATCH.set(frame);
    }
    exact
}
