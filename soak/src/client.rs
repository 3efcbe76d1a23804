//! Workers with Belay's own client, on every wire: each call has exactly one end, and the right
//! one. A life is a connection: calls are made, then it is closed, dropped or lost.

use std::process::Command;
use std::time::{Duration, Instant};

use belay::client::ClientBuilder;
use belay::client::Mode;
use belay::{Client, Error};
use rustix::process::Signal;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::client_call::{Plan, Tally};
use crate::client_wire::Written;
use crate::processes;
use crate::quiet::Books;
use crate::server::Server;
use crate::soak::{self, Life};
use crate::{Done, PATIENCE, both};

/// The transport of the calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Carrier {
    Stdio,
    Http,
    EventStream,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ending {
    Closed,
    Dropped,
    /// The server is killed with calls in flight.
    Killed,
}

pub(crate) async fn live(life: &mut Life, carrier: Carrier, mode: Mode) -> Done {
    let ending = match life.random.below(4) {
        0 => Ending::Killed,
        1 => Ending::Dropped,
        _ => Ending::Closed,
    };
    // A worker that kills an HTTP server starts its own.
    let own = match (ending, carrier) {
        (Ending::Killed, Carrier::Http | Carrier::EventStream) => {
            Some(Server::start(&life.soak.belay).await?)
        }
        _ => None,
    };
    let written = Written::default();
    let builder = written.by(Client::builder("soak", "1").mode(mode));
    let client = connect(life, builder, carrier, own.as_ref()).await;
    let client = client.map_err(|error| format!("it cannot connect: {error:?}"))?;
    let mut tally = Tally::default();
    let lived = Connection {
        client,
        own,
        carrier,
    }
    .live(life, ending, &mut tally)
    .await;
    life.count(tally.counts());
    // On modern HTTP the end of the stream is the cancellation.
    let on_modern_http = carrier == Carrier::Http && mode == Mode::Modern;
    let checked = both(lived, written.check(!on_modern_http));
    checked.map_err(|problem| format!("{ending:?}: {problem}"))
}

async fn connect(
    life: &Life,
    builder: ClientBuilder,
    carrier: Carrier,
    own: Option<&Server>,
) -> Result<Client, Error> {
    let address = own.map_or(life.soak.address, |server| server.address);
    match carrier {
        Carrier::Stdio => {
            let mut command = Command::new(&life.soak.belay);
            let (name, value) = soak::mark();
            command.arg("serve").env(name, value);
            command.env("RUST_BACKTRACE", "0");
            builder.spawn(command).await
        }
        Carrier::Http => builder.http(&format!("http://{address}/mcp")).await,
        Carrier::EventStream => builder.http(&format!("http://{address}/sse")).await,
    }
}

struct Connection {
    client: Client,
    own: Option<Server>,
    carrier: Carrier,
}

impl Connection {
    async fn live(self, life: &mut Life, ending: Ending, tally: &mut Tally) -> Done {
        for group in 0..life.random.between(1, 5) {
            calls(&self.client, life, group, tally).await?;
            // No calls of other workers run on these servers.
            if self.own.is_some() || self.carrier == Carrier::Stdio {
                until_at_rest(&self.client).await?;
            }
        }
        self.end(life, ending, tally).await
    }

    async fn end(self, life: &mut Life, ending: Ending, tally: &mut Tally) -> Done {
        let Self {
            client,
            own,
            carrier,
        } = self;
        let hangs: Vec<_> = (0..life.random.between(0, 10))
            .map(|_| client.call_tool("hang", json!({})).start())
            .collect();
        sleep(life.random.millis(0, 400)).await;
        match ending {
            Ending::Closed => {
                let closed = timeout(PATIENCE, client.close()).await;
                closed.map_err(|_| "a client does not close")?;
            }
            Ending::Killed => match (own, client.pid()) {
                (Some(server), _) => server.kill().await?,
                (None, Some(pid)) => processes::signal(pid, Signal::KILL)?,
                (None, None) => return Err("there is nobody to kill".into()),
            },
            // The calls hold the connection, so they are dropped before it.
            Ending::Dropped => {
                tally.cancelled(hangs.len());
                drop(hangs);
                return Ok(());
            }
        }
        for hang in hangs {
            let ended = timeout(Duration::from_secs(5), hang).await;
            let ended = ended.map_err(|_| "no-hang: a call outlives its connection")?;
            let error = ended.err().ok_or("a hang was answered")?;
            match (ending, error.is_cancelled(), error.is_lost()) {
                (Ending::Closed, true, _) => tally.cancelled(1),
                (Ending::Killed, false, true) => tally.cut(1),
                _ => return Err(format!("typed-end: {error:?}")),
            }
        }
        if carrier == Carrier::Stdio {
            let closed = timeout(PATIENCE, client.closed()).await;
            closed.map_err(|_| "a client does not know that its server is gone")?;
        }
        // On HTTP the client may notice the loss only with this call.
        let knows = ending == Ending::Closed || carrier == Carrier::Stdio;
        let late = client.call_tool("echo", json!({ "text": "late" }));
        let late = timeout(PATIENCE, late).await;
        match late.map_err(|_| "no-hang: a call after the end")? {
            Err(error) if error.is_lost() && (error.safe_to_retry() || !knows) => tally.cut(1),
            ended => return Err(format!("closed-is-known: {ended:?}")),
        }
        check_books(&client)
    }
}

/// Makes calls concurrently and waits for the end of each.
async fn calls(client: &Client, life: &mut Life, group: u64, tally: &mut Tally) -> Done {
    let plans: Vec<Plan> = (0..life.random.between(1, 40))
        .map(|_| Plan::draw(&mut life.random))
        .collect();
    // Dropping the set drops the calls that do not end.
    let mut calls = JoinSet::new();
    for (number, plan) in plans.into_iter().enumerate() {
        let tag = format!("{} call {group}.{number}", life.name());
        calls.spawn(plan.call(client.clone(), tag));
    }
    while let Some(ended) = timeout(PATIENCE * 2, calls.join_next())
        .await
        .map_err(|_| "no-hang: a call has no end")?
    {
        tally.add(ended.map_err(|error| format!("a call panicked: {error}"))??);
    }
    check_books(client)
}

/// Checks the ledger of the client itself (**ledger**).
fn check_books(client: &Client) -> Done {
    let calls = client.ledger().calls;
    match calls.started() == calls.ended() {
        true => Ok(()),
        false => Err(format!("ledger: calls are in flight: {calls:?}")),
    }
}

/// Waits until no handler runs on a server whose only client has no calls in flight
/// (**drop-announces**, **stops-with-its-caller**).
async fn until_at_rest(client: &Client) -> Done {
    let until = Instant::now() + PATIENCE;
    loop {
        let mut told = Vec::new();
        for tool in ["active", "ledger"] {
            let result = client.call_tool(tool, json!({})).await;
            let result = result.map_err(|error| format!("{tool}: {error:?}"))?;
            told.push(json!({ "result": result }));
        }
        match Books::read(&told[0], &told[1])?.check() {
            Ok(()) => return Ok(()),
            Err(problem) if Instant::now() > until => return Err(problem),
            Err(_) => sleep(Duration::from_millis(10)).await,
        }
    }
}
