//! The clients that are measured, with the floor's server on the other side.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use belay::client::Mode;
use belay::{Client, Error};
use belay_cost::bare;
use belay_cost::messages::{Era, TEXT};
use serde_json::json;

use crate::counts::Counts;
use crate::load::{IN_FLIGHT, start};
use crate::scenario::{Who, Wire};
use crate::server::runtime;

/// Makes this many calls, and reports their cost.
pub(crate) fn call(wire: Wire, era: Era, who: Who, calls: usize) {
    match (wire, who) {
        (Wire::Stdio, Who::Floor) => {
            let mut server = start(&["serve", "stdio", "floor"], None);
            let input = server.stdin.take().expect("a pipe");
            let output = BufReader::new(server.stdout.take().expect("a pipe"));
            bare::calls_on_pipe(input, output, era, calls, IN_FLIGHT);
            server.wait().expect("an exit");
        }
        (Wire::Stdio, Who::Belay) => runtime().block_on(async {
            let mut server = Command::new(std::env::current_exe().expect("ourselves"));
            server
                .args(["serve", "stdio", "floor"])
                .stderr(Stdio::null());
            let client = Client::builder("cost", "1")
                .mode(mode(era))
                .spawn(server)
                .await;
            belay_calls(client, calls, IN_FLIGHT).await;
        }),
        _ => {
            let mut server = start(&["serve", "http", "floor"], None);
            let mut address = String::new();
            let output = server.stdout.take().expect("a pipe");
            BufReader::new(output)
                .read_line(&mut address)
                .expect("an address");
            let address = address.trim();
            runtime().block_on(async {
                match who {
                    Who::Floor => {
                        let mut connection = bare::Connection::open(address, era).await;
                        for _ in 0..calls {
                            connection.call().await;
                        }
                    }
                    Who::Belay => {
                        let builder = Client::builder("cost", "1").mode(mode(era));
                        let client = builder.http(&format!("http://{address}/mcp")).await;
                        // One after the other, since each call in flight would need its own
                        // connection.
                        belay_calls(client, calls, 1).await;
                    }
                }
            });
            drop(server.stdin.take());
            server.wait().expect("an exit");
        }
    }
    Counts::report();
}

fn mode(era: Era) -> Mode {
    match era {
        Era::Legacy => Mode::Legacy,
        Era::Modern => Mode::Modern,
    }
}

async fn belay_calls(client: Result<Client, Error>, calls: usize, in_flight: usize) {
    let client = client.expect("a server");
    if in_flight == 1 {
        for _ in 0..calls {
            let result = client.call_tool("echo", json!({ "text": TEXT })).await;
            assert_eq!(result.expect("an answer").content[0].as_text(), Some(TEXT));
        }
        client.close().await;
        return;
    }
    for first in (0..calls).step_by(in_flight) {
        let started: Vec<_> = (first..calls.min(first + in_flight))
            .map(|_| client.call_tool("echo", json!({ "text": TEXT })).start())
            .collect();
        for call in started {
            let result = call.await.expect("an answer");
            assert_eq!(result.content[0].as_text(), Some(TEXT));
        }
    }
    client.close().await;
}
