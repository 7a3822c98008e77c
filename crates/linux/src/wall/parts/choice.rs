//! How many threads move a network.

use serde_json::Value;
use twinnet_lab::network::NetworkSpec;
use twinnet_lab::partition::{partition, Partition};
use twinnet_units::Duration;

use crate::service::LabError;

/// The most threads that can be asked for.
const MOST_THREADS: usize = 64;
/// The most that are taken unasked.
const MOST_UNASKED: usize = 8;
/// Processors for each thread that is taken unasked: a loop, the thread beside it that hands frames over, and the
/// network stacks and programs of its hosts.
const PROCESSORS_PER_THREAD: usize = 4;
/// The least delay of a link that is cut unasked, both ways: the other thread then hears of a frame well before it is
/// due, also where it has to be woken for it.
const LEAST_DELAY: Duration = Duration::from_us(50);

/// The option `fabric_threads` of a `start` request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FabricThreads {
    /// By the processors that are free, and where nothing is lost by it.
    Auto,
    /// So many, as far as the network can be divided.
    Wanted(usize),
}

impl FabricThreads {
    /// Reads the option.
    ///
    /// # Errors
    /// `InvalidOption` that names what is allowed.
    pub fn from_json(options: Option<&Value>) -> Result<Self, LabError> {
        match options.and_then(|options| options.get("fabric_threads")) {
            None | Some(Value::Null) => Ok(Self::Auto),
            Some(Value::String(text)) if text == "auto" => Ok(Self::Auto),
            Some(value) => {
                let wanted = value.as_u64().and_then(|wanted| usize::try_from(wanted).ok());
                wanted.filter(|wanted| (1..=MOST_THREADS).contains(wanted)).map(Self::Wanted).ok_or_else(|| {
                    let message = format!(
                        "the option fabric_threads is {value}; it can be \"auto\" or a whole number from 1 to \
                         {MOST_THREADS}"
                    );
                    LabError::new("InvalidOption", message, "")
                })
            }
        }
    }

    /// Divides `spec` accordingly; returns also why it is so.
    #[must_use]
    pub fn divide(self, spec: &NetworkSpec) -> (Partition, String) {
        self.divide_on(spec, Processors::of_this_machine())
    }

    fn divide_on(self, spec: &NetworkSpec, processors: Processors) -> (Partition, String) {
        let (wanted, least_delay, mut why) = match self {
            Self::Wanted(wanted) => (wanted, Duration::ZERO, format!("{wanted} asked for")),
            Self::Auto => {
                let (wanted, why) = processors.threads();
                (wanted, LEAST_DELAY, why)
            }
        };
        let partition = partition(spec, wanted, least_delay);
        if let Some(reason) = &partition.why_not_more {
            why = format!("{why}; {reason}");
        }
        (partition, why)
    }
}

/// Processors that this process may use, and how many others were busy in the last minute.
#[derive(Clone, Copy, Debug)]
struct Processors {
    all: usize,
    busy: usize,
}

impl Processors {
    /// How many threads there are for, and why.
    fn threads(self) -> (usize, String) {
        let free = self.all.saturating_sub(self.busy);
        let wanted = (free / PROCESSORS_PER_THREAD).clamp(1, MOST_UNASKED);
        (wanted, format!("one for {PROCESSORS_PER_THREAD} processors, and {free} of {} are free", self.all))
    }

    fn of_this_machine() -> Self {
        let all = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        Self { all, busy: load.split_whitespace().next().and_then(|load| load.parse().ok()).map_or(0, rounded) }
    }
}

/// How many threads a network that can be divided has on this machine now when nothing is asked for, and why.
#[must_use]
pub(crate) fn threads_unasked() -> (usize, String) {
    Processors::of_this_machine().threads()
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn rounded(load: f64) -> usize {
    load.round().clamp(0.0, 1e6) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Switches in a row whose links have this delay.
    fn chain(switches: usize, delay_us: u64) -> NetworkSpec {
        let port = |switch: usize, port: usize| json!({"name": format!("s{switch}-eth{port}"), "number": port});
        let nodes = (0..switches).map(|number| {
            let ports = [port(number, 1), port(number, 2)];
            json!({"kind": "switch", "name": format!("s{number}"), "dpid": number + 1, "ports": ports})
        });
        let links = (1..switches).map(|number| {
            let way = json!({"delay_ps": delay_us * 1_000_000});
            json!({
                "a": {"node": format!("s{}", number - 1), "port": 1}, "b": {"node": format!("s{number}"), "port": 0},
                "ab": way, "ba": way,
            })
        });
        let (nodes, links): (Vec<_>, Vec<_>) = (nodes.collect(), links.collect());
        NetworkSpec::from_json(&json!({"nodes": nodes, "links": links})).unwrap()
    }

    #[test]
    fn the_option_is_read_and_others_are_refused() {
        let read = |value: Value| FabricThreads::from_json(Some(&json!({"fabric_threads": value})));
        assert_eq!(FabricThreads::from_json(None), Ok(FabricThreads::Auto));
        assert_eq!(read(json!("auto")), Ok(FabricThreads::Auto));
        assert_eq!(read(json!(2)), Ok(FabricThreads::Wanted(2)));
        for refused in [json!(0), json!(65), json!(-1), json!("two"), json!(1.5)] {
            assert_eq!(read(refused).unwrap_err().name, "InvalidOption");
        }
    }

    #[test]
    fn threads_follow_the_processors_that_are_free() {
        let spec = chain(8, 100);
        let parts = |all, busy| FabricThreads::Auto.divide_on(&spec, Processors { all, busy }).0.parts();
        assert_eq!([parts(1, 0), parts(2, 0), parts(4, 0), parts(8, 0), parts(16, 0)], [1, 1, 1, 2, 4]);
        assert_eq!([parts(16, 5), parts(16, 16), parts(16, 40), parts(128, 0)], [2, 1, 1, 8]);
    }

    #[test]
    fn links_without_a_delay_are_cut_only_for_those_who_ask() {
        let (spec, processors) = (chain(4, 49), Processors { all: 16, busy: 0 });
        let (unasked, why) = FabricThreads::Auto.divide_on(&spec, processors);
        assert_eq!(unasked.parts(), 1);
        assert!(why.contains("16 of 16 are free") && why.contains("a delay of 50 us"), "{why}");
        let (asked, why) = FabricThreads::Wanted(2).divide_on(&spec, processors);
        assert_eq!((asked.parts(), why.as_str()), (2, "2 asked for"));
    }
}
