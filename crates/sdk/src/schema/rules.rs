//! What the keywords of a schema ask for.

use std::collections::HashMap;

use serde_json::{Map, Number, Value};

use super::BadSchema;
use super::dialect::Dialect;
use super::number::{is_integer, weight};
use super::pattern::Pattern;
use super::places::{Part, Place, Places, kind};

/// So many bytes of compiled patterns a schema may have.
const PATTERNS: usize = 4 << 20;

/// One thing that a part of a schema asks of a value. It asks nothing of values of other types.
pub(super) enum Rule {
    /// Nothing fits.
    Never,
    Types(Types),
    Const {
        expected: Value,
        cost: u64,
    },
    Enum {
        options: Vec<Value>,
        cost: u64,
    },
    Limit(Limit, Number),
    MultipleOf(Number),
    Size(Size, u64),
    Pattern(Pattern),
    UniqueItems,
    Required(Vec<String>),
    /// Where the member is there, the others must be.
    DependentRequired(Vec<(String, Vec<String>)>),
    Ref(Part),
    /// What it leads to depends on where one comes from.
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
    DependentSchemas(Vec<(String, Part)>),
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

pub(super) struct Properties {
    pub(super) named: HashMap<String, Part>,
    pub(super) patterns: Vec<(Pattern, Part)>,
    pub(super) others: Option<Part>,
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

    /// In words, such as "a string" or "a string or null".
    pub(super) fn words(self) -> String {
        let all = Self::NAMES.iter().enumerate();
        let words: Vec<&str> = all
            .filter(|(at, _)| self.0 & 1 << at != 0)
            .map(|(_, (_, words))| *words)
            .collect();
        words.join(" or ")
    }
}

impl Rule {
    /// Whether it leads to other parts of the schema.
    pub(super) fn leads_on(&self) -> bool {
        !matches!(
            self,
            Self::Never
                | Self::Types(_)
                | Self::Const { .. }
                | Self::Enum { .. }
                | Self::Limit(..)
                | Self::MultipleOf(_)
                | Self::Size(..)
                | Self::Pattern(_)
                | Self::UniqueItems
                | Self::Required(_)
                | Self::DependentRequired(_)
        )
    }
}

/// Reads the rules of all parts.
pub(super) struct Reader<'a> {
    pub(super) places: Places<'a>,
    /// The bytes of all patterns.
    patterns: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(places: Places<'a>) -> Self {
        Self {
            places,
            patterns: 0,
        }
    }

    /// What a part asks for, the simple things first: they are also what is best to tell.
    pub(super) fn rules(&mut self, place: Place<'a>) -> Result<Vec<Rule>, BadSchema> {
        let Value::Object(members) = place.schema else {
            let never = (place.schema == &Value::Bool(false)).then_some(Rule::Never);
            return Ok(never.into_iter().collect());
        };
        let alone = self.places.dialect.references_are_alone();
        if let Some(reference) = members.get("$ref").filter(|_| alone) {
            return Ok(vec![self.reference("$ref", reference, place.resource)?]);
        }
        let mut rules = Vec::new();
        for (keyword, inside) in members {
            if self.places.dialect.knows(keyword)
                && let Some(rule) = self.simple(keyword, inside, members)?
            {
                rules.push(rule);
            }
        }
        rules.sort_by_key(|rule| !matches!(rule, Rule::Types(_)));
        for (keyword, inside) in members {
            if self.places.dialect.knows(keyword)
                && let Some(rule) = self.leading(keyword, inside, place)?
            {
                rules.push(rule);
            }
        }
        rules.extend(self.dependencies(members)?);
        rules.extend(self.properties(members)?);
        rules.extend(self.items(members)?);
        for (keyword, inside) in members {
            match keyword.as_str() {
                "unevaluatedItems" if self.places.dialect.knows(keyword) => {
                    rules.push(Rule::UnevaluatedItems(self.part(inside)?));
                }
                "unevaluatedProperties" if self.places.dialect.knows(keyword) => {
                    rules.push(Rule::UnevaluatedProperties(self.part(inside)?));
                }
                _ => {}
            }
        }
        Ok(rules)
    }

    /// Keywords that lead nowhere.
    fn simple(
        &mut self,
        keyword: &str,
        inside: &Value,
        members: &Map<String, Value>,
    ) -> Result<Option<Rule>, BadSchema> {
        let bad = || bad(keyword, inside);
        let limit = |limit| {
            let number = inside.as_number().ok_or_else(bad)?;
            Ok(Rule::Limit(limit, number.clone()))
        };
        let size = |size| Ok(Rule::Size(size, count(inside).ok_or_else(bad)?));
        let of_old = self.places.dialect == Dialect::Draft4;
        let excludes = |flag: &str| of_old && members.get(flag) == Some(&Value::Bool(true));
        let rule = match keyword {
            "type" => Rule::Types(types(inside).ok_or_else(bad)?),
            "const" => Rule::Const {
                expected: inside.clone(),
                cost: weight(inside),
            },
            "enum" => Rule::Enum {
                options: inside.as_array().ok_or_else(bad)?.clone(),
                cost: weight(inside),
            },
            "minimum" if excludes("exclusiveMinimum") => limit(Limit::ExclusiveMinimum)?,
            "maximum" if excludes("exclusiveMaximum") => limit(Limit::ExclusiveMaximum)?,
            "minimum" => limit(Limit::Minimum)?,
            "maximum" => limit(Limit::Maximum)?,
            "exclusiveMinimum" if !of_old => limit(Limit::ExclusiveMinimum)?,
            "exclusiveMaximum" if !of_old => limit(Limit::ExclusiveMaximum)?,
            "multipleOf" => {
                let step = inside.as_number().ok_or_else(bad)?;
                if step.as_f64().is_none_or(|step| step <= 0.0) {
                    let problem = format!("`multipleOf` is {step}, and not more than zero");
                    return Err(BadSchema(problem));
                }
                Rule::MultipleOf(step.clone())
            }
            "minLength" => size(Size::MinLength)?,
            "maxLength" => size(Size::MaxLength)?,
            "minItems" => size(Size::MinItems)?,
            "maxItems" => size(Size::MaxItems)?,
            "minProperties" => size(Size::MinProperties)?,
            "maxProperties" => size(Size::MaxProperties)?,
            "pattern" => Rule::Pattern(self.pattern(inside.as_str().ok_or_else(bad)?)?),
            "uniqueItems" => match inside.as_bool().ok_or_else(bad)? {
                true => Rule::UniqueItems,
                false => return Ok(None),
            },
            "required" => Rule::Required(names(inside).ok_or_else(bad)?),
            "dependentRequired" => {
                let all = inside.as_object().ok_or_else(bad)?.iter();
                let read = |(name, others)| Some((String::clone(name), names(others)?));
                Rule::DependentRequired(all.map(read).collect::<Option<_>>().ok_or_else(bad)?)
            }
            _ => return Ok(None),
        };
        Ok(Some(rule))
    }

    /// Keywords that lead to other parts, each by itself.
    fn leading(
        &mut self,
        keyword: &str,
        inside: &'a Value,
        place: Place<'a>,
    ) -> Result<Option<Rule>, BadSchema> {
        let beside = |keyword: &str| {
            let known = self.places.dialect.knows(keyword);
            place.schema.get(keyword).filter(|_| known)
        };
        let rule = match keyword {
            "$ref" | "$dynamicRef" | "$recursiveRef" => {
                self.reference(keyword, inside, place.resource)?
            }
            "allOf" => Rule::All(self.parts(keyword, inside)?),
            "anyOf" => Rule::Any(self.parts(keyword, inside)?),
            "oneOf" => Rule::One(self.parts(keyword, inside)?),
            "not" => Rule::Not(self.part(inside)?),
            "if" => Rule::If {
                condition: self.part(inside)?,
                then: beside("then").map(|then| self.part(then)).transpose()?,
                otherwise: beside("else").map(|other| self.part(other)).transpose()?,
            },
            "dependentSchemas" => Rule::DependentSchemas(self.named(keyword, inside)?),
            "propertyNames" => Rule::PropertyNames(self.part(inside)?),
            "contains" => {
                let number = |keyword: &str| {
                    let number = beside(keyword)?;
                    Some(count(number).ok_or_else(|| bad(keyword, number)))
                };
                Rule::Contains {
                    part: self.part(inside)?,
                    least: number("minContains").transpose()?.unwrap_or(1),
                    most: number("maxContains").transpose()?,
                    evaluates: self.places.dialect >= Dialect::Draft202012,
                }
            }
            _ => return Ok(None),
        };
        Ok(Some(rule))
    }

    fn reference(
        &mut self,
        keyword: &str,
        inside: &Value,
        resource: usize,
    ) -> Result<Rule, BadSchema> {
        let reference = inside.as_str().ok_or_else(|| bad(keyword, inside))?;
        let target = self.places.find(resource, reference)?;
        Ok(match target.dynamic.filter(|_| keyword != "$ref") {
            Some(name) => Rule::DynamicRef {
                name,
                otherwise: target.part,
            },
            None => Rule::Ref(target.part),
        })
    }

    /// What is two keywords in later dialects.
    fn dependencies(&self, members: &Map<String, Value>) -> Result<Vec<Rule>, BadSchema> {
        let known = self.places.dialect.knows("dependencies");
        let Some(inside) = members.get("dependencies").filter(|_| known) else {
            return Ok(Vec::new());
        };
        let bad = || bad("dependencies", inside);
        let mut required = Vec::new();
        let mut schemas = Vec::new();
        for (name, inside) in inside.as_object().ok_or_else(bad)? {
            match inside.is_array() {
                true => required.push((name.clone(), names(inside).ok_or_else(bad)?)),
                false => schemas.push((name.clone(), self.part(inside)?)),
            }
        }
        Ok(vec![
            Rule::DependentRequired(required),
            Rule::DependentSchemas(schemas),
        ])
    }

    /// The three keywords that share the members of an object.
    fn properties(&mut self, members: &Map<String, Value>) -> Result<Option<Rule>, BadSchema> {
        let of = |keyword: &str| members.get(keyword);
        let named = of("properties");
        let patterns = of("patternProperties");
        let others = of("additionalProperties");
        if named.or(patterns).or(others).is_none() {
            return Ok(None);
        }
        let named = named.map(|named| self.named("properties", named));
        let by_pattern = patterns.map(|patterns| self.named("patternProperties", patterns));
        let mut patterns = Vec::new();
        for (pattern, part) in by_pattern.transpose()?.unwrap_or_default() {
            patterns.push((self.pattern(&pattern)?, part));
        }
        Ok(Some(Rule::Properties(Properties {
            named: named.transpose()?.unwrap_or_default().into_iter().collect(),
            patterns,
            others: others.map(|others| self.part(others)).transpose()?,
        })))
    }

    /// The two keywords that share the items of an array.
    fn items(&self, members: &Map<String, Value>) -> Result<Option<Rule>, BadSchema> {
        let items = members.get("items");
        let (first, rest) = match self.places.dialect.lists_items() {
            true if items.is_some_and(Value::is_array) => {
                (("items", items), members.get("additionalItems"))
            }
            true => (("items", None), items),
            false if items.is_some_and(Value::is_array) => {
                let problem = "`items` is an array, which is called `prefixItems` in 2020-12; name an \
                               older dialect in `$schema` if you mean one";
                return Err(BadSchema(problem.into()));
            }
            false => (("prefixItems", members.get("prefixItems")), items),
        };
        if first.1.or(rest).is_none() {
            return Ok(None);
        }
        let (keyword, first) = first;
        Ok(Some(Rule::Items {
            first: first
                .map(|first| self.parts(keyword, first))
                .transpose()?
                .unwrap_or_default(),
            rest: rest.map(|rest| self.part(rest)).transpose()?,
        }))
    }

    fn part(&self, schema: &Value) -> Result<Part, BadSchema> {
        let nothing = || BadSchema(format!("{} stands where a schema belongs", kind(schema)));
        self.places.part(schema).ok_or_else(nothing)
    }

    fn parts(&self, keyword: &str, inside: &Value) -> Result<Vec<Part>, BadSchema> {
        let all = inside.as_array().ok_or_else(|| bad(keyword, inside))?;
        all.iter().map(|schema| self.part(schema)).collect()
    }

    fn named(&self, keyword: &str, inside: &Value) -> Result<Vec<(String, Part)>, BadSchema> {
        let all = inside.as_object().ok_or_else(|| bad(keyword, inside))?;
        all.iter()
            .map(|(name, schema)| Ok((name.clone(), self.part(schema)?)))
            .collect()
    }

    fn pattern(&mut self, source: &str) -> Result<Pattern, BadSchema> {
        let pattern = Pattern::compile(source)?;
        self.patterns += pattern.size();
        match self.patterns > PATTERNS {
            true => Err(BadSchema("its patterns are too large".into())),
            false => Ok(pattern),
        }
    }
}

fn bad(keyword: &str, inside: &Value) -> BadSchema {
    let inside = inside.to_string();
    let shown: String = inside.chars().take(60).collect();
    BadSchema(format!("`{keyword}` cannot be {shown}"))
}

fn types(inside: &Value) -> Option<Types> {
    match inside {
        Value::String(name) => Types::named(name),
        Value::Array(names) => names.iter().try_fold(Types(0), |all, name| {
            let one = Types::named(name.as_str()?)?;
            Some(Types(all.0 | one.0))
        }),
        _ => None,
    }
}

fn names(inside: &Value) -> Option<Vec<String>> {
    let names = inside.as_array()?.iter();
    names.map(|name| name.as_str().map(str::to_owned)).collect()
}

/// A number of things, which may be written as `2.0`.
fn count(inside: &Value) -> Option<u64> {
    let float = || {
        inside
            .as_f64()
            .filter(|float| *float >= 0.0 && float.fract() == 0.0)
    };
    inside
        .as_u64()
        .or_else(|| float().map(|float| float as u64))
}
