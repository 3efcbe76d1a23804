//! What the fields of spans are called: OpenTelemetry's conventions for MCP, where they have a name.

/// What is asked.
pub const METHOD: &str = "mcp.method.name";
/// The revision that it is asked in.
pub const PROTOCOL_VERSION: &str = "mcp.protocol.version";
/// What the request is called on the wire.
pub const REQUEST_ID: &str = "jsonrpc.request.id";
/// Of which tool.
pub const TOOL: &str = "gen_ai.tool.name";
/// Of which prompt.
pub const PROMPT: &str = "gen_ai.prompt.name";
/// Of which resource.
pub const RESOURCE: &str = "mcp.resource.uri";
/// What went wrong: the code of an error, or `tool_error`.
pub const ERROR: &str = "error.type";
/// The code of the error that was answered.
pub const STATUS: &str = "rpc.response.status_code";
/// What the span is called: its method, and of which tool or prompt.
pub const NAME: &str = "otel.name";
/// `ERROR` if something went wrong.
pub const OUTCOME: &str = "otel.status_code";
/// Which side the span is on.
pub const KIND: &str = "otel.kind";
/// The span that the request was made in, on the other side.
pub const PARENT: &str = "traceparent";
/// Belay's own: how the request ended.
pub const END: &str = "end";
