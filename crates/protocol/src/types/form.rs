//! Elicitation forms: a flat subset of JSON Schema that every client can display.

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::kinds::{of_kind, tagged};
use super::meta::UniqueKeys;
use super::{Amount, Named};

record! {
    /// The schema of a form: fields by name, in the order in which they are shown.
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
            /// The JSON Schema dialect.
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
    /// Adds a field that must be filled in.
    pub fn field(mut self, name: impl Into<String>, field: impl Into<Field>) -> Self {
        let name = name.into();
        let required = self.required.get_or_insert_default();
        if !required.contains(&name) {
            required.push(name.clone());
        }
        self.properties.insert(name, field.into());
        self
    }

    /// Adds an optional field.
    pub fn optional(mut self, name: impl Into<String>, field: impl Into<Field>) -> Self {
        self.properties.insert(name, field.into());
        self
    }

    /// Whether a field must be filled in.
    pub fn requires(&self, name: &str) -> bool {
        let required = self.required.as_ref();
        required.is_some_and(|required| required.iter().any(|known| known == name))
    }

    /// The initial values of the form: the defaults of its fields.
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

/// The constant `object`, which is the `type` of every form.
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

/// The constant `string`, which is the `type` of the options of a choice.
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
    /// A text.
    Text(TextField),
    /// A number.
    Number(NumberField),
    /// An integer.
    Integer(NumberField),
    /// A boolean.
    Boolean(BooleanField),
    /// A choice of exactly one option.
    Choice(ChoiceField),
    /// A choice of exactly one option. Each option has a display name.
    TitledChoice(TitledChoiceField),
    /// A choice of any number of options.
    Choices(ChoicesField),
    /// A choice of any number of options. Each option has a display name.
    TitledChoices(TitledChoicesField),
    /// An unknown kind of field, kept as it came.
    Other(Map<String, Value>),
}

impl Field {
    /// An integer field.
    pub fn integer() -> Self {
        Self::Integer(NumberField::new())
    }

    /// The initial value of the field.
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

    /// The display name.
    pub fn title(&self) -> Option<&str> {
        self.text_of(|field| field.0)
    }

    /// The description.
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

/// `type` alone does not tell the kinds of field apart.
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
    /// A text.
    pub struct TextField {
        optional {
            /// The display name.
            title: String = "title",
            /// The description.
            description: String = "description",
            /// The minimum length in characters.
            min_length: u64 = "minLength",
            /// The maximum length in characters.
            max_length: u64 = "maxLength",
            /// The format of the text.
            format: TextFormat = "format",
            /// The initial value.
            default: String = "default",
        }
    }
}

words! {
    /// The format of a text.
    pub enum TextFormat {
        /// An email address.
        Email = "email",
        /// A URI.
        Uri = "uri",
        /// A date.
        Date = "date",
        /// A date and time.
        DateTime = "date-time",
    }
}

record! {
    /// A number.
    pub struct NumberField {
        optional {
            /// The display name.
            title: String = "title",
            /// The description.
            description: String = "description",
            /// The minimum value.
            minimum: Amount = "minimum",
            /// The maximum value.
            maximum: Amount = "maximum",
            /// The initial value.
            default: Amount = "default",
        }
    }
}

record! {
    /// A boolean.
    pub struct BooleanField {
        optional {
            /// The display name.
            title: String = "title",
            /// The description.
            description: String = "description",
            /// The initial value.
            default: bool = "default",
        }
    }
}

record! {
    /// A choice of exactly one option.
    pub struct ChoiceField {
        required {
            /// The options.
            options: Vec<String> = "enum",
        }
        optional {
            /// The display name.
            title: String = "title",
            /// The description.
            description: String = "description",
            /// The display names of the options, in the deprecated form. [`TitledChoiceField`]
            /// replaces it.
            names: Vec<String> = "enumNames",
            /// The initial choice.
            default: String = "default",
        }
    }
}

impl ChoiceField {
    /// Creates a choice from these options.
    pub fn of<T: Into<String>>(options: impl IntoIterator<Item = T>) -> Self {
        let options: Vec<String> = options.into_iter().map(Into::into).collect();
        Self::new(options)
    }
}

record! {
    /// A choice of exactly one option. Each option has a display name.
    pub struct TitledChoiceField {
        required {
            /// The options.
            options: Vec<TitledOption> = "oneOf",
        }
        optional {
            /// The display name.
            title: String = "title",
            /// The description.
            description: String = "description",
            /// The initial choice.
            default: String = "default",
        }
    }
}

impl TitledChoiceField {
    /// Creates a choice from these values and display names.
    pub fn of<V: Into<String>, T: Into<String>>(options: impl IntoIterator<Item = (V, T)>) -> Self {
        Self::new(titled(options))
    }
}

record! {
    /// A choice of any number of options.
    pub struct ChoicesField {
        required {
            /// The options.
            items: Options = "items",
        }
        optional {
            /// The display name.
            title: String = "title",
            /// The description.
            description: String = "description",
            /// The minimum number of choices.
            min_items: u64 = "minItems",
            /// The maximum number of choices.
            max_items: u64 = "maxItems",
            /// The initial choice.
            default: Vec<String> = "default",
        }
    }
}

impl ChoicesField {
    /// Creates a choice from these options.
    pub fn of<T: Into<String>>(options: impl IntoIterator<Item = T>) -> Self {
        let options: Vec<String> = options.into_iter().map(Into::into).collect();
        Self::new(Options::new(options))
    }
}

record! {
    /// The options of a [`ChoicesField`].
    pub struct Options {
        required {
            /// The options.
            options: Vec<String> = "enum",
        }
        default {
            /// Always `string`.
            kind: StringType = "type",
        }
    }
}

record! {
    /// A choice of any number of options. Each option has a display name.
    pub struct TitledChoicesField {
        required {
            /// The options.
            items: TitledOptions = "items",
        }
        optional {
            /// The display name.
            title: String = "title",
            /// The description.
            description: String = "description",
            /// The minimum number of choices.
            min_items: u64 = "minItems",
            /// The maximum number of choices.
            max_items: u64 = "maxItems",
            /// The initial choice.
            default: Vec<String> = "default",
        }
    }
}

impl TitledChoicesField {
    /// Creates a choice from these values and display names.
    pub fn of<V: Into<String>, T: Into<String>>(options: impl IntoIterator<Item = (V, T)>) -> Self {
        Self::new(TitledOptions::new(titled(options)))
    }
}

record! {
    /// The options of a [`TitledChoicesField`].
    pub struct TitledOptions {
        required {
            /// The options.
            options: Vec<TitledOption> = "anyOf",
        }
    }
}

record! {
    /// An option of a choice.
    pub struct TitledOption {
        required {
            /// The value that is sent.
            value: String = "const",
            /// The display name.
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
