//! Random traffic on every wire at once against real processes, with a count of all outcomes.
//!
//! `cargo xtask soak` builds the tool and runs this: `belay-soak <the belay program> [--seconds N]
//! [--seed S]`. It exits with 1 if it found a problem, and with 2 if it could not begin.
//!
//! The seed decides what each worker does in each life, and with which pauses. It does not decide
//! how the operating system schedules the processes, so a seed replays the schedule but not every
//! race.

mod ask;
mod client;
mod client_call;
mod client_wire;
mod exchange;
mod last_calls;
mod observer;
mod pipe;
mod processes;
mod quiet;
mod random;
mod raw_event_stream;
mod raw_modern;
mod raw_session;
mod raw_stdio;
mod report;
mod round;
mod server;
mod session_actions;
mod soak;
mod workers;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use report::Rest;
use server::Server;
use soak::Soak;

/// The result of a check; the error says what went wrong.
type Done = Result<(), String>;

/// Combines the problems of two checks.
fn both(one: Done, other: Done) -> Done {
    match (one, other) {
        (Err(one), Err(other)) => Err(format!("{one}; {other}")),
        (one, other) => one.and(other),
    }
}

/// The timeout for everything that is expected. It is long, so that a busy machine does not fail.
const PATIENCE: Duration = Duration::from_secs(20);

/// Additional descriptors since the warm-up: none may leak, and none may be open at rest.
const MORE_DESCRIPTORS: usize = 0;

/// Additional threads since the warm-up: threads of blocking handlers end with their handlers.
const MORE_THREADS: usize = 0;

/// Additional memory in bytes since the warm-up. An allocator does not return everything, and how
/// much it keeps depends on how many large answers were unread at the same moment. Runs of twelve
/// seconds and of a minute showed up to 5 MiB, a run of four minutes 1 MiB. The limit is a little
/// over twice the maximum, some 300 bytes for each request of a minute; longer runs detect smaller
/// leaks.
const MORE_MEMORY: usize = 12 << 20;

#[tokio::main]
async fn main() -> ExitCode {
    let Some(options) = Options::read(std::env::args().skip(1)) else {
        eprintln!("belay-soak <the belay program> [--seconds N] [--seed S]");
        return ExitCode::from(2);
    };
    let replay = format!(
        "cargo xtask soak --seconds {} --seed {}",
        options.seconds, options.seed
    );
    println!("soak: {} s, seed {}", options.seconds, options.seed);
    watch(
        Duration::from_secs(options.seconds) + OVERTIME,
        replay.clone(),
    );
    let problems = match run(options).await {
        Ok(problems) => problems,
        Err(problem) => {
            eprintln!("soak: {problem}");
            return ExitCode::from(2);
        }
    };
    if problems.is_empty() {
        println!("\neverything accounted for");
        return ExitCode::SUCCESS;
    }
    println!("\nproblems:");
    for problem in &problems {
        println!("- {problem}");
    }
    println!("\nThe same schedule again: {replay}");
    ExitCode::FAILURE
}

/// Ends the program if it hangs. This needs a thread, because a client that spins would also block
/// the runtime.
fn watch(time: Duration, replay: String) {
    std::thread::spawn(move || {
        std::thread::sleep(time);
        println!("\nproblems:\n- no-hang: the soak has not come to its end within {time:?}");
        println!("\nThe same schedule again: {replay}");
        std::process::exit(1);
    });
}

/// The maximum time for the last lives, for waiting twice until the server is at rest, and for its
/// end.
const OVERTIME: Duration = Duration::from_secs(300);

struct Options {
    belay: PathBuf,
    seconds: u64,
    seed: u64,
}

impl Options {
    fn read(mut arguments: impl Iterator<Item = String>) -> Option<Self> {
        let belay = arguments.next()?.into();
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let mut options = Self {
            belay,
            seconds: 60,
            seed: since.map_or(0, |since| u64::from(since.subsec_nanos())),
        };
        while let Some(name) = arguments.next() {
            let number = arguments.next()?.parse().ok()?;
            match name.as_str() {
                "--seconds" => options.seconds = number,
                "--seed" => options.seed = number,
                _ => return None,
            }
        }
        Some(options)
    }
}

/// Runs a warm-up, measures the server at rest, runs for the rest of the time, and measures again.
async fn run(options: Options) -> Result<Vec<String>, String> {
    let time = Duration::from_secs(options.seconds);
    let server = Server::start(&options.belay).await?;
    let soak = Arc::new(Soak::new(options.belay, server.address, options.seed));
    let mut lives = Vec::new();
    let warm = phase(&soak, &server, &mut lives, time / 4).await;
    let end = match warm {
        Some(_) => phase(&soak, &server, &mut lives, time - time / 4).await,
        None => None,
    };
    if let (Some(warm), Some(_)) = (&warm, &end) {
        let compared = compare(&server, warm).await;
        compared.unwrap_or_else(|problem| soak.problem(problem));
    }
    let ended = last_calls::end(server).await;
    ended.unwrap_or_else(|problem| soak.problem(format!("at SIGTERM: {problem}")));
    let (name, value) = soak::mark();
    let left = processes::until_none_is_left(&format!("{name}={value}")).await;
    left.unwrap_or_else(|problem| soak.problem(problem));
    report::print_requests(&soak);
    if let (Some(warm), Some(end)) = (warm, end) {
        report::print_server(&warm, &end);
    }
    Ok(soak.problems())
}

/// Runs the workers for a while, then waits until the server is at rest. `None` if a problem was
/// found.
async fn phase(
    soak: &Arc<Soak>,
    server: &Server,
    lives: &mut Vec<u64>,
    time: Duration,
) -> Option<Rest> {
    soak.go_on_until(Instant::now() + time);
    workers::work(soak, lives).await;
    if !soak.problems().is_empty() {
        return None;
    }
    match at_rest(soak, server).await {
        Ok(rest) => Some(rest),
        Err(problem) => {
            soak.problem(format!("the server at rest: {problem}"));
            None
        }
    }
}

async fn at_rest(soak: &Soak, server: &Server) -> Result<Rest, String> {
    let books = server.come_to_rest(soak.take_sessions()).await?;
    books.check()?;
    // The server may still be closing connections that were closed a moment ago, so take the lowest
    // figures within a second.
    let mut figures = server.figures()?;
    for _ in 0..10 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        figures = figures.least(server.figures()?);
    }
    Ok(Rest { books, figures })
}

/// Waits until the server holds no more than after the warm-up.
async fn compare(server: &Server, warm: &Rest) -> Done {
    let until = Instant::now() + PATIENCE;
    loop {
        let (now, then) = (server.figures()?, warm.figures);
        let is_same = now.descriptors <= then.descriptors + MORE_DESCRIPTORS
            && now.threads <= then.threads + MORE_THREADS
            && now.memory <= then.memory + MORE_MEMORY;
        if is_same {
            return Ok(());
        }
        if Instant::now() > until {
            return Err(format!("the server has grown from {then:?} to {now:?}"));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
