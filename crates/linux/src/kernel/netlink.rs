//! Requests to the kernel's routing subsystem, many in one packet.
//!
//! A socket belongs to the network namespace of the thread that opened it, whatever namespace the thread enters later.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsRawFd, OwnedFd};

use netlink_packet_core::{
    NetlinkMessage, NetlinkPayload, NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST,
};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage, AddressScope};
use netlink_packet_route::link::{
    AfSpecInet6, AfSpecUnspec, In6AddrGenMode, InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo,
    LinkMessage,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use rustix::net::{AddressFamily as SocketFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use twinnet_packet::{MacAddress, Prefix};

use crate::kernel::back_pressure::{self, TokenBucket};

/// Index of the loopback interface: the first of every network namespace.
pub const LOOPBACK: u32 = 1;

/// The settings of an interface while it is down.
#[derive(Clone, Debug)]
pub struct LinkSettings {
    /// Hardware address; `None` leaves the one that the kernel chose.
    pub mac: Option<MacAddress>,
    /// Largest packet.
    pub mtu: u32,
    /// Length of its transmit queue in frames.
    pub transmit_queue_frames: u32,
    /// `true` if the kernel has IPv6; then no address is generated, so nothing is probed or solicited.
    pub ipv6: bool,
}

/// A pair of virtual Ethernet interfaces.
#[derive(Clone, Debug)]
pub struct Pair<'a> {
    /// Name here.
    pub name: &'a str,
    /// Index here.
    pub index: u32,
    /// Name of the other end.
    pub peer_name: &'a str,
    /// Index of the other end in its namespace.
    pub peer_index: u32,
    /// The namespace of the other end.
    pub peer_namespace: &'a OwnedFd,
    /// Largest packet of both.
    pub mtu: u32,
}

/// A socket to the kernel and the requests that wait to be sent together.
#[derive(Debug)]
pub struct Netlink {
    socket: OwnedFd,
    packet: Vec<u8>,
    last_start: usize,
    subjects: Vec<String>,
}

impl Netlink {
    /// Opens a socket in the network namespace of the calling thread.
    ///
    /// # Errors
    /// The error of the kernel.
    pub fn open() -> io::Result<Self> {
        let socket = rustix::net::socket_with(SocketFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        Ok(Self { socket, packet: Vec::with_capacity(2048), last_start: 0, subjects: Vec::new() })
    }

    /// Adds a request; `subject` names what it does, for the error message.
    fn add(&mut self, message: RouteNetlinkMessage, create: bool, subject: String) {
        self.add_with(message, if create { NLM_F_CREATE | NLM_F_EXCL } else { 0 }, subject);
    }

    fn add_with(&mut self, message: RouteNetlinkMessage, flags: u16, subject: String) {
        let mut message = NetlinkMessage::from(message);
        message.header.flags = NLM_F_REQUEST | flags;
        message.header.sequence_number = u32::try_from(self.subjects.len()).unwrap_or(u32::MAX);
        message.finalize();
        self.last_start = self.packet.len();
        self.packet.resize(self.last_start + message.buffer_len().next_multiple_of(4), 0);
        message.serialize(&mut self.packet[self.last_start..]);
        self.subjects.push(subject);
    }

    /// Creates a pair of virtual Ethernet interfaces, the other end in its own namespace.
    pub fn create_pair(&mut self, pair: &Pair<'_>) {
        let mut peer = LinkMessage::default();
        peer.header.index = pair.peer_index;
        peer.attributes = vec![
            LinkAttribute::IfName(pair.peer_name.to_owned()),
            LinkAttribute::NetNsFd(pair.peer_namespace.as_raw_fd()),
            LinkAttribute::Mtu(pair.mtu),
        ];
        let mut message = LinkMessage::default();
        message.header.index = pair.index;
        message.attributes = vec![
            LinkAttribute::IfName(pair.name.to_owned()),
            LinkAttribute::Mtu(pair.mtu),
            LinkAttribute::LinkInfo(vec![
                LinkInfo::Kind(InfoKind::Veth),
                LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
            ]),
        ];
        self.add(RouteNetlinkMessage::NewLink(message), true, format!("creating the interface {}", pair.name));
    }

    /// Sets up an interface that is down.
    pub fn configure(&mut self, index: u32, name: &str, settings: &LinkSettings) {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.attributes =
            vec![LinkAttribute::Mtu(settings.mtu), LinkAttribute::TxQueueLen(settings.transmit_queue_frames)];
        if let Some(mac) = settings.mac {
            message.attributes.push(LinkAttribute::Address(mac.0.to_vec()));
        }
        if settings.ipv6 {
            message.attributes.push(LinkAttribute::AfSpecUnspec(vec![AfSpecUnspec::Inet6(vec![
                AfSpecInet6::AddrGenMode(In6AddrGenMode::None),
            ])]));
        }
        self.add(RouteNetlinkMessage::SetLink(message), false, format!("setting the address, MTU and queue of {name}"));
    }

    /// Moves an interface to another network namespace, where it is called `name`.
    pub fn hand_over(&mut self, index: u32, name: &str, to: &OwnedFd) {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.attributes = vec![LinkAttribute::IfName(name.to_owned()), LinkAttribute::NetNsFd(to.as_raw_fd())];
        self.add(RouteNetlinkMessage::SetLink(message), false, format!("handing over the interface {name}"));
    }

    /// Takes an interface up.
    pub fn up(&mut self, index: u32, name: &str) {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        self.add(RouteNetlinkMessage::SetLink(message), false, format!("taking up {name}"));
    }

    /// Gives an interface an address, in use at once (no duplicate address detection).
    pub fn add_address(&mut self, index: u32, name: &str, prefix: Prefix) {
        let mut message = AddressMessage::default();
        message.header.index = index;
        message.header.prefix_len = prefix.length;
        message.attributes = vec![AddressAttribute::Local(prefix.address), AddressAttribute::Address(prefix.address)];
        match prefix.address {
            IpAddr::V4(address) => {
                message.header.family = AddressFamily::Inet;
                if prefix.length < 31 {
                    let broadcast = address.to_bits() | (u32::MAX >> prefix.length);
                    message.attributes.push(AddressAttribute::Broadcast(Ipv4Addr::from_bits(broadcast)));
                }
            }
            IpAddr::V6(address) => {
                message.header.family = AddressFamily::Inet6;
                message.header.flags = AddressHeaderFlags::Nodad;
                if address.is_unicast_link_local() {
                    message.header.scope = AddressScope::Link;
                }
            }
        }
        self.add(RouteNetlinkMessage::NewAddress(message), true, format!("adding the address {prefix} to {name}"));
    }

    /// Adds a route by way of a gateway.
    pub fn add_route(&mut self, to: Prefix, via: IpAddr) {
        let mut message = RouteMessage::default();
        message.header = RouteHeader {
            address_family: if via.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 },
            destination_prefix_length: to.length,
            table: RouteHeader::RT_TABLE_MAIN,
            protocol: RouteProtocol::Static,
            scope: RouteScope::Universe,
            kind: RouteType::Unicast,
            ..RouteHeader::default()
        };
        if to.length > 0 {
            message.attributes.push(RouteAttribute::Destination(RouteAddress::from(to.address)));
        }
        message.attributes.push(RouteAttribute::Gateway(RouteAddress::from(via)));
        self.add(RouteNetlinkMessage::NewRoute(message), true, format!("adding the route to {to} via {via}"));
    }

    /// Puts `bucket` above an interface in place of what is there, or with `None` brings the kernel's default back.
    pub fn hold_back(&mut self, index: u32, name: &str, bucket: Option<TokenBucket>) {
        let index = i32::try_from(index).unwrap_or(i32::MAX);
        let (message, flags) = match bucket {
            Some(bucket) => {
                (RouteNetlinkMessage::NewQueueDiscipline(bucket.request(index)), NLM_F_CREATE | NLM_F_REPLACE)
            }
            None => (RouteNetlinkMessage::DelQueueDiscipline(back_pressure::removal(index)), 0),
        };
        self.add_with(message, flags, format!("setting the token bucket of {name}"));
    }

    /// Sets how many frames a sender may put into one super-segment.
    pub fn limit_segments(&mut self, index: u32, name: &str, most: u32) {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.attributes = vec![LinkAttribute::GsoMaxSegs(most)];
        self.add(RouteNetlinkMessage::SetLink(message), false, format!("limiting the super-segments of {name}"));
    }

    /// Frames that an interface did not take from its host because its ring was full, since it was made.
    ///
    /// # Errors
    /// The error of the kernel.
    pub fn transmit_drops(&mut self, index: u32) -> io::Result<u64> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        let mut message = NetlinkMessage::from(RouteNetlinkMessage::GetLink(message));
        message.header.flags = NLM_F_REQUEST;
        message.finalize();
        let mut packet = vec![0; message.buffer_len()];
        message.serialize(&mut packet);
        rustix::net::send(&self.socket, &packet, SendFlags::empty())?;
        let mut buffer = vec![0; 16_384];
        let (length, _) = rustix::net::recv(&self.socket, &mut buffer[..], RecvFlags::empty())?;
        let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&buffer[..length])
            .map_err(|error| io::Error::other(error.to_string()))?;
        match answer.payload {
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link)) => Ok(link
                .attributes
                .iter()
                .find_map(|attribute| match attribute {
                    LinkAttribute::Stats64(statistics) => Some(statistics.tx_dropped),
                    _ => None,
                })
                .unwrap_or(0)),
            NetlinkPayload::Error(error) => Err(error.to_io()),
            _ => Err(io::Error::from_raw_os_error(libc::EPROTO)),
        }
    }

    /// Sends what has been added and waits for the kernel's answers. The kernel works through all requests even
    /// when one fails.
    ///
    /// # Errors
    /// The first refusal, with what was refused.
    pub fn commit(&mut self) -> Result<(), (String, io::Error)> {
        if self.subjects.is_empty() {
            return Ok(());
        }
        let flags_at = self.last_start + 6;
        let flags = u16::from_ne_bytes([self.packet[flags_at], self.packet[flags_at + 1]]) | NLM_F_ACK;
        self.packet[flags_at..flags_at + 2].copy_from_slice(&flags.to_ne_bytes());
        let subjects = std::mem::take(&mut self.subjects);
        let packet = std::mem::take(&mut self.packet);
        self.exchange(&packet, &subjects)
    }

    fn exchange(&self, packet: &[u8], subjects: &[String]) -> Result<(), (String, io::Error)> {
        let talking = |error: io::Error| ("talking to the kernel's routing subsystem".to_owned(), error);
        rustix::net::send(&self.socket, packet, SendFlags::empty()).map_err(|error| talking(error.into()))?;
        let mut buffer = vec![0; 16_384];
        loop {
            let (length, _) = rustix::net::recv(&self.socket, &mut buffer[..], RecvFlags::empty())
                .map_err(|error| talking(error.into()))?;
            let mut rest = &buffer[..length];
            while !rest.is_empty() {
                let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest)
                    .map_err(|error| talking(io::Error::other(error.to_string())))?;
                let subject = message.header.sequence_number as usize;
                if let NetlinkPayload::Error(error) = message.payload {
                    match error.code {
                        Some(code) => {
                            let subject = subjects.get(subject).cloned().unwrap_or_default();
                            return Err((subject, io::Error::from_raw_os_error(code.get().saturating_neg())));
                        }
                        None if subject + 1 == subjects.len() => return Ok(()),
                        None => {}
                    }
                }
                let step = (message.header.length as usize).next_multiple_of(4).max(16);
                rest = rest.get(step..).unwrap_or_default();
            }
        }
    }
}
