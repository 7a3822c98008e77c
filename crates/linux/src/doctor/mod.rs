//! What this machine can and cannot do.
use serde_json::{json, Value};

/// Examines.
#[must_use]
pub fn examine() -> Value {
    json!([])
}
