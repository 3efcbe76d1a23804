//! The data of the errors with which modern servers refuse a request.

use crate::types::ClientCapabilities;

record! {
    /// The data of the error `-32022`: the server does not support the version of the request.
    ///
    /// ```
    /// use belay_protocol::types::modern::UnsupportedVersionData;
    /// let data = UnsupportedVersionData::new(["2026-07-28".to_owned()], "1900-01-01");
    /// let json = serde_json::to_string(&data).unwrap();
    /// assert_eq!(json, r#"{"supported":["2026-07-28"],"requested":"1900-01-01"}"#);
    /// ```
    pub struct UnsupportedVersionData {
        required {
            /// The versions that the server supports.
            supported: Vec<String> = "supported",
            /// The version of the request.
            requested: String = "requested",
        }
    }
}

record! {
    /// The data of the error `-32021`: the client has not declared a capability that the request
    /// needs.
    pub struct MissingCapabilityData {
        required {
            /// The capabilities that the client would have to declare.
            required_capabilities: ClientCapabilities = "requiredCapabilities",
        }
    }
}
