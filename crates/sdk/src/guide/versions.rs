//! Protocol versions (eras), server information, capabilities and extensions.
//!
//! A connection in one of the *legacy* revisions, 2024-11-05 to 2025-11-25, begins with a handshake
//! (`initialize`). The *modern* revision, 2026-07-28, has no handshake: each request names its client
//! and its revision. A Belay server supports all revisions with the same handlers. A client detects the
//! era of its server: it tries the modern era first and falls back to the legacy one. `mode` sets the
//! era explicitly:
//!
//! ```no_run
//! use belay::client::Mode;
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
//! # Server information
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
//! The server derives its capabilities from what was registered: one without tools does not announce
//! tools. In the modern era they are the answer to `server/discover`. If a client uses a revision that
//! the server does not support, the server refuses with the list of supported revisions (`-32022`), and
//! a Belay client tries again with one of them.
//!
//! # Extensions
//!
//! Both sides announce the extensions that they support, each by an identifier with a prefix:
//! [`Server::extension`] and [`ClientBuilder::extension`]. Requests of an extension are sent with
//! [`Client::request_raw`].
//!
//! [`Server::extension`]: crate::Server::extension
//! [`ClientBuilder::extension`]: crate::client::ClientBuilder::extension
//! [`Client::request_raw`]: crate::Client::request_raw
