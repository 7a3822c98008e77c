//! Captures of ports to pcapng files, written by a thread of their own so that a slow disk does not hold up the fabric.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{sync_channel, SyncSender, TrySendError};
use std::sync::Arc;
use std::thread::JoinHandle;

use serde_json::{json, Value};
use twinnet_fabric::Way;
use twinnet_packet::pcapng::{self, Direction};
use twinnet_packet::Frame;
use twinnet_units::Time;

use crate::clock::LabClock;

/// Bytes gathered before they are handed to the writer.
const BATCH: usize = 256 * 1024;
/// Batches that may wait for the writer; more are dropped and counted.
const WAITING: usize = 64;

/// One running capture.
pub struct Capture {
    sender: Option<SyncSender<Vec<u8>>>,
    writer: Option<JoinHandle<()>>,
    batch: Vec<u8>,
    batch_frames: u64,
    frames: u64,
    dropped: u64,
    written_bytes: u64,
    limit_bytes: u64,
    snap: u32,
    failed: Arc<AtomicU64>,
    epoch_ns: u64,
}

impl Capture {
    /// Begins a capture of the port `name` into `file`: at most `limit_bytes` of file, and `snap` bytes of each frame.
    /// Frames are stamped with the time of day, to the nanosecond, of the moment their last bit passed.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(
        file: OwnedFd,
        name: &str,
        limit_bytes: Option<u64>,
        snap: Option<u32>,
        clock: LabClock,
    ) -> std::io::Result<Self> {
        let (sender, receiver) = sync_channel::<Vec<u8>>(WAITING);
        let failed = Arc::new(AtomicU64::new(0));
        let failures = Arc::clone(&failed);
        let writer = std::thread::Builder::new().name("capture".into()).spawn(move || {
            let mut file = File::from(file);
            for batch in receiver {
                if file.write_all(&batch).is_err() {
                    failures.fetch_add(1, Ordering::Relaxed);
                    return;
                }
            }
        })?;
        let snap = snap.unwrap_or(0);
        let mut batch = Vec::with_capacity(BATCH + 4096);
        pcapng::section_header(&mut batch, concat!("twinnet ", env!("CARGO_PKG_VERSION")));
        pcapng::interface_description(&mut batch, name, snap);
        Ok(Self {
            sender: Some(sender),
            writer: Some(writer),
            batch,
            batch_frames: 0,
            frames: 0,
            dropped: 0,
            written_bytes: 0,
            limit_bytes: limit_bytes.unwrap_or(u64::MAX),
            snap,
            failed,
            epoch_ns: clock.realtime_ns_at(Time::ZERO),
        })
    }

    /// Records `frame`, whose last bit passed at `at`.
    pub fn record(&mut self, way: Way, frame: &Frame, at: Time) {
        if self.written_bytes + self.batch.len() as u64 >= self.limit_bytes {
            self.dropped += 1;
            return;
        }
        let direction = match way {
            Way::In => Direction::Inbound,
            Way::Out => Direction::Outbound,
        };
        let mut complete;
        let shown = if frame.checksum == twinnet_packet::Checksum::Complete {
            frame
        } else {
            complete = frame.clone();
            complete.finish_checksum();
            &complete
        };
        pcapng::enhanced_packet(&mut self.batch, 0, at, self.epoch_ns, shown, direction, self.snap);
        self.batch_frames += 1;
        if self.batch.len() >= BATCH {
            self.flush();
        }
    }

    /// Hands what was gathered to the writer. Called by the loop when it is idle, so that a reader sees frames soon.
    pub fn flush(&mut self) {
        let Some(sender) = self.sender.as_ref().filter(|_| !self.batch.is_empty()) else { return };
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH + 4096));
        let bytes = batch.len() as u64;
        match sender.try_send(batch) {
            Ok(()) => {
                self.frames += self.batch_frames;
                self.written_bytes += bytes;
            }
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => self.dropped += self.batch_frames,
        }
        self.batch_frames = 0;
    }

    /// Whether something was gathered that the writer does not have yet.
    #[must_use]
    pub fn has_unwritten(&self) -> bool {
        self.batch_frames > 0
    }

    /// Ends the capture; the answer tells how many frames are in the file and how many are not. Waits for the disk: call it
    /// from a thread that may.
    pub fn finish(mut self) -> Value {
        self.flush();
        drop(self.sender.take());
        if let Some(writer) = self.writer.take() {
            // A writer that panicked has written what it could; the count of failures tells.
            let _ = writer.join();
        }
        let failed = self.failed.load(Ordering::Relaxed) > 0;
        json!({"frames": self.frames, "dropped": self.dropped, "write_failed": failed})
    }
}
