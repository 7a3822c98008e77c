//! Sizes of the frames of a video: a trace, or a model of a coder with variable bit rate.
//!
//! The model: groups of pictures of I, P and B frames whose mean sizes have fixed ratios (I : P : B as 5 : 3 : 1, a
//! ratio of ours: it differs from film to film and coder to coder), each frame lognormal around the mean of its
//! type (Krunz and others, *Statistical characteristics and multiplexing of MPEG streams*, INFOCOM 1995, and *Study
//! of VBR MPEG-coded video traffic and associated multiplexing performance*, 1996, find lognormal sizes for each
//! type). The means are such that the whole has the rate that was asked for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{check_range, ConfigError};
use crate::schedule::distribution::Shape;
use crate::schedule::random::Stream;

/// Entries of a trace, at most.
pub(crate) const MOST_TRACE: usize = 1_000_000;
/// The largest frame: 64 MB.
pub(crate) const MOST_FRAME: u32 = 64_000_000;
/// Relative sizes of I, P and B frames.
const RATIOS: [f64; 3] = [5.0, 3.0, 1.0];

/// The coder's model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VideoModel {
    /// Mean rate of the coded video.
    #[schemars(range(min = 1000, max = 100_000_000_000_u64))]
    pub rate_bps: u64,
    /// Frames from one I frame to the next.
    #[schemars(range(min = 1, max = 10_000))]
    pub group_frames: u32,
    /// B frames between two I or P frames.
    #[schemars(range(max = 16))]
    pub b_frames: u32,
    /// Standard deviation of a frame's size over the mean of its type.
    #[schemars(range(min = 0.0, max = 10.0))]
    pub variation: f64,
}

impl VideoModel {
    pub(crate) fn check(&self, kind: &'static str) -> Result<(), ConfigError> {
        check_range(kind, "model.rate_bps", self.rate_bps, 1000, 100_000_000_000)?;
        check_range(kind, "model.group_frames", self.group_frames, 1, 10_000)?;
        check_range(kind, "model.b_frames", self.b_frames, 0, 16)?;
        check_range(kind, "model.variation", self.variation, 0.0, 10.0)
    }

    fn ratio(&self, place: u32) -> f64 {
        if place == 0 {
            RATIOS[0]
        } else if place % (self.b_frames + 1) == 0 {
            RATIOS[1]
        } else {
            RATIOS[2]
        }
    }

    /// Mean size of the frame at `place` in its group.
    #[allow(clippy::cast_precision_loss)]
    fn mean_bytes(&self, place: u32, frames_per_second: f64) -> f64 {
        let whole: f64 = (0..self.group_frames).map(|place| self.ratio(place)).sum();
        let group_bytes = self.rate_bps as f64 / 8.0 * f64::from(self.group_frames) / frames_per_second;
        group_bytes * self.ratio(place) / whole
    }
}

/// Refuses an impossible trace of frame sizes.
pub(crate) fn check_trace(kind: &'static str, trace: &[u32]) -> Result<(), ConfigError> {
    check_range(kind, "frame_bytes (entries)", trace.len(), 1, MOST_TRACE)?;
    trace.iter().try_for_each(|size| check_range(kind, "frame_bytes", *size, 1, MOST_FRAME))
}

/// The source of frame sizes.
#[derive(Clone, Debug)]
pub enum FrameSizes {
    /// One after the other, and from the beginning again.
    Trace(Vec<u32>),
    /// The model: mean sizes of a group, the variation, and the stream.
    Model(Vec<f64>, f64, Stream),
}

impl FrameSizes {
    /// The sizes of a model.
    #[must_use]
    pub fn of_model(model: &VideoModel, frames_per_second: f64, seed: u64) -> Self {
        let means = (0..model.group_frames.min(10_000)).map(|place| model.mean_bytes(place, frames_per_second));
        Self::Model(means.collect(), model.variation, Stream::new(seed))
    }

    /// The size of frame `number`; asked for in order.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub fn size(&mut self, number: u64) -> u32 {
        let place = |length: usize| (number % (length.max(1) as u64)) as usize;
        match self {
            Self::Trace(sizes) => sizes.get(place(sizes.len())).copied().unwrap_or(1),
            Self::Model(means, variation, stream) => {
                let mean = means.get(place(means.len())).copied().unwrap_or(1.0);
                let deviation = mean * *variation;
                let drawn = if deviation > 0.0 { Shape::Lognormal { mean, std: deviation }.draw(stream) } else { mean };
                drawn.round().clamp(1.0, f64::from(MOST_FRAME)) as u32
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_has_its_rate_and_its_types() {
        let model = VideoModel { rate_bps: 1_026_000, group_frames: 30, b_frames: 2, variation: 0.3 };
        let mut sizes = FrameSizes::of_model(&model, 60.0, 4);
        let drawn: Vec<f64> = (0..30_000).map(|number| f64::from(sizes.size(number))).collect();
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        // 2137.5 bytes a frame; a frame deviates by less than its mean: five standard errors are below 3 %.
        assert!((mean / 2137.5 - 1.0).abs() < 0.03, "{mean}");
        let of = |place: usize| drawn.iter().skip(place).step_by(30).sum::<f64>() / 1000.0;
        assert!(
            (of(0) / of(1) - 5.0).abs() < 0.4 && (of(3) / of(1) - 3.0).abs() < 0.3,
            "{} {} {}",
            of(0),
            of(1),
            of(3)
        );
    }

    #[test]
    fn a_trace_begins_anew_after_its_end() {
        let mut sizes = FrameSizes::Trace(vec![5, 6]);
        assert_eq!([sizes.size(0), sizes.size(1), sizes.size(2)], [5, 6, 5]);
    }
}
