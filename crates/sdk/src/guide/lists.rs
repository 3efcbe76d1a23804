//! Lists: tools, resources, templates and prompts, in pages.
//!
//! A server lists what it offers in the order in which it was added, on one page unless it is told
//! otherwise:
//!
//! ```
//! let server = belay::Server::new("orders", "1.0.0").page_size(50);
//! ```
//!
//! A client asks for the first page, for all of them, or for one after the other. There is an end to
//! them: a server that always has another page is an error after 64, or after as many as one likes.
//!
//! ```no_run
//! use belay::types::ListResources;
//!
//! # async fn example(client: belay::Client) -> Result<(), belay::Error> {
//! let first = client.list_tools().await?;
//! let tools = client.list_all_tools().await?;
//! let mut pages = client.pages::<ListResources>().at_most(10);
//! while let Some(resources) = pages.next().await? {
//!     println!("{} more", resources.len());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Dropping any of these cancels the page that is being asked for.
