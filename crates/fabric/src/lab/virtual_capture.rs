//! Captures of ports on the virtual clock: pcapng written where the lab's owner says, stamped with virtual time.

use std::io::{BufWriter, Write};

use serde_json::{json, Value};
use twinnet_packet::pcapng::{self, Direction};
use twinnet_packet::{Checksum, Frame};
use twinnet_units::Time;

use crate::Way;

/// A running capture. Frames are stamped with the lab's time since 1970-01-01: the lab begins there.
pub(super) struct VirtualCapture {
    file: BufWriter<Box<dyn Write + Send>>,
    packet: Vec<u8>,
    written_bytes: u64,
    limit_bytes: u64,
    snap: u32,
    frames: u64,
    dropped: u64,
    failed: bool,
}

impl VirtualCapture {
    pub(super) fn begin(file: Box<dyn Write + Send>, port: &str, limit_bytes: Option<u64>, snap: Option<u32>) -> Self {
        let snap = snap.unwrap_or(0);
        let mut capture = Self {
            file: BufWriter::with_capacity(256 * 1024, file),
            packet: Vec::new(),
            written_bytes: 0,
            limit_bytes: limit_bytes.unwrap_or(u64::MAX),
            snap,
            frames: 0,
            dropped: 0,
            failed: false,
        };
        pcapng::section_header(&mut capture.packet, concat!("twinnet ", env!("CARGO_PKG_VERSION")));
        pcapng::interface_description(&mut capture.packet, port, snap);
        capture.write();
        capture
    }

    pub(super) fn record(&mut self, way: Way, frame: &Frame, at: Time) {
        if self.written_bytes >= self.limit_bytes || self.failed {
            self.dropped += 1;
            return;
        }
        let direction = match way {
            Way::In => Direction::Inbound,
            Way::Out => Direction::Outbound,
        };
        let mut complete;
        let shown = if frame.checksum == Checksum::Complete {
            frame
        } else {
            complete = frame.clone();
            complete.finish_checksum();
            &complete
        };
        pcapng::enhanced_packet(&mut self.packet, 0, at, 0, shown, direction, self.snap);
        self.write();
        if self.failed {
            self.dropped += 1;
        } else {
            self.frames += 1;
        }
    }

    fn write(&mut self) {
        self.failed |= self.file.write_all(&self.packet).is_err();
        self.written_bytes += self.packet.len() as u64;
        self.packet.clear();
    }

    pub(super) fn finish(mut self) -> Value {
        self.failed |= self.file.flush().is_err();
        json!({"frames": self.frames, "dropped": self.dropped, "write_failed": self.failed})
    }
}
