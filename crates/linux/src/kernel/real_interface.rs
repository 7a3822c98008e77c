//! Existing interfaces of the machine as ends of links: hardware in the loop, or another container's virtual Ethernet.
//!
//! The owner of the lab opens two descriptors where the interface is, in its own network namespace: a packet
//! socket, and a socket that hears of changes of the interface. The lab binds the one, reads the other, and both
//! stay where they were made.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use twinnet_lab::network::NetworkSpec;
use twinnet_lab::protocol::{InterfaceOffer, InterfaceRow, InterfaceState as State};
use twinnet_lab::requests::missing;

use crate::kernel::interface::{
    bind_packet_socket, check, interface_index, interface_request, open_packet_socket, set_option, HostInterface,
    InterfaceKind, VNET_HEADER_BYTES,
};
use crate::service::{ErrorName, LabError};

/// Bytes of `struct nlmsghdr`, and of `struct ifinfomsg`, which follows it.
const MESSAGE_HEADER_BYTES: usize = 16;
const LINK_HEADER_BYTES: usize = 16;
/// Interfaces that are named when an unknown one is asked for.
const NAMED_INTERFACES: usize = 12;

/// An interface as its owner has opened it.
#[derive(Debug)]
pub struct OpenInterface {
    /// A packet socket, not bound: it receives nothing yet.
    pub packet: OwnedFd,
    /// The descriptor that tells changes of the interface.
    pub watch: OwnedFd,
    /// Its index in its namespace.
    pub index: u32,
    /// Largest packet.
    pub mtu: u32,
}

/// Opens the interface `name` of the calling thread's network namespace.
///
/// # Errors
/// `NoSuchInterface`, `NotEthernet`, `PacketSocketRefused`.
pub fn open(name: &str) -> Result<OpenInterface, LabError> {
    let unknown = |error: &io::Error| {
        let message = format!("the interface {name:?} cannot be found: {error}; there are {}", names_of_interfaces());
        LabError::new(
            ErrorName::NoSuchInterface,
            message,
            "an interface is looked for in the network namespace of the program",
        )
    };
    let index = interface_index(name).map_err(|error| unknown(&error))?;
    let packet = open_packet_socket().map_err(|error| refused(name, &error))?;
    if is_end_of_pair(&packet, name) {
        // Whoever captures there sees what the fabric sends, too. A pair has no queue that could be full.
        set_option(&packet, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 0).map_err(|error| refused(name, &error))?;
    }
    let watch = open_watch(index).map_err(|error| refused(name, &error))?;
    let hardware = ask(&packet, name, libc::SIOCGIFHWADDR as libc::c_ulong).map_err(|error| unknown(&error))?;
    // SAFETY: the kernel has filled this member of the union.
    let family = unsafe { hardware.ifr_ifru.ifru_hwaddr.sa_family };
    if family != libc::ARPHRD_ETHER {
        let message = format!("the interface {name:?} is not Ethernet (its hardware type is {family})");
        return Err(LabError::new(
            ErrorName::NotEthernet,
            message,
            "links carry Ethernet frames; choose an Ethernet interface",
        ));
    }
    let mtu = ask(&packet, name, libc::SIOCGIFMTU as libc::c_ulong).map_err(|error| unknown(&error))?;
    // SAFETY: the kernel has filled this member of the union.
    let mtu = unsafe { mtu.ifr_ifru.ifru_mtu };
    Ok(OpenInterface { packet, watch, index, mtu: u32::try_from(mtu).unwrap_or(0) })
}

fn refused(name: &str, error: &io::Error) -> LabError {
    let remedy = if matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES)) {
        "it needs CAP_NET_RAW in the network namespace of the interface: run as root (sudo), or in a container with \
         --cap-add NET_RAW, or give the interpreter the right (sudo setcap cap_net_raw+ep on a copy of it)"
    } else {
        "see `twinnet doctor`"
    };
    LabError::new(
        ErrorName::PacketSocketRefused,
        format!("opening a packet socket for the interface {name:?}: {error}"),
        remedy,
    )
}

fn names_of_interfaces() -> String {
    let mut names: Vec<String> = fs::read_dir("/proc/thread-self/net/dev_snmp6")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name != "lo")
        .collect();
    names.sort();
    let more = if names.len() > NAMED_INTERFACES { ", ..." } else { "" };
    names.truncate(NAMED_INTERFACES);
    if names.is_empty() {
        return "none beside lo".to_owned();
    }
    names.join(", ") + more
}

fn ask(socket: &OwnedFd, name: &str, what: libc::c_ulong) -> io::Result<libc::ifreq> {
    let mut request = interface_request(name);
    // SAFETY: the request is a valid `ifreq` that the kernel reads and fills.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), what as _, &raw mut request) })?;
    Ok(request)
}

/// Returns `true` if the interface is one end of a pair (veth), by the name of its driver.
fn is_end_of_pair(socket: &OwnedFd, name: &str) -> bool {
    const ETHTOOL_GDRVINFO: u32 = 3;
    // `struct ethtool_drvinfo`: the command, then the driver's name.
    let mut told = [0_u32; 49];
    told[0] = ETHTOOL_GDRVINFO;
    let mut request = interface_request(name);
    request.ifr_ifru.ifru_data = told.as_mut_ptr().cast();
    // SAFETY: the request is a valid `ifreq`, and its data has the 196 bytes that the kernel fills.
    let answer = check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) });
    answer.is_ok() && told[1].to_ne_bytes() == *b"veth" && told[2].to_ne_bytes()[0] == 0
}

/// A socket that hears what the kernel tells of the interface with `index`, and of no other: it tells each change of
/// each interface to all who listen, which of many interfaces with a listener each would be the square.
fn open_watch(index: u32) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: a plain system call; the result is checked.
    let descriptor = check(unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) })?;
    // SAFETY: the descriptor was just opened and belongs to nobody else.
    let socket = unsafe { OwnedFd::from_raw_fd(descriptor) };
    hear_of(&socket, index)?;
    // SAFETY: all zeros is a valid `sockaddr_nl`.
    let mut address: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
    address.nl_family = libc::AF_NETLINK as libc::sa_family_t;
    address.nl_groups = libc::RTMGRP_LINK as u32;
    let length = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
    // SAFETY: the address is valid for `length` bytes.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) })?;
    Ok(socket)
}

/// Has the kernel keep back the messages that tell of interfaces other than that with `index`.
fn hear_of(socket: &OwnedFd, index: u32) -> io::Result<()> {
    /// `nlmsg_type` in `struct nlmsghdr`, and `ifi_index` in `struct ifinfomsg`.
    const TYPE_AT: u32 = 4;
    const INDEX_AT: u32 = MESSAGE_HEADER_BYTES as u32 + 4;
    let step = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let error = (libc::NLMSG_ERROR as u16).to_be();
    let mut steps = [
        // A filter reads in network byte order, and these are in the machine's. An error answers what was asked.
        step(libc::BPF_LD | libc::BPF_H | libc::BPF_ABS, 0, 0, TYPE_AT),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 2, 0, u32::from(error)),
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, INDEX_AT),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, index.to_be()),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, u32::MAX),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
    ];
    let program = libc::sock_fprog { len: steps.len() as libc::c_ushort, filter: steps.as_mut_ptr() };
    set_option(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, program)
}

/// An interface that the owner has offered for the node `node`, before the lab is built.
#[derive(Debug)]
pub struct Offer {
    node: String,
    open: OpenInterface,
}

impl Offer {
    /// Reads an `interface.offer` request.
    ///
    /// # Errors
    /// `BadRequest` when a field or a descriptor lacks.
    pub fn of(asked: InterfaceOffer, descriptors: Vec<OwnedFd>) -> Result<Self, LabError> {
        let mut descriptors = descriptors.into_iter();
        let (Some(packet), Some(watch), None) = (descriptors.next(), descriptors.next(), descriptors.next()) else {
            return Err(missing("two descriptors", "a packet socket and a socket that hears of the interface"));
        };
        let InterfaceOffer { node, index, mtu } = asked;
        Ok(Self { node, open: OpenInterface { packet, watch, index, mtu } })
    }
}

/// Takes the offers as the interfaces of `network`: from now on they receive, promiscuously.
///
/// # Errors
/// `InterfaceNotOffered`, `MtuTooLarge`, or what the kernel says.
pub fn take(network: &NetworkSpec, mut offers: Vec<Offer>) -> Result<Vec<HostInterface>, LabError> {
    let attachments = network.attachments();
    let mut taken = Vec::new();
    for (node, described) in network.interfaces() {
        if described.ports.is_empty() {
            continue;
        }
        let Some(found) = offers.iter().position(|offer| offer.node == described.name) else {
            let message = format!("the interface {:?} was not offered to the lab", described.interface);
            let remedy = "its owner opens it and passes it with interface.offer before it sends start";
            return Err(LabError::new(ErrorName::InterfaceNotOffered, message, remedy));
        };
        let OpenInterface { packet, watch, index, mtu } = offers.swap_remove(found).open;
        let link = attachments.get(&(described.name.as_str(), 0)).map_or(mtu, |link| link.mtu);
        if link > mtu {
            let message = format!(
                "the link of the interface {:?} has an MTU of {link}, and the interface {mtu}",
                described.interface
            );
            let remedy = format!(
                "give the link mtu={mtu}, or the interface more (ip link set {} mtu {link})",
                described.interface
            );
            return Err(LabError::new(ErrorName::MtuTooLarge, message, remedy));
        }
        begin(&packet, index).map_err(|error| {
            let message = format!("listening at the interface {:?}: {error}", described.interface);
            LabError::new(ErrorName::InterfaceFailed, message, "see that it still exists")
        })?;
        taken.push(HostInterface {
            node,
            port: 0,
            kind: InterfaceKind::Packet,
            fd: packet,
            vnet_header_bytes: VNET_HEADER_BYTES,
            mtu: link,
            index,
            routing: None,
            whole_frames: false,
            watch: Some(Watch { socket: watch, index, name: described.interface.clone() }),
        });
    }
    Ok(taken)
}

/// Has the socket receive all that arrives at the interface; the kernel undoes that when the socket is closed.
fn begin(packet: &OwnedFd, index: u32) -> io::Result<()> {
    let everything = libc::packet_mreq {
        mr_ifindex: i32::try_from(index).unwrap_or(0),
        mr_type: libc::PACKET_MR_PROMISC as libc::c_ushort,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set_option(packet, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, everything)?;
    bind_packet_socket(packet, index)
}

/// The descriptor that tells the state of an interface.
#[derive(Debug)]
pub struct Watch {
    socket: OwnedFd,
    index: u32,
    /// The interface's name in its namespace.
    pub name: String,
}

impl Watch {
    /// The descriptor, for waiting on it.
    #[must_use]
    pub fn raw(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Asks the kernel how the interface stands; the answer comes as a change does.
    ///
    /// # Errors
    /// The error of the kernel.
    pub fn ask(&self) -> io::Result<()> {
        const LENGTH: usize = MESSAGE_HEADER_BYTES + LINK_HEADER_BYTES;
        let mut request = [0_u8; LENGTH];
        request[..4].copy_from_slice(&(LENGTH as u32).to_ne_bytes());
        request[4..6].copy_from_slice(&libc::RTM_GETLINK.to_ne_bytes());
        request[6..8].copy_from_slice(&(libc::NLM_F_REQUEST as u16).to_ne_bytes());
        request[20..24].copy_from_slice(&self.index.to_ne_bytes());
        // SAFETY: the request is readable memory of the length given.
        let sent = unsafe { libc::send(self.raw(), request.as_ptr().cast(), request.len(), libc::MSG_NOSIGNAL) };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Returns what was told since the last call: the last state, if any.
    pub fn news(&self) -> Option<State> {
        let mut state = None;
        let mut buffer = [0_u8; 16_384];
        loop {
            // SAFETY: the buffer is writable memory of the length given.
            let length = unsafe { libc::recv(self.raw(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
            let Ok(length) = usize::try_from(length) else {
                // More was told than the socket could keep: how it stands now is asked for.
                if io::Error::last_os_error().raw_os_error() == Some(libc::ENOBUFS) && self.ask().is_ok() {
                    continue;
                }
                return state;
            };
            state = told(&buffer[..length], self.index).or(state);
        }
    }
}

/// Returns what messages of the routing subsystem tell of the interface `index`.
fn told(mut messages: &[u8], index: u32) -> Option<State> {
    let mut state = None;
    while messages.len() >= MESSAGE_HEADER_BYTES {
        let field = |at: usize| {
            let bytes = messages.get(at..at + 4)?;
            Some(u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
        };
        let length = field(0).unwrap_or(0) as usize;
        let kind = u16::from_ne_bytes([messages[4], messages[5]]);
        // A bridge speaks of its ports in messages of its own family; these are not about the interface itself.
        let about_it = messages.get(MESSAGE_HEADER_BYTES) == Some(&(libc::AF_UNSPEC as u8)) && field(20) == Some(index);
        let flags = field(24).unwrap_or(0);
        let missing = (libc::ENODEV as u32).wrapping_neg();
        match kind {
            libc::RTM_NEWLINK if about_it => {
                let carries = libc::IFF_UP as u32 | libc::IFF_LOWER_UP as u32;
                state = Some(if flags & carries == carries { State::Up } else { State::Down });
            }
            libc::RTM_DELLINK if about_it => state = Some(State::Gone),
            // Only one thing is ever asked for on this socket: the interface.
            kind if i32::from(kind) == libc::NLMSG_ERROR && field(16) == Some(missing) => state = Some(State::Gone),
            _ => {}
        }
        messages = messages.get(length.next_multiple_of(4).max(MESSAGE_HEADER_BYTES)..).unwrap_or_default();
    }
    state
}

/// The real interfaces of a lab, as they stand.
pub(crate) struct RealInterface {
    pub(crate) watch: Watch,
    pub(crate) node: usize,
    pub(crate) state: State,
    /// `true` if its link was taken down because of it, and is to be taken up with it.
    pub(crate) lowered: bool,
}

impl RealInterface {
    /// As `interfaces` tells it.
    pub(crate) fn row(&self, network: &NetworkSpec) -> InterfaceRow {
        let node = network.nodes.get(self.node).map(|node| node.name().to_owned());
        InterfaceRow { node, interface: self.watch.name.clone(), state: self.state }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;

    fn message(kind: u16, family: u8, index: u32, flags: u32) -> Vec<u8> {
        let mut bytes = vec![0_u8; 32];
        bytes[..4].copy_from_slice(&32_u32.to_ne_bytes());
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[16] = family;
        bytes[20..24].copy_from_slice(&index.to_ne_bytes());
        bytes[24..28].copy_from_slice(&flags.to_ne_bytes());
        bytes
    }

    const CARRIES: u32 = libc::IFF_UP as u32 | libc::IFF_LOWER_UP as u32;

    #[test]
    fn the_last_word_about_the_interface_counts() {
        let up = message(libc::RTM_NEWLINK, 0, 7, CARRIES);
        let no_carrier = message(libc::RTM_NEWLINK, 0, 7, libc::IFF_UP as u32);
        assert_eq!(told(&[up.clone(), no_carrier.clone()].concat(), 7), Some(State::Down));
        assert_eq!(told(&[no_carrier, up.clone()].concat(), 7), Some(State::Up));
        assert_eq!(told(&message(libc::RTM_DELLINK, 0, 7, 0), 7), Some(State::Gone));
        assert_eq!(told(&up, 8), None);
    }

    #[test]
    fn leaving_a_bridge_is_not_leaving() {
        assert_eq!(told(&message(libc::RTM_DELLINK, libc::AF_BRIDGE as u8, 7, 0), 7), None);
    }

    #[test]
    fn an_interface_that_cannot_be_asked_for_is_gone() {
        let mut refusal = message(libc::NLMSG_ERROR as u16, 0, 0, 0);
        refusal[16..20].copy_from_slice(&(-libc::ENODEV).to_ne_bytes());
        assert_eq!(told(&refusal, 7), Some(State::Gone));
    }

    #[test]
    fn what_is_told_of_others_is_kept_back() {
        let (ours, kernel) = UnixDatagram::pair().unwrap();
        let ours = OwnedFd::from(ours);
        hear_of(&ours, 7).unwrap();
        let refusal = message(libc::NLMSG_ERROR as u16, 0, 0, 0);
        for told in [message(libc::RTM_NEWLINK, 0, 8, 0), message(libc::RTM_NEWLINK, 0, 7, 0), refusal, vec![0; 3]] {
            // What the filter keeps back is refused at the sender here.
            let _ = kernel.send(&told);
        }
        let ours = UnixDatagram::from(ours);
        ours.set_nonblocking(true).unwrap();
        let mut buffer = [0; 64];
        let mut kinds = Vec::new();
        while ours.recv(&mut buffer).is_ok() {
            kinds.push((u16::from_ne_bytes([buffer[4], buffer[5]]), buffer[20]));
        }
        assert_eq!(kinds, [(libc::RTM_NEWLINK, 7), (libc::NLMSG_ERROR as u16, 0)]);
    }

    #[test]
    fn broken_messages_tell_nothing() {
        for length in 0..32 {
            let _ = told(&message(libc::RTM_NEWLINK, 0, 7, CARRIES)[..length], 7);
        }
        assert_eq!(told(&[0; 64], 7), None);
    }

    #[test]
    fn an_unknown_interface_is_refused_with_those_that_there_are() {
        let error = open("nosuch0").unwrap_err();
        assert_eq!(error.name, "NoSuchInterface");
        assert!(error.message.contains("there are"), "{}", error.message);
    }
}
