//! A path in memory for tests: links one after the other, each first in, first out, with cross traffic of its own.

use super::estimator::{Estimator, Finding, Step};
use super::framing::Framing;
use super::slots::Slots;
use super::train::Train;
use crate::schedule::random::Stream;

/// The arrival pattern of cross traffic.
#[derive(Clone, Copy, Debug)]
pub enum Cross {
    /// At even distances.
    Constant,
    /// At exponential distances.
    Poisson,
    /// In bursts at twice its mean rate (at most the link's), whose lengths are by Pareto's law with shape 1.5.
    ParetoOnOff,
}

/// One link.
pub struct Link {
    rate: f64,
    load: f64,
    cross: Cross,
    bits: f64,
    random: Stream,
    /// The time when the next packet of cross traffic comes, in nanoseconds.
    next: f64,
    burst_ends: f64,
    free: f64,
    /// Bits of cross traffic that came so far.
    pub came: f64,
}

impl Link {
    /// A link of `rate` with `load` bit/s of cross traffic.
    pub fn new(rate: f64, load: f64, cross: Cross, seed: u64) -> Self {
        let mut link = Self {
            rate,
            load,
            cross,
            bits: 1538.0 * 8.0,
            random: Stream::new(seed),
            next: 0.0,
            burst_ends: 0.0,
            free: 0.0,
            came: 0.0,
        };
        link.next = link.distance() * link.random.uniform();
        link
    }

    fn distance(&mut self) -> f64 {
        let mean = self.bits * 1e9 / self.load;
        match self.cross {
            Cross::Constant => mean,
            Cross::Poisson => -mean * self.random.uniform().ln(),
            Cross::ParetoOnOff => {
                // In bursts at twice the mean rate the distance is half of the mean; silences are as long as bursts
                // on average.
                let ratio = (2.0 * self.load).min(self.rate) / self.load;
                let within = mean / ratio;
                if self.next < self.burst_ends {
                    return within;
                }
                let mut pareto = || 20.0 * within / 3.0 * self.random.uniform().powf(-1.0 / 1.5);
                let (on, off) = (pareto(), pareto() * (ratio - 1.0));
                // A silence begins where the next packet of the burst would have come.
                self.burst_ends = self.next + within + off + on;
                within + off
            }
        }
    }

    /// Takes in the cross traffic up to `time`.
    pub fn advance(&mut self, time: f64) {
        while self.load > 0.0 && self.next <= time {
            self.free = self.free.max(self.next) + self.bits * 1e9 / self.rate;
            self.came += self.bits;
            self.next += self.distance();
        }
    }

    fn carry(&mut self, time: f64, bits: f64) -> f64 {
        self.advance(time);
        self.free = self.free.max(time) + bits * 1e9 / self.rate;
        self.free
    }
}

/// A path.
pub struct ModelPath {
    pub links: Vec<Link>,
    /// What arrivals looked like.
    pub slots: Slots,
    framing: Framing,
    now: f64,
}

/// The result of a run.
#[derive(Debug)]
pub struct Run {
    pub finding: Finding,
    /// The truth over the run, in bit/s.
    pub truth: f64,
    pub bits: f64,
}

impl Run {
    /// The estimate's error as a share of the truth.
    pub fn error(&self) -> f64 {
        self.finding.estimate_bps.map_or(f64::NAN, |estimate| estimate / self.truth - 1.0)
    }

    /// Returns `true` if the interval covers the truth.
    pub fn covers(&self) -> bool {
        let ends = self.finding.low_bps.zip(self.finding.high_bps);
        ends.is_some_and(|(low, high)| low <= self.truth && self.truth <= high)
    }
}

impl ModelPath {
    pub fn new(links: Vec<Link>, framing: Framing) -> Self {
        Self { links, slots: Slots::default(), framing, now: 1e9 }
    }

    fn carry(&mut self, train: &super::train::Plan) -> Train {
        let begin = self.now;
        let mut sent_ns = Vec::new();
        let mut arrived_ns = Vec::new();
        for packet in &train.packets {
            let at = begin + packet.at_ns as f64;
            let hops = packet.hop_limit.map_or(usize::MAX, usize::from);
            let mut time = at;
            for link in self.links.iter_mut().take(hops) {
                time = link.carry(time, self.framing.bits(packet.payload));
            }
            sent_ns.push(at.round() as i64);
            // The receiver's clock is another.
            arrived_ns.push((hops >= self.links.len()).then(|| (time + 77e9).round() as i64));
            self.now = self.now.max(at).max(time - 77.0);
        }
        Train { plan: train.clone(), sent_ns, arrived_ns, ..Train::default() }
    }

    /// Reads the bits of cross traffic that each link has carried, after `period_s`.
    pub fn poll(&mut self, period_s: f64) -> Vec<f64> {
        self.now += period_s * 1e9;
        let now = self.now;
        let read = |link: &mut Link| {
            link.advance(now);
            link.came
        };
        self.links.iter_mut().map(read).collect()
    }

    /// The rates of the links.
    pub fn rates(&self) -> Vec<f64> {
        self.links.iter().map(|link| link.rate).collect()
    }

    /// Drives an estimator to its end.
    pub fn run(&mut self, estimator: &mut dyn Estimator) -> Run {
        let began = self.now;
        for link in &mut self.links {
            link.advance(began);
        }
        let came: Vec<f64> = self.links.iter().map(|link| link.came).collect();
        let mut bits = 0.0;
        for _ in 0..100_000 {
            let Step::Send { plan, idle_ns } = estimator.next() else { break };
            self.now += idle_ns;
            bits += plan.bits(self.framing);
            let train = self.carry(&plan);
            assert!(train.is_whole());
            self.slots.hear(&train);
            estimator.hear(&train);
        }
        let (now, seconds) = (self.now, (self.now - began) / 1e9);
        let truth = self.links.iter_mut().zip(came).map(|(link, before)| {
            link.advance(now);
            link.rate - (link.came - before) / seconds
        });
        let truth = truth.fold(f64::INFINITY, f64::min);
        Run { finding: estimator.finding(), truth, bits }
    }
}
