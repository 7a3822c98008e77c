//! The settings of a capture.

use twinnet_fabric::Way;
use twinnet_units::Duration;

use crate::error::{ErrorName, LabError};
use crate::protocol::{CaptureStart, CaptureWay, Ring};

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

/// The settings of a capture.
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
    /// The settings of a `capture.start` request.
    ///
    /// # Errors
    /// `InvalidOption` that names what is allowed.
    pub fn of(asked: &CaptureStart) -> Result<Self, LabError> {
        within("limit_bytes", asked.limit_bytes, LEAST_FILE_BYTES, u64::MAX)?;
        within("snap", asked.snap.map(u64::from), LEAST_SNAP, LONGEST_FRAME)?;
        let way = match asked.direction.unwrap_or_default() {
            CaptureWay::Both => None,
            CaptureWay::In => Some(Way::In),
            CaptureWay::Out => Some(Way::Out),
        };
        if let Some(ring) = asked.ring {
            ring.check()?;
            if asked.limit_bytes.is_some() {
                return Err(invalid("a capture has a ring or limit_bytes, one of both".to_owned()));
            }
        }
        Ok(Self { limit_bytes: asked.limit_bytes, snap: asked.snap, way, ring: asked.ring })
    }
}

impl Ring {
    fn check(&self) -> Result<(), LabError> {
        within("files", Some(self.files), *RING_FILES.start(), *RING_FILES.end())?;
        within("bytes", self.bytes, LEAST_FILE_BYTES, u64::MAX)?;
        within("duration_ps", self.duration.map(Duration::as_ps), LEAST_FILE_DURATION.as_ps(), u64::MAX)?;
        if self.bytes.is_none() && self.duration.is_none() {
            return Err(invalid("a ring needs \"bytes\" or \"duration_ps\", when a file is full".to_owned()));
        }
        Ok(())
    }
}

fn within(key: &str, given: Option<u64>, least: u64, most: u64) -> Result<(), LabError> {
    match given.filter(|number| !(least..=most).contains(number)) {
        None => Ok(()),
        Some(number) => Err(invalid(format!("{key} is {number}; it can be {least} to {most}"))),
    }
}

fn invalid(message: String) -> LabError {
    LabError::new(ErrorName::InvalidOption, message, "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Request;
    use serde_json::{json, Value};

    fn settings(mut body: Value) -> Result<CaptureSettings, LabError> {
        body["do"] = "capture.start".into();
        body["port"] = "s1-eth1".into();
        match Request::read(body)? {
            Request::CaptureStart(asked) => CaptureSettings::of(&asked),
            _ => panic!("a capture was asked for"),
        }
    }

    #[test]
    fn what_is_asked_for_is_read() {
        let body = json!({"snap": 96, "direction": "in", "ring": {"files": 3, "bytes": 10_000, "duration_ps": null}});
        let read = settings(body).unwrap();
        assert_eq!((read.snap, read.way, read.limit_bytes), (Some(96), Some(Way::In), None));
        assert_eq!(read.ring, Some(Ring { files: 3, bytes: Some(10_000), duration: None }));
        let nothing = settings(json!({"limit_bytes": null, "snap": null})).unwrap();
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
            assert_eq!(settings(body.clone()).unwrap_err().name, "InvalidOption", "{body}");
        }
    }
}
