//! Multi round-trip requests: a modern server asks for input, and the client's handlers answer.
//!
//! Each round trip is a request with an id of its own, through all layers. The deadline covers the
//! whole call, and dropping the call between two round trips cancels it, too.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use belay_protocol::engine::Outcome;
use belay_protocol::jsonrpc::{ErrorObject, RawJson};
use belay_protocol::types::modern::{InputRequiredResult, InputResponses};
use serde_json::{Map, Value};

use super::layer::{CallRequest, Trip, has_clock};
use crate::Error;
use crate::client::InputHandlers;
use crate::driver::BoxFuture;
use crate::error::Unanswered;

/// The most round trips of a call, against a server that never stops asking.
const ROUNDS: u32 = 10;

/// Makes a call, in as many round trips as it takes. `first` is the result of its first
/// request, if that was already made.
pub(super) async fn travel(
    trip: &Trip,
    input_handlers: &Arc<InputHandlers>,
    request: CallRequest,
    mut first: Option<Result<RawJson, Error>>,
) -> Result<RawJson, Error> {
    let mut round = request.clone();
    for number in 1..=ROUNDS {
        let error = match trip.round(round, first.take()).await {
            Ok(result) => return Ok(result),
            Err(error) => error,
        };
        let asked = match error.outcome() {
            Some(Outcome::InputRequired(asked)) => asked.clone(),
            _ => return Err(error),
        };
        if number == ROUNDS {
            return Err(Error::unanswered(asked, Unanswered::Rounds(ROUNDS)));
        }
        // Handlers do not go on when the connection is lost.
        round = tokio::select! {
            biased;
            next = next(&request, input_handlers, asked, number) => next?,
            lost = trip.lost() => return Err(lost),
        };
    }
    unreachable!("the last round returns")
}

/// Answers the server's questions, and builds the request of the next round trip.
async fn next(
    request: &CallRequest,
    input_handlers: &Arc<InputHandlers>,
    asked: RawJson,
    number: u32,
) -> Result<CallRequest, Error> {
    let required: InputRequiredResult = asked.decode().map_err(Error::bad_result)?;
    if required.input_requests.is_none() && required.request_state.is_none() {
        let problem = "it needs something first, and does not say what";
        return Err(Error::bad_result(serde::de::Error::custom(problem)));
    }
    let mut params: Map<String, Value> = request.params.decode().map_err(Error::bad_params)?;
    // Responses and state of the previous round trip are not repeated.
    params.shift_remove("inputResponses");
    params.shift_remove("requestState");
    match required.input_requests {
        Some(questions) => {
            let mut running = Vec::new();
            for (name, question) in questions {
                let params = Value::Object(question.params.unwrap_or_default());
                let Some(answer) = input_handlers.serve(&question.method, params) else {
                    let nobody = Unanswered::Nobody(question.method);
                    return Err(Error::unanswered(asked, nobody));
                };
                running.push(Question {
                    name,
                    method: question.method,
                    answer: Answering::Running(answer),
                });
            }
            match all(running).await {
                Ok(answers) => params.insert("inputResponses".into(), answers.into()),
                Err(failed) => return Err(Error::unanswered(asked, failed)),
            };
        }
        // The server asked nothing: repeat the request after a pause.
        None if has_clock() => tokio::time::sleep(PAUSE * number).await,
        None => {}
    }
    if let Some(state) = required.request_state {
        params.insert("requestState".into(), state.into());
    }
    let params = RawJson::encode(&params).map_err(Error::bad_params)?;
    Ok(CallRequest {
        params,
        ..request.clone()
    })
}

const PAUSE: Duration = Duration::from_millis(100);

/// An input request, and the handler that answers it.
struct Question {
    name: String,
    method: String,
    answer: Answering,
}

enum Answering {
    Running(BoxFuture<Result<Value, ErrorObject>>),
    Answered(Value),
}

/// Runs all handlers at once. The first failure fails the round trip, and the other
/// handlers are dropped.
async fn all(mut questions: Vec<Question>) -> Result<InputResponses, Unanswered> {
    poll_fn(|cx| {
        let mut open = false;
        for question in &mut questions {
            let Answering::Running(running) = &mut question.answer else {
                continue;
            };
            match running.as_mut().poll(cx) {
                Poll::Pending => open = true,
                Poll::Ready(Ok(answer)) => question.answer = Answering::Answered(answer),
                Poll::Ready(Err(error)) => {
                    let method = std::mem::take(&mut question.method);
                    return Poll::Ready(Err(Unanswered::Failed(method, error)));
                }
            }
        }
        match open {
            true => Poll::Pending,
            false => Poll::Ready(Ok(())),
        }
    })
    .await?;
    let answered = questions
        .into_iter()
        .filter_map(|question| match question.answer {
            Answering::Answered(answer) => Some((question.name, answer)),
            Answering::Running(_) => None,
        });
    Ok(answered.collect())
}
