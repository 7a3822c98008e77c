//! Descriptions whose fields are defined once: their type, how they are read one by one, and the words of the
//! reference page.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::{ErrorName, LabError};

/// Defines a type of which each field is read by its name on the wire, and told with its type and meaning.
macro_rules! described {
    ($(#[doc = $doc:literal])* $name:ident {
        $( $(#[doc = $field_doc:literal])* $field:ident = $wire:literal : $kind:ty, )*
    }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $( $(#[doc = $field_doc])* #[serde(rename = $wire)] pub $field: $kind, )*
        }

        impl $crate::described::Described for $name {
            const NAMES: &'static [&'static str] = &[$($wire),*];

            fn read(fields: &mut $crate::described::Fields<'_>) -> Result<Self, $crate::error::LabError> {
                $( let $field = fields.take($wire)?; )*
                fields.end(Self::NAMES)?;
                Ok(Self { $($field),* })
            }

            fn reference() -> serde_json::Value {
                serde_json::json!([$( {
                    "name": $wire,
                    "type": $crate::described::type_words(stringify!($kind)),
                    "is": concat!($($field_doc),*).trim(),
                } ),*])
            }
        }
    };
}

pub(crate) use described;

/// A type that [`described!`] defines.
pub(crate) trait Described: Sized {
    /// The names of its fields.
    const NAMES: &'static [&'static str];

    /// Reads it from all of `fields`.
    fn read(fields: &mut Fields<'_>) -> Result<Self, LabError>;

    /// Its fields for the reference page: a JSON array of `{"name", "type", "is"}`.
    fn reference() -> Value;
}

/// The fields of a request that were not read yet.
pub(crate) struct Fields<'a> {
    pub(crate) request: &'a str,
    pub(crate) fields: Map<String, Value>,
}

impl Fields<'_> {
    /// Reads the field `name`.
    pub(crate) fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, LabError> {
        let given = self.fields.remove(name);
        let lacks = given.is_none();
        let value = given.unwrap_or(Value::Null);
        serde_json::from_value(value).map_err(|error| {
            let why = if lacks { "it is needed and was not given".to_owned() } else { error.to_string() };
            LabError::new(refusal_of(self.request, name), format!("{}: {name}: {why}", self.request), REMEDY)
        })
    }

    /// Refuses what is left; `known` are the names of the fields that there are.
    pub(crate) fn end(&self, known: &[&str]) -> Result<(), LabError> {
        let Some(name) = self.fields.keys().next() else { return Ok(()) };
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let message = format!("{}: there is no field {name:?}; there are {known}", self.request);
        Err(LabError::new(ErrorName::BadRequest, message, REMEDY))
    }
}

const REMEDY: &str = "docs/reference/lab-protocol.md tells the fields";

/// The name of the refusal of a field that cannot be read.
fn refusal_of(request: &str, field: &str) -> ErrorName {
    match (request, field) {
        ("app.start", "app") => ErrorName::BadApp,
        ("queues.set", "queue") => ErrorName::BadQueue,
        ("link.set" | "schedule", "set") => ErrorName::BadLink,
        ("capture.start", "limit_bytes" | "snap" | "direction" | "ring") | ("start", "options") => {
            ErrorName::InvalidOption
        }
        _ => ErrorName::BadRequest,
    }
}

/// The type of a field in the words of the reference page.
pub(crate) fn type_words(kind: &str) -> String {
    let kind: String = kind.chars().filter(|letter| !letter.is_whitespace()).collect();
    if let Some(inner) = kind.strip_prefix("Option<").and_then(|rest| rest.strip_suffix('>')) {
        return format!("{} or null", type_words(inner));
    }
    if let Some(inner) = kind.strip_prefix("Vec<").and_then(|rest| rest.strip_suffix('>')) {
        return format!("array of {}", type_words(inner));
    }
    match kind.as_str() {
        "String" => "text",
        "bool" => "bool",
        "u32" | "u64" | "usize" | "i32" => "whole number",
        "Time" | "Duration" => "picoseconds",
        "BTreeMap<String,String>" => "object of text",
        "BTreeMap<String,u32>" => "object of whole numbers",
        "PortName" => "text or whole number",
        "PeerKind" => "`\"controller\"` or `\"tool\"`",
        "LinkWay" => "`\"ab\"`, `\"ba\"` or `\"both\"`",
        "CaptureWay" => "`\"in\"`, `\"out\"` or `\"both\"`",
        _ => "object",
    }
    .to_owned()
}
