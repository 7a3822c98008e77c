//! What a capture is asked to keep.

use serde_json::Value;
use twinnet_fabric::Way;
use twinnet_units::Duration;

use crate::error::LabError;

/// The least that a file may be bounded to: its headers and a few frames.
const LEAST_FILE_BYTES: u64 = 4096;
/// The least that may be kept of a frame: an Ethernet header.
const LEAST_SNAP: u64 = 14;
/// The most that a frame can have.
const LONGEST_FRAME: u64 = 262_144;
/// The least time that a file of a ring covers.
const LEAST_FILE_DURATION: Duration = Duration::from_ms(1);
/// Files that a ring may have.
const RING_FILES: std::ops::RangeInclusive<u64> = 2..=10_000;

/// Files that follow each other, of which the oldest goes when a new one is begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    /// Files that are kept.
    pub files: u64,
    /// A file is full with so many bytes.
    pub bytes: Option<u64>,
    /// A file is full so long after its first frame.
    pub duration: Option<Duration>,
}

/// What a capture is asked to keep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptureSettings {
    /// Bytes of file; what comes later is counted only.
    pub limit_bytes: Option<u64>,
    /// Bytes of each frame.
    pub snap: Option<u32>,
    /// The direction; `None`: both.
    pub way: Option<Way>,
    /// Several files.
    pub ring: Option<Ring>,
}

impl CaptureSettings {
    /// Reads the fields of a `capture.start` request.
    ///
    /// # Errors
    /// `InvalidOption` that names what is allowed.
    pub fn from_request(body: &Value) -> Result<Self, LabError> {
        let limit_bytes = within(body, "limit_bytes", LEAST_FILE_BYTES, u64::MAX)?;
        let snap = within(body, "snap", LEAST_SNAP, LONGEST_FRAME)?;
        let way = match body.get("direction").and_then(Value::as_str) {
            None | Some("both") => None,
            Some("in") => Some(Way::In),
            Some("out") => Some(Way::Out),
            Some(other) => {
                return Err(invalid(format!("direction is {other:?}; it can be \"both\", \"in\" or \"out\"")));
            }
        };
        let ring = match body.get("ring") {
            None | Some(Value::Null) => None,
            Some(ring) => Some(Ring::read(ring)?),
        };
        if ring.is_some() && limit_bytes.is_some() {
            return Err(invalid("a capture has a ring or limit_bytes, one of both".to_owned()));
        }
        Ok(Self { limit_bytes, snap: snap.map(|snap| u32::try_from(snap).unwrap_or(u32::MAX)), way, ring })
    }
}

impl Ring {
    fn read(value: &Value) -> Result<Self, LabError> {
        let files = within(value, "files", *RING_FILES.start(), *RING_FILES.end())?;
        let bytes = within(value, "bytes", LEAST_FILE_BYTES, u64::MAX)?;
        let duration = within(value, "duration_ps", LEAST_FILE_DURATION.as_ps(), u64::MAX)?.map(Duration::from_ps);
        let files = files.ok_or_else(|| invalid("a ring needs \"files\", how many are kept".to_owned()))?;
        if bytes.is_none() && duration.is_none() {
            return Err(invalid("a ring needs \"bytes\" or \"duration_ps\", when a file is full".to_owned()));
        }
        Ok(Self { files, bytes, duration })
    }
}

fn within(body: &Value, key: &str, least: u64, most: u64) -> Result<Option<u64>, LabError> {
    let Some(value) = body.get(key).filter(|value| !value.is_null()) else { return Ok(None) };
    let found = value.as_u64().filter(|number| (least..=most).contains(number));
    found.map(Some).ok_or_else(|| invalid(format!("{key} is {value}; it can be {least} to {most}")))
}

fn invalid(message: String) -> LabError {
    LabError::new("InvalidOption", message, "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_asked_for_is_read() {
        let body = json!({"snap": 96, "direction": "in", "ring": {"files": 3, "bytes": 10_000, "duration_ps": null}});
        let read = CaptureSettings::from_request(&body).unwrap();
        assert_eq!((read.snap, read.way, read.limit_bytes), (Some(96), Some(Way::In), None));
        assert_eq!(read.ring, Some(Ring { files: 3, bytes: Some(10_000), duration: None }));
        let nothing = CaptureSettings::from_request(&json!({"limit_bytes": null, "snap": null})).unwrap();
        assert_eq!(nothing, CaptureSettings::default());
    }

    #[test]
    fn nonsense_is_refused() {
        for body in [
            json!({"snap": 0}),
            json!({"snap": 13}),
            json!({"snap": "x"}),
            json!({"limit_bytes": 100}),
            json!({"direction": "up"}),
            json!({"ring": {}}),
            json!({"ring": {"files": 1, "bytes": 10_000}}),
            json!({"ring": {"files": 3}}),
            json!({"ring": {"files": 3, "bytes": 10}}),
            json!({"ring": {"files": 3, "duration_ps": 1}}),
            json!({"limit_bytes": 10_000, "ring": {"files": 3, "bytes": 10_000}}),
        ] {
            assert_eq!(CaptureSettings::from_request(&body).unwrap_err().name, "InvalidOption", "{body}");
        }
    }
}
