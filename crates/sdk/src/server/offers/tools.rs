//! Tools: what a server can do for a client.

use std::borrow::Cow;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use belay_protocol::jsonrpc::{ErrorObject, Params, RawJson};
use belay_protocol::types::{
    CallToolResult, Icon, ListToolsResult, Tool as Description, ToolAnnotations, error_code,
};
use schemars::JsonSchema;
use schemars::generate::Contract;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use super::arguments::Arguments;
use super::blocking;
use super::caching::CacheHint;
use super::catalogue::{Catalogue, Offer};
#[cfg(feature = "validate")]
use super::strict;
#[cfg(feature = "validate")]
use super::tool_schemas::{NotCalled, ToolSchemas};
use crate::context::Context;
use crate::driver::{Answer, BoxFuture, Payload};
use crate::server::changes::{Changes, List};
use crate::server::reply::{IntoToolResult, schema_of};
use crate::server::service::Service;
#[cfg(feature = "http")]
use crate::transport::http::param_headers::ParamHeaders;

/// Something a server can do for a client.
///
/// The handler is a plain async function. It is dropped when nobody waits for it any more: when its
/// caller cancels, disconnects or dies, at its deadline, at a shutdown.
///
/// ```
/// use belay::{Context, Tool};
/// use std::time::Duration;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Add { a: i64, b: i64 }
///
/// let tool = Tool::new("add", |_cx: Context, Add { a, b }: Add| async move { (a + b).to_string() })
///     .description("Adds two numbers.")
///     .timeout(Duration::from_secs(1));
/// ```
#[derive(Clone)]
#[must_use = "a tool does nothing until a server offers it"]
pub struct Tool {
    description: Description,
    handler: Handler,
    grace: Option<Duration>,
    timeout: Option<Duration>,
    running: Option<Arc<Semaphore>>,
    /// Arguments that headers repeat.
    #[cfg(feature = "http")]
    param_headers: ParamHeaders,
    /// Whether the type of its arguments refuses all that a schema does.
    #[cfg(feature = "validate")]
    refuses: fn(&Map<String, Value>) -> bool,
    /// Read when a server offers it.
    #[cfg(feature = "validate")]
    schemas: Option<Arc<ToolSchemas>>,
}

/// Runs, and writes its answer where it ends: a result is large, and an answer is not.
type Handler = Arc<dyn Fn(&Arc<Tool>, Context, Arguments) -> BoxFuture<Answer> + Send + Sync>;

impl Tool {
    /// A tool from its name and its handler. The schema of its arguments is made from their type.
    pub fn new<A, F, Fut, R>(name: impl Into<String>, handler: F) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        F: Fn(Context, A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = R> + Send + 'static,
        R: IntoToolResult,
    {
        let handler: Handler = Arc::new(move |tool, cx, arguments| match arguments.decode() {
            Ok(arguments) => {
                let (tool, running) = (tool.clone(), handler(cx.clone(), arguments));
                Box::pin(async move { tool.answer(&cx, running.await.into_tool_result()) })
            }
            Err(problem) => tool.not_called(&cx, problem),
        });
        Self::from_parts::<A>(name, handler).maybe_output_schema(R::output_schema())
    }

    /// A tool whose handler blocks its thread. It runs on a thread of its own, never on the
    /// runtime's: it holds up neither other requests nor the end of the process. It cannot be
    /// dropped; it should look at [`Context::stop_cause`] now and then.
    pub fn blocking<A, F, R>(name: impl Into<String>, handler: F) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(Context, A) -> R + Send + Sync + 'static,
        R: IntoToolResult,
    {
        let handler = Arc::new(handler);
        let handler: Handler = Arc::new(move |tool, cx, arguments| match arguments.decode() {
            Ok(arguments) => {
                let (tool, handler) = (tool.clone(), handler.clone());
                let running = blocking::run(cx.clone(), move |cx| {
                    handler(cx, arguments).into_tool_result()
                });
                Box::pin(async move { tool.answer(&cx, running.await) })
            }
            Err(problem) => tool.not_called(&cx, problem),
        });
        Self::from_parts::<A>(name, handler).maybe_output_schema(R::output_schema())
    }

    fn from_parts<A: DeserializeOwned + JsonSchema>(
        name: impl Into<String>,
        handler: Handler,
    ) -> Self {
        Self {
            description: Description::new(name, arguments_schema::<A>()),
            handler,
            #[cfg(feature = "validate")]
            refuses: strict::refuses_all_that_its_schema_does::<A>,
            grace: None,
            timeout: None,
            running: None,
            #[cfg(feature = "http")]
            param_headers: ParamHeaders::default(),
            #[cfg(feature = "validate")]
            schemas: None,
        }
    }

    /// What it does, for the model.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description.description = Some(description.into());
        self
    }

    /// What it is called for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.description.title = Some(title.into());
        self
    }

    /// The JSON Schema of its structured content. It is made from the type of the result where that
    /// tells it; see [`Json`](crate::Json).
    pub fn output_schema(mut self, schema: Map<String, Value>) -> Self {
        self.description.output_schema = Some(schema);
        self
    }

    /// The same, if there is one. For macros.
    #[doc(hidden)]
    pub fn maybe_output_schema(mut self, schema: Option<Map<String, Value>>) -> Self {
        self.description.output_schema = schema.or(self.description.output_schema);
        self
    }

    /// The JSON Schema of its arguments, in the place of the one that was made from their type. Its
    /// root is of type `object`.
    pub fn input_schema(mut self, mut schema: Map<String, Value>) -> Self {
        schema.entry("type").or_insert_with(|| "object".into());
        self.description.input_schema = schema;
        self
    }

    /// What it looks like.
    pub fn icon(mut self, icon: Icon) -> Self {
        self.description.icons.get_or_insert_default().push(icon);
        self
    }

    /// How it behaves.
    pub fn annotations(mut self, change: impl FnOnce(&mut ToolAnnotations)) -> Self {
        let annotations = &mut self.description.annotations;
        change(annotations.get_or_insert_with(ToolAnnotations::new));
        self
    }

    /// How long it may clean up once its token has fired.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = Some(grace);
        self
    }

    /// How long it may take. Then it is stopped, and the caller gets a tool error.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// How many of it may run at once. One more is refused.
    pub fn concurrency(mut self, limit: usize) -> Self {
        self.running = Some(Arc::new(Semaphore::new(limit)));
        self
    }

    /// Why it is not called: a schema that cannot be used, or arguments that do not fit it.
    #[cfg(feature = "validate")]
    fn unfit(&self, cx: &Context, arguments: &mut Arguments) -> Option<Answer> {
        let service = cx.service();
        let received_bytes = service.map_or(usize::MAX, |service| service.received_bytes);
        let schemas = self.schemas.as_ref()?;
        let checked = schemas.check_arguments(&self.description.name, arguments, received_bytes);
        checked.err().map(|why| match why {
            NotCalled::Refused(error) => Err(error),
            NotCalled::Told(problem) => self.answer(cx, CallToolResult::error(problem)),
        })
    }

    async fn call(self: &Arc<Self>, cx: &Context, arguments: RawJson) -> Answer {
        #[cfg_attr(not(feature = "validate"), expect(unused_mut))]
        let mut arguments = Arguments::new(arguments);
        if let Some(running) = &self.running {
            let permit = running.clone().try_acquire_owned().map_err(|_| {
                let name = &self.description.name;
                let problem = format!("overloaded: no more calls of {name:?} at once");
                ErrorObject::new(error_code::OVERLOADED, problem)
            })?;
            cx.handling().hold(permit);
        }
        #[cfg(feature = "validate")]
        if let Some(unfit) = self.unfit(cx, &mut arguments) {
            return unfit;
        }
        if let Some(grace) = self.grace {
            cx.set_grace(grace);
        }
        if let Some(timeout) = self.timeout {
            cx.set_deadline(timeout, self.timed_out(cx, timeout));
        }
        (self.handler)(self, cx.clone(), arguments).await
    }

    /// The answer to a call.
    fn answer(&self, cx: &Context, result: CallToolResult) -> Answer {
        self.check_result(&result)?;
        let service = cx.service().expect("a tool is called by its server");
        service.reply(cx, result, &CacheHint::none())
    }

    /// The tool answers what is wrong with its arguments, so that the model gets to see it.
    fn not_called(&self, cx: &Context, problem: String) -> BoxFuture<Answer> {
        let answer = self.answer(cx, CallToolResult::error(problem));
        Box::pin(std::future::ready(answer))
    }

    /// A tool gives what it says that it gives.
    fn check_result(&self, result: &CallToolResult) -> Result<(), ErrorObject> {
        if self.description.output_schema.is_none() || result.is_error == Some(true) {
            return Ok(());
        }
        let problem = match &result.structured_content {
            None => Some("it gave no structured content".to_owned()),
            #[cfg(feature = "validate")]
            Some(content) => {
                let schemas = self.schemas.as_ref();
                schemas.and_then(|all| all.check_result(&self.description.name, content).err())
            }
            #[cfg(not(feature = "validate"))]
            Some(_) => None,
        };
        let Some(problem) = problem else {
            return Ok(());
        };
        let tool = &self.description.name;
        tracing::error!(
            tool,
            problem,
            "a tool did not give what its output schema says"
        );
        let problem = format!("{tool:?} did not give what its output schema says: {problem}");
        Err(ErrorObject::new(error_code::INTERNAL_ERROR, problem))
    }

    /// What the caller gets in the handler's stead.
    fn timed_out(&self, cx: &Context, timeout: Duration) -> RawJson {
        let result = CallToolResult::error(format!("timed out after {timeout:?}"));
        let reply = |service: &Arc<Service>| service.reply(cx, result, &CacheHint::none()).ok();
        cx.service()
            .and_then(reply)
            .map_or(RawJson::empty_object(), Payload::into_json)
    }
}

impl Offer for Tool {
    fn key(&self) -> &str {
        &self.description.name
    }
}

impl std::fmt::Debug for Tool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Tool").field(&self.description.name).finish()
    }
}

/// What a call says: which tool, and with what.
fn read(params: Option<&Params>) -> Result<(Cow<'_, str>, RawJson), ErrorObject> {
    let invalid = |problem: &str| {
        let problem = format!("tools/call: {problem}");
        ErrorObject::new(error_code::INVALID_PARAMS, problem)
    };
    let params = params.ok_or_else(|| invalid("missing field `name`"))?;
    let name = params.field_text("name");
    let name = name.ok_or_else(|| invalid("missing field `name`"))?;
    let name = name.ok_or_else(|| invalid("`name` must be a string"))?;
    let arguments = params.field("arguments");
    let arguments = arguments.filter(|arguments| arguments.as_bytes() != b"null");
    let arguments = arguments.unwrap_or(RawJson::empty_object());
    match arguments.is_object() {
        true => Ok((name, arguments)),
        false => Err(invalid("`arguments` must be an object")),
    }
}

/// The schema of arguments. `()` and the like have no object schema; the protocol wants one.
fn arguments_schema<A: JsonSchema>() -> Map<String, Value> {
    let mut schema = schema_of::<A>(Contract::Deserialize);
    if schema.get("type") != Some(&"object".into()) {
        schema.insert("type".into(), "object".into());
    }
    schema
}

/// The tools of a server. They can be added, removed and disabled while it runs; whoever listens is
/// told.
#[derive(Clone)]
pub struct Tools {
    catalogue: Catalogue<Tool>,
}

impl Tools {
    pub(in crate::server) fn new(changes: &Changes) -> Self {
        Self {
            catalogue: Catalogue::new(List::Tools, changes.clone()),
        }
    }

    /// Adds a tool, or replaces the one of the same name.
    ///
    /// An argument whose schema has `x-mcp-header` is repeated in a header of modern HTTP, for others
    /// on the way; see the specification for where that can stand. Where it cannot, clients do not
    /// use the tool.
    ///
    /// With the feature `validate`, a tool whose schema cannot be used cannot be called. Patterns in it that
    /// cannot be matched are passed over, which is logged as a warning
    /// ([`Schema::unsupported_patterns`](crate::schema::Schema::unsupported_patterns)).
    pub fn add(&self, #[allow(unused_mut)] mut tool: Tool) {
        #[cfg(feature = "http")]
        match ParamHeaders::of(&tool.description.input_schema) {
            Ok(param_headers) => tool.param_headers = param_headers,
            Err(problem) => {
                let tool = &tool.description.name;
                tracing::error!(tool, problem, "clients on HTTP will not use this tool");
            }
        }
        #[cfg(feature = "validate")]
        {
            let refuses = (tool.refuses)(&tool.description.input_schema);
            tool.schemas = Some(Arc::new(ToolSchemas::of(&tool.description, refuses)));
        }
        self.catalogue.add(tool);
    }

    /// Whether the headers of a call say what its arguments say.
    #[cfg(feature = "http")]
    pub(crate) fn check_headers(
        &self,
        headers: &http::HeaderMap,
        params: Option<&Params>,
    ) -> Result<(), String> {
        let Some(params) = params else {
            return Ok(());
        };
        let name = params.field_text("name").flatten().unwrap_or_default();
        match self.catalogue.get(&name) {
            Some(tool) => {
                let arguments = params.field("arguments");
                tool.param_headers.check(headers, arguments.as_ref())
            }
            None => Ok(()),
        }
    }

    /// Removes a tool. False if there was none. Calls that are running go on.
    pub fn remove(&self, name: &str) -> bool {
        self.catalogue.remove(name)
    }

    /// Takes a tool out of sight, or back. False if there is none, or nothing changed.
    pub fn set_enabled(&self, name: &str, enabled: bool) -> bool {
        self.catalogue.set_enabled(name, enabled)
    }

    /// The names of the tools that are enabled.
    pub fn names(&self) -> Vec<String> {
        self.catalogue.names()
    }

    /// Tells everybody who wants to know that the list is not what it was, as if it had been changed
    /// here: for tools that look different to different callers.
    pub fn changed(&self) {
        self.catalogue.changed();
    }

    pub(in crate::server) fn offer(&self) {
        self.catalogue.offer();
    }

    pub(in crate::server) fn is_offered(&self) -> bool {
        self.catalogue.is_offered()
    }

    pub(in crate::server) fn list(
        &self,
        cx: &Context,
        page_size: Option<usize>,
    ) -> Result<ListToolsResult, ErrorObject> {
        let describe = |tool: &Tool| tool.description.clone();
        let (tools, next) = self.catalogue.page(cx.params(), page_size, describe)?;
        let mut result = ListToolsResult::new(tools);
        result.next_cursor = next;
        Ok(result)
    }

    pub(in crate::server) async fn call(&self, cx: &Context) -> Answer {
        let (tool, arguments) = self.called(cx)?;
        tool.call(cx, arguments).await
    }

    fn called(&self, cx: &Context) -> Result<(Arc<Tool>, RawJson), ErrorObject> {
        let (name, arguments) = read(cx.params())?;
        match self.catalogue.get(&name) {
            Some(tool) => Ok((tool, arguments)),
            None => {
                let problem = format!("unknown tool: {name}");
                Err(ErrorObject::new(error_code::INVALID_PARAMS, problem))
            }
        }
    }
}

impl std::fmt::Debug for Tools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Tools").field(&self.names()).finish()
    }
}
