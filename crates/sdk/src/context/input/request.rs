//! One question to the client: how each era sends it, and how its answer is read.

use std::fmt;
use std::future::IntoFuture;
use std::time::Duration;

use belay_protocol::types::modern::InputRequest;
use belay_protocol::types::{ElicitAction, ElicitResult, Era};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::capabilities::{needs, suit};
use super::error::{InputError, Kind};
use crate::context::Context;
use crate::driver::BoxFuture;
use crate::filled;

/// A question to the client that is built with methods and asked with `await`.
///
/// If the client lacks the capability for it, the request ends with the error that the
/// specification defines (`-32021`; `-32600` in the legacy era, which defines none). To check
/// before asking, use [`Context::client_capabilities`].
///
/// # Cancel safety
///
/// Dropping the future withdraws the question: in the legacy era the client is sent a cancellation.
#[must_use = "a question is not asked until it is awaited"]
pub struct InputFuture<T> {
    cx: Context,
    name: Option<String>,
    timeout: Option<Duration>,
    method: &'static str,
    params: Result<Value, InputError>,
    read: Box<dyn FnOnce(Value) -> Result<T, Read> + Send>,
}

/// Whether the user agreed.
pub(crate) fn agreed(result: ElicitResult) -> Result<(), Read> {
    match result.action {
        ElicitAction::Accept => Ok(()),
        ElicitAction::Decline => Err(Read::Answer(Kind::Declined)),
        _ => Err(Read::Answer(Kind::Dismissed)),
    }
}

/// The content of an accepted form.
pub(crate) fn filled_in<T: DeserializeOwned>(mut result: ElicitResult) -> Result<T, Read> {
    let content = Value::Object(result.content.take().unwrap_or_default());
    agreed(result)?;
    serde_path_to_error::deserialize(content).map_err(|error| {
        let problem = error.inner().to_string();
        Read::Invalid(match error.path().to_string().as_str() {
            "." => problem,
            path => format!("`{path}`: {problem}"),
        })
    })
}

/// Why an answer gives no value.
pub(crate) enum Read {
    /// A valid answer that declines or dismisses the question.
    Answer(Kind),
    /// Not a valid answer.
    Invalid(String),
}

impl From<Read> for InputError {
    fn from(read: Read) -> Self {
        match read {
            Read::Answer(kind) => Self(kind),
            Read::Invalid(problem) => Self(Kind::Invalid(problem)),
        }
    }
}

impl<T> InputFuture<T> {
    pub(super) fn new(
        cx: Context,
        method: &'static str,
        params: Result<Value, InputError>,
        read: impl FnOnce(Value) -> Result<T, Read> + Send + 'static,
    ) -> Self {
        Self {
            cx,
            name: None,
            timeout: None,
            method,
            params,
            read: Box::new(read),
        }
    }

    /// Sets the key of the question in the modern era. By default it is `input`, and later
    /// questions are `input-2` and so on.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets a timeout for the answer. Legacy only: in the modern era the client may answer for as
    /// long as the request state is valid.
    pub fn timeout(mut self, total: Duration) -> Self {
        self.timeout = Some(total);
        self
    }

    async fn asked(self) -> Result<T, InputError> {
        let cx = &self.cx;
        let params = self.params?;
        let form = params.get("requestedSchema").cloned();
        let read = |answer: Value| {
            if let (Some(form), Ok(answer)) = (&form, serde_json::from_value(answer.clone())) {
                filled::check(form, &answer).map_err(Read::Invalid)?;
            }
            (self.read)(answer)
        };
        if cx.rounds().is_some_and(|rounds| rounds.is_computing_here()) {
            return Err(InputError(Kind::InsideOnce));
        }
        cx.require(&needs(self.method)(&params)).await?;
        let question = InputRequest::by_name(self.method, &params);
        let mut question = question.map_err(InputError::unwritten)?;
        suit(&mut question, cx.version())?;
        if cx.era() == Era::Legacy {
            let params = Value::Object(question.params.unwrap_or_default());
            let mut call = cx.request_raw::<Value>(self.method, &params);
            if let Some(timeout) = self.timeout {
                call = call.timeout(timeout);
            }
            let answer = call
                .await
                .map_err(|error| InputError(Kind::Failed(error)))?;
            return read(answer).map_err(InputError::from);
        }
        let Some(rounds) = cx.rounds() else {
            return Err(InputError(Kind::NotHere));
        };
        let answer = rounds.answer(self.name, question).await;
        // Asked by a task outside of the handler, or in a round that has ended.
        let (name, answer) = answer.ok_or(InputError(Kind::Over))?;
        match read(answer) {
            Ok(answer) => Ok(answer),
            Err(Read::Answer(kind)) => Err(InputError(kind)),
            Err(Read::Invalid(problem)) => {
                rounds.end_for_answer(&name, &problem);
                rounds.over().await;
                Err(InputError(Kind::Over))
            }
        }
    }
}

impl InputFuture<()> {
    /// What the visit of a page is called in 2025-11-25, for [`Context::elicitation_complete`]. No other visit may be
    /// called the same. Without this it has a name that nobody can guess.
    pub fn elicitation_id(mut self, id: impl Into<String>) -> Self {
        if let Ok(Value::Object(params)) = &mut self.params {
            params.insert("elicitationId".into(), id.into().into());
        }
        self
    }
}

impl<T: Send + 'static> IntoFuture for InputFuture<T> {
    type Output = Result<T, InputError>;
    type IntoFuture = BoxFuture<Result<T, InputError>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.asked())
    }
}

impl<T> fmt::Debug for InputFuture<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InputFuture")
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}
