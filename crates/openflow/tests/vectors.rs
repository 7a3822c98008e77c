//! Messages as another implementation writes them: os-ken 4.2, and Open vSwitch in os-ken's own captures.
//! `vectors/generate.py` says how the file came about.

use std::collections::BTreeSet;

use twinnet_openflow::nicira::{self, NICIRA};
use twinnet_openflow::v10::Statistics;
use twinnet_openflow::{v10, v13, DecodeError, Fault};

const VECTORS: &str = include_str!("vectors/os-ken.txt");

/// A message with an unknown field between known ones, which is written last.
const REORDERED: &str = "4-59-ofp_packet_in";

/// Messages that a switch refuses, with the error's type and code: a field of an experimenter to set
/// (`OFPBAC_BAD_SET_TYPE`) or to match, and the state of connection tracking to match (`OFPBMC_BAD_FIELD`).
const REFUSED: [(&str, u16, u16); 6] = [
    ("4-12-ofp_flow_stats_reply", 2, 13),
    ("4-2-ofp_flow_mod", 2, 13),
    ("4-60-ofp_flow_mod", 4, 6),
    ("ovs-ofctl-of13-action_ct", 4, 6),
    ("ovs-ofctl-of13-action_ct_clear", 4, 6),
    ("ovs-ofctl-of13-action_ct_exec", 4, 6),
];

struct Vector {
    version: &'static str,
    name: &'static str,
    bytes: Vec<u8>,
}

fn vectors() -> Vec<Vector> {
    let vectors: Vec<Vector> = VECTORS.lines().map(vector).collect();
    assert!(vectors.len() > 200);
    vectors
}

fn vector(line: &'static str) -> Vector {
    let [version, name, hex] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("three words in {line}") };
    let digit = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal digits");
    Vector { version, name, bytes: (0..hex.len()).step_by(2).map(digit).collect() }
}

/// Decodes and encodes again: the kind of the message, and the bytes.
fn there_and_back(vector: &Vector) -> Result<(u8, Vec<u8>), DecodeError> {
    let mut out = Vec::new();
    let kind = if vector.version == "1.0" {
        let (header, message) = v10::Message::decode(&vector.bytes)?;
        message.encode(header.xid, &mut out).expect("as long as it was");
        message.kind()
    } else {
        let (header, message) = v13::Message::decode(&vector.bytes)?;
        message.encode(header.xid, &mut out).expect("as long as it was");
        message.kind()
    };
    Ok((kind, out))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn every_message_is_written_back_byte_for_byte() {
    for vector in vectors() {
        let refused = REFUSED.iter().any(|(name, ..)| *name == vector.name);
        if refused || vector.name == REORDERED {
            continue;
        }
        let (_, out) = there_and_back(&vector).unwrap_or_else(|error| panic!("{}: {error}", vector.name));
        assert_eq!(hex(&out), hex(&vector.bytes), "OpenFlow {} {}", vector.version, vector.name);
    }
}

#[test]
fn what_a_switch_must_refuse_is_refused_with_its_code() {
    for (name, error_type, code) in REFUSED {
        let vector = vectors().into_iter().find(|vector| vector.name == name).expect("a vector of that name");
        let fault = there_and_back(&vector).map_err(|error| error.refusal.fault);
        assert_eq!(fault, Err(Fault { error_type, code }), "{name}");
    }
}

#[test]
fn unknown_fields_of_a_packet_in_are_kept_behind_the_known_ones() {
    let vector = vectors().into_iter().find(|vector| vector.name == REORDERED).expect("a vector of that name");
    let Ok((_, v13::Message::PacketIn(packet))) = v13::Message::decode(&vector.bytes) else { panic!("a packet-in") };
    assert_eq!((packet.matching.fields.len(), packet.matching.unknown.len()), (41, 1));
    let (_, out) = there_and_back(&vector).expect("a packet-in");
    assert_eq!(v13::Message::decode(&out).map(|(_, message)| message), Ok(v13::Message::PacketIn(packet)));
}

/// Nicira's messages are opaque to OpenFlow 1.0, so that they are read one layer deeper.
#[test]
fn the_messages_of_nicira_are_written_back_byte_for_byte() {
    let mut read = 0;
    for vector in vectors().iter().filter(|vector| vector.version == "1.0") {
        match v10::Message::decode(&vector.bytes) {
            Ok((_, v10::Message::Vendor(vendor))) => {
                let message =
                    nicira::Message::decode(&vendor.data).unwrap_or_else(|error| panic!("{}: {error}", vector.name));
                assert_eq!(message.to_vendor(), vendor, "{}", vector.name);
                read += 1;
            }
            Ok((_, v10::Message::StatsRequest(Statistics { body: v10::RequestBody::Vendor(vendor), .. })))
                if vendor.vendor == NICIRA =>
            {
                let request = nicira::StatsRequest::decode(&vendor.data)
                    .unwrap_or_else(|error| panic!("{}: {error}", vector.name));
                assert_eq!(request.encode(), vendor.data, "{}", vector.name);
                read += 1;
            }
            _ => {}
        }
    }
    assert_eq!(read, 10);
}

#[test]
fn every_action_of_nicira_that_has_a_name_here_is_read_as_such() {
    for vector in vectors().iter().filter(|vector| vector.version == "1.3" && vector.name.starts_with("nicira-")) {
        let Ok((_, v13::Message::PacketOut(packet))) = v13::Message::decode(&vector.bytes) else {
            panic!("{}", vector.name)
        };
        let named = matches!(packet.actions[..], [v13::Action::Nicira(_)]);
        assert_eq!(named, vector.name != "nicira-ct", "{}", vector.name);
    }
}

#[test]
fn every_kind_of_message_of_both_versions_is_among_them() {
    for (version, kinds) in [("1.0", 22), ("1.3", 30)] {
        let seen: BTreeSet<u8> = vectors()
            .iter()
            .filter(|vector| vector.version == version)
            .filter_map(|vector| there_and_back(vector).ok().map(|(kind, _)| kind))
            .collect();
        assert_eq!(seen, (0..kinds).collect(), "OpenFlow {version}");
    }
}
