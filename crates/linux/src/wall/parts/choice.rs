//! The choice of how many threads move a network.

use twinnet_lab::network::NetworkSpec;
use twinnet_lab::partition::{partition, Partition};
use twinnet_lab::protocol::FabricThreads;
use twinnet_units::Duration;

/// The most that are taken unasked.
const MOST_UNASKED: usize = 8;
/// Processors for each thread that is taken unasked: a loop, the thread beside it that hands frames over, and the
/// network stacks and programs of its hosts.
const PROCESSORS_PER_THREAD: usize = 4;
/// The least delay of a link that is cut unasked, both ways: the other thread then hears of a frame well before it is
/// due, also where it has to be woken for it.
const LEAST_DELAY: Duration = Duration::from_us(50);

/// Divides `spec` as it is asked for; returns also why it is so.
pub(super) fn divide(asked: FabricThreads, spec: &NetworkSpec) -> (Partition, String) {
    divide_on(asked, spec, Processors::of_this_machine())
}

fn divide_on(asked: FabricThreads, spec: &NetworkSpec, processors: Processors) -> (Partition, String) {
    let (wanted, least_delay, mut why) = match asked {
        FabricThreads::Wanted(wanted) => (wanted, Duration::ZERO, format!("{wanted} asked for")),
        FabricThreads::Auto => {
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

/// Processors that this process may use, and how many others were busy in the last minute.
#[derive(Clone, Copy, Debug)]
struct Processors {
    all: usize,
    busy: usize,
}

impl Processors {
    /// Returns how many threads there are for, and why.
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

/// Returns how many threads a network that can be divided has on this machine now when nothing is asked for, and why.
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
    fn threads_follow_the_processors_that_are_free() {
        let spec = chain(8, 100);
        let parts = |all, busy| divide_on(FabricThreads::Auto, &spec, Processors { all, busy }).0.parts();
        assert_eq!([parts(1, 0), parts(2, 0), parts(4, 0), parts(8, 0), parts(16, 0)], [1, 1, 1, 2, 4]);
        assert_eq!([parts(16, 5), parts(16, 16), parts(16, 40), parts(128, 0)], [2, 1, 1, 8]);
    }

    #[test]
    fn links_without_a_delay_are_cut_only_for_those_who_ask() {
        let (spec, processors) = (chain(4, 49), Processors { all: 16, busy: 0 });
        let (unasked, why) = divide_on(FabricThreads::Auto, &spec, processors);
        assert_eq!(unasked.parts(), 1);
        assert!(why.contains("16 of 16 are free") && why.contains("a delay of 50 us"), "{why}");
        let (asked, why) = divide_on(FabricThreads::Wanted(2), &spec, processors);
        assert_eq!((asked.parts(), why.as_str()), (2, "2 asked for"));
    }
}
