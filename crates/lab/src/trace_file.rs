//! The trace of a lab on the virtual clock, written out: each event that the trace hash covers, and each frame that a
//! program sends. Two files tell where two runs part.
//!
//! It is text, a line for each event: the time in picoseconds, what happens, to whom. A frame has its length, a hash of
//! all its bytes and its first bytes. Lines about programs say what the lab's owner did; the hash does not cover them.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use twinnet_fabric::{Class, Event, PortId};
use twinnet_units::Time;

use super::assemble::Names;
use super::capture::CaptureFile;
use super::error::{ErrorName, LabError};
use super::guest::News;

/// The first line of a file.
const HEADER: &str = "twinnet trace 1\n";
/// Bytes of a frame that are written: the headers, with all options, of IPv6 and TCP.
const SHOWN_BYTES: usize = 134;
/// Bytes that are gathered before they are written.
const AT_ONCE: usize = 1 << 16;

/// A trace that is being written.
pub(super) struct TraceFile {
    file: Box<dyn CaptureFile>,
    path: String,
    text: String,
    now: Time,
    /// Interface names by port.
    ports: Vec<String>,
    /// The name of the interface at the far end of the line from each port.
    far_ends: Vec<String>,
    /// Names by node.
    nodes: Vec<String>,
    failure: Option<io::Error>,
}

impl TraceFile {
    /// Writes into `file`, which is empty and was opened as `path`.
    pub(super) fn new(file: Box<dyn CaptureFile>, path: &str, names: &Names) -> Self {
        let ports = names.port_names.clone();
        let mut far_ends = vec![String::new(); ports.len()];
        for (a, b) in &names.links {
            far_ends[a.0 as usize].clone_from(&ports[b.0 as usize]);
            far_ends[b.0 as usize].clone_from(&ports[a.0 as usize]);
        }
        let mut nodes = vec![String::new(); names.nodes.len()];
        for (name, node) in &names.nodes {
            if let Some(place) = nodes.get_mut(node.0 as usize) {
                place.clone_from(name);
            }
        }
        let (path, text, now) = (path.to_owned(), HEADER.to_owned(), Time::ZERO);
        Self { file, path, text, now, ports, far_ends, nodes, failure: None }
    }

    /// It is `now`.
    pub(super) fn set(&mut self, now: Time) {
        self.now = now;
    }

    /// `event` is handled next.
    pub(super) fn happens(&mut self, event: Event) {
        self.now = event.at;
        let name = |names: &[String]| names.get(event.element as usize).cloned().unwrap_or_default();
        let (what, who) = match event.class {
            Class::Change => ("changes", event.element.to_string()),
            Class::Start => ("begins", name(&self.nodes)),
            Class::Timeout => ("times-out", name(&self.nodes)),
            Class::Arrival => ("receives", name(&self.far_ends)),
            Class::Forward => ("forwards", name(&self.nodes)),
            Class::Timer => ("wakes", name(&self.nodes)),
            Class::Departure | Class::QueueReady | Class::Sample => return,
        };
        self.line(format_args!("{what} {who}"));
    }

    /// A program's host sends the frame `bytes` at `port`.
    pub(super) fn sends(&mut self, port: PortId, bytes: &[u8], hash: u64) {
        let mut shown = String::with_capacity(2 * SHOWN_BYTES);
        for byte in bytes.iter().take(SHOWN_BYTES) {
            // A string takes all.
            let _ = write!(shown, "{byte:02x}");
        }
        let port = self.ports.get(port.0 as usize).cloned().unwrap_or_default();
        self.line(format_args!("sends {port} {} {hash:016x} {shown}", bytes.len()));
    }

    /// The owner starts the program `job` in `host`.
    pub(super) fn starts(&mut self, host: &str, job: u64, argv: &[String]) {
        self.line(format_args!("starts {host} {job} {}", serde_json::json!(argv)));
    }

    /// The owner hears of a program.
    pub(super) fn hears(&mut self, news: &News) {
        if let News::Ended { job, how } = news {
            let status = how.status.or(how.signal.map(|signal| -signal)).unwrap_or_default();
            self.line(format_args!("ended program {job} {status}"));
        }
    }

    fn line(&mut self, what: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.text, "{} {what}", self.now.as_ps());
        if self.text.len() >= AT_ONCE {
            self.write();
        }
    }

    fn write(&mut self) {
        if self.failure.is_none() {
            self.failure = self.file.write_all(self.text.as_bytes()).and_then(|()| self.file.flush()).err();
        }
        self.text.clear();
    }

    /// Refuses to go on when something could not be written.
    pub(super) fn check(&self) -> Result<(), LabError> {
        self.failure.as_ref().map_or(Ok(()), |error| Err(failed(&self.path, error)))
    }

    /// Writes all that is left. What failed is told each time.
    pub(super) fn finish(&mut self) -> Result<(), LabError> {
        self.write();
        self.check()
    }
}

/// The refusal of a file that cannot be written.
pub(super) fn failed(path: &str, error: &io::Error) -> LabError {
    LabError::new(
        ErrorName::TraceFailed,
        format!("the trace {path}: {error}"),
        "name a file that can be written, with room for it",
    )
}
