//! `elicitation/create`: the person behind the client is asked.

use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error as _};
use serde::ser::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::meta::UniqueKeys;
use super::{FormSchema, Request};

/// What the person is asked: to fill in a form, or to visit a page.
///
/// ```
/// use belay_protocol::types::{ElicitParams, FormSchema, TextField};
///
/// let form = FormSchema::new().field("name", TextField::new());
/// let ask = ElicitParams::form("Who are you?", form);
/// assert_eq!(ask.message(), "Who are you?");
/// ```
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum ElicitParams {
    /// Fill in a form.
    Form(ElicitFormParams),
    /// Visit a page, whose contents the client does not see.
    Url(ElicitUrlParams),
}

impl ElicitParams {
    /// Asks for a form to be filled in.
    pub fn form(message: impl Into<String>, schema: FormSchema) -> Self {
        let mut params = ElicitFormParams::new(message, schema);
        params.mode = Some(ElicitMode::Form);
        Self::Form(params)
    }

    /// Asks for a page to be visited.
    pub fn url(message: impl Into<String>, url: impl Into<String>) -> Self {
        Self::Url(ElicitUrlParams::new(message, url, ElicitMode::Url))
    }

    /// What the person is told.
    pub fn message(&self) -> &str {
        match self {
            Self::Form(params) => &params.message,
            Self::Url(params) => &params.message,
        }
    }
}

impl<'de> Deserialize<'de> for ElicitParams {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        fn read<T: DeserializeOwned, E: serde::de::Error>(map: Map<String, Value>) -> Result<T, E> {
            T::deserialize(Value::Object(map)).map_err(E::custom)
        }
        let map = deserializer.deserialize_map(UniqueKeys)?;
        match map.get("mode").and_then(Value::as_str) {
            None | Some("form") => read(map).map(Self::Form),
            Some("url") => read(map).map(Self::Url),
            Some(other) => {
                let problem = format!("`mode`: unknown mode {other:?}, expected `form` or `url`");
                Err(D::Error::custom(problem))
            }
        }
    }
}

impl Serialize for ElicitParams {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Form(params) => params.serialize(serializer),
            Self::Url(params) => params.serialize(serializer),
        }
    }
}

words! {
    /// How a person is asked.
    pub enum ElicitMode {
        /// By a form.
        Form = "form",
        /// By a page to visit.
        Url = "url",
    }
}

record! {
    /// A form to fill in. It must not ask for secrets.
    pub struct ElicitFormParams {
        required {
            /// What the person is told.
            message: String = "message",
            /// What can be filled in.
            requested_schema: FormSchema = "requestedSchema",
        }
        optional {
            /// `form`, if it is said.
            mode: ElicitMode = "mode",
        }
    }
}

record! {
    /// A page to visit.
    pub struct ElicitUrlParams {
        required {
            /// What the person is told.
            message: String = "message",
            /// The page.
            url: String = "url",
            /// `url`.
            mode: ElicitMode = "mode",
        }
        optional {
            /// What this is called when the server tells that it is done; 2025-11-25 only.
            elicitation_id: String = "elicitationId",
        }
    }
}

record! {
    /// What the person did.
    pub struct ElicitResult {
        required {
            /// What the person did.
            action: ElicitAction = "action",
        }
        optional {
            /// What was filled in, if it was a form and was accepted.
            content: Map<String, Value> = "content",
        }
    }
}

impl ElicitResult {
    /// The person agreed, and filled this in.
    pub fn accept(content: Map<String, Value>) -> Self {
        Self {
            content: Some(content),
            ..Self::new(ElicitAction::Accept)
        }
    }

    /// The person agreed to visit the page.
    pub fn consent() -> Self {
        Self::new(ElicitAction::Accept)
    }

    /// The person said no.
    pub fn decline() -> Self {
        Self::new(ElicitAction::Decline)
    }

    /// The person said nothing, and went away.
    pub fn cancel() -> Self {
        Self::new(ElicitAction::Cancel)
    }
}

words! {
    /// What a person did when asked.
    pub enum ElicitAction {
        /// Agreed.
        Accept = "accept",
        /// Said no.
        Decline = "decline",
        /// Said nothing, and went away.
        Cancel = "cancel",
    }
}

/// `elicitation/create`: a request in the legacy era, a question of a round in the modern one.
#[derive(Clone, Copy, Debug)]
pub enum Elicit {}

impl Request for Elicit {
    const METHOD: &'static str = "elicitation/create";
    type Params = ElicitParams;
    type Result = ElicitResult;
}
