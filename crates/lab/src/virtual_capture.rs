//! Captures of ports on the virtual clock: written where the lab's owner says, stamped with virtual time.

use std::sync::Arc;

use twinnet_fabric::Way;
use twinnet_packet::Frame;
use twinnet_units::Time;

use super::capture::{CaptureFile, CaptureSettings, CaptureStore, CaptureWriter, Recorder};
use super::protocol::Captured;

/// The lab's files, for one capture.
struct Shared(Arc<dyn CaptureStore>);

impl CaptureStore for Shared {
    fn open(&self, name: &str) -> std::io::Result<Box<dyn CaptureFile>> {
        self.0.open(name)
    }

    fn remove(&self, name: &str) -> std::io::Result<()> {
        self.0.remove(name)
    }
}

/// A running capture. Frames are stamped with the lab's time since 1970-01-01: the lab begins there.
pub(super) struct VirtualCapture {
    recorder: Recorder,
    writer: CaptureWriter,
}

impl VirtualCapture {
    pub(super) fn begin(
        store: Arc<dyn CaptureStore>,
        path: &str,
        port: &str,
        settings: CaptureSettings,
    ) -> std::io::Result<Self> {
        let mut writer = CaptureWriter::new(Box::new(Shared(store)), path, settings.ring);
        writer.open_first()?;
        Ok(Self { recorder: Recorder::new(port, settings, 0), writer })
    }

    pub(super) fn record(&mut self, way: Way, frame: &Frame, at: Time) {
        if let Some(batch) = self.recorder.record(way, frame, at) {
            self.writer.write(&batch);
        }
    }

    pub(super) fn finish(mut self) -> Captured {
        if let Some(batch) = self.recorder.take() {
            self.writer.write(&batch);
        }
        self.writer.finish(self.recorder.left_out())
    }
}
