//! Batches of a capture into files, one after the other.

use std::collections::VecDeque;
use std::io::{self, Write};

use super::recorder::Batch;
use crate::protocol::{Captured, Ring};

/// A file of a capture.
pub trait CaptureFile: Write + Send {
    /// Takes away all behind the first `length` bytes, and goes on there.
    ///
    /// # Errors
    /// When that cannot be done with such a file.
    fn cut(&mut self, length: u64) -> io::Result<()>;
}

/// The place of the files of captures.
pub trait CaptureStore: Send + Sync {
    /// Opens the file `name`, empty.
    ///
    /// # Errors
    /// The error of the system.
    fn open(&self, name: &str) -> io::Result<Box<dyn CaptureFile>>;

    /// Removes the file `name`.
    ///
    /// # Errors
    /// The error of the system.
    fn remove(&self, name: &str) -> io::Result<()>;
}

/// Has no files: for a lab that captures nothing.
pub struct NoFiles;

impl CaptureStore for NoFiles {
    fn open(&self, _name: &str) -> io::Result<Box<dyn CaptureFile>> {
        Err(io::Error::other("this lab has no place for captures"))
    }

    fn remove(&self, _name: &str) -> io::Result<()> {
        Ok(())
    }
}

/// Writes what a recorder has gathered. A disk that is full costs the frames that do not fit: they are counted, the
/// file ends with a whole block, and what comes later is tried again.
pub struct CaptureWriter {
    store: Box<dyn CaptureStore>,
    /// The file's name; that of a ring's files has their numbers in it.
    name: String,
    ring: Option<Ring>,
    file: Option<Box<dyn CaptureFile>>,
    /// Whole blocks in the file.
    length: u64,
    files: VecDeque<String>,
    begun: u64,
    frames: u64,
    dropped: u64,
    failure: Option<String>,
}

impl CaptureWriter {
    /// A writer into the file `name` of `store`, or a ring of files around that name.
    #[must_use]
    pub fn new(store: Box<dyn CaptureStore>, name: &str, ring: Option<Ring>) -> Self {
        Self {
            store,
            name: name.to_owned(),
            ring,
            file: None,
            length: 0,
            files: VecDeque::new(),
            begun: 0,
            frames: 0,
            dropped: 0,
            failure: None,
        }
    }

    /// Opens the first file, so that a place that cannot be written is told at once.
    ///
    /// # Errors
    /// The error of the system.
    pub fn open_first(&mut self) -> io::Result<()> {
        self.open_next()
    }

    /// Writes a batch.
    pub fn write(&mut self, batch: &Batch) {
        if let Err(error) = self.try_write(batch) {
            self.dropped += batch.frames;
            self.failure.get_or_insert(error.to_string());
        } else {
            self.frames += batch.frames;
        }
    }

    fn try_write(&mut self, batch: &Batch) -> io::Result<()> {
        if batch.new_file && self.length > 0 {
            self.open_next()?;
        }
        let file = self.file.as_mut().ok_or_else(|| io::Error::other("the file could not be begun"))?;
        let written = if self.length == 0 && !batch.new_file {
            // Its headers did not fit: without them nobody could read what follows.
            Err(io::Error::other("the headers of the file are not there"))
        } else {
            file.write_all(&batch.bytes).and_then(|()| file.flush())
        };
        match written {
            Ok(()) => self.length += batch.bytes.len() as u64,
            Err(error) => {
                if file.cut(self.length).is_err() {
                    self.file = None;
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Begins the next file. A ring's oldest file goes when the new one is there.
    fn open_next(&mut self) -> io::Result<()> {
        let number = self.begun + 1;
        let name = if self.ring.is_some() { numbered(&self.name, number) } else { self.name.clone() };
        let file = self.store.open(&name)?;
        (self.file, self.length, self.begun) = (Some(file), 0, number);
        self.files.push_back(name);
        if let Some(ring) = self.ring {
            while self.files.len() as u64 > ring.files {
                let oldest = self.files.pop_front().unwrap_or_default();
                // Somebody may have taken it away already.
                let _ = self.store.remove(&oldest);
            }
        }
        Ok(())
    }

    /// Ends the capture. `left_out` are frames that no batch had. Tells how many frames are in files (also in those
    /// that a ring has removed since), how many are in none, and the files that are there, the oldest first.
    #[must_use]
    pub fn finish(self, left_out: u64) -> Captured {
        Captured {
            frames: self.frames,
            dropped: self.dropped + left_out,
            write_failed: self.failure.is_some(),
            failure: self.failure,
            files: self.files.into(),
        }
    }
}

/// The name of file `number` of a ring: names sort by time.
fn numbered(name: &str, number: u64) -> String {
    let folder = name.rfind('/').map_or(0, |slash| slash + 1);
    match name[folder..].rfind('.').filter(|dot| *dot > 0) {
        Some(dot) => format!("{}-{number:08}{}", &name[..folder + dot], &name[folder + dot..]),
        None => format!("{name}-{number:08}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::sync::{Arc, Mutex};

    type Files = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

    /// Files in memory on a disk of so many bytes.
    #[derive(Clone)]
    struct Disk {
        files: Files,
        room: usize,
    }

    struct Opened(Disk, String);

    impl Write for Opened {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut files = self.0.files.lock().unwrap();
            let used: usize = files.values().map(Vec::len).sum();
            let fits = bytes.len().min(self.0.room - used);
            if fits == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            files.entry(self.1.clone()).or_default().extend(&bytes[..fits]);
            Ok(fits)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl CaptureFile for Opened {
        fn cut(&mut self, length: u64) -> io::Result<()> {
            self.0.files.lock().unwrap().entry(self.1.clone()).or_default().truncate(usize::try_from(length).unwrap());
            Ok(())
        }
    }

    impl CaptureStore for Disk {
        fn open(&self, name: &str) -> io::Result<Box<dyn CaptureFile>> {
            self.files.lock().unwrap().insert(name.to_owned(), Vec::new());
            Ok(Box::new(Opened(self.clone(), name.to_owned())))
        }

        fn remove(&self, name: &str) -> io::Result<()> {
            self.files.lock().unwrap().remove(name).map(|_| ()).ok_or_else(|| io::ErrorKind::NotFound.into())
        }
    }

    fn writer(room: usize, ring: Option<Ring>) -> (CaptureWriter, Files) {
        let files = Files::default();
        let mut writer = CaptureWriter::new(Box::new(Disk { files: Arc::clone(&files), room }), "a/out.pcapng", ring);
        writer.open_first().unwrap();
        (writer, files)
    }

    fn batch(new_file: bool, length: usize) -> Batch {
        Batch { new_file, bytes: vec![1; length], frames: 10 }
    }

    #[test]
    fn a_ring_keeps_its_newest_files_and_their_names_sort_by_time() {
        let (mut writer, files) = writer(1 << 20, Some(Ring { files: 3, bytes: Some(10_000), duration: None }));
        for number in 0..12 {
            writer.write(&batch(true, 100 + number));
        }
        let kept: Vec<(String, usize)> =
            files.lock().unwrap().iter().map(|(name, bytes)| (name.clone(), bytes.len())).collect();
        let name = |number| format!("a/out-{number:08}.pcapng");
        assert_eq!(kept, [(name(10), 109), (name(11), 110), (name(12), 111)]);
        let told = writer.finish(0);
        assert_eq!((told.frames, &told.files[0]), (120, &name(10)));
    }

    #[test]
    fn a_full_disk_costs_what_does_not_fit_and_the_file_ends_with_a_whole_block() {
        let (mut writer, files) = writer(250, None);
        for begins in [true, false, false, false] {
            writer.write(&batch(begins, 100));
        }
        assert_eq!(files.lock().unwrap()["a/out.pcapng"].len(), 200);
        files.lock().unwrap().insert("a/out.pcapng".to_owned(), Vec::new());
        writer.write(&batch(false, 100));
        let told = writer.finish(5);
        assert_eq!((told.frames, told.dropped), (30, 25));
        assert!(told.write_failed);
    }

    #[test]
    fn without_its_headers_nothing_is_written_to_a_file() {
        let (mut writer, files) = writer(50, None);
        writer.write(&batch(true, 100));
        writer.write(&batch(false, 20));
        assert!(files.lock().unwrap()["a/out.pcapng"].is_empty());
        assert_eq!(writer.finish(0).dropped, 20);
    }

    #[test]
    fn numbers_come_before_the_last_dot_of_the_file() {
        assert_eq!(numbered("a.b/out", 1), "a.b/out-00000001");
        assert_eq!(numbered("out.tar.pcapng", 2), "out.tar-00000002.pcapng");
        assert_eq!(numbered("a/.hidden", 3), "a/.hidden-00000003");
    }
}
