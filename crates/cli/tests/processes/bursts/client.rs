//! From one client: ten thousand calls at once, on every wire. Each ends once, in one of three ways,
//! and the client is as good as before.

use std::time::Duration;

use belay::outcome::{Outcome, Rejection};
use belay::types::error_code::OVERLOADED;
use belay::{Client, ErrorKind};
use belay_testkit::check;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;

use crate::http::{HttpServer, WAYS};
use crate::support::{MODES, client, is_alone, memory, text};

const CALLS: usize = 10_000;

/// So many calls of one client are in flight at once; one more is rejected before it begins.
const IN_FLIGHT: usize = 4096;

#[tokio::test]
async fn one_end_ten_thousand_calls_at_once_on_stdio() {
    if !is_alone("bursts::client::one_end_ten_thousand_calls_at_once_on_stdio").await {
        return;
    }
    for mode in MODES {
        let client = client(mode).await;
        let grown = Grown::since(client.pid().unwrap());
        burst(&client).await;
        grown.at_most(64 << 20);
        client.close().await;
    }
}

#[tokio::test]
async fn one_end_ten_thousand_calls_at_once_on_http() {
    if !is_alone("bursts::client::one_end_ten_thousand_calls_at_once_on_http").await {
        return;
    }
    // Each call that waits has a connection of its own, on both sides.
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    assert!(
        maximum.is_none_or(|most| most > 2 * IN_FLIGHT as u64),
        "this takes more files than `ulimit -Hn` allows"
    );
    let current = maximum;
    setrlimit(Resource::Nofile, Rlimit { current, maximum }).unwrap();
    for way in WAYS {
        let server = HttpServer::start().await;
        let client = server.client(way).await;
        let grown = Grown::since(server.pid());
        burst(&client).await;
        grown.at_most(IN_FLIGHT * (64 << 10));
        client.close().await;
    }
}

/// Makes all the calls, then waits for all of them.
async fn burst(client: &Client) {
    let before = client.ledger().calls;
    let calls: Vec<_> = (0..CALLS)
        .map(|number| {
            let arguments = json!({ "text": number.to_string() });
            client.call_tool("echo", arguments).start()
        })
        .collect();
    let (mut answered, mut overloaded, mut rejected) = (0, 0, 0);
    for (number, call) in calls.into_iter().enumerate() {
        let ended = tokio::time::timeout(Duration::from_secs(60), call).await;
        match ended.unwrap_or_else(|_| panic!("call {number} hangs")) {
            Ok(result) => {
                assert_eq!(text(&result), number.to_string(), "somebody else's answer");
                answered += 1;
            }
            Err(error) if error.kind() == ErrorKind::Rejected => {
                let limit = IN_FLIGHT;
                let too_many = Outcome::Rejected(Rejection::TooManyCalls { limit });
                assert_eq!(
                    format!("{:?}", error.outcome()),
                    format!("{:?}", Some(too_many))
                );
                rejected += 1;
            }
            // By the server, which runs so many requests of one client at once and no more.
            Err(error) => {
                let code = error.refusal().map(|refusal| refusal.code);
                assert_eq!(code, Some(OVERLOADED), "{number}: {error:?}");
                overloaded += 1;
            }
        }
    }
    println!("{answered} answered, {overloaded} overloaded, {rejected} rejected");
    assert_eq!(
        rejected,
        CALLS - IN_FLIGHT,
        "none ends before all have begun"
    );
    assert!(answered > 0);
    let ledger = client.ledger();
    check(&ledger);
    assert_eq!(ledger.calls.in_flight(), 0);
    assert_eq!(ledger.calls.ended() - before.ended(), CALLS as u64);
    let after = client.call_tool("echo", json!({ "text": "after" })).await;
    assert_eq!(text(&after.unwrap()), "after");
}

/// What a burst costs, here and at the server.
struct Grown {
    server: u32,
    before: [usize; 2],
}

impl Grown {
    fn since(server: u32) -> Self {
        let before = [std::process::id(), server].map(memory);
        Self { server, before }
    }

    fn at_most(self, limit: usize) {
        let after = Self::since(self.server).before;
        for (side, (after, before)) in ["client", "server"]
            .iter()
            .zip(after.iter().zip(self.before))
        {
            let grown = after.saturating_sub(before);
            println!("the {side} grew by {grown} bytes");
            assert!(grown < limit, "the {side} grew by {grown} bytes");
        }
    }
}
