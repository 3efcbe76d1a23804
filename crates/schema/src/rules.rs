//! The rules that the keywords of a schema express.

use std::collections::{BTreeMap, HashMap};
use std::hash::RandomState;

use serde_json::{Number, Value};

use super::number::{hashed, is_integer, same};
use super::pattern::Pattern;
use super::places::Part;

/// One rule of a subschema.
pub(super) enum Rule {
    Plain(Plain),
    Leading(Leading),
}

/// A rule about the value itself. It does not apply to values of other types.
pub(super) enum Plain {
    /// No value is valid.
    Never,
    Types(Types),
    Const {
        expected: Value,
        cost: u64,
    },
    Enum(Options),
    Limit(Limit, Number),
    MultipleOf(Number),
    Size(Size, u64),
    Pattern(Pattern),
    UniqueItems,
    Required(Names),
    /// If a member is present, the others must be present.
    DependentRequired {
        all: Vec<(String, Names)>,
        cost: u64,
    },
}

/// A rule that refers to other subschemas.
pub(super) enum Leading {
    Ref(Part),
    /// The target depends on the dynamic scope.
    DynamicRef {
        name: usize,
        otherwise: Part,
    },
    All(Vec<Part>),
    Any(Vec<Part>),
    One(Vec<Part>),
    Not(Part),
    If {
        condition: Part,
        then: Option<Part>,
        otherwise: Option<Part>,
    },
    DependentSchemas {
        all: Vec<(String, Part)>,
        cost: u64,
    },
    PropertyNames(Part),
    Properties(Properties),
    Items {
        first: Vec<Part>,
        rest: Option<Part>,
    },
    Contains {
        part: Part,
        least: u64,
        most: Option<u64>,
        evaluates: bool,
    },
    UnevaluatedItems(Part),
    UnevaluatedProperties(Part),
}

impl Leading {
    /// The subschemas that the rule refers to.
    pub(super) fn parts(&self) -> Vec<Part> {
        match self {
            Self::Ref(part)
            | Self::DynamicRef {
                otherwise: part, ..
            }
            | Self::Not(part)
            | Self::PropertyNames(part)
            | Self::Contains { part, .. }
            | Self::UnevaluatedItems(part)
            | Self::UnevaluatedProperties(part) => vec![*part],
            Self::All(parts) | Self::Any(parts) | Self::One(parts) => parts.clone(),
            Self::If {
                condition,
                then,
                otherwise,
            } => [Some(*condition), *then, *otherwise]
                .into_iter()
                .flatten()
                .collect(),
            Self::DependentSchemas { all, .. } => all.iter().map(|(_, part)| *part).collect(),
            Self::Properties(rule) => {
                let named = rule.named.values();
                let patterns = rule.patterns.iter().map(|(_, part)| part);
                named.chain(patterns).chain(&rule.others).copied().collect()
            }
            Self::Items { first, rest } => first.iter().chain(rest).copied().collect(),
        }
    }
}

pub(super) struct Properties {
    /// There are few, and they are looked up for each member of each value: comparing is faster
    /// than hashing.
    pub(super) named: BTreeMap<String, Part>,
    pub(super) patterns: Vec<(Pattern, Part)>,
    pub(super) others: Option<Part>,
}

/// Names of members, and the cost of looking up all of them.
pub(super) struct Names {
    pub(super) names: Vec<String>,
    pub(super) cost: u64,
}

/// The values of an `enum`, indexed by a hash that is the same for equal values.
pub(super) struct Options {
    pub(super) values: Vec<Value>,
    keys: RandomState,
    places: HashMap<u64, Vec<usize>>,
}

impl Options {
    pub(super) fn new(values: Vec<Value>) -> Self {
        let keys = RandomState::new();
        let mut places: HashMap<u64, Vec<usize>> = HashMap::new();
        for (place, value) in values.iter().enumerate() {
            places.entry(hashed(value, &keys)).or_default().push(place);
        }
        Self {
            values,
            keys,
            places,
        }
    }

    pub(super) fn has(&self, value: &Value) -> bool {
        let places = self.places.get(&hashed(value, &self.keys));
        let mut places = places.into_iter().flatten();
        places.any(|place| same(&self.values[*place], value))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Limit {
    Minimum,
    ExclusiveMinimum,
    Maximum,
    ExclusiveMaximum,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Size {
    MinLength,
    MaxLength,
    MinItems,
    MaxItems,
    MinProperties,
    MaxProperties,
}

/// A set of the seven types.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Types(u8);

impl Types {
    const NAMES: [(&'static str, &'static str); 7] = [
        ("null", "null"),
        ("boolean", "a boolean"),
        ("integer", "an integer"),
        ("number", "a number"),
        ("string", "a string"),
        ("array", "an array"),
        ("object", "an object"),
    ];

    pub(super) fn read(keyword: &Value) -> Option<Self> {
        match keyword {
            Value::String(name) => Self::named(name),
            Value::Array(names) if !names.is_empty() => {
                names.iter().try_fold(Self(0), |all, name| {
                    let one = Self::named(name.as_str()?)?;
                    Some(Self(all.0 | one.0))
                })
            }
            _ => None,
        }
    }

    fn named(name: &str) -> Option<Self> {
        let at = Self::NAMES.iter().position(|(known, _)| *known == name)?;
        Some(Self(1 << at))
    }

    pub(super) fn has(self, value: &Value) -> bool {
        let types = match value {
            Value::Null => 1,
            Value::Bool(_) => 1 << 1,
            Value::Number(number) if is_integer(number) => 1 << 2 | 1 << 3,
            Value::Number(_) => 1 << 3,
            Value::String(_) => 1 << 4,
            Value::Array(_) => 1 << 5,
            Value::Object(_) => 1 << 6,
        };
        self.0 & types != 0
    }

    /// As text, such as "a string" or "a string or null".
    pub(super) fn words(self) -> String {
        let all = Self::NAMES.iter().enumerate();
        let words: Vec<&str> = all
            .filter(|(at, _)| self.0 & 1 << at != 0)
            .map(|(_, (_, words))| *words)
            .collect();
        words.join(" or ")
    }
}

/// The cost of looking up a member.
pub(super) fn name_cost(name: &str) -> u64 {
    name.len() as u64 / 64 + 1
}
