//! Encodes the messages that the engine sends.

use std::borrow::Cow;

use bytes::Bytes;

use crate::jsonrpc::{ErrorObject, FrameWriter, RawJson, RequestId, Text};
use crate::types::{
    CancelledParams, Meta, Notification, ProgressParams, ProgressToken, ProtocolVersion, meta_key,
};

use super::{Ask, CallId, Identity};

/// The part of a modern request's `_meta` that is the same for all requests of a client. It is
/// encoded once, as members without the braces around them.
#[derive(Clone, Debug)]
pub(super) struct ClientMeta(Bytes);

impl ClientMeta {
    pub(super) fn new(identity: &Identity, version: ProtocolVersion) -> Self {
        let mut meta = Meta::default();
        let mut set = |key, value: serde_json::Result<serde_json::Value>| {
            meta.set(key, value.expect("our own types are always valid JSON"))
                .expect("a value is always valid JSON");
        };
        set(
            meta_key::PROTOCOL_VERSION,
            serde_json::to_value(version.as_str()),
        );
        if let Identity::Client { info, capabilities } = identity {
            set(meta_key::CLIENT_INFO, serde_json::to_value(info));
            set(
                meta_key::CLIENT_CAPABILITIES,
                serde_json::to_value(capabilities),
            );
        }
        Self(members(&meta))
    }
}

/// `{"a":1,"b":2}` without its braces.
fn members(meta: &Meta) -> Bytes {
    let json = serde_json::to_vec(meta).expect("a map of values is always valid JSON");
    let inside = 1..json.len() - 1;
    Bytes::from(json).slice(inside)
}

/// Encodes an outgoing call with its `_meta`. Every call except the handshake carries a progress
/// token, so that progress can reset its idle timeout.
pub(super) fn call(id: CallId, ask: &Ask, standing: Option<&ClientMeta>) -> Bytes {
    let room = ask.params.as_bytes().len() + standing.map_or(0, |meta| meta.0.len());
    let mut writer = FrameWriter::with_room_for(room + 64)
        .id(&id.request_id())
        .method(&ask.method);
    writer.raw(br#","params":{"_meta":{"#);
    if let Some(standing) = standing {
        writer.raw(&standing.0);
        writer.raw(b",");
    }
    writer.raw(br#""progressToken":"#);
    writer.json(&id.request_id());
    let given = given(&ask.meta, standing.is_some());
    if !given.is_empty() {
        writer.raw(b",");
        writer.raw(&members(&given));
    }
    writer.raw(b"}");
    let params = ask.params.as_bytes();
    let inner = params[1..params.len() - 1].trim_ascii();
    if !inner.is_empty() {
        writer.raw(b",");
        writer.raw(inner);
    }
    writer.raw(b"}");
    writer.finish()
}

/// The caller's `_meta`, without the keys that the engine writes itself: no key may appear twice.
fn given(meta: &Meta, modern: bool) -> Cow<'_, Meta> {
    const STANDING: [&str; 3] = [
        meta_key::PROTOCOL_VERSION,
        meta_key::CLIENT_INFO,
        meta_key::CLIENT_CAPABILITIES,
    ];
    let standing = STANDING.into_iter().filter(|_| modern);
    let ours = standing.chain([meta_key::PROGRESS_TOKEN]);
    let twice = ours.filter(|key| meta.as_map().contains_key(*key));
    twice.fold(Cow::Borrowed(meta), |mut given, key| {
        given.to_mut().remove(key);
        given
    })
}

/// Encodes `initialize`, without any `_meta`: the oldest servers are strict about it.
pub(super) fn plain_call(id: CallId, method: &str, params: &RawJson) -> Bytes {
    FrameWriter::with_room_for(params.as_bytes().len())
        .id(&id.request_id())
        .method(method)
        .params(Some(params))
        .finish()
}

pub(super) fn cancelled(id: CallId, reason: Option<&str>) -> Bytes {
    let mut params = CancelledParams::new(id.request_id());
    params.reason = reason.map(str::to_owned);
    typed(&params)
}

pub(super) fn progress(
    token: &ProgressToken,
    progress: f64,
    total: Option<f64>,
    message: Option<&str>,
) -> Bytes {
    let mut params = ProgressParams::new(token.clone(), progress);
    params.total = total.map(Into::into);
    params.message = message.map(str::to_owned);
    typed(&params)
}

pub(super) fn typed<N: Notification>(params: &N) -> Bytes {
    let params = RawJson::encode(params).expect("our own types are always valid JSON");
    notification(&Text::from_static(N::METHOD), Some(&params))
}

pub(super) fn notification(method: &str, params: Option<&RawJson>) -> Bytes {
    FrameWriter::with_room_for(params.map_or(0, |params| params.as_bytes().len()))
        .method(method)
        .params(params)
        .finish()
}

pub(super) fn answer(id: &RequestId, answer: &Result<RawJson, ErrorObject>) -> Bytes {
    let writer = match answer {
        Ok(result) => FrameWriter::for_result(id, result),
        Err(_) => FrameWriter::new(),
    };
    writer.id(id).body(answer).finish()
}

/// Encodes an error for a message whose id could not be read.
pub(super) fn unaddressed(error: &ErrorObject) -> Bytes {
    FrameWriter::new().error(error).finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{ClientCapabilities, Implementation};

    /// A caller passes on the `_meta` of a request that it received.
    #[test]
    fn what_we_say_ourselves_is_said_once() {
        let mut ask = Ask::new("tools/call", RawJson::empty_object());
        let ours = [
            meta_key::PROTOCOL_VERSION,
            meta_key::CLIENT_INFO,
            meta_key::CLIENT_CAPABILITIES,
            meta_key::PROGRESS_TOKEN,
        ];
        for key in ours.into_iter().chain(["example.com/user"]) {
            ask.meta.set(key, "theirs").expect("a text is valid JSON");
        }
        let identity = Identity::Client {
            info: Implementation::new("c", "1"),
            capabilities: ClientCapabilities::new(),
        };
        let standing = ClientMeta::new(&identity, ProtocolVersion::V2026_07_28);
        let frame = call(CallId(7), &ask, Some(&standing));
        let frame = String::from_utf8(frame.to_vec()).expect("text");
        for key in ours {
            assert_eq!(frame.matches(&format!("\"{key}\":")).count(), 1, "{frame}");
        }
        assert_eq!(frame.matches("theirs").count(), 1, "{frame}");
        assert!(frame.contains(r#""example.com/user":"theirs""#), "{frame}");
    }
}
