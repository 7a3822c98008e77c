//! Requests about apps, read from JSON into what the agent's thread is to do.

use serde_json::Value;
use twinnet_apps::AppConfig;
use twinnet_lab::{app_number, app_numbers, optional_number, reported_apps, unknown_host, AppStart};
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
        Some("app.stop") => app_number(body).map(Parsed::Stop),
        Some("app.report") => reported_apps(body).map(Parsed::Report),
        Some("app.wait") => app_numbers(body)
            .and_then(|apps| Ok(Parsed::Wait(apps, optional_number(body, "until_ps")?.map(Time::from_ps)))),
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
    let parsed = AppStart::read(body).and_then(|start| {
        let host = hosts.iter().position(|host| *host == start.host);
        let host = host.ok_or_else(|| unknown_host(&start.host, hosts.iter().map(String::as_str)))?;
        Ok((host, start))
    });
    match parsed {
        Ok((host, AppStart { config, at, seed, .. })) => Ok(Command::Start { host, config, at, seed, reply }),
        Err(error) => Err((reply, error)),
    }
}
