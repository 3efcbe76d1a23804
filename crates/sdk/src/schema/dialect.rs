//! The dialects of JSON Schema, and in which keywords of each the parts of a schema are found.

use serde_json::Value;

use super::SchemaError;
use super::text::quoted;

/// They are in the order of time: a later one can do more.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Dialect {
    Draft4,
    Draft6,
    Draft7,
    Draft201909,
    Draft202012,
}

/// What a keyword holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Holds {
    One,
    List,
    Named,
    /// Here a list of names may stand in the place of a schema.
    NamedOrNames,
}

impl Dialect {
    /// The one that a schema names; 2020-12 if it names none.
    pub(super) fn of(schema: &Value) -> Result<Self, SchemaError> {
        let Some(named) = schema.get("$schema") else {
            return Ok(Self::Draft202012);
        };
        let named = named.as_str().unwrap_or_default();
        let plain = named.trim_end_matches('#');
        let plain = plain.split_once("://").map_or(plain, |(_, rest)| rest);
        match plain {
            "json-schema.org/draft/2020-12/schema" => Ok(Self::Draft202012),
            "json-schema.org/draft/2019-09/schema" => Ok(Self::Draft201909),
            "json-schema.org/draft-07/schema" => Ok(Self::Draft7),
            "json-schema.org/draft-06/schema" => Ok(Self::Draft6),
            "json-schema.org/draft-04/schema" => Ok(Self::Draft4),
            _ => Err(SchemaError::new(format!(
                "the dialect {} is not understood",
                quoted(named)
            ))),
        }
    }

    /// Where an identifier stands.
    pub(super) fn id(self) -> &'static str {
        match self {
            Self::Draft4 => "id",
            _ => "$id",
        }
    }

    /// Whether a reference is alone: what stands beside it means nothing.
    pub(super) fn references_are_alone(self) -> bool {
        self <= Self::Draft7
    }

    /// Whether an array of schemas stands in `items`, and the one for the rest in `additionalItems`.
    pub(super) fn lists_items(self) -> bool {
        self <= Self::Draft201909
    }

    /// Whether `keyword` means something, and is not a note that somebody made.
    pub(super) fn knows(self, keyword: &str) -> bool {
        match keyword {
            "const" | "contains" | "propertyNames" => self >= Self::Draft6,
            "if" | "then" | "else" => self >= Self::Draft7,
            "additionalItems" => self <= Self::Draft201909,
            "$recursiveRef" | "$recursiveAnchor" => self == Self::Draft201909,
            "$anchor"
            | "minContains"
            | "maxContains"
            | "dependentRequired"
            | "dependentSchemas"
            | "unevaluatedItems"
            | "unevaluatedProperties" => self >= Self::Draft201909,
            "$dynamicRef" | "$dynamicAnchor" | "prefixItems" => self >= Self::Draft202012,
            _ => true,
        }
    }

    /// What parts of a schema a keyword holds, if it holds any.
    pub(super) fn holds(self, keyword: &str, inside: &Value) -> Option<Holds> {
        if !self.knows(keyword) {
            return None;
        }
        match keyword {
            "items" if inside.is_array() => self.lists_items().then_some(Holds::List),
            "additionalItems"
            | "additionalProperties"
            | "contains"
            | "else"
            | "if"
            | "items"
            | "not"
            | "propertyNames"
            | "then"
            | "unevaluatedItems"
            | "unevaluatedProperties" => Some(Holds::One),
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => Some(Holds::List),
            "$defs" | "definitions" | "dependentSchemas" | "patternProperties" | "properties" => {
                Some(Holds::Named)
            }
            // Later dialects have two keywords for it; what was meant is still the same.
            "dependencies" => Some(Holds::NamedOrNames),
            _ => None,
        }
    }
}
