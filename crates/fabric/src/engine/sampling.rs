//! Counters of ports taken at regular moments.

use twinnet_units::{Duration, Time};

use super::{index, Fabric, PortCounters, PortId};
use crate::event::Class;

/// Intervals times ports that one sampler keeps, about 140 MB; then it ends and says so.
pub const MOST_SAMPLES: usize = 1 << 20;

/// Counters taken at regular moments: what each port sent and received in each interval, and what waited at its end.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// One series for each port, in the order asked for. Of each interval what the counters grew by; the backlog is
    /// that at the interval's end.
    pub ports: Vec<(PortId, Vec<PortCounters>)>,
    /// The time when the first interval began.
    pub start: Time,
    /// `true` if the sampler ended because it keeps no more.
    pub full: bool,
}

pub(super) struct Sampler {
    interval: Duration,
    next: Time,
    last: Vec<PortCounters>,
    samples: Samples,
    most: usize,
    /// `true` if the first interval has begun.
    begun: bool,
}

impl Fabric {
    /// Begins to sample `ports` every `interval` from now on; returns the sampler's number.
    ///
    /// A sampler keeps [`MOST_SAMPLES`] of all ports together, until it is stopped.
    pub fn sample_ports(&mut self, interval: Duration, ports: &[PortId]) -> u32 {
        self.sample_ports_up_to(interval, ports, MOST_SAMPLES)
    }

    /// As [`Fabric::sample_ports`], with another number of samples that are kept.
    pub fn sample_ports_up_to(&mut self, interval: Duration, ports: &[PortId], most: usize) -> u32 {
        let number = self.sample_ports_from(self.now, interval, ports);
        if let Some(Some(sampler)) = self.samplers.get_mut(number as usize) {
            sampler.most = most;
        }
        number
    }

    /// As [`Fabric::sample_ports`], but the first interval begins at `begin`: so that several fabrics sample at the
    /// same moments.
    pub fn sample_ports_from(&mut self, begin: Time, interval: Duration, ports: &[PortId]) -> u32 {
        let interval = interval.max(Duration::from_us(1));
        let begun = begin <= self.now;
        let last = ports.iter().map(|port| self.counters(*port)).collect();
        let series = ports.iter().map(|port| (*port, Vec::new())).collect();
        let next = if begun { begin + interval } else { begin };
        let samples = Samples { ports: series, start: begin, full: false };
        self.samplers.push(Some(Sampler { interval, next, last, samples, most: MOST_SAMPLES, begun }));
        let number = index(self.samplers.len() - 1);
        self.events.push(next.max(self.now), Class::Sample, number);
        number
    }

    /// Returns what a sampler has seen, and its interval; `None` when it was stopped.
    #[must_use]
    pub fn samples(&self, sampler: u32) -> Option<(Duration, &Samples)> {
        self.samplers.get(sampler as usize)?.as_ref().map(|sampler| (sampler.interval, &sampler.samples))
    }

    /// Ends a sampler and forgets what it has seen; `None` when it was stopped before.
    pub fn stop_samples(&mut self, sampler: u32) -> Option<(Duration, Samples)> {
        self.samplers.get_mut(sampler as usize)?.take().map(|sampler| (sampler.interval, sampler.samples))
    }

    pub(super) fn sample(&mut self, number: u32) {
        // One that was stopped has this event left.
        let Some(mut sampler) = self.samplers.get_mut(number as usize).and_then(Option::take) else { return };
        let counts = std::mem::replace(&mut sampler.begun, true);
        for ((port, series), last) in sampler.samples.ports.iter_mut().zip(&mut sampler.last) {
            let now = self.counters(*port);
            if counts {
                series.push(now.since(last));
            }
            *last = now;
        }
        let ports = sampler.samples.ports.len();
        let kept = sampler.samples.ports.iter().map(|(_, series)| series.len()).sum::<usize>();
        if kept + ports <= sampler.most {
            sampler.next += sampler.interval;
            self.events.push(sampler.next.max(self.now), Class::Sample, number);
        } else {
            sampler.samples.full = true;
        }
        self.samplers[number as usize] = Some(sampler);
    }
}
