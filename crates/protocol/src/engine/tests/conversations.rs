//! Random conversations between two engines. The pipe between them can stall, break and end, and
//! the time is advanced by hand.
//!
//! `BELAY_SEED=17` replays one conversation; `BELAY_CONVERSATIONS=1000000` runs more of them.

use std::collections::VecDeque;

use super::invariants::{Broken, broken};
use super::monitor::Monitor;
use super::*;
use crate::jsonrpc::ErrorObject;

const CONVERSATIONS: u64 = 20_000;
const STEPS: usize = 40;

#[test]
fn random_conversations_break_no_rule() {
    let only = std::env::var("BELAY_SEED").ok();
    let count = std::env::var("BELAY_CONVERSATIONS").ok();
    let parse = |text: String| text.parse::<u64>().expect("a whole number");
    let seeds = match (only.map(parse), count.map(parse)) {
        (Some(seed), _) => seed..seed + 1,
        (None, count) => 0..count.unwrap_or(CONVERSATIONS),
    };
    let mut total = Totals::default();
    for seed in seeds {
        let _told = TellSeed(seed);
        match converse(seed) {
            Ok(totals) => total.add(&totals),
            Err(broken) => panic!("{broken}\nreplay it with BELAY_SEED={seed}"),
        }
    }
    println!("{total:?}");
}

/// Sums over all conversations. They show whether enough happened for the run to mean something.
#[derive(Default, Debug)]
pub(super) struct Totals {
    calls: u64,
    ends: [u64; End::ALL.len()],
    requests: u64,
    late_answers: u64,
    stray_cancels: u64,
    silenced: u64,
}

impl Totals {
    fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.requests += other.requests;
        self.late_answers += other.late_answers;
        self.stray_cancels += other.stray_cancels;
        self.silenced += other.silenced;
        for (sum, more) in self.ends.iter_mut().zip(other.ends) {
            *sum += more;
        }
    }

    fn count(&mut self, ledger: &Ledger) {
        self.calls += ledger.calls.started();
        self.requests += ledger.requests.started();
        self.late_answers += ledger.late_answers;
        self.stray_cancels += ledger.stray_cancels;
        self.silenced += ledger.silenced;
        for end in End::ALL {
            self.ends[end as usize] += ledger.calls.ended_as(end);
        }
    }
}

/// Prints the seed if the engine itself panics.
struct TellSeed(u64);

impl Drop for TellSeed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("replay it with BELAY_SEED={}", self.0);
        }
    }
}

/// Runs one conversation from its handshake until both sides are idle.
pub(super) fn converse(seed: u64) -> Result<Totals, Broken> {
    let mut conversation = Conversation::new(seed);
    conversation.open()?;
    for _ in 0..STEPS {
        conversation.step()?;
        conversation.check()?;
    }
    conversation.wind_down()?;
    let mut totals = Totals::default();
    totals.count(conversation.client.harness.engine.ledger());
    totals.count(conversation.server.harness.engine.ledger());
    Ok(totals)
}

struct Conversation {
    random: Random,
    client: Side,
    server: Side,
    /// The pipe is cut in both directions.
    cut: bool,
}

/// One side: an engine, its handlers, and the pipe that leads to it.
struct Side {
    harness: Harness,
    monitor: Monitor,
    inbox: VecDeque<Bytes>,
    /// The peer has closed its end of the pipe.
    input_ends: bool,
    stalled: bool,
    calls: Vec<CallId>,
    handlers: Vec<RequestKey>,
    opening: Option<CallId>,
}

impl Side {
    fn new(config: Config) -> Self {
        Self {
            harness: Harness::new(config),
            monitor: Monitor::default(),
            inbox: VecDeque::new(),
            input_ends: false,
            stalled: false,
            calls: Vec::new(),
            handlers: Vec::new(),
            opening: None,
        }
    }

    /// Handles all events. A handler that is dropped is gone, but one in four blocks for a while.
    fn catch_up(&mut self, random: &mut Random) -> Result<(), Broken> {
        self.follow_opening();
        loop {
            while self.harness.engine.poll_transmit().is_some() {}
            let Some(event) = self.harness.engine.poll_event() else {
                break;
            };
            self.monitor.event(&event)?;
            match event {
                Event::Request(incoming) => {
                    self.monitor.request_began(incoming.key, incoming.id);
                    self.handlers.push(incoming.key);
                    if random.one_in(3) {
                        self.harness.engine.grant_grace(incoming.key, None);
                    }
                }
                Event::Abort { request } if !random.one_in(4) => {
                    self.handlers.retain(|key| *key != request);
                    let now = self.harness.now;
                    self.harness.engine.handler_gone(now, request);
                }
                Event::Ended { call, .. } => self.calls.retain(|known| *known != call),
                Event::Connected(_) => self.opening_ended(End::Answered),
                Event::ConnectFailed(_) => self.opening_ended(End::Lost),
                _ => {}
            }
        }
        self.follow_opening();
        Ok(())
    }

    /// The engine itself makes the calls of the handshake.
    fn follow_opening(&mut self) {
        let call = match self.harness.engine.handshake {
            Handshake::Probing { call, .. } | Handshake::Initializing { call } => call,
            _ => return,
        };
        if self.opening != Some(call) {
            self.opening_ended(End::Refused);
            self.monitor.call_began(call, true);
            self.opening = Some(call);
        }
    }

    fn opening_ended(&mut self, end: End) {
        if let Some(call) = self.opening {
            self.monitor.opening_ended(call, end);
        }
    }

    fn ask(&mut self, random: &mut Random, method: &str, serves: Option<RequestKey>) {
        let millis = |from, to, random: &mut Random| {
            Wait::AtMost(Duration::from_millis(from + random.below(to - from)))
        };
        let ask = Ask {
            serves,
            idle: millis(50, 500, random),
            total: millis(100, 2000, random),
            ..Ask::new(method, RawJson::empty_object())
        };
        if let Ok(call) = self.harness.engine.request(self.harness.now, ask) {
            self.monitor.call_began(call, false);
            self.calls.push(call);
        }
    }

    fn handler_acts(&mut self, random: &mut Random) -> Result<(), Broken> {
        let Some(key) = random.one_of(&self.handlers) else {
            return Ok(());
        };
        let now = self.harness.now;
        let answer = match random.below(8) {
            0..=2 => {
                let value = random.below(20) as f64;
                let said = self.harness.engine.progress(now, key, value, None, None);
                return said.map_err(|how| Broken {
                    rule: "bounded",
                    how: how.to_string(),
                });
            }
            3 => {
                self.ask(random, "elicitation/create", Some(key));
                return Ok(());
            }
            4 | 5 => Some(Ok(done())),
            6 => Some(Err(ErrorObject::new(1, "no"))),
            _ => None,
        };
        self.handlers.retain(|known| *known != key);
        match answer {
            Some(answer) => self.harness.engine.respond(now, key, answer),
            None => self.harness.engine.handler_gone(now, key),
        };
        Ok(())
    }

    /// Writes some of the waiting frames. The last one may be written only in part.
    fn write(&mut self, random: &mut Random, pipe: &mut VecDeque<Bytes>) -> Result<(), Broken> {
        self.follow_opening();
        let now = self.harness.now;
        for _ in 0..=random.below(3) {
            if self
                .harness
                .engine
                .exchanges
                .get(LINK)
                .is_some_and(|link| link.queue.has_begun())
            {
                self.harness.engine.handle_write_done(now, LINK);
            }
            let link = self.harness.engine.exchanges.get(LINK);
            let Some(frame) = link.and_then(|link| link.queue.waiting().next()) else {
                return Ok(());
            };
            let (owner, bytes) = (frame.owner, frame.bytes.clone());
            self.monitor
                .write_begun(&self.harness.engine, owner, &bytes)?;
            self.harness.engine.begin_write(now, LINK);
            pipe.push_back(bytes);
            if !random.one_in(4) {
                self.harness.engine.handle_write_done(now, LINK);
            }
        }
        Ok(())
    }

    fn read_one(&mut self) {
        if !self.harness.engine.wants_input() {
            return;
        }
        if let Some(frame) = self.inbox.pop_front() {
            let text = str::from_utf8(&frame).expect("frames are text");
            self.monitor
                .answered
                .taken(&self.harness.engine, LINK, text);
            self.harness.hear(text);
        }
    }

    fn is_quiet(&self) -> bool {
        let engine = &self.harness.engine;
        let link = engine.exchanges.get(LINK);
        engine.requests.calls().is_empty()
            && engine.requests.all_serving().is_empty()
            && engine.handlers() == 0
            && link.is_none_or(|link| link.queue.is_empty())
            && self.inbox.is_empty()
    }
}

impl Conversation {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let mut server = server_config(Wire::Pipe);
        let mut client = client_config(Wire::Pipe);
        if random.one_in(2) {
            for config in [&mut client, &mut server] {
                config.limits.handlers = 1 + random.below(3) as usize;
                config.limits.queued_answers = random.below(3) as usize;
            }
        }
        let mode = match random.below(4) {
            0 => Mode::Legacy,
            1 => Mode::Modern,
            2 => Mode::Auto,
            _ => {
                // A server that only supports the legacy era.
                server
                    .versions
                    .retain(|version| version.era() == Era::Legacy);
                Mode::Auto
            }
        };
        let mut conversation = Self {
            random,
            client: Side::new(client),
            server: Side::new(server),
            cut: false,
        };
        conversation
            .client
            .harness
            .engine
            .connect(Time::START, mode);
        conversation
    }

    /// Completes the handshake undisturbed in three of four conversations.
    fn open(&mut self) -> Result<(), Broken> {
        for _ in 0..if self.random.one_in(4) { 0 } else { 12 } {
            self.write(true)?;
            self.write(false)?;
            self.read(true);
            self.read(false);
            self.client.catch_up(&mut self.random)?;
            self.server.catch_up(&mut self.random)?;
        }
        Ok(())
    }

    fn step(&mut self) -> Result<(), Broken> {
        match self.random.below(24) {
            0..=3 => self.client.ask(&mut self.random, "tools/call", None),
            4 => self.give_up(true),
            5 => self.give_up(false),
            6..=9 => self.write(true)?,
            10..=12 => self.write(false)?,
            13..=14 => self.read(true),
            15..=16 => self.read(false),
            17..=18 => self.server.handler_acts(&mut self.random)?,
            19 => self.client.handler_acts(&mut self.random)?,
            20 => self.pass(self.random.clone().below(300)),
            21 => self.stray(),
            22 => {
                let side = self.either();
                side.stalled = !side.stalled;
            }
            _ => self.rarely(),
        }
        self.client.catch_up(&mut self.random)?;
        self.server.catch_up(&mut self.random)?;
        self.follow_closing();
        Ok(())
    }

    /// A side that has closed writes nothing more, and its peer sees the end of its input.
    fn follow_closing(&mut self) {
        self.server.input_ends |= self.client.harness.engine.is_closed();
        self.client.input_ends |= self.server.harness.engine.is_closed();
    }

    fn either(&mut self) -> &mut Side {
        match self.random.one_in(2) {
            true => &mut self.client,
            false => &mut self.server,
        }
    }

    fn give_up(&mut self, client: bool) {
        let side = if client {
            &mut self.client
        } else {
            &mut self.server
        };
        if let Some(call) = self.random.one_of(&side.calls) {
            side.harness.cancel(call);
        }
    }

    fn write(&mut self, client: bool) -> Result<(), Broken> {
        let (writer, reader) = match client {
            true => (&mut self.client, &mut self.server),
            false => (&mut self.server, &mut self.client),
        };
        if self.cut || writer.stalled {
            return Ok(());
        }
        writer.write(&mut self.random, &mut reader.inbox)
    }

    fn read(&mut self, client: bool) {
        let side = if client {
            &mut self.client
        } else {
            &mut self.server
        };
        for _ in 0..=self.random.below(4) {
            side.read_one();
        }
        // Frames that are in the pipe already are read first.
        if side.inbox.is_empty() && side.input_ends {
            side.harness
                .engine
                .handle_input_ended(side.harness.now, LINK);
        }
    }

    fn pass(&mut self, millis: u64) {
        let span = Duration::from_millis(millis);
        self.client.harness.pass(span);
        self.server.harness.pass(span);
    }

    /// Sends a stray message, which must change nothing except a counter.
    fn stray(&mut self) {
        let id = self.random.below(12).to_string();
        let text = match self.random.below(6) {
            0 => answer_to(&(100 + id.parse::<u64>().unwrap_or(0)).to_string()),
            1 => progress_of("\"nobody\"", 1),
            2 => cancel_of(&format!("\"{id}\"")),
            3 => r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#.into(),
            4 => r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"?"}}"#.into(),
            _ => error_for("\"1\""),
        };
        let side = self.either();
        if !side.harness.engine.is_closed() {
            side.harness.hear(&text);
        }
    }

    fn rarely(&mut self) {
        match self.random.below(24) {
            0 => {
                self.cut = true;
                for side in [&mut self.client, &mut self.server] {
                    side.monitor.link_lost();
                    side.harness.lose_link();
                }
            }
            1 => {
                self.server.input_ends = true;
                self.client.monitor.link_lost();
            }
            2 => {
                let now = self.server.harness.now;
                self.server.harness.engine.shutdown(now, Shutdown::Drain);
            }
            3 => {
                let now = self.client.harness.now;
                self.client.harness.engine.shutdown(now, Shutdown::Now);
            }
            4 => {
                let side = self.either();
                let now = side.harness.now;
                side.harness.engine.shutdown(now, Shutdown::Now);
            }
            _ => {}
        }
    }

    fn check(&mut self) -> Result<(), Broken> {
        for side in [&mut self.client, &mut self.server] {
            side.harness.engine.check()?;
            side.monitor.check(&side.harness.engine)?;
        }
        Ok(())
    }

    /// Lets everything come to its end: the pipes flow again, time passes, and handlers that were
    /// dropped are reported gone.
    fn wind_down(&mut self) -> Result<(), Broken> {
        for _ in 0..200 {
            for side in [&mut self.client, &mut self.server] {
                side.stalled = false;
            }
            for _ in 0..8 {
                self.write(true)?;
                self.write(false)?;
                self.read(true);
                self.read(false);
            }
            self.pass(500);
            self.follow_closing();
            for side in [&mut self.client, &mut self.server] {
                side.catch_up(&mut self.random)?;
                side.dropped_handlers_return();
            }
            self.check()?;
            if self.client.is_quiet() && self.server.is_quiet() {
                break;
            }
        }
        for (name, side) in [("client", &self.client), ("server", &self.server)] {
            if !side.is_quiet() {
                let how = format!("the {name} never comes to rest: {:?}", side.harness.engine);
                return broken("no-hang", how);
            }
            side.monitor.every_call_ended()?;
            side.monitor.answered.nothing_is_owed()?;
        }
        self.pass(700_000);
        self.check()
    }
}

impl Side {
    /// Blocking handlers return after their requests have ended.
    fn dropped_handlers_return(&mut self) {
        let aborted: Vec<RequestKey> = self
            .handlers
            .iter()
            .copied()
            .filter(|key| self.harness.engine.requests.serving(*key).is_none())
            .collect();
        for key in aborted {
            self.handlers.retain(|known| *known != key);
            self.harness.respond(key);
        }
    }
}

/// A small generator without platform dependence, so that a failing seed replays.
#[derive(Clone)]
struct Random(u64);

impl Random {
    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }

    fn one_of<T: Copy>(&mut self, things: &[T]) -> Option<T> {
        match things.len() {
            0 => None,
            count => Some(things[self.below(count as u64) as usize]),
        }
    }
}
