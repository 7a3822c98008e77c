//! Refusals, as they are told to the user.

use serde::Serialize;
use twinnet_host::HostConfigError;

/// A refusal: a stable name, what was given and what is allowed, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{message}")]
pub struct LabError {
    /// Stable name, such as `UnknownHost`.
    pub name: String,
    /// The fault, with what was given and what is allowed.
    pub message: String,
    /// The remedy; empty when the message says all.
    pub remedy: String,
}

impl LabError {
    /// An error with a remedy.
    pub fn new(name: &str, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name: name.to_owned(), message: message.into(), remedy: remedy.into() }
    }
}

impl From<HostConfigError> for LabError {
    fn from(error: HostConfigError) -> Self {
        let message = error.to_string();
        match error {
            HostConfigError::TooManyInterfaces { .. } => {
                LabError::new("InvalidNetwork", message, "describe fewer interfaces")
            }
            HostConfigError::UnknownParameter { .. } => LabError::new(
                "UnknownParameter",
                message,
                "leave it out, or run the lab on the wall clock with real hosts",
            ),
            HostConfigError::BadParameter { .. } => {
                LabError::new("BadParameter", message, "give a value that is allowed")
            }
            HostConfigError::BadRoute { .. } => {
                LabError::new("BadRoute", message, "name a router that has an address in one of them")
            }
            HostConfigError::Processing { .. } => LabError::new("InvalidNetwork", message, "change it"),
        }
    }
}
