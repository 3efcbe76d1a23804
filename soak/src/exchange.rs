//! One HTTP exchange: a POST and its response.

use belay_testkit::{RawAnswer, RawHttp};
use serde_json::Value;
use tokio::time::timeout;

use crate::observer::{Observer, Request};
use crate::{Done, PATIENCE};

/// Posts a request.
pub(crate) async fn post(http: &mut RawHttp, request: &Request, observer: &mut Observer) -> Done {
    let bytes = encoded(http, request, observer);
    write(http, &bytes).await
}

/// Encodes a POST and records it as sent. The headers of a modern request repeat its method and
/// name.
pub(crate) fn encoded(http: &mut RawHttp, request: &Request, observer: &mut Observer) -> Vec<u8> {
    let body = request.bytes();
    if observer.is_modern() {
        http.set("MCP-Protocol-Version", "2026-07-28");
        http.set("Mcp-Method", request.frame["method"].as_str());
        http.set("Mcp-Name", request.frame["params"]["name"].as_str());
    }
    observer.sent(&body);
    http.encoded("POST", &body)
}

pub(crate) async fn write(http: &mut RawHttp, bytes: &[u8]) -> Done {
    let wrote = timeout(PATIENCE, http.try_bytes(bytes)).await;
    let wrote = wrote.map_err(|_| "nobody reads what is posted")?;
    wrote.map_err(|error| format!("it cannot be posted: {error}"))
}

/// Reads the response to these requests to its end, and returns its status.
pub(crate) async fn answered(
    http: &mut RawHttp,
    ids: &[&Value],
    observer: &mut Observer,
) -> Result<u16, String> {
    let answer = head(http).await.map_err(|problem| about(&problem, ids))?;
    match answer.is_stream() {
        true => {
            let rest = to_the_end(http, observer).await;
            rest.map_err(|problem| about(&problem, ids))?;
        }
        false => body(&answer, ids, observer),
    }
    Ok(answer.status)
}

fn about(problem: &str, ids: &[&Value]) -> String {
    format!("{problem} (exchange of {ids:?})")
}

/// The head of a response, and its body if that is not a stream.
pub(crate) async fn head(http: &mut RawHttp) -> Result<RawAnswer, String> {
    let answer = timeout(PATIENCE, http.try_answer()).await;
    let answer = answer.map_err(|_| format!("no response within {PATIENCE:?}"))?;
    answer.map_err(|error| format!("the connection ended without a response: {error}"))
}

/// Records a body that is one message, or empty.
pub(crate) fn body(answer: &RawAnswer, ids: &[&Value], observer: &mut Observer) {
    if answer.body.is_empty() {
        return;
    }
    let message = answer.json();
    // On HTTP the exchange is the key, so a refusal belongs to the request that was posted on it.
    match (message.get("id"), ids) {
        (None, [id]) if answer.status >= 400 => observer.refused_by_status(id),
        _ => observer.received(&answer.body),
    }
}

/// Reads the events of a stream to its end.
pub(crate) async fn to_the_end(http: &mut RawHttp, observer: &mut Observer) -> Done {
    while event(http, observer).await?.is_some() {}
    Ok(())
}

/// Reads one event of a stream, and returns its id and message; `None` at the end.
pub(crate) async fn event(
    http: &mut RawHttp,
    observer: &mut Observer,
) -> Result<Option<(Option<String>, Value)>, String> {
    let event = timeout(PATIENCE, http.try_event()).await;
    let event = event.map_err(|_| format!("the stream says nothing for {PATIENCE:?}"))?;
    let event = event.map_err(|error| format!("the stream broke off: {error}"))?;
    if let Some((_, message)) = event.as_ref().filter(|(_, message)| !message.is_null()) {
        observer.message(message);
    }
    Ok(event)
}
