//! Raw bytes to the modern endpoint (2026-07-28). Each POST is independent, and closing its stream
//! cancels the request. A life is one connection, with others beside it.

use std::net::SocketAddr;

use belay_testkit::RawHttp;
use tokio::time::sleep;

use crate::ask::{Ask, MALFORMED};
use crate::exchange;
use crate::observer::{Era, Observer, Request};
use crate::random::Random;
use crate::soak::Life;
use crate::{Done, both};

pub(crate) async fn live(life: &mut Life) -> Done {
    let mut modern = Modern {
        address: life.soak.address,
        http: RawHttp::connect(life.soak.address).await,
        observer: Observer::new(life.name(), Era::Modern),
    };
    let lived = modern.live(&mut life.random).await;
    life.count(modern.observer.counts());
    both(lived, modern.observer.check())
}

struct Modern {
    address: SocketAddr,
    http: RawHttp,
    observer: Observer,
}

impl Modern {
    async fn live(&mut self, random: &mut Random) -> Done {
        for _ in 0..random.between(1, 8) {
            let random = &mut random.part();
            let (action, done) = match random.below(9) {
                0 | 1 => ("one by one", self.one_by_one(random).await),
                2 => ("pipelined", self.pipelined(random).await),
                3 => ("malformed", self.malformed(random).await),
                4 => ("unread", self.unread(random).await),
                5 => ("beside", self.beside(random).await),
                6 => ("a cancel", self.cancel_means_nothing(random).await),
                _ => ("hang up", self.hang_up(random).await),
            };
            done.map_err(|problem| format!("{action}: {problem}"))?;
        }
        Ok(())
    }

    /// Posts a request on the existing connection.
    async fn post(&mut self, request: &Request) -> Done {
        exchange::post(&mut self.http, request, &mut self.observer).await
    }

    async fn answered(&mut self, request: &Request) -> Done {
        let ids = [&request.id];
        exchange::answered(&mut self.http, &ids, &mut self.observer).await?;
        Ok(())
    }

    async fn one_by_one(&mut self, random: &mut Random) -> Done {
        for _ in 0..random.between(1, 10) {
            let request = self.observer.ask(Ask::any_that_ends(random));
            self.post(&request).await?;
            self.answered(&request).await?;
        }
        Ok(())
    }

    /// Sends several requests in one write. Their answers come in order.
    async fn pipelined(&mut self, random: &mut Random) -> Done {
        let requests: Vec<Request> = (0..random.between(2, 60))
            .map(|_| self.observer.ask(Ask::any_that_ends(random)))
            .collect();
        let mut bytes = Vec::new();
        for request in &requests {
            let (http, observer) = (&mut self.http, &mut self.observer);
            bytes.extend(exchange::encoded(http, request, observer));
        }
        exchange::write(&mut self.http, &bytes).await?;
        for request in &requests {
            self.answered(request).await?;
        }
        Ok(())
    }

    async fn malformed(&mut self, random: &mut Random) -> Done {
        for _ in 0..random.between(1, 5) {
            let body = random.one_of(&MALFORMED);
            self.observer.sent(body);
            let bytes = self.http.encoded("POST", body);
            exchange::write(&mut self.http, &bytes).await?;
            let status = exchange::answered(&mut self.http, &[], &mut self.observer).await?;
            if status != 400 {
                return Err(format!("a malformed body was answered with {status}"));
            }
        }
        Ok(())
    }

    /// Requests a large answer, and reads it only after a while.
    async fn unread(&mut self, random: &mut Random) -> Done {
        let length = random.between(10_000, 1_000_000) as usize;
        let request = self.observer.ask(Ask::Echo(length));
        self.post(&request).await?;
        sleep(random.millis(50, 600)).await;
        self.answered(&request).await
    }

    /// Uses many connections at once.
    async fn beside(&mut self, random: &mut Random) -> Done {
        let mut others = Vec::new();
        for _ in 0..random.between(2, 40) {
            let mut other = RawHttp::connect(self.address).await;
            let request = self.observer.ask(Ask::any_that_ends(random));
            exchange::post(&mut other, &request, &mut self.observer).await?;
            others.push((other, request));
        }
        for (mut other, request) in others {
            exchange::answered(&mut other, &[&request.id], &mut self.observer).await?;
        }
        Ok(())
    }

    /// In this era a posted cancel is accepted and has no effect; closing the stream is what
    /// cancels.
    async fn cancel_means_nothing(&mut self, random: &mut Random) -> Done {
        let count = Ask::Count {
            to: random.between(5, 30),
            delay_ms: random.between(5, 20),
        };
        let request = self.observer.ask(count);
        let mut other = RawHttp::connect(self.address).await;
        exchange::post(&mut other, &request, &mut self.observer).await?;
        // The observer does not record it, since it would count the request as cancelled.
        self.http.set("MCP-Protocol-Version", "2026-07-28");
        self.http.set("Mcp-Method", "notifications/cancelled");
        self.http.set("Mcp-Name", None);
        let bytes = self.http.encoded("POST", &request.cancel());
        exchange::write(&mut self.http, &bytes).await?;
        let status = exchange::answered(&mut self.http, &[], &mut self.observer).await?;
        if status != 202 {
            return Err(format!("it was answered with {status}"));
        }
        exchange::answered(&mut other, &[&request.id], &mut self.observer).await?;
        Ok(())
    }

    /// Cuts connections: before and after the head of the response, in the middle of a request, in
    /// the middle of a response.
    async fn hang_up(&mut self, random: &mut Random) -> Done {
        let mut others = Vec::new();
        for _ in 0..random.between(1, 12) {
            let ask = match random.below(8) {
                0 => Ask::Rollback(random.between(0, 150)),
                1 => Ask::Block(random.between(1, 100)),
                2 => Ask::Echo(random.between(1, 200_000) as usize),
                3 => Ask::Count {
                    to: random.between(5, 100),
                    delay_ms: random.between(0, 5),
                },
                _ => Ask::Hang,
            };
            let request = self.observer.ask(ask);
            let mut other = RawHttp::connect(self.address).await;
            let bytes = exchange::encoded(&mut other, &request, &mut self.observer);
            let written = match random.one_in(6) {
                true => random.between(1, bytes.len() as u64) as usize,
                false => bytes.len(),
            };
            exchange::write(&mut other, &bytes[..written]).await?;
            others.push((other, request.id));
        }
        sleep(random.millis(0, 400)).await;
        for (other, id) in others {
            self.observer.transcript().cut_request(&id);
            drop(other);
            if random.one_in(3) {
                sleep(random.millis(0, 20)).await;
            }
        }
        Ok(())
    }
}
