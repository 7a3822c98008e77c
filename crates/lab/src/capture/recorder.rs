//! From frames to blocks of a capture file, gathered until they are worth writing.

use twinnet_fabric::Way;
use twinnet_packet::pcapng::{self, Direction};
use twinnet_packet::{Checksum, Frame};
use twinnet_units::Time;

use super::settings::CaptureSettings;

/// Bytes gathered before they are handed to the writer.
const BATCH_BYTES: usize = 256 * 1024;
/// Room for the last frame of a batch.
const LAST_FRAME: usize = 4096;

/// Blocks to be written together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// `true` if they begin a new file.
    pub new_file: bool,
    /// The blocks.
    pub bytes: Vec<u8>,
    /// Frames among them.
    pub frames: u64,
}

/// One port under capture. Frames are stamped to the nanosecond with the moment at which their last bit passed.
pub struct Recorder {
    port: String,
    settings: CaptureSettings,
    epoch_ns: u64,
    batch: Batch,
    /// Bytes of the file that were handed to the writer.
    file_bytes: u64,
    /// The time when the first frame of the file passed.
    file_began: Option<Time>,
    /// Frames that no file has.
    left_out: u64,
}

impl Recorder {
    /// A recorder of `port`; `epoch_ns` is the lab's zero in nanoseconds since 1970.
    #[must_use]
    pub fn new(port: &str, settings: CaptureSettings, epoch_ns: u64) -> Self {
        let port = port.to_owned();
        let batch = Batch::default();
        let mut recorder = Self { port, settings, epoch_ns, batch, file_bytes: 0, file_began: None, left_out: 0 };
        recorder.begin_file();
        recorder
    }

    fn begin_file(&mut self) {
        self.file_bytes = 0;
        self.file_began = None;
        self.batch = Batch { new_file: true, bytes: Vec::with_capacity(BATCH_BYTES + LAST_FRAME), frames: 0 };
        pcapng::section_header(&mut self.batch.bytes, concat!("twinnet ", env!("CARGO_PKG_VERSION")));
        pcapng::interface_description(&mut self.batch.bytes, &self.port, self.settings.snap.unwrap_or(0));
    }

    /// Records `frame`, whose last bit passed at `at`. Returns the batch that is to be written now, when there is one.
    #[must_use]
    pub fn record(&mut self, way: Way, frame: &Frame, at: Time) -> Option<Batch> {
        if self.settings.way.is_some_and(|wanted| wanted != way) {
            return None;
        }
        let length = self.file_bytes + self.batch.bytes.len() as u64;
        if self.settings.limit_bytes.is_some_and(|limit| length >= limit) {
            self.left_out += 1;
            return None;
        }
        let full = self.is_full(length, at).then(|| self.turn_over()).flatten();
        self.file_began.get_or_insert(at);
        let direction = match way {
            Way::In => Direction::Inbound,
            Way::Out => Direction::Outbound,
        };
        let completed = complete(frame);
        let shown = completed.as_deref().unwrap_or(frame);
        let snap = self.settings.snap.unwrap_or(0);
        pcapng::enhanced_packet(&mut self.batch.bytes, 0, at, self.epoch_ns, shown, direction, snap);
        self.batch.frames += 1;
        if full.is_none() && self.batch.bytes.len() >= BATCH_BYTES {
            return self.take();
        }
        full
    }

    /// Returns `true` if the file of a ring is full before a frame that passes at `at`.
    fn is_full(&self, length: u64, at: Time) -> bool {
        let (Some(ring), Some(began)) = (self.settings.ring, self.file_began) else { return false };
        ring.bytes.is_some_and(|bytes| length >= bytes) || ring.duration.is_some_and(|most| at - began >= most)
    }

    /// Ends the file and begins the next one; returns what is to be written of the one that ends.
    fn turn_over(&mut self) -> Option<Batch> {
        let last = std::mem::take(&mut self.batch);
        self.begin_file();
        (!last.bytes.is_empty()).then_some(last)
    }

    /// Returns what was gathered so far.
    #[must_use]
    pub fn take(&mut self) -> Option<Batch> {
        if self.batch.bytes.is_empty() {
            return None;
        }
        self.file_bytes += self.batch.bytes.len() as u64;
        let bytes = Vec::with_capacity(BATCH_BYTES + LAST_FRAME);
        Some(std::mem::replace(&mut self.batch, Batch { new_file: false, bytes, frames: 0 }))
    }

    /// `batch` cannot be written: its frames are counted, and a file that it would have begun is begun by the next.
    pub fn give_up(&mut self, batch: &Batch) {
        self.left_out += batch.frames;
        self.file_bytes = self.file_bytes.saturating_sub(batch.bytes.len() as u64);
        if batch.new_file && !self.batch.new_file {
            let (waiting, frames) = (std::mem::take(&mut self.batch.bytes), self.batch.frames);
            let began = self.file_began;
            self.begin_file();
            self.batch.bytes.extend(waiting);
            self.batch.frames = frames;
            self.file_began = began;
        }
    }

    /// Frames that were not handed to the writer: beyond the limit, or given up.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }
}

/// A copy of `frame` with the checksum that its sender left to the wire; `None` when it has it.
fn complete(frame: &Frame) -> Option<Box<Frame>> {
    if frame.checksum == Checksum::Complete {
        return None;
    }
    let mut complete = Box::new(frame.clone());
    complete.finish_checksum();
    Some(complete)
}

#[cfg(test)]
mod tests {
    use twinnet_units::Duration;

    use super::*;
    use crate::protocol::Ring;

    fn recorder(ring: Option<Ring>, way: Option<Way>) -> Recorder {
        Recorder::new("s1-eth1", CaptureSettings { ring, way, ..CaptureSettings::default() }, 0)
    }

    fn frame() -> Frame {
        Frame::new(vec![7; 1000])
    }

    #[test]
    fn every_file_of_a_ring_begins_with_its_headers_and_holds_no_half_block() {
        let mut recorder = recorder(Some(Ring { files: 3, bytes: Some(10_000), duration: None }), None);
        let mut batches: Vec<Batch> =
            (0..100).filter_map(|number| recorder.record(Way::Out, &frame(), Time::from_ns(number))).collect();
        batches.extend(recorder.take());
        // Nine blocks of 1044 bytes and the headers fill 10,000 bytes: a tenth frame goes in before that is seen.
        assert_eq!(batches.iter().map(|batch| batch.frames).sum::<u64>(), 100);
        assert!(batches.iter().all(|batch| batch.new_file && batch.bytes[..4] == [0x0a, 0x0d, 0x0d, 0x0a]));
        assert!(batches.iter().all(|batch| batch.bytes.len() < 11_100), "one frame above the limit at most");
    }

    #[test]
    fn a_file_of_a_ring_ends_with_its_time() {
        let ring = Ring { files: 2, bytes: None, duration: Some(Duration::from_ms(10)) };
        let mut recorder = recorder(Some(ring), None);
        let ended: Vec<u64> = (0..35)
            .filter(|at| recorder.record(Way::In, &frame(), Time::ZERO + Duration::from_ms(*at)).is_some())
            .collect();
        assert_eq!(ended, [10, 20, 30]);
    }

    #[test]
    fn one_direction_leaves_the_other_out_without_counting_it() {
        let mut recorder = recorder(None, Some(Way::In));
        for way in [Way::In, Way::Out, Way::In] {
            assert!(recorder.record(way, &frame(), Time::ZERO).is_none());
        }
        assert_eq!((recorder.take().unwrap().frames, recorder.left_out()), (2, 0));
    }

    #[test]
    fn a_batch_that_is_given_up_leaves_the_beginning_of_the_file_to_the_next() {
        let mut recorder = recorder(None, None);
        let _ = recorder.record(Way::In, &frame(), Time::ZERO);
        let lost = recorder.take().unwrap();
        let _ = recorder.record(Way::In, &frame(), Time::ZERO);
        recorder.give_up(&lost);
        let next = recorder.take().unwrap();
        assert!(next.new_file && next.bytes[..4] == [0x0a, 0x0d, 0x0d, 0x0a]);
        assert_eq!((next.frames, recorder.left_out()), (1, 1));
    }

    #[test]
    fn a_checksum_that_was_left_to_the_wire_is_complete_in_the_file() {
        let mut bytes = vec![0_u8; 60];
        bytes[50..52].copy_from_slice(&[0x12, 0x34]);
        let partial = Frame { bytes, checksum: Checksum::Partial { start: 34, offset: 16 }, ..Frame::default() };
        let mut recorder = recorder(None, None);
        let _ = recorder.record(Way::Out, &partial, Time::ZERO);
        let written = recorder.take().unwrap().bytes;
        let mut finished = partial.clone();
        finished.finish_checksum();
        assert_ne!(finished.bytes, partial.bytes);
        assert!(written.windows(60).any(|window| window == &finished.bytes[..]));
    }
}
