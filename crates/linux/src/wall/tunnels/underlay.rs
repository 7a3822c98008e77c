//! A socket over which tunnels are spoken: UDP for VXLAN, raw IPv4 for GRE. The lab's owner made and bound it, in its
//! own network namespace.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use twinnet_packet::{gre, vxlan, Frame};

use super::decapsulation::{from_gre, from_vxlan, Identifier, Refusal};

/// The longest IPv4 packet.
const LONGEST_PACKET: usize = 65_535;

/// The protocol that a socket speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// GRE over raw IPv4.
    Gre {
        /// `true` if headers have a checksum.
        checksum: bool,
    },
    /// VXLAN over UDP.
    Vxlan,
}

/// The socket.
pub(crate) struct Underlay {
    descriptor: OwnedFd,
    protocol: Protocol,
    buffer: Vec<u8>,
    /// The bytes that are being sent.
    outgoing: Vec<u8>,
}

/// The result of one look at the socket.
pub(crate) enum Received<'a> {
    /// Nothing waits.
    Nothing,
    /// A packet that is no tunnel's.
    Refused(Refusal),
    /// A frame, who sent it, and of which tunnel it says to be.
    Frame(Ipv4Addr, Identifier, &'a [u8]),
}

impl Underlay {
    /// Takes over `descriptor`.
    ///
    /// # Errors
    /// When it cannot be read without waiting.
    pub(crate) fn new(descriptor: OwnedFd, protocol: Protocol) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&descriptor, true)?;
        Ok(Self { descriptor, protocol, buffer: vec![0; LONGEST_PACKET], outgoing: Vec::new() })
    }

    pub(crate) fn raw(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }

    /// The next packet.
    pub(crate) fn receive(&mut self) -> Received<'_> {
        let (length, sender) = match receive_from(&self.descriptor, &mut self.buffer) {
            Ok(received) => received,
            // An error that the socket tells of something sent before (an unreachable other end) is no packet: look
            // again later.
            Err(_) => return Received::Nothing,
        };
        let packet = &self.buffer[..length];
        let found = match self.protocol {
            Protocol::Gre { .. } => from_gre(packet),
            Protocol::Vxlan => from_vxlan(packet).map(|(identifier, frame)| (sender, identifier, frame)),
        };
        match found {
            Ok((source, identifier, frame)) => Received::Frame(source, identifier, frame),
            Err(why) => Received::Refused(why),
        }
    }

    /// Sends one frame, whose checksum is complete, to `remote`. Returns the bytes behind the IP header.
    ///
    /// # Errors
    /// The error of the kernel.
    pub(crate) fn send(&mut self, frame: &Frame, identifier: Identifier, remote: SocketAddrV4) -> io::Result<usize> {
        self.outgoing.clear();
        match (self.protocol, identifier) {
            (Protocol::Gre { checksum }, Identifier::Key(key)) => {
                let header = gre::Repr::ethernet(key, checksum);
                self.outgoing.resize(header.length(), 0);
                self.append(frame);
                header.emit(&mut self.outgoing);
            }
            (_, Identifier::Vni(vni)) => {
                self.outgoing.resize(vxlan::HEADER_LENGTH, 0);
                vxlan::Repr { vni }.emit(&mut self.outgoing);
                self.append(frame);
            }
            (Protocol::Vxlan, Identifier::Key(_)) => return Err(io::ErrorKind::InvalidInput.into()),
        }
        send_to(&self.descriptor, &self.outgoing, remote)?;
        Ok(self.outgoing.len())
    }

    fn append(&mut self, frame: &Frame) {
        self.outgoing.extend_from_slice(&frame.bytes);
        self.outgoing.resize(self.outgoing.len() + frame.elided as usize, 0);
    }
}

fn receive_from(descriptor: &OwnedFd, buffer: &mut [u8]) -> io::Result<(usize, Ipv4Addr)> {
    // SAFETY: all zeros is a valid address of that type.
    let mut sender: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    let mut sender_length = socket_address_length();
    // SAFETY: the buffer is writable for its length, the address for the length told beside it.
    let length = unsafe {
        libc::recvfrom(
            descriptor.as_raw_fd(),
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            libc::MSG_DONTWAIT,
            (&raw mut sender).cast(),
            &raw mut sender_length,
        )
    };
    let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
    Ok((length.min(buffer.len()), Ipv4Addr::from(u32::from_be(sender.sin_addr.s_addr))))
}

fn send_to(descriptor: &OwnedFd, bytes: &[u8], remote: SocketAddrV4) -> io::Result<()> {
    // SAFETY: all zeros is a valid address of that type.
    let mut address: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    address.sin_family = libc::AF_INET as libc::sa_family_t;
    address.sin_port = remote.port().to_be();
    address.sin_addr.s_addr = u32::from(*remote.ip()).to_be();
    // SAFETY: the bytes are readable for their length, and so is the address.
    let sent = unsafe {
        libc::sendto(
            descriptor.as_raw_fd(),
            bytes.as_ptr().cast(),
            bytes.len(),
            libc::MSG_DONTWAIT,
            (&raw const address).cast(),
            socket_address_length(),
        )
    };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[allow(clippy::cast_possible_truncation)]
const fn socket_address_length() -> libc::socklen_t {
    std::mem::size_of::<libc::sockaddr_in>() as libc::socklen_t
}
