//! What all results have in common.

words! {
    /// The type of a result: final, or asking for input. Legacy results have none, which means
    /// [`ResultType::Complete`].
    pub enum ResultType {
        /// The request is complete.
        Complete = "complete",
        /// The request continues once the client has supplied some input.
        InputRequired = "input_required",
    }
}

record! {
    /// A result without any fields of its own.
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
