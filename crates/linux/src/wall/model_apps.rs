//! Apps in the model hosts of a lab on the wall clock: the fabric's loop runs them, beside the agent that runs those of real hosts.

use serde_json::{json, Value};
use twinnet_fabric::World;
use twinnet_lab::requests::Answer;
use twinnet_lab::{app_numbers, optional_number, ModelApps, RunningNetwork};
use twinnet_units::{Duration, Time};

use crate::service::{LabError, Reply};

/// The number of the first app in a model host: those in real hosts are counted from 1.
pub const FIRST_MODEL_APP: u32 = 1 << 31;

/// Somebody who waits for apps to finish.
struct Waiter {
    apps: Vec<u32>,
    /// At the latest; on the lab's clock.
    until: Option<Time>,
    reply: Reply,
}

/// The apps, and who waits for them.
pub(crate) struct LoopApps {
    apps: ModelApps,
    waiters: Vec<Waiter>,
    finished: u64,
}

impl LoopApps {
    pub(crate) fn new() -> Self {
        Self { apps: ModelApps::new(FIRST_MODEL_APP), waiters: Vec::new(), finished: 0 }
    }

    /// Starts, stops and asks apps; `behind` is what the lab's clock is ahead of the fabric's.
    pub(crate) fn answer(
        &mut self,
        at: &mut RunningNetwork,
        body: &Value,
        behind: Duration,
        world: &mut dyn World,
    ) -> Answer {
        match body.get("do").and_then(Value::as_str).unwrap_or_default() {
            "app.start" => {
                let mut body = body.clone();
                if let Some(begin) = optional_number(&body, "at_ps")? {
                    body["at_ps"] = begin.saturating_sub(behind.as_ps()).into();
                }
                self.apps.start(at, &body, world)
            }
            "app.stop" => self.apps.stop(at, body, world),
            _ => self.apps.report(at, body),
        }
    }

    /// Keeps `reply` until the apps have finished.
    pub(crate) fn wait(&mut self, at: &RunningNetwork, body: &Value, now: Time, reply: Reply) {
        let read = || Ok((app_numbers(body)?, optional_number(body, "until_ps")?.map(Time::from_ps)));
        let known = read().and_then(|(apps, until)| self.apps.all_finished(at, &apps).map(|_| (apps, until)));
        match known {
            Ok((apps, until)) => self.waiters.push(Waiter { apps, until, reply }),
            Err(error) => return reply.send(Err(error)),
        }
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
                self.waiters.swap_remove(place).reply.send(Ok(json!({"finished": finished})));
            }
        }
    }

    /// The earliest moment at which somebody has waited long enough.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.waiters.iter().filter_map(|waiter| waiter.until).min()
    }
}

/// What becomes of a request about apps in a lab that has both real and model hosts.
pub(crate) enum Share {
    /// The agent's alone.
    Agent,
    /// The fabric's alone.
    Fabric,
    /// A part of each.
    Both {
        /// What the agent is asked.
        agent: Value,
        /// What the fabric is asked.
        fabric: Value,
    },
}

/// Divides `body` between agent and fabric; `is_model` tells whether a host is a model.
pub(crate) fn share(body: &Value, is_model: impl Fn(&str) -> bool) -> Share {
    if let Some(host) = body.get("host").and_then(Value::as_str) {
        return if is_model(host) { Share::Fabric } else { Share::Agent };
    }
    let is_models_app = |app: &Value| app.as_u64().is_some_and(|app| app >= u64::from(FIRST_MODEL_APP));
    if let Some(app) = body.get("app").filter(|app| !app.is_null()) {
        return if is_models_app(app) { Share::Fabric } else { Share::Agent };
    }
    let Some(apps) = body.get("apps").and_then(Value::as_array) else {
        return Share::Both { agent: body.clone(), fabric: body.clone() };
    };
    let (models, real): (Vec<Value>, Vec<Value>) = apps.iter().cloned().partition(is_models_app);
    match (models.is_empty(), real.is_empty()) {
        (true, _) => Share::Agent,
        (false, true) => Share::Fabric,
        (false, false) => {
            let with = |apps: Vec<Value>| {
                let mut body = body.clone();
                body["apps"] = apps.into();
                body
            };
            Share::Both { agent: with(real), fabric: with(models) }
        }
    }
}

/// Joins the answers of both: reports one after the other, waits to the later of both.
pub(crate) fn join(agent: Result<Value, LabError>, fabric: Result<Value, LabError>) -> Result<Value, LabError> {
    Ok(match (agent?, fabric?) {
        (Value::Array(mut rows), Value::Array(more)) => {
            rows.extend(more);
            Value::Array(rows)
        }
        (one, other) => {
            let finished = |answer: &Value| answer.get("finished").and_then(Value::as_bool).unwrap_or(false);
            json!({"finished": finished(&one) && finished(&other)})
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(body: &Value) -> String {
        match share(body, |host| host == "m1") {
            Share::Agent => "agent".to_owned(),
            Share::Fabric => "fabric".to_owned(),
            Share::Both { agent, fabric } => format!("{} | {}", agent["apps"], fabric["apps"]),
        }
    }

    #[test]
    fn a_request_goes_where_its_apps_are() {
        let model = FIRST_MODEL_APP + 2;
        assert_eq!(shared(&json!({"do": "app.start", "host": "m1"})), "fabric");
        assert_eq!(shared(&json!({"do": "app.start", "host": "h1"})), "agent");
        assert_eq!(shared(&json!({"do": "app.stop", "app": model})), "fabric");
        assert_eq!(shared(&json!({"do": "app.wait", "apps": [1, 2]})), "agent");
        assert_eq!(shared(&json!({"do": "app.wait", "apps": []})), "agent");
        assert_eq!(shared(&json!({"do": "app.wait", "apps": [1, model]})), format!("[1] | [{model}]"));
        assert_eq!(shared(&json!({"do": "app.report"})), "null | null");
    }

    #[test]
    fn answers_are_joined_and_a_refusal_stays_one() {
        let rows = join(Ok(json!([{"app": 1}])), Ok(json!([{"app": 2}]))).unwrap();
        assert_eq!(rows, json!([{"app": 1}, {"app": 2}]));
        let waited = |one, other| join(Ok(json!({"finished": one})), Ok(json!({"finished": other}))).unwrap();
        assert_eq!(waited(true, false), json!({"finished": false}));
        assert_eq!(waited(true, true), json!({"finished": true}));
        let refusal = LabError::new("UnknownApp", "no", "");
        assert_eq!(join(Err(refusal.clone()), Ok(json!({}))), Err(refusal));
    }
}
