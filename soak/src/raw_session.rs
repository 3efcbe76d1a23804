//! Raw bytes to legacy Streamable HTTP. A life is a session: actions, then it is deleted, or left
//! for the main program to delete.

use std::net::SocketAddr;

use belay_testkit::RawHttp;
use tokio::time::sleep;

use crate::ask::Ask;
use crate::exchange;
use crate::observer::{Era, Observer, Request, initialized};
use crate::session_actions::act;
use crate::soak::{Headers, Life};
use crate::{Done, both};

/// A legacy revision, and what is special about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Revision {
    /// Streams begin with an event that allows resumption.
    Latest,
    /// It has batches.
    Batches,
}

impl Revision {
    fn name(self) -> &'static str {
        match self {
            Self::Latest => "2025-11-25",
            Self::Batches => "2025-03-26",
        }
    }
}

pub(crate) async fn live(life: &mut Life, revision: Revision) -> Done {
    let observer = Observer::new(life.name(), Era::Legacy);
    let mut session = Session {
        address: life.soak.address,
        headers: Headers::new(),
        revision,
        observer,
    };
    let lived = session.live(life).await;
    life.count(session.observer.counts());
    both(lived, session.observer.check())
}

pub(crate) struct Session {
    address: SocketAddr,
    headers: Headers,
    pub(crate) revision: Revision,
    pub(crate) observer: Observer,
}

impl Session {
    async fn live(&mut self, life: &mut Life) -> Done {
        self.open().await?;
        // The GET stream for the server's own messages. There are none.
        let listens = match life.random.one_in(2) {
            true => Some(self.listen().await?),
            false => None,
        };
        for _ in 0..life.random.between(1, 6) {
            act(self, &mut life.random).await?;
        }
        let mut left = Vec::new();
        for _ in 0..life.random.between(0, 6) {
            let request = self.observer.ask(Ask::Hang);
            left.push((self.post(&request).await?, request));
        }
        sleep(life.random.millis(0, 400)).await;
        self.observer.cut();
        match life.random.one_in(4) {
            // Hangs in this session end when their resume window has passed.
            true => life.soak.leave_session(self.headers.clone()),
            false => self.delete(left).await?,
        }
        drop(listens);
        Ok(())
    }

    async fn open(&mut self) -> Done {
        let mut http = RawHttp::connect(self.address).await;
        let version = self.revision.name();
        let hello = self.observer.initialize(version);
        exchange::post(&mut http, &hello, &mut self.observer).await?;
        let answer = exchange::head(&mut http).await?;
        exchange::body(&answer, &[&hello.id], &mut self.observer);
        let session = answer.header("mcp-session-id");
        let session = session.ok_or("no session was opened")?;
        http.set("Mcp-Session-Id", session);
        http.set("MCP-Protocol-Version", version);
        self.headers.clone_from(&http.headers);
        self.notify(&initialized()).await
    }

    /// Opens a connection that belongs to the session.
    pub(crate) async fn connect(&self) -> RawHttp {
        let mut http = RawHttp::connect(self.address).await;
        http.headers.clone_from(&self.headers);
        http
    }

    /// Posts a request on a new connection.
    pub(crate) async fn post(&mut self, request: &Request) -> Result<RawHttp, String> {
        let mut http = self.connect().await;
        exchange::post(&mut http, request, &mut self.observer).await?;
        Ok(http)
    }

    /// Reads the whole response to a request.
    pub(crate) async fn answered(&mut self, http: &mut RawHttp, request: &Request) -> Done {
        let ids = [&request.id];
        exchange::answered(http, &ids, &mut self.observer).await?;
        Ok(())
    }

    /// Posts a notification, and waits until it was accepted.
    pub(crate) async fn notify(&mut self, frame: &[u8]) -> Done {
        let mut http = self.connect().await;
        self.observer.sent(frame);
        let bytes = http.encoded("POST", frame);
        exchange::write(&mut http, &bytes).await?;
        match exchange::head(&mut http).await?.status {
            202 => Ok(()),
            status => Err(format!("a notification was answered with {status}")),
        }
    }

    /// Resumes a stream after an event.
    pub(crate) async fn resume(&mut self, last: &str) -> Result<RawHttp, String> {
        let mut http = self.connect().await;
        http.set("Last-Event-ID", last);
        self.get(http).await
    }

    async fn listen(&mut self) -> Result<RawHttp, String> {
        let http = self.connect().await;
        self.get(http).await
    }

    async fn get(&mut self, mut http: RawHttp) -> Result<RawHttp, String> {
        let bytes = http.encoded("GET", b"");
        exchange::write(&mut http, &bytes).await?;
        match exchange::head(&mut http).await? {
            answer if answer.is_stream() => Ok(http),
            answer => Err(format!("a stream was refused: {}", answer.json())),
        }
    }

    /// Deletes the session with requests in flight, which ends them.
    async fn delete(&mut self, left: Vec<(RawHttp, Request)>) -> Done {
        let mut http = self.connect().await;
        let bytes = http.encoded("DELETE", b"");
        exchange::write(&mut http, &bytes).await?;
        let status = exchange::head(&mut http).await?.status;
        if status != 204 {
            return Err(format!("a session was deleted with status {status}"));
        }
        for (mut http, request) in left {
            self.answered(&mut http, &request).await?;
        }
        let late = self.observer.ask(Ask::Echo(1));
        let mut http = self.post(&late).await?;
        match exchange::answered(&mut http, &[&late.id], &mut self.observer).await? {
            404 => Ok(()),
            status => Err(format!("a session that is over answers with {status}")),
        }
    }
}
