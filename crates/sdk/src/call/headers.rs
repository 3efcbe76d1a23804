//! Tool calls that repeat arguments in HTTP headers, and their repetition when those do not match.

use belay_protocol::jsonrpc::RawJson;
#[cfg(feature = "http")]
use belay_protocol::jsonrpc::Text;
#[cfg(feature = "http")]
use belay_protocol::types::{CallTool, error_code};
use belay_protocol::types::{ListTools, Meta, Request as _};
#[cfg(feature = "http")]
use http::{HeaderName, HeaderValue};

use super::layer::{CallRequest, Trip};
use crate::Error;
#[cfg(feature = "http")]
use crate::client::CallHooks;
use crate::client::PAGES;
#[cfg(feature = "http")]
use crate::sync::{Mutex, MutexGuard};
#[cfg(feature = "http")]
use crate::transport::http::param_headers::KnownTools;

/// The headers of the last tool call, if tools may ask for any. They are kept because another call
/// may have learned other headers by the time this one is refused.
#[cfg(feature = "http")]
#[derive(Default)]
pub(super) struct Said(Mutex<Option<LastCall>>);

/// The parameters as the layers left them, and the headers that were sent with them.
#[cfg(feature = "http")]
pub(super) struct LastCall {
    known: KnownTools,
    params: RawJson,
    headers: Vec<(HeaderName, HeaderValue)>,
}

#[cfg(feature = "http")]
impl Said {
    pub(super) fn note(&self, hooks: &CallHooks, request: &CallRequest) {
        // Other requests that layers make are not recorded.
        if let Some(last) = LastCall::of(hooks, &request.method, &request.params) {
            *self.lock() = Some(last);
        }
    }

    /// The headers that repeat arguments of a request.
    pub(super) fn headers(&self, request: &CallRequest) -> Vec<(HeaderName, HeaderValue)> {
        let last = self.lock();
        let last = last
            .as_ref()
            .filter(|_| request.method == *CallTool::METHOD);
        last.map_or_else(Vec::new, |last| last.headers.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Option<LastCall>> {
        self.0.lock()
    }
}

#[cfg(feature = "http")]
impl From<Option<LastCall>> for Said {
    fn from(last: Option<LastCall>) -> Self {
        Self(Mutex::new(last))
    }
}

#[cfg(feature = "http")]
impl LastCall {
    /// Records a call, if it is a tool call and this connection repeats arguments in headers.
    pub(super) fn of(hooks: &CallHooks, method: &Text, params: &RawJson) -> Option<Self> {
        let known = hooks.known_tools.as_ref();
        let known = known.filter(|_| *method == *CallTool::METHOD)?;
        Some(Self {
            known: known.clone(),
            params: params.clone(),
            headers: known.headers(params),
        })
    }

    pub(super) fn headers(&self) -> &[(HeaderName, HeaderValue)] {
        &self.headers
    }

    /// Whether the headers would be different now.
    fn is_behind(&self) -> bool {
        self.known.headers(&self.params) != self.headers
    }
}

impl Trip {
    /// Makes one request through all layers.
    ///
    /// A call with mismatched headers was refused before it did anything. The specification
    /// asks the client to list the tools and to repeat the call, so this is the only call
    /// that is repeated without being asked for (**retry-is-explicit**): once, and only if
    /// the headers are different now.
    #[cfg(feature = "http")]
    pub(super) async fn round(
        &self,
        request: CallRequest,
        first: Option<Result<RawJson, Error>>,
    ) -> Result<RawJson, Error> {
        let result = self.made(&request, first).await;
        let refusal = result.as_ref().err().and_then(Error::refusal);
        let last = self.said.lock().take();
        let (Some(error_code::HEADER_MISMATCH), Some(last)) = (refusal.map(|it| it.code), last)
        else {
            return result;
        };
        match self.learn_tools().await.is_ok() && last.is_behind() {
            true => self.by_layers(request).await,
            false => result,
        }
    }

    /// Makes one request through all layers.
    #[cfg(not(feature = "http"))]
    pub(super) async fn round(
        &self,
        request: CallRequest,
        first: Option<Result<RawJson, Error>>,
    ) -> Result<RawJson, Error> {
        self.made(&request, first).await
    }

    /// Makes one request, unless it was already made.
    async fn made(
        &self,
        request: &CallRequest,
        first: Option<Result<RawJson, Error>>,
    ) -> Result<RawJson, Error> {
        match first {
            Some(first) => self.checked(request, first?).await,
            None => self.by_layers(request.clone()).await,
        }
    }

    /// Lists the tools again, because one of them has changed.
    pub(super) async fn learn_tools(&self) -> Result<(), Error> {
        self.outlet.hooks.forget_tools();
        let mut list = CallRequest {
            method: ListTools::METHOD.into(),
            params: RawJson::empty_object(),
            meta: Meta::default(),
        };
        for _ in 0..PAGES {
            let page = self.by_layers(list.clone()).await?;
            let cursor = page.field("nextCursor");
            let Some(cursor) = cursor.filter(|cursor| cursor.as_text().is_some()) else {
                break;
            };
            let params = RawJson::empty_object().with_member("cursor", &cursor);
            list.params = params.expect("it is an object");
        }
        Ok(())
    }
}
