//! Encryption of the state that a client carries between two rounds.
//!
//! The client cannot read or change it. It is valid for one principal, one method, the same
//! parameters, and a limited time; anything else is refused.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use belay_protocol::base64;
use belay_protocol::jsonrpc::ErrorObject;
use belay_protocol::types::error_code;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use sha2::{Digest, Sha256};

use super::digest::Digested;
use crate::Principal;

/// A key that seals the state of rounds. Replicas that share it can go on where another has begun.
///
/// ```
/// let key = belay::server::StateKey::new([7; 32]);
/// assert_eq!(format!("{key:?}"), "StateKey(…)");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct StateKey([u8; 32]);

impl StateKey {
    /// A key from 32 random bytes, which must be kept secret.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// A key from the operating system's random source.
    ///
    /// # Panics
    ///
    /// If there is no random source.
    pub fn random() -> Self {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).expect("the system has randomness");
        Self(bytes)
    }

    /// The identifier of the key in the state it has encrypted.
    fn name(&self) -> [u8; 4] {
        let digest = Sha256::digest(self.0);
        [digest[0], digest[1], digest[2], digest[3]]
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(&self.0.into())
    }
}

/// The key is kept out of logs.
impl fmt::Debug for StateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StateKey(…)")
    }
}

/// How the state of rounds is sealed.
///
/// ```
/// use belay::server::StateKey;
/// use belay::Server;
/// use std::time::Duration;
///
/// let (new, old) = (StateKey::random(), StateKey::random());
/// let server = Server::new("example", "1.0.0").request_state(|state| {
///     state.key(new);
///     state.also_opens(old);
///     state.lifetime(Duration::from_secs(300));
/// });
/// ```
#[derive(Clone, Debug)]
pub struct RequestState {
    /// The first one encrypts; each of them can decrypt.
    keys: Vec<StateKey>,
    lifetime: Duration,
    chosen: bool,
}

impl Default for RequestState {
    fn default() -> Self {
        Self {
            keys: vec![StateKey::random()],
            lifetime: Duration::from_secs(15 * 60),
            chosen: false,
        }
    }
}

/// The longest state.
const LONGEST: usize = 512 * 1024;

const VERSION: u8 = 1;
const NONCE: usize = 24;
const HEAD: usize = 1 + 4 + NONCE;

impl RequestState {
    /// Sets the key that encrypts. By default it is random, so that other processes
    /// cannot decrypt the state.
    pub fn key(&mut self, key: StateKey) {
        self.keys[0] = key;
        self.chosen = true;
    }

    /// Adds a key that only decrypts, for key rotation.
    pub fn also_opens(&mut self, key: StateKey) {
        self.keys.push(key);
    }

    /// Sets how long state is valid, which limits the time of one round trip. Default: 15 minutes.
    pub fn lifetime(&mut self, lifetime: Duration) {
        self.lifetime = lifetime;
    }

    /// Whether a key was set.
    pub(crate) fn is_chosen(&self) -> bool {
        self.chosen
    }

    pub(super) fn seal(&self, bound: &Bound<'_>, state: &[u8]) -> Result<String, ErrorObject> {
        self.seal_at(SystemTime::now(), bound, state)
    }

    fn seal_at(
        &self,
        now: SystemTime,
        bound: &Bound<'_>,
        state: &[u8],
    ) -> Result<String, ErrorObject> {
        let failed = |problem: &str| ErrorObject::new(error_code::INTERNAL_ERROR, problem);
        if state.len() > LONGEST {
            return Err(failed(
                "the state of this conversation has become too large",
            ));
        }
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let expires = now.saturating_add(self.lifetime).as_millis();
        let expires = u64::try_from(expires).unwrap_or(u64::MAX);
        let mut plain = expires.to_be_bytes().to_vec();
        plain.extend_from_slice(state);
        let mut nonce = [0; NONCE];
        getrandom::fill(&mut nonce).map_err(|_| failed("the system has no randomness"))?;
        let key = &self.keys[0];
        let mut sealed = vec![VERSION];
        sealed.extend_from_slice(&key.name());
        sealed.extend_from_slice(&nonce);
        let bound = bound.bytes(&sealed);
        let payload = Payload {
            msg: &plain,
            aad: &bound,
        };
        let cipher = key.cipher().encrypt(&XNonce::from(nonce), payload);
        sealed.extend_from_slice(&cipher.map_err(|_| failed("the state could not be sealed"))?);
        Ok(base64::encode(&sealed))
    }

    pub(super) fn open(&self, bound: &Bound<'_>, sealed: &str) -> Result<Vec<u8>, ErrorObject> {
        let opened = self.open_at(SystemTime::now(), bound, sealed);
        opened.ok_or_else(|| {
            // The error does not reveal which of the checks failed.
            let problem = "`requestState` was not given out for this request, or too long ago; \
                           begin without it";
            ErrorObject::new(error_code::INVALID_PARAMS, problem)
        })
    }

    fn open_at(&self, now: SystemTime, bound: &Bound<'_>, sealed: &str) -> Option<Vec<u8>> {
        if sealed.len() > LONGEST * 2 {
            return None;
        }
        let sealed = base64::decode(sealed)?;
        let (head, cipher) = sealed.split_at_checked(HEAD)?;
        let [VERSION, name @ ..] = head else {
            return None;
        };
        let (name, nonce) = name.split_at_checked(4)?;
        let nonce: [u8; NONCE] = nonce.try_into().ok()?;
        let key = self.keys.iter().find(|key| key.name() == name)?;
        let bound = bound.bytes(head);
        let payload = Payload {
            msg: cipher,
            aad: &bound,
        };
        let plain = key.cipher().decrypt(&XNonce::from(nonce), payload).ok()?;
        let (expires, state) = plain.split_first_chunk::<8>()?;
        let expires = u128::from(u64::from_be_bytes(*expires));
        let now = now
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_millis();
        (now < expires).then(|| state.to_vec())
    }
}

/// What the state is bound to.
pub(super) struct Bound<'a> {
    pub(super) principal: Option<&'a Principal>,
    pub(super) method: &'a str,
    pub(super) params: Digested,
}

impl Bound<'_> {
    /// Each part is written with its length, so that different values differ in bytes.
    fn bytes(&self, head: &[u8]) -> Vec<u8> {
        let nobody = [0_u8].as_slice();
        let principal = self.principal.map(|principal| principal.name().as_bytes());
        let mut bytes = Vec::new();
        for part in [
            head,
            principal.map_or(nobody, |_| &[1]),
            principal.unwrap_or_default(),
            self.method.as_bytes(),
            self.params.as_bytes(),
        ] {
            bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
            bytes.extend_from_slice(part);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn digest(arguments: serde_json::Value) -> Digested {
        Digested::of(&json!({ "name": "ship", "arguments": arguments }))
    }

    fn bound<'a>(principal: Option<&'a Principal>, method: &'a str) -> Bound<'a> {
        Bound {
            principal,
            method,
            params: digest(json!({ "order": 7, "fast": true })),
        }
    }

    #[test]
    fn what_was_sealed_comes_back() {
        let state = RequestState::default();
        let alice = Principal::new("alice");
        for principal in [None, Some(&alice)] {
            let bound = bound(principal, "tools/call");
            let sealed = state.seal(&bound, b"secret").unwrap();
            assert_eq!(state.open(&bound, &sealed).unwrap(), b"secret");
            assert!(!sealed.contains("secret"));
        }
    }

    /// Changes of base64 characters that decode to the same bytes are refused, too.
    #[test]
    fn every_changed_bit_is_refused() {
        let state = RequestState::default();
        let bound = bound(None, "tools/call");
        for length in [6, 7, 8] {
            let sealed = state.seal(&bound, &b"secret!!"[..length]).unwrap();
            for at in 0..sealed.len() {
                for bit in 0..8 {
                    let mut bytes = sealed.clone().into_bytes();
                    bytes[at] ^= 1 << bit;
                    if let Ok(changed) = String::from_utf8(bytes) {
                        let error = state.open(&bound, &changed).unwrap_err();
                        assert_eq!(error.code, error_code::INVALID_PARAMS);
                    }
                }
            }
            let bytes = base64::decode(&sealed).unwrap();
            for at in 0..bytes.len() {
                for bit in 0..8 {
                    let mut bytes = bytes.clone();
                    bytes[at] ^= 1 << bit;
                    assert!(state.open(&bound, &base64::encode(&bytes)).is_err());
                }
            }
            for cut in 0..bytes.len() {
                assert!(state.open(&bound, &base64::encode(&bytes[..cut])).is_err());
            }
        }
    }

    #[test]
    fn it_is_good_for_one_request_only() {
        let state = RequestState::default();
        let (alice, bob, nobody) = (
            Principal::new("alice"),
            Principal::new("bob"),
            Principal::new(""),
        );
        let given = bound(Some(&alice), "tools/call");
        let sealed = state.seal(&given, b"s").unwrap();
        for other in [None, Some(&bob), Some(&nobody)] {
            assert!(state.open(&bound(other, "tools/call"), &sealed).is_err());
        }
        assert!(
            state
                .open(&bound(Some(&alice), "prompts/get"), &sealed)
                .is_err()
        );
        for arguments in [
            json!({ "order": 8, "fast": true }),
            json!({ "order": "7", "fast": true }),
            json!({ "order": 7 }),
            json!({}),
        ] {
            let other = Bound {
                params: digest(arguments),
                ..bound(Some(&alice), "tools/call")
            };
            assert!(state.open(&other, &sealed).is_err());
        }
        // The order of members makes no difference.
        let same = Bound {
            params: digest(json!({ "fast": true, "order": 7 })),
            ..bound(Some(&alice), "tools/call")
        };
        assert!(state.open(&same, &sealed).is_ok());
    }

    #[test]
    fn it_expires() {
        let mut state = RequestState::default();
        state.lifetime(Duration::from_secs(60));
        let bound = bound(None, "tools/call");
        let now = SystemTime::now();
        let sealed = state.seal_at(now, &bound, b"s").unwrap();
        let after = |seconds| state.open_at(now + Duration::from_secs(seconds), &bound, &sealed);
        assert!(after(59).is_some());
        assert!(after(61).is_none());
        state.lifetime(Duration::MAX);
        let sealed = state.seal(&bound, b"s").unwrap();
        assert!(state.open(&bound, &sealed).is_ok());
    }

    #[test]
    fn keys_rotate() {
        let (old, new) = (StateKey::random(), StateKey::random());
        let with = |key: &StateKey, also: Option<&StateKey>| {
            let mut state = RequestState::default();
            state.key(key.clone());
            if let Some(also) = also {
                state.also_opens(also.clone());
            }
            state
        };
        let bound = bound(None, "tools/call");
        let sealed = with(&old, None).seal(&bound, b"s").unwrap();
        assert!(with(&new, Some(&old)).open(&bound, &sealed).is_ok());
        assert!(with(&new, None).open(&bound, &sealed).is_err());
        let sealed = with(&new, Some(&old)).seal(&bound, b"s").unwrap();
        assert!(with(&new, None).open(&bound, &sealed).is_ok());
        assert!(with(&old, None).open(&bound, &sealed).is_err());
    }

    #[test]
    fn state_is_bounded() {
        let state = RequestState::default();
        let bound = bound(None, "tools/call");
        assert!(state.seal(&bound, &vec![0; LONGEST + 1]).is_err());
        assert!(state.open(&bound, &"A".repeat(LONGEST * 2 + 4)).is_err());
    }
}
