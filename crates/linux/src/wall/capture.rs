//! Captures of ports to pcapng files on the wall clock, written by a thread of their own so that a slow disk does not
//! hold up the fabric.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::sync::mpsc::{sync_channel, SyncSender, TrySendError};
use std::sync::Mutex;
use std::thread::JoinHandle;

use twinnet_fabric::Way;
use twinnet_lab::capture::{Batch, CaptureFile, CaptureSettings, CaptureStore, CaptureWriter, Recorder};
use twinnet_lab::protocol::Captured;
use twinnet_packet::Frame;
use twinnet_units::Time;

use crate::wall::clock::LabClock;

/// Batches that may wait for the writer; more are dropped and counted.
const WAITING: usize = 64;

/// A file on a disk.
pub struct DiskFile(File);

impl Write for DiskFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl CaptureFile for DiskFile {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.0.set_len(length)?;
        self.0.seek(SeekFrom::Start(length)).map(|_| ())
    }
}

/// Files by their paths, for a lab in the caller's process.
pub struct Paths;

impl CaptureStore for Paths {
    fn open(&self, name: &str) -> io::Result<Box<dyn CaptureFile>> {
        Ok(Box::new(DiskFile(File::create(name)?)))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(Path::new(name))
    }
}

/// The one file that the lab's owner has opened.
struct GivenFile(Mutex<Option<OwnedFd>>);

impl CaptureStore for GivenFile {
    fn open(&self, _name: &str) -> io::Result<Box<dyn CaptureFile>> {
        let given = self.0.lock().ok().and_then(|mut given| given.take());
        let given = given.ok_or_else(|| io::Error::other("the file was opened already"))?;
        Ok(Box::new(DiskFile(File::from(given))))
    }

    fn remove(&self, _name: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// The folder that the lab's owner has opened, for the files of a ring.
struct GivenFolder(OwnedFd);

impl CaptureStore for GivenFolder {
    fn open(&self, name: &str) -> io::Result<Box<dyn CaptureFile>> {
        let name = CString::new(name)?;
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC | libc::O_CLOEXEC | libc::O_NOFOLLOW;
        // SAFETY: the folder is open and the name ends with a zero byte; the result is checked.
        let descriptor = unsafe { libc::openat(self.0.as_raw_fd(), name.as_ptr(), flags, 0o644) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just opened and belongs to nobody else.
        Ok(Box::new(DiskFile(File::from(unsafe { OwnedFd::from_raw_fd(descriptor) }))))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let name = CString::new(name)?;
        // SAFETY: the folder is open and the name ends with a zero byte.
        match unsafe { libc::unlinkat(self.0.as_raw_fd(), name.as_ptr(), 0) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// One running capture.
pub struct Capture {
    recorder: Recorder,
    sender: Option<SyncSender<Batch>>,
    writer: Option<JoinHandle<CaptureWriter>>,
}

impl Capture {
    /// Begins a capture of the port `port`. `place` is the file to write or, for a ring, the folder for files around
    /// the name `name`. Frames are stamped with the time of day, to the nanosecond, of the moment their last bit
    /// passed.
    ///
    /// # Errors
    /// When the first file cannot be opened, or no thread be started.
    pub fn start(
        place: OwnedFd,
        name: &str,
        port: &str,
        settings: CaptureSettings,
        clock: LabClock,
    ) -> io::Result<Self> {
        let store: Box<dyn CaptureStore> = match settings.ring {
            Some(_) => Box::new(GivenFolder(place)),
            None => Box::new(GivenFile(Mutex::new(Some(place)))),
        };
        let mut writer = CaptureWriter::new(store, name, settings.ring);
        writer.open_first()?;
        let (sender, receiver) = sync_channel::<Batch>(WAITING);
        let writer = std::thread::Builder::new().name("capture".into()).spawn(move || {
            for batch in receiver {
                writer.write(&batch);
            }
            writer
        })?;
        let recorder = Recorder::new(port, settings, clock.realtime_ns_at(Time::ZERO));
        Ok(Self { recorder, sender: Some(sender), writer: Some(writer) })
    }

    /// Records `frame`, whose last bit passed at `at`.
    pub fn record(&mut self, way: Way, frame: &Frame, at: Time) {
        if let Some(batch) = self.recorder.record(way, frame, at) {
            self.hand_over(batch);
        }
    }

    /// Hands what was gathered to the writer. Called by the loop when it is idle, so that a reader sees frames soon.
    pub fn flush(&mut self) {
        if let Some(batch) = self.recorder.take() {
            self.hand_over(batch);
        }
    }

    fn hand_over(&mut self, batch: Batch) {
        let Some(sender) = &self.sender else { return };
        if let Err(TrySendError::Full(batch) | TrySendError::Disconnected(batch)) = sender.try_send(batch) {
            self.recorder.give_up(&batch);
        }
    }

    /// Ends the capture; the answer tells how many frames are in files and how many are not. Waits for the disk: call
    /// it from a thread that may.
    pub fn finish(mut self) -> Captured {
        self.flush();
        drop(self.sender.take());
        match self.writer.take().map(JoinHandle::join) {
            Some(Ok(writer)) => writer.finish(self.recorder.left_out()),
            // A writer that panicked has written what it could; how much is not known.
            _ => Captured {
                dropped: self.recorder.left_out(),
                write_failed: true,
                failure: Some("the thread that writes the file has failed".to_owned()),
                ..Captured::default()
            },
        }
    }
}
