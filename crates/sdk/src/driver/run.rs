//! The driver's loops: for a pipe, and for a link without one.

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

/// How long to wait for the process to exit after its pipe has ended. Its exit says
/// more than the end of a pipe.
const EXIT_AFTER_END: Duration = Duration::from_millis(500);

/// How long to read on after the process has exited. Its last output is in the pipe already, but
/// the runtime may not have noticed.
const LAST_WORDS: Duration = Duration::from_millis(50);

/// How long the writer may take to flush, and tasks to be dropped, when the link is closed.
const LAST_MOMENT: Duration = Duration::from_millis(200);

/// The two ends of a connection, and other events that end it.
pub(crate) struct Ends<R, W> {
    pub(crate) reader: R,
    pub(crate) writer: W,
    /// The exit of the process on the other side, if it is a child.
    pub(crate) exit: Option<BoxFuture<Loss>>,
    /// Completes when the writing end of the input is closed, where that can be known before
    /// everything was read. Polled only while nothing is read.
    pub(crate) hung_up: Option<BoxFuture<()>>,
    /// Dropped after the two ends: the guard that ends the process.
    pub(crate) keep: Option<Box<dyn Send>>,
    /// The process on the other side.
    pub(crate) process: Option<Process>,
    /// A callback for every frame.
    pub(crate) tap: Option<Tap>,
}

/// The process on the other side.
#[derive(Clone)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    /// Kills it, and everything in its group.
    pub(crate) kill: Arc<dyn Fn() + Send + Sync>,
    /// Whether it is gone, with everything in its group.
    pub(crate) gone: watch::Receiver<bool>,
}

/// Drives a link in the background. This is the only task that the tracker does not count,
/// because it waits for all others.
pub(crate) fn launch<R, W>(link: &Arc<Link>, ends: Ends<R, W>, app: Arc<dyn App>) -> JoinHandle<()>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    tokio::spawn(drive(Driven(link.clone()), ends, app))
}

/// Drives the link until it is closed.
async fn drive<R, W>(driven: Driven, ends: Ends<R, W>, app: Arc<dyn App>)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    // Dropped last, also when this future is dropped.
    let _keep = ends.keep;
    let link = driven.0.clone();
    let (longest, depth) = link.reading_limits();
    let mut io = Io::new(ends.reader, ends.writer, longest, depth, ends.tap);
    let mut ending = Ending::new(ends.exit);
    let mut hung_up = ends.hung_up;
    let mut timer = Box::pin(sleep_until(Instant::now()));
    loop {
        let turned = link.dispatch(&app);
        // Handlers run before more is read, so that requests do not pile up (**bounded**). If a
        // handler blocks the runner, the watchdog starts another one.
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
        // The end of the input cannot be read while earlier input is not read.
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
            // Last, because every turn looks at everything, whatever woke it.
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

/// How long a link without a pipe is driven.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Until {
    /// Until it is closed: the link of a session, or of a client.
    Closed,
    /// Until nothing goes on: the link of a single POST.
    Idle,
}

/// Drives a link without a pipe: starts and stops handlers, and keeps deadlines. Frames are moved
/// by the tasks that carry its exchanges.
///
/// # Cancel safety
///
/// Dropping it leaves the link as it is. Another task can drive it and loses nothing.
pub(crate) async fn drive_exchanges(link: &Arc<Link>, app: &Arc<dyn App>, until: Until) {
    drive_exchanges_with(link, app, until, || {}).await;
}

/// Like [`drive_exchanges`], with a function that is called at every turn.
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

/// A link that is being driven. When it is dropped, all waiting tasks are notified.
pub(crate) struct Driven(pub(crate) Arc<Link>);

impl Drop for Driven {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// What ends the link from outside: the exit of a process, or a broken pipe.
struct Ending {
    exit: Option<BoxFuture<Loss>>,
    /// What happened to the pipe, and how long to wait for the exit of the process.
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
    /// Dropping the future loses nothing, because what it waits for is stored.
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

    /// Lets other ready tasks run before a client's driver writes. tokio would run the driver
    /// right after the first call, and each call would be written on its own. So all calls that
    /// are ready are written at once.
    async fn until_others_ran(&self) {
        let is_client = !self.keeps_runner;
        if is_client {
            tokio::task::yield_now().await;
        }
    }

    /// Passes messages to the engine, as long as it wants them. Each request gets an answer, so
    /// those that cannot be answered now are not taken (**answered-or-gone**).
    fn take_in<R, W>(&self, io: &mut Io<R, W>)
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let now = self.now();
        // Decoding is slow, so it is done outside of the lock.
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

    /// A last message without a newline is accepted, if it is complete.
    fn take_in_tail<R, W>(&self, io: &mut Io<R, W>)
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        if let Some(message) = io.last_message() {
            self.tell(|engine, now| engine.handle_message(now, LINK, message));
        }
    }

    /// Handles the loss of the pipe. What is already in it is read first (**typed-end**), but
    /// without waiting for its end, because another process may hold it open.
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
