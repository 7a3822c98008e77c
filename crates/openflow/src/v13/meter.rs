//! Meters: how they are changed, and their bands.

use super::error::{ErrorKind, MeterModFailed};
use crate::error::{Fault, Refusal};
use std::sync::Arc;

use crate::layout::{closed_enum, flags, record};
use crate::verbatim;
use crate::wire::{pad, set_length, Reader, Wire};

/// Meter numbers that stand for something else than one meter of a flow.
pub mod meter_number {
    /// `OFPM_MAX`: the highest number of a meter.
    pub const MAX: u32 = 0xffff_0000;
    /// `OFPM_SLOWPATH`: the meter of the slow path.
    pub const SLOWPATH: u32 = 0xffff_fffd;
    /// `OFPM_CONTROLLER`: the meter of what goes to the controller.
    pub const CONTROLLER: u32 = 0xffff_fffe;
    /// `OFPM_ALL`: every meter (deleting, and statistics).
    pub const ALL: u32 = 0xffff_ffff;
}

closed_enum! {
    /// The command of a change of a meter.
    pub enum MeterModCommand: u16, ErrorKind::MeterModFailed(MeterModFailed::BadCommand).fault(),
        "the meter-mod command", "0 to 2" {
        Add = 0 "OFPMC_ADD", Modify = 1 "OFPMC_MODIFY", Delete = 2 "OFPMC_DELETE",
    }
}

flags! {
    /// The way a meter measures.
    pub struct MeterFlags: u16, ErrorKind::MeterModFailed(MeterModFailed::BadFlags).fault(), "the meter's flags",
        "0 to 0xf" {
        KBPS = 1 << 0, "OFPMF_KBPS";
        PKTPS = 1 << 1, "OFPMF_PKTPS";
        BURST = 1 << 2, "OFPMF_BURST";
        STATS = 1 << 3, "OFPMF_STATS";
    }
}

/// The treatment of frames above a rate.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub struct MeterBand {
    /// Rate above which the band applies: kbit/s, or frames a second.
    pub rate: u32,
    /// Burst: kbit, or frames.
    pub burst_size: u32,
    /// The effect on the frames.
    pub effect: MeterEffect,
}

/// The effect of a band.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub enum MeterEffect {
    /// `OFPMBT_DROP`.
    Drop,
    /// `OFPMBT_DSCP_REMARK`: raises the drop precedence of the DSCP by so many steps.
    DscpRemark(u8),
    /// `OFPMBT_EXPERIMENTER`.
    Experimenter {
        /// Who.
        experimenter: u32,
        /// The data.
        data: Vec<u8>,
    },
}

const DROP: u16 = 1;
const DSCP_REMARK: u16 = 2;
const EXPERIMENTER: u16 = 0xffff;

impl Wire for MeterBand {
    fn read(reader: &mut Reader) -> Result<Self, Refusal> {
        let mut inner = reader.sized(2, 12)?;
        let kind = inner.get::<u16>()?;
        inner.skip(2)?;
        let (rate, burst_size) = (inner.get()?, inner.get()?);
        let effect = match kind {
            DROP => {
                inner.skip(4)?;
                MeterEffect::Drop
            }
            DSCP_REMARK => {
                let steps = inner.get()?;
                inner.skip(3)?;
                MeterEffect::DscpRemark(steps)
            }
            EXPERIMENTER => MeterEffect::Experimenter { experimenter: inner.get()?, data: inner.get()? },
            other => {
                const BAD_BAND: Fault = ErrorKind::MeterModFailed(MeterModFailed::BadBand).fault();
                let allowed = "1 (drop), 2 (remark DSCP) or 0xffff (experimenter)";
                return Err(Refusal::new(BAD_BAND, "the type of a meter band", u64::from(other), allowed));
            }
        };
        inner.finish()?;
        Ok(Self { rate, burst_size, effect })
    }

    fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let kind = match self.effect {
            MeterEffect::Drop => DROP,
            MeterEffect::DscpRemark(_) => DSCP_REMARK,
            MeterEffect::Experimenter { .. } => EXPERIMENTER,
        };
        kind.write(out);
        pad(out, 2);
        self.rate.write(out);
        self.burst_size.write(out);
        match &self.effect {
            MeterEffect::Drop => pad(out, 4),
            MeterEffect::DscpRemark(steps) => [*steps, 0, 0, 0].write(out),
            MeterEffect::Experimenter { experimenter, data } => {
                experimenter.write(out);
                data.write(out);
            }
        }
        set_length(out, start, 2);
    }
}

record! {
    /// `OFPT_METER_MOD`.
    pub struct MeterMod {
        /// The command.
        pub command: MeterModCommand;
        /// The way the meter measures.
        pub flags: MeterFlags;
        /// Number.
        pub meter_id: u32;
        /// Bands.
        pub bands: Vec<MeterBand>;
    }
}

impl MeterMod {
    /// The bands as they stand in a whole message that was decoded.
    #[must_use]
    pub fn written(message: &[u8]) -> Arc<[u8]> {
        verbatim::from(message, 16)
    }
}
