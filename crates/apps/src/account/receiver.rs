//! The counts that every receiver of datagrams with numbers reports of a flow.

use std::net::SocketAddr;

use twinnet_units::Time;

use crate::account::arrivals::Arrivals;
use crate::account::intervals::IntervalCounter;
use crate::account::report::{FlowReport, Protocol, Role};
use crate::account::samples::Samples;
use crate::account::sequence::{Arrival, SequenceAccount};

/// The receiving end of one flow of one sender. For each datagram its sink calls [`Self::enter`] if it has a number,
/// and [`Self::count`] unless that said that it had come before.
pub(crate) struct Receiver {
    pub from: SocketAddr,
    first: Time,
    last: Time,
    packets: u64,
    bytes: u64,
    pub sequences: SequenceAccount,
    arrivals: Arrivals,
    pub samples: Samples,
    intervals: IntervalCounter,
}

impl Receiver {
    pub(crate) fn new(from: SocketAddr, intervals: IntervalCounter, now: Time) -> Self {
        Self {
            from,
            first: now,
            last: now,
            packets: 0,
            bytes: 0,
            sequences: SequenceAccount::default(),
            arrivals: Arrivals::default(),
            samples: Samples::default(),
            intervals,
        }
    }

    /// Notes that something arrived, counted or not.
    pub(crate) fn hear(&mut self, arrived: Time) {
        self.last = self.last.max(arrived);
    }

    /// Enters the datagram `number`, whose number on the wire is `sequence`; says whether it came for the first time.
    /// Up to `record` datagrams are kept.
    pub(crate) fn enter(
        &mut self,
        (number, sequence): (u64, u32),
        sent: Option<Time>,
        arrived: Time,
        length: usize,
        record: Option<u32>,
    ) -> bool {
        if let Some(most) = record {
            self.samples.add(most, number, sent, arrived, length);
        }
        let lost = self.sequences.lost();
        let arrival = self.sequences.enter(sequence);
        self.intervals.add_order(arrived, arrival, (lost, self.sequences.lost()));
        arrival != Arrival::Duplicate
    }

    /// Counts a datagram of `length` bytes; `numbered` is its number and when it was sent, where it tells them.
    pub(crate) fn count(&mut self, arrived: Time, length: usize, numbered: Option<(u64, Option<Time>)>) {
        let timing = numbered.and_then(|(number, sent)| self.arrivals.add(number, sent, arrived));
        self.packets += 1;
        self.bytes += length as u64;
        self.intervals.add_timed(arrived, length as u64, timing);
    }

    /// The report of `flow`, without what numbers tell.
    pub(crate) fn report(&self, flow: Option<u32>, protocol: Protocol) -> FlowReport {
        let mut row = FlowReport::new(flow, protocol, Role::Sink).with_intervals(&self.intervals);
        row.from = Some(self.from.to_string());
        row.start_ps = Some(self.first.as_ps());
        row.end_ps = Some(self.last.as_ps());
        row.packets = Some(self.packets);
        row.bytes = self.bytes;
        row
    }

    /// The report of `flow` with what numbers tell, and with the datagrams that were kept if they were asked for.
    pub(crate) fn numbered_report(&self, flow: Option<u32>, protocol: Protocol, record: bool) -> FlowReport {
        let mut row = self.report(flow, protocol);
        row.lost = Some(self.sequences.lost());
        row.reordered = Some(self.sequences.reordered());
        row.duplicates = Some(self.sequences.duplicates());
        row.loss_bursts = Some(self.sequences.loss_bursts());
        row.reordering_extents = Some(self.sequences.reordering_extents());
        row.reordering_density = Some(self.sequences.reordering_density());
        row.samples = record.then(|| self.samples.clone());
        self.arrivals.fill(&mut row);
        row
    }
}
