//! Limits on what a lab may hold, and what its hosts' kernel offers: tried by holding as much, in a child.

use std::fs::{self, File};
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketType};

use super::probe::in_child;
use super::Finding;

/// Descriptors that one host takes: its interface, its namespace twice.
const FILES_PER_HOST: u64 = 3;
/// Descriptors that a lab takes for itself, with room for apps' sockets.
const FILES_OF_LAB: u64 = 200;
/// Hosts that a machine should permit.
const HOSTS_WANTED: u64 = 1024;
/// Descriptors that so many hosts take.
const FILES_WANTED: u64 = HOSTS_WANTED * FILES_PER_HOST + FILES_OF_LAB;
/// Open files that a root owner gives to its lab.
const ROOT_FILES: u64 = 1 << 20;
/// Network namespaces that are made at once to see that it works.
const NAMESPACES_TRIED: usize = 4;

/// Returns the findings.
pub fn findings() -> Vec<Finding> {
    vec![open_files(), namespace_limit(), congestion_controls()]
}

/// Opens as many files as it is permitted, `FILES_WANTED` at most.
fn open_many() -> Result<u64, String> {
    in_child(0, || {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: `limit` is valid for the kernel to fill.
        unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
        // As a lab does: root may go above its hard limit, others go up to it.
        let root = libc::rlimit { rlim_cur: ROOT_FILES, rlim_max: limit.rlim_max.max(ROOT_FILES) };
        // SAFETY: both limits are valid for the kernel to read; they are those of this child alone.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const root) } < 0 {
            limit.rlim_cur = limit.rlim_max;
            // SAFETY: as above.
            unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
        }
        let first = File::open("/dev/null").map_err(|error| error.to_string())?;
        let mut held: Vec<OwnedFd> = vec![first.into()];
        while (held.len() as u64) < FILES_WANTED {
            match held[0].try_clone() {
                Ok(another) => held.push(another),
                Err(_) => break,
            }
        }
        Ok(held.len().to_string())
    })?
    .parse()
    .map_err(|_| "the probe gave no number".to_owned())
}

fn open_files() -> Finding {
    match open_many() {
        Ok(files) => open_files_of(files),
        Err(error) => Finding::bad("open files", error, "labs of many hosts may fail", "raise the limit (ulimit -n)"),
    }
}

fn open_files_of(files: u64) -> Finding {
    const ABILITY: &str = "open files";
    let hosts = files.saturating_sub(FILES_OF_LAB) / FILES_PER_HOST;
    let follows = format!("that is enough for {hosts} hosts with one interface each");
    if hosts >= HOSTS_WANTED {
        Finding::good(ABILITY, format!("{files} were opened at once"), follows)
    } else {
        Finding::bad(
            ABILITY,
            format!("only {files} could be opened at once"),
            follows,
            "raise the hard limit: \"USER - nofile 20000\" in /etc/security/limits.conf, then log in again",
        )
    }
}

/// Makes some network namespaces and holds them all.
fn hold_namespaces() -> Result<String, String> {
    in_child(libc::CLONE_NEWNET, || {
        let mut held = Vec::new();
        for made in 1..=NAMESPACES_TRIED {
            held.push(File::open("/proc/self/ns/net").map_err(|error| error.to_string())?);
            // SAFETY: the child has one thread; its namespaces are its own affair.
            if made < NAMESPACES_TRIED && unsafe { libc::unshare(libc::CLONE_NEWNET) } < 0 {
                return Err(format!("after {made}: {}", std::io::Error::last_os_error()));
            }
        }
        Ok(format!("{} network namespaces were made at once", held.len()))
    })
}

fn namespace_limit() -> Finding {
    const ABILITY: &str = "number of namespaces";
    let limit =
        fs::read_to_string("/proc/sys/user/max_net_namespaces").ok().and_then(|text| text.trim().parse::<u64>().ok());
    namespace_limit_of(ABILITY, hold_namespaces(), limit)
}

/// It does not make so many as a large lab has, as that takes a second: the kernel's limit tells.
fn namespace_limit_of(ability: &'static str, tried: Result<String, String>, limit: Option<u64>) -> Finding {
    const REMEDY: &str = "sysctl user.max_net_namespaces=20000";
    let tried = match tried {
        Ok(tried) => tried,
        Err(error) => return Finding::bad(ability, error, "labs with real hosts cannot be made", REMEDY),
    };
    match limit {
        Some(limit) if limit > HOSTS_WANTED => {
            Finding::good(ability, format!("{tried}; user.max_net_namespaces is {limit}"), "every host takes one")
        }
        Some(limit) => Finding::bad(
            ability,
            format!("{tried}; user.max_net_namespaces is {limit}"),
            format!("all labs of a user together can have {} hosts", limit.saturating_sub(1)),
            REMEDY,
        ),
        None => Finding::good(ability, format!("{tried}; the kernel tells no limit"), "every host takes one"),
    }
}

/// Returns `true` if a socket of this user takes the congestion control `name`.
fn is_taken(name: &str) -> bool {
    let Ok(socket) = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None) else { return false };
    let length = libc::socklen_t::try_from(name.len()).unwrap_or(0);
    // SAFETY: the kernel reads `length` bytes of `name`.
    let set = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_CONGESTION, name.as_ptr().cast(), length)
    };
    set == 0
}

fn congestion_controls() -> Finding {
    let available = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
        .unwrap_or_else(|_| "cubic".to_owned());
    let (taken, refused): (Vec<&str>, Vec<&str>) = available.split_whitespace().partition(|name| is_taken(name));
    congestion_controls_of(&taken, &refused)
}

fn congestion_controls_of(taken: &[&str], refused: &[&str]) -> Finding {
    const ABILITY: &str = "TCP congestion controls";
    let list = |names: &[&str]| if names.is_empty() { "none".to_owned() } else { names.join(" ") };
    let found = format!("a socket took: {}; refused: {}", list(taken), list(refused));
    if taken.contains(&"cubic") {
        Finding::good(ABILITY, found, "programs in hosts can use those that a socket took")
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
        assert!(open_files_of(FILES_WANTED).ok);
    }

    #[test]
    fn no_more_files_are_said_to_be_open_than_could_be_opened() {
        // A child whose hard limit is 300 and that may not raise it opens fewer than that.
        let opened = in_child(0, || {
            let few = libc::rlimit { rlim_cur: 300, rlim_max: 300 };
            // SAFETY: the limit is valid for the kernel to read, and that of this child alone.
            unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const few) };
            // SAFETY: root would go above the limit; nobody (65534) may not.
            unsafe { libc::setuid(65534) };
            open_many().map(|files| files.to_string())
        });
        let files: u64 = opened.expect("the probe answers").parse().expect("a number");
        assert!((1..300).contains(&files), "{files}");
    }

    #[test]
    fn namespaces_that_cannot_be_made_are_no_ability_whatever_the_limit_says() {
        let finding =
            namespace_limit_of("number of namespaces", Err("after 2: No space left".to_owned()), Some(1 << 20));
        assert!(!finding.ok && finding.found.contains("after 2"), "{finding:?}");
        assert!(namespace_limit_of("number of namespaces", Ok("4 were made".to_owned()), Some(1 << 20)).ok);
        assert!(!namespace_limit_of("number of namespaces", Ok("4 were made".to_owned()), Some(100)).ok);
    }

    #[test]
    fn a_congestion_control_that_no_socket_takes_is_told_as_refused() {
        assert!(is_taken("reno") && !is_taken("no_such_control"));
        let finding = congestion_controls_of(&["reno"], &["cubic"]);
        assert!(!finding.ok && finding.found.contains("refused: cubic"), "{finding:?}");
    }
}
