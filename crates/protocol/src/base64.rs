//! Bytes as text (RFC 4648), the way pictures, sounds and blobs travel in JSON.
//!
//! ```
//! use belay_protocol::base64;
//! assert_eq!(base64::encode(b"Hello"), "SGVsbG8=");
//! assert_eq!(base64::decode("SGVsbG8="), Some(b"Hello".to_vec()));
//! assert_eq!(base64::decode("SGVsbG8"), None);
//! ```

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

const NO_DIGIT: u8 = 64;

/// The value of each digit.
const VALUES: [u8; 256] = {
    let mut values = [NO_DIGIT; 256];
    let mut value = 0;
    while value < 64 {
        values[ALPHABET[value] as usize] = value as u8;
        value += 1;
    }
    values
};

/// Bytes as text, with padding.
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let digit = ALPHABET[(group >> (18 - 6 * place) & 63) as usize];
            text.push(match place <= chunk.len() {
                true => char::from(digit),
                false => '=',
            });
        }
    }
    text
}

/// The bytes again. `None` if a digit is none, the padding is wrong, or bits are left over that say
/// something.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=').as_bytes();
    let padding = text.len() - digits.len();
    if !text.len().is_multiple_of(4) || padding > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for chunk in digits.chunks(4) {
        let mut group = 0;
        for digit in chunk {
            let value = VALUES[usize::from(*digit)];
            if value == NO_DIGIT {
                return None;
            }
            group = group << 6 | u32::from(value);
        }
        group <<= 6 * (4 - chunk.len());
        let [_, first, second, third] = group.to_be_bytes();
        let group = [first, second, third];
        let (said, left) = group.split_at(chunk.len() - 1);
        bytes.extend_from_slice(said);
        if left.iter().any(|byte| *byte != 0) {
            return None;
        }
    }
    Some(bytes)
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
