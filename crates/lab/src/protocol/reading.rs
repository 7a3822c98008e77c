//! The definition of requests: the macro that lists them, and makes a type of each that is not defined elsewhere.

use crate::error::{ErrorName, LabError};

/// Lists the requests with their names, the variant of `Reply` that answers, and the words for it. One without a list
/// of fields is described elsewhere.
macro_rules! requests {
    ($(
        $(#[doc = $doc:literal])*
        $name:literal $request:ident $({ $($fields:tt)* })? -> $answer:ident $reply:literal;
    )*) => {
        $( request_type! { [$(#[doc = $doc])*] $request $({ $($fields)* })? } )*

        /// A request to a lab.
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
                    $( $name => Self::$request(Box::new(described::Described::read(fields)?)), )*
                    _ => return Err(unknown_request(&name)),
                };
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
        /// `{"do", "is", "fields", "reply", "answer"}`; `answer` is one of [`Reply::schemas`](super::Reply::schemas).
        #[must_use]
        pub fn reference() -> Value {
            let requests = [$(
                serde_json::json!({
                    "do": $name,
                    "is": concat!($($doc),*).trim(),
                    "fields": <$request as described::Described>::reference(),
                    "reply": $reply,
                    "answer": stringify!($answer),
                })
            ),*];
            Value::Array(requests.into())
        }
    };
}

/// Defines the type of a request whose fields stand in the list.
macro_rules! request_type {
    ([$($doc:tt)*] $request:ident { $($fields:tt)* }) => {
        $crate::described::described! { $($doc)* $request { $($fields)* } }
    };
    ([$($doc:tt)*] $request:ident) => {};
}

pub(super) use request_type;
pub(super) use requests;

pub(super) fn malformed(why: &str) -> LabError {
    LabError::new(ErrorName::MalformedRequest, why, "docs/reference/lab-protocol.md tells the form of a request")
}

pub(super) fn unknown_request(name: &str) -> LabError {
    let shown: String = name.chars().take(60).collect();
    LabError::new(
        ErrorName::UnknownRequest,
        format!("there is no request {shown:?}"),
        "see docs/reference/lab-protocol.md",
    )
}
