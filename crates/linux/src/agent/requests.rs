//! Requests about apps, as what the agent's thread is to do.

use twinnet_apps::AppConfig;
use twinnet_lab::protocol::{AppStart, Request};
use twinnet_lab::unknown_host;
use twinnet_units::Time;

use crate::service::{Call, LabError, Responder};

/// The commands to the thread.
pub enum Command {
    /// Start an app.
    Start {
        /// The host's place.
        host: usize,
        /// The app.
        config: AppConfig,
        /// The time of the start; `None`: now.
        at: Option<Time>,
        /// The seed of its random numbers; `None`: its own number.
        seed: Option<u64>,
        /// The responder to which its number goes.
        responder: Responder,
    },
    /// Ask an app to end.
    Stop {
        /// Its number.
        app: u32,
        /// The responder to which the answer goes.
        responder: Responder,
    },
    /// Tell what apps counted.
    Report {
        /// Their numbers; `None`: all.
        apps: Option<Vec<u32>>,
        /// The responder to which the reports go.
        responder: Responder,
    },
    /// Answer when apps have finished.
    Wait {
        /// Their numbers.
        apps: Vec<u32>,
        /// The time when to answer at the latest; `None`: never.
        until: Option<Time>,
        /// The responder to which the answer goes.
        responder: Responder,
    },
    /// End the thread.
    End,
}

/// Returns what `call` wants of the thread. When it is refused its responder comes back with the reason.
pub fn command(call: Call, hosts: &[String]) -> Result<Command, (Responder, LabError)> {
    let Call { request, responder, .. } = call;
    Ok(match request {
        Request::AppStart(asked) => {
            let Some(host) = hosts.iter().position(|host| *host == asked.host) else {
                return Err((responder, unknown_host(&asked.host, hosts.iter().map(String::as_str))));
            };
            let AppStart { app, at, seed, .. } = *asked;
            Command::Start { host, config: app, at, seed, responder }
        }
        Request::AppStop(asked) => Command::Stop { app: asked.app, responder },
        Request::AppReports(asked) => Command::Report { apps: asked.wanted(), responder },
        Request::AppWait(asked) => Command::Wait { apps: asked.apps, until: asked.until, responder },
        other => return Err((responder, other.refused("use app.start, app.stop, app.report or app.wait"))),
    })
}
