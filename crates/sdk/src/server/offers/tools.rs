//! Tools: functions that clients can call.

use std::borrow::Cow;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use belay_protocol::jsonrpc::{ErrorObject, Params, RawJson};
use belay_protocol::types::{
    CallToolResult, Icon, ListToolsResult, ToolAnnotations, ToolDefinition, error_code,
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

/// A tool: a function that clients can call.
///
/// The handler is a plain async function. It is dropped when its result is no longer awaited: when
/// the caller cancels, disconnects or dies, when its timeout passes, or at shutdown.
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
    description: ToolDefinition,
    handler: Handler,
    grace: Option<Duration>,
    timeout: Option<Duration>,
    running: Option<Arc<Semaphore>>,
    /// The arguments that are repeated in HTTP headers.
    #[cfg(feature = "http")]
    param_headers: ParamHeaders,
    /// Whether the argument type rejects everything that a schema rejects.
    #[cfg(feature = "validate")]
    refuses: fn(&Map<String, Value>) -> bool,
    /// Compiled when the tool is added to a server.
    #[cfg(feature = "validate")]
    schemas: Option<Arc<ToolSchemas>>,
}

/// Runs the handler and encodes its answer at once, because a result is larger than its encoding.
type Handler = Arc<dyn Fn(&Arc<Tool>, Context, Arguments) -> BoxFuture<Answer> + Send + Sync>;

impl Tool {
    /// Makes a tool from its name and its handler. The argument type defines the input schema.
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

    /// Makes a tool with a blocking handler. It runs on a thread of its own, not on the runtime's,
    /// so that it delays neither other requests nor the end of the process. It cannot be dropped,
    /// so it should check [`Context::stop_cause`] from time to time.
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
            description: ToolDefinition::new(name, arguments_schema::<A>()),
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

    /// Sets the description, for the model.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description.description = Some(description.into());
        self
    }

    /// Sets the display name.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.description.title = Some(title.into());
        self
    }

    /// Sets the JSON Schema of the structured content. The default comes from the handler's return
    /// type; see [`Json`](crate::Json).
    pub fn output_schema(mut self, schema: Map<String, Value>) -> Self {
        self.description.output_schema = Some(schema);
        self
    }

    /// Like `output_schema`, if there is one. For macros.
    #[doc(hidden)]
    pub fn maybe_output_schema(mut self, schema: Option<Map<String, Value>>) -> Self {
        self.description.output_schema = schema.or(self.description.output_schema);
        self
    }

    /// Sets the JSON Schema of the arguments, instead of the one made from their type.
    /// Its root has the type `object`.
    pub fn input_schema(mut self, mut schema: Map<String, Value>) -> Self {
        schema.entry("type").or_insert_with(|| "object".into());
        self.description.input_schema = schema;
        self
    }

    /// Adds an icon.
    pub fn icon(mut self, icon: Icon) -> Self {
        self.description.icons.get_or_insert_default().push(icon);
        self
    }

    /// Changes the annotations: hints about the tool's behaviour.
    pub fn annotations(mut self, change: impl FnOnce(&mut ToolAnnotations)) -> Self {
        let annotations = &mut self.description.annotations;
        change(annotations.get_or_insert_with(ToolAnnotations::new));
        self
    }

    /// Sets the grace period for clean-up after the cancellation token is cancelled.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = Some(grace);
        self
    }

    /// Sets the timeout. The handler is then stopped, and the caller gets a result with an error.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Limits how many calls of this tool run at once. Further calls are refused.
    pub fn concurrency(mut self, limit: usize) -> Self {
        self.running = Some(Arc::new(Semaphore::new(limit)));
        self
    }

    /// Why the tool is not called: an unusable schema, or invalid arguments.
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

    /// Validates and encodes the result of a call.
    fn answer(&self, cx: &Context, result: CallToolResult) -> Answer {
        self.check_result(&result)?;
        let service = cx.service().expect("a tool is called by its server");
        service.reply(cx, result, &CacheHint::none())
    }

    /// Returns invalid arguments as a tool result, so that the model can read the problem.
    fn not_called(&self, cx: &Context, problem: String) -> BoxFuture<Answer> {
        let answer = self.answer(cx, CallToolResult::error(problem));
        Box::pin(std::future::ready(answer))
    }

    /// Validates a result against the tool's output schema.
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

    /// The answer that the caller gets when the handler times out.
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

/// Reads the tool name and the arguments from the parameters.
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

/// The schema of the arguments. The protocol requires an object, which `()` is not.
fn arguments_schema<A: JsonSchema>() -> Map<String, Value> {
    let mut schema = schema_of::<A>(Contract::Deserialize);
    if schema.get("type") != Some(&"object".into()) {
        schema.insert("type".into(), "object".into());
    }
    schema
}

/// The tools of a server. They can be added, removed and disabled while it runs;
/// subscribed clients are notified.
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

    /// Whether the headers of a call match its arguments.
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

    /// Removes a tool. Returns false if there was none. Calls in flight go on.
    pub fn remove(&self, name: &str) -> bool {
        self.catalogue.remove(name)
    }

    /// Hides or shows a tool. Returns false if there is none, or if nothing changed.
    pub fn set_enabled(&self, name: &str, enabled: bool) -> bool {
        self.catalogue.set_enabled(name, enabled)
    }

    /// The names of the enabled tools.
    pub fn names(&self) -> Vec<String> {
        self.catalogue.names()
    }

    /// Notifies subscribed clients that the list has changed, as if it had been changed here: for
    /// tools that look different to different callers.
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
