//! Field names of spans: OpenTelemetry's conventions for MCP where they define one.

/// The method name.
pub const METHOD: &str = "mcp.method.name";
/// The protocol version.
pub const PROTOCOL_VERSION: &str = "mcp.protocol.version";
/// The request id on the wire.
pub const REQUEST_ID: &str = "jsonrpc.request.id";
/// The name of the tool that is called.
pub const TOOL: &str = "gen_ai.tool.name";
/// The name of the prompt.
pub const PROMPT: &str = "gen_ai.prompt.name";
/// The URI of the resource.
pub const RESOURCE: &str = "mcp.resource.uri";
/// The kind of failure: an error code, `tool_error`, or how the request ended.
pub const ERROR: &str = "error.type";
/// The JSON-RPC error code of the answer.
pub const STATUS: &str = "rpc.response.status_code";
/// The span's display name: the method, with the name of the tool or prompt.
pub const NAME: &str = "otel.name";
/// `ERROR` if the request failed; not set otherwise.
pub const OUTCOME: &str = "otel.status_code";
/// The side of the span: `client` or `server`.
pub const KIND: &str = "otel.kind";
/// The caller's span, as a `traceparent`.
pub const PARENT: &str = "traceparent";
/// How the request ended. Belay's own, not a convention.
pub const END: &str = "end";
