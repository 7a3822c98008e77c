//! Every message that can be built is read back as it was written. The messages are built from bytes that proptest
//! chooses and shrinks.

use arbitrary::{Arbitrary, Unstructured};
use proptest::prelude::*;
use proptest::strategy::ValueTree;

use crate::oxm::{FieldId, FieldMatch, Match, UnknownField};
use crate::{nicira, v10, v13, MAXIMUM_MESSAGE_BYTES};

fn built<T: for<'a> Arbitrary<'a>>(bytes: &[u8]) -> T {
    Unstructured::new(bytes).arbitrary().expect("an exhausted source gives zeros")
}

/// Bytes to build a message from: most builds take the first for the kind.
fn seed() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..1500)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn messages_of_1_3_come_back(seed in seed(), xid: u32) {
        let message: v13::Message = built(&seed);
        let mut out = vec![1, 2, 3];
        message.encode(xid, &mut out).expect("short enough");
        prop_assert!(out.len() - 3 <= MAXIMUM_MESSAGE_BYTES);
        let (header, back) = v13::Message::decode(&out[3..]).expect("what was written");
        let mut again = Vec::new();
        back.encode(xid, &mut again).expect("as short");
        prop_assert_eq!(&again[..], &out[3..]);
        prop_assert_eq!((header.version, header.xid, back), (4, xid, message));
    }

    #[test]
    fn messages_of_1_0_come_back(seed in seed(), xid: u32) {
        let message: v10::Message = built(&seed);
        let mut out = Vec::new();
        message.encode(xid, &mut out).expect("short enough");
        let (header, back) = v10::Message::decode(&out).expect("what was written");
        let mut again = Vec::new();
        back.encode(xid, &mut again).expect("as short");
        prop_assert_eq!(again, out);
        prop_assert_eq!((header.version, header.xid, back), (1, xid, message));
    }

    #[test]
    fn actions_of_nicira_come_back_in_both_versions(seed in seed()) {
        let action: nicira::Action = built(&seed);
        let in_1_3 = v13::Action::Nicira(Box::new(action.clone()));
        let in_1_0 = v10::Action::Nicira(Box::new(action));
        let message = v13::Message::PacketOut(v13::PacketOut {
            buffer_id: crate::NO_BUFFER, in_port: 1, actions: vec![in_1_3], data: Vec::new(),
        });
        let mut out = Vec::new();
        message.encode(0, &mut out).expect("short enough");
        prop_assert_eq!(v13::Message::decode(&out).map(|(_, back)| back), Ok(message));
        let message = v10::Message::PacketOut(v10::PacketOut {
            buffer_id: crate::NO_BUFFER, in_port: 1, actions: vec![in_1_0], data: Vec::new(),
        });
        out.clear();
        message.encode(0, &mut out).expect("short enough");
        prop_assert_eq!(v10::Message::decode(&out).map(|(_, back)| back), Ok(message));
    }

    #[test]
    fn messages_of_nicira_come_back_in_both_versions(seed in seed()) {
        let message: nicira::Message = built(&seed);
        prop_assert_eq!(&nicira::Message::decode(&message.to_vendor().data), &Ok(message.clone()));
        prop_assert_eq!(nicira::Message::decode_experimenter(&message.to_experimenter()), Ok(message));
    }

    #[test]
    fn statistics_of_nicira_come_back(seed in seed()) {
        let request: nicira::StatsRequest = built(&seed);
        prop_assert_eq!(nicira::StatsRequest::decode(&request.encode()), Ok(request));
        let reply: nicira::StatsReply = built(&seed);
        prop_assert_eq!(nicira::StatsReply::decode(&reply.encode()), Ok(reply));
    }

    #[test]
    fn unknown_fields_come_back_to_a_controller(payload in prop::collection::vec(any::<u8>(), 0..64),
        number in 40_u32..128) {
        let id = FieldId(0x8000_0000 | number << 9 | payload.len() as u32);
        let message = v13::Message::PacketIn(v13::PacketIn {
            buffer_id: 0, total_len: 0, reason: v13::PacketInReason::Action, table_id: 0, cookie: 0, data: vec![1],
            matching: Match { fields: Vec::new(), unknown: vec![UnknownField { id, payload }] },
        });
        let mut out = Vec::new();
        message.encode(0, &mut out).expect("short enough");
        prop_assert_eq!(v13::Message::decode(&out).map(|(_, back)| back), Ok(message));
    }
}

#[test]
fn a_message_that_is_too_long_leaves_the_output_as_it_was() {
    let mut out = vec![7];
    let message = v13::Message::EchoRequest(vec![0; MAXIMUM_MESSAGE_BYTES - 7]);
    assert_eq!(message.encode(0, &mut out), Err(crate::TooLong { bytes: MAXIMUM_MESSAGE_BYTES + 1 }));
    assert_eq!(out, [7]);
}

#[test]
fn the_seeds_build_every_kind_of_message() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut kinds = (std::collections::BTreeSet::new(), std::collections::BTreeSet::new());
    for _ in 0..2000 {
        let seed = seed().new_tree(&mut runner).expect("a seed").current();
        kinds.0.insert(built::<v10::Message>(&seed).kind());
        kinds.1.insert(built::<v13::Message>(&seed).kind());
    }
    assert_eq!(kinds, ((0..22).collect(), (0..30).collect()));
}

/// The memory that a message takes is bounded by its bytes: every element of a list takes at most sixteen times the
/// bytes that it has at least on the wire, and a growing list at most twice the room of its elements.
#[test]
fn no_list_takes_much_more_room_than_its_bytes() {
    fn check<T>(least_bytes: usize) {
        let room = size_of::<T>();
        assert!(room <= 16 * least_bytes, "{}: {room} for {least_bytes}", std::any::type_name::<T>());
    }
    check::<FieldMatch>(5);
    check::<UnknownField>(4);
    check::<v13::Action>(8);
    check::<v13::Instruction>(8);
    check::<v13::Bucket>(16);
    check::<v13::MeterBand>(12);
    check::<v13::QueueProperty>(8);
    check::<v13::PacketQueue>(16);
    check::<v13::HelloElement>(4);
    check::<v13::multipart::FlowStats>(56);
    check::<v13::multipart::TableFeatures>(64);
    check::<v13::multipart::TableProperty>(4);
    check::<v13::multipart::TypeId>(4);
    check::<v13::multipart::FieldListing>(4);
    check::<v10::Action>(8);
    check::<v10::statistics::FlowStats>(88);
    check::<nicira::Action>(16);
    check::<nicira::Learn>(32);
    check::<nicira::LearnSpec>(4);
    check::<nicira::FlowStats>(48);
}
