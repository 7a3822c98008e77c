//! Messages between a prober and a listener. Big endian; the prober speaks first, always.
//!
//! ```text
//!  0              6          7      8             16          20         22
//! +--------------+----------+------+-------------+-----------+----------+----------
//! | "twinbw"     | 1        | kind | cookie      | train     | place    | ...
//! +--------------+----------+------+-------------+-----------+----------+----------
//! ```
//!
//! - *Hello*: the cookie is a number that the prober chose. 40 bytes. The listener answers with a *Welcome* of as many
//!   bytes,
//!   that repeats the number and gives the real cookie. The cookie depends on the prober's address, so only one who
//!   receives at the address that it sends from learns it; without it the listener answers nothing else.
//! - *Probe*: one packet of a train; the place of it. Any length from 22 bytes on. Never answered.
//! - *Ask*: asks for the stamps of a train from a place on, and is as long as the longest answer that it may get.
//! - *Stamps*: the arrivals of up to 20 packets from a place on. Never longer than what asked for it, and no longer
//!   than the 128 bytes of a datagram that every host looks at.
//!
//! So a listener sends to nobody more than it received from there, and nothing to those who did not receive its
//! welcome.

/// Begins every message; the last byte is the version.
const MAGIC: [u8; 7] = *b"twinbw\x01";
/// Bytes of a probe's header.
pub const PROBE_LENGTH: usize = 22;
/// Bytes of a hello, and of the welcome.
pub const HELLO_LENGTH: usize = 40;
/// Stamps in one message at most.
pub const MOST_STAMPS: usize = 20;
/// Bytes of a message with stamps before them.
const STAMPS_HEADER: usize = 48;
/// Bytes of the longest message with stamps, and of one that asks for them.
pub const ASK_LENGTH: usize = STAMPS_HEADER + 4 * MOST_STAMPS;
/// The mark of a packet that did not arrive.
const LOST: u32 = u32::MAX;
/// The latest time that a stamp tells, in nanoseconds: 146 years, so that sums of a few never overflow.
const LATEST_NS: u64 = 1 << 62;

/// The contents of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// A prober introduces itself with a number of its own.
    Hello {
        /// Repeated by the answer.
        nonce: u64,
    },
    /// The listener's answer.
    Welcome {
        /// The prober's number.
        nonce: u64,
        /// To be told in all that follows.
        cookie: u64,
        /// The rate that the listener lets probers send at, in bit/s.
        most_rate_bps: u64,
    },
    /// One packet of a train.
    Probe {
        /// The listener's.
        cookie: u64,
        /// Number of the train.
        train: u32,
        /// Its place in the train.
        place: u16,
    },
    /// Asks for stamps.
    Ask {
        /// The listener's.
        cookie: u64,
        /// Number of the train.
        train: u32,
        /// The first place.
        place: u16,
    },
    /// Stamps.
    Stamps(Stamps),
}

/// The times when packets of a train arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stamps {
    /// The listener's cookie.
    pub cookie: u64,
    /// Number of the train.
    pub train: u32,
    /// Place of the first packet told of.
    pub place: u16,
    /// Datagrams that the listener's host threw away.
    pub overflowed: u32,
    /// `true` if the listener's clock was set.
    pub clock_stepped: bool,
    /// The time when each arrived, in nanoseconds of the listener's clock; `None` for those that did not.
    pub arrived_ns: Vec<Option<u64>>,
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

impl Message {
    /// Reads a message; `None` when it is none, or is too short to be answered. `length` is that of the whole
    /// datagram, of which `bytes` may be the first.
    #[must_use]
    pub fn parse(bytes: &[u8], length: usize) -> Option<Self> {
        if bytes.get(..7)? != MAGIC {
            return None;
        }
        let kind = *bytes.get(7)?;
        let cookie = u64::from_be_bytes(number(bytes, 8)?);
        let train = || Some(u32::from_be_bytes(number(bytes, 16)?));
        let place = || Some(u16::from_be_bytes(number(bytes, 20)?));
        Some(match kind {
            1 if length >= HELLO_LENGTH => Self::Hello { nonce: cookie },
            2 => Self::Welcome {
                nonce: cookie,
                cookie: u64::from_be_bytes(number(bytes, 16)?),
                most_rate_bps: u64::from_be_bytes(number(bytes, 24)?),
            },
            3 => Self::Probe { cookie, train: train()?, place: place()? },
            4 if length >= ASK_LENGTH => Self::Ask { cookie, train: train()?, place: place()? },
            5 => Self::Stamps(Self::stamps(bytes, cookie, train()?, place()?)?),
            _ => return None,
        })
    }

    fn stamps(bytes: &[u8], cookie: u64, train: u32, place: u16) -> Option<Stamps> {
        let count = usize::from(u16::from_be_bytes(number(bytes, 22)?));
        let overflowed = u32::from_be_bytes(number(bytes, 24)?);
        let [flags, shift] = number(bytes, 28)?;
        let base = u64::from_be_bytes(number(bytes, 32)?);
        if count > MOST_STAMPS || flags > 1 || shift > 24 || base > LATEST_NS {
            return None;
        }
        let stamp = |index: usize| {
            let stamp = u32::from_be_bytes(number(bytes, STAMPS_HEADER + 4 * index)?);
            let arrived = (stamp != LOST).then(|| base + (u64::from(stamp) << shift));
            arrived.is_none_or(|arrived| arrived <= LATEST_NS).then_some(arrived)
        };
        let arrived_ns = (0..count).map(stamp).collect::<Option<Vec<_>>>()?;
        Some(Stamps { cookie, train, place, overflowed, clock_stepped: flags == 1, arrived_ns })
    }

    /// The message as bytes; a probe's and an ask's are padded by who sends them.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let begin = |bytes: &mut Vec<u8>, kind: u8, cookie: u64| {
            bytes.push(kind);
            bytes.extend(cookie.to_be_bytes());
        };
        match self {
            Self::Hello { nonce } => {
                begin(&mut bytes, 1, *nonce);
                bytes.resize(HELLO_LENGTH, 0);
            }
            Self::Welcome { nonce, cookie, most_rate_bps } => {
                begin(&mut bytes, 2, *nonce);
                bytes.extend(cookie.to_be_bytes());
                bytes.extend(most_rate_bps.to_be_bytes());
                bytes.resize(HELLO_LENGTH, 0);
            }
            Self::Probe { cookie, train, place } => {
                begin(&mut bytes, 3, *cookie);
                bytes.extend(train.to_be_bytes());
                bytes.extend(place.to_be_bytes());
            }
            Self::Ask { cookie, train, place } => {
                begin(&mut bytes, 4, *cookie);
                bytes.extend(train.to_be_bytes());
                bytes.extend(place.to_be_bytes());
                bytes.resize(ASK_LENGTH, 0);
            }
            Self::Stamps(stamps) => {
                begin(&mut bytes, 5, stamps.cookie);
                stamps.emit(&mut bytes);
            }
        }
        bytes
    }
}

impl Stamps {
    /// Stamps are told as distances from the earliest, in units of a power of two of nanoseconds that fits them.
    #[allow(clippy::cast_possible_truncation)]
    fn emit(&self, bytes: &mut Vec<u8>) {
        let told = &self.arrived_ns[..self.arrived_ns.len().min(MOST_STAMPS)];
        let base = told.iter().flatten().min().copied().unwrap_or(0);
        let longest = told.iter().flatten().max().map_or(0, |latest| latest - base);
        let shift = (0..24_u8).find(|shift| longest >> shift < u64::from(LOST)).unwrap_or(24);
        bytes.extend(self.train.to_be_bytes());
        bytes.extend(self.place.to_be_bytes());
        bytes.extend((told.len() as u16).to_be_bytes());
        bytes.extend(self.overflowed.to_be_bytes());
        bytes.extend([u8::from(self.clock_stepped), shift, 0, 0]);
        bytes.extend(base.to_be_bytes());
        bytes.resize(STAMPS_HEADER, 0);
        for arrived in told {
            let stamp = arrived.map_or(LOST, |arrived| ((arrived - base) >> shift).min(u64::from(LOST) - 1) as u32);
            bytes.extend(stamp.to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(message: &Message) -> Option<Message> {
        let bytes = message.emit();
        Message::parse(&bytes, bytes.len())
    }

    #[test]
    fn every_message_is_read_back() {
        let stamps = Stamps {
            cookie: 9,
            train: 3,
            place: 20,
            overflowed: 2,
            clock_stepped: true,
            arrived_ns: vec![Some(5_000_000_000), None, Some(5_000_000_100)],
        };
        for message in [
            Message::Hello { nonce: 7 },
            Message::Welcome { nonce: 7, cookie: 8, most_rate_bps: 1_000_000_000 },
            Message::Probe { cookie: 8, train: 1, place: 2 },
            Message::Ask { cookie: 8, train: 1, place: 0 },
            Message::Stamps(stamps),
        ] {
            assert_eq!(read(&message), Some(message));
        }
    }

    #[test]
    fn a_long_train_is_told_in_coarser_units_and_stays_in_order() {
        let arrived: Vec<Option<u64>> = (0..100).map(|place| Some(1_000 + place * 200_000_000)).collect();
        let stamps = Stamps { arrived_ns: arrived.clone(), ..Stamps::default() };
        let Some(Message::Stamps(told)) = read(&Message::Stamps(stamps)) else { panic!("no stamps") };
        for (true_time, told) in arrived.iter().zip(&told.arrived_ns) {
            // 20 s in 2^32 - 2 steps: at most 8 ns each.
            assert!(true_time.unwrap() - told.unwrap() < 8, "{true_time:?} was told as {told:?}");
        }
    }

    #[test]
    fn no_stamp_is_later_than_the_latest_that_can_be_told_again() {
        let latest = |arrived| Message::Stamps(Stamps { arrived_ns: vec![Some(arrived)], ..Stamps::default() });
        assert_eq!(read(&latest(LATEST_NS)), Some(latest(LATEST_NS)));
        let mut bytes = latest(LATEST_NS).emit();
        *bytes.last_mut().unwrap() = 1;
        assert_eq!(Message::parse(&bytes, bytes.len()), None);
    }

    #[test]
    fn what_asks_is_never_shorter_than_what_answers() {
        let all = Stamps { arrived_ns: vec![Some(1); MOST_STAMPS + 50], ..Stamps::default() };
        let ask = Message::Ask { cookie: 1, train: 1, place: 0 }.emit();
        assert_eq!(Message::Stamps(all).emit().len(), ask.len());
        assert_eq!(Message::parse(&ask[..ask.len() - 1], ask.len() - 1), None);
        let hello = Message::Hello { nonce: 1 }.emit();
        assert_eq!(Message::Welcome { nonce: 1, cookie: 1, most_rate_bps: 1 }.emit().len(), hello.len());
        assert_eq!(Message::parse(&hello[..39], 39), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..700), kind in 0_u8..8) {
            let mut ours = bytes;
            if ours.len() >= 8 {
                ours[..7].copy_from_slice(&MAGIC);
                ours[7] = kind;
            }
            if let Some(Message::Stamps(stamps)) = Message::parse(&ours, ours.len()) {
                prop_assert!(stamps.arrived_ns.len() <= MOST_STAMPS);
            }
        }
    }
}
