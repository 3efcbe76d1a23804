//! The data of the errors that modern servers give to requests they cannot serve.

use crate::types::ClientCapabilities;

record! {
    /// With `-32022`: the version of the request is not one the server speaks.
    ///
    /// ```
    /// use belay_protocol::types::modern::UnsupportedVersionData;
    /// let data = UnsupportedVersionData::new(["2026-07-28".to_owned()], "1900-01-01");
    /// let json = serde_json::to_string(&data).unwrap();
    /// assert_eq!(json, r#"{"supported":["2026-07-28"],"requested":"1900-01-01"}"#);
    /// ```
    pub struct UnsupportedVersionData {
        required {
            /// The versions it does speak.
            supported: Vec<String> = "supported",
            /// The one that was asked for.
            requested: String = "requested",
        }
    }
}

record! {
    /// With `-32021`: the request needs something the client has not declared.
    pub struct MissingCapabilityData {
        required {
            /// What would have to be declared.
            required_capabilities: ClientCapabilities = "requiredCapabilities",
        }
    }
}
