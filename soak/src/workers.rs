//! Which worker uses which wire.

use std::sync::Arc;
use std::time::Duration;

use belay::client::Mode;
use tokio::task::JoinSet;

use crate::Done;
use crate::client::{self, Carrier};
use crate::observer::Era;
use crate::raw_session::Revision;
use crate::soak::{Life, Soak};
use crate::{raw_event_stream, raw_modern, raw_session, raw_stdio};

/// A kind of worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    RawStdio(Era),
    RawSession(Revision),
    RawModern,
    RawEventStream,
    Client(Carrier, Mode),
}

/// All wires: the name of the row in the table, the kind of worker, the number of workers.
pub(crate) const WIRES: [(&str, Kind, usize); 11] = [
    ("stdio legacy, raw", Kind::RawStdio(Era::Legacy), 1),
    ("stdio modern, raw", Kind::RawStdio(Era::Modern), 1),
    (
        "HTTP 2025-11-25, raw",
        Kind::RawSession(Revision::Latest),
        4,
    ),
    (
        "HTTP 2025-03-26, raw",
        Kind::RawSession(Revision::Batches),
        3,
    ),
    ("HTTP 2026-07-28, raw", Kind::RawModern, 4),
    ("HTTP+SSE 2024-11-05, raw", Kind::RawEventStream, 1),
    (
        "stdio legacy, client",
        Kind::Client(Carrier::Stdio, Mode::Legacy),
        1,
    ),
    (
        "stdio modern, client",
        Kind::Client(Carrier::Stdio, Mode::Modern),
        1,
    ),
    (
        "HTTP 2025-11-25, client",
        Kind::Client(Carrier::Http, Mode::Legacy),
        2,
    ),
    (
        "HTTP 2026-07-28, client",
        Kind::Client(Carrier::Http, Mode::Modern),
        2,
    ),
    (
        "HTTP+SSE 2024-11-05, client",
        Kind::Client(Carrier::EventStream, Mode::Legacy),
        1,
    ),
];

/// The wire of each worker. The position in this list is the number of the worker, which seeds its
/// generator.
pub(crate) fn workers() -> impl Iterator<Item = (&'static str, Kind)> {
    let each = |(name, kind, count)| std::iter::repeat_n((name, kind), count);
    WIRES.into_iter().flat_map(each)
}

/// Runs all workers until the time is over; each lives one life after the other. The number of
/// lives is kept, so that no life is repeated.
pub(crate) async fn work(soak: &Arc<Soak>, lives: &mut Vec<u64>) {
    let mut working = JoinSet::new();
    lives.resize(workers().count(), 0);
    for (worker, (name, kind)) in workers().enumerate() {
        let (soak, mut number) = (soak.clone(), lives[worker]);
        working.spawn(async move {
            while !soak.is_over() {
                let life = Life::new(&soak, worker, number);
                if let Err(problem) = to_its_end(&soak, life, kind).await {
                    soak.problem(format!("{name}, worker {worker}, life {number}: {problem}"));
                }
                number += 1;
            }
            (worker, number)
        });
    }
    while let Some(done) = working.join_next().await {
        if let Ok((worker, number)) = done {
            lives[worker] = number;
        }
    }
}

/// Runs a life on its own task, so that a panic ends only this life and becomes a problem. A life
/// that hangs is aborted, and so are all others soon after a problem was found.
async fn to_its_end(soak: &Soak, life: Life, kind: Kind) -> Done {
    let mut living = tokio::spawn(live(life, kind));
    tokio::select! {
        lived = &mut living => lived.unwrap_or_else(|panic| Err(panic.to_string())),
        () = soak.something_was_found() => {
            living.abort();
            let _ = living.await;
            Ok(())
        }
        () = tokio::time::sleep(LONGEST_LIFE) => {
            living.abort();
            let _ = living.await;
            Err(format!("it has not come to its end within {LONGEST_LIFE:?}"))
        }
    }
}

/// Most lives last about a second, and each wait in a life is limited by
/// [`PATIENCE`](crate::PATIENCE).
const LONGEST_LIFE: Duration = Duration::from_secs(90);

async fn live(mut life: Life, kind: Kind) -> Done {
    match kind {
        Kind::RawStdio(era) => raw_stdio::live(&mut life, era).await,
        Kind::RawSession(revision) => raw_session::live(&mut life, revision).await,
        Kind::RawModern => raw_modern::live(&mut life).await,
        Kind::RawEventStream => raw_event_stream::live(&mut life).await,
        Kind::Client(carrier, mode) => client::live(&mut life, carrier, mode).await,
    }
}
