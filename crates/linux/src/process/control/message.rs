//! One message on a `SOCK_SEQPACKET` socket: JSON text, and descriptors beside it. A text too large for one packet
//! travels as a memfd, the first of the descriptors.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::net::{
    recvmsg, sendmsg, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};

/// Longest text that travels in a packet.
pub const PACKET_BYTES: usize = 128 << 10;
/// Longest text that travels at all.
pub const LONGEST_BYTES: usize = 256 << 20;
/// Most descriptors of one message.
const MOST_DESCRIPTORS: usize = 8;
/// The packet that announces a text in a memfd.
const MEMFD_NOTE: &[u8] = br#"{"memfd": true}"#;

/// The contents of one message.
#[derive(Debug)]
pub struct Message {
    /// The text, not yet read as JSON.
    pub text: Vec<u8>,
    /// The descriptors beside it.
    pub descriptors: Vec<OwnedFd>,
}

/// The result of receiving.
#[derive(Debug)]
pub enum Received {
    /// A message.
    Message(Message),
    /// A message that breaks the rules of the transport; the next may be well.
    Malformed {
        /// The rule that was broken.
        why: &'static str,
        /// The packet as far as it came: it may still say whose request it was.
        packet: Vec<u8>,
    },
    /// Nothing now (on a socket that does not block).
    Nothing,
    /// The other side has closed.
    End,
}

/// Sends a message. `WouldBlock` on a socket that does not block and is full.
///
/// # Errors
/// The error of the kernel.
pub fn send(socket: BorrowedFd<'_>, text: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    if text.len() <= PACKET_BYTES {
        return send_packet(socket, text, descriptors);
    }
    let memfd = rustix::fs::memfd_create("message", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let mut rest = text;
    while !rest.is_empty() {
        let written = rustix::io::write(&memfd, rest)?;
        rest = &rest[written..];
    }
    rustix::fs::fcntl_add_seals(&memfd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE)?;
    let mut all = vec![memfd.as_fd()];
    all.extend_from_slice(descriptors);
    send_packet(socket, MEMFD_NOTE, &all)
}

fn send_packet(socket: BorrowedFd<'_>, text: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS + 1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many descriptors for one message"));
    }
    sendmsg(socket, &[IoSlice::new(text)], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives a message into `buffer`, which holds [`PACKET_BYTES`] at least.
///
/// # Errors
/// The error of the kernel, save what [`Received`] tells.
pub fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Received> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS + 1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let outcome = loop {
        match recvmsg(socket, &mut [IoSliceMut::new(buffer)], &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            // A reset is told once, before what the peer sent and left behind: that is still to be had.
            Err(rustix::io::Errno::INTR | rustix::io::Errno::CONNRESET) => {}
            Err(rustix::io::Errno::AGAIN) => return Ok(Received::Nothing),
            Err(error) => return Err(error.into()),
            Ok(outcome) => break outcome,
        }
    };
    let mut descriptors = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    if outcome.bytes == 0 {
        return Ok(Received::End);
    }
    let mut text = buffer[..outcome.bytes].to_vec();
    let malformed = |why, packet| Ok(Received::Malformed { why, packet });
    if outcome.flags.contains(ReturnFlags::TRUNC) {
        return malformed("the packet is over 128 KiB; send the object in a memfd", text);
    }
    if outcome.flags.contains(ReturnFlags::CTRUNC) {
        return malformed(
            "not all descriptors beside the packet could be taken: at most 8 may come, and each needs room among the \
             open files",
            text,
        );
    }
    if is_memfd_note(&text) {
        if descriptors.is_empty() {
            return malformed("a memfd was announced but no descriptor came", text);
        }
        match read_memfd(&descriptors.remove(0)) {
            Ok(content) => text = content,
            Err(why) => return malformed(why, text),
        }
    }
    Ok(Received::Message(Message { text, descriptors }))
}

fn is_memfd_note(text: &[u8]) -> bool {
    text.len() < 64
        && serde_json::from_slice::<serde_json::Value>(text).is_ok_and(|value| {
            value.as_object().is_some_and(|object| {
                object.get("memfd") == Some(&true.into()) && object.keys().all(|key| key == "memfd" || key == "id")
            })
        })
}

/// Reads all of a memfd. Other files are refused: reading one could block.
fn read_memfd(memfd: &OwnedFd) -> Result<Vec<u8>, &'static str> {
    const NOT_A_MEMFD: &str = "the descriptor that came is not a memfd";
    rustix::fs::fcntl_get_seals(memfd).map_err(|_| NOT_A_MEMFD)?;
    let length = rustix::fs::fstat(memfd).map_err(|_| NOT_A_MEMFD)?.st_size;
    let length =
        usize::try_from(length).ok().filter(|&length| length <= LONGEST_BYTES).ok_or("the memfd holds over 256 MiB")?;
    let mut content = vec![0; length];
    let mut filled = 0;
    while filled < length {
        match rustix::io::pread(memfd, &mut content[filled..], filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return Err("the memfd could not be read"),
        }
    }
    content.truncate(filled);
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{socketpair, AddressFamily, SocketFlags, SocketType};

    fn pair() -> (OwnedFd, OwnedFd) {
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
            .unwrap()
    }

    fn take(socket: &OwnedFd) -> Received {
        receive(socket.as_fd(), &mut vec![0; PACKET_BYTES]).unwrap()
    }

    #[test]
    fn a_short_text_comes_with_its_descriptors() {
        let (here, there) = pair();
        send(here.as_fd(), b"{}", &[here.as_fd(), here.as_fd()]).unwrap();
        let Received::Message(message) = take(&there) else { panic!("no message") };
        assert_eq!((message.text.as_slice(), message.descriptors.len()), (&b"{}"[..], 2));
        assert!(matches!(take(&there), Received::Nothing));
    }

    #[test]
    fn a_long_text_travels_as_a_memfd_before_the_other_descriptors() {
        let (here, there) = pair();
        let text = vec![b'x'; PACKET_BYTES + 1];
        send(here.as_fd(), &text, &[here.as_fd()]).unwrap();
        let Received::Message(message) = take(&there) else { panic!("no message") };
        assert_eq!((message.text, message.descriptors.len()), (text, 1));
    }

    #[test]
    fn a_pipe_in_place_of_a_memfd_is_refused_instead_of_read() {
        let (here, there) = pair();
        let (reader, _writer) = rustix::pipe::pipe().unwrap();
        send_packet(here.as_fd(), MEMFD_NOTE, &[reader.as_fd()]).unwrap();
        let Received::Malformed { why, packet } = take(&there) else { panic!("it was taken") };
        assert_eq!((why, packet.as_slice()), ("the descriptor that came is not a memfd", MEMFD_NOTE));
        send_packet(here.as_fd(), MEMFD_NOTE, &[]).unwrap();
        assert!(matches!(take(&there), Received::Malformed { .. }));
    }

    #[test]
    fn last_words_are_heard_from_a_peer_that_left_something_unread() {
        let (here, there) = pair();
        send(there.as_fd(), b"unread", &[]).unwrap();
        send(here.as_fd(), b"last words", &[]).unwrap();
        drop(here);
        let Received::Message(message) = take(&there) else { panic!("no message") };
        assert_eq!(message.text, b"last words");
        assert!(matches!(take(&there), Received::End));
    }

    #[test]
    fn a_closed_peer_is_the_end() {
        let (here, there) = pair();
        drop(here);
        assert!(matches!(take(&there), Received::End));
    }
}
