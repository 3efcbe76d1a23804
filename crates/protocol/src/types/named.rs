//! A map that keeps the order of its entries.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};

/// A map from names to values that keeps the order of insertion, for example the fields of a form
/// or the input requests of a round trip.
///
/// ```
/// use belay_protocol::types::Named;
///
/// let mut ages = Named::new();
/// ages.insert("Zoe", 7);
/// ages.insert("Ada", 9);
/// assert_eq!(serde_json::to_string(&ages).unwrap(), r#"{"Zoe":7,"Ada":9}"#);
/// assert_eq!(ages.get("Ada"), Some(&9));
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Named<T>(Vec<(String, T)>);

impl<T> Named<T> {
    /// Creates an empty map.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Inserts at the end, or replaces the value of the same name and returns the old one.
    pub fn insert(&mut self, name: impl Into<String>, value: T) -> Option<T> {
        let name = name.into();
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => Some(std::mem::replace(known, value)),
            None => {
                self.0.push((name, value));
                None
            }
        }
    }

    /// All values, mutably.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().map(|(_, value)| value)
    }

    /// The value of this name.
    pub fn get(&self, name: &str) -> Option<&T> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value)
    }

    /// All names and values, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &T)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> IntoIterator for Named<T> {
    type Item = (String, T);
    type IntoIter = std::vec::IntoIter<(String, T)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<N: Into<String>, T> FromIterator<(N, T)> for Named<T> {
    fn from_iter<I: IntoIterator<Item = (N, T)>>(pairs: I) -> Self {
        let mut named = Self::new();
        for (name, value) in pairs {
            named.insert(name, value);
        }
        named
    }
}

impl<T: Serialize> Serialize for Named<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NamedVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for NamedVisitor<T> {
            type Value = Named<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Named<T>, A::Error> {
                let mut pairs = Vec::new();
                let mut known = std::collections::HashSet::new();
                while let Some(name) = access.next_key::<String>()? {
                    let value = access
                        .next_value()
                        .map_err(|error| A::Error::custom(format_args!("`{name}`: {error}")))?;
                    if !known.insert(name.clone()) {
                        return Err(A::Error::custom(format_args!("duplicate field `{name}`")));
                    }
                    pairs.push((name, value));
                }
                Ok(Named(pairs))
            }
        }

        deserializer.deserialize_map(NamedVisitor(PhantomData))
    }
}
