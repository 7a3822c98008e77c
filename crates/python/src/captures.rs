//! Captures: the file, its tables as columns, and the GIL left to others meanwhile.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use twinnet_capture::{
    analyze_joined, match_captures, AnalyzeError, Column, MatchError, OpenError, Options, Prints, Table,
};

/// Opens the regular file at `path`. A pipe has no end until its writer closes it, and a device may have none at all:
/// neither is waited for, but for the standard input, where somebody has put it.
fn open(path: &Path) -> io::Result<File> {
    if path == Path::new("/dev/stdin") || fs::metadata(path)?.is_file() {
        return File::open(path);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
}

/// Lets Python handle signals while the work goes on without it; keeps what one of them raised.
#[derive(Default)]
struct Signals {
    raised: Option<PyErr>,
}

impl Signals {
    fn allow(&mut self) -> bool {
        self.raised = Python::attach(|py| py.check_signals().err());
        self.raised.is_none()
    }

    fn raised(self) -> PyErr {
        self.raised.unwrap_or_else(|| PyKeyboardInterrupt::new_err(()))
    }
}

/// A table as `{name: (kind, values)}`: `kind` is `i` or `f` with little-endian bytes, or `s` with a list of texts.
fn columns<'py>(py: Python<'py>, table: &Table) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, column) in &table.columns {
        match column {
            Column::Whole(values) => dict.set_item(name, ("i", bytes(py, values, |value| value.to_le_bytes())?))?,
            Column::Real(values) => dict.set_item(name, ("f", bytes(py, values, |value| value.to_le_bytes())?))?,
            Column::Text(values) => dict.set_item(name, ("s", PyList::new(py, values)?))?,
        }
    }
    Ok(dict)
}

fn bytes<'py, T: Copy>(py: Python<'py>, values: &[T], form: impl Fn(T) -> [u8; 8]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, values.len() * 8, |into| {
        for (slot, &value) in into.chunks_exact_mut(8).zip(values) {
            slot.copy_from_slice(&form(value));
        }
        Ok(())
    })
}

/// Reads the captures at `paths`, which follow each other in time, as one and gives its tables and notes.
#[pyfunction]
#[pyo3(signature = (
    paths, *, rtp_ports, find_rtp, clock_rates, interval_ns, every_packet, most_conversations, most_packets
))]
#[allow(clippy::too_many_arguments)] // All are named in Python.
pub fn analyze_capture<'py>(
    py: Python<'py>,
    paths: Vec<PathBuf>,
    rtp_ports: Vec<u16>,
    find_rtp: bool,
    clock_rates: Vec<(u8, u32)>,
    interval_ns: i64,
    every_packet: bool,
    most_conversations: usize,
    most_packets: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let options =
        Options { rtp_ports, find_rtp, clock_rates, interval_ns, every_packet, most_conversations, most_packets };
    let mut signals = Signals::default();
    let inputs = paths.iter().map(|path| Ok(Box::new(open(path)?) as Box<dyn io::Read + Send>));
    let report = py.detach(|| analyze_joined(inputs, &options, &mut |_| signals.allow()));
    let report = report.map_err(|(index, error)| match error {
        AnalyzeError::Interrupted => signals.raised(),
        AnalyzeError::Io(error) | AnalyzeError::Open(OpenError::Io(error)) => {
            PyOSError::new_err((error.raw_os_error(), error.to_string(), paths[index].clone()))
        }
        error => PyValueError::new_err((index, error.to_string())),
    })?;
    let found = PyDict::new(py);
    for (name, table) in [
        ("capture", &report.capture),
        ("conversations", &report.conversations),
        ("host_pairs", &report.host_pairs),
        ("throughput", &report.throughput),
        ("rtp_streams", &report.rtp_streams),
        ("rtp_packets", &report.rtp_packets),
        ("tcp", &report.tcp),
        ("packet_list", &report.packet_list),
    ] {
        found.set_item(name, columns(py, table)?)?;
    }
    found.set_item("notes", report.notes)?;
    Ok(found)
}

/// Matches the captures at `paths`, in the order in which packets pass them.
#[pyfunction]
#[pyo3(name = "match_captures", signature = (paths, *, payload_bytes, every_packet))]
pub fn match_captures_at<'py>(
    py: Python<'py>,
    paths: Vec<PathBuf>,
    payload_bytes: usize,
    every_packet: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let mut inputs: Vec<Box<dyn io::Read + Send>> = Vec::new();
    for path in &paths {
        let file =
            open(path).map_err(|error| PyOSError::new_err((error.raw_os_error(), error.to_string(), path.clone())));
        inputs.push(Box::new(file?));
    }
    let prints = Prints { payload_bytes };
    let mut signals = Signals::default();
    let matched = py.detach(|| match_captures(inputs, prints, every_packet, &mut |_| signals.allow()));
    let matched = matched.map_err(|error| match error {
        MatchError::Interrupted => signals.raised(),
        MatchError::Open { index, source } => PyValueError::new_err((index, source.to_string())),
        MatchError::Io { index, source } => PyValueError::new_err((index, source.to_string())),
        MatchError::TooLong(index) => PyValueError::new_err((index, error.to_string())),
    })?;
    let found = PyDict::new(py);
    found.set_item("segments", columns(py, &matched.segments)?)?;
    found.set_item("packets", columns(py, &matched.packets)?)?;
    found.set_item("notes", matched.notes)?;
    Ok(found)
}
