//! The dialects of JSON Schema, and which of their keywords contain subschemas.

use serde_json::Value;

use super::SchemaError;
use super::text::quoted;

/// In the order of their publication.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Dialect {
    Draft4,
    Draft6,
    Draft7,
    Draft201909,
    Draft202012,
}

/// What a keyword contains.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Holds {
    One,
    List,
    Named,
    /// Named values, each either a schema or a list of names.
    NamedOrNames,
}

impl Dialect {
    /// The dialect that a schema names; 2020-12 if it names none.
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

    /// The keyword for an identifier.
    pub(super) fn id(self) -> &'static str {
        match self {
            Self::Draft4 => "id",
            _ => "$id",
        }
    }

    /// Whether keywords beside a `$ref` are ignored.
    pub(super) fn references_are_alone(self) -> bool {
        self <= Self::Draft7
    }

    /// Whether `items` may be an array of schemas, with `additionalItems` for the other items.
    pub(super) fn lists_items(self) -> bool {
        self <= Self::Draft201909
    }

    /// Whether this dialect has `keyword`, so that it is not just an annotation.
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

    /// The subschemas that a keyword contains, if it contains any.
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
            // Later dialects replaced it with two keywords, but schemas still use it with the old
            // meaning.
            "dependencies" => Some(Holds::NamedOrNames),
            _ => None,
        }
    }
}
