//! The choice of UDP payloads that are RTP: those of ports that the user names, and those that look like it several
//! times in a row.

use rustc_hash::FxHashMap;

use crate::conversations::Conversation;
use crate::rtp::{Arrival, Measured, Stream};
use crate::rtp_payload;
use twinnet_packet::rtp::Header;

/// Packets of one source, with sequence numbers that follow each other, after which it is believed.
pub(crate) const PROBATION: usize = 5;
/// Sources of one direction that are on probation at once.
const CANDIDATES: usize = 4;
/// Payloads that cannot be RTP after which a direction is not looked into any more.
const MISSES: u32 = 16;
/// Sequence numbers that may be missing between two packets on probation.
const GAP: u16 = 50;
/// The most streams.
const MOST: usize = 1 << 16;

/// One direction of a conversation over UDP.
struct Search {
    given: bool,
    misses: u32,
    last: Option<(u32, u32)>,
    candidates: Vec<Candidate>,
}

/// A source that may be one of RTP.
struct Candidate {
    source: u32,
    held: Vec<(Header, Arrival)>,
}

/// All streams, and the search for more.
pub(crate) struct Finder {
    ports: Vec<u16>,
    heuristic: bool,
    rates: Box<[Option<u32>; 128]>,
    searches: Vec<Search>,
    known: FxHashMap<(u32, u32), u32>,
    pub(crate) streams: Vec<Stream>,
    pub(crate) not_kept: u64,
}

impl Finder {
    pub(crate) fn new(ports: Vec<u16>, heuristic: bool, clock_rates: &[(u8, u32)]) -> Self {
        let mut rates = Box::new([None; 128]);
        for &(payload_type, rate) in clock_rates {
            rates[usize::from(payload_type & 0x7f)] = (rate > 0).then_some(rate);
        }
        Self {
            ports,
            heuristic,
            rates,
            searches: Vec::new(),
            known: FxHashMap::default(),
            streams: Vec::new(),
            not_kept: 0,
        }
    }

    /// Takes in a UDP payload of `length` bytes that begins with `begin`; `each` is told of every packet of RTP
    /// that this makes known.
    #[inline]
    pub(crate) fn add(
        &mut self,
        conversation: &mut Conversation,
        place: (usize, usize),
        begin: &[u8],
        length: u32,
        arrival: Arrival,
        mut each: impl FnMut(usize, &Header, &Arrival, Measured),
    ) {
        let index = conversation.rtp[place.1];
        let index = if index == u32::MAX { self.begin(conversation, place.1) } else { index };
        let search = &mut self.searches[index as usize];
        if !search.given && (!self.heuristic || search.misses >= MISSES && search.last.is_none()) {
            return;
        }
        let Some(header) = rtp_payload::parse(begin, length) else {
            search.misses = search.misses.saturating_add(1);
            return;
        };
        if let Some((source, stream)) = search.last {
            if source == header.source {
                let measured = self.streams[stream as usize].add(&header, &arrival, &self.rates);
                each(stream as usize, &header, &arrival, measured);
                return;
            }
        }
        self.other_source(index, place, &header, arrival, &mut each);
    }

    #[cold]
    fn begin(&mut self, conversation: &mut Conversation, direction: usize) -> u32 {
        let index = self.searches.len() as u32;
        let given = self.ports.contains(&conversation.a.1) || self.ports.contains(&conversation.b.1);
        self.searches.push(Search { given, misses: 0, last: None, candidates: Vec::new() });
        conversation.rtp[direction] = index;
        index
    }

    fn other_source(
        &mut self,
        index: u32,
        place: (usize, usize),
        header: &Header,
        arrival: Arrival,
        each: &mut impl FnMut(usize, &Header, &Arrival, Measured),
    ) {
        let search = &mut self.searches[index as usize];
        if let Some(&stream) = self.known.get(&(index, header.source)) {
            search.last = Some((header.source, stream));
            let measured = self.streams[stream as usize].add(header, &arrival, &self.rates);
            each(stream as usize, header, &arrival, measured);
            return;
        }
        let believed = if search.given { vec![(*header, arrival)] } else { search.probation(header, arrival) };
        let Some((first, rest)) = believed.split_first() else { return };
        if self.streams.len() >= MOST {
            self.not_kept += believed.len() as u64;
            return;
        }
        let mut stream = Stream::begin(place, &first.0, &first.1, &self.rates);
        let number = self.streams.len();
        each(number, &first.0, &first.1, stream.first_measured());
        for (header, arrival) in rest {
            let measured = stream.add(header, arrival, &self.rates);
            each(number, header, arrival, measured);
        }
        search.last = Some((header.source, number as u32));
        self.known.insert((index, header.source), number as u32);
        self.streams.push(stream);
    }
}

impl Search {
    /// Holds a packet of an unknown source; gives all that are held when that makes enough to believe it.
    fn probation(&mut self, header: &Header, arrival: Arrival) -> Vec<(Header, Arrival)> {
        let place = self.candidates.iter().position(|candidate| candidate.source == header.source);
        let Some(place) = place else {
            if self.candidates.len() >= CANDIDATES {
                self.candidates.remove(0);
            }
            self.candidates.push(Candidate { source: header.source, held: vec![(*header, arrival)] });
            return Vec::new();
        };
        let held = &mut self.candidates[place].held;
        let follows = held.last().is_some_and(|(before, _)| {
            (1..=GAP).contains(&header.sequence.wrapping_sub(before.sequence))
                && before.payload_type == header.payload_type
        });
        if !follows {
            held.clear();
        }
        held.push((*header, arrival));
        if held.len() < PROBATION {
            return Vec::new();
        }
        self.candidates.remove(place).held
    }
}
