//! Lists come in pages, and may be kept for a while.

record! {
    /// Parameters of a list request.
    pub struct PaginatedParams {
        optional {
            /// Where the last page ended.
            cursor: String = "cursor",
        }
    }
}

impl PaginatedParams {
    /// The page that begins here.
    pub fn at(cursor: impl Into<String>) -> Self {
        Self {
            cursor: Some(cursor.into()),
            ..Self::new()
        }
    }
}

words! {
    /// Who may share a result that is kept.
    pub enum CacheScope {
        /// Anybody: it is the same for all.
        Public = "public",
        /// Nobody: it belongs to whoever asked.
        Private = "private",
    }
}
