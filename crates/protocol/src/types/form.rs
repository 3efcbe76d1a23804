//! Forms: a small part of JSON Schema, flat, so that anybody can show it.

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::kinds::{of_kind, tagged};
use super::meta::UniqueKeys;
use super::{Amount, Named};

record! {
    /// What can be filled in: fields by name, in the order in which they are shown.
    ///
    /// ```
    /// use belay_protocol::types::{ChoiceField, FormSchema, NumberField, TextField};
    ///
    /// let mut age = NumberField::new();
    /// age.minimum = Some(18.0.into());
    /// let form = FormSchema::new()
    ///     .field("name", TextField::new())
    ///     .optional("age", age)
    ///     .field("size", ChoiceField::of(["small", "large"]));
    /// assert_eq!(form.required, Some(vec!["name".to_owned(), "size".to_owned()]));
    /// ```
    pub struct FormSchema {
        optional {
            /// The dialect.
            dialect: String = "$schema",
            /// The fields that must be filled in.
            required: Vec<String> = "required",
        }
        default {
            /// Always `object`.
            kind: ObjectType = "type",
            /// The fields.
            properties: Named<Field> = "properties",
        }
    }
}

impl FormSchema {
    /// With a field that must be filled in.
    pub fn field(mut self, name: impl Into<String>, field: impl Into<Field>) -> Self {
        let name = name.into();
        let required = self.required.get_or_insert_default();
        if !required.contains(&name) {
            required.push(name.clone());
        }
        self.properties.insert(name, field.into());
        self
    }

    /// With a field that may be left out.
    pub fn optional(mut self, name: impl Into<String>, field: impl Into<Field>) -> Self {
        self.properties.insert(name, field.into());
        self
    }

    /// Whether a field must be filled in.
    pub fn requires(&self, name: &str) -> bool {
        let required = self.required.as_ref();
        required.is_some_and(|required| required.iter().any(|known| known == name))
    }

    /// What the form holds before anybody touches it: the defaults of its fields.
    pub fn defaults(&self) -> Map<String, Value> {
        let filled = self.properties.iter();
        filled
            .filter_map(|(name, field)| Some((name.to_owned(), field.default()?)))
            .collect()
    }
}

impl Default for FormSchema {
    fn default() -> Self {
        Self::new()
    }
}

/// The word `object`, which every form says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ObjectType;

impl Serialize for ObjectType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("object")
    }
}

impl<'de> Deserialize<'de> for ObjectType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match &*String::deserialize(deserializer)? {
            "object" => Ok(Self),
            other => Err(D::Error::custom(format!("{other:?}, expected \"object\""))),
        }
    }
}

/// The word `string`, which the options of a choice say of themselves.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct StringType;

impl Serialize for StringType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("string")
    }
}

impl<'de> Deserialize<'de> for StringType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match &*String::deserialize(deserializer)? {
            "string" => Ok(Self),
            other => Err(D::Error::custom(format!("{other:?}, expected \"string\""))),
        }
    }
}

/// One field of a form.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Field {
    /// Text.
    Text(TextField),
    /// A number.
    Number(NumberField),
    /// A number without a fraction.
    Integer(NumberField),
    /// Yes or no.
    Boolean(BooleanField),
    /// One of several.
    Choice(ChoiceField),
    /// One of several, which have titles.
    TitledChoice(TitledChoiceField),
    /// Any of several.
    Choices(ChoicesField),
    /// Any of several, which have titles.
    TitledChoices(TitledChoicesField),
    /// Something that this version of Belay does not know, kept as it came.
    Other(Map<String, Value>),
}

impl Field {
    /// A number without a fraction.
    pub fn integer() -> Self {
        Self::Integer(NumberField::new())
    }

    /// What the field holds before anybody touches it.
    pub fn default(&self) -> Option<Value> {
        let list = |values: &Vec<String>| Value::from(values.clone());
        match self {
            Self::Text(field) => field.default.clone().map(Value::from),
            Self::Number(field) | Self::Integer(field) => serde_json::to_value(field.default?).ok(),
            Self::Boolean(field) => field.default.map(Value::from),
            Self::Choice(field) => field.default.clone().map(Value::from),
            Self::TitledChoice(field) => field.default.clone().map(Value::from),
            Self::Choices(field) => field.default.as_ref().map(list),
            Self::TitledChoices(field) => field.default.as_ref().map(list),
            Self::Other(field) => field.get("default").cloned(),
        }
    }

    /// What it is called for people.
    pub fn title(&self) -> Option<&str> {
        self.text_of(|field| field.0)
    }

    /// What it means.
    pub fn description(&self) -> Option<&str> {
        self.text_of(|field| field.1)
    }

    fn text_of<'a>(
        &'a self,
        which: impl FnOnce((Option<&'a str>, Option<&'a str>)) -> Option<&'a str>,
    ) -> Option<&'a str> {
        let (title, description) = match self {
            Self::Text(field) => (&field.title, &field.description),
            Self::Number(field) | Self::Integer(field) => (&field.title, &field.description),
            Self::Boolean(field) => (&field.title, &field.description),
            Self::Choice(field) => (&field.title, &field.description),
            Self::TitledChoice(field) => (&field.title, &field.description),
            Self::Choices(field) => (&field.title, &field.description),
            Self::TitledChoices(field) => (&field.title, &field.description),
            Self::Other(field) => {
                let text = |key: &str| field.get(key).and_then(Value::as_str);
                return which((text("title"), text("description")));
            }
        };
        which((title.as_deref(), description.as_deref()))
    }
}

/// What it is cannot be told by `type` alone.
impl<'de> Deserialize<'de> for Field {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let map = deserializer.deserialize_map(UniqueKeys)?;
        let items = map.get("items").and_then(Value::as_object);
        let item = |key: &str| items.is_some_and(|items| items.contains_key(key));
        match map.get("type").and_then(Value::as_str) {
            Some("string") if map.contains_key("oneOf") => of_kind(map).map(Self::TitledChoice),
            Some("string") if map.contains_key("enum") => of_kind(map).map(Self::Choice),
            Some("string") => of_kind(map).map(Self::Text),
            Some("number") => of_kind(map).map(Self::Number),
            Some("integer") => of_kind(map).map(Self::Integer),
            Some("boolean") => of_kind(map).map(Self::Boolean),
            Some("array") if item("anyOf") => of_kind(map).map(Self::TitledChoices),
            Some("array") if item("enum") => of_kind(map).map(Self::Choices),
            _ => Ok(Self::Other(map)),
        }
    }
}

impl Serialize for Field {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(field) => tagged(serializer, "string", field),
            Self::Number(field) => tagged(serializer, "number", field),
            Self::Integer(field) => tagged(serializer, "integer", field),
            Self::Boolean(field) => tagged(serializer, "boolean", field),
            Self::Choice(field) => tagged(serializer, "string", field),
            Self::TitledChoice(field) => tagged(serializer, "string", field),
            Self::Choices(field) => tagged(serializer, "array", field),
            Self::TitledChoices(field) => tagged(serializer, "array", field),
            Self::Other(map) => map.serialize(serializer),
        }
    }
}

macro_rules! fields {
    ($($record:ident => $variant:ident,)*) => {
        $(impl From<$record> for Field {
            fn from(field: $record) -> Self {
                Self::$variant(field)
            }
        })*
    };
}

fields! {
    TextField => Text,
    NumberField => Number,
    BooleanField => Boolean,
    ChoiceField => Choice,
    TitledChoiceField => TitledChoice,
    ChoicesField => Choices,
    TitledChoicesField => TitledChoices,
}

record! {
    /// Text.
    pub struct TextField {
        optional {
            /// What it is called for people.
            title: String = "title",
            /// What it means.
            description: String = "description",
            /// How short it may be.
            min_length: u64 = "minLength",
            /// How long it may be.
            max_length: u64 = "maxLength",
            /// What kind of text.
            format: TextFormat = "format",
            /// What it holds at first.
            default: String = "default",
        }
    }
}

words! {
    /// What kind of text.
    pub enum TextFormat {
        /// An address for letters.
        Email = "email",
        /// A URI.
        Uri = "uri",
        /// A day.
        Date = "date",
        /// A moment.
        DateTime = "date-time",
    }
}

record! {
    /// A number.
    pub struct NumberField {
        optional {
            /// What it is called for people.
            title: String = "title",
            /// What it means.
            description: String = "description",
            /// How small it may be.
            minimum: Amount = "minimum",
            /// How large it may be.
            maximum: Amount = "maximum",
            /// What it holds at first.
            default: Amount = "default",
        }
    }
}

record! {
    /// Yes or no.
    pub struct BooleanField {
        optional {
            /// What it is called for people.
            title: String = "title",
            /// What it means.
            description: String = "description",
            /// What it holds at first.
            default: bool = "default",
        }
    }
}

record! {
    /// One of several.
    pub struct ChoiceField {
        required {
            /// What can be chosen.
            options: Vec<String> = "enum",
        }
        optional {
            /// What it is called for people.
            title: String = "title",
            /// What it means.
            description: String = "description",
            /// What the options are called for people, the old way. [`TitledChoiceField`] is the new
            /// one.
            names: Vec<String> = "enumNames",
            /// What is chosen at first.
            default: String = "default",
        }
    }
}

impl ChoiceField {
    /// One of these.
    pub fn of<T: Into<String>>(options: impl IntoIterator<Item = T>) -> Self {
        let options: Vec<String> = options.into_iter().map(Into::into).collect();
        Self::new(options)
    }
}

record! {
    /// One of several, which have titles.
    pub struct TitledChoiceField {
        required {
            /// What can be chosen.
            options: Vec<TitledOption> = "oneOf",
        }
        optional {
            /// What it is called for people.
            title: String = "title",
            /// What it means.
            description: String = "description",
            /// What is chosen at first.
            default: String = "default",
        }
    }
}

impl TitledChoiceField {
    /// One of these, each with its title.
    pub fn of<V: Into<String>, T: Into<String>>(options: impl IntoIterator<Item = (V, T)>) -> Self {
        Self::new(titled(options))
    }
}

record! {
    /// Any of several.
    pub struct ChoicesField {
        required {
            /// What can be chosen.
            items: Options = "items",
        }
        optional {
            /// What it is called for people.
            title: String = "title",
            /// What it means.
            description: String = "description",
            /// How few may be chosen.
            min_items: u64 = "minItems",
            /// How many may be chosen.
            max_items: u64 = "maxItems",
            /// What is chosen at first.
            default: Vec<String> = "default",
        }
    }
}

impl ChoicesField {
    /// Any of these.
    pub fn of<T: Into<String>>(options: impl IntoIterator<Item = T>) -> Self {
        let options: Vec<String> = options.into_iter().map(Into::into).collect();
        Self::new(Options::new(options))
    }
}

record! {
    /// What can be chosen.
    pub struct Options {
        required {
            /// What can be chosen.
            options: Vec<String> = "enum",
        }
        default {
            /// Always `string`.
            kind: StringType = "type",
        }
    }
}

record! {
    /// Any of several, which have titles.
    pub struct TitledChoicesField {
        required {
            /// What can be chosen.
            items: TitledOptions = "items",
        }
        optional {
            /// What it is called for people.
            title: String = "title",
            /// What it means.
            description: String = "description",
            /// How few may be chosen.
            min_items: u64 = "minItems",
            /// How many may be chosen.
            max_items: u64 = "maxItems",
            /// What is chosen at first.
            default: Vec<String> = "default",
        }
    }
}

impl TitledChoicesField {
    /// Any of these, each with its title.
    pub fn of<V: Into<String>, T: Into<String>>(options: impl IntoIterator<Item = (V, T)>) -> Self {
        Self::new(TitledOptions::new(titled(options)))
    }
}

record! {
    /// What can be chosen.
    pub struct TitledOptions {
        required {
            /// What can be chosen.
            options: Vec<TitledOption> = "anyOf",
        }
    }
}

record! {
    /// Something that can be chosen.
    pub struct TitledOption {
        required {
            /// What it is for programs.
            value: String = "const",
            /// What it is for people.
            title: String = "title",
        }
    }
}

fn titled<V: Into<String>, T: Into<String>>(
    options: impl IntoIterator<Item = (V, T)>,
) -> Vec<TitledOption> {
    let options = options.into_iter();
    options
        .map(|(value, title)| TitledOption::new(value, title))
        .collect()
}
