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
    /// Of all that are over.
    total: Duration,
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
        let stopped = stopped.map_or(longest, |stopped| stopped.min(longest.max(Duration::from_millis(1))));
        self.count += 1;
        self.total += stopped;
        self.note(stopped, program);
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
        let total = self.total + self.open.values().map(|(since, _)| since.elapsed()).sum::<Duration>();
        let ps = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).saturating_mul(1000);
        json!({"count": count, "total_ps": ps(total), "longest_ps": ps(longest), "program": program})
    }
}

/// Datagrams that came to the sockets of a host, since the host began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Datagrams {
    /// That its sockets had no room for.
    pub(super) dropped: u64,
    /// That were read from them.
    pub(super) read: u64,
}

impl Datagrams {
    pub(super) const fn since(self, before: Self) -> Self {
        Self { dropped: self.dropped.saturating_sub(before.dropped), read: self.read.saturating_sub(before.read) }
    }

    const fn plus(self, other: Self) -> Self {
        Self { dropped: self.dropped + other.dropped, read: self.read + other.read }
    }
}

/// The datagrams of each of these hosts; `None` where the kernel does not tell.
pub(super) fn datagrams<'a>(
    networks: impl Iterator<Item = (&'a String, &'a OwnedFd)> + Send,
) -> Option<BTreeMap<String, Datagrams>> {
    // A thread of its own enters the hosts' networks: the caller stays where it is.
    std::thread::scope(|scope| {
        let asking = std::thread::Builder::new().name("sockets".to_owned()).spawn_scoped(scope, || {
            let of_host = |(name, network): (&String, &OwnedFd)| Some((name.clone(), datagrams_in(network).ok()?));
            networks.map(of_host).collect()
        });
        asking.ok()?.join().ok()?
    })
}

/// The same of one network; the calling thread stays in it.
fn datagrams_in(network: &OwnedFd) -> io::Result<Datagrams> {
    move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?;
    let version_4 = read_to_string("/proc/thread-self/net/snmp")?;
    // A kernel without IPv6 has no such file.
    let version_6 = read_to_string("/proc/thread-self/net/snmp6").unwrap_or_default();
    in_version_4(&version_4)
        .map(|datagrams| datagrams.plus(in_version_6(&version_6)))
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
}

/// Two lines a protocol: the names of its counters, and their values.
fn in_version_4(told: &str) -> Option<Datagrams> {
    let mut lines = told.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let (names, values) = (lines.next()?, lines.next()?);
    let counters: HashMap<&str, u64> =
        names.split_whitespace().zip(values.split_whitespace().filter_map(|value| value.parse().ok())).collect();
    let dropped = counters.get("RcvbufErrors")? + counters.get("MemErrors").copied().unwrap_or(0);
    Some(Datagrams { dropped, read: *counters.get("InDatagrams")? })
}

/// A counter a line.
fn in_version_6(told: &str) -> Datagrams {
    let of = |name: &str| told.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    let of = |name: &str| of(name).unwrap_or(0);
    Datagrams { dropped: of("Udp6RcvbufErrors") + of("Udp6MemErrors"), read: of("Udp6InDatagrams") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sockets_had_no_room_for_is_read_of_both_versions() {
        let told = "Icmp: InMsgs\nIcmp: 3\nUdp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors \
                    InCsumErrors IgnoredMulti MemErrors\nUdp: 100 1 9 50 7 0 0 0 2\nUdpLite: InDatagrams\nUdpLite: 0\n";
        assert_eq!(in_version_4(told), Some(Datagrams { dropped: 9, read: 100 }));
        assert_eq!(in_version_4("Tcp: A\nTcp: 1\n"), None);
        let told = "Udp6InDatagrams 5\nUdp6InErrors    3\nUdp6RcvbufErrors \t4\nUdpLite6RcvbufErrors 8\n";
        assert_eq!(in_version_6(told), Datagrams { dropped: 4, read: 5 });
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
        assert!((25_000_000_000..26_000_000_000).contains(&told["total_ps"].as_u64().unwrap()), "{told}");
        stops.stopped(3, "cat");
        stops.forget();
        assert!(stops.to_json()["longest_ps"].as_u64().unwrap() < 10_000_000_000, "{stops:?}");
        assert_eq!(stops.to_json()["count"], json!(1));
    }
}
