//! What programs of a host may set of the kernel: what is the host's own network's, and nothing of the machine's.
//!
//! Files of `/proc/sys` and `/sys` that are no network's change the whole machine. The kernel leaves them to the
//! machine's root, and root in a lab that root has started is that. There they are read-only, so that a `sysctl` of a
//! script is refused. An ordinary user's are refused by the kernel.

use std::io;
use std::path::Path;

use rustix::fs::{access, open, Access, Mode, OFlags};
use rustix::mount::{mount_bind, mount_remount, MountFlags};

use super::image::{kept_flags, path_of};

/// What a host's own network has.
const OF_NETWORK: [&str; 2] = ["/proc/sys/net", "/sys/devices/virtual/net"];
/// What the whole machine has, of `/proc`.
const OF_MACHINE: [&str; 9] = [
    "/proc/sys",
    "/proc/sysrq-trigger",
    "/proc/irq",
    "/proc/bus",
    "/proc/fs",
    "/proc/acpi",
    "/proc/scsi",
    "/proc/mtrr",
    "/proc/latency_stats",
];

/// Makes what is the machine's in a `/proc` that was just mounted, in a mount namespace of the caller's own, read-only.
///
/// # Errors
/// What the kernel says to such a mount.
pub fn keep_proc() -> io::Result<()> {
    if access("/proc/sys/kernel/panic", Access::WRITE_OK).is_err() {
        return Ok(());
    }
    let network = open(OF_NETWORK[0], OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    for path in OF_MACHINE.iter().map(Path::new).filter(|path| path.exists()) {
        mount_bind(path, path)?;
        make_read_only(path)?;
    }
    Ok(mount_bind(path_of(&network), OF_NETWORK[0])?)
}

/// The same of a `/sys`.
///
/// # Errors
/// What the kernel says to such a mount.
pub fn keep_sys() -> io::Result<()> {
    if access("/sys/kernel", Access::WRITE_OK).is_err() {
        return Ok(());
    }
    if Path::new(OF_NETWORK[1]).exists() {
        mount_bind(OF_NETWORK[1], OF_NETWORK[1])?;
    }
    make_read_only(Path::new("/sys"))
}

fn make_read_only(mounted: &Path) -> io::Result<()> {
    Ok(mount_remount(mounted, kept_flags(mounted)? | MountFlags::BIND | MountFlags::RDONLY, "")?)
}
