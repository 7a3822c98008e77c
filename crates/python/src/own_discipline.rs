//! Queue disciplines in Python, at the ports of a lab on the virtual clock.

use std::collections::BTreeSet;
use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;
use twinnet_queue::own::{self, Arrived, Decision, Judge};
use twinnet_units::Time;

use crate::own_code;

const PS_PER_S: f64 = 1e12;

/// Makes the discipline `name`, which messages call `called`, known in this process; `start` is called for each port
/// with its settings (JSON) and a seed.
#[pyfunction]
pub fn register_discipline(name: &str, called: String, start: Py<PyAny>) {
    let begin = move |settings: &str, seed: u64| -> Box<dyn Judge> {
        let object = own_code::run(&called, |py| start.call1(py, (settings, seed))).ok();
        Box::new(OwnJudge { called: called.clone(), object, waiting: BTreeSet::new() })
    };
    own::register(name, Arc::new(begin));
}

/// Decides in Python; without an object, where its code has failed, as a FIFO: the lab then stops.
struct OwnJudge {
    called: String,
    object: Option<Py<PyAny>>,
    waiting: BTreeSet<u64>,
}

/// The frame to send, those to drop and to mark, and when to ask again.
type Said = (Option<u64>, Vec<u64>, Vec<u64>, Option<f64>);

impl OwnJudge {
    fn decide(
        &mut self,
        now: Time,
        what: impl FnOnce(&Bound<'_, PyAny>, f64) -> PyResult<Py<PyAny>>,
    ) -> Option<Decision> {
        let object = self.object.as_ref()?;
        let decided = own_code::run(&self.called, |py| {
            let said = what(object.bind(py), now.as_ps() as f64 / PS_PER_S)?;
            let (send, dropped, marked, again_s) = said.extract::<Said>(py)?;
            let again = again_s.map(|again_s| own_code::moment(again_s, now)).transpose()?;
            Ok(Decision { send, dropped, marked, again })
        });
        if decided.is_err() {
            self.object = None;
        }
        let decision = decided.ok()?;
        for number in decision.dropped.iter().chain(&decision.send) {
            self.waiting.remove(number);
        }
        Some(decision)
    }
}

impl Judge for OwnJudge {
    fn arrived(&mut self, now: Time, frame: &Arrived) -> Decision {
        self.waiting.insert(frame.number);
        let told = (frame.number, frame.bytes, frame.queue, frame.flow, frame.traffic_class);
        let decided = self.decide(now, |object, now_s| {
            Ok(object.call_method1(intern!(object.py(), "_arrived"), (now_s, told))?.unbind())
        });
        decided.unwrap_or_default()
    }

    fn next(&mut self, now: Time) -> Decision {
        let decided = self
            .decide(now, |object, now_s| Ok(object.call_method1(intern!(object.py(), "_next"), (now_s,))?.unbind()));
        decided.unwrap_or_else(|| Decision { send: self.waiting.pop_first(), ..Decision::default() })
    }
}
