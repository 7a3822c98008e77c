//! Namespaces, interfaces and mounts.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::mount::{mount, mount_change, MountFlags, MountPropagationFlags};

use super::probe::in_child;
use super::Finding;
use crate::kernel::interface::{bind_packet_socket, interface_index, open_packet_socket, open_tap};
use crate::kernel::namespace::own_network_namespace;
use crate::kernel::netlink::{Netlink, Pair};

/// Namespaces that are made to take the time of one.
const TIMED_NAMESPACES: u32 = 20;
/// Time of one namespace above which large labs start slowly.
const SLOW_NAMESPACE_MS: f64 = 5.0;

/// Returns the findings.
pub fn findings() -> Vec<Finding> {
    let (network, slow) = network(timed_namespaces());
    let mut found = vec![user(), network, own_proc(), tap(), packet()];
    found.extend(slow);
    found
}

fn user() -> Finding {
    const ABILITY: &str = "user namespaces";
    match in_child(libc::CLONE_NEWNS, || Ok("one was created".to_owned())) {
        Ok(found) => Finding::good(ABILITY, found, "labs run without root"),
        Err(error) => Finding::bad(
            ABILITY,
            error,
            "no lab can run: each is made of namespaces of its own",
            "sysctl kernel.unprivileged_userns_clone=1 (Debian), kernel.apparmor_restrict_unprivileged_userns=0 \
             (Ubuntu), user.max_user_namespaces above 0; in a container, a seccomp profile that permits unshare and \
             clone3",
        ),
    }
}

/// The milliseconds that it takes to make a network namespace.
fn timed_namespaces() -> Result<String, String> {
    in_child(libc::CLONE_NEWNET, || {
        let began = Instant::now();
        let mut held: Vec<OwnedFd> = Vec::new();
        for _ in 0..TIMED_NAMESPACES {
            // SAFETY: the child has one thread; its namespaces are its own affair.
            if unsafe { libc::unshare(libc::CLONE_NEWNET) } < 0 {
                return Err(io::Error::last_os_error().to_string());
            }
            held.push(own_network_namespace().map_err(|error| error.to_string())?);
        }
        Ok(format!("{:.3}", began.elapsed().as_secs_f64() * 1e3 / f64::from(TIMED_NAMESPACES)))
    })
}

/// Whether there are network namespaces, and, where making them takes long, that it does: a busy machine runs labs.
fn network(timed: Result<String, String>) -> (Finding, Option<Finding>) {
    const ABILITY: &str = "network namespaces";
    match timed {
        Ok(time) => {
            let found = format!("created in {time} ms each");
            let slow = time.parse().is_ok_and(|time: f64| time > SLOW_NAMESPACE_MS).then(|| {
                Finding::bad(
                    "network namespaces within 5 ms",
                    found.clone(),
                    "large labs start slowly",
                    "look whether the machine is busy, or its kernel has debugging options on",
                )
            });
            (Finding::good(ABILITY, found, "every host of a lab is one"), slow)
        }
        Err(error) => {
            let remedy = "raise user.max_net_namespaces (sysctl)";
            (Finding::bad(ABILITY, error, "no lab can run: every host is one", remedy), None)
        }
    }
}

fn own_proc() -> Finding {
    const ABILITY: &str = "/proc and /sys of one's own";
    let mounted = in_child(libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWNET, || {
        in_child(0, || {
            let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
            let refused = |what: &str, error: rustix::io::Errno| format!("{what}: {error}");
            mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
                .map_err(|error| refused("private mounts", error))?;
            mount("sysfs", "/sys", "sysfs", flags, None).map_err(|error| refused("/sys", error))?;
            mount("proc", "/proc", "proc", flags, None).map_err(|error| refused("/proc", error))?;
            Ok("mounted in new PID and network namespaces".to_owned())
        })
    });
    match mounted {
        Ok(found) => Finding::good(ABILITY, found, "programs in hosts see their own processes and interfaces"),
        Err(error) => Finding::bad(
            ABILITY,
            error,
            "no lab can run",
            "container engines mask parts of /proc and /sys: start the container with --security-opt \
             systempaths=unconfined (Podman: unmask=ALL), or run outside of it",
        ),
    }
}

fn tap() -> Finding {
    const ABILITY: &str = "TAP interfaces";
    let opened = in_child(libc::CLONE_NEWNET, || {
        open_tap("probe")
            .map_err(|error| format!("/dev/net/tun: {error}"))
            .map(|_| "opened with virtio headers and offloads".to_owned())
    });
    match opened {
        Ok(found) => Finding::good(ABILITY, found, "hosts' interfaces are TAPs, the fastest kind"),
        Err(error) => Finding::bad(
            ABILITY,
            error,
            "hosts' interfaces are virtual Ethernet pairs, which cost more",
            "modprobe tun; chmod 666 /dev/net/tun; in a container, --device /dev/net/tun",
        ),
    }
}

fn packet() -> Finding {
    const ABILITY: &str = "virtual Ethernet pairs with packet sockets";
    let made = in_child(libc::CLONE_NEWNET, || {
        let text = |error: io::Error| error.to_string();
        let own = own_network_namespace().map_err(text)?;
        let mut netlink = Netlink::open().map_err(text)?;
        netlink.create_pair(&Pair {
            name: "probe0",
            index: 100,
            peer_name: "probe1",
            peer_index: 101,
            peer_namespace: &own,
            mtu: 1500,
        });
        netlink.commit().map_err(|(what, error)| format!("{what}: {error}"))?;
        let socket = open_packet_socket().map_err(text)?;
        bind_packet_socket(&socket, interface_index("probe1").map_err(text)?).map_err(text)?;
        Ok("created, bound with virtio headers".to_owned())
    });
    match made {
        Ok(found) => Finding::good(ABILITY, found, "they take the place of TAPs where these are not permitted"),
        Err(error) => {
            Finding::bad(ABILITY, error, "where TAPs are not permitted, no lab can run", "modprobe veth af_packet")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_is_busy_has_network_namespaces_and_is_told_that_they_take_long() {
        let (there, slow) = network(Ok("2.000".to_owned()));
        assert!(there.ok && slow.is_none());
        let (there, slow) = network(Ok("6.000".to_owned()));
        assert!(there.ok && slow.is_some_and(|slow| !slow.ok));
        let (there, slow) = network(Err("no".to_owned()));
        assert!(!there.ok && slow.is_none());
    }
}
