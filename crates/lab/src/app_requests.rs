//! Requests about apps, read from JSON: the same for apps in model hosts and for those on real sockets (docs/reference/lab-protocol.md).

use serde_json::Value;
use twinnet_apps::AppConfig;
use twinnet_units::Time;

use super::error::LabError;

/// A request to start an app, read and checked.
#[derive(Debug)]
pub struct AppStart {
    /// The host's name.
    pub host: String,
    /// What it is to do.
    pub config: AppConfig,
    /// When, on the lab's clock; `None`: now.
    pub at: Option<Time>,
    /// The seed of its random numbers; `None`: its own number.
    pub seed: Option<u64>,
}

impl AppStart {
    /// Reads `app.start`.
    ///
    /// # Errors
    /// `BadRequest` or `BadApp`, telling the field, what was given and what is allowed.
    pub fn read(body: &Value) -> Result<Self, LabError> {
        let host = body.get("host").and_then(Value::as_str).ok_or_else(|| bad("host", body, "a host's name"))?;
        let described = body.get("app").ok_or_else(|| bad("app", body, "an app's description"))?;
        let config: AppConfig = serde_json::from_value(described.clone())
            .map_err(|error| LabError::new("BadApp", format!("the app's description cannot be read: {error}"), ""))?;
        config.validate().map_err(|error| LabError::new("BadApp", error.to_string(), ""))?;
        let at = optional_number(body, "at_ps")?.map(Time::from_ps);
        Ok(Self { host: host.to_owned(), config, at, seed: optional_number(body, "seed")? })
    }
}

/// The refusal of a request that names the unknown host `name`; `known` are those that there are.
pub fn unknown_host<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> LabError {
    let known: Vec<&str> = known.take(20).collect();
    LabError::new("UnknownHost", format!("there is no host {name:?}"), format!("hosts are {}", known.join(", ")))
}

/// The app's number under `app`.
///
/// # Errors
/// `BadRequest`.
pub fn app_number(body: &Value) -> Result<u32, LabError> {
    let given = body.get("app").and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok());
    given.ok_or_else(|| bad("app", body, "an app's number"))
}

/// The apps' numbers under `apps`.
///
/// # Errors
/// `BadRequest`.
pub fn app_numbers(body: &Value) -> Result<Vec<u32>, LabError> {
    let wrong = || bad("apps", body, "an array of apps' numbers");
    let array = body.get("apps").and_then(Value::as_array).ok_or_else(wrong)?;
    array.iter().map(|value| value.as_u64().and_then(|number| u32::try_from(number).ok()).ok_or_else(wrong)).collect()
}

/// The apps that a request for reports names; `None`: all.
///
/// # Errors
/// `BadRequest`.
pub fn reported_apps(body: &Value) -> Result<Option<Vec<u32>>, LabError> {
    let given = |field| body.get(field).is_some_and(|value| !value.is_null());
    match (given("app"), given("apps")) {
        (true, _) => app_number(body).map(|app| Some(vec![app])),
        (false, true) => app_numbers(body).map(Some),
        (false, false) => Ok(None),
    }
}

/// A whole number under `field`, or none when it is absent or null.
///
/// # Errors
/// `BadRequest`.
pub fn optional_number(body: &Value, field: &str) -> Result<Option<u64>, LabError> {
    match body.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_u64().map(Some).ok_or_else(|| bad(field, body, "a whole number, or null")),
    }
}

fn bad(field: &str, body: &Value, allowed: &str) -> LabError {
    let given: String =
        body.get(field).map_or_else(|| "missing".to_owned(), |value| value.to_string().chars().take(60).collect());
    LabError::new("BadRequest", format!("{field} is {given}; allowed is {allowed}"), "")
}
