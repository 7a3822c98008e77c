//! Keeps when probes arrived, and tells whoever sent them.
//!
//! It answers only those who have the cookie that it gave to their address, and never with more bytes than it was
//! asked with: see [`super::message`]. What it keeps is bounded: [`MOST_PROBERS`] probers with [`MOST_TRAINS`] trains
//! each.

use std::collections::hash_map::DefaultHasher;
use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::net::{Ipv4Addr, SocketAddr};

use serde_json::Value;
use twinnet_units::Time;

use super::message::{Message, Stamps, MOST_STAMPS};
use super::prober_config::BandwidthListenerConfig;
use super::train::MOST_PACKETS;
use crate::account::errors::ErrorTally;
use crate::account::report::{AppReport, FlowReport, Protocol, Role};
use crate::{listen, App, Chunk, Event, Host, SocketId};

/// Probers that are kept at once; the one that was silent longest makes room.
const MOST_PROBERS: usize = 32;
/// Trains of each that are kept.
const MOST_TRAINS: usize = 4;

/// Arrivals of one train.
struct Heard {
    train: u32,
    /// By place, in nanoseconds.
    arrived: Vec<Option<u64>>,
}

/// One prober.
struct Known {
    address: SocketAddr,
    last: Time,
    trains: VecDeque<Heard>,
    overflowed: u32,
    stepped: bool,
}

/// The app.
pub struct BandwidthListener {
    config: BandwidthListenerConfig,
    secret: [u64; 2],
    sockets: Vec<SocketId>,
    start: Option<Time>,
    last: Option<Time>,
    probers: Vec<Known>,
    packets: u64,
    bytes: u64,
    refused: u64,
    stopped: bool,
    errors: ErrorTally,
}

impl BandwidthListener {
    /// A listener that does what `config` says.
    #[must_use]
    pub fn new(config: BandwidthListenerConfig) -> Self {
        Self {
            config,
            secret: [0; 2],
            sockets: Vec::new(),
            start: None,
            last: None,
            probers: Vec::new(),
            packets: 0,
            bytes: 0,
            refused: 0,
            stopped: false,
            errors: ErrorTally::default(),
        }
    }

    /// The cookie of an address: SipHash of a secret and the address.
    fn cookie(&self, address: SocketAddr) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.secret, address).hash(&mut hasher);
        hasher.finish()
    }

    fn hear(&mut self, socket: SocketId, from: SocketAddr, message: &Message, arrived: Time, host: &mut dyn Host) {
        if self.config.allow.as_ref().is_some_and(|allow| !allow.contains(&from.ip().to_canonical())) {
            self.refused += 1;
            return;
        }
        let cookie = self.cookie(from);
        let answer = match *message {
            Message::Hello { nonce } => Message::Welcome { nonce, cookie, most_rate_bps: self.config.most_rate_bps },
            Message::Probe { cookie: told, train, place } if told == cookie => {
                self.keep(from, train, place, arrived);
                return;
            }
            Message::Ask { cookie: told, train, place } if told == cookie => self.stamps(from, cookie, train, place),
            Message::Probe { .. } | Message::Ask { .. } => {
                self.refused += 1;
                return;
            }
            Message::Welcome { .. } | Message::Stamps(_) => return,
        };
        if let Err(error) = host.udp_send(socket, from, Chunk::Bytes(&answer.emit())) {
            self.errors.add(error);
        }
    }

    fn keep(&mut self, from: SocketAddr, train: u32, place: u16, arrived: Time) {
        let place = usize::from(place);
        if place >= MOST_PACKETS {
            return;
        }
        let known = self.prober(from, arrived);
        if !known.trains.iter().any(|heard| heard.train == train) {
            known.trains.push_back(Heard { train, arrived: Vec::new() });
            if known.trains.len() > MOST_TRAINS {
                known.trains.pop_front();
            }
        }
        let Some(heard) = known.trains.iter_mut().find(|heard| heard.train == train) else { return };
        if heard.arrived.len() <= place {
            heard.arrived.resize(place + 1, None);
        }
        // Of copies the first counts.
        heard.arrived[place].get_or_insert(arrived.as_ns());
    }

    fn prober(&mut self, from: SocketAddr, now: Time) -> &mut Known {
        let place = self.probers.iter().position(|known| known.address == from).unwrap_or_else(|| {
            if self.probers.len() >= MOST_PROBERS {
                let oldest =
                    self.probers.iter().enumerate().min_by_key(|(_, known)| known.last).map(|(place, _)| place);
                self.probers.swap_remove(oldest.unwrap_or(0));
            }
            let known = Known { address: from, last: now, trains: VecDeque::new(), overflowed: 0, stepped: false };
            self.probers.push(known);
            self.probers.len() - 1
        });
        let known = &mut self.probers[place];
        known.last = now;
        known
    }

    /// Stamps that are kept now.
    #[cfg(test)]
    pub(crate) fn kept_stamps(&self) -> usize {
        self.probers.iter().flat_map(|known| &known.trains).map(|heard| heard.arrived.len()).sum()
    }

    fn stamps(&mut self, from: SocketAddr, cookie: u64, train: u32, place: u16) -> Message {
        let mut stamps = Stamps { cookie, train, place, ..Stamps::default() };
        if let Some(known) = self.probers.iter_mut().find(|known| known.address == from) {
            stamps.overflowed = std::mem::take(&mut known.overflowed);
            stamps.clock_stepped = std::mem::take(&mut known.stepped);
            let heard = known.trains.iter().find(|heard| heard.train == train);
            let arrived = heard.map_or(&[][..], |heard| &heard.arrived).iter().skip(usize::from(place));
            stamps.arrived_ns = arrived.take(MOST_STAMPS).copied().collect();
        }
        Message::Stamps(stamps)
    }
}

impl App for BandwidthListener {
    fn handle(&mut self, now: Time, event: Event<'_>, host: &mut dyn Host) {
        match event {
            Event::Start => {
                self.secret = [host.random(), host.random()];
                match listen::udp(host, self.config.port) {
                    Ok(sockets) => self.sockets = sockets,
                    Err(error) => self.errors.add(error),
                }
                self.start = Some(now);
                self.stopped = self.sockets.is_empty();
            }
            Event::Datagram { socket, from, bytes, length, arrived } => {
                self.packets += 1;
                self.bytes += length as u64;
                self.last = Some(arrived);
                match Message::parse(bytes, length) {
                    Some(message) => self.hear(socket, from, &message, arrived, host),
                    None => self.refused += 1,
                }
            }
            Event::Overflowed { datagrams, .. } => {
                for known in &mut self.probers {
                    known.overflowed = known.overflowed.saturating_add(u32::try_from(datagrams).unwrap_or(u32::MAX));
                }
            }
            Event::ClockStepped { .. } => self.probers.iter_mut().for_each(|known| known.stepped = true),
            Event::Stop => {
                self.stopped = true;
                for socket in std::mem::take(&mut self.sockets) {
                    host.close(socket);
                }
            }
            Event::Failed { error, .. } => self.errors.add(error),
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Time> {
        None
    }

    fn finished(&self) -> bool {
        self.stopped
    }

    fn report(&self, _now: Time) -> Value {
        let mut row = FlowReport::new(None, Protocol::Bandwidth, Role::Server).with_errors(&self.errors);
        row.to = Some(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), self.config.port).to_string());
        row.start_ps = self.start.map(Time::as_ps);
        row.end_ps = self.last.or(self.start).map(Time::as_ps);
        row.packets = Some(self.packets);
        row.bytes = self.bytes;
        if self.refused > 0 {
            row.errors.push(format!(
                "{} datagrams were no messages, had no right cookie or came from addresses that are not allowed",
                self.refused
            ));
        }
        AppReport { flows: vec![row] }.into_json()
    }
}
