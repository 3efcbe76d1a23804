//! The server's features as calls: tools, resources, prompts, completion.

use std::collections::{BTreeMap, HashMap};

use belay_protocol::jsonrpc::RawJson;
use belay_protocol::types::legacy::{
    Ping, PingParams, RootsListChangedParams, SetLevel, SetLevelParams,
};
use belay_protocol::types::{
    CallTool, CallToolResult, Complete, CompleteParams, CompleteResult, CompletedArgument,
    CompletionContext, EmptyResult, GetPrompt, GetPromptParams, GetPromptResult, Implementation,
    ListPrompts, ListPromptsResult, ListResourceTemplates, ListResourceTemplatesResult,
    ListResources, ListResourcesResult, ListTools, ListToolsResult, LoggingLevel,
    Notification as _, PaginatedParams, PromptDefinition, ReadResource, ReadResourceParams,
    ReadResourceResult, Reference, Request as _, ResourceDefinition, ResourceTemplateDefinition,
    ServerCapabilities, ToolDefinition, meta_key,
};
use serde::Serialize;

use super::Client;
use super::pages::{Pages, PaginatedRequest};
use crate::{Call, Error};

impl Client {
    /// Calls a tool.
    ///
    /// If the server asks for input first, the handlers registered on the builder answer it, and
    /// the call goes on. It takes at most ten round trips, under one deadline.
    pub fn call_tool(&self, name: &str, arguments: impl Serialize) -> Call<CallToolResult> {
        match call_params(name, &arguments) {
            Ok(params) => Call::prepared(self.route(CallTool::METHOD), CallTool::METHOD, params),
            Err(error) => self.cannot(error),
        }
    }

    /// Lists the first page of tools.
    pub fn list_tools(&self) -> Call<ListToolsResult> {
        self.request::<ListTools>(&PaginatedParams::new())
    }

    /// Lists all tools, following pagination. Each page has deadlines of its own.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the request for the current page.
    pub async fn list_all_tools(&self) -> Result<Vec<ToolDefinition>, Error> {
        self.pages::<ListTools>().all().await
    }

    /// Lists the first page of resources.
    pub fn list_resources(&self) -> Call<ListResourcesResult> {
        self.request::<ListResources>(&PaginatedParams::new())
    }

    /// Lists all resources, following pagination. Each page has deadlines of its own.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the request for the current page.
    pub async fn list_all_resources(&self) -> Result<Vec<ResourceDefinition>, Error> {
        self.pages::<ListResources>().all().await
    }

    /// Lists the first page of resource templates.
    pub fn list_resource_templates(&self) -> Call<ListResourceTemplatesResult> {
        self.request::<ListResourceTemplates>(&PaginatedParams::new())
    }

    /// Lists all resource templates, following pagination. Each page has deadlines of its own.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the request for the current page.
    pub async fn list_all_resource_templates(
        &self,
    ) -> Result<Vec<ResourceTemplateDefinition>, Error> {
        self.pages::<ListResourceTemplates>().all().await
    }

    /// Reads a resource.
    pub fn read_resource(&self, uri: &str) -> Call<ReadResourceResult> {
        self.request::<ReadResource>(&ReadResourceParams::new(uri))
    }

    /// Lists the first page of prompts.
    pub fn list_prompts(&self) -> Call<ListPromptsResult> {
        self.request::<ListPrompts>(&PaginatedParams::new())
    }

    /// Lists all prompts, following pagination. Each page has deadlines of its own.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the request for the current page.
    pub async fn list_all_prompts(&self) -> Result<Vec<PromptDefinition>, Error> {
        self.pages::<ListPrompts>().all().await
    }

    /// Gets a prompt, filled in.
    ///
    /// ```no_run
    /// # async fn example(client: belay::Client) -> Result<(), belay::Error> {
    /// let poem = client.get_prompt("poem", [("about", "tea")]).await?;
    /// let riddle = client.get_prompt("riddle", ()).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn get_prompt(&self, name: &str, arguments: impl PromptArguments) -> Call<GetPromptResult> {
        let mut params = GetPromptParams::new(name);
        params.arguments = arguments.into_map();
        self.request::<GetPrompt>(&params)
    }

    /// Asks for completions of a prompt argument, or of a variable of a resource template.
    ///
    /// ```no_run
    /// # async fn example(client: belay::Client) -> Result<(), belay::Error> {
    /// use belay::types::PromptReference;
    ///
    /// let prompt = PromptReference::new("review");
    /// let known = client.complete(prompt, "language", "ru").await?.completion.values;
    /// # Ok(())
    /// # }
    /// ```
    pub fn complete(
        &self,
        reference: impl Into<Reference>,
        argument: &str,
        typed: &str,
    ) -> Call<CompleteResult> {
        let argument = CompletedArgument::new(argument, typed);
        self.request::<Complete>(&CompleteParams::new(reference, argument))
    }

    /// Like [`Client::complete`], with the values of the other arguments as context
    /// for the completion.
    ///
    /// ```no_run
    /// # async fn example(client: belay::Client) -> Result<(), belay::Error> {
    /// use belay::types::PromptReference;
    ///
    /// let prompt = PromptReference::new("review");
    /// let settled = [("language", "rust")];
    /// let known = client.complete_with(prompt, "framework", "ax", settled).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn complete_with<N: Into<String>, V: Into<String>>(
        &self,
        reference: impl Into<Reference>,
        argument: &str,
        typed: &str,
        settled: impl IntoIterator<Item = (N, V)>,
    ) -> Call<CompleteResult> {
        let argument = CompletedArgument::new(argument, typed);
        let mut params = CompleteParams::new(reference, argument);
        let settled = settled.into_iter();
        let settled = settled.map(|(name, value)| (name.into(), value.into()));
        let mut context = CompletionContext::new();
        context.arguments = Some(settled.collect());
        params.context = Some(context);
        self.request::<Complete>(&params)
    }

    /// Sets the minimum level of log messages for this connection. Legacy only: in the modern era
    /// each request sets its own, with [`Call::log_level`].
    pub fn set_log_level(&self, level: LoggingLevel) -> Call<EmptyResult> {
        self.request::<SetLevel>(&SetLevelParams::new(level))
    }

    /// Checks that the server answers. Legacy only.
    pub fn ping(&self) -> Call<EmptyResult> {
        self.request::<Ping>(&PingParams::new())
    }

    /// Tells a legacy server that the list of roots has changed. Nothing is sent to a modern
    /// server, which asks for the roots when it needs them, or if this client has no roots.
    pub fn roots_changed(&self) {
        if self.inner.routes.has_roots {
            self.tell_legacy(RootsListChangedParams::METHOD);
        }
    }

    /// Starts a paginated list, to be read page by page.
    pub fn pages<L: PaginatedRequest>(&self) -> Pages<L> {
        Pages::new(self.clone())
    }

    /// The server's name and version, as it states them. They are not verified.
    pub fn server_info(&self) -> Option<Implementation> {
        let introduction = self.introduction();
        let meta = introduction.field("_meta");
        let modern = meta.and_then(|meta| meta.field(meta_key::SERVER_INFO));
        let info = introduction.field("serverInfo").or(modern);
        info.and_then(|info| info.decode().ok())
    }

    /// The capabilities that the server declares.
    pub fn server_capabilities(&self) -> ServerCapabilities {
        let capabilities = self.introduction().field("capabilities");
        let capabilities = capabilities.and_then(|it| it.decode().ok());
        capabilities.unwrap_or_default()
    }

    /// The server's instructions for the model on how to use it, if it gave any.
    pub fn instructions(&self) -> Option<String> {
        let instructions = self.introduction().field("instructions");
        instructions?.decode().ok()
    }
}

/// The parameters of `tools/call`, encoded once.
fn call_params(name: &str, arguments: &impl Serialize) -> Result<RawJson, serde_json::Error> {
    const BEFORE: &str = r#","arguments":"#;
    let params = RawJson::encode(&CallParams { name, arguments })?;
    // This text cannot occur inside the name, where quotes are escaped.
    let text = params.as_str();
    let value = text.find(BEFORE).map(|at| at + BEFORE.len());
    match value.and_then(|at| text.as_bytes().get(at)) {
        Some(b'{') => Ok(params),
        Some(b'n') => RawJson::encode(&NameOnly { name }),
        _ => Err(serde::ser::Error::custom(
            "the arguments of a tool are an object",
        )),
    }
}

#[derive(Serialize)]
struct CallParams<'a, T> {
    name: &'a str,
    arguments: &'a T,
}

#[derive(Serialize)]
struct NameOnly<'a> {
    name: &'a str,
}

/// The arguments of a prompt: names and texts, or `()` for a prompt without arguments.
///
/// ```no_run
/// # async fn example(client: belay::Client) -> Result<(), belay::Error> {
/// let arguments = std::collections::HashMap::from([("about", "tea")]);
/// let poem = client.get_prompt("poem", arguments).await?;
/// let riddle = client.get_prompt("riddle", ()).await?;
/// # Ok(())
/// # }
/// ```
pub trait PromptArguments {
    /// The arguments as they are sent; `None` if there are none.
    fn into_map(self) -> Option<BTreeMap<String, String>>;
}

impl PromptArguments for () {
    fn into_map(self) -> Option<BTreeMap<String, String>> {
        None
    }
}

impl<N: AsRef<str>, V: AsRef<str>> PromptArguments for &[(N, V)] {
    fn into_map(self) -> Option<BTreeMap<String, String>> {
        let pairs = self.iter();
        Some(
            pairs
                .map(|(name, value)| (name.as_ref().into(), value.as_ref().into()))
                .collect(),
        )
    }
}

/// Every collection of pairs.
macro_rules! pairs {
    ($([$($generics:tt)*] $collection:ty;)*) => {$(
        impl<N: Into<String>, V: Into<String>, $($generics)*> PromptArguments for $collection {
            fn into_map(self) -> Option<BTreeMap<String, String>> {
                let pairs = self.into_iter();
                Some(pairs.map(|(name, value)| (name.into(), value.into())).collect())
            }
        }
    )*};
}

pairs! {
    [const LENGTH: usize] [(N, V); LENGTH];
    [] Vec<(N, V)>;
    [] BTreeMap<N, V>;
    [S] HashMap<N, V, S>;
}
