//! `elicitation/create`: asks the user of the client.

use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error as _};
use serde::ser::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::meta::UniqueKeys;
use super::{FormSchema, Request};

/// Asks the user to fill in a form or to visit a page.
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
    /// Asks the user to fill in a form.
    pub fn form(message: impl Into<String>, schema: FormSchema) -> Self {
        let mut params = ElicitFormParams::new(message, schema);
        params.mode = Some(ElicitMode::Form);
        Self::Form(params)
    }

    /// Asks the user to visit a page.
    pub fn url(message: impl Into<String>, url: impl Into<String>) -> Self {
        Self::Url(ElicitUrlParams::new(message, url, ElicitMode::Url))
    }

    /// The message shown to the user.
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
    /// How the user is asked.
    pub enum ElicitMode {
        /// With a form.
        Form = "form",
        /// With a page to visit.
        Url = "url",
    }
}

record! {
    /// A form to fill in. It must not ask for secrets.
    pub struct ElicitFormParams {
        required {
            /// The message shown to the user.
            message: String = "message",
            /// The fields of the form.
            requested_schema: FormSchema = "requestedSchema",
        }
        optional {
            /// `form`, if present.
            mode: ElicitMode = "mode",
        }
    }
}

record! {
    /// A page to visit.
    pub struct ElicitUrlParams {
        required {
            /// The message shown to the user.
            message: String = "message",
            /// The URL of the page.
            url: String = "url",
            /// `url`.
            mode: ElicitMode = "mode",
        }
        optional {
            /// The id under which the server reports completion; 2025-11-25 only.
            elicitation_id: String = "elicitationId",
        }
    }
}

record! {
    /// The user's answer.
    pub struct ElicitResult {
        required {
            /// What the user did.
            action: ElicitAction = "action",
        }
        optional {
            /// The values, if a form was accepted.
            content: Map<String, Value> = "content",
        }
    }
}

impl ElicitResult {
    /// The user accepted, and filled in these values.
    pub fn accept(content: Map<String, Value>) -> Self {
        Self {
            content: Some(content),
            ..Self::new(ElicitAction::Accept)
        }
    }

    /// The user agreed to visit the page.
    pub fn consent() -> Self {
        Self::new(ElicitAction::Accept)
    }

    /// The user declined.
    pub fn decline() -> Self {
        Self::new(ElicitAction::Decline)
    }

    /// The user dismissed the question without an answer.
    pub fn cancel() -> Self {
        Self::new(ElicitAction::Cancel)
    }
}

words! {
    /// What the user did when asked.
    pub enum ElicitAction {
        /// The user accepted.
        Accept = "accept",
        /// The user declined.
        Decline = "decline",
        /// The user dismissed the question.
        Cancel = "cancel",
    }
}

/// `elicitation/create`: a request in the legacy era, an input request in the modern era.
#[derive(Clone, Copy, Debug)]
pub enum Elicit {}

impl Request for Elicit {
    const METHOD: &'static str = "elicitation/create";
    type Params = ElicitParams;
    type Result = ElicitResult;
}
