//! Apps in the model hosts of a lab on the wall clock: the fabric's loop runs them, beside the agent that runs those
//! of real hosts.

use twinnet_fabric::World;
use twinnet_lab::protocol::{Answer, AppReports, AppStart, AppWait, Reply, Request};
use twinnet_lab::{ModelApps, RunningNetwork};
use twinnet_units::Time;

use crate::service::{ErrorName, LabError, Responder};

/// The number of the first app in a model host: those in real hosts are counted from 1.
pub const FIRST_MODEL_APP: u32 = 1 << 31;

/// Somebody who waits for apps to finish.
struct Waiter {
    apps: Vec<u32>,
    /// At the latest; on the lab's clock.
    until: Option<Time>,
    responder: Responder,
}

/// The apps, and who waits for them.
pub(crate) struct LoopApps {
    apps: ModelApps,
    waiters: Vec<Waiter>,
    finished: u64,
}

impl LoopApps {
    /// None yet; the first has the number `first` beyond [`FIRST_MODEL_APP`].
    pub(crate) fn new(first: u32) -> Self {
        Self { apps: ModelApps::new(FIRST_MODEL_APP + first), waiters: Vec::new(), finished: 0 }
    }

    /// Starts an app.
    pub(crate) fn start(&mut self, at: &mut RunningNetwork, asked: &AppStart, world: &mut dyn World) -> Answer {
        self.apps.start(at, asked, world)
    }

    /// Asks an app to end.
    pub(crate) fn stop(&mut self, at: &mut RunningNetwork, app: u32, world: &mut dyn World) -> Answer {
        self.apps.stop(at, app, world)
    }

    /// Returns what apps have counted.
    pub(crate) fn report(&self, at: &RunningNetwork, asked: &AppReports) -> Answer {
        self.apps.report(at, asked)
    }

    /// Keeps `responder` until the apps have finished.
    pub(crate) fn wait(&mut self, at: &RunningNetwork, asked: AppWait, now: Time, responder: Responder) {
        let AppWait { apps, until } = asked;
        if let Err(error) = self.apps.check_known(&apps) {
            return responder.send(Err(error));
        }
        self.waiters.push(Waiter { apps, until, responder });
        self.finished = u64::MAX;
        self.answer_waiters(at, now);
    }

    /// Answers those whose apps have finished or whose time has come.
    pub(crate) fn answer_waiters(&mut self, at: &RunningNetwork, now: Time) {
        if self.waiters.is_empty() {
            return;
        }
        let changed = std::mem::replace(&mut self.finished, at.fabric.finished_apps()) != self.finished;
        for place in (0..self.waiters.len()).rev() {
            let over = self.waiters[place].until.is_some_and(|until| until <= now);
            if !over && !changed {
                continue;
            }
            // The numbers were known when the wait began.
            let finished = self.apps.all_finished(at, &self.waiters[place].apps).unwrap_or(true);
            if over || finished {
                self.waiters.swap_remove(place).responder.send(Ok(Reply::Finished { finished }));
            }
        }
    }

    /// The earliest moment at which somebody has waited long enough.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.waiters.iter().filter_map(|waiter| waiter.until).min()
    }
}

/// Who is asked about apps in a lab that has both real and model hosts.
#[derive(Debug, PartialEq)]
pub(crate) enum Share {
    /// The agent alone.
    Agent(Request),
    /// The fabric alone.
    Fabric(Request),
    /// Both, each for its part.
    Both {
        /// The request to the agent.
        agent: Request,
        /// The request to the fabric.
        fabric: Request,
    },
}

/// Divides a request about apps between agent and fabric; `is_model` tells whether a host is a model.
pub(crate) fn share(request: Request, is_model: impl Fn(&str) -> bool) -> Share {
    let is_models_app = |app: &u32| *app >= FIRST_MODEL_APP;
    let one = |is_models: bool, request| if is_models { Share::Fabric(request) } else { Share::Agent(request) };
    let parts = |apps: &[u32]| -> (Vec<u32>, Vec<u32>) { apps.iter().copied().partition(is_models_app) };
    match request {
        Request::AppStart(asked) => one(is_model(&asked.host), Request::AppStart(asked)),
        Request::AppStop(asked) => one(is_models_app(&asked.app), Request::AppStop(asked)),
        Request::AppWait(asked) => match parts(&asked.apps) {
            (models, _) if models.is_empty() => Share::Agent(Request::AppWait(asked)),
            (_, real) if real.is_empty() => Share::Fabric(Request::AppWait(asked)),
            (models, real) => {
                let of = |apps| Request::AppWait(Box::new(AppWait { apps, until: asked.until }));
                Share::Both { agent: of(real), fabric: of(models) }
            }
        },
        Request::AppReports(asked) => {
            let of = |apps| Request::AppReports(Box::new(AppReports { app: None, apps }));
            match asked.wanted().as_deref().map(parts) {
                None => Share::Both { agent: of(None), fabric: of(None) },
                Some((models, _)) if models.is_empty() => Share::Agent(Request::AppReports(asked)),
                Some((_, real)) if real.is_empty() => Share::Fabric(Request::AppReports(asked)),
                Some((models, real)) => Share::Both { agent: of(Some(real)), fabric: of(Some(models)) },
            }
        }
        other => Share::Fabric(other),
    }
}

/// Joins the answers of both: reports one after the other, waits to the later of both.
pub(crate) fn join(agent: Answer, fabric: Answer) -> Answer {
    match (agent?, fabric?) {
        (Reply::Apps(mut rows), Reply::Apps(more)) => {
            rows.extend(more);
            Ok(Reply::Apps(rows))
        }
        (Reply::Finished { finished: one }, Reply::Finished { finished: other }) => {
            Ok(Reply::Finished { finished: one && other })
        }
        _ => {
            Err(LabError::new(ErrorName::Internal, "agent and fabric answered one request about apps differently", ""))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, Value};
    use twinnet_lab::protocol::AppRow;

    const MODEL: u32 = FIRST_MODEL_APP + 2;

    fn wait(apps: &[u32]) -> Request {
        Request::AppWait(Box::new(AppWait { apps: apps.to_vec(), until: Some(Time::from_ns(7)) }))
    }

    fn shared(request: Request) -> Share {
        share(request, |host| host == "m1")
    }

    #[test]
    fn a_request_goes_where_its_apps_are() {
        let start = |host: &str| {
            let app = json!({"kind": "udp_sink", "port": 5003, "interval_ps": 1_000_000_000_000_u64});
            Request::read(json!({"do": "app.start", "host": host, "app": app})).unwrap()
        };
        assert_eq!(shared(start("m1")), Share::Fabric(start("m1")));
        assert_eq!(shared(start("h1")), Share::Agent(start("h1")));
        let stop = Request::read(json!({"do": "app.stop", "app": MODEL})).unwrap();
        assert_eq!(shared(stop.clone()), Share::Fabric(stop));
        assert_eq!(shared(wait(&[1, 2])), Share::Agent(wait(&[1, 2])));
        assert_eq!(shared(wait(&[])), Share::Agent(wait(&[])));
        assert_eq!(shared(wait(&[MODEL])), Share::Fabric(wait(&[MODEL])));
        assert_eq!(shared(wait(&[1, MODEL])), Share::Both { agent: wait(&[1]), fabric: wait(&[MODEL]) });
        let all = || Request::AppReports(Box::new(AppReports { app: None, apps: None }));
        assert_eq!(shared(all()), Share::Both { agent: all(), fabric: all() });
    }

    #[test]
    fn answers_are_joined_and_a_refusal_stays_one() {
        let row = |app| {
            let (host, kind, report): (_, _, Option<Value>) = (String::new(), "ping", None);
            AppRow { app, host, kind, finished: true, report }
        };
        let joined = join(Ok(Reply::Apps(vec![row(1)])), Ok(Reply::Apps(vec![row(2)])));
        assert_eq!(joined, Ok(Reply::Apps(vec![row(1), row(2)])));
        let waited = |one, other| join(Ok(Reply::Finished { finished: one }), Ok(Reply::Finished { finished: other }));
        assert_eq!(waited(true, false), Ok(Reply::Finished { finished: false }));
        assert_eq!(waited(true, true), Ok(Reply::Finished { finished: true }));
        let refusal = LabError::new(ErrorName::UnknownApp, "no", "");
        assert_eq!(join(Err(refusal.clone()), Ok(Reply::Done {})), Err(refusal));
    }
}
