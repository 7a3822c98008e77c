//! The methods by name, with their settings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::assolo::{Assolo, AssoloConfig};
use super::estimator::{Estimator, Probing};
use super::hybrid::{Hybrid, HybridConfig};
use super::kalman::{Kalman, KalmanConfig};
use super::own::OwnMethodConfig;
use super::pathchirp::{Pathchirp, PathchirpConfig};
use super::pathload::{Pathload, PathloadConfig};
use super::slotted::{Slotted, SlottedConfig};
use super::spruce::{Spruce, SpruceConfig};
use super::stab::{Stab, StabConfig};
use super::turning_point::{Formula, TurningPoint, TurningPointConfig};
use super::yaz::{Yaz, YazConfig};
use crate::check::ConfigError;

/// A method and its settings. Unknown settings are refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Method {
    /// Trends of delay in fleets of streams.
    Pathload(PathloadConfig),
    /// Mean spacing of streams.
    Yaz(YazConfig),
    /// Chirps of exponentially rising rate.
    Pathchirp(PathchirpConfig),
    /// Reflected exponential chirps.
    Assolo(AssoloConfig),
    /// Chirps that expire at each hop.
    Stab(StabConfig),
    /// Pairs at the capacity of the tight link.
    Spruce(SpruceConfig),
    /// Cross traffic in the gaps of trains at the turning point.
    Igi(TurningPointConfig),
    /// Rate of trains at the turning point.
    Ptr(TurningPointConfig),
    /// A Kalman filter of strain over rate.
    Kalman(KalmanConfig),
    /// Trains that keep the tight link busy.
    Hybrid(HybridConfig),
    /// Groups of packets at random times, for links that serve in slots.
    Slotted(SlottedConfig),
    /// One that was brought along.
    Own(OwnMethodConfig),
}

impl Method {
    /// Its name in reports.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Pathload(_) => "pathload",
            Self::Yaz(_) => "yaz",
            Self::Pathchirp(_) => "pathchirp",
            Self::Assolo(_) => "assolo",
            Self::Stab(_) => "stab",
            Self::Spruce(_) => "spruce",
            Self::Igi(_) => "igi",
            Self::Ptr(_) => "ptr",
            Self::Kalman(_) => "kalman",
            Self::Hybrid(_) => "hybrid",
            Self::Slotted(_) => "slotted",
            Self::Own(config) => &config.called,
        }
    }

    /// Returns `true` if its interval says what an interrupted sender leaves of its estimate.
    #[must_use]
    pub const fn survives_interruptions(&self) -> bool {
        matches!(self, Self::Hybrid(_) | Self::Slotted(_))
    }

    /// Returns `true` if it is for links that serve in slots, as of mobile access, or may be.
    #[must_use]
    pub const fn is_for_slots(&self) -> bool {
        matches!(self, Self::Slotted(_) | Self::Own(_))
    }

    /// Returns the settings with which the method of this name was published; `None` for one that is ours, and for
    /// names that no method has.
    #[must_use]
    pub fn published(name: &str) -> Option<Self> {
        Some(match name {
            "pathload" => Self::Pathload(PathloadConfig::published()),
            "yaz" => Self::Yaz(YazConfig::published()),
            "pathchirp" => Self::Pathchirp(PathchirpConfig::published()),
            "assolo" => Self::Assolo(AssoloConfig::published()),
            "stab" => Self::Stab(StabConfig::published()),
            "spruce" => Self::Spruce(SpruceConfig::default()),
            "igi" => Self::Igi(TurningPointConfig::published()),
            "ptr" => Self::Ptr(TurningPointConfig::published()),
            "kalman" => Self::Kalman(KalmanConfig::default()),
            _ => return None,
        })
    }

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        match self {
            Self::Pathload(config) => config.validate("pathload"),
            Self::Yaz(config) => config.check_ranges("yaz"),
            Self::Pathchirp(config) => config.validate("pathchirp"),
            Self::Assolo(config) => config.validate("assolo"),
            Self::Stab(config) => config.check_ranges("stab"),
            Self::Spruce(config) => config.check_ranges("spruce"),
            Self::Igi(config) => config.check_ranges("igi"),
            Self::Ptr(config) => config.check_ranges("ptr"),
            Self::Kalman(config) => config.check_ranges("kalman"),
            Self::Hybrid(config) => config.validate("hybrid"),
            Self::Slotted(config) => config.check_ranges("slotted"),
            Self::Own(config) => config.validate(),
        }
    }

    /// The estimator.
    #[must_use]
    pub fn build(&self, probing: Probing) -> Box<dyn Estimator> {
        match self.clone() {
            Self::Pathload(config) => Box::new(Pathload::new(config, probing)),
            Self::Yaz(config) => Box::new(Yaz::new(config, probing)),
            Self::Pathchirp(config) => Box::new(Pathchirp::new(config, probing)),
            Self::Assolo(config) => Box::new(Assolo::new(config, probing)),
            Self::Stab(config) => Box::new(Stab::new(config, probing)),
            Self::Spruce(config) => Box::new(Spruce::new(config, probing)),
            Self::Igi(config) => Box::new(TurningPoint::new(config, Formula::InitialGapIncreasing, probing)),
            Self::Ptr(config) => Box::new(TurningPoint::new(config, Formula::PacketTransmissionRate, probing)),
            Self::Kalman(config) => Box::new(Kalman::new(config, probing)),
            Self::Hybrid(config) => Box::new(Hybrid::new(config, probing)),
            Self::Slotted(config) => Box::new(Slotted::new(config, probing)),
            Self::Own(config) => config.build(probing),
        }
    }
}
