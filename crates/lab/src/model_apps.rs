//! The apps that run in model hosts: started, stopped and asked by requests (docs/reference/lab-protocol.md).

use twinnet_fabric::{NodeId, World};

use super::assemble::RunningNetwork;
use super::error::{ErrorName, LabError};
use super::protocol::{Answer, AppReports, AppRow, AppStart, Reply};

/// The host that each app of a lab's model hosts runs on; its number is its place, counted from `first`.
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
    /// `UnknownHost`.
    pub fn start(&mut self, at: &mut RunningNetwork, asked: &AppStart, world: &mut dyn World) -> Answer {
        let node = at.names.nodes.get(&asked.host).copied().filter(|node| at.fabric.model(*node).is_some());
        let node = node.ok_or_else(|| unknown_host(&asked.host, at.spec.host_names()))?;
        let app = self.first.saturating_add(u32::try_from(self.placed.len()).unwrap_or(u32::MAX));
        let seed = asked.seed.unwrap_or(u64::from(app));
        let begin = asked.at.unwrap_or(at.fabric.now());
        at.fabric.with_model(node, world, |host, now, _| host.start_app(app, &asked.app, begin.max(now), seed));
        self.placed.push(Placed { node, host: asked.host.clone(), kind: asked.app.kind() });
        Ok(Reply::App { app })
    }

    /// Asks an app to end.
    ///
    /// # Errors
    /// `UnknownApp`.
    pub fn stop(&mut self, at: &mut RunningNetwork, app: u32, world: &mut dyn World) -> Answer {
        let node = self.known(app)?.node;
        at.fabric.with_model(node, world, |host, now, pool| host.stop_app(app, now, pool));
        Ok(Reply::Done {})
    }

    /// Returns the reports of apps.
    ///
    /// # Errors
    /// `UnknownApp`.
    pub fn report(&self, at: &RunningNetwork, asked: &AppReports) -> Answer {
        let all = || (0..self.placed.len()).map(|place| self.number(place)).collect();
        let apps = asked.wanted().unwrap_or_else(all);
        let rows = apps.into_iter().map(|app| {
            let placed = self.known(app)?;
            let host = at.fabric.model(placed.node);
            Ok(AppRow {
                app,
                host: placed.host.clone(),
                kind: placed.kind,
                finished: host.and_then(|host| host.app_finished(app)).unwrap_or(true),
                report: host.and_then(|host| host.app_report(app, at.fabric.now())),
            })
        });
        rows.collect::<Result<Vec<AppRow>, LabError>>().map(Reply::Apps)
    }

    /// Returns whether all of the apps have finished.
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

    /// Returns `true` if the app has finished; one that is not known has nothing left to do.
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
            LabError::new(ErrorName::UnknownApp, message, "use the number that app.start gave")
        })
    }
}

/// The refusal of a request that names the unknown host `name`; `known` are those that there are.
pub fn unknown_host<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> LabError {
    let known: Vec<&str> = known.take(20).collect();
    LabError::new(
        ErrorName::UnknownHost,
        format!("there is no host {name:?}"),
        format!("hosts are {}", known.join(", ")),
    )
}
