//! Connections, kept for a while and used again.

use std::sync::Arc;
use std::time::Duration;

use belay_protocol::engine::Loss;
use http::{HeaderMap, Request, Response};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioTimer;
use tokio_util::task::TaskTracker;

use super::super::executor::Tracked;
use super::answer;
use super::post::Outgoing;

/// Some servers close a connection after five seconds of silence. One that is about to be closed is
/// not used: a request on it might have been received, or might not.
const KEPT: Duration = Duration::from_secs(4);

/// What requests go out on.
#[derive(Clone)]
pub(super) struct Connections {
    client: Client<HttpConnector, Outgoing>,
    /// What goes out with every request.
    headers: Arc<HeaderMap>,
}

impl Connections {
    pub(super) fn new(headers: Arc<HeaderMap>, within: Duration, tasks: TaskTracker) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(Duration::from_secs(15)));
        tcp.set_connect_timeout(Some(within));
        let client = Client::builder(Tracked(tasks))
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(KEPT)
            // Nothing that may have been sent is sent again (**retry-is-explicit**).
            .retry_canceled_requests(false)
            .build(tcp);
        Self { client, headers }
    }

    /// Sends a request, and waits for the head of what comes back.
    pub(super) async fn send(
        &self,
        mut request: Request<Outgoing>,
    ) -> Result<Response<Incoming>, Loss> {
        for (name, value) in &*self.headers {
            request.headers_mut().append(name, value.clone());
        }
        let sent = self.client.request(request).await;
        sent.map_err(answer::failed)
    }
}
