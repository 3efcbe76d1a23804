//! Finds the subschemas of a schema, their identifiers, their anchors, and the targets of
//! references.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::dialect::{Dialect, Holds};
use super::text::quoted;
use super::{DEPTH, PARTS, SchemaError};
use crate::percent::decoded;

/// The maximum length of an identifier in bytes.
const LONGEST: usize = 1000;
/// The maximum number of dynamic anchor names.
const NAMES: usize = 64;

/// The number of a subschema.
pub(super) type Part = usize;

/// All subschemas, in the order in which they were found.
pub(super) struct Places<'a> {
    pub(super) dialect: Dialect,
    parts: Vec<Place<'a>>,
    /// By the address of their value.
    known: HashMap<usize, Part>,
    resources: Vec<Resource<'a>>,
    bases: HashMap<String, usize>,
    /// The names of dynamic anchors.
    names: Vec<&'a str>,
}

#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) schema: &'a Value,
    /// The number of the resource that it belongs to.
    pub(super) resource: usize,
}

/// The root of the schema, or a subschema with its own identifier.
struct Resource<'a> {
    base: String,
    root: &'a Value,
    anchors: HashMap<&'a str, &'a Value>,
    dynamic: Vec<(usize, Part)>,
}

/// The target of a reference.
pub(super) struct Target {
    pub(super) part: Part,
    /// The dynamic anchor that the reference named, if it did.
    pub(super) dynamic: Option<usize>,
}

impl<'a> Places<'a> {
    pub(super) fn of(schema: &'a Value) -> Result<Self, SchemaError> {
        measure(schema, 0, &mut 0)?;
        let dialect = Dialect::of(schema)?;
        let mut places = Self {
            dialect,
            parts: Vec::new(),
            known: HashMap::new(),
            resources: Vec::new(),
            bases: HashMap::new(),
            names: Vec::new(),
        };
        let base = places.own_base(schema, "")?.unwrap_or_default();
        places.enter(base, schema)?;
        places.visit(schema, 0)?;
        Ok(places)
    }

    pub(super) fn get(&self, part: Part) -> Option<Place<'a>> {
        self.parts.get(part).copied()
    }

    /// The number of the subschema at this address, if there is a subschema.
    pub(super) fn part(&self, schema: &Value) -> Option<Part> {
        self.known.get(&address(schema)).copied()
    }

    /// The number of dynamic anchor names, and the dynamic anchors of each resource.
    pub(super) fn into_dynamic(self) -> (usize, Vec<Vec<(usize, Part)>>) {
        let resources = self.resources.into_iter();
        (
            self.names.len(),
            resources.map(|resource| resource.dynamic).collect(),
        )
    }

    /// Resolves `reference` from a resource.
    pub(super) fn find(&mut self, resource: usize, reference: &str) -> Result<Target, SchemaError> {
        if reference.len() > LONGEST {
            return Err(too_long(reference));
        }
        let (uri, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let resource = match uri {
            "" => resource,
            uri => {
                let absolute = joined(&self.resources[resource].base, uri);
                *self.bases.get(&absolute).ok_or_else(|| {
                    SchemaError::new(format!(
                        "{} leads elsewhere, and nothing is fetched",
                        quoted(reference)
                    ))
                })?
            }
        };
        let nothing = || {
            let reference = quoted(reference);
            SchemaError::new(format!("it refers to {reference}, which is not there"))
        };
        let fragment = decoded(fragment).ok_or_else(nothing)?;
        let from = &self.resources[resource];
        let found = match fragment.is_empty() || fragment.starts_with('/') {
            true => from.root.pointer(&fragment),
            false => from.anchors.get(&*fragment).copied(),
        };
        let found = found.ok_or_else(nothing)?;
        let part = self.visit(found, resource)?;
        let place = self.parts[part];
        let dynamic = self.resources[place.resource].dynamic.iter();
        let is_named = |name: usize| self.names[name] == fragment;
        let dynamic = dynamic
            .filter(|(name, at)| *at == part && is_named(*name))
            .map(|(name, _)| *name)
            .next();
        Ok(Target { part, dynamic })
    }

    /// Registers a subschema and all subschemas in it.
    fn visit(&mut self, schema: &'a Value, resource: usize) -> Result<Part, SchemaError> {
        if let Some(known) = self.part(schema) {
            return Ok(known);
        }
        let Some(members) = schema.as_object() else {
            if !schema.is_boolean() {
                let problem = format!("{} stands where a schema belongs", kind(schema));
                return Err(SchemaError::new(problem));
            }
            return Ok(self.take_in(schema, resource));
        };
        let resource = match self.own_base(schema, &self.resources[resource].base)? {
            Some(base) if !std::ptr::eq(self.resources[resource].root, schema) => {
                if members.contains_key("$schema") && Dialect::of(schema)? != self.dialect {
                    return Err(SchemaError::new("a part of it is in another dialect"));
                }
                self.enter(base, schema)?
            }
            _ => resource,
        };
        let part = self.take_in(schema, resource);
        self.anchors(members, schema, resource, part)?;
        for (keyword, inside) in members {
            let bad = || SchemaError::new(format!("`{keyword}` is {}", kind(inside)));
            match self.dialect.holds(keyword, inside) {
                None => {}
                Some(Holds::One) => _ = self.visit(inside, resource)?,
                Some(Holds::List) => {
                    for inside in inside.as_array().ok_or_else(bad)? {
                        self.visit(inside, resource)?;
                    }
                }
                Some(holds @ (Holds::Named | Holds::NamedOrNames)) => {
                    for inside in inside.as_object().ok_or_else(bad)?.values() {
                        if holds == Holds::Named || !inside.is_array() {
                            self.visit(inside, resource)?;
                        }
                    }
                }
            }
        }
        Ok(part)
    }

    fn take_in(&mut self, schema: &'a Value, resource: usize) -> Part {
        let part = self.parts.len();
        self.parts.push(Place { schema, resource });
        self.known.insert(address(schema), part);
        part
    }

    fn enter(&mut self, base: String, root: &'a Value) -> Result<usize, SchemaError> {
        let number = self.resources.len();
        if let Some(known) = self.bases.insert(base.clone(), number) {
            // Some generators repeat a type at every use, which is allowed if the copies are equal.
            if self.resources[known].root != root {
                let problem = format!("the identifier {} stands in it twice", quoted(&base));
                return Err(SchemaError::new(problem));
            }
            self.bases.insert(base, known);
            return Ok(known);
        }
        self.resources.push(Resource {
            base,
            root,
            anchors: HashMap::new(),
            dynamic: Vec::new(),
        });
        Ok(number)
    }

    /// The identifier of a subschema, if it has its own.
    fn own_base(&self, schema: &Value, base: &str) -> Result<Option<String>, SchemaError> {
        let Some(id) = schema.get(self.dialect.id()) else {
            return Ok(None);
        };
        if self.dialect.references_are_alone() && schema.get("$ref").is_some() {
            return Ok(None);
        }
        let id = id
            .as_str()
            .ok_or_else(|| SchemaError::new(format!("an identifier is {}", kind(id))))?;
        let (id, _) = id.split_once('#').unwrap_or((id, ""));
        if id.len() > LONGEST {
            return Err(too_long(id));
        }
        let base = (!id.is_empty()).then(|| joined(base, id));
        match base {
            Some(base) if base.len() > LONGEST => Err(too_long(&base)),
            base => Ok(base),
        }
    }

    fn anchors(
        &mut self,
        members: &'a Map<String, Value>,
        schema: &'a Value,
        resource: usize,
        part: Part,
    ) -> Result<(), SchemaError> {
        let text = |keyword: &str| {
            let value = members.get(keyword).filter(|_| self.dialect.knows(keyword));
            value.and_then(Value::as_str)
        };
        let of_old = text(self.dialect.id())
            .filter(|_| self.dialect.references_are_alone())
            .and_then(|id| id.strip_prefix('#'));
        let dynamic = text("$dynamicAnchor");
        // `$recursiveAnchor` only counts at the root of a resource.
        let recursive = members.get("$recursiveAnchor") == Some(&Value::Bool(true))
            && self.dialect.knows("$recursiveAnchor")
            && std::ptr::eq(self.resources[resource].root, schema);
        let fixed = [text("$anchor"), of_old, dynamic];
        let names = fixed.into_iter().flatten();
        let here = &mut self.resources[resource];
        for name in names.filter(|name| !name.is_empty()) {
            let before = here.anchors.insert(name, schema);
            if before.is_some_and(|before| before != schema) {
                let problem = format!("the anchor {} stands in it twice", quoted(name));
                return Err(SchemaError::new(problem));
            }
        }
        for name in dynamic.into_iter().chain(recursive.then_some("")) {
            let known = self.names.iter().position(|known| *known == name);
            let number = known.unwrap_or(self.names.len());
            if number == NAMES {
                let problem = format!("it has more than {NAMES} names of dynamic anchors");
                return Err(SchemaError::new(problem));
            }
            if known.is_none() {
                self.names.push(name);
            }
            here.dynamic.push((number, part));
        }
        Ok(())
    }
}

fn too_long(identifier: &str) -> SchemaError {
    SchemaError::new(format!("the identifier {} is too long", quoted(identifier)))
}

/// Checks the size and the depth of a schema.
fn measure(value: &Value, depth: usize, parts: &mut usize) -> Result<(), SchemaError> {
    *parts += 1;
    if *parts > PARTS {
        return Err(SchemaError::new(format!("it has more than {PARTS} parts")));
    }
    if depth > DEPTH {
        return Err(SchemaError::new(format!(
            "it is nested deeper than {DEPTH}"
        )));
    }
    match value {
        Value::Array(values) => values
            .iter()
            .try_for_each(|value| measure(value, depth + 1, parts)),
        Value::Object(members) => members
            .values()
            .try_for_each(|value| measure(value, depth + 1, parts)),
        _ => Ok(()),
    }
}

pub(super) fn address(value: &Value) -> usize {
    std::ptr::from_ref(value).addr()
}

/// The type of a value, for messages.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Resolves a reference against a base. A subset of RFC 3986 that is enough for identifiers.
fn joined(base: &str, reference: &str) -> String {
    let scheme = |uri: &str| {
        let (scheme, _) = uri.split_once(':')?;
        let plain = scheme
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter));
        let first = scheme.starts_with(|letter: char| letter.is_ascii_alphabetic());
        (plain && first).then_some(scheme.len())
    };
    let (base, _) = base.split_once('?').unwrap_or((base, ""));
    let Some(base_scheme) = scheme(base).filter(|_| scheme(reference).is_none()) else {
        // Without an absolute base, an identifier is used as it is.
        return reference.to_owned();
    };
    let after = &base[base_scheme + 1..];
    let authority = match after.strip_prefix("//") {
        Some(rest) => base_scheme + 3 + rest.find('/').unwrap_or(rest.len()),
        None => base_scheme + 1,
    };
    if reference.starts_with("//") {
        return format!("{}:{reference}", &base[..base_scheme]);
    }
    let path = &base[authority..];
    let directory = match path.rfind('/') {
        Some(last) => &path[..=last],
        // The base is only a host.
        None if path.is_empty() => "/",
        None => "",
    };
    let path = match reference.starts_with('/') {
        true => reference.to_owned(),
        false => format!("{directory}{reference}"),
    };
    let (root, path) = match path.strip_prefix('/') {
        Some(path) => ("/", path),
        None => ("", path.as_str()),
    };
    let mut steps: Vec<&str> = Vec::new();
    for step in path.split('/') {
        match step {
            "." => {}
            ".." => _ = steps.pop(),
            step => steps.push(step),
        }
    }
    format!("{}{root}{}", &base[..authority], steps.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_seen_from_their_base() {
        for (base, reference, expected) in [
            ("", "Node", "Node"),
            ("Tree", "Node", "Node"),
            ("http://a/b/c", "d", "http://a/b/d"),
            ("http://a/b/c", "/d", "http://a/d"),
            ("http://a/b/c", "//d/e", "http://d/e"),
            ("http://a/b/c", "../d/./e", "http://a/d/e"),
            ("http://a/b/c?x=/y", "d", "http://a/b/d"),
            ("http://a", "d", "http://a/d"),
            ("http://a/b/", "urn:x:y", "urn:x:y"),
            ("urn:uuid:1", "urn:uuid:2", "urn:uuid:2"),
            ("urn:a/1", "y", "urn:a/y"),
            ("urn:a", "y", "urn:y"),
        ] {
            assert_eq!(joined(base, reference), expected, "{base} {reference}");
        }
    }
}
