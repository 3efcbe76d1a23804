//! Lists and pagination: tools, resources, resource templates and prompts.
//!
//! A server lists its items in the order in which they were added. By default they are on one page; a
//! page size can be set:
//!
//! ```
//! let server = belay::Server::new("orders", "1.0.0").page_size(50);
//! ```
//!
//! A client requests the first page, all pages at once, or one page after the other. Listing stops with
//! an error after 64 pages, or after the number set with `at_most`, because a faulty server could
//! return another page forever.
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
//! Dropping any of these futures cancels the request for the current page.
