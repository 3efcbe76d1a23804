//! `roots/list`: the folders that the client offers to the server.

use super::Request;

record! {
    /// The parameters, which have no fields.
    pub struct ListRootsParams {
    }
}

record! {
    /// The folders that the client offers.
    pub struct ListRootsResult {
        required {
            /// The folders.
            roots: Vec<Root> = "roots",
        }
    }
}

record! {
    /// A folder, or a file.
    ///
    /// ```
    /// use belay_protocol::types::Root;
    /// let mut root = Root::new("file:///home/user/project");
    /// root.name = Some("project".into());
    /// ```
    pub struct Root {
        required {
            /// The location: a `file:` URI.
            uri: String = "uri",
        }
        optional {
            /// The display name.
            name: String = "name",
        }
    }
}

/// `roots/list`: a request in the legacy era, an input request in the modern era.
#[derive(Clone, Copy, Debug)]
pub enum ListRoots {}

impl Request for ListRoots {
    const METHOD: &'static str = "roots/list";
    type Params = ListRootsParams;
    type Result = ListRootsResult;
}
