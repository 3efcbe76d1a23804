//! The loop.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use belay_protocol::engine::{Loss, LossKind};
use belay_protocol::jsonrpc::Message;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, Sleep, sleep_until};

use super::dispatch::Turned;
use super::io::{Incoming, Io, Moved, Tap};
use super::{App, BoxFuture, LINK, Link};

/// After the pipe has ended, the exit of the process behind it is waited for so long: it says more
/// than the end of a pipe does.
const EXIT_AFTER_END: Duration = Duration::from_millis(500);

/// When the process behind a pipe is gone, what it said last is read for so long. It is there
/// already; only the runtime may not have noticed.
const LAST_WORDS: Duration = Duration::from_millis(50);

/// At the very end, what was handed to a writer gets so long to leave, and what was dropped gets so
/// long to be gone.
const LAST_MOMENT: Duration = Duration::from_millis(200);

/// The ends of a connection, and what else can end it.
pub(crate) struct Ends<R, W> {
    pub(crate) reader: R,
    pub(crate) writer: W,
    /// The end of the process on the other side, where there is one.
    pub(crate) exit: Option<BoxFuture<Loss>>,
    /// The end of whoever writes what is read here, where that can be known before all was read.
    /// Asked only while nothing is read.
    pub(crate) hung_up: Option<BoxFuture<()>>,
    /// Dropped after the ends are: what sees to the end of that process.
    pub(crate) keep: Option<Box<dyn Send>>,
    /// That process.
    pub(crate) process: Option<Process>,
    /// Sees every frame.
    pub(crate) tap: Option<Tap>,
}

/// The process on the other side.
#[derive(Clone)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    /// Kills it, and everything in its group.
    pub(crate) kill: Arc<dyn Fn() + Send + Sync>,
    /// Whether it is gone, and everything it has left behind.
    pub(crate) gone: watch::Receiver<bool>,
}

/// Drives a link in the background. This is the one task that its tracker does not count, since it
/// is the one that waits for all others.
pub(crate) fn launch<R, W>(link: &Arc<Link>, ends: Ends<R, W>, app: Arc<dyn App>) -> JoinHandle<()>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    tokio::spawn(drive(Driven(link.clone()), ends, app))
}

/// Turns the engine until the link is closed.
async fn drive<R, W>(driven: Driven, ends: Ends<R, W>, app: Arc<dyn App>)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    // Dropped last, whoever drops this future.
    let _keep = ends.keep;
    let link = driven.0.clone();
    let (longest, depth) = link.reading_limits();
    let mut io = Io::new(ends.reader, ends.writer, longest, depth, ends.tap);
    let mut ending = Ending::new(ends.exit);
    let mut hung_up = ends.hung_up;
    let mut timer = Box::pin(sleep_until(Instant::now()));
    loop {
        let turned = link.dispatch(&app);
        // What was read is run before more is read, so that it does not pile up (**bounded**). If it
        // cannot be run because a handler does not yield, somebody else does so.
        let reads = turned.wants_input && !link.has_waiting();
        if turned.closed {
            io.finish(LAST_MOMENT).await;
            link.end_runner();
            link.tasks_gone(LAST_MOMENT).await;
            return;
        }
        let deadline = turned.deadline;
        if let Some(deadline) = deadline
            && deadline != timer.deadline()
        {
            timer.as_mut().reset(deadline);
        }
        // The end of the input cannot be seen while what comes before it is not read.
        let watches = hung_up.is_some() && !turned.wants_input;
        tokio::select! {
            biased;
            loss = ending.wait() => link.lose_pipe(&mut io, loss).await,
            () = &mut timer, if deadline.is_some() => {
                link.tell(|engine, now| engine.handle_timeout(now));
            }
            moved = poll_fn(|cx| io.poll_move(cx, &link, reads)) => match moved {
                Moved::Read => link.take_in(&mut io),
                Moved::Wrote => {}
                Moved::InputEnded => {
                    link.take_in(&mut io);
                    link.take_in_tail(&mut io);
                    match ending.expects_exit() {
                        true => ending.within(EXIT_AFTER_END, LossKind::EndOfStream.into()),
                        false => link.tell(|engine, now| engine.handle_input_ended(now, LINK)),
                    }
                }
                Moved::ReadFailed(error) | Moved::WriteFailed(error) => {
                    let span = match ending.expects_exit() {
                        true => EXIT_AFTER_END,
                        false => Duration::ZERO,
                    };
                    ending.within(span, io_loss(error));
                }
            },
            () = poll_fn(|cx| poll_watched(&mut hung_up, cx)), if watches => {
                link.tell(|engine, now| engine.handle_hung_up(now));
            }
            // Last: whatever woke us, every turn looks at all there is.
            () = link.wake.notified() => link.until_others_ran().await,
        }
    }
}

/// Ready once.
fn poll_watched(watched: &mut Option<BoxFuture<()>>, cx: &mut Context<'_>) -> Poll<()> {
    let Some(future) = watched else {
        return Poll::Pending;
    };
    ready!(future.as_mut().poll(cx));
    *watched = None;
    Poll::Ready(())
}

/// How long a link without a pipe is turned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Until {
    /// Until it is closed: it belongs to a session, or to a client.
    Closed,
    /// Until nothing goes on: it belongs to a single POST.
    Idle,
}

/// Turns a link that has no pipe: handlers start and stop, deadlines pass. What
/// comes and goes on its exchanges is up to those who carry them.
///
/// # Cancel safety
///
/// Dropping it leaves the link as it is; whoever goes on turning it loses nothing.
pub(crate) async fn drive_exchanges(link: &Arc<Link>, app: &Arc<dyn App>, until: Until) {
    drive_exchanges_with(link, app, until, || {}).await;
}

/// The same, with something to do at every turn.
pub(crate) async fn drive_exchanges_with(
    link: &Arc<Link>,
    app: &Arc<dyn App>,
    until: Until,
    mut at_every_turn: impl FnMut(),
) {
    let mut timer = std::pin::pin!(sleep_until(Instant::now()));
    loop {
        let turned = link.dispatch(app);
        at_every_turn();
        if turned.reached(until) {
            return;
        }
        let deadline = turned.deadline;
        if let Some(deadline) = deadline
            && deadline != timer.deadline()
        {
            timer.as_mut().reset(deadline);
        }
        tokio::select! {
            biased;
            () = &mut timer, if deadline.is_some() => {
                link.tell(|engine, now| engine.handle_timeout(now));
            }
            () = link.wake.notified() => {}
        }
    }
}

/// A link that is being driven. When it is not any more, everybody is told.
pub(crate) struct Driven(pub(crate) Arc<Link>);

impl Drop for Driven {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// What ends the link from outside: the exit of a process, or a pipe that broke.
struct Ending {
    exit: Option<BoxFuture<Loss>>,
    /// What happened to the pipe, and how long something better is waited for.
    broken: Option<(Loss, Pin<Box<Sleep>>)>,
}

impl Ending {
    fn new(exit: Option<BoxFuture<Loss>>) -> Self {
        Self { exit, broken: None }
    }

    fn expects_exit(&self) -> bool {
        self.exit.is_some()
    }

    fn within(&mut self, span: Duration, loss: Loss) {
        if self.broken.is_none() {
            self.broken = Some((loss, Box::pin(tokio::time::sleep(span))));
        }
    }

    /// # Cancel safety
    ///
    /// Nothing is lost if this is dropped: what it waits for is kept.
    async fn wait(&mut self) -> Loss {
        poll_fn(|cx| {
            if let Some(exit) = &mut self.exit
                && let Poll::Ready(loss) = exit.as_mut().poll(cx)
            {
                self.exit = None;
                self.broken = None;
                return Poll::Ready(loss);
            }
            if let Some((loss, sleep)) = &mut self.broken
                && sleep.as_mut().poll(cx).is_ready()
            {
                let loss = loss.clone();
                self.exit = None;
                self.broken = None;
                return Poll::Ready(loss);
            }
            Poll::Pending
        })
        .await
    }
}

impl Turned {
    pub(crate) fn reached(&self, until: Until) -> bool {
        self.closed || (until == Until::Idle && self.quiet)
    }
}

impl Link {
    /// Whether nothing goes on.
    #[cfg(all(feature = "http", feature = "server"))]
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.lock();
        state.engine.is_closed() || state.engine.is_quiet()
    }

    /// A client's driver is woken by whoever calls first; tokio would run it next, and each call would
    /// be written by itself. So whoever is ready to call does so first, and all is written at once.
    async fn until_others_ran(&self) {
        if !self.keeps_runner {
            tokio::task::yield_now().await;
        }
    }

    /// Hands on the messages that were read, as long as the engine wants them: each of them gets
    /// its answer, so what cannot be answered now stays where it is (**answered-or-gone**).
    fn take_in<R, W>(&self, io: &mut Io<R, W>)
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let now = self.now();
        // Decoding takes its time, so it is done outside the lock.
        while let Some(Incoming { message, fits }) = io.next_message(&self.peer) {
            if let Err(error) = &message {
                tracing::debug!(%error, "a message was malformed (smallest-scope)");
            }
            let mut state = self.lock();
            match message {
                Ok(Message::Request(request)) if !fits => {
                    let engine = &mut state.engine;
                    engine.handle_request_without_room(now, LINK, &request);
                }
                Ok(message) => state.engine.handle_message(now, LINK, message),
                Err(error) => state.engine.handle_malformed(now, LINK, &error),
            }
            if !state.engine.wants_input() {
                return io.pause();
            }
        }
    }

    /// A last message without its newline counts, if it is whole.
    fn take_in_tail<R, W>(&self, io: &mut Io<R, W>)
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        if let Some(message) = io.last_message() {
            self.tell(|engine, now| engine.handle_message(now, LINK, message));
        }
    }

    /// The link is gone. What is already in the pipe is read first (**typed-end**); but somebody
    /// else may hold the pipe open, so its end is not waited for.
    async fn lose_pipe<R, W>(&self, io: &mut Io<R, W>, loss: Loss)
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let reading = async {
            while io.reads_more().await {
                self.take_in(io);
            }
        };
        let _ = tokio::time::timeout(LAST_WORDS, reading).await;
        self.take_in_tail(io);
        self.tell(|engine, now| engine.handle_exchange_lost(now, LINK, loss, false));
    }
}

fn io_loss(error: io::Error) -> Loss {
    let kind = match error.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => LossKind::EndOfStream,
        _ => LossKind::Io,
    };
    Loss {
        kind,
        source: Some(Arc::new(error)),
    }
}
