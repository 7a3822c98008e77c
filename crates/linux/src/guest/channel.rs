//! What the lab and the first process of a guest say to each other. They have a network card for it, whose line loses
//! nothing and takes no time: a stream of bytes each way, in frames of an Ethernet type for local use.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use twinnet_lab::guest::ProgramOrder;

use crate::process::programs::Notice;
use crate::service::LabError;

/// `OUI Extended Ethertype` for experiments (IEEE 802, annex B).
pub const ETHERTYPE: u16 = 0x88b5;
/// Bytes before the stream's in a frame: the Ethernet header, and how many of the stream follow.
const BEFORE: usize = 16;
/// Bytes of the stream in one frame.
const IN_FRAME: usize = 1484;
/// Longest message.
const LONGEST: usize = 64 << 20;

/// A message to the guest, or from it.
#[derive(Debug)]
pub enum Message<T> {
    /// Something to do or to know.
    Said(T),
    /// Bytes that a program reads (stream 0) or has written (1, 2); none: there will be no more.
    Bytes {
        /// The program.
        job: u64,
        /// The stream.
        stream: u8,
        /// The bytes.
        bytes: Vec<u8>,
    },
}

/// What the guest's first process says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromGuest {
    /// All hosts stand.
    Ready,
    /// They cannot be built.
    Failed(LabError),
    /// Something about a program.
    Program(Notice),
}

/// The words of [`ProgramOrder`] that are not bytes.
pub type ToGuest = ProgramOrder;

impl<T: Serialize + for<'de> Deserialize<'de>> Message<T> {
    /// The message as the stream carries it: its length, its kind, its content.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (kind, content) = match self {
            // What we have defined ourselves can be written.
            Self::Said(said) => (0, serde_json::to_vec(said).unwrap_or_default()),
            Self::Bytes { job, stream, bytes } => {
                let mut content = job.to_le_bytes().to_vec();
                content.extend_from_slice(bytes);
                (1 + stream, content)
            }
        };
        let mut packed = ((content.len() + 1) as u32).to_le_bytes().to_vec();
        packed.push(kind);
        packed.extend_from_slice(&content);
        packed
    }

    fn of(kind: u8, content: &[u8]) -> Option<Self> {
        if kind == 0 {
            return serde_json::from_slice(content).ok().map(Self::Said);
        }
        let (job, bytes) = content.split_first_chunk::<8>()?;
        Some(Self::Bytes { job: u64::from_le_bytes(*job), stream: kind - 1, bytes: bytes.to_vec() })
    }
}

/// Frames that carry `bytes` of the stream.
pub fn frames(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> + '_ {
    bytes.chunks(IN_FRAME).map(|piece| {
        let mut frame = vec![0; BEFORE];
        frame[0] = 2;
        frame[6] = 2;
        frame[12..14].copy_from_slice(&ETHERTYPE.to_be_bytes());
        frame[14..16].copy_from_slice(&(piece.len() as u16).to_be_bytes());
        frame.extend_from_slice(piece);
        frame
    })
}

/// The stream as it comes in.
#[derive(Debug, Default)]
pub struct Incoming {
    bytes: VecDeque<u8>,
}

impl Incoming {
    /// Takes in a frame; one of another kind is none of ours.
    pub fn take_in(&mut self, frame: &[u8]) {
        if frame.get(12..14) != Some(&ETHERTYPE.to_be_bytes()) {
            return;
        }
        let length = frame.get(14..16).map_or(0, |length| usize::from(u16::from_be_bytes([length[0], length[1]])));
        self.bytes.extend(frame.get(BEFORE..BEFORE + length).unwrap_or_default());
    }

    /// The next whole message; `Err` when the stream makes no sense.
    pub fn next<T: Serialize + for<'de> Deserialize<'de>>(&mut self) -> Result<Option<Message<T>>, &'static str> {
        let mut length = [0; 4];
        for (place, byte) in length.iter_mut().zip(self.bytes.iter()) {
            *place = *byte;
        }
        let length = u32::from_le_bytes(length) as usize;
        if self.bytes.len() < 4 || self.bytes.len() - 4 < length {
            return if length > LONGEST { Err("a message is too long") } else { Ok(None) };
        }
        self.bytes.drain(..4);
        let message: Vec<u8> = self.bytes.drain(..length).collect();
        let (kind, content) = message.split_first().ok_or("a message is empty")?;
        Message::of(*kind, content).map(Some).ok_or("a message cannot be read")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_pass_in_frames_whatever_their_length() {
        let bytes: Vec<u8> = (0..5000_u32).map(|byte| byte as u8).collect();
        let sent = [
            Message::Said(ToGuest::Signal { job: 7, signal: 15 }),
            Message::Bytes { job: 9, stream: 2, bytes: bytes.clone() },
            Message::Bytes { job: 9, stream: 1, bytes: Vec::new() },
        ];
        let stream: Vec<u8> = sent.iter().flat_map(Message::to_bytes).collect();
        let mut incoming = Incoming::default();
        let mut came: Vec<Message<ToGuest>> = Vec::new();
        for frame in frames(&stream) {
            assert!(frame.len() <= 1500);
            incoming.take_in(&frame);
            while let Some(message) = incoming.next().unwrap() {
                came.push(message);
            }
        }
        assert!(matches!(&came[0], Message::Said(ToGuest::Signal { job: 7, signal: 15 })));
        assert!(matches!(&came[1], Message::Bytes { job: 9, stream: 2, bytes: got } if *got == bytes));
        assert!(matches!(&came[2], Message::Bytes { job: 9, stream: 1, bytes } if bytes.is_empty()));
        assert_eq!(came.len(), 3);
    }

    #[test]
    fn frames_of_others_and_words_without_sense_are_told_apart() {
        let mut incoming = Incoming::default();
        incoming.take_in(&[0; 60]);
        assert!(incoming.next::<ToGuest>().unwrap().is_none());
        for frame in frames(&[2, 0, 0, 0, 0, b'?']) {
            incoming.take_in(&frame);
        }
        assert!(incoming.next::<ToGuest>().is_err());
    }
}
