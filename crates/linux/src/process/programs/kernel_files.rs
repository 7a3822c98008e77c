//! What programs of a host may set of the kernel: what is the host's own network's, and nothing of the machine's.
//!
//! Files of `/proc/sys` and `/sys` that are no network's change the whole machine. The kernel leaves them to the
//! machine's root, and root in a lab that root has started is that. There they are read-only, so that a `sysctl` of a
//! script is refused. An ordinary user's are refused by the kernel.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
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

/// Mounts the tree of control groups in a fresh `/sys` that has a place for it, for reading alone: what a quota takes
/// from the programs of a script is told there. `there` is a descriptor of its folder from before that was covered.
///
/// # Errors
/// What the kernel says; before 5.12 it has no such call.
pub fn show_control_groups(there: BorrowedFd<'_>) -> io::Result<()> {
    let empty = c"".as_ptr();
    let all = libc::AT_RECURSIVE | libc::AT_EMPTY_PATH;
    // SAFETY: all zeros is a valid `mount_attr`.
    let mut attributes: libc::mount_attr = unsafe { std::mem::zeroed() };
    attributes.attr_set = libc::MOUNT_ATTR_RDONLY;
    // SAFETY: system calls with texts and a structure that live until they return; each result is checked, and the
    // descriptor of the copied tree belongs to nobody else.
    unsafe {
        let copy = libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC | all as libc::c_uint;
        let tree = checked(libc::syscall(libc::SYS_open_tree, there.as_raw_fd(), empty, copy))?;
        let tree = OwnedFd::from_raw_fd(tree as i32);
        let (from, length) = (tree.as_raw_fd(), size_of_val(&attributes));
        checked(libc::syscall(libc::SYS_mount_setattr, from, empty, all, &raw mut attributes, length))?;
        let (to, flags) = (c"/sys/fs/cgroup".as_ptr(), libc::MOVE_MOUNT_F_EMPTY_PATH);
        checked(libc::syscall(libc::SYS_move_mount, from, empty, libc::AT_FDCWD, to, flags))?;
    }
    Ok(())
}

fn checked(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

fn make_read_only(mounted: &Path) -> io::Result<()> {
    Ok(mount_remount(mounted, kept_flags(mounted)? | MountFlags::BIND | MountFlags::RDONLY, "")?)
}
