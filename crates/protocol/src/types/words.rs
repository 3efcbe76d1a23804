//! Enums of string constants that may grow.
//!
//! A later revision, or an extension, may use a value that this version does not know. `words!`
//! writes an enum that keeps such a value, so that nothing is lost and decoding does not fail:
//!
//! ```text
//! words! {
//!     /// A colour.
//!     pub enum Colour {
//!         /// Like the sky.
//!         Blue = "blue",
//!     }
//! }
//! ```

macro_rules! words {
    (
        $(#[$attribute:meta])*
        pub enum $name:ident {
            $(
                $(#[$doc:meta])*
                $variant:ident = $word:literal,
            )*
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, PartialEq, Eq, Hash, Debug)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$doc])* $variant,)*
            /// A value that this version of Belay does not know.
            Other(String),
        }

        impl $name {
            /// The value on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $word,)*
                    Self::Other(other) => other,
                }
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                match word {
                    $($word => Self::$variant,)*
                    other => Self::Other(other.to_owned()),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                Ok(Self::from(&*word))
            }
        }
    };
}
