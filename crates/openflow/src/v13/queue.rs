//! Queues of a port as they are configured.

use crate::error::Refusal;
use crate::layout::record;
use crate::wire::{pad, set_length, Reader, Wire};

/// `OFPQ_ALL`: every queue.
pub const ALL_QUEUES: u32 = u32::MAX;

record! {
    /// `OFPT_QUEUE_GET_CONFIG_REQUEST`.
    pub struct QueueConfigRequest {
        /// Port; [`super::port_number::ANY`]: all.
        pub port: u32 [4];
    }
}

record! {
    /// `OFPT_QUEUE_GET_CONFIG_REPLY`.
    pub struct QueueConfigReply {
        /// Port that was asked for.
        pub port: u32 [4];
        /// Its queues.
        pub queues: Vec<PacketQueue>;
    }
}

record! {
    /// A queue.
    pub struct PacketQueue sized 8, 16 {
        /// Number.
        pub queue_id: u32;
        /// Port.
        pub port: u32 [8];
        /// Properties.
        pub properties: Vec<QueueProperty>;
    }
}

/// A property of a queue. Rates are in tenths of a percent of the port's; above 1000 means none is set.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "arbitrary"), derive(arbitrary::Arbitrary))]
pub enum QueueProperty {
    /// `OFPQT_MIN_RATE`: guaranteed.
    MinimumRate(u16),
    /// `OFPQT_MAX_RATE`: never exceeded.
    MaximumRate(u16),
    /// `OFPQT_EXPERIMENTER`.
    Experimenter {
        /// Who.
        experimenter: u32,
        /// The data.
        data: Vec<u8>,
    },
    /// A property of another type.
    Other {
        /// The type.
        #[cfg_attr(any(test, feature = "arbitrary"),
            arbitrary(with = |source: &mut arbitrary::Unstructured| source.int_in_range(3..=9)))]
        kind: u16,
        /// The contents of the property.
        data: Vec<u8>,
    },
}

const MINIMUM_RATE: u16 = 1;
const MAXIMUM_RATE: u16 = 2;
const EXPERIMENTER: u16 = 0xffff;

impl Wire for QueueProperty {
    fn read(reader: &mut Reader) -> Result<Self, Refusal> {
        let mut inner = reader.sized(2, 8)?;
        let kind = inner.get::<u16>()?;
        inner.skip(6)?;
        let property = match kind {
            MINIMUM_RATE | MAXIMUM_RATE => {
                let rate = inner.get()?;
                inner.skip(6)?;
                if kind == MINIMUM_RATE {
                    Self::MinimumRate(rate)
                } else {
                    Self::MaximumRate(rate)
                }
            }
            EXPERIMENTER => {
                let experimenter = inner.get()?;
                inner.skip(4)?;
                Self::Experimenter { experimenter, data: inner.get()? }
            }
            _ => Self::Other { kind, data: inner.get()? },
        };
        inner.finish()?;
        Ok(property)
    }

    fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let kind = match self {
            Self::MinimumRate(_) => MINIMUM_RATE,
            Self::MaximumRate(_) => MAXIMUM_RATE,
            Self::Experimenter { .. } => EXPERIMENTER,
            Self::Other { kind, .. } => *kind,
        };
        kind.write(out);
        pad(out, 6);
        match self {
            Self::MinimumRate(rate) | Self::MaximumRate(rate) => {
                rate.write(out);
                pad(out, 6);
            }
            Self::Experimenter { experimenter, data } => {
                experimenter.write(out);
                pad(out, 4);
                data.write(out);
            }
            Self::Other { data, .. } => data.write(out),
        }
        set_length(out, start, 2);
    }
}
