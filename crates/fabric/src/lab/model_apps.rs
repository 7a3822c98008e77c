//! The apps that run in model hosts: started, stopped and asked by requests (docs/reference/lab-protocol.md).

use serde_json::{json, Value};
use twinnet_apps::AppConfig;
use twinnet_units::Time;

use super::assemble::RunningNetwork;
use super::error::LabError;
use super::requests::{missing, text, Answer};
use crate::{NodeId, World};

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
    /// `BadRequest` or `BadApp`, telling the field and what is allowed.
    pub fn read(body: &Value) -> Result<Self, LabError> {
        let host = text(body, "host")?.to_owned();
        let described = body.get("app").ok_or_else(|| missing("app", "an app's description"))?;
        let config: AppConfig = serde_json::from_value(described.clone())
            .map_err(|error| LabError::new("BadApp", format!("the app's description cannot be read: {error}"), ""))?;
        config.validate().map_err(|error| LabError::new("BadApp", error.to_string(), ""))?;
        Ok(Self {
            host,
            config,
            at: optional_number(body, "at_ps")?.map(Time::from_ps),
            seed: optional_number(body, "seed")?,
        })
    }
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
        let node = node.ok_or_else(|| {
            let known: Vec<&str> = at.spec.host_names().take(20).collect();
            let message = format!("there is no host {:?}", start.host);
            LabError::new("UnknownHost", message, format!("hosts are {}", known.join(", ")))
        })?;
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
        let number = one(body.get("app"))?;
        let node = self.known(number)?.node;
        at.fabric.with_model(node, world, |host, now, pool| host.stop_app(number, now, pool));
        Ok(json!({}))
    }

    /// What the apps named in `body` have counted; all of them, when none is named.
    ///
    /// # Errors
    /// `UnknownApp`.
    pub fn report(&self, at: &RunningNetwork, body: &Value) -> Answer {
        let given = |field: &str| body.get(field).filter(|value| !value.is_null());
        let apps = match (given("app"), given("apps")) {
            (Some(app), _) => vec![one(Some(app))?],
            (None, Some(_)) => app_numbers(body)?,
            (None, None) => (0..self.placed.len()).map(|place| self.number(place)).collect(),
        };
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

/// The apps' numbers under `apps`.
///
/// # Errors
/// `BadRequest`.
pub fn app_numbers(body: &Value) -> Result<Vec<u32>, LabError> {
    let array = body.get("apps").and_then(Value::as_array).ok_or_else(|| missing("apps", "an array of numbers"))?;
    array.iter().map(|value| one(Some(value))).collect()
}

/// A whole number under `field`, or none when it is absent or null.
///
/// # Errors
/// `BadRequest`.
pub fn optional_number(body: &Value, field: &str) -> Result<Option<u64>, LabError> {
    match body.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_u64().map(Some).ok_or_else(|| missing(field, "a whole number, or null")),
    }
}

fn one(value: Option<&Value>) -> Result<u32, LabError> {
    let number = value.and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok());
    number.ok_or_else(|| missing("app", "an app's number"))
}
