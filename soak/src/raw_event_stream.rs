//! Raw bytes to the transport of 2024-11-05: everything is posted, and all answers come on one
//! event stream. A life is such a stream: rounds, then it is cut, which cancels the requests in
//! flight.

use belay_testkit::RawHttp;
use serde_json::Value;
use tokio::time::sleep;

use crate::exchange;
use crate::observer::{Era, Observer, initialized};
use crate::pipe::{Input, Observed, Output, play};
use crate::round::{Round, Step};
use crate::soak::Life;
use crate::{Done, both};

pub(crate) async fn live(life: &mut Life) -> Done {
    let observed = Observed::new(Observer::new(life.name(), Era::Legacy));
    let lived = act(life, &observed).await;
    let observer = observed.into_inner();
    life.count(observer.counts());
    both(lived, observer.check())
}

async fn act(life: &mut Life, observed: &Observed) -> Done {
    let mut stream = EventStream(RawHttp::connect(life.soak.address).await);
    stream.0.path = "/sse".into();
    stream.0.send("GET", b"").await;
    let answer = exchange::head(&mut stream.0).await?;
    if !answer.is_stream() {
        return Err(format!("no event stream was opened: {}", answer.status));
    }
    let endpoint = stream.0.event().await;
    let endpoint = endpoint.and_then(|(_, said)| said.as_str().map(str::to_owned));
    let endpoint = endpoint.ok_or("the stream does not say where to post")?;
    let mut posts = Posts(RawHttp::connect(life.soak.address).await);
    posts.0.path = format!("/{endpoint}");
    let hello = observed.lock().initialize("2024-11-05");
    let opening = Round {
        steps: vec![Step::Write {
            frames: vec![hello.bytes(), initialized()],
            torn: false,
        }],
        unread: std::time::Duration::ZERO,
    };
    play(&opening, &mut posts, &mut stream, observed).await?;
    for _ in 0..life.random.between(1, 5) {
        let round = Round::draw(&mut life.random, &mut observed.lock());
        play(&round, &mut posts, &mut stream, observed).await?;
    }
    let left = Round::left_in_flight(&mut life.random, &mut observed.lock());
    posts.write_frames(&left, false, observed).await?;
    sleep(life.random.millis(0, 30)).await;
    observed.lock().cut();
    // The order in which the two are closed must make no difference.
    match life.random.one_in(2) {
        true => drop((stream, posts)),
        false => drop((posts, stream)),
    }
    Ok(())
}

/// The connection for the POSTs, which are pipelined.
struct Posts(RawHttp);

impl Input for Posts {
    async fn write_frames(&mut self, frames: &[Vec<u8>], torn: bool, observed: &Observed) -> Done {
        let mut bytes = Vec::new();
        for frame in frames {
            observed.lock().sent(frame);
            bytes.extend(self.0.encoded("POST", frame));
        }
        let piece = if torn { 4099 } else { usize::MAX };
        for piece in bytes.chunks(piece) {
            exchange::write(&mut self.0, piece).await?;
        }
        for frame in frames {
            let answer = exchange::head(&mut self.0).await?;
            if answer.status == 202 {
                continue;
            }
            // The POST was refused, and that is the answer to its request.
            let message: Value = serde_json::from_slice(frame).unwrap_or_default();
            let id = message
                .get("id")
                .filter(|_| message.get("method").is_some());
            let ids: Vec<&Value> = id.into_iter().collect();
            exchange::body(&answer, &ids, &mut observed.lock());
        }
        Ok(())
    }
}

struct EventStream(RawHttp);

impl Output for EventStream {
    async fn read_frame(&mut self) -> Result<Option<Vec<u8>>, String> {
        let event = self.0.try_event().await;
        let event = event.map_err(|error| format!("the stream broke off: {error}"))?;
        Ok(event.map(|(_, message)| message.to_string().into_bytes()))
    }
}
