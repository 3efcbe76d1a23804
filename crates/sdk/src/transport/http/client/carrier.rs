//! Turns the link of a client on HTTP: opens what it wants opened, and says goodbye.

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

/// How long a server has to take note that its session is over.
const GOODBYE: Duration = Duration::from_secs(1);

/// Turns a link until it is closed, and ends its session.
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

/// Carries each exchange in a task of its own, as long as the link is driven.
pub(super) fn opener(place: &Arc<Place>) -> impl Fn(ExchangeHandle) + Send + Sync + 'static {
    let (place, runtime) = (Arc::downgrade(place), Handle::current());
    move |handle| {
        // What is dropped is lost, and the engine knows.
        if let Some(place) = place.upgrade() {
            let tasks = handle.link().tasks().clone();
            count_task();
            // In a box: a task is moved about before it runs.
            tasks.spawn_on(Box::pin(carry(place, handle)), &runtime);
        }
    }
}
