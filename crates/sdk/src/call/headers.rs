//! Calls that say something in headers, too, and what is done if that was not what their tool wants.

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

/// The last call of a tool, if its tool may want something in headers. What it wants may be known to
/// others by the time that the call is refused.
#[cfg(feature = "http")]
#[derive(Default)]
pub(super) struct Said(Mutex<Option<LastCall>>);

/// A call as the layers have left it, and what it said in headers.
#[cfg(feature = "http")]
pub(super) struct LastCall {
    known: KnownTools,
    params: RawJson,
    headers: Vec<(HeaderName, HeaderValue)>,
}

#[cfg(feature = "http")]
impl Said {
    pub(super) fn note(&self, hooks: &CallHooks, request: &CallRequest) {
        // What layers ask besides is no call of a tool.
        if let Some(last) = LastCall::of(hooks, &request.method, &request.params) {
            *self.lock() = Some(last);
        }
    }

    /// What a request says in headers.
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
    /// A call of a tool, if tools want something in headers here.
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

    /// Whether there is something else to say by now.
    fn is_behind(&self) -> bool {
        self.known.headers(&self.params) != self.headers
    }
}

impl Trip {
    /// One request, by way of all layers.
    ///
    /// A call whose headers were not what its tool wants was refused before anything was done. The
    /// specification asks that the tools are looked at, and that it is made again, so this is the one
    /// call that is made twice by itself (**retry-is-explicit**): once more, and only if there is
    /// something else to say.
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

    /// One request, by way of all layers.
    #[cfg(not(feature = "http"))]
    pub(super) async fn round(
        &self,
        request: CallRequest,
        first: Option<Result<RawJson, Error>>,
    ) -> Result<RawJson, Error> {
        self.made(&request, first).await
    }

    /// One request, if it was not made already.
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

    /// Looks at the tools again: one of them is not what it was.
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
            list.params = RawJson::empty_object().with_member("cursor", &cursor);
        }
        Ok(())
    }
}
