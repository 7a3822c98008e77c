//! One controller as the agent sees it: what was agreed with it, and what waits for it.

use twinnet_openflow::v13::{self, AsyncConfig, ErrorKind, Hello, HelloFailed, ReasonMasks, Role};
use twinnet_openflow::{v10, Fault, Framer};
use twinnet_units::{Duration, Time};

use super::log::Log;
use super::{ConnectionState, Peer, PROBE_INTERVAL};

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) peer: Peer,
    pub(super) framer: Framer,
    /// The version that was agreed on; 0 until then.
    pub(super) version: u8,
    /// The versions that both hellos offered, in words; empty until the peer's came.
    offers: String,
    /// The peer has said more than its hello, in the version that was agreed on. A controller that knows none of the
    /// offered versions ends the connection instead of asking for the switch's features (OpenFlow 1.3, 6.3.1).
    pub(super) confirmed: bool,
    pub(super) role: Role,
    pub(super) told: AsyncConfig,
    pub(super) out: Vec<u8>,
    /// Why the connection is to be closed.
    pub(super) ending: Option<String>,
    pub(super) heard: Time,
    pub(super) probed: bool,
    pub(super) log: Log,
    pub(super) messages: u64,
    pub(super) packet_ins: u64,
    pub(super) errors: u64,
    /// Bytes that were taken to be sent and are not yet.
    pub(super) backlog: usize,
    /// Nicira's switches: the table in the command of a flow-mod, flows with extensible matches, packet-ins likewise.
    pub(super) table_in_command: bool,
    pub(super) extensible_flows: bool,
    pub(super) extensible_packet_ins: bool,
    /// Its number: it gets what flows send to the controllers of this number.
    pub(super) controller: u16,
    /// Parts of a question about table features.
    pub(super) features_so_far: Vec<v13::multipart::TableFeatures>,
    xid: u32,
}

/// OpenFlow 1.3 leaves the defaults open: as in Open vSwitch, slaves hear of ports only, and invalid times to live
/// are asked for.
fn default_told(peer: Peer) -> AsyncConfig {
    let all = if peer == Peer::Controller { u32::MAX } else { 0 };
    AsyncConfig {
        packet_in: ReasonMasks { master: all & 0b11, slave: 0 },
        port_status: ReasonMasks { master: all & 0b111, slave: all & 0b111 },
        flow_removed: ReasonMasks { master: all & 0b1111, slave: 0 },
    }
}

impl Connection {
    pub(super) fn new(peer: Peer, now: Time) -> Self {
        Self {
            peer,
            framer: Framer::new(),
            version: 0,
            offers: String::new(),
            confirmed: false,
            role: Role::Equal,
            told: default_told(peer),
            out: Vec::new(),
            ending: None,
            heard: now,
            probed: false,
            log: Log::default(),
            messages: 0,
            packet_ins: 0,
            errors: 0,
            backlog: 0,
            table_in_command: false,
            extensible_flows: false,
            extensible_packet_ins: false,
            controller: 0,
            features_so_far: Vec::new(),
            xid: 0,
        }
    }

    /// A transaction of the switch's own.
    pub(super) fn next_xid(&mut self) -> u32 {
        self.xid = self.xid.wrapping_add(1);
        self.xid
    }

    /// From now on the tool is told what a controller is told.
    pub(super) fn tell_all(&mut self) {
        if self.peer == Peer::Tool {
            self.told = default_told(Peer::Controller);
        }
    }

    pub(super) fn greet(&mut self, versions: &[u8]) {
        let xid = self.next_xid();
        if versions.contains(&v13::VERSION) {
            self.send_v13(xid, &v13::Message::Hello(Hello::offering(versions)));
        } else {
            self.send_v10(xid, &v10::Message::Hello(Vec::new()));
        }
    }

    pub(super) fn send_v13(&mut self, xid: u32, message: &v13::Message) -> bool {
        message.encode(xid, &mut self.out).is_ok()
    }

    pub(super) fn send_v10(&mut self, xid: u32, message: &v10::Message) -> bool {
        message.encode(xid, &mut self.out).is_ok()
    }

    /// Version negotiation (OpenFlow 1.3, 6.3.1): the highest that both bitmaps have, or else the smaller of both
    /// versions.
    pub(super) fn agree(&mut self, message: &[u8], versions: &[u8]) {
        let hello = match v13::Message::decode(message) {
            Ok((header, v13::Message::Hello(hello))) => Some((header, hello)),
            _ => None,
        };
        let Some((header, hello)) = hello else {
            self.ending = Some("the first message is no hello".to_owned());
            return;
        };
        self.offers =
            format!("this switch speaks {}, the controller {}", named(versions), offered(&hello, header.version));
        let highest = versions.iter().copied().filter(|version| hello.speaks(header.version, *version)).max();
        if let Some(version) = highest {
            self.version = version;
            self.framer.agree(version);
            return;
        }
        let kind = ErrorKind::HelloFailed(HelloFailed::Incompatible);
        let text = format!("no OpenFlow version in common: {}", self.offers);
        let error = v13::Error { kind, data: text.clone().into_bytes() };
        let start = self.out.len();
        self.send_v13(header.xid, &v13::Message::Error(error));
        // In the smaller of both versions, so that the other side can read it.
        if let Some(version) = self.out.get_mut(start) {
            *version = header.version.min(v13::VERSION);
        }
        self.ending = Some(text);
    }

    /// Why the peer may have ended the connection, if it did so before it confirmed the version.
    pub(super) fn misunderstanding(&self) -> Option<String> {
        (!self.confirmed && !self.offers.is_empty())
            .then(|| format!("the controller closed it after the hellos: {}", self.offers))
    }

    /// A message of another version than the one that was agreed on.
    pub(super) fn refuse_version(&mut self, xid: u32) {
        self.refuse(xid, Fault::BAD_VERSION.into(), &[]);
    }

    /// Answers `request` with an error.
    pub(super) fn refuse(&mut self, xid: u32, kind: ErrorKind, request: &[u8]) {
        self.errors += 1;
        if self.version == v10::VERSION {
            let kind = v10::ErrorKind::from(in_v10(kind.fault()));
            self.send_v10(xid, &v10::Message::Error(v10::Error::answering(kind, request)));
        } else {
            self.send_v13(xid, &v13::Message::Error(v13::Error::answering(kind, request)));
        }
    }

    pub(super) fn patience(&self) -> Duration {
        if self.probed {
            PROBE_INTERVAL + PROBE_INTERVAL
        } else {
            PROBE_INTERVAL
        }
    }

    pub(super) fn tick(&mut self, now: Time) {
        let silence = now.since(self.heard);
        if silence < self.patience() {
            return;
        }
        if self.probed || self.version == 0 {
            self.ending = Some("it did not answer for 10 s".to_owned());
            self.probed = true;
            return;
        }
        self.probed = true;
        let xid = self.next_xid();
        if self.version == v10::VERSION {
            self.send_v10(xid, &v10::Message::EchoRequest(Vec::new()));
        } else {
            self.send_v13(xid, &v13::Message::EchoRequest(Vec::new()));
        }
    }

    /// The masks that go for its role.
    pub(super) fn mask_of(&self, masks: &ReasonMasks) -> u32 {
        if self.role == Role::Slave {
            masks.slave
        } else {
            masks.master
        }
    }

    pub(super) fn wants_invalid_ttl(&self) -> bool {
        self.mask_of(&self.told.packet_in) & 0b100 != 0
    }

    pub(super) fn state(&self, connection: u64) -> ConnectionState {
        let version = match self.version {
            v10::VERSION if self.confirmed => Some("1.0"),
            v13::VERSION if self.confirmed => Some("1.3"),
            _ => None,
        };
        let role = match self.role {
            Role::Master => "master",
            Role::Slave => "slave",
            _ => "equal",
        };
        let Self { messages, packet_ins, errors, .. } = *self;
        ConnectionState { connection, version, role, messages, packet_ins, errors }
    }
}

/// Wire versions by the names of their specifications, such as "1.0 and 1.3".
fn named(versions: &[u8]) -> String {
    let names: Vec<_> = versions
        .iter()
        .map(|version| match version {
            1..=6 => format!("1.{}", version - 1),
            other => format!("wire version {other}"),
        })
        .collect();
    names.join(" and ")
}

/// What a hello offers, in words: by its bitmap, or else all up to the version of its header.
fn offered(hello: &Hello, version: u8) -> String {
    if hello.elements.iter().any(|element| matches!(element, v13::HelloElement::Versions(_))) {
        let spoken: Vec<u8> = (1..32).filter(|asked| hello.speaks(version, *asked)).collect();
        return if spoken.is_empty() { "none".to_owned() } else { named(&spoken) };
    }
    format!("up to {}", named(&[version]))
}

/// A fault of OpenFlow 1.3 as one of 1.0.
fn in_v10(fault: Fault) -> Fault {
    let (error_type, code) = match (fault.error_type, fault.code) {
        (5, 1) => (3, 0),
        (5, 3) => (3, 1),
        (5, 4) => (3, 2),
        (5, 6) => (3, 4),
        // Matches and instructions that 1.0 knows nothing of, and tables.
        (3..=6 | 12, _) | (1, 9) => (3, 5),
        (7, code) => (4, code.min(1)),
        (9, code) => (5, code),
        (10 | 11 | 13, _) => (1, 5),
        other => other,
    };
    Fault { error_type, code }
}
