//! What all results have in common.

words! {
    /// What kind of result it is: the last word, or a question. Legacy results say nothing, which
    /// means [`ResultType::Complete`].
    pub enum ResultType {
        /// The request is done.
        Complete = "complete",
        /// The request goes on once the client has supplied something.
        InputRequired = "input_required",
    }
}

record! {
    /// A result that says nothing but "done".
    ///
    /// ```
    /// use belay_protocol::types::EmptyResult;
    /// assert_eq!(serde_json::to_string(&EmptyResult::new()).unwrap(), "{}");
    /// ```
    pub struct EmptyResult {
        optional {
            /// What kind of result it is; absent on the legacy wire.
            result_type: ResultType = "resultType",
        }
    }
}
