//! Several captures of the same traffic, matched packet by packet: delay and loss from each to the next.

use std::collections::HashMap;
use std::io::{self, Read};

use rustc_hash::FxHashMap;

use crate::conversations::protocol_name;
use crate::decode::{address, Address};
use crate::fingerprint::Prints;
use crate::reader::{Ending, OpenError, Reader};
use crate::table::{Table, MISSING};

/// Packets of one capture that are held for matching.
const MOST: usize = 64 << 20;
const BETWEEN_QUESTIONS: u64 = 1 << 19;

/// Why captures cannot be matched.
#[derive(Debug, thiserror::Error)]
pub enum MatchError {
    /// One of them cannot be read as a capture; counted from 0.
    #[error("capture {index}: {source}")]
    Open {
        /// The index of the capture.
        index: usize,
        /// Why.
        source: OpenError,
    },
    /// Reading failed.
    #[error("capture {index}: reading failed: {source}")]
    Io {
        /// The index of the capture.
        index: usize,
        /// Why.
        source: io::Error,
    },
    /// More packets than are held. Remedy: match a part of the captures (`editcap -A`, `-B`).
    #[error(
        "capture {0} has more than {MOST} packets, the most that are matched at once; cut the captures into parts"
    )]
    TooLong(usize),
    /// The caller did not want to go on.
    #[error("interrupted")]
    Interrupted,
}

/// The result of matching.
#[derive(Clone, Debug)]
pub struct Matched {
    /// A row for each direction of a conversation and each segment.
    pub segments: Table,
    /// A row for each packet that was found in two captures, when asked for.
    pub packets: Table,
    /// Remarks that the reader must know to judge the numbers.
    pub notes: Vec<String>,
}

/// A packet that was seen.
#[derive(Clone, Copy)]
struct Seen {
    print: u64,
    time_ns: i64,
    flow: u32,
    number: u32,
}

/// One direction of a conversation.
#[derive(Clone, Copy)]
struct Flow {
    v6: bool,
    source: (Address, u16),
    destination: (Address, u16),
    protocol: u8,
}

/// All flows of all captures.
#[derive(Default)]
struct Flows {
    index: FxHashMap<u64, u32>,
    all: Vec<Flow>,
}

/// One capture, ready to be matched.
struct Prepared {
    /// By fingerprint, then by place in the file.
    seen: Vec<Seen>,
    first_ns: i64,
    last_ns: i64,
}

/// One packet in both captures of a segment.
struct Pair {
    first: Seen,
    second: Seen,
}

/// The tally of a flow on a segment.
#[derive(Default, Clone)]
struct Tally {
    in_first: u64,
    in_second: u64,
    pairs: Vec<(i64, u32, u32)>,
    only_first: u64,
    only_second: u64,
    outside: u64,
    ambiguous: u64,
}

/// Matches captures in the order given. With `every_packet`, the table of packets is filled too. `go_on` is asked
/// now and then.
///
/// # Errors
/// See [`MatchError`].
pub fn match_captures(
    inputs: Vec<Box<dyn Read + Send>>,
    prints: Prints,
    every_packet: bool,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<Matched, MatchError> {
    let mut flows = Flows::default();
    let mut notes = Vec::new();
    let mut rows = Rows::default();
    let mut before: Option<Prepared> = None;
    for (index, input) in inputs.into_iter().enumerate() {
        let prepared = prepare(index, input, prints, &mut flows, &mut notes, go_on)?;
        if let Some(first) = &before {
            segment(index - 1, first, &prepared, &flows, every_packet, &mut rows, &mut notes);
        }
        before = Some(prepared);
    }
    Ok(Matched { segments: rows.segments(&flows), packets: rows.packets(every_packet), notes })
}

fn prepare(
    index: usize,
    input: Box<dyn Read + Send>,
    prints: Prints,
    flows: &mut Flows,
    notes: &mut Vec<String>,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<Prepared, MatchError> {
    let io = |source| MatchError::Io { index, source };
    let mut reader = Reader::new(input).map_err(|source| MatchError::Open { index, source })?;
    let mut prepared = Prepared { seen: Vec::new(), first_ns: i64::MAX, last_ns: i64::MIN };
    let (mut cut, mut left_out) = (0_u64, 0_u64);
    while let Some(record) = reader.next_record().map_err(io)? {
        if record.number % BETWEEN_QUESTIONS == 0 && !go_on(record.number) {
            return Err(MatchError::Interrupted);
        }
        let Some(time_ns) = record.time_ns else {
            left_out += 1;
            continue;
        };
        let Some((fingerprint, layer)) = prints.of(&record) else {
            left_out += 1;
            continue;
        };
        if prepared.seen.len() >= MOST || flows.all.len() >= MOST {
            return Err(MatchError::TooLong(index));
        }
        cut += u64::from(fingerprint.cut);
        prepared.first_ns = prepared.first_ns.min(time_ns);
        prepared.last_ns = prepared.last_ns.max(time_ns);
        let next = flows.all.len() as u32;
        let flow = *flows.index.entry(fingerprint.flow).or_insert(next);
        if flow == next {
            let (from, to) = layer.transport.ports();
            let (source, destination) = ((layer.source, from), (layer.destination, to));
            flows.all.push(Flow { v6: layer.v6, source, destination, protocol: layer.protocol });
        }
        prepared.seen.push(Seen { print: fingerprint.print, time_ns, flow, number: record.number as u32 });
    }
    prepared.seen.sort_unstable_by_key(|seen| (seen.print, seen.number));
    let name = format!("capture {}", index + 1);
    if let Some(ending) = reader.ending().filter(|ending| **ending != Ending::Whole) {
        notes.push(format!("{name}: {ending}"));
    }
    notes.extend(reader.remarks().into_iter().map(|remark| format!("{name}: {remark}")));
    if cut > 0 {
        notes.push(format!(
            "{name}: {cut} packets have fewer captured bytes than are compared; where captures keep different \
             lengths, compare fewer (--match-bytes)"
        ));
    }
    if left_out > 0 {
        notes.push(format!("{name}: {left_out} packets are not IP or have no time, and are not matched"));
    }
    Ok(prepared)
}

/// Matches two captures that follow each other.
fn segment(
    number: usize,
    first: &Prepared,
    second: &Prepared,
    flows: &Flows,
    every_packet: bool,
    rows: &mut Rows,
    notes: &mut Vec<String>,
) {
    let mut tallies: HashMap<u32, Tally> = HashMap::new();
    let (mut a, mut b) = (&first.seen[..], &second.seen[..]);
    while let Some(print) = a.first().map(|seen| seen.print).into_iter().chain(b.first().map(|seen| seen.print)).min() {
        let (in_a, in_b) = (split(&mut a, print), split(&mut b, print));
        let Some(flow) = in_a.first().or(in_b.first()).map(|seen| seen.flow) else { break };
        let tally = tallies.entry(flow).or_default();
        tally.in_first += in_a.len() as u64;
        tally.in_second += in_b.len() as u64;
        if in_a.len() == in_b.len() {
            let pairs = in_a.iter().zip(in_b).map(|(&first, &second)| Pair { first, second });
            tally.pairs.extend(pairs.map(|pair| {
                (pair.second.time_ns.saturating_sub(pair.first.time_ns), pair.first.number, pair.second.number)
            }));
        } else {
            tally.unequal(in_a, in_b, (first.first_ns, first.last_ns), (second.first_ns, second.last_ns));
        }
    }
    let mut order: Vec<u32> = tallies.keys().copied().collect();
    order.sort_unstable();
    let name = format!("segment {}", number + 1);
    let matched: usize = tallies.values().map(|tally| tally.pairs.len()).sum();
    if matched == 0 {
        notes.push(format!(
            "{name}: no packet was found in both captures; they are not of the same traffic, or \
            addresses were translated"
        ));
    }
    clock_note(&name, &tallies, flows, notes);
    for flow in order {
        if let Some(tally) = tallies.remove(&flow) {
            rows.add(number, flow, tally, every_packet);
        }
    }
}

/// Takes the packets with `print` from the front.
fn split<'a>(seen: &mut &'a [Seen], print: u64) -> &'a [Seen] {
    let count = seen.iter().take_while(|one| one.print == print).count();
    let (taken, rest) = seen.split_at(count);
    *seen = rest;
    taken
}

impl Tally {
    /// Packets that look alike, a different number in each capture: how many are missing is known; which, only when
    /// one side has none.
    fn unequal(&mut self, a: &[Seen], b: &[Seen], first: (i64, i64), second: (i64, i64)) {
        let (longer, other) = if a.len() > b.len() { (a, second) } else { (b, first) };
        let missing = (a.len().abs_diff(b.len())) as u64;
        // What the other capture could not have seen, having begun later or ended earlier, is not lost.
        let beyond = longer.iter().filter(|seen| seen.time_ns < other.0 || seen.time_ns > other.1).count() as u64;
        let outside = beyond.min(missing);
        self.outside += outside;
        if a.len() > b.len() {
            self.only_first += missing - outside;
        } else {
            self.only_second += missing - outside;
        }
        self.ambiguous += a.len().min(b.len()) as u64;
    }

    /// The delay in the middle: negative when the flow goes from the second capture to the first.
    fn median(&self) -> Option<i64> {
        let mut delays: Vec<i64> = self.pairs.iter().map(|pair| pair.0).collect();
        let middle = delays.len() / 2;
        (!delays.is_empty()).then(|| *delays.select_nth_unstable(middle).1)
    }
}

/// Says what the delays of both directions tell of the two clocks.
fn clock_note(name: &str, tallies: &HashMap<u32, Tally>, flows: &Flows, notes: &mut Vec<String>) {
    let mut mixed = 0_u64;
    for tally in tallies.values() {
        let forwards = tally.pairs.iter().filter(|pair| pair.0 >= 0).count();
        mixed += forwards.min(tally.pairs.len() - forwards) as u64;
    }
    if mixed > 0 {
        notes.push(format!(
            "{name}: {mixed} packets pass against the direction of the others of their flow: a clock \
            steps, or the two differ by about the delay"
        ));
    }
    let ends = |flow: &Flow| (flow.protocol, flow.source, flow.destination);
    let medians: HashMap<_, i64> =
        tallies.iter().filter_map(|(&flow, tally)| Some((ends(&flows.all[flow as usize]), tally.median()?))).collect();
    let same_sign = medians.iter().find_map(|(&(protocol, source, destination), &there)| {
        let back = *medians.get(&(protocol, destination, source))?;
        (there > 0 && back > 0 || there < 0 && back < 0).then_some((there, back))
    });
    if let Some((there, back)) = same_sign {
        let offset_ms = (i128::from(there) + i128::from(back)) as f64 / 2e6;
        notes.push(format!(
            "{name}: both directions of a conversation seem to pass the same way: the clocks of the two captures \
             differ, by about {:.3} ms if the way is as long both ways; one-way delays are not to be trusted, their \
             sum over both directions is",
            offset_ms.abs()
        ));
    }
}

/// The rows of both tables.
#[derive(Default)]
struct Rows {
    all: Vec<(usize, u32, Tally)>,
}

impl Rows {
    fn add(&mut self, segment: usize, flow: u32, tally: Tally, every_packet: bool) {
        let tally = if every_packet { tally } else { tally.without_numbers() };
        self.all.push((segment, flow, tally));
    }

    fn segments(&self, flows: &Flows) -> Table {
        let rows: Vec<_> = self
            .all
            .iter()
            .map(|(segment, flow, tally)| (*segment, &flows.all[*flow as usize], tally, tally.delays()))
            .collect();
        let mut table = Table::default();
        table.whole("segment", rows.iter().map(|row| row.0 as i64 + 1));
        table.text("protocol", rows.iter().map(|row| protocol_name(row.1.protocol)));
        table.text("source_address", rows.iter().map(|row| address(row.1.v6, row.1.source.0).to_string()));
        table.whole("source_port", rows.iter().map(|row| i64::from(row.1.source.1)));
        table.text("destination_address", rows.iter().map(|row| address(row.1.v6, row.1.destination.0).to_string()));
        table.whole("destination_port", rows.iter().map(|row| i64::from(row.1.destination.1)));
        // The capture that the flow passes first has its packets before the other.
        table.text("direction", rows.iter().map(|row| row.3.direction.to_owned()));
        table.count("sent", rows.iter().map(|row| if row.3.backwards { row.2.in_second } else { row.2.in_first }));
        table.count("received", rows.iter().map(|row| if row.3.backwards { row.2.in_first } else { row.2.in_second }));
        table.count("matched", rows.iter().map(|row| row.2.pairs.len() as u64));
        // Of a flow of which no packet was found in both, it cannot be told whether it passes both places.
        let known = |row: &(usize, &Flow, &Tally, Delays), count: u64| {
            if row.2.pairs.is_empty() {
                MISSING
            } else {
                count as i64
            }
        };
        let only = |tally: &Tally, first: bool| if first { tally.only_first } else { tally.only_second };
        table.whole("lost", rows.iter().map(|row| known(row, only(row.2, !row.3.backwards))));
        table.whole("appeared", rows.iter().map(|row| known(row, only(row.2, row.3.backwards))));
        table.count("outside", rows.iter().map(|row| row.2.outside));
        table.count("ambiguous", rows.iter().map(|row| row.2.ambiguous));
        table.real("min_delay_ms", rows.iter().map(|row| row.3.least));
        table.real("mean_delay_ms", rows.iter().map(|row| row.3.mean));
        table.real("median_delay_ms", rows.iter().map(|row| row.3.median));
        table.real("p99_delay_ms", rows.iter().map(|row| row.3.p99));
        table.real("max_delay_ms", rows.iter().map(|row| row.3.most));
        table.real("std_delay_ms", rows.iter().map(|row| row.3.deviation));
        table
    }

    fn packets(&self, every_packet: bool) -> Table {
        let mut table = Table::default();
        if !every_packet {
            return table;
        }
        let mut rows: Vec<(usize, u32, u32, u32, i64)> = Vec::new();
        for (index, (segment, _, tally)) in self.all.iter().enumerate() {
            rows.extend(
                tally.pairs.iter().map(|&(delay, first, second)| (*segment, index as u32, first, second, delay)),
            );
        }
        rows.sort_unstable_by_key(|row| (row.0, row.2));
        table.whole("segment", rows.iter().map(|row| row.0 as i64 + 1));
        table.whole("flow", rows.iter().map(|row| i64::from(row.1)));
        table.whole("packet_first", rows.iter().map(|row| i64::from(row.2)));
        table.whole("packet_second", rows.iter().map(|row| i64::from(row.3)));
        table.real("delay_ms", rows.iter().map(|row| row.4 as f64 / 1e6));
        table
    }
}

/// Delays of a flow in milliseconds, as positive numbers in its own direction.
struct Delays {
    direction: &'static str,
    backwards: bool,
    least: f64,
    mean: f64,
    median: f64,
    p99: f64,
    most: f64,
    deviation: f64,
}

impl Tally {
    fn without_numbers(self) -> Self {
        Self { pairs: self.pairs.into_iter().map(|(delay, _, _)| (delay, 0, 0)).collect(), ..self }
    }

    fn delays(&self) -> Delays {
        let backwards = self.median().is_some_and(|median| median < 0);
        let sign = if backwards { -1.0 } else { 1.0 };
        let mut delays: Vec<f64> = self.pairs.iter().map(|pair| sign * pair.0 as f64 / 1e6).collect();
        delays.sort_unstable_by(f64::total_cmp);
        let count = delays.len() as f64;
        let at = |share: f64| {
            let place = (share * (count - 1.0)).round().max(0.0) as usize;
            delays.get(place).copied().unwrap_or(f64::NAN)
        };
        let mean = delays.iter().sum::<f64>() / count;
        let squares = delays.iter().map(|delay| (delay - mean).powi(2)).sum::<f64>();
        let direction = match (self.pairs.is_empty(), backwards) {
            (true, _) => "unknown",
            (false, false) => "forward",
            (false, true) => "backward",
        };
        let deviation = if count > 1.0 { (squares / (count - 1.0)).sqrt() } else { f64::NAN };
        Delays { direction, backwards, least: at(0.0), mean, median: at(0.5), p99: at(0.99), most: at(1.0), deviation }
    }
}
