//! The treatment of frames between two ports beyond time: jitter, loss, duplication, corruption, reordering.
//!
//! Each aspect draws from a stream of its own: a change of the jitter does not change which frames are lost.

mod jitter;
mod loss;
mod quantile;

pub use jitter::JitterConfig;
pub use loss::LossConfig;

use rand::Rng as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use twinnet_units::random::{branch, happens, Rng};
use twinnet_units::Duration;

use jitter::Jitter;
use loss::Loss;

/// The impairments of one direction of a link; the default has none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ImpairConfig {
    /// Differences of delay between frames.
    pub jitter: Option<JitterConfig>,
    /// Lets a frame overtake those before it when its delay is shorter; otherwise it waits for them.
    pub reorder: bool,
    /// Loss.
    pub loss: Option<LossConfig>,
    /// Probability that a frame arrives twice.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub duplicate: f64,
    /// Probability that one bit of a frame is flipped.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub corrupt: f64,
}

/// An impairment cannot be applied: change `field` to what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field}: got {value}; allowed is {allowed}")]
pub struct ImpairError {
    /// The field, as keys joined by dots.
    pub field: String,
    /// The value that it was set to.
    pub value: String,
    /// The values that it may be set to.
    pub allowed: String,
}

impl ImpairConfig {
    /// Checks all values.
    ///
    /// # Errors
    /// The first value that is out of its range.
    pub fn validate(&self) -> Result<(), ImpairError> {
        self.jitter.as_ref().map_or(Ok(()), JitterConfig::validate)?;
        self.loss.as_ref().map_or(Ok(()), LossConfig::validate)?;
        check_probability("duplicate", self.duplicate)?;
        check_probability("corrupt", self.corrupt)
    }

    /// Returns `true` if it loses frames.
    #[must_use]
    pub fn is_lossy(&self) -> bool {
        self.loss.as_ref().is_some_and(|loss| !loss.is_transparent())
    }

    /// Returns `true` if frames pass as if there were none of this: trains need not be cut then.
    #[must_use]
    pub fn is_transparent(&self) -> bool {
        self.duplicate == 0.0
            && self.corrupt == 0.0
            && !self.is_lossy()
            && self.jitter.as_ref().is_none_or(JitterConfig::is_transparent)
    }
}

fn check_probability(field: &str, probability: f64) -> Result<(), ImpairError> {
    if (0.0..=1.0).contains(&probability) {
        return Ok(());
    }
    Err(ImpairError {
        field: field.to_owned(),
        value: probability.to_string(),
        allowed: "a probability from 0 to 1".to_owned(),
    })
}

/// The fate of one frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fate {
    /// It does not arrive; nothing else happens to it.
    pub lost: bool,
    /// It arrives a second time, right after the first and sound.
    pub duplicated: bool,
    /// One of its bits is flipped: the one of this number, to be reduced modulo the bits of the frame.
    pub corrupted_bit: Option<u64>,
}

/// The impairments of one direction at work. The fabric asks once for each frame.
pub struct Impairments {
    transparent: bool,
    loss: Loss,
    jitter: Jitter,
    duplicate: f64,
    duplicate_rng: Rng,
    corrupt: f64,
    corrupt_rng: Rng,
}

impl Impairments {
    /// Impairments that draw from `rng`, the [`stream`] of the direction.
    ///
    /// # Errors
    /// The first value of `config` that is out of its range.
    pub fn new(config: &ImpairConfig, mut rng: Rng) -> Result<Self, ImpairError> {
        config.validate()?;
        Ok(Self {
            transparent: config.is_transparent(),
            loss: Loss::new(config.loss.clone(), branch(&mut rng)),
            jitter: Jitter::new(config.jitter.clone(), branch(&mut rng)),
            duplicate: config.duplicate,
            duplicate_rng: branch(&mut rng),
            corrupt: config.corrupt,
            corrupt_rng: branch(&mut rng),
        })
    }

    /// Sets all values together; streams and the state of the loss model go on. Nothing changes when a value is
    /// refused.
    ///
    /// # Errors
    /// The first value of `config` that is out of its range.
    pub fn reconfigure(&mut self, config: &ImpairConfig) -> Result<(), ImpairError> {
        config.validate()?;
        self.transparent = config.is_transparent();
        self.loss.reconfigure(config.loss.clone());
        self.jitter.reconfigure(config.jitter.clone());
        self.duplicate = config.duplicate;
        self.corrupt = config.corrupt;
        Ok(())
    }

    /// Returns `true` if frames pass untouched; then neither [`Self::fate`] nor [`Self::delay`] need be asked.
    #[must_use]
    pub fn is_transparent(&self) -> bool {
        self.transparent
    }

    /// Returns the fate of the next frame.
    pub fn fate(&mut self) -> Fate {
        let lost = self.loss.next();
        let duplicated = self.duplicate > 0.0 && happens(&mut self.duplicate_rng, self.duplicate);
        let corrupted = self.corrupt > 0.0 && happens(&mut self.corrupt_rng, self.corrupt);
        let corrupted_bit = corrupted.then(|| self.corrupt_rng.next_u64());
        if lost {
            return Fate { lost, ..Fate::default() };
        }
        Fate { lost, duplicated, corrupted_bit }
    }

    /// The delay of the next frame, on a link whose delay is `base`.
    pub fn delay(&mut self, base: Duration) -> Duration {
        self.jitter.delay(base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use twinnet_units::random::stream;

    const ALL: &str = r#"{"jitter":{"distribution":"pareto_normal","scale_ps":5000000},"reorder":true,
        "loss":{"model":"gilbert_elliott","to_bad":0.1,"to_good":0.5},"duplicate":0.1,"corrupt":0.2}"#;

    fn config(json: &str) -> ImpairConfig {
        serde_json::from_str(json).unwrap()
    }

    fn impairments(json: &str) -> Impairments {
        Impairments::new(&config(json), stream(1, "h1-s1")).unwrap()
    }

    #[test]
    fn the_protocols_forms_are_read() {
        let all = config(ALL);
        let elliott = LossConfig::GilbertElliott { to_bad: 0.1, to_good: 0.5, loss_good: 0.0, loss_bad: 1.0 };
        assert_eq!(all.loss, Some(elliott));
        assert_eq!(all.jitter, Some(JitterConfig::ParetoNormal { scale_ps: 5_000_000 }));
        let none = config(r#"{"jitter": null, "reorder": false, "loss": null, "duplicate": 0.0, "corrupt": 0.0}"#);
        assert_eq!(none, ImpairConfig::default());
        assert!(none.is_transparent());
        let table = config(r#"{"jitter":{"distribution":"table","values_ps":[-1,2]}}"#);
        assert_eq!(table.jitter, Some(JitterConfig::Table { values_ps: vec![-1, 2] }));
        for kept in [all, none, table] {
            assert_eq!(config(&serde_json::to_string(&kept).unwrap()), kept);
        }
    }

    #[test]
    fn values_out_of_range_are_refused_and_named() {
        for (json, field, value) in [
            (r#"{"duplicate":1.2}"#, "duplicate", "1.2"),
            (r#"{"corrupt":-0.1}"#, "corrupt", "-0.1"),
            (r#"{"loss":{"model":"bernoulli","probability":1.2}}"#, "loss.probability", "1.2"),
            (r#"{"loss":{"model":"gilbert_elliott","to_bad":2,"to_good":0.5}}"#, "loss.to_bad", "2"),
            (r#"{"loss":{"model":"gilbert_elliott","to_bad":0,"to_good":0,"loss_bad":7}}"#, "loss.loss_bad", "7"),
            (r#"{"jitter":{"distribution":"table","values_ps":[]}}"#, "jitter.values_ps", "0 values"),
        ] {
            let error = config(json).validate().unwrap_err();
            assert_eq!((error.field.as_str(), error.value.as_str()), (field, value));
        }
        for probability in [f64::NAN, f64::INFINITY] {
            assert!(ImpairConfig { duplicate: probability, ..ImpairConfig::default() }.validate().is_err());
        }
        assert!(serde_json::from_str::<ImpairConfig>(r#"{"los":null}"#).is_err());
        assert!(serde_json::from_str::<ImpairConfig>(r#"{"jitter":{"distribution":"gamma","scale_ps":1}}"#).is_err());
    }

    #[test]
    fn a_direction_without_impairments_is_transparent_and_leaves_frames_alone() {
        let mut none = impairments(r#"{"jitter":{"distribution":"normal","scale_ps":0},"reorder":true}"#);
        assert!(none.is_transparent());
        assert_eq!(none.fate(), Fate::default());
        assert_eq!(none.delay(Duration::from_us(50)), Duration::from_us(50));
        assert!(!impairments(ALL).is_transparent());
    }

    #[test]
    fn same_seed_same_fates_and_delays() {
        let run = || {
            let mut all = impairments(ALL);
            (0..1000).map(|_| (all.fate(), all.delay(Duration::from_us(50)))).collect::<Vec<_>>()
        };
        assert_eq!(run(), run());
    }

    #[test]
    fn duplicates_and_corruption_are_as_frequent_as_told_among_the_frames_that_arrive() {
        let mut all = impairments(r#"{"loss":{"model":"bernoulli","probability":0.3},"duplicate":0.1,"corrupt":0.2}"#);
        let fates: Vec<Fate> = (0..50_000).map(|_| all.fate()).collect();
        assert!(fates.iter().filter(|fate| fate.lost).all(|fate| !fate.duplicated && fate.corrupted_bit.is_none()));
        let arrived: Vec<&Fate> = fates.iter().filter(|fate| !fate.lost).collect();
        let share = |count: usize| count as f64 / arrived.len() as f64;
        // 35,000 frames: four standard deviations are 0.0064 and 0.0086.
        assert!((share(arrived.iter().filter(|fate| fate.duplicated).count()) - 0.1).abs() < 0.0064);
        assert!((share(arrived.iter().filter(|fate| fate.corrupted_bit.is_some()).count()) - 0.2).abs() < 0.0086);
    }

    #[test]
    fn a_change_of_one_aspect_does_not_shift_the_draws_of_another() {
        let mut steady = impairments(ALL);
        let mut changed = impairments(ALL);
        let without_jitter = ImpairConfig { jitter: None, corrupt: 0.9, ..config(ALL) };
        for frame in 0..1000 {
            if frame == 500 {
                changed.reconfigure(&without_jitter).unwrap();
            }
            let (one, other) = (steady.fate(), changed.fate());
            assert_eq!((one.lost, one.duplicated), (other.lost, other.duplicated));
            steady.delay(Duration::ZERO);
            changed.delay(Duration::ZERO);
        }
    }

    #[test]
    fn a_refused_change_changes_nothing() {
        let mut steady = impairments(ALL);
        let mut refused = impairments(ALL);
        assert!(refused.reconfigure(&ImpairConfig { corrupt: 1.2, ..ImpairConfig::default() }).is_err());
        assert!((0..100).all(|_| steady.fate() == refused.fate()));
    }
}
