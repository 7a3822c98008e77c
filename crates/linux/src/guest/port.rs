//! A virtual network card of a guest, by the vhost-user protocol: the guest's kernel is its driver, and we are the
//! device. Messages set the card up; kicks and interrupts travel with the turn ([`super::calendar`]), so that nothing
//! depends on real time.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags};
use twinnet_packet::{Frame, MacAddress};
use twinnet_units::impossible;

use super::rings::{Memory, Ring};
use crate::kernel::device::{apply, describe, VirtioNetHeader};
use crate::kernel::interface::VNET_HEADER_BYTES;

/// Requests of the driver, as the vhost-user protocol numbers them.
mod request {
    pub const GET_FEATURES: u32 = 1;
    pub const SET_MEM_TABLE: u32 = 5;
    pub const SET_VRING_NUM: u32 = 8;
    pub const SET_VRING_ADDR: u32 = 9;
    pub const GET_PROTOCOL_FEATURES: u32 = 15;
    pub const GET_QUEUE_NUM: u32 = 17;
    pub const SET_BACKEND_REQ_FD: u32 = 21;
    pub const GET_CONFIG: u32 = 24;
}

/// Flags of a message: version 1 of the protocol, a reply, a reply is wanted.
const VERSION: u32 = 1;
const REPLY: u32 = 4;
const WANTS_REPLY: u32 = 8;

/// `VIRTIO_NET_F_*` and other features that we offer: checksums are left to the line both ways; super-segments of TCP
/// over both families pass, which the line cuts; a frame may take several buffers; address, MTU and state of the link
/// are told.
const FEATURES: u64 = 1 | 1 << 1 | 1 << 3 | 1 << 5 | SEGMENTS | 1 << 15 | 1 << 16 | 1 << 30 | 1 << 32;
/// To the guest: TCP over IPv4, over IPv6, with congestion marks; and from it the same.
const SEGMENTS: u64 = 1 << 7 | 1 << 8 | 1 << 9 | 1 << 11 | 1 << 12 | 1 << 13;
/// `VHOST_USER_PROTOCOL_F_*`: replies, requests of the device, its configuration, kicks as messages.
const PROTOCOL_FEATURES: u64 = 1 << 3 | 1 << 5 | 1 << 9 | 1 << 14;

/// Bytes of the header before each frame: `struct virtio_net_hdr_v1`.
const HEADER_BYTES: usize = VNET_HEADER_BYTES + 2;
/// Bytes of a message's header, and most bytes of what follows.
const MESSAGE_HEADER_BYTES: usize = 12;
const LONGEST_MESSAGE: usize = 1024;
/// Longest frame that a guest may send: a super-segment with its headers.
const LONGEST_FRAME: usize = 65_536 + 256 + HEADER_BYTES;

/// The queues of a card.
const RECEIVE: usize = 0;
/// As above.
pub const TRANSMIT: usize = 1;
/// The bit of a card's configuration beside those of its queues.
const CONFIGURATION: u32 = 1 << 2;

/// What the driver said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// Something that was answered at once.
    Answered,
    /// It is gone.
    Gone,
}

/// One card.
pub struct Port {
    socket: OwnedFd,
    /// The way of our own requests, once the driver has given it: it is open, and not used.
    requests: Option<OwnedFd>,
    memory: Option<Memory>,
    rings: [Ring; 2],
    mac: MacAddress,
    mtu: u16,
    up: bool,
    /// The buffer of the frame that was pulled last, which is still on the line.
    leaving: Option<u16>,
    /// The guest is to be told of its queues, and of its link.
    to_tell: [bool; 2],
    changed: bool,
}

impl Port {
    /// The card whose driver is at the other end of `socket`.
    pub fn new(socket: OwnedFd, mac: MacAddress, mtu: u16) -> Self {
        Self {
            socket,
            requests: None,
            memory: None,
            rings: [Ring::default(), Ring::default()],
            mac,
            mtu,
            up: true,
            leaving: None,
            to_tell: [false; 2],
            changed: false,
        }
    }

    /// The socket, for waiting on it.
    pub fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// Takes one message of the driver, and answers it.
    ///
    /// # Errors
    /// The error of the kernel, or a message that breaks the protocol.
    pub fn hear(&mut self) -> io::Result<Said> {
        let mut header = [0; MESSAGE_HEADER_BYTES];
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut beside = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::WAITALL;
        let received = match rustix::net::recvmsg(&self.socket, &mut [IoSliceMut::new(&mut header)], &mut beside, flags)
        {
            Err(rustix::io::Errno::CONNRESET) => return Ok(Said::Gone),
            received => received?,
        };
        let descriptor = beside.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
            _ => None,
        });
        if received.bytes == 0 {
            return Ok(Said::Gone);
        }
        let (kind, flags, length) = (word(&header, 0), word(&header, 4), word(&header, 8) as usize);
        if received.bytes != MESSAGE_HEADER_BYTES || length > LONGEST_MESSAGE {
            return Err(io::Error::other(format!("the guest's card sent a message {kind} of {length} bytes")));
        }
        let mut payload = [0; LONGEST_MESSAGE];
        if length > 0 {
            rustix::net::recv(&self.socket, &mut payload[..length], RecvFlags::WAITALL)?;
        }
        let payload = &payload[..length];
        let wants_reply = flags & WANTS_REPLY != 0;
        match self.configured(kind, payload, descriptor)? {
            Some(answer) => self.reply(kind, &answer)?,
            None if wants_reply => self.reply(kind, &0_u64.to_ne_bytes())?,
            None => {}
        }
        Ok(Said::Answered)
    }

    /// Takes a message that sets the card up; returns what it asks for, if anything.
    fn configured(&mut self, kind: u32, payload: &[u8], descriptor: Option<OwnedFd>) -> io::Result<Option<Vec<u8>>> {
        let number = |value: u64| Some(value.to_ne_bytes().to_vec());
        match kind {
            request::GET_FEATURES => return Ok(number(FEATURES)),
            request::GET_PROTOCOL_FEATURES => return Ok(number(PROTOCOL_FEATURES)),
            request::GET_QUEUE_NUM => return Ok(number(2)),
            request::GET_CONFIG => {
                let mut answer = payload.to_vec();
                let space = answer.get_mut(12..).unwrap_or_default();
                for (place, byte) in space.iter_mut().zip(self.configuration()) {
                    *place = byte;
                }
                return Ok(Some(answer));
            }
            request::SET_MEM_TABLE => {
                let file = descriptor.ok_or_else(|| io::Error::other("the guest shares no memory"))?;
                let (length, address, offset) = (long(payload, 16), long(payload, 24), long(payload, 32));
                self.memory = Some(Memory::map(&file, address, length, offset)?);
            }
            request::SET_VRING_NUM => {
                self.ring(payload)?.size = u16::try_from(word(payload, 4)).unwrap_or(0);
            }
            request::SET_VRING_ADDR => {
                self.ring(payload)?.place(long(payload, 8), long(payload, 24), long(payload, 16));
                if let (RECEIVE, Some(memory)) = (word(payload, 0) as usize, &self.memory) {
                    // Frames come when they come: that there is room for more is no news.
                    self.rings[RECEIVE].notify(memory, false)?;
                }
            }
            request::SET_BACKEND_REQ_FD => self.requests = descriptor,
            _ => {}
        }
        Ok(None)
    }

    fn ring(&mut self, payload: &[u8]) -> io::Result<&mut Ring> {
        let index = word(payload, 0) as usize;
        self.rings.get_mut(index).ok_or_else(|| io::Error::other(format!("the guest's card has no queue {index}")))
    }

    /// `struct virtio_net_config`: address, state of the link, one pair of queues, MTU.
    fn configuration(&self) -> [u8; 12] {
        let mut bytes = [0; 12];
        bytes[..6].copy_from_slice(&self.mac.0);
        bytes[6] = u8::from(self.up);
        bytes[8] = 1;
        bytes[10..].copy_from_slice(&self.mtu.to_le_bytes());
        bytes
    }

    fn reply(&self, kind: u32, payload: &[u8]) -> io::Result<()> {
        send(&self.socket, &message(kind, VERSION | REPLY, payload))
    }

    /// The frame before has left: gives its buffer back. Returns the next frame that the guest sends, if there is one,
    /// and else asks to be told of the next.
    ///
    /// # Errors
    /// What the guest did wrong.
    pub fn pull(&mut self) -> io::Result<Option<Box<Frame>>> {
        let Some(memory) = &self.memory else { return Ok(None) };
        let ring = &mut self.rings[TRANSMIT];
        if let Some(head) = self.leaving.take() {
            ring.give_back(memory, head, 0)?;
            self.to_tell[TRANSMIT] = true;
        }
        loop {
            let Some(head) = ring.take(memory)? else {
                ring.notify(memory, true)?;
                return Ok(None);
            };
            let mut bytes = Vec::with_capacity(2048);
            ring.read(memory, head, &mut bytes, LONGEST_FRAME)?;
            let header = bytes.first_chunk().copied().map(VirtioNetHeader::of_bytes);
            let Some(header) = header.filter(|_| bytes.len() > HEADER_BYTES) else {
                ring.give_back(memory, head, 0)?;
                continue;
            };
            bytes.drain(..HEADER_BYTES);
            let mut frame = Box::new(Frame::new(bytes));
            apply(&header, &mut frame);
            if !frame.offload_is_sound() {
                ring.give_back(memory, head, 0)?;
                continue;
            }
            // While a frame is on the line, the line's end is what we come back for.
            ring.notify(memory, false)?;
            self.leaving = Some(head);
            return Ok(Some(frame));
        }
    }

    /// Hands `frame` to the guest, which is not told of it yet.
    ///
    /// # Errors
    /// What the guest did wrong.
    pub fn deliver(&mut self, frame: &Frame) -> io::Result<()> {
        static ZEROS: [u8; LONGEST_FRAME] = [0; LONGEST_FRAME];
        let Some(memory) = &self.memory else { return Ok(()) };
        let ring = &mut self.rings[RECEIVE];
        let filler = &ZEROS[..(frame.elided as usize).min(LONGEST_FRAME)];
        let wanted = HEADER_BYTES as u64 + frame.length();
        let mut buffers: Vec<(u16, u64)> = Vec::with_capacity(1);
        while buffers.iter().map(|(_, room)| room).sum::<u64>() < wanted {
            let Some(head) = ring.take(memory)? else {
                // Computing takes no time, so the guest has taken all that came before this moment.
                impossible!("a guest whose card has no buffer");
                ring.untake(buffers.len() as u16);
                return Ok(());
            };
            buffers.push((head, ring.room(memory, head)?));
        }
        let header = describe(frame).to_bytes();
        let count = (buffers.len() as u16).to_le_bytes();
        let mut pieces: VecDeque<&[u8]> = VecDeque::from([&header[..], &count, &frame.bytes, filler]);
        for (head, _) in buffers {
            let written = ring.write(memory, head, &mut pieces)?;
            ring.give_back(memory, head, written)?;
        }
        self.to_tell[RECEIVE] = true;
        Ok(())
    }

    /// The link went up or down.
    ///
    /// # Errors
    /// What the guest did wrong.
    pub fn carrier(&mut self, up: bool) -> io::Result<()> {
        self.changed |= self.up != up;
        self.up = up;
        // The line begins anew, and waits for no end of a frame.
        match &self.memory {
            Some(memory) => self.rings[TRANSMIT].notify(memory, true),
            None => Ok(()),
        }
    }

    /// What the guest is to be told of what was done since it last ran: a bit for each queue, and one for the
    /// configuration.
    ///
    /// # Errors
    /// What the guest did wrong.
    pub fn calls(&mut self) -> io::Result<u32> {
        let (Some(memory), Some(_)) = (&self.memory, &self.requests) else { return Ok(0) };
        let mut calls = if std::mem::take(&mut self.changed) { CONFIGURATION } else { 0 };
        for (index, to_tell) in self.to_tell.iter_mut().enumerate() {
            if std::mem::take(to_tell) && self.rings[index].wants_to_know(memory)? {
                calls |= 1 << index;
            }
        }
        Ok(calls)
    }
}

fn message(kind: u32, flags: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(MESSAGE_HEADER_BYTES + payload.len());
    for field in [kind, flags, payload.len() as u32] {
        bytes.extend_from_slice(&field.to_ne_bytes());
    }
    bytes.extend_from_slice(payload);
    bytes
}

fn send(to: impl AsFd, bytes: &[u8]) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        match rustix::net::send(&to, rest, SendFlags::NOSIGNAL) {
            Ok(length) => rest = &rest[length..],
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// The 32 bits at `at`; zero where the message is too short.
fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

/// The 64 bits at `at`; zero where the message is too short.
fn long(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes)
}
