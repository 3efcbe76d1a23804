//! One exchange of the client: a POST, and its response.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use belay_protocol::engine::{CallId, Closing, LossKind, Waiting};
use belay_protocol::jsonrpc::{self, DecodeError, DecodeFault, Message, RawJson};
use belay_protocol::types::legacy::Initialize;
use belay_protocol::types::{Era, ProtocolVersion, Request as _};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use tokio_util::sync::CancellationToken;

use super::super::headers;
use super::address::Address;
use super::answer::{self, Content, HttpAnswer, Unread};
use super::connect::Connections;
use super::post_body::PostBody;
use super::stream::Stream;
use crate::driver::{Direction, ExchangeHandle, ExchangeStep, Link, Tap, fenced};
use crate::sync::Mutex;

/// What all exchanges with a server share.
pub(super) struct Place {
    pub(super) address: Address,
    pub(super) connections: Connections,
    pub(super) tap: Option<Tap>,
    /// The limits on received messages: bytes, and nesting depth.
    pub(super) limits: (usize, usize),
    /// Where answers arrive.
    pub(super) answers: Answers,
    /// The session id, in the legacy era.
    session: Mutex<Option<HeaderValue>>,
    /// Cancelled when the server has answered the GET for its notifications.
    pub(super) listens: CancellationToken,
}

/// Where the answers to posted requests arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Answers {
    /// In the response to the POST.
    InResponse,
    /// On the event stream of 2024-11-05.
    OnStream,
}

impl Place {
    pub(super) fn new(
        address: Address,
        connections: Connections,
        tap: Option<Tap>,
        limits: (usize, usize),
    ) -> Self {
        Self {
            address,
            connections,
            tap,
            limits,
            answers: Answers::InResponse,
            session: Mutex::default(),
            listens: CancellationToken::new(),
        }
    }

    pub(super) fn session(&self) -> Option<HeaderValue> {
        self.session.lock().clone()
    }

    fn begin_session(&self, headers: &HeaderMap) {
        let session = headers.get(headers::SESSION_ID).cloned();
        *self.session.lock() = session;
    }

    /// A request without a body, such as the GET or DELETE of a session.
    pub(super) fn about_session(&self, method: Method, link: &Link) -> Request<PostBody> {
        let mut request = Request::new(PostBody::empty());
        *request.method_mut() = method;
        *request.uri_mut() = self.address.uri().clone();
        let headers = request.headers_mut();
        headers.insert(ACCEPT, headers::EVENT_STREAM);
        headers.extend(self.session().map(|session| (headers::SESSION_ID, session)));
        headers.extend(link.agreed_version().map(version_header));
        request
    }

    pub(super) fn show(&self, way: Direction, frame: &[u8]) {
        if let Some(tap) = &self.tap {
            fenced("tap", || tap(way, frame));
        }
    }

    /// Decodes a message. If that fails, the error carries an excerpt.
    pub(super) fn read(
        &self,
        frame: &Bytes,
        excerpt: impl FnOnce() -> String,
    ) -> Result<Message, DecodeError> {
        self.show(Direction::In, frame);
        let message = jsonrpc::decode(frame, self.limits.1);
        message.map_err(|error| DecodeError {
            excerpt: Some(excerpt()),
            ..error
        })
    }

    /// Whether a response says that the session has ended, and with it the connection.
    pub(super) fn is_gone(&self, status: StatusCode, named: bool) -> bool {
        named && status == StatusCode::NOT_FOUND
    }
}

fn version_header(version: ProtocolVersion) -> (http::HeaderName, HeaderValue) {
    let version = HeaderValue::from_static(version.as_str());
    (headers::PROTOCOL_VERSION, version)
}

/// Carries an exchange from its beginning to its end.
pub(super) async fn carry(place: Arc<Place>, handle: ExchangeHandle) {
    loop {
        let waiting = match poll_fn(|cx| handle.poll_step(cx)).await {
            ExchangeStep::Write(waiting) => waiting,
            ExchangeStep::Over(_) | ExchangeStep::Replaced | ExchangeStep::CloseStream(_) => return,
        };
        let going_on = async {
            match waiting {
                Waiting::Call(call) => {
                    ask(&place, &handle, call).await;
                    // The engine knows the result now, and decides what is next.
                    poll_fn(|cx| handle.poll_over(cx)).await;
                }
                _ => tell(&place, &handle).await,
            }
        };
        let mut going_on = std::pin::pin!(going_on);
        tokio::select! {
            biased;
            how = poll_fn(|cx| handle.poll_over(cx)) => {
                // The pending work is dropped when the exchange is over: on modern HTTP that closes
                // the stream, which is the cancellation. But a stream that has delivered its answer
                // is about to end, and then its connection can be reused.
                if how == Closing::Finished {
                    let _ = tokio::time::timeout(LAST_MOMENT, going_on).await;
                }
                return;
            }
            () = &mut going_on => {}
        }
    }
}

/// The time for a stream to end after its answer.
const LAST_MOMENT: Duration = Duration::from_millis(100);

/// Posts a call.
async fn ask(place: &Place, handle: &ExchangeHandle, call: CallId) {
    let Some((request, opens)) = place.call(handle, call) else {
        return;
    };
    let named = request.headers().contains_key(headers::SESSION_ID);
    let response = match place.connections.send(request).await {
        Ok(response) => response,
        Err(loss) => return handle.lost(loss, false),
    };
    let success = response.status().is_success();
    match place.answers {
        Answers::OnStream if success => return taken(handle, response).await,
        // A refused POST is not answered on the stream.
        Answers::OnStream => {}
        Answers::InResponse => {
            handle.acknowledged();
            if opens && success {
                place.begin_session(response.headers());
            }
        }
    }
    understand(place, handle, response, named, call).await;
}

/// Handles a call whose answer comes on the event stream: the response only acknowledges it.
async fn taken(handle: &ExchangeHandle, response: Response<Incoming>) {
    handle.acknowledged();
    answer::drain(response.into_body()).await;
}

/// Handles the response to a call.
async fn understand(
    place: &Place,
    handle: &ExchangeHandle,
    response: Response<Incoming>,
    named: bool,
    asked: CallId,
) {
    let (parts, body) = response.into_parts();
    let (status, headers) = (parts.status, &parts.headers);
    match answer::content(headers) {
        _ if place.is_gone(status, named) => {
            let mut loss = answer::odd(status, headers, body).await;
            loss.kind = LossKind::SessionGone;
            handle.link().lose(loss);
        }
        Content::Events if status == StatusCode::OK => {
            Stream::new(place, handle).read(body).await;
        }
        Content::Json if status != StatusCode::ACCEPTED => {
            let body = match answer::read(body, place.limits.0).await {
                Ok(body) => body,
                Err(Unread::TooLong { limit }) => {
                    let fault = DecodeFault::TooLong { limit };
                    return handle.deliver(Err(fault.into()));
                }
                Err(Unread::Broken(loss)) => return handle.lost(loss, false),
            };
            match status.is_success() || speaks_for_itself(place, handle, status, &body, asked) {
                true if !body.is_empty() => {
                    handle.deliver_last(place.read(&body, || {
                        HttpAnswer::new(status, headers, &body).to_string()
                    }));
                }
                _ => handle.lost(answer::unexpected(status, headers, &body), false),
            }
        }
        _ => handle.lost(answer::odd(status, headers, body).await, false),
    }
}

/// Whether the body of an error status is nevertheless the answer to the call. It is not for
/// authorization failures, nor for a server error before the era is known. Some servers give HTTP
/// errors an id that was never used.
fn speaks_for_itself(
    place: &Place,
    handle: &ExchangeHandle,
    status: StatusCode,
    body: &Bytes,
    asked: CallId,
) -> bool {
    let closed = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    // Until the era is known, only statuses that indicate it count.
    let tells_the_era = matches!(
        status,
        StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED
    );
    let open = handle.link().version().is_some();
    if closed || !(open || tells_the_era) {
        return false;
    }
    match jsonrpc::decode(body, 64) {
        Ok(Message::Response(response)) => {
            response.body.is_err() && response.id == asked.request_id()
        }
        // Where answers come on a stream, only an answer with the call's id counts.
        Ok(Message::Unaddressed(_)) => place.answers == Answers::InResponse,
        _ => false,
    }
}

/// Posts a message that needs no answer. It is done when the server has accepted it.
async fn tell(place: &Place, handle: &ExchangeHandle) {
    let mut attempts = 0;
    let (response, named) = loop {
        let Some(frame) = handle.peek() else {
            return;
        };
        let mut request = place.post(handle, &frame, false);
        place.name_session(request.headers_mut(), handle.link().agreed_version());
        let named = request.headers().contains_key(headers::SESSION_ID);
        match place.connections.send_beside(request).await {
            Ok(response) => break (response, named),
            // The connection was about to close and took nothing of the message, so
            // this is not a repetition.
            Err(_) if handle.peek().is_some() && attempts < ATTEMPTS => attempts += 1,
            Err(loss) => return handle.lost(loss, false),
        }
    };
    if place.is_gone(response.status(), named) {
        return handle.link().lose(LossKind::SessionGone.into());
    }
    if !response.status().is_success() {
        let status = response.status();
        tracing::debug!(%status, "a notification was refused");
    }
    handle.link().write_done(handle.exchange());
    answer::drain(response.into_body()).await;
}

/// How often a message that was not sent is tried again.
const ATTEMPTS: usize = 3;

impl Place {
    /// The POST for a waiting call, and whether it opens a session.
    fn call(&self, handle: &ExchangeHandle, call: CallId) -> Option<(Request<PostBody>, bool)> {
        let waiting = handle.peek_call(call)?;
        let mut request = self.post(handle, &waiting.frame, true);
        let headers = request.headers_mut();
        let posted = waiting.waiter.as_ref().and_then(|waiter| waiter.posted());
        let Some(posted) = posted else {
            let opens = self.open(headers, &waiting.frame);
            return Some((request, opens));
        };
        match waiting.version {
            Some(version) if version.era() == Era::Modern => {
                modern_headers(headers, version, &posted.method, posted.name.clone());
                headers.extend(posted.param_headers.iter().cloned());
            }
            version => self.name_session(headers, version),
        }
        Some((request, false))
    }

    /// The POST for a waiting frame.
    fn post(&self, handle: &ExchangeHandle, frame: &Bytes, is_call: bool) -> Request<PostBody> {
        let mut request = Request::new(PostBody::frame(handle, frame, is_call, self.tap.clone()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.address.uri().clone();
        let headers = request.headers_mut();
        headers.reserve(8);
        headers.insert(CONTENT_TYPE, headers::JSON);
        headers.insert(ACCEPT, headers::BOTH);
        request
    }

    /// Adds the headers for the protocol version and the session.
    fn name_session(&self, headers: &mut HeaderMap, version: Option<ProtocolVersion>) {
        // The revision with event streams knows neither header.
        if self.answers == Answers::OnStream {
            return;
        }
        headers.extend(version.map(version_header));
        let session = self.session();
        headers.extend(session.map(|session| (headers::SESSION_ID, session)));
    }

    /// Adds the headers of the engine's own handshake request. Returns whether that
    /// opens a session.
    fn open(&self, headers: &mut HeaderMap, frame: &Bytes) -> bool {
        use belay_protocol::types::meta_key::PROTOCOL_VERSION;

        let Ok(Message::Request(request)) = jsonrpc::decode(frame, usize::MAX) else {
            return false;
        };
        let params = request.params.unwrap_or(RawJson::empty_object().into());
        let version = params
            .field("_meta")
            .and_then(|meta| meta.field(PROTOCOL_VERSION));
        let version = version.as_ref().and_then(RawJson::as_text);
        if let Some(version) = version.and_then(|version| version.parse().ok()) {
            let name = headers::name(&request.method, &params);
            modern_headers(headers, version, &request.method, name);
        }
        request.method == *Initialize::METHOD
    }
}

/// The headers that repeat parts of a modern request's body.
fn modern_headers(
    headers: &mut HeaderMap,
    version: ProtocolVersion,
    method: &str,
    name: Option<HeaderValue>,
) {
    headers.extend([version_header(version)]);
    headers.insert(headers::METHOD, headers::encode(method));
    headers.extend(name.map(|name| (headers::NAME, name)));
}
