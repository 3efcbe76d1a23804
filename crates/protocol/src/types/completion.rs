//! `completion/complete`: what an argument could be.

use std::collections::BTreeMap;

use super::{Request, ResultType};

record! {
    /// What is being typed, and where.
    pub struct CompleteParams {
        required {
            /// What it is an argument of.
            reference: Reference = "ref",
            /// The argument.
            argument: CompletedArgument = "argument",
        }
        optional {
            /// What else is known.
            context: CompletionContext = "context",
        }
    }
}

kinds! {
    /// What an argument belongs to.
    pub enum Reference {
        /// A prompt.
        Prompt(PromptReference) = "ref/prompt",
        /// A template of resources.
        Resource(ResourceReference) = "ref/resource",
    }
}

record! {
    /// A prompt, by name.
    pub struct PromptReference {
        required {
            /// Its name.
            name: String = "name",
        }
        optional {
            /// Its name, for people.
            title: String = "title",
        }
    }
}

record! {
    /// A resource or a template of resources, by URI.
    pub struct ResourceReference {
        required {
            /// The URI, or the pattern.
            uri: String = "uri",
        }
    }
}

record! {
    /// An argument that is being typed.
    pub struct CompletedArgument {
        required {
            /// Its name.
            name: String = "name",
            /// What was typed so far.
            value: String = "value",
        }
    }
}

record! {
    /// What is known besides.
    pub struct CompletionContext {
        optional {
            /// Arguments that are settled.
            arguments: BTreeMap<String, String> = "arguments",
        }
    }
}

record! {
    /// What it could be.
    pub struct CompleteResult {
        required {
            /// What it could be.
            completion: Completion = "completion",
        }
        optional {
            /// What kind of result it is; absent on the legacy wire.
            result_type: ResultType = "resultType",
        }
    }
}

record! {
    /// What an argument could be.
    ///
    /// ```
    /// use belay_protocol::types::Completion;
    /// let completion = Completion::of(["python", "pytorch"]);
    /// assert_eq!(completion.values.len(), 2);
    /// ```
    pub struct Completion {
        required {
            /// The best ones first; a hundred at most.
            values: Vec<String> = "values",
        }
        optional {
            /// How many there are in all.
            total: u64 = "total",
            /// Whether there are more than these.
            has_more: bool = "hasMore",
        }
    }
}

impl Completion {
    /// How many values one answer may hold.
    pub const MOST: usize = 100;

    /// These, of which the first hundred are told.
    pub fn of<T: Into<String>>(values: impl IntoIterator<Item = T>) -> Self {
        let mut values: Vec<String> = values.into_iter().map(Into::into).collect();
        let total = values.len();
        values.truncate(Self::MOST);
        let mut completion = Self::new(values);
        if total > Self::MOST {
            completion.total = Some(total as u64);
            completion.has_more = Some(true);
        }
        completion
    }
}

/// `completion/complete`.
#[derive(Clone, Copy, Debug)]
pub enum Complete {}

impl Request for Complete {
    const METHOD: &'static str = "completion/complete";
    type Params = CompleteParams;
    type Result = CompleteResult;
}
