//! What labs need beside namespaces: interfaces of the machine, and Open vSwitch.

use std::env;
use std::path::Path;

use super::Finding;
use crate::interface::open_packet_socket;
use crate::open_vswitch::kernel_has_datapath;

/// Open vSwitch's programs, as a lab uses them.
const PROGRAMS: [&str; 5] = ["ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl", "ovs-ofctl"];
/// Folders of system programs, which an ordinary user's search path lacks.
const SYSTEM_FOLDERS: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/local/sbin", "/usr/local/bin"];

/// What was found.
pub fn findings() -> Vec<Finding> {
    vec![real_interfaces(), open_vswitch(), kernel_datapath()]
}

fn real_interfaces() -> Finding {
    const ABILITY: &str = "interfaces of the machine";
    match open_packet_socket() {
        Ok(_) => Finding::good(
            ABILITY,
            "a packet socket was opened",
            "they can be ends of links, and ports of `twinnet switch`",
        ),
        Err(error) => Finding::bad(
            ABILITY,
            error.to_string(),
            "they cannot be part of a lab; all else can",
            "run as root (sudo), or in a container with --cap-add NET_RAW",
        ),
    }
}

fn open_vswitch() -> Finding {
    const ABILITY: &str = "Open vSwitch";
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<_> = env::split_paths(&path).chain(SYSTEM_FOLDERS.map(Into::into)).collect();
    let is_there = |program: &&str| folders.iter().any(|folder| Path::new(folder).join(program).is_file());
    let missing: Vec<&str> = PROGRAMS.into_iter().filter(|program| !is_there(program)).collect();
    if missing.is_empty() {
        Finding::good(ABILITY, "its programs are installed", "switches can be it, by its userspace datapath (netdev)")
    } else {
        Finding::bad(
            ABILITY,
            format!("not installed: {}", missing.join(", ")),
            "switches are those of the fabric only",
            "apt install openvswitch-switch (Debian, Ubuntu), where it is wanted",
        )
    }
}

fn kernel_datapath() -> Finding {
    const ABILITY: &str = "Open vSwitch's kernel datapath";
    if kernel_has_datapath() {
        Finding::good(ABILITY, "the kernel has it", "switches that are Open vSwitch can use it (system)")
    } else {
        Finding::bad(
            ABILITY,
            "the kernel lacks it",
            "switches that are Open vSwitch use the one in user space (netdev)",
            "modprobe openvswitch, where it is wanted and the kernel was built with it",
        )
    }
}
