//! Pagination of lists.

use std::marker::PhantomData;

use belay_protocol::types::{
    ListPrompts, ListPromptsResult, ListResourceTemplates, ListResourceTemplatesResult,
    ListResources, ListResourcesResult, ListTools, ListToolsResult, PaginatedParams,
    PromptDefinition, Request as Typed, ResourceDefinition, ResourceTemplateDefinition,
    ToolDefinition, error_code,
};

use futures_core::Stream;

use super::Client;
use super::stream::stream;
use crate::Error;

/// The most pages of a list by default, against a server that never stops paginating.
pub(crate) const PAGES: usize = 64;

/// The most items that [`Pages::all`] collects by default.
const ITEMS: usize = 10_000;

/// A request for a list that the server paginates.
pub trait PaginatedRequest: Typed<Params = PaginatedParams> {
    /// The type of the listed items.
    type Item;

    /// Splits a result into its items and the cursor of the next page.
    fn page(result: Self::Result) -> (Vec<Self::Item>, Option<String>);
}

impl PaginatedRequest for ListTools {
    type Item = ToolDefinition;

    fn page(result: ListToolsResult) -> (Vec<ToolDefinition>, Option<String>) {
        (result.tools, result.next_cursor)
    }
}

impl PaginatedRequest for ListResources {
    type Item = ResourceDefinition;

    fn page(result: ListResourcesResult) -> (Vec<ResourceDefinition>, Option<String>) {
        (result.resources, result.next_cursor)
    }
}

impl PaginatedRequest for ListResourceTemplates {
    type Item = ResourceTemplateDefinition;

    fn page(
        result: ListResourceTemplatesResult,
    ) -> (Vec<ResourceTemplateDefinition>, Option<String>) {
        (result.resource_templates, result.next_cursor)
    }
}

impl PaginatedRequest for ListPrompts {
    type Item = PromptDefinition;

    fn page(result: ListPromptsResult) -> (Vec<PromptDefinition>, Option<String>) {
        (result.prompts, result.next_cursor)
    }
}

/// A paginated list, read page by page.
///
/// ```no_run
/// # async fn example(client: belay::Client) -> Result<(), belay::Error> {
/// let mut pages = client.pages::<belay::types::ListTools>();
/// while let Some(tools) = pages.next().await? {
///     println!("{} tools", tools.len());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Pages<L> {
    client: Client,
    /// The parameters of the next page, or `None` after the last one.
    next: Option<PaginatedParams>,
    most: usize,
    left: usize,
    most_items: usize,
    fresh: bool,
    list: PhantomData<fn() -> L>,
}

impl<L: PaginatedRequest> Pages<L> {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            next: Some(PaginatedParams::new()),
            most: PAGES,
            left: PAGES,
            most_items: ITEMS,
            fresh: false,
            list: PhantomData,
        }
    }

    /// Sets the limit on pages, by default 64. A list with more pages is an error.
    pub fn at_most(mut self, pages: usize) -> Self {
        (self.most, self.left) = (pages, pages);
        self
    }

    /// Sets the limit on items for [`Pages::all`], by default 10,000. A list with more items is an
    /// error, because a page can have hundreds of thousands and all of them are kept in memory.
    pub fn items_at_most(mut self, items: usize) -> Self {
        self.most_items = items;
        self
    }

    /// Bypasses the cache: every page is requested from the server.
    pub fn fresh(mut self) -> Self {
        self.fresh = true;
        self
    }

    /// Requests the next page. Returns `None` after the last one. Each page has
    /// deadlines of its own.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the request for the page, which can then be requested again.
    pub async fn next(&mut self) -> Result<Option<Vec<L::Item>>, Error> {
        let Some(page) = &self.next else {
            return Ok(None);
        };
        if self.left == 0 {
            return Err(Error::list_too_long(self.most, "pages"));
        }
        let call = self.client.request::<L>(page);
        let call = match self.fresh {
            true => call.fresh(),
            false => call,
        };
        let result = call.await?;
        let (items, cursor) = L::page(result);
        self.left -= 1;
        self.next = cursor.map(PaginatedParams::at);
        Ok(Some(items))
    }

    /// The remaining pages as a stream, which ends after the first error.
    ///
    /// Dropping the stream cancels the request for the current page.
    ///
    /// ```no_run
    /// # async fn example(client: belay::Client) -> Result<(), belay::Error> {
    /// use std::future::poll_fn;
    /// use std::pin::pin;
    /// use futures_core::Stream;
    ///
    /// let mut pages = pin!(client.pages::<belay::types::ListTools>().into_stream());
    /// // Or `pages.next()` with the `StreamExt` of your choice.
    /// while let Some(tools) = poll_fn(|task| pages.as_mut().poll_next(task)).await {
    ///     println!("{} tools", tools?.len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn into_stream(self) -> impl Stream<Item = Result<Vec<L::Item>, Error>> + Send + Unpin
    where
        L: 'static,
        L::Item: Send + 'static,
    {
        stream(Some(self), |pages| {
            Box::pin(async {
                let mut pages = pages?;
                match pages.next().await.transpose()? {
                    Ok(page) => Some((Ok(page), Some(pages))),
                    Err(error) => Some((Err(error), None)),
                }
            })
        })
    }

    /// Collects the remaining items of the list.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the request for the current page.
    pub async fn all(mut self) -> Result<Vec<L::Item>, Error> {
        let from_the_start = self.left == self.most;
        match self.collect().await {
            // The cursor came from a cached page and is no longer valid, so start
            // again without the cache.
            Err(error) if from_the_start && !self.fresh && self.is_gone(&error) => {
                self.fresh = true;
                (self.next, self.left) = (Some(PaginatedParams::new()), self.most);
                self.collect().await
            }
            collected => collected,
        }
    }

    async fn collect(&mut self) -> Result<Vec<L::Item>, Error> {
        let mut items = Vec::new();
        while let Some(page) = self.next().await? {
            if items.len() + page.len() > self.most_items {
                return Err(Error::list_too_long(self.most_items, "items"));
            }
            items.extend(page);
        }
        Ok(items)
    }

    /// Whether the server refused the cursor of the page.
    fn is_gone(&self, error: &Error) -> bool {
        let code = error.refusal().map(|refusal| refusal.code);
        let page = self.next.as_ref();
        let in_the_middle = page.is_some_and(|page| page.cursor.is_some());
        code == Some(error_code::INVALID_PARAMS) && in_the_middle
    }
}
