//! HTTPS: trusted certificates, and proxies.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls_platform_verifier::Verifier;
use tokio::net::TcpStream;
use tower_service::Service;

use super::connect::Tcp;
use crate::Error;
use crate::client::ClientBuilder;

impl ClientBuilder {
    /// Trusts additional CA certificates, besides those of the platform. PEM, one
    /// certificate or several.
    pub fn trust(mut self, certificates: &[u8]) -> Self {
        self.reach.tls.extra.extend_from_slice(certificates);
        self
    }
}

/// The TLS settings.
#[derive(Clone, Default)]
pub(crate) struct Tls {
    /// Additional CA certificates, in PEM.
    extra: Vec<u8>,
}

impl Tls {
    pub(super) fn over(&self, mut tcp: Tcp) -> Result<HttpsConnector<Proxied>, Error> {
        tcp.enforce_http(false);
        let proxied = Proxied {
            tcp,
            proxies: Arc::new(Matcher::from_env()),
        };
        let secured = HttpsConnectorBuilder::new()
            .with_tls_config(self.config()?)
            .https_or_http()
            .enable_all_versions()
            .wrap_connector(proxied);
        Ok(secured)
    }

    fn config(&self) -> Result<ClientConfig, Error> {
        let failed =
            |error: rustls::Error| Error::connect("TLS cannot be set up", Some(error.into()));
        let extra: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.extra).collect();
        let extra = extra.map_err(|error| {
            Error::connect(
                "what is to be trusted is no certificate",
                Some(error.into()),
            )
        })?;
        let provider = Arc::new(ring::default_provider());
        let verifier = Verifier::new_with_extra_roots(extra, provider.clone()).map_err(failed)?;
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(failed)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Ok(config)
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

/// Connects to a server directly, or through the proxy in `HTTPS_PROXY`, except for hosts in
/// `NO_PROXY`. Plain HTTP never goes through a proxy.
#[derive(Clone)]
pub(super) struct Proxied {
    tcp: Tcp,
    proxies: Arc<Matcher>,
}

type Connecting<T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send>>;
type Failure = Box<dyn std::error::Error + Send + Sync>;

impl Service<Uri> for Proxied {
    type Response = TokioIo<TcpStream>;
    type Error = Failure;
    type Future = Connecting<Self::Response>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let secured = to.scheme_str() == Some("https");
        let proxy = secured.then(|| self.proxies.intercept(&to)).flatten();
        let mut tcp = self.tcp.clone();
        let Some(proxy) = proxy else {
            return Box::pin(async move { Ok(tcp.call(to).await?) });
        };
        if proxy.uri().scheme_str() != Some("http") {
            let problem = format!(
                "HTTPS_PROXY must begin with http://, not as {}",
                proxy.uri()
            );
            return Box::pin(async move { Err(problem.into()) });
        }
        let mut tunnel = Tunnel::new(proxy.uri().clone(), tcp);
        if let Some(credentials) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(credentials.clone());
        }
        Box::pin(async move { Ok(tunnel.call(to).await?) })
    }
}
