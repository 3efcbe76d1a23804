//! `HttpService`: routing of HTTP requests by path, method and era.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use belay_protocol::engine::{Ledger, Shutdown};
use belay_protocol::jsonrpc::{self, DecodeError, DecodeFault, Message};
use belay_protocol::types::modern::Listen;
use belay_protocol::types::{Era, ProtocolVersion, Request as _};
use bytes::{Buf, Bytes};
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue, ORIGIN};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use tokio::sync::Semaphore;

use super::super::headers;
use super::body::Body;
use super::classify::{MessageFacts, PostKind, check_modern, check_version, is_initialize};
use super::refusal::Refusal;
use super::request_body::{self, Allowed};
use super::shared::{Caller, Owner, Shared};
use super::{access, cors, event_stream, exchange, session};
use crate::Principal;
use crate::driver::{Peer, Pool};

/// A server as a service for hyper or axum. It is cheap to clone, and all clones
/// are the same server.
///
/// When the last clone is dropped, running handlers are stopped at once. For an orderly end
/// see [`HttpService::shutdown`].
#[derive(Clone)]
pub struct HttpService {
    owner: Arc<Owner>,
    /// The connection that it serves, where that is known.
    connection: Option<Connection>,
}

/// One connection.
#[derive(Clone)]
struct Connection {
    /// Limits the handlers of the connection.
    gate: Arc<Semaphore>,
    peer: Arc<Peer>,
}

impl HttpService {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self {
            owner: Arc::new(Owner(shared)),
            connection: None,
        }
    }

    /// The service for one connection.
    pub(super) fn on_connection(&self, peer: Arc<Peer>) -> Self {
        let limit = self.shared().options.in_flight_per_connection;
        let gate = Arc::new(Semaphore::new(limit));
        Self {
            owner: self.owner.clone(),
            connection: Some(Connection { gate, peer }),
        }
    }

    /// The caller of a request.
    fn caller(&self, parts: &Parts) -> Caller {
        let principal: Option<&Principal> = parts.extensions.get();
        let connection = self.connection.as_ref();
        let peers = &self.shared().peers;
        let peer = match (principal, connection) {
            (Some(principal), _) => peers.named(principal),
            (None, Some(connection)) => connection.peer.clone(),
            (None, None) => peers.unknown().clone(),
        };
        Caller {
            peer,
            principal: principal.cloned(),
            connection: connection.map(|connection| connection.gate.clone()),
        }
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.owner.0
    }

    /// Shuts down in good order (**orderly-close**), and waits for the end: new requests are
    /// refused, running handlers may finish within the drain time, then they are stopped, and all
    /// streams end. Stop accepting connections before you call this.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not stop the shutdown. A second call ends the drain at once.
    pub async fn shutdown(&self) {
        self.shared().connections.end(Shutdown::Drain);
        self.shared().connections.closed().await;
    }

    /// Counts of requests that began, and of how each ended.
    pub fn ledger(&self) -> Ledger {
        self.shared().ledger()
    }

    /// The number of handlers that run or are being stopped.
    pub fn handlers(&self) -> usize {
        self.shared().running()
    }

    /// The number of open legacy sessions, including event streams of 2024-11-05.
    pub fn sessions(&self) -> usize {
        self.shared().sessions.len() + self.shared().event_streams.len()
    }

    /// Ends all legacy sessions, as if each had been deleted: their handlers are stopped, and
    /// their clients open new sessions.
    pub fn forget_sessions(&self) {
        for session in self.shared().sessions.all() {
            session.end(self.shared());
        }
        self.shared().event_streams.end_all();
    }

    /// The number of open event streams.
    pub fn streams(&self) -> usize {
        self.shared().streams()
    }

    /// Handles one HTTP request.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future counts as a disconnect: a modern request is cancelled, a
    /// legacy one can be resumed.
    pub async fn answer<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body,
        B::Data: Buf,
    {
        let (parts, body) = request.into_parts();
        if let Err(refusal) = self.shared().options.names.check(&parts) {
            return refusal.into();
        }
        // Open requests are limited in number, however small they are.
        let caller = self.caller(&parts);
        let Some(place) = caller.peer.take(Pool::Requests, 1) else {
            let problem = "overloaded: too many requests are open; send it again later";
            return Refusal::new(StatusCode::SERVICE_UNAVAILABLE, problem).into();
        };
        let mut response = match self.route(&parts, body, &caller).await {
            Ok(response) => response,
            Err(refusal) => refusal.into(),
        }
        .map(|body| body.in_place(place));
        // The origin was checked above, so it is allowed.
        if let Some(origin) = parts.headers.get(ORIGIN) {
            cors::allow_origin(origin, response.headers_mut());
        }
        response
    }

    async fn route<B>(
        &self,
        parts: &Parts,
        body: B,
        caller: &Caller,
    ) -> Result<Response<Body>, Refusal>
    where
        B: http_body::Body,
        B::Data: Buf,
    {
        let options = &self.shared().options;
        access::check_headers(&parts.headers, options.headers)?;
        let path = parts.uri.path();
        if cors::is_preflight(parts) {
            let methods = self.methods_at(path).ok_or_else(|| nothing_at(path))?;
            return Ok(cors::preflight(&parts.headers, methods));
        }
        if options.with_metrics && parts.method == Method::GET {
            match path {
                "/healthz" => return Ok(self.health()),
                "/metrics" => return Ok(plain(StatusCode::OK, self.metrics())),
                _ => {}
            }
        }
        if options.sse && path.ends_with(event_stream::STREAM) {
            return self.event_stream(parts, caller);
        }
        if options.sse && path.ends_with(event_stream::MESSAGES) {
            return self.message(parts, body, caller).await;
        }
        if options.path.as_deref().is_some_and(|served| served != path) {
            return Err(nothing_at(path));
        }
        match parts.method {
            Method::POST => self.post(parts, body, caller).await,
            Method::GET => {
                self.check_sessions()?;
                access::check_stream_accept(&parts.headers)?;
                let session = self.session(parts)?;
                session.listen(self.shared(), caller, &parts.headers)
            }
            Method::DELETE => {
                self.check_sessions()?;
                self.session(parts)?.end(self.shared());
                let mut response = Response::new(Body::empty());
                *response.status_mut() = StatusCode::NO_CONTENT;
                Ok(response)
            }
            _ => Err(Refusal::method_not_allowed(self.allowed())),
        }
    }

    fn health(&self) -> Response<Body> {
        match self.shared().connections.is_closing() {
            false => plain(StatusCode::OK, "ok\n".to_owned()),
            true => plain(
                StatusCode::SERVICE_UNAVAILABLE,
                "shutting down\n".to_owned(),
            ),
        }
    }

    /// Handles a GET of 2024-11-05.
    fn event_stream(&self, parts: &Parts, caller: &Caller) -> Result<Response<Body>, Refusal> {
        if parts.method != Method::GET {
            return Err(Refusal::method_not_allowed("GET"));
        }
        access::check_stream_accept(&parts.headers)?;
        self.shared().check_open()?;
        event_stream::open(self.shared(), caller)
    }

    /// Handles a POST of 2024-11-05.
    async fn message<B>(
        &self,
        parts: &Parts,
        body: B,
        caller: &Caller,
    ) -> Result<Response<Body>, Refusal>
    where
        B: http_body::Body,
        B::Data: Buf,
    {
        if parts.method != Method::POST {
            return Err(Refusal::method_not_allowed("POST"));
        }
        let body = self.body(caller, &parts.headers, body).await?;
        event_stream::post(self.shared(), parts, &body).await
    }

    async fn body<B>(&self, caller: &Caller, headers: &HeaderMap, body: B) -> Result<Bytes, Refusal>
    where
        B: http_body::Body,
        B::Data: Buf,
    {
        access::check_content(headers)?;
        let shared = self.shared();
        let allowed = Allowed {
            bytes: shared.options.body_bytes,
            within: shared.options.body_within,
            peer: &caller.peer,
        };
        request_body::read(headers, body, allowed).await
    }

    /// The methods that are served at a path.
    fn methods_at(&self, path: &str) -> Option<&'static str> {
        let options = &self.shared().options;
        match path {
            "/healthz" | "/metrics" if options.with_metrics => Some("GET"),
            _ if options.sse && path.ends_with(event_stream::STREAM) => Some("GET"),
            _ if options.sse && path.ends_with(event_stream::MESSAGES) => Some("POST"),
            _ if options.path.as_deref().is_none_or(|served| served == path) => {
                Some(self.allowed())
            }
            _ => None,
        }
    }

    fn allowed(&self) -> &'static str {
        match self.shared().options.sessionless {
            true => "POST",
            false => "POST, GET, DELETE",
        }
    }

    /// GET and DELETE need sessions.
    fn check_sessions(&self) -> Result<(), Refusal> {
        match self.shared().options.sessionless {
            true => Err(Refusal::method_not_allowed(self.allowed())),
            false => Ok(()),
        }
    }

    fn session(&self, parts: &Parts) -> Result<Arc<session::Session>, Refusal> {
        check_version(&parts.headers)?;
        let principal = parts.extensions.get();
        self.shared().sessions.find(&parts.headers, principal)
    }

    async fn post<B>(
        &self,
        parts: &Parts,
        body: B,
        caller: &Caller,
    ) -> Result<Response<Body>, Refusal>
    where
        B: http_body::Body,
        B::Data: Buf,
    {
        let (shared, headers) = (self.shared(), &parts.headers);
        access::check_accept(headers)?;
        let options = &shared.options;
        let body = self.body(caller, headers, body).await?;
        if jsonrpc::is_batch(&body) {
            return self.batch(parts, &body).await;
        }
        let message = jsonrpc::decode(&body, options.depth);
        if let Ok(Message::Request(request)) = &message {
            let checked = match request.method == *Listen::METHOD {
                true => shared.check_open(),
                false => shared.check_room(),
            };
            checked.map_err(|refusal| refusal.about(&request.id))?;
        }
        let facts = MessageFacts::of(&message);
        match PostKind::of(headers, &message, &facts) {
            PostKind::Modern => {
                check_modern(shared.tools(), headers, &message, &facts)?;
                let link = shared.modern_link(caller);
                Ok(exchange::serve(shared, link, Era::Modern, message).await)
            }
            PostKind::Initialize if !options.sessionless => {
                check_version(headers)?;
                session::open(shared, caller, message).await
            }
            PostKind::Session if !options.sessionless => {
                let session = self.session(parts)?;
                Ok(session.serve(shared, vec![message]).await)
            }
            PostKind::Initialize | PostKind::Session | PostKind::Alone if options.sessionless => {
                let version = check_version(headers)?;
                let version = version.unwrap_or(ProtocolVersion::V2025_03_26);
                let link = match is_initialize(&message) {
                    true => shared.modern_link(caller),
                    false => shared.lone_link(version, caller),
                };
                Ok(exchange::serve(shared, link, Era::Legacy, message).await)
            }
            // On a link without a handshake, the engine answers with what the request lacks.
            _ if matches!(message, Ok(Message::Request(_)) | Err(_)) => {
                let link = shared.modern_link(caller);
                Ok(exchange::serve(shared, link, Era::Modern, message).await)
            }
            _ => {
                let problem = "send `Mcp-Session-Id` as `initialize` gave it, or \
                               `MCP-Protocol-Version` of a revision without sessions";
                Err(Refusal::new(StatusCode::BAD_REQUEST, problem))
            }
        }
    }

    /// Batches exist in one protocol version only, within its sessions.
    async fn batch(&self, parts: &Parts, body: &Bytes) -> Result<Response<Body>, Refusal> {
        let refused = |error: DecodeError| {
            Refusal::with_error(StatusCode::BAD_REQUEST, error.to_error_object())
        };
        let not_allowed = || refused(DecodeFault::BatchNotAllowed.into());
        if !parts.headers.contains_key(headers::SESSION_ID) {
            return Err(not_allowed());
        }
        let session = self.session(parts)?;
        if !session.version().is_some_and(ProtocolVersion::has_batches) {
            return Err(not_allowed());
        }
        let depth = self.shared().options.depth;
        self.shared().check_room()?;
        let messages = jsonrpc::decode_batch(body, depth, BATCH).map_err(refused)?;
        Ok(session.serve(self.shared(), messages).await)
    }
}

/// The most messages in a batch.
const BATCH: usize = 100;

fn nothing_at(path: &str) -> Refusal {
    let problem = format!("there is nothing at {path}");
    Refusal::new(StatusCode::NOT_FOUND, problem)
}

fn plain(status: StatusCode, text: String) -> Response<Body> {
    let mut response = Response::new(Body::full(text.into()));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

impl<B> tower_service::Service<Request<B>> for HttpService
where
    B: http_body::Body + Send + 'static,
    B::Data: Buf + Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move { Ok(this.answer(request).await) })
    }
}

impl fmt::Debug for HttpService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpService")
            .field("handlers", &self.handlers())
            .field("sessions", &self.sessions())
            .finish_non_exhaustive()
    }
}
