//! Applications in Python, in model hosts on the virtual clock.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use twinnet_apps::own::{self, Behaviour, Told, Wishes};
use twinnet_units::Time;

use crate::own_code;

const PS_PER_S: f64 = 1e12;

/// Makes an application known in this process; `start` is called for each end with its settings (JSON).
#[pyfunction]
pub fn register_application(name: String, start: Py<PyAny>) {
    let called = name.clone();
    let begin = move |settings: &str| -> Box<dyn Behaviour> {
        let object = own_code::run(&called, |py| start.call1(py, (settings,)));
        Box::new(OwnBehaviour { name: called.clone(), object })
    };
    own::register(&name, Arc::new(begin));
}

/// One end; without an object where its code has failed: the lab then stops.
struct OwnBehaviour {
    name: String,
    object: Option<Py<PyAny>>,
}

type Wanted = (Vec<(Vec<u8>, u32)>, Option<f64>, bool);

impl Behaviour for OwnBehaviour {
    fn tell(&mut self, now: Time, told: &Told<'_>) -> Wishes {
        let nothing = Wishes { finished: true, ..Wishes::default() };
        let Some(object) = &self.object else { return nothing };
        let now_s = now.as_ps() as f64 / PS_PER_S;
        let wanted = own_code::run(&self.name, |py| {
            let object = object.bind(py);
            let method = intern!(py, "_told");
            let wanted = match told {
                Told::Start { sends, seed } => object.call_method1(method, ("started", now_s, *sends, *seed)),
                Told::Timer => object.call_method1(method, ("woken", now_s)),
                Told::Stop => object.call_method1(method, ("stopped", now_s)),
                Told::Datagram { flow, bytes, length, sent } => {
                    let sent_s = sent.map(|sent| sent.as_ps() as f64 / PS_PER_S);
                    object.call_method1(method, ("received", now_s, *flow, PyBytes::new(py, bytes), *length, sent_s))
                }
            };
            let (datagrams, wake_s, finished) = wanted?.extract::<Wanted>()?;
            Ok(Wishes { datagrams, wake: wake_s.map(|wake_s| moment(wake_s, now)).transpose()?, finished })
        });
        wanted.unwrap_or_else(|| {
            self.object = None;
            nothing
        })
    }
}

fn moment(at_s: f64, now: Time) -> PyResult<Time> {
    let at = Time::from_ps((at_s * PS_PER_S).round() as u64);
    if at_s.is_finite() && at_s < 9e6 && at > now {
        return Ok(at);
    }
    Err(PyValueError::new_err(format!("wake_at({at_s}) is not later than now, or past the end of the clock")))
}
