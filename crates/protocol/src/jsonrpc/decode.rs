//! Decodes bytes to one message or one precise fault.

use std::ops::Range;

use bytes::Bytes;

use super::params::Index;
use super::scan::{self, Scanner, Written};
use super::{
    DecodeError, DecodeFault, ErrorObject, Kind, Message, Notification, Params, RawJson, Request,
    RequestId, Response, Text,
};

/// Decodes one message. `depth` limits the nesting of brackets, including those of the envelope; it
/// is capped at [`MAX_DEPTH`](super::MAX_DEPTH).
///
/// An array is refused: see [`decode_batch`].
pub fn decode(frame: &Bytes, depth: usize) -> Result<Message, DecodeError> {
    let text = utf8(frame)?;
    let mut scanner = Scanner::new(text, depth);
    match scanner.peek() {
        Some(b'{') => decode_object(frame, text, depth),
        Some(b'[') => Err(DecodeFault::BatchNotAllowed.into()),
        _ => {
            scanner.value()?;
            scanner.end()?;
            Err(DecodeFault::NotAnObject.into())
        }
    }
}

/// Decodes a batch into messages, each of which may fail separately.
///
/// Only the revision 2025-03-26 has batches. A frame with a single message gives a batch of one. An
/// empty array and broken JSON are faults of the whole batch.
///
/// A batch of more than `most` messages is refused as a whole, before any message is decoded.
pub fn decode_batch(
    frame: &Bytes,
    depth: usize,
    most: usize,
) -> Result<Vec<Result<Message, DecodeError>>, DecodeError> {
    let text = utf8(frame)?;
    if !is_batch(frame) {
        return Ok(vec![decode(frame, depth)]);
    }
    let mut scanner = Scanner::new(text, depth);
    let mut parts = Vec::new();
    scanner.elements(|range| {
        parts.push(frame.slice(range));
        parts.len() <= most
    })?;
    if parts.len() > most {
        return Err(DecodeFault::BatchTooLong { limit: most }.into());
    }
    scanner.end()?;
    match parts.is_empty() {
        true => Err(DecodeFault::EmptyBatch.into()),
        false => Ok(parts.iter().map(|part| decode(part, depth)).collect()),
    }
}

/// Whether the frame is an array, judged by its first character.
pub fn is_batch(frame: &[u8]) -> bool {
    frame.trim_ascii_start().first() == Some(&b'[')
}

fn utf8(frame: &Bytes) -> Result<&str, DecodeError> {
    str::from_utf8(frame).map_err(|error| {
        let at = error.valid_up_to();
        DecodeFault::NotUtf8 { at }.into()
    })
}

fn decode_object(frame: &Bytes, text: &str, depth: usize) -> Result<Message, DecodeError> {
    let mut envelope = Envelope::default();
    let walked = envelope.walk(text, depth);
    let source = Source { frame, text };
    walked
        .map_err(|fault| *fault)
        .and_then(|()| envelope.message(source))
        .map_err(|fault| DecodeError {
            fault,
            id: envelope.id.as_ref().and_then(|id| source.id(id).ok()),
            looks_like: envelope.looks_like(),
            excerpt: None,
        })
}

/// The position of each field of the envelope.
#[derive(Default)]
struct Envelope {
    jsonrpc: Option<Range<usize>>,
    id: Option<Range<usize>>,
    method: Option<Range<usize>>,
    params: Option<Range<usize>>,
    result: Option<Range<usize>>,
    error: Option<Range<usize>>,
    /// The members of `params`, if it is an object.
    members: Index,
    /// Unknown fields. They are ignored, but must not be repeated either.
    others: Vec<String>,
    /// The field at whose value the scan stopped.
    broken: Option<String>,
}

/// More unknown fields than this are refused, since each is compared with all others.
const OTHER_FIELDS: usize = 16;

impl Envelope {
    fn walk(&mut self, text: &str, depth: usize) -> Result<(), Box<DecodeFault>> {
        let mut scanner = Scanner::new(text, depth);
        let walked = scanner.members(0, |scanner, key| self.member(scanner, &key));
        if walked.is_err() {
            self.broken = scanner.last_key().map(Into::into);
        }
        // If the scan stopped at the id, the id is not reliable: `1` may be the beginning of `12`,
        // and of two ids neither is preferred. An error must not name another request.
        if self.broken.as_deref() == Some("id") {
            self.id = None;
        }
        walked?;
        scanner.end()?;
        Ok(())
    }

    /// The kind of message, as far as known.
    fn looks_like(&self) -> Kind {
        let has = |field: &Option<Range<usize>>, name: &str| {
            field.is_some() || self.broken.as_deref() == Some(name)
        };
        let answers = has(&self.result, "result") || has(&self.error, "error");
        match (has(&self.method, "method"), answers, has(&self.id, "id")) {
            (false, true, _) => Kind::Response,
            (true, _, false) => Kind::Notification,
            (true, _, true) => Kind::Request,
            (false, false, _) => Kind::Unknown,
        }
    }

    #[inline]
    fn member(
        &mut self,
        scanner: &mut Scanner<'_>,
        key: &Written<'_>,
    ) -> Result<(), Box<DecodeFault>> {
        let field = match &*key.bytes() {
            b"jsonrpc" => &mut self.jsonrpc,
            b"id" => &mut self.id,
            b"method" => &mut self.method,
            b"params" if scanner.peek() == Some(b'{') => {
                let mut members = Index::default();
                let params = members.scan(scanner)?;
                self.members = members;
                return note(&mut self.params, params, key);
            }
            b"params" => &mut self.params,
            b"result" => &mut self.result,
            b"error" => &mut self.error,
            _ => {
                scanner.value_within(1)?;
                return self.other(&key.unescaped());
            }
        };
        note(field, scanner.value_within(1)?, key)
    }

    #[cold]
    fn other(&mut self, name: &str) -> Result<(), Box<DecodeFault>> {
        let twice = self.others.iter().any(|seen| seen == name);
        self.others.push(name.to_owned());
        if self.others.len() > OTHER_FIELDS {
            let limit = OTHER_FIELDS;
            return Err(DecodeFault::TooManyFields { limit }.into());
        }
        match twice {
            true => Err(DecodeFault::DuplicateKey(name.to_owned()).into()),
            false => Ok(()),
        }
    }

    fn message(&self, source: Source<'_>) -> Result<Message, DecodeFault> {
        match self.jsonrpc.clone().map(|range| &source.text[range]) {
            Some("\"2.0\"") => {}
            Some(_) => return Err(DecodeFault::VersionWrong),
            None => return Err(DecodeFault::VersionMissing),
        }
        match (&self.method, &self.result, &self.error) {
            (Some(method), None, None) => self.call(source, method),
            (None, Some(result), None) => Ok(Message::Response(Response {
                id: match &self.id {
                    Some(id) => source.id(id)?,
                    None => return Err(DecodeFault::IdMissing),
                },
                body: Ok(source.raw(result)),
            })),
            (None, None, Some(error)) => self.refusal(source, error),
            (None, None, None) => Err(DecodeFault::NoKind),
            _ => Err(DecodeFault::SeveralKinds),
        }
    }

    fn call(&self, source: Source<'_>, method: &Range<usize>) -> Result<Message, DecodeFault> {
        let id = self.id.as_ref().map(|id| source.id(id)).transpose()?;
        let method = source.string(method).ok_or(DecodeFault::MethodNotString)?;
        let params = self.params.as_ref().map(|params| source.raw(params));
        if params.as_ref().is_some_and(|params| !params.is_object()) {
            return Err(DecodeFault::ParamsNotObject);
        }
        Ok(match id {
            Some(id) => {
                let params = params.map(|params| Params::indexed(params, self.members));
                Message::Request(Request { id, method, params })
            }
            None => Message::Notification(Notification { method, params }),
        })
    }

    /// JSON-RPC allows an error without an id, or with `null`, if the request could not be read.
    fn refusal(&self, source: Source<'_>, error: &Range<usize>) -> Result<Message, DecodeFault> {
        let error = source.error(error)?;
        let id = match &self.id {
            Some(id) if &source.text[id.clone()] != "null" => source.id(id)?,
            _ => return Ok(Message::Unaddressed(error)),
        };
        Ok(Message::Response(Response {
            id,
            body: Err(error),
        }))
    }
}

/// Records the position of a field. A repeated field is an error.
#[inline]
fn note(
    field: &mut Option<Range<usize>>,
    value: Range<usize>,
    key: &Written<'_>,
) -> Result<(), Box<DecodeFault>> {
    match field.replace(value) {
        None => Ok(()),
        Some(_) => Err(DecodeFault::DuplicateKey(key.unescaped().into_owned()).into()),
    }
}

/// The frame that the ranges of an [`Envelope`] point into.
#[derive(Clone, Copy)]
struct Source<'a> {
    frame: &'a Bytes,
    text: &'a str,
}

impl Source<'_> {
    fn raw(&self, range: &Range<usize>) -> RawJson {
        RawJson::from_scanned(self.frame.slice(range.clone()))
    }

    fn string(&self, range: &Range<usize>) -> Option<Text> {
        let inner = self.text[range.clone()]
            .strip_prefix('"')?
            .strip_suffix('"')?;
        Some(match scan::unescape(inner) {
            std::borrow::Cow::Borrowed(plain) => Text::slice(self.frame, plain),
            std::borrow::Cow::Owned(resolved) => resolved.into(),
        })
    }

    fn id(&self, range: &Range<usize>) -> Result<RequestId, DecodeFault> {
        let text = &self.text[range.clone()];
        match text.as_bytes()[0] {
            b'"' => Ok(RequestId::from(&*scan::unescape(&text[1..text.len() - 1]))),
            b'-' | b'0'..=b'9' if text.contains(['.', 'e', 'E']) => Err(DecodeFault::IdFraction),
            b'-' | b'0'..=b'9' => text
                .parse()
                .map(RequestId::Number)
                .map_err(|_| DecodeFault::IdOutOfRange),
            b'n' => Err(DecodeFault::IdNull),
            _ => Err(DecodeFault::IdWrongType),
        }
    }

    fn error(&self, range: &Range<usize>) -> Result<ErrorObject, DecodeFault> {
        if !self.text[range.clone()].starts_with('{') {
            return Err(DecodeFault::ErrorNotObject);
        }
        let (mut code, mut message, mut data) = (None, None, None);
        let text = &self.text[range.clone()];
        let frame = &self.frame.slice(range.clone());
        let inner = Source { frame, text };
        let walked = Scanner::new(text, scan::MAX_DEPTH).members(0, |scanner, key| {
            let value = scanner.value_within(1)?;
            let field = match &*key.bytes() {
                b"code" => &mut code,
                b"message" => &mut message,
                b"data" => &mut data,
                _ => return Ok(()),
            };
            note(field, value, &key)
        });
        walked.map_err(|fault: Box<DecodeFault>| *fault)?;
        let code = code.ok_or(DecodeFault::ErrorCodeMissing)?;
        let message = message.ok_or(DecodeFault::ErrorMessageMissing)?;
        Ok(ErrorObject {
            code: text[code]
                .parse()
                .map_err(|_| DecodeFault::ErrorCodeNotInteger)?,
            message: inner
                .string(&message)
                .ok_or(DecodeFault::ErrorMessageNotString)?
                .to_string(),
            data: data.map(|data| inner.raw(&data)),
        })
    }
}
