//! An in-memory pipe, for tests and for servers in the same process.

use tokio::io::{DuplexStream, ReadHalf, WriteHalf, duplex, split};

/// One end of an in-memory pipe: a reader and a writer.
pub type MemoryEnd = (ReadHalf<DuplexStream>, WriteHalf<DuplexStream>);

/// Two ends of a pipe that holds 64 KiB in each direction.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), belay::Error> {
/// use belay::{Client, Server};
///
/// let ((server_in, server_out), (client_in, client_out)) = belay::transport::memory();
/// let server = Server::new("example", "1.0.0").serve(server_in, server_out);
/// let client = Client::connect(client_in, client_out).await?;
/// assert_eq!(client.server_info().unwrap().name, "example");
/// # drop(server);
/// # Ok(())
/// # }
/// ```
pub fn memory() -> (MemoryEnd, MemoryEnd) {
    let (left, right) = duplex(64 << 10);
    (split(left), split(right))
}
