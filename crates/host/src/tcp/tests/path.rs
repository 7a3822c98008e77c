//! Two connections and a path between them: rate, delay, buffer, and what it does to segments, all drawn from a seed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{Ipv4Addr, SocketAddr};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use twinnet_apps::Chunk;
use twinnet_packet::tcp::{Flags, Packet, Repr};
use twinnet_units::{Duration, Rate, Time};

use crate::tcp::{Connection, Outgoing, Segment, Signals, TcpConfig};

/// A segment on its way.
#[derive(Clone, Debug)]
pub struct Flight {
    pub header: Repr,
    pub payload: Vec<u8>,
    pub elided: u32,
    pub marked: bool,
    pub ecn_capable: bool,
}

impl Flight {
    fn read(bytes: &[u8], outgoing: Outgoing) -> Self {
        let packet = Packet::new_checked(bytes).unwrap();
        let header = Repr {
            source_port: packet.source_port(),
            destination_port: packet.destination_port(),
            sequence: packet.sequence(),
            acknowledgement: packet.acknowledgement(),
            flags: packet.flags(),
            window: packet.window(),
            options: packet.options().unwrap(),
        };
        let payload = packet.payload().to_vec();
        assert_eq!(payload.len() as u32 + outgoing.elided, outgoing.payload);
        Self { header, payload, elided: outgoing.elided, marked: false, ecn_capable: outgoing.ecn_capable }
    }

    pub fn length(&self) -> u32 {
        self.payload.len() as u32 + self.elided
    }

    pub fn segment(&self) -> Segment<'_> {
        Segment {
            sequence: self.header.sequence,
            acknowledgement: self.header.acknowledgement,
            flags: self.header.flags,
            window: self.header.window,
            options: self.header.options,
            payload: &self.payload,
            elided: self.elided,
            congestion_experienced: self.marked,
        }
    }
}

/// Decides over the fate of a segment: its ordinal among those with payload in its direction (from 0), and the segment.
pub type Fate = Box<dyn FnMut(u64, &Flight) -> bool>;

/// One direction.
pub struct Line {
    pub rate: Rate,
    pub delay: Duration,
    pub buffer: u64,
    pub loss: f64,
    pub duplication: f64,
    /// So many of a thousand are delayed by up to `jitter`, past others.
    pub reordering: f64,
    pub jitter: Duration,
    /// Queue in bytes from which on ECN-capable packets are marked.
    pub mark_above: u64,
    pub drop: Option<Fate>,
    /// Segments with payload so far, and all.
    pub data_segments: u64,
    pub segments: u64,
    pub lost: u64,
    busy_until: Time,
}

impl Line {
    pub fn new(mbit: u64, delay: Duration) -> Self {
        Self {
            rate: Rate::from_bps(mbit * 1_000_000).unwrap(),
            delay,
            buffer: u64::MAX,
            loss: 0.0,
            duplication: 0.0,
            reordering: 0.0,
            jitter: Duration::ZERO,
            mark_above: u64::MAX,
            drop: None,
            data_segments: 0,
            segments: 0,
            lost: 0,
            busy_until: Time::ZERO,
        }
    }
}

type Arrival = Reverse<(Time, u64, usize)>;

/// Both ends and the way between.
pub struct Pair {
    pub ends: [Option<Connection>; 2],
    pub signals: [Signals; 2],
    pub lines: [Line; 2],
    pub now: Time,
    pub config: TcpConfig,
    pub mtu: u32,
    pub initial: [u32; 2],
    arrivals: BinaryHeap<Arrival>,
    flights: Vec<Option<(usize, Flight)>>,
    order: u64,
    random: Pcg64Mcg,
    /// Every segment that was sent, with its time and its sender, when wanted.
    pub record: Option<Vec<(Time, usize, Flight)>>,
}

pub fn address(end: usize) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(10, 0, 0, 1 + end as u8), 5000 + end as u16))
}

impl Pair {
    /// A connection from end 0 to a listener at end 1.
    pub fn new(client: &TcpConfig, server: &TcpConfig, mbit: u64, delay: Duration) -> Self {
        Self::with_sequences(client, server, mbit, delay, [1000, 5_000_000])
    }

    pub fn with_sequences(
        client: &TcpConfig,
        server: &TcpConfig,
        mbit: u64,
        delay: Duration,
        initial: [u32; 2],
    ) -> Self {
        let connection = Connection::connect(client, address(0), address(1), 1500, initial[0], Time::ZERO);
        Self {
            ends: [Some(connection), None],
            signals: [Signals::default(); 2],
            lines: [Line::new(mbit, delay), Line::new(mbit, delay)],
            now: Time::ZERO,
            config: server.clone(),
            mtu: 1500,
            initial,
            arrivals: BinaryHeap::new(),
            flights: Vec::new(),
            order: 0,
            random: Pcg64Mcg::seed_from_u64(7),
            record: None,
        }
    }

    pub fn seed(&mut self, seed: u64) {
        self.random = Pcg64Mcg::seed_from_u64(seed);
    }

    pub fn end(&mut self, end: usize) -> &mut Connection {
        self.ends[end].as_mut().unwrap()
    }

    fn put(&mut self, from: usize, mut flight: Flight) {
        let line = &mut self.lines[from];
        line.segments += 1;
        let ordinal = line.data_segments;
        line.data_segments += u64::from(flight.length() > 0);
        if let Some(record) = &mut self.record {
            record.push((self.now, from, flight.clone()));
        }
        let queued = line.rate.bytes_in(line.busy_until.since(self.now));
        let bytes = u64::from(flight.length()) + flight.header.header_length() as u64 + 20;
        let dropped = queued + bytes > line.buffer
            || line.loss > 0.0 && self.random.random::<f64>() < line.loss
            || line.drop.as_mut().is_some_and(|fate| fate(ordinal, &flight));
        if dropped {
            line.lost += 1;
            return;
        }
        flight.marked = flight.ecn_capable && queued > line.mark_above;
        line.busy_until = line.busy_until.max(self.now) + line.rate.serialise(bytes);
        let mut at = line.busy_until + line.delay;
        if line.reordering > 0.0 && self.random.random::<f64>() < line.reordering {
            at += Duration::from_ps(self.random.random_range(0..=line.jitter.as_ps()));
        }
        let copies = 1 + usize::from(line.duplication > 0.0 && self.random.random::<f64>() < line.duplication);
        for _ in 0..copies {
            self.order += 1;
            self.flights.push(Some((1 - from, flight.clone())));
            self.arrivals.push(Reverse((at, self.order, self.flights.len() - 1)));
        }
    }

    /// Lets both ends send what they may, and gathers what they tell.
    pub fn flush(&mut self) {
        let mut bytes = Vec::new();
        for end in 0..2 {
            loop {
                bytes.clear();
                let now = self.now;
                let Some(connection) = self.ends[end].as_mut() else { break };
                let wanted = connection.wants_to_send(now);
                let outgoing = connection.poll_send(now, &mut bytes);
                assert_eq!(wanted, outgoing.is_some(), "what is wanted is given: {connection:?}");
                let Some(outgoing) = outgoing else { break };
                connection.left_host(outgoing.payload);
                let flight = Flight::read(&bytes, outgoing);
                self.put(end, flight);
            }
            if let Some(connection) = self.ends[end].as_mut() {
                let told = connection.take_signals();
                let signals = &mut self.signals[end];
                signals.connected |= told.connected;
                signals.readable |= told.readable;
                signals.writable |= told.writable;
                signals.failed = signals.failed.or(told.failed);
                signals.gone |= told.gone;
            }
        }
    }

    /// The next thing that happens, if anything will.
    pub fn next_time(&self) -> Option<Time> {
        let arrival = self.arrivals.peek().map(|Reverse((at, _, _))| *at);
        let deadline = self.ends.iter().flatten().filter_map(Connection::deadline).min();
        [arrival, deadline].into_iter().flatten().min()
    }

    /// Lets the next thing happen. Whether there was one before `until`.
    pub fn step(&mut self, until: Time) -> bool {
        self.flush();
        let Some(at) = self.next_time().filter(|at| *at <= until) else { return false };
        assert!(at >= self.now, "no deadline lies in the past");
        self.now = at;
        while let Some(&Reverse((arrival, _, index))) = self.arrivals.peek() {
            if arrival > at {
                break;
            }
            self.arrivals.pop();
            let (to, flight) = self.flights[index].take().unwrap();
            self.arrive(to, &flight);
            self.flush();
        }
        for connection in self.ends.iter_mut().flatten() {
            if connection.deadline().is_some_and(|deadline| deadline <= at) {
                connection.timer(at);
            }
        }
        self.flush();
        true
    }

    pub fn arrive(&mut self, to: usize, flight: &Flight) {
        match &mut self.ends[to] {
            Some(connection) => connection.receive(&flight.segment(), self.now),
            None if flight.header.flags.has(Flags::SYN) => {
                let (local, peer) = (address(to), address(1 - to));
                let (mtu, initial) = (self.mtu, self.initial[to]);
                let segment = flight.segment();
                self.ends[to] = Some(Connection::accept(&self.config, local, peer, mtu, initial, &segment, self.now));
            }
            None => {}
        }
    }

    /// Lets things happen for `span`.
    pub fn run(&mut self, span: Duration) {
        let until = self.now + span;
        while self.step(until) {}
        self.now = until;
    }

    /// Opens the connection.
    pub fn connect(&mut self) {
        self.run(Duration::from_ps(3 * (self.lines[0].delay + self.lines[1].delay).as_ps()) + Duration::from_ms(3));
        assert!(self.signals[0].connected && self.signals[1].connected);
    }

    /// Sends `total` bytes from `from`, reading them at the other end, until they are there or `limit` is over.
    /// Gives when the last was read. Every byte is checked, when they are real.
    pub fn transfer(&mut self, from: usize, total: u64, real: bool, limit: Duration) -> Option<Time> {
        let until = self.now + limit;
        let (mut offered, mut read) = (0, 0);
        let mut buffer = vec![0; 256 * 1024];
        let pattern = |at: u64| (at % 251) as u8;
        loop {
            self.flush();
            while offered < total && self.ends[from].is_some() {
                let now = self.now;
                let taken = if real {
                    let chunk: Vec<_> = (offered..(offered + 16 * 1024).min(total)).map(pattern).collect();
                    self.end(from).send(Chunk::Bytes(&chunk), now).unwrap()
                } else {
                    self.end(from).send(Chunk::Filler(total - offered), now).unwrap()
                };
                offered += taken;
                if taken == 0 {
                    break;
                }
            }
            self.flush();
            if let Some(reader) = self.ends[1 - from].as_mut() {
                while let Some(count) = reader.read(&mut buffer, self.now).unwrap() {
                    assert!(count > 0, "the stream must not end");
                    if real {
                        let wrong = (0..count).find(|at| buffer[*at] != pattern(read + *at as u64));
                        assert_eq!(wrong, None, "at {read}");
                    }
                    read += count as u64;
                }
            }
            if read == total {
                return Some(self.now);
            }
            if !self.step(until) {
                return None;
            }
        }
    }
}
