//! Limits on what a lab may hold, and what its hosts' kernel offers.

use std::fs;

use super::Finding;

/// Descriptors that one host takes: its interface, its namespace twice.
const FILES_PER_HOST: u64 = 3;
/// Descriptors that a lab takes for itself, with room for apps' sockets.
const FILES_OF_LAB: u64 = 200;
/// Hosts that a machine should permit.
const HOSTS_WANTED: u64 = 1024;
/// Open files that a root owner gives to its lab.
const ROOT_FILES: u64 = 1 << 20;

/// What was found.
pub fn findings() -> Vec<Finding> {
    vec![open_files(), namespace_limit(), congestion_controls()]
}

fn open_files() -> Finding {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for the kernel to fill.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    let files = if rustix::process::geteuid().is_root() { limit.rlim_max.max(ROOT_FILES) } else { limit.rlim_max };
    open_files_of(files)
}

fn open_files_of(files: u64) -> Finding {
    const ABILITY: &str = "open files";
    let hosts = files.saturating_sub(FILES_OF_LAB) / FILES_PER_HOST;
    let found = format!("a lab may open {files}");
    let follows = format!("that is enough for {hosts} hosts with one interface each");
    if hosts >= HOSTS_WANTED {
        Finding::good(ABILITY, found, follows)
    } else {
        Finding::bad(
            ABILITY,
            found,
            follows,
            "raise the hard limit: \"USER - nofile 20000\" in /etc/security/limits.conf, then log in again",
        )
    }
}

fn namespace_limit() -> Finding {
    const ABILITY: &str = "number of namespaces";
    let limit =
        fs::read_to_string("/proc/sys/user/max_net_namespaces").ok().and_then(|text| text.trim().parse::<u64>().ok());
    match limit {
        Some(limit) if limit > HOSTS_WANTED => {
            Finding::good(ABILITY, format!("user.max_net_namespaces is {limit}"), "every host takes one")
        }
        Some(limit) => Finding::bad(
            ABILITY,
            format!("user.max_net_namespaces is {limit}"),
            format!("all labs of a user together can have {} hosts", limit.saturating_sub(1)),
            "sysctl user.max_net_namespaces=20000",
        ),
        None => Finding::good(ABILITY, "the kernel tells no limit", "every host takes one"),
    }
}

fn congestion_controls() -> Finding {
    const ABILITY: &str = "TCP congestion controls";
    let read = |name: &str| {
        fs::read_to_string(format!("/proc/sys/net/ipv4/tcp_{name}_congestion_control")).unwrap_or_default()
    };
    let (available, allowed) = (read("available"), read("allowed"));
    let found = format!("available: {}; for every user: {}", available.trim(), allowed.trim());
    if available.split_whitespace().any(|name| name == "cubic") {
        Finding::good(ABILITY, found, "programs in hosts can use those that are available")
    } else {
        let follows = "studies that compare with CUBIC cannot run with real hosts";
        Finding::bad(
            ABILITY,
            found,
            follows,
            "modprobe tcp_cubic (and tcp_bbr), then sysctl net.ipv4.tcp_allowed_congestion_control",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_low_limit_of_files_is_told_in_hosts() {
        let finding = open_files_of(1024);
        assert!(!finding.ok && finding.follows.contains("274 hosts"), "{finding:?}");
        assert!(open_files_of(20_000).ok);
    }
}
