//! Applications in Python: in model hosts on the virtual clock, and in the hosts of a lab process.

use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use twinnet_apps::own::{self, Act, Behaviour, News, Told, Wishes};
use twinnet_units::Time;

use crate::own_code;

const PS_PER_S: f64 = 1e12;

/// Makes the application `name`, which messages call `called`, known in this process; `start` is called for each end
/// with its settings (JSON).
#[pyfunction]
pub fn register_application(name: &str, called: String, start: Py<PyAny>) {
    let begin = move |settings: &str| -> Box<dyn Behaviour> {
        let object = own_code::run(&called, |py| start.call1(py, (settings,)));
        Box::new(OwnBehaviour { name: called.clone(), object })
    };
    own::register(name, Arc::new(begin));
}

/// One end; without an object, but the reason, where its code has failed: a lab on the virtual clock then stops.
struct OwnBehaviour {
    name: String,
    object: Result<Py<PyAny>, String>,
}

/// What `_told` returns: datagrams; what is wanted of connections, by number, with bytes to write and so many after
/// them; the moment to wake at; and the end.
type Wanted = (Vec<(Vec<u8>, u32)>, Vec<(String, u32, Vec<u8>, u64)>, Option<f64>, bool);

fn act((what, number, bytes, filler): (String, u32, Vec<u8>, u64)) -> Act {
    match what.as_str() {
        "connect" => Act::Connect(number),
        "write" => Act::Write(number, bytes, filler),
        "finish" => Act::Finish(number),
        _ => Act::Close(number),
    }
}

/// Tells `object` what happened to a connection.
fn tell_of_connection<'py>(object: &Bound<'py, PyAny>, now_s: f64, news: &News) -> PyResult<Bound<'py, PyAny>> {
    let method = intern!(object.py(), "_told");
    match news {
        News::Connected(number, flow) => object.call_method1(method, ("connected", now_s, *number, *flow)),
        News::Read(number, bytes) => {
            object.call_method1(method, ("read", now_s, *number, PyBytes::new(object.py(), bytes)))
        }
        News::Drained(number) => object.call_method1(method, ("drained", now_s, *number)),
        News::Ended(number) => object.call_method1(method, ("ended", now_s, *number)),
        News::Lost(number, why) => object.call_method1(method, ("lost", now_s, *number, why)),
    }
}

impl Behaviour for OwnBehaviour {
    fn tell(&mut self, now: Time, told: &Told<'_>) -> Wishes {
        let nothing = |why: &str| Wishes { finished: true, failed: Some(why.to_owned()), ..Wishes::default() };
        let object = match &self.object {
            Ok(object) => object,
            Err(why) => return nothing(why),
        };
        let now_s = now.as_ps() as f64 / PS_PER_S;
        let wanted = own_code::run(&self.name, |py| {
            let object = object.bind(py);
            let method = intern!(py, "_told");
            let wanted = match told {
                Told::Start { sends, tcp, seed } => {
                    object.call_method1(method, ("started", now_s, *sends, *tcp, *seed))
                }
                Told::Timer => object.call_method1(method, ("woken", now_s)),
                Told::Stop => object.call_method1(method, ("stopped", now_s)),
                Told::Datagram { flow, bytes, length, sent } => {
                    let sent_s = sent.map(|sent| sent.as_ps() as f64 / PS_PER_S);
                    object.call_method1(method, ("received", now_s, *flow, PyBytes::new(py, bytes), *length, sent_s))
                }
                Told::Connection(news) => tell_of_connection(object, now_s, news),
            };
            let (datagrams, acts, wake_s, finished) = wanted?.extract::<Wanted>()?;
            let wake = wake_s.map(|wake_s| own_code::moment(wake_s, now)).transpose()?;
            let acts = acts.into_iter().map(act).collect();
            Ok(Wishes { datagrams, acts, wake, finished, failed: None })
        });
        wanted.unwrap_or_else(|why| {
            let wishes = nothing(&why);
            self.object = Err(why);
            wishes
        })
    }
}
