//! `roots/list`: the folders that matter to the client.

use super::Request;

record! {
    /// Nothing.
    pub struct ListRootsParams {
    }
}

record! {
    /// The folders that matter.
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
            /// Where it is: a `file:` URI.
            uri: String = "uri",
        }
        optional {
            /// Its name, for people.
            name: String = "name",
        }
    }
}

/// `roots/list`: a request in the legacy era, a question of a round in the modern one.
#[derive(Clone, Copy, Debug)]
pub enum ListRoots {}

impl Request for ListRoots {
    const METHOD: &'static str = "roots/list";
    type Params = ListRootsParams;
    type Result = ListRootsResult;
}
