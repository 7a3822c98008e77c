//! Estimators of available bandwidth in Python, which a prober asks as it asks the built-in ones.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::json;
use twinnet_apps::{
    register_bandwidth_method, BandwidthEstimator, BandwidthFinding, BandwidthStep, Probing, Train, TrainPlan,
};

use crate::own_code;

/// The payload by which headers are told from data.
const ANY_PAYLOAD: u32 = 1000;

/// Lets probers of this process use the method `name`, which messages call `called`; `start` is called for each
/// estimate, with its settings and what is known of its probes (JSON).
#[pyfunction]
pub fn register_estimator(name: &str, called: String, start: Py<PyAny>) {
    let begin = move |settings: &str, probing: Probing| -> Box<dyn BandwidthEstimator> {
        Box::new(OwnEstimator::begin(&called, &start, settings, probing))
    };
    register_bandwidth_method(name, Arc::new(begin));
}

/// What the object says each time: the next train, if there is one, and what it knows by now.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    train: Option<Asked>,
    finding: BandwidthFinding,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    plan: TrainPlan,
    idle_ns: f64,
}

/// An estimate; without an object where its code has failed.
struct OwnEstimator {
    called: String,
    object: Option<Py<PyAny>>,
    step: BandwidthStep,
    finding: BandwidthFinding,
}

impl OwnEstimator {
    fn begin(called: &str, start: &Py<PyAny>, settings: &str, probing: Probing) -> Self {
        let mut own = Self {
            called: called.to_owned(),
            object: None,
            step: BandwidthStep::Done,
            finding: BandwidthFinding::default(),
        };
        let known = json!({
            "most_rate_bps": probing.most_rate_bps,
            "most_payload": probing.most_payload,
            "header_bytes": probing.framing.bits(ANY_PAYLOAD) / 8.0 - f64::from(ANY_PAYLOAD),
            "seed": probing.seed,
        });
        match own_code::run(called, |py| start.call1(py, (settings, known.to_string()))) {
            Ok(object) => {
                own.object = Some(object);
                own.ask(None);
            }
            Err(why) => own.fail(why),
        }
        own
    }

    /// Tells the object what became of its train, and takes what it says.
    fn ask(&mut self, train: Option<&Train>) {
        let Some(object) = &self.object else { return };
        let said = own_code::run(&self.called, |py| {
            let told = train.map(serde_json::to_string).transpose().map_err(|error| refused(&error))?;
            let said: String = object.bind(py).call_method1(intern!(py, "_told"), (told,))?.extract()?;
            serde_json::from_str::<Said>(&said).map_err(|error| refused(&error))
        });
        match said {
            Ok(said) => {
                self.finding = said.finding;
                self.step = said.train.map_or(BandwidthStep::Done, |asked| BandwidthStep::Send {
                    plan: asked.plan,
                    idle_ns: asked.idle_ns,
                });
            }
            Err(why) => self.fail(why),
        }
    }

    fn fail(&mut self, why: String) {
        self.object = None;
        self.step = BandwidthStep::Done;
        self.finding = BandwidthFinding { gave_up: Some(why), ..BandwidthFinding::default() };
    }
}

fn refused(error: &serde_json::Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}

impl BandwidthEstimator for OwnEstimator {
    fn next(&mut self) -> BandwidthStep {
        self.step.clone()
    }

    fn hear(&mut self, train: &Train) {
        self.ask(Some(train));
    }

    fn finding(&self) -> BandwidthFinding {
        self.finding.clone()
    }
}
