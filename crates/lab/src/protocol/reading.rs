//! How requests are defined and read: the macro that makes a type of each, and the reading of its fields.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::LabError;

/// Defines the requests: their names, fields and replies stand in one place each.
macro_rules! requests {
    ($(
        $(#[doc = $doc:literal])*
        $name:literal $request:ident {
            $( $(#[doc = $field_doc:literal])* $field:ident = $wire:literal : $kind:ty, )*
        } -> $reply:literal;
    )*) => {
        $(
            $(#[doc = $doc])*
            #[derive(Clone, Debug, PartialEq, Deserialize)]
            #[serde(deny_unknown_fields)]
            pub struct $request {
                $( $(#[doc = $field_doc])* #[serde(rename = $wire)] pub $field: $kind, )*
            }
        )*

        /// What a lab is asked.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Request {
            $( $(#[doc = $doc])* $request(Box<$request>), )*
        }

        impl Request {
            /// Reads a request. `"id"` is its sender's and is passed over.
            ///
            /// # Errors
            /// `MalformedRequest` for what is no request at all, `UnknownRequest`, and for a field that lacks, is
            /// unknown or cannot be read `BadRequest` or the name of what the field describes, such as `BadApp` and
            /// `BadQueue`.
            pub fn read(body: Value) -> Result<Self, LabError> {
                let Value::Object(mut fields) = body else {
                    return Err(malformed("a request is a JSON object"));
                };
                fields.remove("id");
                let Some(Value::String(name)) = fields.remove("do") else {
                    return Err(malformed("the request has no \"do\""));
                };
                let fields = &mut Fields { request: &name, fields };
                let request = match name.as_str() {
                    $( $name => {
                        $( let $field = fields.take($wire)?; )*
                        Self::$request(Box::new($request { $($field),* }))
                    } )*
                    _ => return Err(unknown_request(&name)),
                };
                fields.end(&[$( ($name, &[$($wire),*]) ),*])?;
                request.check()?;
                Ok(request)
            }

            /// The name under `"do"`.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self {
                    $( Self::$request(_) => $name, )*
                }
            }
        }

        /// All requests with their fields and replies, for the reference page: a JSON array of
        /// `{"do", "is", "fields", "reply"}`.
        #[must_use]
        pub fn reference() -> Value {
            let requests = [$(
                serde_json::json!({
                    "do": $name,
                    "is": concat!($($doc),*).trim(),
                    "fields": [$( {
                        "name": $wire,
                        "type": type_words(stringify!($kind)),
                        "is": concat!($($field_doc),*).trim(),
                    } ),*],
                    "reply": $reply,
                })
            ),*];
            Value::Array(requests.into())
        }
    };
}

pub(super) use requests;

/// The fields of a request that were not read yet.
pub(super) struct Fields<'a> {
    pub(super) request: &'a str,
    pub(super) fields: Map<String, Value>,
}

impl Fields<'_> {
    pub(super) fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, LabError> {
        let given = self.fields.remove(name);
        let lacks = given.is_none();
        let value = given.unwrap_or(Value::Null);
        serde_json::from_value(value).map_err(|error| {
            let why = if lacks { "it is needed and was not given".to_owned() } else { error.to_string() };
            LabError::new(refusal_of(self.request, name), format!("{}: {name}: {why}", self.request), REMEDY)
        })
    }

    /// Refuses what is left.
    pub(super) fn end(&self, known: &[(&str, &[&str])]) -> Result<(), LabError> {
        let Some(name) = self.fields.keys().next() else { return Ok(()) };
        let known = known.iter().find(|(request, _)| *request == self.request).map_or(&[][..], |(_, fields)| fields);
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let message = format!("{}: there is no field {name:?}; there are {known}", self.request);
        Err(LabError::new("BadRequest", message, REMEDY))
    }
}

const REMEDY: &str = "docs/reference/lab-protocol.md tells the fields";

/// The name of the refusal of a field that cannot be read.
fn refusal_of(request: &str, field: &str) -> &'static str {
    match (request, field) {
        ("app.start", "app") => "BadApp",
        ("queues.set", "queue") => "BadQueue",
        ("link.set" | "schedule", "set") => "BadLink",
        ("capture.start", "limit_bytes" | "snap" | "direction" | "ring") | ("start", "options") => "InvalidOption",
        _ => "BadRequest",
    }
}

pub(super) fn malformed(why: &str) -> LabError {
    LabError::new("MalformedRequest", why, "docs/reference/lab-protocol.md tells the form of a request")
}

pub(super) fn unknown_request(name: &str) -> LabError {
    let shown: String = name.chars().take(60).collect();
    LabError::new("UnknownRequest", format!("there is no request {shown:?}"), "see docs/reference/lab-protocol.md")
}

/// The type of a field in the words of the reference page.
pub(super) fn type_words(kind: &str) -> String {
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
        "PortName" => "text or whole number",
        "PeerKind" => "`\"controller\"` or `\"tool\"`",
        "LinkWay" => "`\"ab\"`, `\"ba\"` or `\"both\"`",
        "CaptureWay" => "`\"in\"`, `\"out\"` or `\"both\"`",
        _ => "object",
    }
    .to_owned()
}
