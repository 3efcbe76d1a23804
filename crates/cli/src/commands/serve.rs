//! `belay serve`

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use belay::http::{Endpoint, ServerHandle};
use clap::Args;
use clap_complete::ArgValueCompleter;
use tokio::signal::unix::{SignalKind, signal};

use super::completions::paths;
use crate::demo_server;
use crate::exit::{self, Code};
use crate::output;
use crate::warnings;

/// Run the demo server on stdio or HTTP, until stdin is closed or SIGTERM.
///
/// Its tools show how requests end: echo, count, hang, active, rollback, block, panic, ask, once,
/// idempotent, touch, ledger.
#[derive(Args)]
pub(crate) struct Serve {
    /// Serve over HTTP at this address, `host:port`; the URL is http://ADDR/mcp for both eras
    #[arg(long, value_name = "ADDR")]
    http: Option<String>,
    /// Also serve the HTTP+SSE transport of 2024-11-05 at http://ADDR/sse
    #[arg(long, requires = "http")]
    sse: bool,
    /// Accept this `Host`, as `host` or `host:port` [default: localhost only]
    #[arg(long, value_name = "HOST", requires = "http")]
    allow_host: Vec<String>,
    /// Allow this `Origin`
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    allow_origin: Vec<String>,
    /// Time in which a legacy client can resume a dropped stream before its request is cancelled
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = crate::target::seconds)]
    resume_window: Duration,
    /// Memory limit for data kept for all clients, such as 512K, 64M or 1G [default: 256M]
    #[arg(long, value_name = "BYTES", requires = "http", value_parser = bytes)]
    kept_bytes: Option<usize>,
    /// Serve HTTPS with this certificate chain (PEM)
    #[arg(long, value_name = "FILE", requires_all = ["http", "tls_key"], add = ArgValueCompleter::new(paths))]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert", add = ArgValueCompleter::new(paths))]
    tls_key: Option<PathBuf>,
}

impl Serve {
    pub(crate) async fn run(self) -> Code {
        warnings::show();
        let served = match &self.http {
            None => belay::serve_stdio(demo_server::server()).await,
            Some(address) => self.serve_http(address).await,
        };
        match served {
            Ok(()) => exit::OK,
            Err(error) => {
                let what = match &self.http {
                    Some(address) => format!("cannot serve at {address}"),
                    None => "cannot use stdin and stdout".to_owned(),
                };
                output::tell(&format!("belay serve: {what}: {error}"));
                exit::LOST
            }
        }
    }

    async fn serve_http(&self, address: &str) -> io::Result<()> {
        let window = self.resume_window;
        let server =
            demo_server::server().timeouts(|timeouts| timeouts.resume_window = Some(window));
        let mut endpoint = Endpoint::new(server).sse(self.sse).with_metrics();
        if let Some(limit) = self.kept_bytes {
            endpoint = endpoint.kept_bytes(limit);
        }
        for host in &self.allow_host {
            endpoint = endpoint.allow_host(host);
        }
        for origin in &self.allow_origin {
            endpoint = endpoint.allow_origin(origin);
        }
        if let (Some(certificate), Some(key)) = (&self.tls_cert, &self.tls_key) {
            endpoint = endpoint.tls(&read(certificate)?, &read(key)?)?;
        }
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let _stderr = belay::server::guard_stderr();
        let mut listening = endpoint.bind(address).await?;
        self.announce(&listening);
        loop {
            tokio::select! {
                biased;
                () = &mut listening => return Ok(()),
                _ = terminate.recv() => listening.shutdown(),
                _ = interrupt.recv() => listening.shutdown(),
            }
        }
    }

    /// Prints the URL to stderr.
    fn announce(&self, listening: &ServerHandle) {
        let scheme = match self.tls_cert {
            Some(_) => "https",
            None => "http",
        };
        output::tell(&format!(
            "serving at {scheme}://{}/mcp",
            listening.address()
        ));
    }
}

/// Parses a number of bytes, with the suffixes of curl.
fn bytes(text: &str) -> Result<usize, String> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 10),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 20),
        Some(b'G' | b'g') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let number = digits.parse::<usize>().ok();
    let bytes = number.and_then(|number| number.checked_mul(1 << shift));
    bytes.ok_or_else(|| "expected a number of bytes, such as 65536, 512K or 64M".into())
}

fn read(file: &Path) -> io::Result<Vec<u8>> {
    std::fs::read(file)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", file.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_suffixes() {
        assert_eq!(bytes("65536"), Ok(65_536));
        assert_eq!(bytes("512K"), Ok(512 << 10));
        assert_eq!(bytes("64m"), Ok(64 << 20));
        assert_eq!(bytes("1G"), Ok(1 << 30));
        for wrong in ["", "M", "-1", "1.5M", "64MB", "99999999999999999G", "é"] {
            assert!(bytes(wrong).is_err(), "{wrong:?}");
        }
    }
}
