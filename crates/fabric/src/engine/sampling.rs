//! Counters of ports taken at regular moments.

use twinnet_units::{Duration, Time};

use super::{index, Fabric, PortId};
use crate::event::Class;
use crate::link::DirectionCounters;

/// Counters taken at regular moments: what each port sent in each interval, and what waited at its end.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// One series for each port, in the order asked for.
    pub ports: Vec<(PortId, Vec<Sample>)>,
    /// When the first interval began.
    pub start: Time,
}

/// One interval of one port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Frames sent.
    pub frames: u64,
    /// Their bytes at the link layer.
    pub link_bytes: u64,
    /// Their bytes on the wire.
    pub wire_bytes: u64,
    /// Frames dropped for any reason.
    pub drops: u64,
    /// Bytes that waited at the interval's end.
    pub backlog_bytes: u64,
}

pub(super) struct Sampler {
    interval: Duration,
    next: Time,
    last: Vec<DirectionCounters>,
    samples: Samples,
}

impl Fabric {
    /// Begins to sample `ports` every `interval` from now on; returns the sampler's number.
    ///
    /// A sampler holds 40 bytes for each port and interval until it is dropped with the fabric.
    pub fn sample_ports(&mut self, interval: Duration, ports: &[PortId]) -> u32 {
        let interval = interval.max(Duration::from_us(1));
        let last = ports.iter().map(|port| self.direction_counters(*port)).collect();
        let series = ports.iter().map(|port| (*port, Vec::new())).collect();
        let next = self.now + interval;
        self.samplers.push(Sampler { interval, next, last, samples: Samples { ports: series, start: self.now } });
        let number = index(self.samplers.len() - 1);
        self.events.push(next, Class::Sample, number);
        number
    }

    /// What a sampler has seen, and its interval.
    #[must_use]
    pub fn samples(&self, sampler: u32) -> Option<(Duration, &Samples)> {
        self.samplers.get(sampler as usize).map(|sampler| (sampler.interval, &sampler.samples))
    }

    pub(super) fn sample(&mut self, number: u32) {
        let Some(mut sampler) = self.samplers.get_mut(number as usize).map(|sampler| {
            std::mem::replace(
                sampler,
                Sampler { interval: Duration::ZERO, next: Time::ZERO, last: Vec::new(), samples: Samples::default() },
            )
        }) else {
            return;
        };
        for ((port, series), last) in sampler.samples.ports.iter_mut().zip(&mut sampler.last) {
            let now = self.direction_counters(*port);
            series.push(Sample {
                frames: now.frames - last.frames,
                link_bytes: now.link_bytes - last.link_bytes,
                wire_bytes: now.wire_bytes - last.wire_bytes,
                drops: now.dropped() - last.dropped(),
                backlog_bytes: self.backlog(*port).bytes,
            });
            *last = now;
        }
        sampler.next += sampler.interval;
        self.events.push(sampler.next, Class::Sample, number);
        self.samplers[number as usize] = sampler;
    }
}
