//! `completion/complete`: suggestions for the value of an argument.

use std::collections::BTreeMap;

use super::{Request, ResultType};

record! {
    /// The parameters of `completion/complete`: what is being typed, and where.
    pub struct CompleteParams {
        required {
            /// The prompt or template that the argument belongs to.
            reference: Reference = "ref",
            /// The argument to complete.
            argument: CompletedArgument = "argument",
        }
        optional {
            /// Arguments that are known already.
            context: CompletionContext = "context",
        }
    }
}

kinds! {
    /// The prompt or resource template that an argument belongs to.
    pub enum Reference {
        /// A prompt.
        Prompt(PromptReference) = "ref/prompt",
        /// A resource template.
        Resource(ResourceReference) = "ref/resource",
    }
}

record! {
    /// A prompt, by name.
    pub struct PromptReference {
        required {
            /// The name of the prompt.
            name: String = "name",
        }
        optional {
            /// The display name.
            title: String = "title",
        }
    }
}

record! {
    /// A resource or a resource template, by URI.
    pub struct ResourceReference {
        required {
            /// The URI or the URI template.
            uri: String = "uri",
        }
    }
}

record! {
    /// An argument that is being typed.
    pub struct CompletedArgument {
        required {
            /// The name of the argument.
            name: String = "name",
            /// The text typed so far.
            value: String = "value",
        }
    }
}

record! {
    /// Arguments that are known already.
    pub struct CompletionContext {
        optional {
            /// Their values by name.
            arguments: BTreeMap<String, String> = "arguments",
        }
    }
}

record! {
    /// The suggestions.
    pub struct CompleteResult {
        required {
            /// The suggestions.
            completion: Completion = "completion",
        }
        optional {
            /// What kind of result it is; absent on the legacy wire.
            result_type: ResultType = "resultType",
        }
    }
}

record! {
    /// Suggestions for the value of an argument.
    ///
    /// ```
    /// use belay_protocol::types::Completion;
    /// let completion = Completion::of(["python", "pytorch"]);
    /// assert_eq!(completion.values.len(), 2);
    /// ```
    pub struct Completion {
        required {
            /// The suggestions, best first; at most a hundred.
            values: Vec<String> = "values",
        }
        optional {
            /// The total number of suggestions.
            total: u64 = "total",
            /// Whether there are more suggestions than these.
            has_more: bool = "hasMore",
        }
    }
}

impl Completion {
    /// The maximum number of values in one answer.
    pub const MOST: usize = 100;

    /// Creates a completion from these values; at most the first hundred are sent.
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
