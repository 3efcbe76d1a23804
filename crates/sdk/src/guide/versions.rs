//! Versions: the eras, what a server says of itself, and extensions.
//!
//! *Legacy* revisions, 2024-11-05 to 2025-11-25, begin with a handshake. The *modern* one, 2026-07-28, has
//! none: each request says who asks and in which revision. A server of Belay speaks all of them, with the
//! same handlers. A client finds out what its server speaks: it tries the modern era first, and goes
//! back; or it is told.
//!
//! ```no_run
//! use belay::engine::Mode;
//!
//! # #[cfg(all(feature = "stdio", unix))]
//! # async fn example() -> Result<(), belay::Error> {
//! let mut server = std::process::Command::new("uvx");
//! server.arg("mcp-server-time");
//! let client = belay::Client::builder("host", "1.0.0")
//!     .info(|info| info.title("Host"))
//!     .mode(Mode::Legacy)
//!     .spawn(server)
//!     .await?;
//! println!("{} {:?}", client.version(), client.server_info());
//! println!("{:?}", client.server_capabilities().tools);
//! println!("{:?}", client.instructions());
//! # Ok(())
//! # }
//! ```
//!
//! # What a server says of itself
//!
//! ```
//! use belay::types::{Extra, Icon};
//!
//! let server = belay::Server::new("orders", "1.0.0")
//!     .title("Orders")
//!     .description("Ships things.")
//!     .website("https://example.com/orders")
//!     .icon(Icon::new("https://example.com/orders.png").mime_type("image/png"))
//!     .instructions("Ask for the price before you ship.")
//!     .extension("com.example/receipts", Extra::new());
//! ```
//!
//! What it can do it says by itself, from what it offers. In the modern era that is `server/discover`. If
//! a client opens in a revision that the server does not speak, it is refused with those that it does
//! (`-32022`), and a client of Belay opens again in one of them.
//!
//! # Extensions
//!
//! Both sides say which they speak, by an identifier with a prefix: [`Server::extension`] and
//! [`ClientBuilder::extension`]. Requests of an extension are sent with [`Client::request_raw`].
//!
//! [`Server::extension`]: crate::Server::extension
//! [`ClientBuilder::extension`]: crate::ClientBuilder::extension
//! [`Client::request_raw`]: crate::Client::request_raw
