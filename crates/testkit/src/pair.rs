//! Connects a real client and a real server.

use std::time::Duration;

use belay::client::Mode;
use belay::server::ServerConnection;
use belay::{Client, Error, Server};

/// Connects a client to a server through a pipe in memory.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), belay::Error> {
/// use belay::client::Mode;
/// use belay::Server;
/// let server = Server::new("example", "1").instructions("Say nothing.");
/// let (client, serving) = belay_testkit::pair(&server, Mode::Auto).await?;
/// assert_eq!(client.instructions().as_deref(), Some("Say nothing."));
/// # Ok(())
/// # }
/// ```
///
/// # Cancel safety
///
/// Dropping the future closes both ends.
pub async fn pair(server: &Server, mode: Mode) -> Result<(Client, ServerConnection), Error> {
    let ((server_in, server_out), (client_in, client_out)) = belay::transport::memory();
    let serving = server.serve(server_in, server_out);
    let client = Client::builder("testkit", env!("CARGO_PKG_VERSION"))
        .mode(mode)
        .connect(client_in, client_out)
        .await?;
    Ok((client, serving))
}

/// Waits until a condition is true. It is polled every millisecond.
///
/// # Panics
///
/// If the condition is not true after 10,000 polls, which takes at least ten seconds.
///
/// # Cancel safety
///
/// Dropping the future changes nothing.
pub async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..10_000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("it never came to be that {what}");
}
