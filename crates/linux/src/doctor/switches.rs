//! The abilities that labs need beside namespaces: interfaces of the machine, and Open vSwitch.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::Finding;
use crate::kernel::interface::open_packet_socket;
use crate::kernel::open_vswitch::kernel_has_datapath;

/// Open vSwitch's programs, as a lab uses them.
const PROGRAMS: [&str; 5] = ["ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl", "ovs-ofctl"];
/// Folders of system programs, which an ordinary user's search path lacks.
const SYSTEM_FOLDERS: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/local/sbin", "/usr/local/bin"];

/// Returns the findings.
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
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<_> = env::split_paths(&path).chain(SYSTEM_FOLDERS.map(Into::into)).collect();
    open_vswitch_in(&folders)
}

fn open_vswitch_in(folders: &[PathBuf]) -> Finding {
    const ABILITY: &str = "Open vSwitch";
    let failing: Vec<String> =
        PROGRAMS.into_iter().filter_map(|program| Some(format!("{program} {}", failure(folders, program)?))).collect();
    if failing.is_empty() {
        Finding::good(ABILITY, "its programs run", "switches can be it, by its userspace datapath (netdev)")
    } else {
        Finding::bad(
            ABILITY,
            failing.join(", "),
            "switches are those of the fabric only",
            "apt install openvswitch-switch (Debian, Ubuntu), where it is wanted",
        )
    }
}

/// Why the first program of that name does not run; `None`: it tells its version.
fn failure(folders: &[PathBuf], program: &str) -> Option<String> {
    let Some(path) = folders.iter().map(|folder| folder.join(program)).find(|path| path.is_file()) else {
        return Some("is not installed".to_owned());
    };
    let quiet =
        Command::new(path).arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    match quiet {
        Ok(status) if status.success() => None,
        Ok(status) => Some(format!("fails ({status})")),
        Err(error) => Some(format!("does not start ({error})")),
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn programs_that_are_there_but_do_not_run_are_no_ability() {
        let folder = env::temp_dir().join(format!("twinnet-doctor-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder for programs");
        for (program, text) in PROGRAMS.into_iter().zip(["#!/bin/sh\nexit 0\n"; 5]) {
            let path = folder.join(program);
            fs::write(&path, text).expect("a program");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it may run");
        }
        let folders = [folder.clone()];
        assert!(open_vswitch_in(&folders).ok);
        fs::write(folder.join("ovs-vswitchd"), "#!/bin/sh\nexit 127\n").expect("a program that fails");
        fs::remove_file(folder.join("ovs-ofctl")).expect("a program that is missing");
        let finding = open_vswitch_in(&folders);
        fs::remove_dir_all(&folder).expect("the folder goes");
        assert!(!finding.ok, "{finding:?}");
        assert!(finding.found.contains("ovs-vswitchd fails") && finding.found.contains("ovs-ofctl is not installed"));
    }
}
