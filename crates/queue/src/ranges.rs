//! The ranges of what queue configurations may hold, and the error that says so.

use thiserror::Error;

/// Bands, classes or queues of one discipline.
const MOST_CLASSES: usize = 1024;
/// Keeps the arithmetic of token buckets within its range: 1 Pbit/s.
pub(super) const HIGHEST_RATE_BPS: u64 = 1_000_000_000_000_000;
/// A full-size Ethernet frame with a VLAN tag; a shallower bucket would never let one through.
pub(super) const SHALLOWEST_BURST_BYTES: u64 = 1518;
/// Hash buckets of one discipline.
pub(super) const MOST_BUCKETS: u64 = 65_536;
/// Frames that a discipline which judges them one by one may keep.
pub(super) const MOST_FRAMES: u64 = 100_000_000;
/// Keeps fixed-point averages of bytes within their range: 2 GB.
pub(super) const MOST_BYTES: u64 = (1 << 31) - 1;
/// A short quantum costs many turns for each long frame.
pub(super) const LEAST_QUANTUM_BYTES: u64 = 64;
/// A microsecond: below it a delay means nothing.
pub(super) const SHORTEST_SPAN_PS: u64 = 1_000_000;
/// Targets, intervals and periods: 1000 s.
pub(super) const LONGEST_SPAN_PS: u64 = 1_000_000_000_000_000;

/// A queue configuration cannot be used: change the value at `path` to what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{path}: got {value}; allowed is {allowed}")]
pub struct QueueError {
    /// The place in the configuration, as keys and indices joined by dots, from `queue` on.
    pub path: String,
    /// The value that stands there.
    pub value: String,
    /// The values that may stand there instead.
    pub allowed: String,
}

pub(super) fn check_rate(path: &str, rate_bps: u64, highest_bps: u64) -> Result<(), QueueError> {
    if (1..=highest_bps).contains(&rate_bps) {
        return Ok(());
    }
    refuse(path, format!("{rate_bps} bit/s"), format!("1 to {highest_bps} bit/s"))
}

/// Checks a limit in frames.
pub(super) fn check_frames(path: &str, frames: u64) -> Result<(), QueueError> {
    check_range(path, frames, 1, MOST_FRAMES)
}

/// Checks a limit or threshold in bytes.
pub(super) fn check_bytes(path: &str, bytes: u64) -> Result<(), QueueError> {
    check_range(path, bytes, 1, MOST_BYTES)
}

/// Checks a quantum.
pub(super) fn check_quantum(path: &str, bytes: u64) -> Result<(), QueueError> {
    check_range(path, bytes, LEAST_QUANTUM_BYTES, u64::from(u32::MAX))
}

/// Checks a target, an interval or a period.
pub(super) fn check_span(path: &str, span_ps: u64) -> Result<(), QueueError> {
    check_range(path, span_ps, SHORTEST_SPAN_PS, LONGEST_SPAN_PS)
}

pub(super) fn check_range(path: &str, value: u64, least: u64, most: u64) -> Result<(), QueueError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    refuse(path, value.to_string(), format!("{least} to {most}"))
}

/// Checks a probability or a weight.
pub(super) fn check_share(path: &str, share: f64) -> Result<(), QueueError> {
    if share > 0.0 && share <= 1.0 {
        return Ok(());
    }
    refuse(path, share.to_string(), "above 0 and at most 1")
}

pub(super) fn check_burst(path: &str, burst_bytes: u64) -> Result<(), QueueError> {
    if burst_bytes >= SHALLOWEST_BURST_BYTES {
        return Ok(());
    }
    let allowed = format!("at least {SHALLOWEST_BURST_BYTES} bytes, so that a full-size frame can ever pass");
    refuse(path, format!("{burst_bytes} bytes"), allowed)
}

pub(super) fn check_count(path: &str, count: usize) -> Result<(), QueueError> {
    if (1..=MOST_CLASSES).contains(&count) {
        return Ok(());
    }
    refuse(path, format!("{count} entries"), format!("1 to {MOST_CLASSES} entries"))
}

/// Checks how many entries there are of what may be none.
pub(super) fn check_at_most(path: &str, count: usize, most: usize) -> Result<(), QueueError> {
    if count <= most {
        return Ok(());
    }
    refuse(path, format!("{count} entries"), format!("at most {most} entries"))
}

pub(super) fn refuse<T>(path: &str, value: impl Into<String>, allowed: impl Into<String>) -> Result<T, QueueError> {
    Err(QueueError { path: path.to_owned(), value: value.into(), allowed: allowed.into() })
}
