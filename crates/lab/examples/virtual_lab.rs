//! A lab on the virtual clock by standard input and output: the first line describes the network, each further one
//! is a request (docs/reference/lab-protocol.md), each answer is a line. For profiling, and for programs in other
//! languages.

use std::fs::File;
use std::io::{self, BufRead, Seek, SeekFrom, Write};
use std::sync::Arc;
use std::time::Instant;

use serde_json::{json, Value};
use twinnet_lab::capture::{CaptureFile, CaptureStore};
use twinnet_lab::network::NetworkSpec;
use twinnet_lab::protocol::Request;
use twinnet_lab::VirtualLab;

/// The files of captures.
struct Files;

impl CaptureStore for Files {
    fn open(&self, name: &str) -> io::Result<Box<dyn CaptureFile>> {
        Ok(Box::new(Opened(File::create(name)?)))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(name)
    }
}

struct Opened(File);

impl Write for Opened {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl CaptureFile for Opened {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.0.set_len(length)?;
        self.0.seek(SeekFrom::Start(length)).map(|_| ())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut lines = std::io::stdin().lock().lines();
    let described: Value = serde_json::from_str(&lines.next().ok_or("the first line describes a network")??)?;
    let mut lab = VirtualLab::new(NetworkSpec::from_json(&described)?, Arc::new(Files))?;
    let mut out = std::io::stdout().lock();
    for line in lines {
        let begin = Instant::now();
        let answer = Request::read(serde_json::from_str(&line?)?);
        let answer = match answer.and_then(|request| lab.request(request, &mut || false)) {
            Ok(reply) => json!({"ok": reply, "took_s": begin.elapsed().as_secs_f64()}),
            Err(error) => json!({"error": error}),
        };
        writeln!(out, "{answer}")?;
    }
    Ok(())
}
