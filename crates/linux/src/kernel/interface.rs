//! The two kinds of interface that a host can have: a TAP, or one end of a virtual Ethernet pair with a packet
//! socket at the other. Either way the fabric holds one descriptor from which it reads the frames that the host
//! sends, each behind a `virtio_net_hdr`, and to which it writes those that the host receives.

use std::ffi::c_void;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex};

use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use twinnet_units::Rate;

use crate::kernel::netlink::Netlink;
use crate::kernel::real_interface::Watch;

/// Bytes of the `virtio_net_hdr` before each frame (the form without `num_buffers`).
pub const VNET_HEADER_BYTES: usize = 10;

/// The kind of device of a host's interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterfaceKind {
    /// A TAP.
    Tap,
    /// A packet socket on the other end of a virtual Ethernet pair.
    Packet,
}

/// A host's interface as the fabric holds it.
#[derive(Debug)]
pub struct HostInterface {
    /// Index of the host among the network's nodes.
    pub node: usize,
    /// Index of the port among the host's.
    pub port: usize,
    /// Its kind.
    pub kind: InterfaceKind,
    /// Non-blocking descriptor: read what the host sends, write what it receives.
    pub fd: OwnedFd,
    /// Bytes of the header before each frame.
    pub vnet_header_bytes: usize,
    /// Largest packet.
    pub mtu: u32,
    /// Index of the interface in its host.
    pub index: u32,
    /// A socket to the routing subsystem of the host's namespace, for changes while the lab runs.
    pub routing: Option<Arc<Mutex<Netlink>>>,
    /// `true` if frames are written cut and with their checksums complete, for a reader that knows nothing of offloads.
    pub whole_frames: bool,
    /// The watch that tells the state of an interface of the machine; `None` for those that the lab has made.
    pub watch: Option<Watch>,
}

/// Frames that an interface's own transmit queue holds: about 40 ms at the line rate. What a line is behind its
/// schedule waits there, and a frame that finds it full is lost: it has room for what the machine may hold a line
/// up by before the run is invalid, and the bucket above keeps it empty otherwise. 1000 (the kernel's default for
/// Ethernet) where the link has no rate.
#[must_use]
pub fn transmit_queue_frames(rate: Option<Rate>, mtu: u32) -> u32 {
    let Some(rate) = rate else { return 1000 };
    let bits_in_40_ms = rate.as_bps() / 25;
    let bits_of_frame = (u64::from(mtu) + 38) * 8;
    u32::try_from((bits_in_40_ms / bits_of_frame).clamp(4, 2000)).unwrap_or(1000)
}

/// Opens a TAP named `name` in the network namespace of the calling thread; gives its descriptor and its index.
///
/// # Errors
/// The error of the kernel; a missing or forbidden `/dev/net/tun` is one.
pub fn open_tap(name: &str) -> io::Result<(OwnedFd, u32)> {
    let fd = rustix::fs::open("/dev/net/tun", OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?;
    let mut request = interface_request(name);
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as libc::c_short;
    // SAFETY: the request is a valid `ifreq` that the kernel reads and fills.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETIFF, &raw mut request) })?;
    // A TAP that ends with its descriptor makes the kernel wait for a grace period, some 25 ms, for each one. A
    // persistent one ends with its namespace, and the kernel ends all namespaces of a lab together. SAFETY: the
    // argument is a plain number.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETPERSIST, 1 as libc::c_ulong) })?;
    set_tap_offload(&fd)?;
    let index = interface_index(name)?;
    Ok((fd, index))
}

/// Lets the host hand over super-segments: TCP over both families, and UDP where the kernel knows it (6.2).
fn set_tap_offload(fd: &OwnedFd) -> io::Result<()> {
    let tcp = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
    let udp = libc::TUN_F_USO4 | libc::TUN_F_USO6;
    let mut refusal = None;
    for offload in [tcp | udp, tcp, 0] {
        // SAFETY: the argument is a plain number.
        match check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(offload)) }) {
            Ok(_) => return Ok(()),
            Err(error) => refusal = Some(error),
        }
    }
    Err(refusal.unwrap_or_else(|| io::Error::from_raw_os_error(libc::EINVAL)))
}

/// Index of the interface `name` in the network namespace of the calling thread.
///
/// # Errors
/// The error of the kernel.
pub fn interface_index(name: &str) -> io::Result<u32> {
    if name.len() >= libc::IFNAMSIZ {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    // The C library's `if_nametoindex` tells a missing file where no descriptor is left for its socket.
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?;
    let mut request = interface_request(name);
    // SAFETY: the request is a valid `ifreq` that the kernel reads and fills.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFINDEX, &raw mut request) })?;
    // SAFETY: the kernel has just written this member.
    let index = unsafe { request.ifr_ifru.ifru_ifindex };
    u32::try_from(index).map_err(|_| io::Error::from_raw_os_error(libc::ENODEV))
}

/// Opens a packet socket in the network namespace of the calling thread, not yet bound: it receives nothing.
///
/// # Errors
/// The error of the kernel.
pub fn open_packet_socket() -> io::Result<OwnedFd> {
    // SAFETY: a plain system call; the result is checked.
    let fd =
        check(unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, 0) })?;
    // SAFETY: the descriptor was just opened and belongs to nobody else.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    set_option(&socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1)?;
    set_option(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)?;
    set_option(&socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1)?;
    // The kernel takes a VLAN tag out of a frame before a socket sees it, and tells it beside.
    set_option(&socket, libc::SOL_PACKET, libc::PACKET_AUXDATA, 1)?;
    for option in [libc::SO_SNDBUF, libc::SO_RCVBUF] {
        set_option(&socket, libc::SOL_SOCKET, option, PACKET_BUFFER_BYTES)?;
    }
    for forced in [libc::SO_SNDBUFFORCE, libc::SO_RCVBUFFORCE] {
        // Beyond the system's limit only with the right to: without it the limit stands.
        let _ = set_option(&socket, libc::SOL_SOCKET, forced, PACKET_BUFFER_BYTES);
    }
    Ok(socket)
}

/// Room for frames between the kernel and the fabric, in each direction.
const PACKET_BUFFER_BYTES: i32 = 4 << 20;

/// Binds a packet socket to the interface with `index`, for all protocols.
///
/// # Errors
/// The error of the kernel.
pub fn bind_packet_socket(socket: &OwnedFd, index: u32) -> io::Result<()> {
    // SAFETY: all zeros is a valid `sockaddr_ll`.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as libc::c_ushort;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index as i32;
    let length = std::mem::size_of_val(&address) as libc::socklen_t;
    // SAFETY: the address is valid for `length` bytes.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) })?;
    Ok(())
}

/// Closes all packet sockets of this process at once; their descriptors are sockets that carry nothing afterwards. The
/// kernel waits for a grace period, some 10 ms, for each one that is closed, and for one after the other where the
/// process ends with them.
pub(crate) fn close_packet_sockets() {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return };
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let sockets: Vec<RawFd> = numbers.filter(|&descriptor| is_packet_socket(descriptor)).collect();
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let Ok(idle) = rustix::net::socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None) else { return };
    std::thread::scope(|scope| {
        for share in sockets.chunks(sockets.len().div_ceil(CLOSERS).max(1)) {
            let (share, idle) = (share.to_vec(), idle.as_raw_fd());
            // What no thread closes, the end of the process does.
            let _ = std::thread::Builder::new().spawn_scoped(scope, move || {
                for descriptor in share {
                    // SAFETY: both are open. The number stays that of an open socket, which its owner uses and closes.
                    unsafe { libc::dup3(idle, descriptor, libc::O_CLOEXEC) };
                }
            });
        }
    });
}

/// Threads that close packet sockets beside each other.
const CLOSERS: usize = 16;

fn is_packet_socket(descriptor: RawFd) -> bool {
    let mut domain: libc::c_int = 0;
    let mut length = size_of_val(&domain) as libc::socklen_t;
    let into = (&raw mut domain).cast();
    // SAFETY: the kernel writes up to `length` bytes; it refuses what is no socket, or not open any more.
    let read = unsafe { libc::getsockopt(descriptor, libc::SOL_SOCKET, libc::SO_DOMAIN, into, &raw mut length) };
    read == 0 && domain == libc::AF_PACKET
}

pub(crate) fn set_option<T>(socket: &OwnedFd, level: i32, option: i32, value: T) -> io::Result<()> {
    let length = std::mem::size_of_val(&value) as libc::socklen_t;
    // SAFETY: the value is valid for `length` bytes.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast::<c_void>(), length) })?;
    Ok(())
}

pub(crate) fn interface_request(name: &str) -> libc::ifreq {
    // SAFETY: all zeros is a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().take(libc::IFNAMSIZ - 1).zip(name.bytes()) {
        *place = byte as libc::c_char;
    }
    request
}

pub(crate) fn check(result: i32) -> io::Result<i32> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_link_has_a_short_interface_queue() {
        assert_eq!(transmit_queue_frames(Rate::from_bps(1_000_000), 1500), 4);
        assert_eq!(transmit_queue_frames(Rate::from_bps(10_000_000), 1500), 32);
        assert_eq!(transmit_queue_frames(Rate::from_bps(100_000_000), 1500), 325);
        assert_eq!(transmit_queue_frames(Rate::from_bps(1_000_000_000), 1500), 2000);
        assert_eq!(transmit_queue_frames(None, 1500), 1000);
    }
}
