//! Base64 (RFC 4648), which encodes images, audio and blobs in JSON.
//!
//! ```
//! use belay_protocol::base64;
//! assert_eq!(base64::encode(b"Hello"), "SGVsbG8=");
//! assert_eq!(base64::decode("SGVsbG8="), Some(b"Hello".to_vec()));
//! assert_eq!(base64::decode("SGVsbG8"), None);
//! ```

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Encodes bytes, with padding.
pub fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Decodes a text. `None` if a digit or the padding is invalid, or if unused bits are not zero.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_comes_back() {
        for length in 0..70 {
            let bytes: Vec<u8> = (0..length).map(|byte| byte * 3).collect();
            assert_eq!(decode(&encode(&bytes)), Some(bytes));
        }
    }

    #[test]
    fn what_is_no_base64_is_refused() {
        for text in [
            "A", "AAAA=", "A*==", "AA=A", "====", "A===", "AAA", "AB==", "é===",
        ] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
