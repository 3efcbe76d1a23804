//! `subscriptions/listen`: sends the changes that a modern client subscribed to.

use belay_protocol::jsonrpc::{ErrorObject, RawJson};
use belay_protocol::types::modern::{AcknowledgedParams, ListenParams, SubscriptionFilter};
use belay_protocol::types::{Meta, Notification as _, error_code, meta_key};

use super::legacy_session::notification;
use super::queue::ChangeQueue;
use crate::context::Context;
use crate::driver::{Answer, FREE, Pool};
use crate::server::service::Service;

/// The most resources of one subscription.
const RESOURCES: usize = 1024;

/// An upper bound on what a notification has besides its parameters.
const ENVELOPE: usize = 1 << 10;

/// Sends notifications until it is dropped: the caller has gone, or the server shuts down. On a
/// shutdown the engine sends the final result.
pub(in crate::server) async fn listen(service: &Service, cx: &Context) -> Answer {
    let params: ListenParams = cx.decode_params()?;
    let filter = agreed(service, params.notifications)?;
    let mut meta = Meta::default();
    meta.set(meta_key::SUBSCRIPTION_ID, cx.id())
        .map_err(internal)?;
    let meta = RawJson::encode(&meta).map_err(internal)?;
    let overloaded = || {
        let problem = "overloaded: too much is remembered; send it again later";
        ErrorObject::new(error_code::OVERLOADED, problem)
    };
    let queue = ChangeQueue::for_filter(&filter, cx.peer()).map_err(|_| overloaded())?;
    // Registered before it is acknowledged, so that no change in between is missed.
    let listener = service.changes.listen(queue);
    {
        // Dropped before the loop, which may run forever. The request itself is kept as long.
        let acknowledged = RawJson::encode(&AcknowledgedParams::new(filter)).map_err(internal)?;
        let tagged = acknowledged.with_member("_meta", &meta);
        let tagged = tagged.expect("records are objects");
        drop(acknowledged);
        // A larger frame would wait forever, for room that only this request could free.
        let frame = tagged.as_bytes().len() + ENVELOPE;
        if !cx
            .peer()
            .could_take(Pool::Bytes, frame.saturating_sub(FREE))
        {
            return Err(overloaded());
        }
        cx.say(AcknowledgedParams::METHOD, &tagged).await;
    }
    loop {
        let change = listener.queue.next().await;
        let (method, params) = notification(&change);
        let params = params.unwrap_or(RawJson::empty_object());
        let tagged = params.with_member("_meta", &meta);
        let tagged = tagged.expect("params are an object");
        cx.say(method, &tagged).await;
    }
}

/// The part of the filter that this server supports.
fn agreed(
    service: &Service,
    wanted: SubscriptionFilter,
) -> Result<SubscriptionFilter, ErrorObject> {
    if wanted.uris().len() > RESOURCES {
        let problem = format!("one stream is about at most {RESOURCES} resources");
        return Err(ErrorObject::new(error_code::INVALID_PARAMS, problem));
    }
    let resources = service.resources.is_offered();
    let if_any = |wanted: Option<bool>, offered: bool| wanted.filter(|wanted| *wanted && offered);
    let mut agreed = SubscriptionFilter::new();
    agreed.tools_list_changed = if_any(wanted.tools_list_changed, service.tools.is_offered());
    agreed.prompts_list_changed = if_any(wanted.prompts_list_changed, service.prompts.is_offered());
    agreed.resources_list_changed = if_any(wanted.resources_list_changed, resources);
    agreed.resource_subscriptions = wanted.resource_subscriptions.filter(|_| resources);
    Ok(agreed)
}

fn internal(error: serde_json::Error) -> ErrorObject {
    ErrorObject::new(error_code::INTERNAL_ERROR, error.to_string())
}
