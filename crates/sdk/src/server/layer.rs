//! Layers around the requests that a server handles.

use std::fmt;
use std::sync::Arc;

use belay_protocol::jsonrpc::{ErrorObject, RawJson};

use super::Service;
use crate::context::Context;
use crate::driver::{LayerFuture, Payload};

/// Something around every request that a server handles: for credentials, tracing, limits.
///
/// A layer may answer in the handler's stead, keep a value in the [`Context`] for it, or change its
/// answer. It is dropped with the request, as the handler is; what it must do in any case belongs
/// into a destructor.
///
/// ```
/// use belay::jsonrpc::{ErrorObject, RawJson};
/// use belay::layers::{LayerFuture, Next, ServerLayer};
/// use belay::{Context, Server};
///
/// struct User(String);
///
/// struct WhoIsIt;
///
/// impl ServerLayer for WhoIsIt {
///     fn handle<'a>(
///         &'a self,
///         cx: &'a Context,
///         next: Next<'a>,
///     ) -> LayerFuture<'a, Result<RawJson, ErrorObject>> {
///         Box::pin(async move {
///             match cx.meta().get::<String>("example.com/user") {
///                 Ok(Some(name)) => cx.extensions().insert(User(name)),
///                 _ => return Err(ErrorObject::new(4001, "who are you?")),
///             }
///             next.run().await
///         })
///     }
/// }
///
/// let server = Server::new("orders", "1.0.0").layer(WhoIsIt);
/// ```
pub trait ServerLayer: Send + Sync + 'static {
    /// Handles the request, through `next` or instead of it.
    fn handle<'a>(
        &'a self,
        cx: &'a Context,
        next: Next<'a>,
    ) -> LayerFuture<'a, Result<RawJson, ErrorObject>>;
}

/// The rest of a request: the inner layers, and the handler.
pub struct Next<'a> {
    layers: &'a [Arc<dyn ServerLayer>],
    service: &'a Service,
    cx: &'a Context,
}

impl<'a> Next<'a> {
    pub(super) fn new(
        layers: &'a [Arc<dyn ServerLayer>],
        service: &'a Service,
        cx: &'a Context,
    ) -> Self {
        Self {
            layers,
            service,
            cx,
        }
    }

    /// Runs the inner layers and the handler.
    pub fn run(self) -> LayerFuture<'a, Result<RawJson, ErrorObject>> {
        match self.layers.split_first() {
            Some((layer, layers)) => layer.handle(self.cx, Next { layers, ..self }),
            None => Box::pin(async move {
                let answer = self.service.handle(self.cx).await;
                answer.map(Payload::into_json)
            }),
        }
    }
}

impl fmt::Debug for Next<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Next").field(&self.layers.len()).finish()
    }
}
