//! Requests about apps, read from JSON into what the agent's thread is to do.

use serde_json::Value;
use twinnet_apps::AppConfig;
use twinnet_units::Time;

use crate::service::{LabError, Reply};

/// What the thread is told.
pub enum Command {
    /// Start an app.
    Start {
        /// The host's place.
        host: usize,
        /// The app.
        config: AppConfig,
        /// When; `None`: now.
        at: Option<Time>,
        /// The seed of its random numbers; `None`: its own number.
        seed: Option<u64>,
        /// Where its number goes.
        reply: Reply,
    },
    /// Ask an app to end.
    Stop {
        /// Its number.
        app: u32,
        /// Where the answer goes.
        reply: Reply,
    },
    /// Tell what apps counted.
    Report {
        /// Their numbers; `None`: all.
        apps: Option<Vec<u32>>,
        /// Where the reports go.
        reply: Reply,
    },
    /// Answer when apps have finished.
    Wait {
        /// Their numbers.
        apps: Vec<u32>,
        /// When to answer at the latest; `None`: never.
        until: Option<Time>,
        /// Where the answer goes.
        reply: Reply,
    },
    /// End the thread.
    End,
}

/// Reads a request. When it is refused the reply comes back with the reason.
pub fn read(body: &Value, reply: Reply, hosts: &[String]) -> Result<Command, (Reply, LabError)> {
    let parsed = match body.get("do").and_then(Value::as_str) {
        Some("app.start") => return start(body, reply, hosts),
        Some("app.stop") => number(body, "app").map(Parsed::Stop),
        Some("app.report") => reported(body).map(Parsed::Report),
        Some("app.wait") => {
            numbers(body).and_then(|apps| Ok(Parsed::Wait(apps, optional(body, "until_ps")?.map(Time::from_ps))))
        }
        other => Err(LabError::new(
            "UnknownRequest",
            format!(
                "{} is no request about apps",
                other.map_or_else(|| "nothing".to_owned(), |name| format!("{name:?}"))
            ),
            "use app.start, app.stop, app.report or app.wait",
        )),
    };
    match parsed {
        Ok(Parsed::Stop(app)) => Ok(Command::Stop { app, reply }),
        Ok(Parsed::Report(apps)) => Ok(Command::Report { apps, reply }),
        Ok(Parsed::Wait(apps, until)) => Ok(Command::Wait { apps, until, reply }),
        Err(error) => Err((reply, error)),
    }
}

enum Parsed {
    Stop(u32),
    Report(Option<Vec<u32>>),
    Wait(Vec<u32>, Option<Time>),
}

fn start(body: &Value, reply: Reply, hosts: &[String]) -> Result<Command, (Reply, LabError)> {
    let parsed = (|| {
        let name = body.get("host").and_then(Value::as_str).ok_or_else(|| bad("host", body, "a host's name"))?;
        let host = hosts.iter().position(|host| host == name).ok_or_else(|| {
            let known: Vec<&str> = hosts.iter().take(20).map(String::as_str).collect();
            LabError::new(
                "UnknownHost",
                format!("there is no host {name:?}"),
                format!("hosts are {}", known.join(", ")),
            )
        })?;
        let described = body.get("app").ok_or_else(|| bad("app", body, "an app's description"))?;
        let config: AppConfig = serde_json::from_value(described.clone())
            .map_err(|error| LabError::new("BadApp", format!("the app's description cannot be read: {error}"), ""))?;
        config.validate().map_err(|error| LabError::new("BadApp", error.to_string(), ""))?;
        Ok((host, config, optional(body, "at_ps")?.map(Time::from_ps), optional(body, "seed")?))
    })();
    match parsed {
        Ok((host, config, at, seed)) => Ok(Command::Start { host, config, at, seed, reply }),
        Err(error) => Err((reply, error)),
    }
}

fn bad(field: &str, body: &Value, allowed: &str) -> LabError {
    let given: String =
        body.get(field).map_or_else(|| "missing".to_owned(), |value| value.to_string().chars().take(60).collect());
    LabError::new("BadRequest", format!("{field} is {given}; allowed is {allowed}"), "")
}

fn number(body: &Value, field: &str) -> Result<u32, LabError> {
    let given = body.get(field).and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok());
    given.ok_or_else(|| bad(field, body, "an app's number"))
}

fn numbers(body: &Value) -> Result<Vec<u32>, LabError> {
    let wrong = || bad("apps", body, "an array of apps' numbers");
    let array = body.get("apps").and_then(Value::as_array).ok_or_else(wrong)?;
    array.iter().map(|value| value.as_u64().and_then(|number| u32::try_from(number).ok()).ok_or_else(wrong)).collect()
}

fn optional(body: &Value, field: &str) -> Result<Option<u64>, LabError> {
    match body.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_u64().map(Some).ok_or_else(|| bad(field, body, "a whole number, or null")),
    }
}

fn reported(body: &Value) -> Result<Option<Vec<u32>>, LabError> {
    let given = |field| body.get(field).is_some_and(|value| !value.is_null());
    match (given("app"), given("apps")) {
        (true, _) => number(body, "app").map(|app| Some(vec![app])),
        (false, true) => numbers(body).map(Some),
        (false, false) => Ok(None),
    }
}
