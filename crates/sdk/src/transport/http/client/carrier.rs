//! Drives the link of an HTTP client: starts a task for each exchange, and ends the session.

use std::sync::Arc;
use std::time::Duration;

use belay_protocol::types::Era;
use http::Method;
use tokio::runtime::Handle;
use tokio_util::sync::DropGuard;

use super::post::{Place, carry};
use super::stream::listen;
use crate::driver::{App, Driven, ExchangeHandle, Until, drive_exchanges_with};
use crate::sync::count_task;

/// The time for the server to answer the DELETE of its session.
const GOODBYE: Duration = Duration::from_secs(1);

/// Drives a link until it is closed, and ends its session.
pub(super) async fn drive(driven: Driven, place: Arc<Place>, app: Arc<dyn App>, gone: DropGuard) {
    let link = driven.0.clone();
    let mut listens = false;
    link.set_opener(opener(&place));
    let open = || {
        link.open_exchanges();
        let version = link.version();
        let legacy = version.is_some_and(|version| version.era() == Era::Legacy);
        if legacy && !std::mem::replace(&mut listens, true) {
            link.spawn(listen(place.clone(), link.clone()));
        }
        listens |= legacy;
    };
    drive_exchanges_with(&link, &app, Until::Closed, open).await;
    if place.session().is_some() && !link.session_is_gone() {
        let goodbye = place.about_session(Method::DELETE, &link);
        let sent = place.connections.send(goodbye);
        let _ = tokio::time::timeout(GOODBYE, sent).await;
    }
    drop(driven);
    drop(gone);
}

/// Carries each exchange in a task of its own, while the link is driven.
pub(super) fn opener(place: &Arc<Place>) -> impl Fn(ExchangeHandle) + Send + Sync + 'static {
    let (place, runtime) = (Arc::downgrade(place), Handle::current());
    move |handle| {
        // An exchange that is dropped here is lost, and the engine is informed.
        if let Some(place) = place.upgrade() {
            let tasks = handle.link().tasks().clone();
            count_task();
            // Boxed, because a task is moved several times before it runs.
            tasks.spawn_on(Box::pin(carry(place, handle)), &runtime);
        }
    }
}
