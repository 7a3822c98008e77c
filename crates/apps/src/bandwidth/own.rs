//! Methods that whoever runs the prober brings along: what they do is an [`Estimator`], found by name.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use twinnet_units::Brought;

use super::estimator::{Estimator, Finding, Probing, Step};
use super::train::Train;
use crate::check::{check_range, ConfigError};
use crate::own::check_name;

/// A method that was brought along.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OwnMethodConfig {
    /// The name under which it was brought along.
    pub code: String,
    /// What reports call it.
    pub called: String,
    /// Its settings, a JSON object.
    pub settings: String,
}

/// Makes the estimator from its settings, which are JSON.
pub type StartMethod = dyn Fn(&str, Probing) -> Box<dyn Estimator> + Send + Sync;

static KNOWN: Brought<StartMethod> = Brought::new();

/// Makes the method `name` known in this process; one of that name is replaced.
pub fn register(name: &str, start: Arc<StartMethod>) {
    KNOWN.add(name, start);
}

impl OwnMethodConfig {
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        check_name("own", &self.code)?;
        check_range("own", "called", self.called.len() as u64, 1, 1000)
    }

    pub(crate) fn build(&self, probing: Probing) -> Box<dyn Estimator> {
        match KNOWN.find(&self.code) {
            Some(start) => start(&self.settings, probing),
            None => Box::new(Unknown(self.called.clone())),
        }
    }
}

/// Stands for a method that this process does not have.
struct Unknown(String);

impl Estimator for Unknown {
    fn next(&mut self) -> Step {
        Step::Done
    }

    fn hear(&mut self, _train: &Train) {}

    fn finding(&self) -> Finding {
        Finding { gave_up: Some(format!("the method {} is not known in this process", self.0)), ..Finding::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::framing::{Framing, Layer};
    use super::super::method::Method;
    use super::super::train::Plan;
    use super::*;

    /// Sends one train and tells how many of its packets arrived.
    #[derive(Default)]
    struct Counts(Option<usize>);

    impl Estimator for Counts {
        fn next(&mut self) -> Step {
            match self.0 {
                None => Step::Send { plan: Plan::even(3, 100, 1000.0), idle_ns: 0.0 },
                Some(_) => Step::Done,
            }
        }

        fn hear(&mut self, train: &Train) {
            self.0 = Some(train.arrived().len());
        }

        fn finding(&self) -> Finding {
            Finding { estimate_bps: self.0.map(|count| count as f64), ..Finding::default() }
        }
    }

    fn method(code: &str) -> Method {
        serde_json::from_value(serde_json::json!({
            "name": "own", "code": code, "called": "mine:Counts", "settings": "{}"
        }))
        .unwrap()
    }

    fn probing() -> Probing {
        Probing { framing: Framing::new(Layer::Wire, false), most_payload: 1472, most_rate_bps: 1e7, seed: 1 }
    }

    #[test]
    fn a_method_that_was_brought_along_is_built_by_its_name() {
        register("counts", Arc::new(|_: &str, _: Probing| Box::<Counts>::default() as Box<dyn Estimator>));
        let mut estimator = method("counts").build(probing());
        let Step::Send { plan, .. } = estimator.next() else { panic!("it sends") };
        let sent_ns = plan.packets.iter().map(|packet| i64::try_from(packet.at_ns).unwrap()).collect();
        estimator.hear(&Train { plan, sent_ns, arrived_ns: vec![Some(1), None, Some(3)], ..Train::default() });
        assert_eq!((estimator.next(), estimator.finding().estimate_bps), (Step::Done, Some(2.0)));
        assert_eq!(method("counts").name(), "mine:Counts");
    }

    #[test]
    fn a_method_that_is_not_known_sends_nothing_and_says_so() {
        let mut estimator = method("nobody").build(probing());
        assert_eq!(estimator.next(), Step::Done);
        assert!(estimator.finding().gave_up.unwrap().contains("mine:Counts is not known"));
        assert!(method("").validate().is_err());
    }
}
