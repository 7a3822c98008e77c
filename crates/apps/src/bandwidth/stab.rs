//! STAB: chirps that expire at a hop, followed packet by packet by short ones that reach the end: the available
//! bandwidth of every first part of the path, and the links that have less than all before them.
//!
//! Ribeiro, Riedi, Baraniuk, *Locating available bandwidth bottlenecks*, IEEE Internet Computing 8(5), 2004. The path
//! must lower the hop limit (TTL): routers do, switches do not unless a flow tells them to.
//!
//! Differences: rates are those at which chirps were sent, short packets counted in; each first part of the path has
//! a range of rates that follows its estimates.

use super::assolo::reflected_rates;
use super::chirp::{chirp, payload, rising_rates, silence_ns, ChirpWindow};
use super::estimator::{dispersion_rate, median, Estimator, Finding, HopFinding, Probing, Step};
use super::excursions::Excursions;
use super::train::{Plan, Planned, Train};

settings! {
    /// The settings, with the published values as defaults where nothing else is said.
    pub struct StabConfig;

    /// Bytes of each packet of a chirp, the headers of IP included.
    packet_bytes: u32 [60, 8200] = 1000,
    /// Payload of the packets that follow.
    follower_payload: u32 [22, 1472] = 32,
    /// The ratio of one rate to the one before.
    spread: f64 [1.01, 3.0] = 1.2,
    /// Packets that are sent at each rate (published: 1, and up to 20 for jumbo packets). One packet of cross traffic
    /// then is less than a step.
    hold: u32 [1, 20] = 5,
    /// Mean load of the probes in bit/s; a tenth of the lowest rate if that is more.
    load_bps: f64 [1e3, 1e10] = 300e3,
    /// Chirps for each hop over which estimates are averaged.
    smoothing: u32 [2, 1000] = 25,
    /// An excursion ends when the delay has fallen to its greatest rise over this.
    decrease_factor: f64 [1.0, 100.0] = 3.0,
    /// Excursions of fewer packets do not count.
    busy_length: u32 [1, 200] = 5,
    /// `true` if the bend of the mean of the last chirps' delays counts, instead of the mean of the estimates of single
    /// chirps (published).
    mean_signature: bool = true,
    /// Arrivals closer than this may be a batch, in nanoseconds.
    batch_ns: f64 [0.0, 1e6] = 5_000.0,
    /// A link is thin when what is available up to it, times this, is less than before it.
    thin_factor: f64 [1.0, 10.0] = 1.2,
    /// Chirps for each hop.
    chirps: u32 [1, 10_000] = 45,
}

impl StabConfig {
    /// As Ribeiro, Riedi and Baraniuk published it (IEEE Internet Computing 8(5), 2004).
    #[must_use]
    pub fn published() -> Self {
        Self { hold: 1, mean_signature: false, ..Self::default() }
    }
}

/// The most hops that are looked for, and how often.
const MOST_HOPS: u8 = 32;
const HOP_TRIES: u32 = 2;
/// Packets of the train that tells where ranges begin.
const FIRST_PACKETS: usize = 20;
/// The weight of what was held about a thin link before.
const MEMORY: f64 = 0.99;
/// Chirps of a hop after which its range is set anew.
const STEP: u32 = 5;
/// Chirps that are rejected in a row, of all hops, before the method gives up.
const PATIENCE: u32 = 50;

/// The known facts of the links up to one hop.
#[derive(Debug, Default)]
struct Hop {
    window: ChirpWindow,
    range: (f64, f64),
    recent: Vec<f64>,
    /// `true` if the range was found: chirps then have fine steps around its middle.
    settled: bool,
    thin: f64,
    sent: u32,
}

/// The estimator.
pub struct Stab {
    config: StabConfig,
    probing: Probing,
    hops: Vec<Hop>,
    hop_tries: u32,
    hop_count: Option<u8>,
    first_tries: u32,
    /// The hop of the train that is under way.
    current: usize,
    rejected: u32,
    gave_up: Option<String>,
}

impl Stab {
    /// An estimator that has heard nothing.
    #[must_use]
    pub fn new(config: StabConfig, probing: Probing) -> Self {
        Self {
            config,
            probing,
            hops: Vec::new(),
            hop_tries: 0,
            hop_count: None,
            first_tries: 0,
            current: 0,
            rejected: 0,
            gave_up: None,
        }
    }

    /// One short packet for each hop limit, two milliseconds apart: the least that arrives is the number of hops.
    fn hop_plan(&self) -> Plan {
        let payload = self.config.follower_payload;
        let packets =
            (1..=MOST_HOPS).map(|hop| Planned { at_ns: u64::from(hop - 1) * 2_000_000, payload, hop_limit: Some(hop) });
        Plan { packets: packets.collect() }
    }

    fn hear_hops(&mut self, train: &Train) {
        self.hop_tries += 1;
        let least = train.arrived().first().map(|place| *place as u8 + 1);
        self.hop_count = match (self.hop_count, least) {
            (Some(known), Some(found)) => Some(known.min(found)),
            (known, found) => known.or(found),
        };
        if self.hop_tries >= HOP_TRIES && self.hop_count.is_none() {
            self.gave_up = Some(
                "no packet with a hop limit came through: the path has more than 32 hops, or the host cannot set it"
                    .to_owned(),
            );
        }
    }

    fn hear_first(&mut self, train: &Train) {
        self.first_tries += 1;
        if let Some(rate) = dispersion_rate(train, self.probing.framing) {
            let range = (rate / 20.0, 1.1 * rate.min(self.probing.most_rate_bps));
            let hops = usize::from(self.hop_count.unwrap_or(1));
            self.hops = (0..hops).map(|_| Hop { range, ..Hop::default() }).collect();
        } else if self.first_tries >= 5 {
            self.gave_up = Some("no train of packets sent at once came through".to_owned());
        }
    }

    /// The next chirp: for the last hop an ordinary one, for the others one that expires there with packets that
    /// follow.
    fn chirp_plan(&self) -> Plan {
        let hop = &self.hops[self.current];
        let (low, high) = hop.range;
        let high = high.min(self.probing.most_rate_bps);
        let rates = if hop.settled {
            reflected_rates(low.min(high), high, 0.05, self.config.spread)
        } else {
            rising_rates(low.min(high), high, self.config.spread)
        };
        let payload = payload(self.config.packet_bytes, &self.probing);
        let whole = chirp(&rates, self.config.hold, payload, &self.probing);
        if self.current + 1 == self.hops.len() {
            return whole;
        }
        // With the packets that follow, each step has more bits: gaps grow so that the rates stay.
        let framing = self.probing.framing;
        let more = 1.0 + framing.bits(self.config.follower_payload) / framing.bits(payload);
        let mut packets = Vec::new();
        for packet in whole.packets {
            let at_ns = (packet.at_ns as f64 * more) as u64;
            packets.push(Planned { at_ns, payload: packet.payload, hop_limit: Some(self.current as u8 + 1) });
            packets.push(Planned { at_ns, payload: self.config.follower_payload, hop_limit: None });
        }
        Plan { packets }
    }

    fn hear_chirp(&mut self, train: &Train) {
        let rule = Excursions::new(self.config.decrease_factor, self.config.busy_length);
        let mean_signature = self.config.mean_signature;
        let hop = &mut self.hops[self.current];
        hop.sent += 1;
        let train = followers(train);
        let length = self.config.smoothing as usize;
        match hop.window.hear(&train, rule, self.config.batch_ns, length, &self.probing) {
            Some(found) => {
                self.rejected = 0;
                let raw = hop.window.latest(mean_signature).unwrap_or(found);
                hop.recent.push(raw);
                if hop.recent.len() >= STEP as usize {
                    hop.follow(self.probing.most_rate_bps);
                }
            }
            None => self.rejected += 1,
        }
        if self.rejected >= PATIENCE {
            self.gave_up = Some(format!("the last {PATIENCE} chirps could not be used"));
        }
        self.judge_links();
        self.current = (self.current + 1) % self.hops.len();
    }

    /// Works out the probability that each link is thin, by what is available up to it and before it.
    fn judge_links(&mut self) {
        let mean_signature = self.config.mean_signature;
        let means: Vec<Option<f64>> = self.hops.iter().map(|hop| hop.window.latest(mean_signature)).collect();
        for (place, hop) in self.hops.iter_mut().enumerate() {
            let before = means[..place].iter().flatten().copied().reduce(f64::min);
            let now = match (means[place], before) {
                (_, None) => 1.0,
                (Some(here), Some(before)) => f64::from(u8::from(self.config.thin_factor * here < before)),
                (None, Some(_)) => continue,
            };
            hop.thin = if hop.sent <= 1 { now } else { MEMORY * hop.thin + (1.0 - MEMORY) * now };
        }
    }
}

impl Hop {
    /// Sets the range by the last estimates: near an end the answer may be beyond it.
    fn follow(&mut self, most_rate: f64) {
        let Some(found) = median(&self.recent) else { return };
        self.recent.clear();
        let (low, high) = self.range;
        let place = (found - low) / (high - low);
        if self.settled && (0.25..=0.75).contains(&place) {
            return;
        }
        let middle = found.min(most_rate / 1.5);
        let near_an_end = found < 1.3 * low || found > 0.85 * high;
        self.range = if near_an_end { (middle / 4.0, middle * 2.0) } else { (0.4 * middle, 1.6 * middle) };
        self.window.estimates.clear();
        self.settled = !near_an_end;
    }
}

/// The train as its followers tell it: those that are not to expire, with the bits of those before them.
fn followers(train: &Train) -> Train {
    if train.plan.packets.iter().all(|packet| packet.hop_limit.is_none()) {
        return train.clone();
    }
    let mut told = train.clone();
    // Of packets that were to expire and came nevertheless nothing is known.
    for (packet, arrived) in told.plan.packets.iter().zip(&mut told.arrived_ns) {
        if packet.hop_limit.is_some() {
            *arrived = None;
        }
    }
    told
}

impl Estimator for Stab {
    fn next(&mut self) -> Step {
        if self.gave_up.is_some() {
            return Step::Done;
        }
        if self.hop_tries < HOP_TRIES {
            return Step::Send { plan: self.hop_plan(), idle_ns: 50e6 };
        }
        if self.hops.is_empty() {
            return Step::Send { plan: Plan::even(FIRST_PACKETS, self.probing.most_payload, 0.0), idle_ns: 50e6 };
        }
        if self.hops.iter().all(|hop| hop.sent >= self.config.chirps) {
            return Step::Done;
        }
        let plan = self.chirp_plan();
        let load = self.config.load_bps.max(self.hops[self.current].range.0 / 10.0);
        let idle_ns = silence_ns(&plan, load, &self.probing);
        Step::Send { plan, idle_ns }
    }

    fn hear(&mut self, train: &Train) {
        if self.hop_tries < HOP_TRIES {
            self.hear_hops(train);
        } else if self.hops.is_empty() {
            self.hear_first(train);
        } else {
            self.hear_chirp(train);
        }
    }

    fn finding(&self) -> Finding {
        let hops: Vec<HopFinding> = self
            .hops
            .iter()
            .enumerate()
            .map(|(place, hop)| {
                let mean = hop.window.found(self.config.mean_signature);
                HopFinding {
                    hop: place as u8 + 1,
                    estimate_bps: mean.map(|(mean, _)| mean),
                    interval_bps: mean.map(|(_, error)| 1.96 * error).filter(|half| half.is_finite()),
                    thin: hop.thin,
                }
            })
            .collect();
        let mut notes = self.hops.last().map(|hop| hop.window.notes()).unwrap_or_default();
        if self.hop_count == Some(1) {
            notes.push("nothing on the path lowers the hop limit: its links cannot be told apart".to_owned());
        }
        let whole = hops.last().copied();
        let estimate = whole.and_then(|hop| hop.estimate_bps);
        let half = whole.and_then(|hop| hop.interval_bps);
        Finding { gave_up: self.gave_up.clone(), notes, hops, ..Finding::around(estimate, half) }
    }
}
