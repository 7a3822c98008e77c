//! A guest from the inside: its file systems and its hosts.

use std::fmt::Display;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{open, Mode, OFlags};
use rustix::mount::{mount, mount_bind, mount_move, mount_remount, MountFlags};
use rustix::thread::{move_into_link_name_space, LinkNameSpaceType, UnshareFlags};
use twinnet_lab::guest;
use twinnet_lab::network::{Attachment, HostSpec, NetworkSpec};
use twinnet_packet::Prefix;

use crate::guest::kernel::Given;
use crate::kernel::interface::{interface_index, transmit_queue_frames};
use crate::kernel::namespace::{own_network_namespace, set_parameters, LINK_LOCAL_BITS, ORPHAN_RETRIES};
use crate::kernel::netlink::{LinkSettings, Netlink, LOOPBACK};
use crate::process::programs::image::path_of;
use crate::service::{ErrorName, LabError};

/// What a kernel derives from the machine's memory (`tcp_init` and `inet_init_net` in Linux): TCP's buffers (least,
/// usual and greatest, in bytes), and how many connections may be half open, and wait after their end. These are those
/// of a machine with much memory, and not of the little that a guest has.
const OF_MUCH_MEMORY: [(&str, &str); 4] = [
    ("/proc/sys/net/ipv4/tcp_rmem", "4096 131072 33554432"),
    ("/proc/sys/net/ipv4/tcp_wmem", "4096 16384 4194304"),
    ("/proc/sys/net/ipv4/tcp_max_syn_backlog", "2048"),
    ("/proc/sys/net/ipv4/tcp_max_tw_buckets", "131072"),
];

/// Files of the machine that say which machine it is, or where it stands, and what stands there instead; `None`:
/// nothing does. Without `/etc/localtime` the time is UTC.
const OF_THE_MACHINE: [(&str, Option<&str>); 6] = [
    ("/etc/hostname", Some("twinnet\n")),
    ("/etc/localtime", None),
    ("/etc/machine-id", Some("7477696e6e6574207477696e6e657421\n")),
    ("/etc/resolv.conf", Some("")),
    ("/etc/timezone", Some("Etc/UTC\n")),
    ("/var/lib/dbus/machine-id", None),
];

/// Where the guest shows what was written in it.
const WRITTEN: &str = "/run/written";

/// Reads what the lab gives.
pub fn read(given: &Path) -> Result<Given, LabError> {
    let text = fs::read(given).map_err(|error| failed("reading the network", &error))?;
    serde_json::from_slice(&text).map_err(|error| failed("reading the network", &error))
}

pub fn failed(what: &str, error: &dyn Display) -> LabError {
    LabError::new(ErrorName::GuestNotBuilt, format!("in the guest: {what}: {error}"), "")
}

/// Gives the guest file systems of its own. It sees the files of the machine, and what it writes stays in its memory.
pub fn furnish() -> Result<(), LabError> {
    let none = MountFlags::empty();
    let put = |kind: &str, place: &str, options: Option<&std::ffi::CStr>| {
        mount(kind, place, kind, none, options).map_err(|error| failed(&format!("mounting {place}"), &error))
    };
    // Any folder serves to keep what is written.
    put("tmpfs", "/tmp", Some(c"mode=0755"))?;
    for folder in ["/tmp/upper", "/tmp/work", "/tmp/root"] {
        fs::create_dir(folder).map_err(|error| failed("making its own folders", &error))?;
    }
    put("overlay", "/tmp/root", Some(c"lowerdir=/,upperdir=/tmp/upper,workdir=/tmp/work"))?;
    let written = open("/tmp/upper", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
        .map_err(|error| failed("opening what is written", &error))?;
    // It lies upon the root of the mount namespace, as `switch_root` leaves it: who is rooted elsewhere may not make
    // user namespaces.
    rustix::process::chdir("/tmp/root")
        .and_then(|()| mount_move(".", "/"))
        .and_then(|()| rustix::process::chroot("."))
        .map_err(|error| failed("entering its own root", &error))?;
    put("proc", "/proc", None)?;
    put("sysfs", "/sys", None)?;
    put("devtmpfs", "/dev", None)?;
    put("tmpfs", "/run", Some(c"mode=0755"))?;
    let own = |error: io::Error| failed("making its own devices", &error);
    let folders = [
        ("/dev/pts", "devpts", None),
        ("/dev/shm", "tmpfs", Some(c"mode=1777")),
        // Programs that make user namespaces may mount these anew only where one is whole (`mount_too_revealing` in
        // Linux): hosts put files of their own into theirs.
        ("/run/whole/proc", "proc", None),
        ("/run/whole/sys", "sysfs", None),
    ];
    for (folder, kind, options) in folders {
        fs::create_dir_all(folder).map_err(own)?;
        put(kind, folder, options)?;
    }
    // What differs from the machine's files, for those who look for what programs have written.
    fs::create_dir(WRITTEN).map_err(own)?;
    mount_bind(path_of(&written), WRITTEN)
        .and_then(|()| mount_remount(WRITTEN, MountFlags::BIND | MountFlags::RDONLY, ""))
        .map_err(|error| failed(&format!("mounting {WRITTEN}"), &error))?;
    for (name, target) in [("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")] {
        std::os::unix::fs::symlink(format!("/proc/self/fd{target}"), format!("/dev/{name}")).map_err(own)?;
    }
    for (path, content) in OF_THE_MACHINE {
        let replace = || {
            // It may be a link to somewhere else.
            fs::remove_file(path).or_else(|error| match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(()),
                _ => Err(error),
            })?;
            content.map_or(Ok(()), |content| fs::write(path, content))
        };
        replace().map_err(|error: io::Error| failed(&format!("replacing {path}"), &error))?;
    }
    Ok(())
}

/// Builds the real hosts of `network`: their names and network namespaces.
pub fn hosts(network: &NetworkSpec) -> Result<Vec<(String, OwnedFd)>, LabError> {
    let attachments = network.attachments();
    let outside = own_network_namespace().map_err(|error| failed("opening its network namespace", &error))?;
    let mut cards = Netlink::open().map_err(|error| failed("opening a netlink socket", &error))?;
    // The card of the channel is the first.
    let mut card = 1;
    let mut built = Vec::new();
    for host in guest::hosts(network) {
        let enter = |what, error: rustix::io::Errno| failed(&format!("host {:?}: {what}", host.name), &error);
        // SAFETY: this process has one thread, and only its network namespace changes.
        unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }
            .map_err(|error| enter("creating its network namespace", error))?;
        let inside = own_network_namespace().map_err(|error| failed("opening a network namespace", &error))?;
        set_defaults().map_err(|(what, error)| failed(&format!("host {:?}: {what}", host.name), &error))?;
        let names = host.ports.iter().map(|port| port.name.as_str());
        for name in names {
            let from = format!("eth{card}");
            card += 1;
            move_into_link_name_space(outside.as_fd(), Some(LinkNameSpaceType::Network))
                .map_err(|error| enter("going back for its network card", error))?;
            let index = interface_index(&from).map_err(|error| failed(&format!("finding {from}"), &error))?;
            cards.hand_over(index, name, &inside);
            cards.commit().map_err(|(what, error)| failed(&what, &error))?;
        }
        move_into_link_name_space(inside.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(|error| enter("entering its network namespace", error))?;
        let attachment = |port| attachments.get(&(host.name.as_str(), port)).copied();
        build(host, attachment).map_err(|(what, error)| failed(&format!("host {:?}: {what}", host.name), &error))?;
        set_parameters(host, true)?;
        built.push((host.name.clone(), inside));
    }
    move_into_link_name_space(outside.as_fd(), Some(LinkNameSpaceType::Network))
        .map_err(|error| failed("going back to its network namespace", &error))?;
    Ok(built)
}

/// Sets what the namespace has that the process stands in. A card takes the defaults over when it comes.
fn set_defaults() -> Result<(), (String, io::Error)> {
    let write = |path: &str, value: &str| fs::write(path, value).map_err(|error| (format!("setting {path}"), error));
    write("/proc/sys/net/ipv6/conf/default/accept_ra", "0")?;
    write("/proc/sys/net/ipv4/tcp_orphan_retries", ORPHAN_RETRIES)?;
    for (path, value) in OF_MUCH_MEMORY {
        write(path, value)?;
    }
    Ok(())
}

/// Sets up the host whose namespace, with its cards, the process stands in.
fn build(host: &HostSpec, attachment: impl Fn(usize) -> Option<Attachment>) -> Result<(), (String, io::Error)> {
    let mut netlink = Netlink::open().map_err(|error| ("opening a netlink socket".to_owned(), error))?;
    netlink.up(LOOPBACK, "lo");
    for (number, port) in host.ports.iter().enumerate() {
        let index = interface_index(&port.name).map_err(|error| (format!("finding {}", port.name), error))?;
        let line = attachment(number);
        let (mtu, rate) = line.map_or((1500, None), |line| (line.mtu, line.rate));
        // The card has the address that the host is to have.
        let settings =
            LinkSettings { mac: None, mtu, transmit_queue_frames: transmit_queue_frames(rate, mtu), ipv6: true };
        netlink.configure(index, &port.name, &settings);
        netlink.up(index, &port.name);
        let link_local = Prefix { address: port.mac.link_local().into(), length: LINK_LOCAL_BITS };
        let own = (!port.addresses.contains(&link_local)).then_some(link_local);
        for prefix in port.addresses.iter().copied().chain(own) {
            netlink.add_address(index, &port.name, prefix);
        }
    }
    for route in &host.routes {
        netlink.add_route(route.to, route.via);
    }
    netlink.commit()
}
