//! HTTPS for a listening server.

use std::io;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use super::endpoint::Endpoint;

impl Endpoint {
    /// Serves HTTPS with this certificate chain, the server's own certificate first, and
    /// its private key; both in PEM. For listening servers; a service in another router
    /// has no connections of its own.
    pub fn tls(mut self, certificates: &[u8], key: &[u8]) -> io::Result<Self> {
        let certificates: Result<Vec<_>, _> =
            CertificateDer::pem_slice_iter(certificates).collect();
        let certificates = certificates.map_err(|error| wrong("the certificate", &error))?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| wrong("the key", &error))?;
        let provider = Arc::new(ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong("TLS", &error))?
            .with_no_client_auth()
            .with_single_cert(certificates, key)
            .map_err(|error| wrong("certificate and key", &error))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        self.tls = Some(TlsAcceptor::from(Arc::new(config)));
        Ok(self)
    }
}

fn wrong(what: &str, error: &dyn std::error::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("{what}: {error}"))
}
