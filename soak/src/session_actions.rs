//! The actions within a legacy session on HTTP.

use serde_json::Value;
use tokio::time::sleep;

use crate::Done;
use crate::ask::{Ask, MALFORMED};
use crate::exchange;
use crate::observer::{Request, initialized};
use crate::random::Random;
use crate::raw_session::{Revision, Session};

/// Does one random action to its end.
pub(crate) async fn act(session: &mut Session, random: &mut Random) -> Done {
    let random = &mut random.part();
    let (action, done) = match random.below(10) {
        0 => ("beside", beside(session, random).await),
        1 => ("pipelined", pipelined(session, random).await),
        2 => ("malformed", malformed(session, random).await),
        3 => ("unread", unread(session, random).await),
        4 => ("cancelled", cancelled(session, random).await),
        5 => ("cancelled early", cancelled_early(session, random).await),
        6 => ("left", left(session, random).await),
        7 => ("hang resumed", hang_resumed(session, random).await),
        _ if session.revision == Revision::Batches => ("batch", batch(session, random).await),
        _ => ("count resumed", count_resumed(session, random).await),
    };
    done.map_err(|problem| format!("{action}: {problem}"))
}

/// Sends many requests at once, each on its own connection.
async fn beside(session: &mut Session, random: &mut Random) -> Done {
    let mut posted = Vec::new();
    for _ in 0..random.between(1, 30) {
        let request = session.observer.ask(Ask::any_that_ends(random));
        posted.push((session.post(&request).await?, request));
    }
    for (mut http, request) in posted {
        session.answered(&mut http, &request).await?;
    }
    Ok(())
}

/// Sends several requests in one write. Their answers come in order.
async fn pipelined(session: &mut Session, random: &mut Random) -> Done {
    let mut http = session.connect().await;
    let requests: Vec<Request> = (0..random.between(2, 60))
        .map(|_| session.observer.ask(Ask::any_that_ends(random)))
        .collect();
    let mut bytes = Vec::new();
    for request in &requests {
        bytes.extend(exchange::encoded(&mut http, request, &mut session.observer));
    }
    exchange::write(&mut http, &bytes).await?;
    for request in &requests {
        session.answered(&mut http, request).await?;
    }
    Ok(())
}

async fn malformed(session: &mut Session, random: &mut Random) -> Done {
    let mut http = session.connect().await;
    for _ in 0..random.between(1, 5) {
        let body = random.one_of(&MALFORMED);
        session.observer.sent(body);
        let bytes = http.encoded("POST", body);
        exchange::write(&mut http, &bytes).await?;
        let status = exchange::answered(&mut http, &[], &mut session.observer).await?;
        if status != 400 {
            return Err(format!("a malformed body was answered with {status}"));
        }
    }
    Ok(())
}

/// Requests a large answer, and reads it only after a while.
async fn unread(session: &mut Session, random: &mut Random) -> Done {
    let length = random.between(10_000, 1_000_000) as usize;
    let request = session.observer.ask(Ask::Echo(length));
    let mut http = session.post(&request).await?;
    sleep(random.millis(50, 600)).await;
    session.answered(&mut http, &request).await
}

/// Cancels requests. Their exchanges end without a message (**silence**).
async fn cancelled(session: &mut Session, random: &mut Random) -> Done {
    let mut posted = Vec::new();
    for _ in 0..random.between(1, 10) {
        let ask = match random.below(4) {
            0 => Ask::Rollback(random.between(0, 150)),
            1 => Ask::Block(random.between(1, 100)),
            _ => Ask::Hang,
        };
        let request = session.observer.ask(ask);
        posted.push((session.post(&request).await?, request));
    }
    sleep(random.millis(0, 400)).await;
    for (_, request) in &posted {
        session.notify(&request.cancel()).await?;
    }
    for (mut http, request) in posted {
        session.answered(&mut http, &request).await?;
    }
    Ok(())
}

/// Sends a cancel before its request, which then never starts (**cancel-overtakes**).
async fn cancelled_early(session: &mut Session, random: &mut Random) -> Done {
    for _ in 0..random.between(1, 5) {
        let request = session.observer.ask(Ask::Hang);
        session.notify(&request.cancel()).await?;
        let mut http = session.post(&request).await?;
        session.answered(&mut http, &request).await?;
    }
    Ok(())
}

/// Breaks the stream of a request and does not resume it. The request ends after the resume window.
async fn left(session: &mut Session, random: &mut Random) -> Done {
    let request = session.observer.ask(Ask::Hang);
    let http = session.post(&request).await?;
    sleep(random.millis(0, 400)).await;
    session.observer.transcript().cut_request(&request.id);
    drop(http);
    Ok(())
}

/// Breaks the stream of a hang, resumes it, and cancels the request.
async fn hang_resumed(session: &mut Session, random: &mut Random) -> Done {
    if session.revision != Revision::Latest {
        // Without an event id the stream cannot be resumed.
        return cancelled(session, random).await;
    }
    let request = session.observer.ask(Ask::Hang);
    let mut http = session.post(&request).await?;
    if !exchange::head(&mut http).await?.is_stream() {
        return Err("a hang has no stream".into());
    }
    let greeting = exchange::event(&mut http, &mut session.observer).await?;
    let greeting = greeting.and_then(|(id, _)| id);
    let greeting = greeting.ok_or("a stream does not begin with an event")?;
    drop(http);
    sleep(random.millis(0, 300)).await;
    let mut http = session.resume(&greeting).await?;
    sleep(random.millis(0, 50)).await;
    session.notify(&request.cancel()).await?;
    exchange::to_the_end(&mut http, &mut session.observer).await
}

/// Breaks the stream of a count several times and resumes it each time. Its progress continues
/// where it was, and its answer comes once.
async fn count_resumed(session: &mut Session, random: &mut Random) -> Done {
    let request = session.observer.ask(Ask::Count {
        to: random.between(10, 60),
        delay_ms: random.between(1, 20),
    });
    let mut http = session.post(&request).await?;
    if !exchange::head(&mut http).await?.is_stream() {
        return Err("a count has no stream".into());
    }
    for _ in 0..random.between(1, 4) {
        let mut last = None;
        for _ in 0..random.between(1, 8) {
            let Some((id, said)) = exchange::event(&mut http, &mut session.observer).await? else {
                return Ok(());
            };
            last = id;
            if is_answer(&said) {
                return exchange::to_the_end(&mut http, &mut session.observer).await;
            }
        }
        let last = last.ok_or("an event of a session has no id")?;
        drop(http);
        sleep(random.millis(0, 300)).await;
        http = session.resume(&last).await?;
    }
    exchange::to_the_end(&mut http, &mut session.observer).await
}

fn is_answer(message: &Value) -> bool {
    message.get("id").is_some() && message.get("method").is_none()
}

/// Sends several messages in one body. Their answers come on one stream.
async fn batch(session: &mut Session, random: &mut Random) -> Done {
    let mut requests: Vec<Request> = Vec::new();
    let mut frames: Vec<Value> = Vec::new();
    for _ in 0..random.between(2, 100) {
        if random.one_in(10) {
            frames.extend(serde_json::from_slice::<Value>(&initialized()).ok());
            continue;
        }
        let request = session.observer.ask(Ask::any_that_ends(random));
        frames.push(request.frame.clone());
        requests.push(request);
    }
    let body = Value::Array(frames).to_string().into_bytes();
    session.observer.sent(&body);
    let mut http = session.connect().await;
    let bytes = http.encoded("POST", &body);
    exchange::write(&mut http, &bytes).await?;
    let ids: Vec<&Value> = requests.iter().map(|request| &request.id).collect();
    exchange::answered(&mut http, &ids, &mut session.observer).await?;
    Ok(())
}
