//! Tool arguments that are repeated in headers: `x-mcp-header`, and `Mcp-Param-…`. Modern only.
//!
//! A tool's schema names the arguments that intermediaries may want to see. The client repeats
//! these in headers, and the server checks that headers and body agree.

use std::collections::HashMap;
use std::sync::Arc;

use belay_protocol::jsonrpc::RawJson;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};

use super::headers::{self, single};
use crate::sync::RwLock;

const ANNOTATION: &str = "x-mcp-header";

/// The arguments of one tool that are repeated in headers.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct ParamHeaders(Vec<ParamHeader>);

/// The most repeated arguments of a tool, since a request can only have so many headers.
const MOST: usize = 64;

/// The most tools with repeated arguments that a client remembers.
const MOST_TOOLS: usize = 10_000;

#[derive(Clone, PartialEq, Debug)]
struct ParamHeader {
    /// The path of the argument within the arguments.
    path: Vec<String>,
    header: HeaderName,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    Text,
    Integer,
    Boolean,
}

impl ParamHeaders {
    /// Reads the annotations of a schema. Any problem makes the whole tool unusable on HTTP.
    pub(crate) fn of(schema: &Map<String, Value>) -> Result<Self, String> {
        let mut param_headers = Self::default();
        param_headers.look(schema, &mut Vec::new(), true)?;
        Ok(param_headers)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Walks a schema and its subschemas. Only arguments that are reached through
    /// `properties` alone can be repeated.
    fn look(
        &mut self,
        schema: &Map<String, Value>,
        path: &mut Vec<String>,
        reached: bool,
    ) -> Result<(), String> {
        if let Some(name) = schema.get(ANNOTATION) {
            match reached && !path.is_empty() {
                true => self.add(name, schema, path)?,
                false => return Err(format!("`{ANNOTATION}` stands where nothing can be read")),
            }
        }
        for (keyword, value) in schema {
            match (keyword.as_str(), value) {
                ("properties", Value::Object(fields)) => {
                    for (name, field) in fields {
                        path.push(name.clone());
                        self.look_at(field, path, reached)?;
                        path.pop();
                    }
                }
                // These contain values, not schemas.
                ("const" | "enum" | "default" | "examples" | "required", _) => {}
                // These map names to schemas.
                (
                    "$defs" | "definitions" | "patternProperties" | "dependentSchemas",
                    Value::Object(schemas),
                ) => {
                    for schema in schemas.values() {
                        self.look_at(schema, path, false)?;
                    }
                }
                (_, value) => self.look_at(value, path, false)?,
            }
        }
        Ok(())
    }

    fn look_at(
        &mut self,
        value: &Value,
        path: &mut Vec<String>,
        reached: bool,
    ) -> Result<(), String> {
        match value {
            Value::Object(schema) => self.look(schema, path, reached),
            Value::Array(values) => values
                .iter()
                .try_for_each(|value| self.look_at(value, path, false)),
            _ => Ok(()),
        }
    }

    fn add(
        &mut self,
        name: &Value,
        schema: &Map<String, Value>,
        path: &[String],
    ) -> Result<(), String> {
        let argument = path.join(".");
        let name = name.as_str().unwrap_or_default();
        let header = format!("{}{}", headers::PARAM_PREFIX, name.to_ascii_lowercase());
        let header: Option<HeaderName> = header.parse().ok();
        let Some(header) = header.filter(|_| !name.is_empty()) else {
            return Err(format!(
                "`{argument}`: {name:?} cannot be a part of a header's name"
            ));
        };
        if self.0.len() >= MOST {
            return Err(format!("more than {MOST} arguments in headers"));
        }
        if self.0.iter().any(|known| known.header == header) {
            return Err(format!("`{argument}`: {name:?} stands there twice"));
        }
        let Some(kind) = kind(schema.get("type")) else {
            let kinds = "strings, integers and booleans";
            return Err(format!("`{argument}`: only {kinds} can stand in a header"));
        };
        let path = path.to_vec();
        self.0.push(ParamHeader { path, header, kind });
        Ok(())
    }

    /// The headers of a call.
    pub(crate) fn headers(&self, arguments: Option<&RawJson>) -> Vec<(HeaderName, HeaderValue)> {
        let arguments = values(arguments);
        let said = self.0.iter().filter_map(|mirror| {
            let text = mirror.kind.write(&mirror.value(&arguments)?)?;
            Some((mirror.header.clone(), headers::encode(&text)))
        });
        said.collect()
    }

    /// Whether the headers agree with the arguments.
    pub(crate) fn check(
        &self,
        headers: &HeaderMap,
        arguments: Option<&RawJson>,
    ) -> Result<(), String> {
        if self.is_empty() {
            return Ok(());
        }
        let arguments = values(arguments);
        let mut mirrors = self.0.iter();
        mirrors.try_for_each(|mirror| mirror.check(headers, &arguments))
    }
}

fn values(arguments: Option<&RawJson>) -> Value {
    let arguments = arguments.and_then(|arguments| arguments.decode().ok());
    arguments.unwrap_or_default()
}

/// The kind of an argument, from its type. `null` is allowed besides, for a missing one.
fn kind(types: Option<&Value>) -> Option<Kind> {
    let only = match types? {
        Value::String(only) => only.as_str(),
        Value::Array(types) => {
            let mut named = types.iter().filter(|one| *one != "null");
            let only = named.next()?.as_str()?;
            named.next().is_none().then_some(only)?
        }
        _ => return None,
    };
    match only {
        "string" => Some(Kind::Text),
        "integer" => Some(Kind::Integer),
        "boolean" => Some(Kind::Boolean),
        _ => None,
    }
}

impl Kind {
    /// Writes a value for a header, or returns `None` if it is of another kind.
    fn write(self, value: &Value) -> Option<String> {
        match (self, value) {
            (Self::Text, Value::String(text)) => Some(text.clone()),
            (Self::Integer, Value::Number(number)) => whole(number).map(|it| it.to_string()),
            (Self::Boolean, Value::Bool(value)) => Some(value.to_string()),
            _ => None,
        }
    }

    fn is_said(self, said: &str, value: &Value) -> bool {
        match (self, value) {
            // 42.0 equals 42.
            (Self::Integer, Value::Number(number)) => {
                let said = said.parse().ok().and_then(|said| whole(&said));
                said.is_some() && said == whole(number)
            }
            _ => self.write(value).as_deref() == Some(said),
        }
    }
}

/// An integer that every peer can represent: some have only 53 bits.
fn whole(number: &serde_json::Number) -> Option<i64> {
    const MOST: i64 = (1 << 53) - 1;
    let float = || number.as_f64().filter(|float| float.fract() == 0.0);
    let whole = number
        .as_i64()
        .or_else(|| float().map(|float| float as i64));
    whole.filter(|whole| (-MOST..=MOST).contains(whole))
}

impl ParamHeader {
    /// The argument, if present, found as a decoder of the arguments finds it.
    fn value(&self, arguments: &Value) -> Option<Value> {
        let mut value = arguments;
        for step in &self.path {
            value = value.get(step)?;
        }
        Some(value.clone()).filter(|value| !value.is_null())
    }

    fn check(&self, headers: &HeaderMap, arguments: &Value) -> Result<(), String> {
        let name = &self.header;
        let value = self.value(arguments);
        match (single(headers, name), value) {
            (Ok(None), None) => Ok(()),
            (Ok(Some(said)), Some(value)) => match headers::decode(said) {
                Some(said) if self.kind.is_said(&said, &value) => Ok(()),
                Some(said) => Err(format!(
                    "`{name}` is {said:?}, and in the body it is {value}"
                )),
                None => Err(format!("`{name}` is not valid base64")),
            },
            (Ok(None), Some(value)) if self.kind.write(&value).is_none() => Err(format!(
                "`{name}` cannot say {value}: headers have texts, booleans and integers of 53 bits"
            )),
            (Ok(None), Some(value)) => Err(format!(
                "`{name}` is missing; it must be {value}, as in the body"
            )),
            (Ok(Some(said)), None) => Err(format!(
                "`{name}` is {said:?}, and in the body it is missing"
            )),
            (Err(_), _) => Err(format!("`{name}` must be there once, as plain text")),
        }
    }
}

/// What a client knows of a server's tools.
#[derive(Clone, Default, Debug)]
pub(crate) struct KnownTools(Arc<RwLock<HashMap<String, Arc<ParamHeaders>>>>);

impl KnownTools {
    /// Learns a tool. Returns false if the tool must not be used.
    pub(crate) fn learn(&self, name: &str, schema: &Map<String, Value>) -> bool {
        let param_headers = ParamHeaders::of(schema);
        let mut known = self.0.write();
        match param_headers {
            Ok(param_headers) if param_headers.is_empty() => {
                known.remove(name);
                true
            }
            Ok(_) if known.len() >= MOST_TOOLS && !known.contains_key(name) => {
                tracing::warn!(tool = name, "a tool was left out: these are too many");
                false
            }
            Ok(param_headers) => {
                known.insert(name.to_owned(), Arc::new(param_headers));
                true
            }
            Err(problem) => {
                known.remove(name);
                tracing::warn!(
                    tool = name,
                    problem,
                    "a tool was left out: its headers are wrong"
                );
                false
            }
        }
    }

    /// The headers of a call with these parameters, if its tool is known.
    pub(crate) fn headers(&self, params: &RawJson) -> Vec<(HeaderName, HeaderValue)> {
        // Most servers have no such tools.
        if self.0.read().is_empty() {
            return Vec::new();
        }
        let [name, arguments] = params.fields(["name", "arguments"]);
        let name = name.as_ref().and_then(RawJson::as_text);
        let known = self.0.read();
        let param_headers = name.and_then(|name| known.get(&*name).cloned());
        drop(known);
        param_headers.map_or_else(Vec::new, |param_headers| {
            param_headers.headers(arguments.as_ref())
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(schema: Value) -> Result<ParamHeaders, String> {
        ParamHeaders::of(schema.as_object().unwrap())
    }

    fn field(annotated: Value) -> Value {
        json!({ "type": "object", "properties": { "a": annotated } })
    }

    #[test]
    fn what_can_be_repeated_and_what_cannot() {
        for (annotated, problem) in [
            (json!({ "type": "string", "x-mcp-header": "Region" }), None),
            (
                json!({ "type": ["integer", "null"], "x-mcp-header": "N" }),
                None,
            ),
            (
                json!({ "type": "boolean", "x-mcp-header": "a!#$%&'*+-.^_`|~0" }),
                None,
            ),
            (
                json!({ "type": "string", "default": { "x-mcp-header": 7 } }),
                None,
            ),
            (
                json!({ "type": "string", "x-mcp-header": "" }),
                Some("header's name"),
            ),
            (
                json!({ "type": "string", "x-mcp-header": 7 }),
                Some("header's name"),
            ),
            (
                json!({ "type": "string", "x-mcp-header": "a b" }),
                Some("header's name"),
            ),
            (
                json!({ "type": "string", "x-mcp-header": "a:b" }),
                Some("header's name"),
            ),
            (
                json!({ "type": "string", "x-mcp-header": "é" }),
                Some("header's name"),
            ),
            (
                json!({ "type": "string", "x-mcp-header": "a\n" }),
                Some("header's name"),
            ),
            (
                json!({ "type": "number", "x-mcp-header": "N" }),
                Some("can stand in a header"),
            ),
            (
                json!({ "type": "object", "x-mcp-header": "N" }),
                Some("can stand in a header"),
            ),
            (
                json!({ "type": "array", "x-mcp-header": "N" }),
                Some("can stand in a header"),
            ),
            (
                json!({ "type": "null", "x-mcp-header": "N" }),
                Some("can stand in a header"),
            ),
            (
                json!({ "x-mcp-header": "N" }),
                Some("can stand in a header"),
            ),
            (
                json!({ "items": { "type": "string", "x-mcp-header": "N" } }),
                Some("nothing can be read"),
            ),
            (
                json!({ "anyOf": [{ "type": "string", "x-mcp-header": "N" }] }),
                Some("nothing can be read"),
            ),
            (
                json!({ "allOf": [{ "properties": { "b": { "type": "string", "x-mcp-header": "N" } } }] }),
                Some("nothing can be read"),
            ),
        ] {
            let read = read(field(annotated.clone()));
            match problem {
                None => assert!(read.is_ok(), "{annotated}: {read:?}"),
                Some(problem) => assert!(read.unwrap_err().contains(problem), "{annotated}"),
            }
        }
        assert!(read(json!({ "x-mcp-header": "N", "type": "string" })).is_err());
        let defined = json!({ "$defs": { "a": { "type": "string", "x-mcp-header": "N" } } });
        assert!(read(defined).is_err());
        let twice = json!({ "properties": {
            "a": { "type": "string", "x-mcp-header": "N" },
            "b": { "type": "string", "x-mcp-header": "n" }
        }});
        assert!(read(twice).unwrap_err().contains("twice"));
        // A property with that name is not an annotation.
        assert!(read(json!({ "properties": { "x-mcp-header": { "type": "string" } } })).is_ok());
    }

    fn tool() -> ParamHeaders {
        read(json!({ "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "in": { "type": "object", "properties": {
                "count": { "type": "integer", "x-mcp-header": "Count" },
                "loud": { "type": "boolean", "x-mcp-header": "Loud" }
            }}
        }}))
        .unwrap()
    }

    fn raw(value: &Value) -> RawJson {
        RawJson::encode(value).unwrap()
    }

    #[test]
    fn what_is_said_in_headers_is_understood() {
        for arguments in [
            json!({}),
            json!({ "region": "us-west1", "in": { "count": -42, "loud": true } }),
            json!({ "region": " é\n", "in": { "count": 0 } }),
            json!({ "region": "", "in": {} }),
            json!({ "region": null, "in": { "loud": false } }),
            json!({ "region": "=?base64?x?=", "in": 7 }),
            json!({ "in": { "count": 42.0 } }),
        ] {
            let arguments = raw(&arguments);
            let headers: HeaderMap = tool().headers(Some(&arguments)).into_iter().collect();
            let checked = tool().check(&headers, Some(&arguments));
            assert_eq!(checked, Ok(()), "{arguments:?} {headers:?}");
        }
        // As every server encodes it.
        let whole = raw(&json!({ "in": { "count": 42.0 } }));
        let headers: HeaderMap = tool().headers(Some(&whole)).into_iter().collect();
        assert_eq!(headers["mcp-param-count"], "42");
    }

    /// 2026-07-28, server/tools: some peers have only 53 bits.
    #[test]
    fn integers_that_others_cannot_read_are_not_said() {
        for (count, good) in [
            ((1_u64 << 53) - 1, true),
            (1 << 53, false),
            (u64::MAX, false),
        ] {
            let arguments = raw(&json!({ "in": { "count": count } }));
            let headers: HeaderMap = tool().headers(Some(&arguments)).into_iter().collect();
            assert_eq!(headers.contains_key("mcp-param-count"), good, "{count}");
            let checked = tool().check(&headers, Some(&arguments));
            assert_eq!(checked.is_ok(), good, "{count}: {checked:?}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let check = |arguments: Value, headers: &[(&'static str, &'static str)]| {
            let headers = headers.iter().map(|(name, value)| {
                let name = HeaderName::from_static(name);
                (name, HeaderValue::from_static(value))
            });
            let headers: HeaderMap = headers.collect();
            tool().check(&headers, Some(&raw(&arguments)))
        };
        let region = json!({ "region": "Hello" });
        for value in ["Hello", "=?base64?SGVsbG8=?="] {
            assert!(check(region.clone(), &[("mcp-param-region", value)]).is_ok());
        }
        for value in [
            "hello",
            "=?base64?SGVsbG8?=",
            "=?base64?SGVs*G8=?=",
            "SGVsbG8=",
        ] {
            assert!(check(region.clone(), &[("mcp-param-region", value)]).is_err());
        }
        assert!(check(region, &[]).is_err());
        assert!(check(json!({ "region": ["Hello"] }), &[]).is_err());
        // Decoders take the last one.
        let twice = RawJson::parse(r#"{"region":"eu","region":"us"}"#).unwrap();
        for (said, good) in [("eu", false), ("us", true)] {
            let said = HeaderValue::from_static(said);
            let headers = [(HeaderName::from_static("mcp-param-region"), said)];
            let headers: HeaderMap = headers.into_iter().collect();
            assert_eq!(tool().check(&headers, Some(&twice)).is_ok(), good);
        }
        assert!(check(json!({}), &[("mcp-param-region", "x")]).is_err());
        let count = json!({ "in": { "count": 42 } });
        assert!(check(count.clone(), &[("mcp-param-count", "42.0")]).is_ok());
        assert!(check(count, &[("mcp-param-count", "43")]).is_err());
        let large = json!({ "in": { "count": u64::MAX } });
        assert!(check(large, &[("mcp-param-count", "18446744073709551614")]).is_err());
    }
}
