//! The apps that run in model hosts: started, stopped and asked by requests (docs/reference/lab-protocol.md).

use serde_json::{json, Value};
use twinnet_fabric::{NodeId, World};

use super::app_requests::{app_number, reported_apps, unknown_host, AppStart};
use super::assemble::RunningNetwork;
use super::error::LabError;
use super::requests::Answer;

/// Where each app of a lab's model hosts runs; its number is its place, counted from `first`.
#[derive(Debug)]
pub struct ModelApps {
    first: u32,
    placed: Vec<Placed>,
}

#[derive(Debug)]
struct Placed {
    node: NodeId,
    host: String,
    kind: &'static str,
}

impl ModelApps {
    /// No apps yet; the first will have the number `first`.
    #[must_use]
    pub fn new(first: u32) -> Self {
        Self { first, placed: Vec::new() }
    }

    /// Starts an app; the answer holds its number.
    ///
    /// # Errors
    /// As [`AppStart::read`], and `UnknownHost`.
    pub fn start(&mut self, at: &mut RunningNetwork, body: &Value, world: &mut dyn World) -> Answer {
        let start = AppStart::read(body)?;
        let node = at.names.nodes.get(&start.host).copied().filter(|node| at.fabric.model(*node).is_some());
        let node = node.ok_or_else(|| unknown_host(&start.host, at.spec.host_names()))?;
        let number = self.first.saturating_add(u32::try_from(self.placed.len()).unwrap_or(u32::MAX));
        let seed = start.seed.unwrap_or(u64::from(number));
        let begin = start.at.unwrap_or(at.fabric.now());
        at.fabric.with_model(node, world, |host, now, _| host.start_app(number, &start.config, begin.max(now), seed));
        self.placed.push(Placed { node, host: start.host, kind: start.config.kind() });
        Ok(json!({"app": number}))
    }

    /// Asks an app to end.
    ///
    /// # Errors
    /// `UnknownApp`.
    pub fn stop(&mut self, at: &mut RunningNetwork, body: &Value, world: &mut dyn World) -> Answer {
        let number = app_number(body)?;
        let node = self.known(number)?.node;
        at.fabric.with_model(node, world, |host, now, pool| host.stop_app(number, now, pool));
        Ok(json!({}))
    }

    /// What the apps named in `body` have counted; all of them, when none is named.
    ///
    /// # Errors
    /// `UnknownApp`.
    pub fn report(&self, at: &RunningNetwork, body: &Value) -> Answer {
        let all = || (0..self.placed.len()).map(|place| self.number(place)).collect();
        let apps = reported_apps(body)?.unwrap_or_else(all);
        let rows = apps.into_iter().map(|number| {
            let placed = self.known(number)?;
            let host = at.fabric.model(placed.node);
            Ok(json!({
                "app": number, "host": placed.host, "kind": placed.kind,
                "finished": host.and_then(|host| host.app_finished(number)).unwrap_or(true),
                "report": host.and_then(|host| host.app_report(number, at.fabric.now())),
            }))
        });
        rows.collect::<Result<Vec<Value>, LabError>>().map(Value::Array)
    }

    /// Whether all of the apps have finished.
    ///
    /// # Errors
    /// `UnknownApp`.
    pub fn all_finished(&self, at: &RunningNetwork, apps: &[u32]) -> Result<bool, LabError> {
        self.check_known(apps)?;
        Ok(apps.iter().all(|number| self.has_finished(at, *number)))
    }

    /// Checks that all of `apps` were started here.
    ///
    /// # Errors
    /// `UnknownApp`.
    pub fn check_known(&self, apps: &[u32]) -> Result<(), LabError> {
        apps.iter().try_for_each(|number| self.known(*number).map(|_| ()))
    }

    /// Whether the app has finished; one that is not known has nothing left to do.
    #[must_use]
    pub fn has_finished(&self, at: &RunningNetwork, number: u32) -> bool {
        let host = self.known(number).ok().and_then(|placed| at.fabric.model(placed.node));
        host.and_then(|host| host.app_finished(number)) != Some(false)
    }

    fn number(&self, place: usize) -> u32 {
        self.first.saturating_add(u32::try_from(place).unwrap_or(u32::MAX))
    }

    fn known(&self, number: u32) -> Result<&Placed, LabError> {
        let place = number.checked_sub(self.first).and_then(|place| self.placed.get(place as usize));
        place.ok_or_else(|| {
            let message = format!("there is no app {number}; {} were started", self.placed.len());
            LabError::new("UnknownApp", message, "use the number that app.start gave")
        })
    }
}
