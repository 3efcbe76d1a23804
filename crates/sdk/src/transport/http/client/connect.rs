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

#[cfg(feature = "tls")]
type Connector = hyper_rustls::HttpsConnector<super::tls::Proxied>;
#[cfg(not(feature = "tls"))]
type Connector = HttpConnector;

/// Some servers close a connection after five seconds of silence. One that is about to be closed is
/// not used: a request on it might have been received, or might not.
const KEPT: Duration = Duration::from_secs(4);

/// How a server is reached.
#[derive(Clone, Debug)]
pub(crate) struct Reach {
    /// What goes out with every request.
    pub(crate) headers: HeaderMap,
    /// How long it may take to get there.
    pub(crate) within: Duration,
    /// What secures it. Made once, since it takes a while.
    #[cfg(feature = "tls")]
    pub(crate) tls: super::tls::Tls,
}

impl Default for Reach {
    fn default() -> Self {
        Self {
            headers: HeaderMap::new(),
            within: Duration::from_secs(10),
            #[cfg(feature = "tls")]
            tls: super::tls::Tls::default(),
        }
    }
}

/// What requests go out on.
#[derive(Clone)]
pub(super) struct Connections {
    client: Client<Connector, Outgoing>,
    headers: Arc<HeaderMap>,
}

impl Connections {
    pub(super) fn new(reach: &Reach, tasks: TaskTracker) -> Result<Self, crate::Error> {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(Duration::from_secs(15)));
        tcp.set_connect_timeout(Some(reach.within));
        #[cfg(feature = "tls")]
        let tcp = reach.tls.over(tcp)?;
        let client = Client::builder(Tracked(tasks))
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(KEPT)
            // Nothing that may have been sent is sent again (**retry-is-explicit**).
            .retry_canceled_requests(false)
            .build(tcp);
        Ok(Self {
            client,
            headers: Arc::new(reach.headers.clone()),
        })
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
