//! The interface between a network and the translation: packets of IPv4 in frames of Ethernet on a packet socket.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{recv, send, RecvFlags, SendFlags};
use smoltcp::phy::{Checksum, ChecksumCapabilities, Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;

/// The largest packet of IPv4. The kernel hands over several segments of TCP as one packet.
pub const MOST_BYTES: usize = 65_535;

/// Destination, source and type of what goes in: the network's end of the interface has the first of these addresses.
const HEADER: [u8; 14] = [2, 0, 0, 0, 0x53, 1, 2, 0, 0, 0, 0x53, 2, 8, 0];

/// A packet socket on one end of the interface. The translation's thread takes packets by [`Way::take`], and hands
/// those that smoltcp shall see back by [`Way::admit`].
pub struct Way {
    socket: OwnedFd,
    admitted: Option<Vec<u8>>,
    frame: Vec<u8>,
    ident: u16,
}

impl Way {
    /// Packets go in and come out by `socket`, which is bound to the interface.
    pub const fn new(socket: OwnedFd) -> Self {
        Self { socket, admitted: None, frame: Vec::new(), ident: 0 }
    }

    /// The next packet that came out, or `None` when there is no further one now.
    pub fn take(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut frame = vec![0; HEADER.len() + MOST_BYTES];
        match recv(&self.socket, &mut frame[..], RecvFlags::DONTWAIT) {
            Ok((length, _)) => {
                frame.truncate(length);
                frame.drain(..HEADER.len().min(length));
                Ok(Some(frame))
            }
            // ENETDOWN tells once that the interface went down; it may come up again.
            Err(Errno::AGAIN | Errno::INTR | Errno::NETDOWN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Has smoltcp see `packet` next.
    pub fn admit(&mut self, packet: Vec<u8>) {
        self.admitted = Some(packet);
    }

    /// What tells the fragments of one packet from those of the next.
    pub const fn next_ident(&mut self) -> u16 {
        self.ident = self.ident.wrapping_add(1);
        self.ident
    }

    /// Sends a packet of `length` bytes in, which `fill` writes. It is lost where the interface takes none, as on a
    /// wire.
    pub fn send<R>(&mut self, length: usize, fill: impl FnOnce(&mut [u8]) -> R) -> R {
        self.frame.clear();
        self.frame.extend_from_slice(&HEADER);
        self.frame.resize(HEADER.len() + length, 0);
        let filled = fill(&mut self.frame[HEADER.len()..]);
        if let Err(error) = send(&self.socket, &self.frame, SendFlags::DONTWAIT) {
            tracing::debug!(%error, length, "a packet does not go in");
        }
        filled
    }
}

impl AsFd for Way {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// What smoltcp may know of checksums: the kernel leaves those of packets that never saw a wire unfinished.
pub fn checksums() -> ChecksumCapabilities {
    let mut checksums = ChecksumCapabilities::ignored();
    checksums.ipv4 = Checksum::Tx;
    checksums.tcp = Checksum::Tx;
    checksums.udp = Checksum::Tx;
    checksums.icmpv4 = Checksum::Tx;
    checksums
}

/// A packet that smoltcp sees.
pub struct Admitted(Vec<u8>);

impl RxToken for Admitted {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, see: F) -> R {
        see(&self.0)
    }
}

/// Room for a packet of smoltcp's.
pub struct Inward<'a>(&'a mut Way);

impl TxToken for Inward<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, fill: F) -> R {
        self.0.send(length, fill)
    }
}

impl Device for Way {
    type RxToken<'a> = Admitted;
    type TxToken<'a> = Inward<'a>;

    fn receive(&mut self, _now: Instant) -> Option<(Admitted, Inward<'_>)> {
        let packet = self.admitted.take()?;
        Some((Admitted(packet), Inward(self)))
    }

    fn transmit(&mut self, _now: Instant) -> Option<Inward<'_>> {
        Some(Inward(self))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut can = DeviceCapabilities::default();
        can.medium = Medium::Ip;
        can.max_transmission_unit = MOST_BYTES;
        can.checksum = checksums();
        can
    }
}
