//! The flow messages of OpenFlow 1.0 with an extensible match.

use std::sync::Arc;

use crate::error::Refusal;
use crate::oxm::Match;
use crate::v10::{Action, FlowFlags, FlowModCommand, FlowRemovedReason};
use crate::v13::PacketInReason;
use crate::verbatim;
use crate::wire::{pad, Reader, Wire};

/// `NXT_FLOW_MOD`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub struct FlowMod {
    /// Cookie to set.
    pub cookie: u64,
    /// Table; only when [`super::Message::FlowModTableId`] was switched on, 0 otherwise, when the switch chooses.
    pub table_id: u8,
    /// The command.
    pub command: FlowModCommand,
    /// Seconds without a frame after which the flow ends; 0: never.
    pub idle_timeout: u16,
    /// Seconds after which the flow ends; 0: never.
    pub hard_timeout: u16,
    /// Priority.
    pub priority: u16,
    /// Frame that the new flow is applied to, or [`crate::NO_BUFFER`].
    pub buffer_id: u32,
    /// Delete only flows that output here.
    pub out_port: u16,
    /// Flags.
    pub flags: FlowFlags,
    /// The match: which frames.
    pub matching: Match,
    /// The actions on them.
    pub actions: Vec<Action>,
}

impl Wire for FlowMod {
    fn read(reader: &mut Reader) -> Result<Self, Refusal> {
        let cookie = reader.get()?;
        let table_id = reader.get()?;
        let command = reader.get()?;
        let (idle_timeout, hard_timeout, priority) = (reader.get()?, reader.get()?, reader.get()?);
        let (buffer_id, out_port, flags) = (reader.get()?, reader.get()?, reader.get()?);
        let length = reader.get()?;
        reader.skip(6)?;
        let matching = Match::read_padded(reader, length)?;
        matching.check()?;
        Ok(Self {
            cookie,
            table_id,
            command,
            idle_timeout,
            hard_timeout,
            priority,
            buffer_id,
            out_port,
            flags,
            matching,
            actions: reader.get()?,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.cookie.write(out);
        self.table_id.write(out);
        self.command.write(out);
        self.idle_timeout.write(out);
        self.hard_timeout.write(out);
        self.priority.write(out);
        self.buffer_id.write(out);
        self.out_port.write(out);
        self.flags.write(out);
        write_match_with_length(|out| self.matching.write_padded(out), out, 6, &[]);
        self.actions.write(out);
    }
}

impl FlowMod {
    /// Match (without padding) and actions as they stand in a whole message of either version that was decoded.
    #[must_use]
    pub fn written(message: &[u8]) -> (Arc<[u8]>, Arc<[u8]>) {
        const LENGTH: usize = 40;
        const MATCH: usize = 48;
        let length =
            message.get(LENGTH..LENGTH + 2).map_or(0, |pair| usize::from(u16::from_be_bytes([pair[0], pair[1]])));
        let matching = message.get(MATCH..MATCH + length).unwrap_or_default();
        (matching.into(), verbatim::from(message, MATCH + length.next_multiple_of(8)))
    }
}

/// Writes the 16 bits of the match's length, `padding` zeros, `between`, and what `write_match` writes, which says
/// the length.
#[allow(clippy::cast_possible_truncation)]
pub(super) fn write_match_with_length(
    write_match: impl FnOnce(&mut Vec<u8>) -> usize,
    out: &mut Vec<u8>,
    padding: usize,
    between: &[u64],
) {
    let length_at = out.len();
    pad(out, 2 + padding);
    between.iter().for_each(|number| number.write(out));
    let length = write_match(out) as u16;
    out[length_at..length_at + 2].copy_from_slice(&length.to_be_bytes());
}

/// `NXT_FLOW_REMOVED`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub struct FlowRemoved {
    /// Cookie.
    pub cookie: u64,
    /// Priority.
    pub priority: u16,
    /// Why.
    pub reason: FlowRemovedReason,
    /// One more than the table's number; 0 when it is not told.
    pub table_id_plus_one: u8,
    /// Whole seconds that it lived.
    pub duration_sec: u32,
    /// Nanoseconds beyond them.
    pub duration_nsec: u32,
    /// Idle timeout in seconds.
    pub idle_timeout: u16,
    /// Frames.
    pub packet_count: u64,
    /// Bytes.
    pub byte_count: u64,
    /// The match: which frames they were.
    pub matching: Match,
}

impl Wire for FlowRemoved {
    fn read(reader: &mut Reader) -> Result<Self, Refusal> {
        let (cookie, priority, reason, table_id_plus_one) =
            (reader.get()?, reader.get()?, reader.get()?, reader.get()?);
        let (duration_sec, duration_nsec, idle_timeout) = (reader.get()?, reader.get()?, reader.get()?);
        let length = reader.get()?;
        let (packet_count, byte_count) = (reader.get()?, reader.get()?);
        let matching = Match::read_padded(reader, length)?;
        Ok(Self {
            cookie,
            priority,
            reason,
            table_id_plus_one,
            duration_sec,
            duration_nsec,
            idle_timeout,
            packet_count,
            byte_count,
            matching,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.cookie.write(out);
        self.priority.write(out);
        self.reason.write(out);
        self.table_id_plus_one.write(out);
        self.duration_sec.write(out);
        self.duration_nsec.write(out);
        self.idle_timeout.write(out);
        write_match_with_length(|out| self.matching.write_padded(out), out, 0, &[self.packet_count, self.byte_count]);
    }
}

/// `NXT_PACKET_IN`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub struct PacketIn {
    /// The buffer in which the switch keeps the frame, or [`crate::NO_BUFFER`].
    pub buffer_id: u32,
    /// Bytes of the whole frame.
    pub total_len: u16,
    /// Why.
    pub reason: PacketInReason,
    /// Table whose flow it was.
    pub table_id: u8,
    /// Cookie of that flow; all ones when there is none.
    pub cookie: u64,
    /// The port, registers and the like.
    pub matching: Match,
    /// The frame, or its beginning.
    pub data: Vec<u8>,
}

impl Wire for PacketIn {
    fn read(reader: &mut Reader) -> Result<Self, Refusal> {
        let (buffer_id, total_len, reason) = (reader.get()?, reader.get()?, reader.get()?);
        let (table_id, cookie) = (reader.get()?, reader.get()?);
        let length = reader.get()?;
        reader.skip(6)?;
        let matching = Match::read_padded(reader, length)?;
        reader.skip(2)?;
        Ok(Self { buffer_id, total_len, reason, table_id, cookie, matching, data: reader.get()? })
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.buffer_id.write(out);
        self.total_len.write(out);
        self.reason.write(out);
        self.table_id.write(out);
        self.cookie.write(out);
        write_match_with_length(|out| self.matching.write_padded(out), out, 6, &[]);
        pad(out, 2);
        self.data.write(out);
    }
}
