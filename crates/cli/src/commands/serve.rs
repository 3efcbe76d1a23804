//! `belay serve`

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use belay::http::{Endpoint, Listening};
use clap::Args;
use clap_complete::ArgValueCompleter;
use tokio::signal::unix::{SignalKind, signal};

use super::completions::paths;
use crate::demo_server;
use crate::exit::{self, Code};
use crate::output;
use crate::warnings;

/// Serve the demo server on stdin and stdout, or on HTTP, until the input ends or SIGTERM comes.
///
/// Its tools show the contract: echo, count, hang, active, rollback, block, panic, ask, ledger.
#[derive(Args)]
pub(crate) struct Serve {
    /// Serve on HTTP at this address, both eras on one URL: http://ADDR/mcp.
    #[arg(long, value_name = "ADDR")]
    http: Option<String>,
    /// Serve the transport of 2024-11-05, too: http://ADDR/sse.
    #[arg(long, requires = "http")]
    sse: bool,
    /// Answer to this name, `host` or `host:port`. Without any: to localhost.
    #[arg(long, value_name = "HOST", requires = "http")]
    allow_host: Vec<String>,
    /// Let pages of this origin speak to it.
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    allow_origin: Vec<String>,
    /// How long a legacy client has to come back for a broken stream, before that cancels its request
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = crate::target::seconds)]
    resume_window: Duration,
    /// Serve HTTPS with this certificate, and those that vouch for it after it (PEM).
    #[arg(long, value_name = "FILE", requires_all = ["http", "tls_key"], add = ArgValueCompleter::new(paths))]
    tls_cert: Option<PathBuf>,
    /// The key of the certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_cert", add = ArgValueCompleter::new(paths))]
    tls_key: Option<PathBuf>,
}

impl Serve {
    pub(crate) async fn run(self) -> Code {
        warnings::show();
        let served = match &self.http {
            None => belay::serve_stdio(demo_server::server()).await.map(drop),
            Some(address) => self.serve_http(address).await,
        };
        match served {
            Ok(()) => exit::OK,
            Err(error) => {
                let what = match &self.http {
                    Some(address) => format!("cannot serve at {address}"),
                    None => "stdin and stdout cannot be taken".to_owned(),
                };
                output::tell(&format!("belay serve: {what}: {error}"));
                exit::LOST
            }
        }
    }

    async fn serve_http(&self, address: &str) -> io::Result<()> {
        let window = self.resume_window;
        let server = demo_server::server().spans(|spans| spans.resume_window = Some(window));
        let mut endpoint = Endpoint::new(server).sse(self.sse).observed();
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
        let _stderr = belay::guard_stderr();
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

    /// Where it is, on stderr.
    fn announce(&self, listening: &Listening) {
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

fn read(file: &Path) -> io::Result<Vec<u8>> {
    std::fs::read(file)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", file.display())))
}
