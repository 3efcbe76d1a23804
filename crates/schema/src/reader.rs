//! Reads the keywords of a schema.

use std::collections::BTreeSet;

use serde_json::Value;

use super::SchemaError;
use super::dialect::Dialect;
use super::number::weight;
use super::pattern::Pattern;
use super::places::{Part, Place, Places, kind};
use super::rules::{
    Leading, Limit, Names, Options, Plain, Properties, Rule, Size, Types, name_cost,
};
use super::text::shown;

/// The maximum memory of all patterns of a schema in bytes.
const PATTERNS: usize = 16 << 20;
/// The maximum size of all constants of a schema: parts of values, or texts of 64 bytes.
const CONSTANTS: u64 = 100_000;

/// Reads the rules of all subschemas.
pub(super) struct Reader<'a> {
    pub(super) places: Places<'a>,
    /// The memory of all patterns so far, in bytes.
    patterns: usize,
    /// The size of all constants so far.
    constants: u64,
    /// The patterns that cannot be matched.
    pub(super) unsupported: BTreeSet<String>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(places: Places<'a>) -> Self {
        Self {
            places,
            patterns: 0,
            constants: 0,
            unsupported: BTreeSet::new(),
        }
    }

    /// The rules of a subschema. Plain rules come first, since they give the clearest messages.
    pub(super) fn rules(&mut self, place: Place<'a>) -> Result<Vec<Rule>, SchemaError> {
        let Value::Object(members) = place.schema else {
            let never = (place.schema == &Value::Bool(false)).then_some(Plain::Never);
            return Ok(never.into_iter().map(Rule::Plain).collect());
        };
        let alone = self.places.dialect.references_are_alone();
        if let Some(reference) = members.get("$ref").filter(|_| alone) {
            let reference = self.reference("$ref", reference, place.resource)?;
            return Ok(vec![Rule::Leading(reference)]);
        }
        let known = |keyword: &String| self.places.dialect.knows(keyword);
        let members: Vec<(&String, &Value)> = members
            .iter()
            .filter(|(keyword, _)| known(keyword))
            .collect();
        let mut plain = Vec::new();
        let mut leading = Vec::new();
        for (keyword, inside) in &members {
            plain.extend(self.plain(keyword, inside, place.schema)?);
            leading.extend(self.leading(keyword, inside, place)?);
        }
        plain.sort_by_key(|rule| !matches!(rule, Plain::Types(_)));
        self.dependencies(place.schema, &mut plain, &mut leading)?;
        leading.extend(self.properties(place.schema)?);
        leading.extend(self.items(place.schema)?);
        // Last, because these depend on what all other rules have evaluated.
        for (keyword, inside) in &members {
            match keyword.as_str() {
                "unevaluatedItems" => leading.push(Leading::UnevaluatedItems(self.part(inside)?)),
                "unevaluatedProperties" => {
                    leading.push(Leading::UnevaluatedProperties(self.part(inside)?));
                }
                _ => {}
            }
        }
        let plain = plain.into_iter().map(Rule::Plain);
        Ok(plain
            .chain(leading.into_iter().map(Rule::Leading))
            .collect())
    }

    fn plain(
        &mut self,
        keyword: &str,
        inside: &Value,
        beside: &Value,
    ) -> Result<Option<Plain>, SchemaError> {
        let bad = || bad(keyword, inside);
        let limit = |limit| {
            let number = inside.as_number().ok_or_else(bad)?;
            Ok(Plain::Limit(limit, number.clone()))
        };
        let size = |size| Ok(Plain::Size(size, count(inside).ok_or_else(bad)?));
        let of_old = self.places.dialect == Dialect::Draft4;
        let excludes = |flag: &str| of_old && beside[flag] == Value::Bool(true);
        let rule = match keyword {
            "type" => Plain::Types(Types::read(inside).ok_or_else(bad)?),
            "const" => Plain::Const {
                cost: self.constant(inside)?,
                expected: inside.clone(),
            },
            "enum" => {
                let options = inside.as_array().ok_or_else(bad)?;
                self.constant(inside)?;
                Plain::Enum(Options::new(options.clone()))
            }
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
                    return Err(SchemaError::new(problem));
                }
                Plain::MultipleOf(step.clone())
            }
            "minLength" => size(Size::MinLength)?,
            "maxLength" => size(Size::MaxLength)?,
            "minItems" => size(Size::MinItems)?,
            "maxItems" => size(Size::MaxItems)?,
            "minProperties" => size(Size::MinProperties)?,
            "maxProperties" => size(Size::MaxProperties)?,
            "pattern" => Plain::Pattern(self.pattern(inside.as_str().ok_or_else(bad)?)?),
            "uniqueItems" => match inside.as_bool().ok_or_else(bad)? {
                true => Plain::UniqueItems,
                false => return Ok(None),
            },
            "required" => Plain::Required(names(inside).ok_or_else(bad)?),
            "dependentRequired" => {
                let all = inside.as_object().ok_or_else(bad)?.iter();
                let read = |(name, others)| Some((String::clone(name), names(others)?));
                dependent_required(all.map(read).collect::<Option<_>>().ok_or_else(bad)?)
            }
            _ => return Ok(None),
        };
        Ok(Some(rule))
    }

    /// A rule for one keyword that contains subschemas.
    fn leading(
        &mut self,
        keyword: &str,
        inside: &'a Value,
        place: Place<'a>,
    ) -> Result<Option<Leading>, SchemaError> {
        let beside = |keyword: &str| {
            let known = self.places.dialect.knows(keyword);
            place.schema.get(keyword).filter(|_| known)
        };
        let rule = match keyword {
            "$ref" | "$dynamicRef" | "$recursiveRef" => {
                self.reference(keyword, inside, place.resource)?
            }
            "allOf" => Leading::All(self.parts(keyword, inside)?),
            "anyOf" => Leading::Any(self.parts(keyword, inside)?),
            "oneOf" => Leading::One(self.parts(keyword, inside)?),
            "not" => Leading::Not(self.part(inside)?),
            "if" => Leading::If {
                condition: self.part(inside)?,
                then: beside("then").map(|then| self.part(then)).transpose()?,
                otherwise: beside("else").map(|other| self.part(other)).transpose()?,
            },
            "dependentSchemas" => dependent_schemas(self.named(keyword, inside)?),
            "propertyNames" => Leading::PropertyNames(self.part(inside)?),
            "contains" => {
                let number = |keyword: &str| {
                    let number = beside(keyword)?;
                    Some(count(number).ok_or_else(|| bad(keyword, number)))
                };
                Leading::Contains {
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
    ) -> Result<Leading, SchemaError> {
        let reference = inside.as_str().ok_or_else(|| bad(keyword, inside))?;
        let target = self.places.find(resource, reference)?;
        Ok(match target.dynamic.filter(|_| keyword != "$ref") {
            Some(name) => Leading::DynamicRef {
                name,
                otherwise: target.part,
            },
            None => Leading::Ref(target.part),
        })
    }

    /// The old keyword `dependencies`, which later dialects replace by two keywords.
    fn dependencies(
        &self,
        schema: &Value,
        plain: &mut Vec<Plain>,
        leading: &mut Vec<Leading>,
    ) -> Result<(), SchemaError> {
        let Some(inside) = schema.get("dependencies") else {
            return Ok(());
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
        if !required.is_empty() {
            plain.push(dependent_required(required));
        }
        if !schemas.is_empty() {
            leading.push(dependent_schemas(schemas));
        }
        Ok(())
    }

    /// The rule for `properties`, `patternProperties` and `additionalProperties`.
    fn properties(&mut self, schema: &Value) -> Result<Option<Leading>, SchemaError> {
        let named = schema.get("properties");
        let patterns = schema.get("patternProperties");
        let others = schema.get("additionalProperties");
        if named.or(patterns).or(others).is_none() {
            return Ok(None);
        }
        let named = named.map(|named| self.named("properties", named));
        let by_pattern = patterns.map(|patterns| self.named("patternProperties", patterns));
        let mut patterns = Vec::new();
        for (pattern, part) in by_pattern.transpose()?.unwrap_or_default() {
            patterns.push((self.pattern(&pattern)?, part));
        }
        Ok(Some(Leading::Properties(Properties {
            named: named.transpose()?.unwrap_or_default().into_iter().collect(),
            patterns,
            others: others.map(|others| self.part(others)).transpose()?,
        })))
    }

    /// The rule for the keywords that share the items of an array.
    fn items(&self, schema: &Value) -> Result<Option<Leading>, SchemaError> {
        let items = schema.get("items");
        let is_list = items.is_some_and(Value::is_array);
        let (keyword, first, rest) = match self.places.dialect.lists_items() {
            true if is_list => ("items", items, schema.get("additionalItems")),
            true => ("items", None, items),
            false if is_list => {
                let problem = "`items` is an array, which is called `prefixItems` in 2020-12; name an \
                               older dialect in `$schema` if you mean one";
                return Err(SchemaError::new(problem));
            }
            false => ("prefixItems", schema.get("prefixItems"), items),
        };
        if first.or(rest).is_none() {
            return Ok(None);
        }
        let first = first.map(|first| self.parts(keyword, first)).transpose()?;
        Ok(Some(Leading::Items {
            first: first.unwrap_or_default(),
            rest: rest.map(|rest| self.part(rest)).transpose()?,
        }))
    }

    fn part(&self, schema: &Value) -> Result<Part, SchemaError> {
        let problem = || format!("{} stands where a schema belongs", kind(schema));
        let nothing = || SchemaError::new(problem());
        self.places.part(schema).ok_or_else(nothing)
    }

    fn parts(&self, keyword: &str, inside: &Value) -> Result<Vec<Part>, SchemaError> {
        let all = inside.as_array().ok_or_else(|| bad(keyword, inside))?;
        all.iter().map(|schema| self.part(schema)).collect()
    }

    fn named(&self, keyword: &str, inside: &Value) -> Result<Vec<(String, Part)>, SchemaError> {
        let all = inside.as_object().ok_or_else(|| bad(keyword, inside))?;
        all.iter()
            .map(|(name, schema)| Ok((name.clone(), self.part(schema)?)))
            .collect()
    }

    fn pattern(&mut self, source: &str) -> Result<Pattern, SchemaError> {
        let pattern = Pattern::compile(source)?;
        self.patterns += pattern.size();
        if !pattern.is_supported() {
            self.unsupported.insert(source.to_owned());
        }
        match self.patterns > PATTERNS {
            true => Err(SchemaError::new("its patterns are too large")),
            false => Ok(pattern),
        }
    }

    /// The cost of comparing a value with this constant.
    fn constant(&mut self, value: &Value) -> Result<u64, SchemaError> {
        let cost = weight(value);
        self.constants = self.constants.saturating_add(cost);
        match self.constants > CONSTANTS {
            true => Err(SchemaError::new("its constants are too large")),
            false => Ok(cost),
        }
    }
}

fn dependent_required(all: Vec<(String, Names)>) -> Plain {
    let costs = all.iter().map(|(name, names)| name_cost(name) + names.cost);
    let cost = costs.sum();
    Plain::DependentRequired { all, cost }
}

fn dependent_schemas(all: Vec<(String, Part)>) -> Leading {
    let cost = all.iter().map(|(name, _)| name_cost(name)).sum();
    Leading::DependentSchemas { all, cost }
}

fn bad(keyword: &str, inside: &Value) -> SchemaError {
    SchemaError::new(format!("`{keyword}` cannot be {}", shown(inside)))
}

fn names(inside: &Value) -> Option<Names> {
    let names = inside.as_array()?.iter();
    let names = names.map(|name| name.as_str().map(str::to_owned));
    let names: Vec<String> = names.collect::<Option<_>>()?;
    let cost = names.iter().map(|name| name_cost(name)).sum();
    Some(Names { names, cost })
}

/// A non-negative integer, which may be written as `2.0`.
fn count(inside: &Value) -> Option<u64> {
    let float = inside.as_f64();
    let whole = || float.filter(|float| *float >= 0.0 && float.fract() == 0.0);
    inside
        .as_u64()
        .or_else(|| whole().map(|float| float as u64))
}
