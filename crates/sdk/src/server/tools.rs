//! Tools: what they are called with, and who is told when they change.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;

use belay_protocol::jsonrpc::{ErrorObject, RawJson};
use belay_protocol::types::{
    CallToolResult, Era, ListToolsResult, Notification, Tool as Description, ToolAnnotations,
    ToolListChangedParams, error_code,
};
use schemars::JsonSchema;
use schemars::generate::Contract;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use super::blocking;
use super::reply::{IntoToolResult, Reply, schema_of};
use crate::context::Context;
use crate::driver::{BoxFuture, Link};

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
    enabled: bool,
}

type Handler = Arc<dyn Fn(Context, RawJson) -> BoxFuture<CallToolResult> + Send + Sync>;

impl Tool {
    /// A tool from its name and its handler. The schema of its arguments is made from their type.
    pub fn new<A, F, Fut, R>(name: impl Into<String>, handler: F) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        F: Fn(Context, A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = R> + Send + 'static,
        R: IntoToolResult,
    {
        let handler: Handler = Arc::new(move |cx, arguments| match decode(&arguments) {
            Ok(arguments) => {
                let running = handler(cx, arguments);
                Box::pin(async move { running.await.into_tool_result() })
            }
            Err(problem) => Box::pin(async move { CallToolResult::error(problem) }),
        });
        Self::from_parts(Description::new(name, arguments_schema::<A>()), handler)
            .maybe_output_schema(R::output_schema())
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
        let handler: Handler = Arc::new(move |cx, arguments| match decode(&arguments) {
            Ok(arguments) => {
                let handler = handler.clone();
                blocking::run(cx, move |cx| handler(cx, arguments).into_tool_result())
            }
            Err(problem) => Box::pin(async move { CallToolResult::error(problem) }),
        });
        Self::from_parts(Description::new(name, arguments_schema::<A>()), handler)
            .maybe_output_schema(R::output_schema())
    }

    fn from_parts(description: Description, handler: Handler) -> Self {
        Self {
            description,
            handler,
            grace: None,
            timeout: None,
            running: None,
            enabled: true,
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

    async fn call(&self, cx: &Context, arguments: RawJson) -> Answered {
        if let Some(running) = &self.running {
            let permit = running.clone().try_acquire_owned().map_err(|_| {
                let name = &self.description.name;
                let problem = format!("overloaded: no more calls of {name:?} at once");
                ErrorObject::new(error_code::OVERLOADED, problem)
            })?;
            cx.hold(permit);
        }
        if let Some(grace) = self.grace {
            cx.set_grace(grace);
        }
        if let Some(timeout) = self.timeout {
            cx.set_deadline(timeout, self.timed_out(cx, timeout));
        }
        Ok((self.handler)(cx.clone(), arguments).await)
    }

    /// What the caller gets in the handler's stead.
    fn timed_out(&self, cx: &Context, timeout: Duration) -> RawJson {
        let mut result = CallToolResult::error(format!("timed out after {timeout:?}"));
        if cx.era() == Era::Modern {
            result.result_type = Some(belay_protocol::types::ResultType::Complete);
        }
        RawJson::encode(&result).unwrap_or(RawJson::empty_object())
    }
}

type Answered = Result<CallToolResult, ErrorObject>;

impl std::fmt::Debug for Tool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Tool").field(&self.description.name).finish()
    }
}

/// Decodes arguments; the problem names the argument.
fn decode<A: DeserializeOwned>(arguments: &RawJson) -> Result<A, String> {
    // A handler without arguments takes `()`, which is no object.
    if arguments.is_empty_object()
        && let Ok(none) = A::deserialize(Value::Null)
    {
        return Ok(none);
    }
    let mut json = serde_json::Deserializer::from_slice(arguments.as_bytes());
    serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let problem = error.inner().to_string();
        // Where in the text it is helps nobody who has not written that text.
        let problem = problem.split(" at line ").next().unwrap_or_default();
        match error.path().to_string().as_str() {
            "." => format!("invalid arguments: {problem}"),
            path => format!("invalid argument `{path}`: {problem}"),
        }
    })
}

/// What a call says: which tool, and with what.
fn read(params: Option<&RawJson>) -> Result<(RawJson, RawJson), ErrorObject> {
    let invalid = |problem: &str| {
        let problem = format!("tools/call: {problem}");
        ErrorObject::new(error_code::INVALID_PARAMS, problem)
    };
    let params = params.ok_or_else(|| invalid("missing field `name`"))?;
    let [name, arguments] = params.fields(["name", "arguments"]);
    let name = name.ok_or_else(|| invalid("missing field `name`"))?;
    if name.as_text().is_none() {
        return Err(invalid("`name` must be a string"));
    }
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
    if schema.get("type") != Some(&"object".into()) && !schema.contains_key("$ref") {
        schema.insert("type".into(), "object".into());
    }
    schema
}

/// The tools of a server. They can be added, removed and disabled while it runs; legacy clients are
/// told.
#[derive(Clone, Default)]
pub struct Tools {
    inner: Arc<RwLock<Inner>>,
}

#[derive(Default)]
struct Inner {
    tools: BTreeMap<String, Arc<Tool>>,
    links: Vec<Weak<Link>>,
}

impl Tools {
    /// Adds a tool, or replaces the one of the same name.
    pub fn add(&self, tool: Tool) {
        self.change(|tools| {
            let before = tools.insert(tool.description.name.clone(), Arc::new(tool));
            (true, before)
        });
    }

    /// Removes a tool. False if there was none. Calls that are running go on.
    pub fn remove(&self, name: &str) -> bool {
        self.change(|tools| {
            let removed = tools.remove(name);
            (removed.is_some(), removed)
        })
    }

    /// Takes a tool out of sight, or back. False if there is none, or nothing changed.
    pub fn set_enabled(&self, name: &str, enabled: bool) -> bool {
        self.change(|tools| match tools.get_mut(name) {
            Some(tool) if tool.enabled != enabled => {
                Arc::make_mut(tool).enabled = enabled;
                (true, None)
            }
            _ => (false, None),
        })
    }

    /// The names of the tools that are enabled.
    pub fn names(&self) -> Vec<String> {
        let inner = self.inner.read().unwrap_or_else(PoisonError::into_inner);
        let enabled = inner.tools.iter().filter(|(_, tool)| tool.enabled);
        enabled.map(|(name, _)| name.clone()).collect()
    }

    /// Changes the tools; tells whether it did, and gives back what it took out.
    fn change(
        &self,
        change: impl FnOnce(&mut BTreeMap<String, Arc<Tool>>) -> (bool, Option<Arc<Tool>>),
    ) -> bool {
        let (links, removed) = {
            let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
            let (changed, removed) = change(&mut inner.tools);
            if !changed {
                return false;
            }
            (inner.links.clone(), removed)
        };
        // Outside the lock: the destructors of a handler are not ours.
        drop(removed);
        for link in links.iter().filter_map(Weak::upgrade) {
            if link
                .version()
                .is_some_and(|version| version.era() == Era::Legacy)
            {
                link.notify_now(ToolListChangedParams::METHOD);
            }
        }
        true
    }

    /// A connection that wants to know of changes.
    pub(crate) fn serve_on(&self, link: &Arc<Link>) {
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        // Now and then is enough: there may be thousands.
        if inner.links.len() == inner.links.capacity() {
            inner.links.retain(|link| link.strong_count() > 0);
        }
        inner.links.push(Arc::downgrade(link));
    }

    pub(super) fn list(&self) -> Reply {
        let inner = self.inner.read().unwrap_or_else(PoisonError::into_inner);
        let enabled = inner.tools.values().filter(|tool| tool.enabled);
        let tools: Vec<Description> = enabled.map(|tool| tool.description.clone()).collect();
        Reply::ListTools(ListToolsResult::new(tools))
    }

    pub(super) async fn call(&self, cx: &Context) -> Result<Reply, ErrorObject> {
        let (name, arguments) = read(cx.params())?;
        let name = name.as_text().unwrap_or_default();
        let tool = {
            let inner = self.inner.read().unwrap_or_else(PoisonError::into_inner);
            let tool = inner.tools.get(&*name);
            tool.filter(|tool| tool.enabled).cloned()
        };
        let Some(tool) = tool else {
            let problem = format!("unknown tool: {name}");
            return Err(ErrorObject::new(error_code::INVALID_PARAMS, problem));
        };
        tool.call(cx, arguments).await.map(Reply::CallTool)
    }
}

impl std::fmt::Debug for Tools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Tools").field(&self.names()).finish()
    }
}
