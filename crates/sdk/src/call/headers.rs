//! Calls that say something in headers, too, and what is done if that was not what their tool wants.

#[cfg(feature = "http")]
use std::sync::{Mutex, PoisonError};

use belay_protocol::jsonrpc::RawJson;
#[cfg(feature = "http")]
use belay_protocol::types::CallTool;
use belay_protocol::types::{ListTools, Meta, Request as _};
#[cfg(feature = "http")]
use http::{HeaderName, HeaderValue};

use super::layer::{Outgoing, Trip};
use crate::Error;
#[cfg(feature = "http")]
use crate::client::Desk;
use crate::client::PAGES;

/// The last call of a tool as the layers have left it, and what it said in headers: what its tool wants
/// may be known to others by the time that it is refused.
#[cfg(feature = "http")]
#[derive(Default)]
pub(super) struct Said(Mutex<Option<(Outgoing, Headers)>>);

#[cfg(feature = "http")]
type Headers = Vec<(HeaderName, HeaderValue)>;

#[cfg(feature = "http")]
impl Said {
    pub(super) fn note(&self, desk: &Desk, request: &Outgoing) {
        if desk.known_tools.is_some() && request.method == *CallTool::METHOD {
            let said = (request.clone(), desk.said_in_headers(request));
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(said);
        }
    }

    fn take(&self) -> Option<(Outgoing, Headers)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
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
    pub(super) async fn round(&self, request: Outgoing) -> Result<RawJson, Error> {
        let desk = &self.outlet.desk;
        let result = self.by_layers(request.clone()).await;
        if !desk.is_behind(&request, &result) {
            return result;
        }
        let Some((sent, said)) = self.said.take() else {
            return result;
        };
        match self.learn_tools().await.is_ok() && desk.said_in_headers(&sent) != said {
            true => self.by_layers(request).await,
            false => result,
        }
    }

    /// One request, by way of all layers.
    #[cfg(not(feature = "http"))]
    pub(super) async fn round(&self, request: Outgoing) -> Result<RawJson, Error> {
        self.by_layers(request).await
    }

    /// Looks at the tools again: one of them is not what it was.
    pub(super) async fn learn_tools(&self) -> Result<(), Error> {
        self.outlet.desk.forget_tools();
        let mut list = Outgoing {
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
