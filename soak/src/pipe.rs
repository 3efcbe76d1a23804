//! Plays rounds on a pipe: the stdin and stdout of a child, or the two directions of an event
//! stream.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::{Instant, sleep_until, timeout};

use crate::observer::Observer;
use crate::round::{Round, Step};
use crate::{Done, PATIENCE};

/// The writing direction.
pub(crate) trait Input {
    /// Writes frames in one piece, or torn into several. The observer records each one before it is
    /// written.
    async fn write_frames(&mut self, frames: &[Vec<u8>], torn: bool, observer: &Observed) -> Done;
}

/// The reading direction.
pub(crate) trait Output {
    /// The next frame; `None` at the end. Dropping the future loses nothing.
    async fn read_frame(&mut self) -> Result<Option<Vec<u8>>, String>;
}

/// An observer that is shared by the writer and the reader.
pub(crate) struct Observed(Mutex<Observer>);

impl Observed {
    pub(crate) fn new(observer: Observer) -> Self {
        Self(Mutex::new(observer))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Observer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn into_inner(self) -> Observer {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Plays the steps of a round, and reads until everything has been answered.
pub(crate) async fn play(
    round: &Round,
    input: &mut impl Input,
    output: &mut impl Output,
    observed: &Observed,
) -> Done {
    let writing = async {
        for step in &round.steps {
            match step {
                Step::Write { frames, torn } => input.write_frames(frames, *torn, observed).await?,
                Step::Wait(span) => tokio::time::sleep(*span).await,
            }
        }
        Done::Ok(())
    };
    tokio::pin!(writing);
    let unread = sleep_until(Instant::now() + round.unread);
    tokio::pin!(unread);
    let (mut is_written, mut reads) = (false, round.unread.is_zero());
    while !is_written || !observed.lock().is_settled() {
        tokio::select! {
            written = &mut writing, if !is_written => {
                written?;
                is_written = true;
            }
            () = &mut unread, if !reads => reads = true,
            read = timeout(PATIENCE, output.read_frame()), if reads => match read {
                Ok(frame) => match frame? {
                    Some(frame) => observed.lock().received(&frame),
                    None => return Err("the pipe ended before everything was answered".into()),
                },
                Err(_) => return Err(format!("nothing came for {PATIENCE:?}")),
            }
        }
    }
    // The last frame of a round is an echo, so its answer shows that all cancels before it were
    // read.
    observed.lock().transcript().cancels_were_read();
    Ok(())
}

/// Reads to the end of the output.
pub(crate) async fn drain(output: &mut impl Output, observed: &Observed) -> Done {
    loop {
        match timeout(PATIENCE, output.read_frame()).await {
            Ok(Ok(Some(frame))) => observed.lock().received(&frame),
            Ok(Ok(None)) => return Ok(()),
            Ok(Err(error)) => return Err(error),
            Err(_) => return Err(format!("the pipe does not end within {PATIENCE:?}")),
        }
    }
}
