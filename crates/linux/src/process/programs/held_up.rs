//! What held up the programs of hosts and no other count shows: signals that stopped them, and sockets that had no room
//! for what arrived.

use std::collections::{BTreeMap, HashMap};
use std::fs::read_to_string;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::thread::{move_into_link_name_space, LinkNameSpaceType};
use serde_json::{json, Value};

/// Programs that a signal stopped, since the record of fidelity began.
#[derive(Debug, Default)]
pub(super) struct Stops {
    count: u64,
    longest: Duration,
    /// The program of the longest.
    program: String,
    /// Since when jobs are stopped that are so now, and their programs.
    open: HashMap<u64, (Instant, String)>,
}

impl Stops {
    pub(super) fn stopped(&mut self, job: u64, program: &str) {
        self.open.entry(job).or_insert_with(|| (Instant::now(), program.to_owned()));
    }

    /// The job goes on after it was stopped for so long as its host's first process saw it; `None` if it ended.
    pub(super) fn went_on(&mut self, job: u64, stopped: Option<Duration>) {
        let Some((since, program)) = self.open.remove(&job) else { return };
        // A record that began meanwhile tells of what came after that.
        let longest = since.elapsed();
        self.count += 1;
        self.note(stopped.map_or(longest, |stopped| stopped.min(longest.max(Duration::from_millis(1)))), program);
    }

    fn note(&mut self, stopped: Duration, program: String) {
        if stopped > self.longest || self.program.is_empty() {
            (self.longest, self.program) = (stopped, program);
        }
    }

    pub(super) fn forget(&mut self) {
        let open = self.open.drain().map(|(job, (_, program))| (job, (Instant::now(), program))).collect();
        *self = Self { open, ..Self::default() };
    }

    pub(super) fn to_json(&self) -> Value {
        let open = self.open.values().map(|(since, program)| (since.elapsed(), program));
        let (longest, program) =
            open.chain([(self.longest, &self.program)]).max().unwrap_or((self.longest, &self.program));
        let count = self.count + self.open.len() as u64;
        let longest_ps = u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX).saturating_mul(1000);
        json!({"count": count, "longest_ps": longest_ps, "program": program})
    }
}

/// The datagrams that the sockets of each of these hosts had no room for, since the host began; `None` where the kernel
/// does not tell.
pub(super) fn dropped_datagrams<'a>(
    networks: impl Iterator<Item = (&'a String, &'a OwnedFd)> + Send,
) -> Option<BTreeMap<String, u64>> {
    // A thread of its own enters the hosts' networks: the caller stays where it is.
    std::thread::scope(|scope| {
        let asking = std::thread::Builder::new().name("sockets".to_owned()).spawn_scoped(scope, || {
            let of_host = |(name, network): (&String, &OwnedFd)| Some((name.clone(), dropped_in(network).ok()?));
            networks.map(of_host).collect()
        });
        asking.ok()?.join().ok()?
    })
}

/// The same of one network; the calling thread stays in it.
fn dropped_in(network: &OwnedFd) -> io::Result<u64> {
    move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?;
    let version_4 = read_to_string("/proc/thread-self/net/snmp")?;
    // A kernel without IPv6 has no such file.
    let version_6 = read_to_string("/proc/thread-self/net/snmp6").unwrap_or_default();
    dropped_in_version_4(&version_4)
        .map(|dropped| dropped + dropped_in_version_6(&version_6))
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
}

/// Two lines a protocol: the names of its counters, and their values.
fn dropped_in_version_4(told: &str) -> Option<u64> {
    let mut lines = told.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let (names, values) = (lines.next()?, lines.next()?);
    let counters: HashMap<&str, u64> =
        names.split_whitespace().zip(values.split_whitespace().filter_map(|value| value.parse().ok())).collect();
    Some(counters.get("RcvbufErrors")? + counters.get("MemErrors").copied().unwrap_or(0))
}

/// A counter a line.
fn dropped_in_version_6(told: &str) -> u64 {
    let of = |name: &str| told.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    of("Udp6RcvbufErrors").unwrap_or(0) + of("Udp6MemErrors").unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sockets_had_no_room_for_is_read_of_both_versions() {
        let told = "Icmp: InMsgs\nIcmp: 3\nUdp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors \
                    InCsumErrors IgnoredMulti MemErrors\nUdp: 100 1 9 50 7 0 0 0 2\nUdpLite: InDatagrams\nUdpLite: 0\n";
        assert_eq!(dropped_in_version_4(told), Some(9));
        assert_eq!(dropped_in_version_4("Tcp: A\nTcp: 1\n"), None);
        assert_eq!(dropped_in_version_6("Udp6InErrors    3\nUdp6RcvbufErrors \t4\nUdpLite6RcvbufErrors 8\n"), 4);
    }

    #[test]
    fn the_longest_stop_is_told_also_while_it_lasts() {
        let mut stops = Stops::default();
        stops.stopped(1, "sleep");
        stops.open.get_mut(&1).unwrap().0 -= Duration::from_millis(30);
        assert!(stops.to_json()["longest_ps"].as_u64().unwrap() >= 30_000_000_000, "{stops:?}");
        stops.went_on(1, Some(Duration::from_millis(25)));
        stops.stopped(2, "cat");
        stops.went_on(2, None);
        let told = stops.to_json();
        assert_eq!((&told["count"], &told["program"]), (&json!(2), &json!("sleep")));
        assert_eq!(told["longest_ps"], json!(25_000_000_000_u64));
        stops.stopped(3, "cat");
        stops.forget();
        assert!(stops.to_json()["longest_ps"].as_u64().unwrap() < 10_000_000_000, "{stops:?}");
        assert_eq!(stops.to_json()["count"], json!(1));
    }
}
