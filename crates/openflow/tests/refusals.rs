//! Wrong messages, and the error that the specification names for each.

use twinnet_openflow::{v10, v13, Fault};

/// A message with its header: the length is filled in.
fn message(version: u8, kind: u8, body: &[u8]) -> Vec<u8> {
    let length = (8 + body.len()) as u16;
    let [high, low] = length.to_be_bytes();
    [&[version, kind, high, low, 0, 0, 0, 9][..], body].concat()
}

fn refused_by_1_3(bytes: &[u8]) -> v13::ErrorKind {
    let error = v13::Message::decode(bytes).expect_err("a message that is wrong");
    assert_eq!(error.xid, 9);
    error.refusal.fault.into()
}

fn refused_by_1_0(bytes: &[u8]) -> v10::ErrorKind {
    let error = v10::Message::decode(bytes).expect_err("a message that is wrong");
    assert_eq!(error.xid, 9);
    error.refusal.fault.into()
}

/// A flow-mod of 1.3: 40 bytes before the match, in which `command` and `flags` are set; then `rest`.
fn flow_mod(command: u8, flags: u8, rest: &[u8]) -> Vec<u8> {
    let mut body = vec![0; 40];
    (body[17], body[37]) = (command, flags);
    body.extend_from_slice(rest);
    message(4, 14, &body)
}

const ANY: [u8; 8] = [0, 1, 0, 4, 0, 0, 0, 0];

/// A flow-mod of 1.3 with one instruction to apply `actions`.
fn applying(actions: &[u8]) -> Vec<u8> {
    let length = (8 + actions.len()) as u8;
    flow_mod(0, 0, &[&ANY[..], &[0, 4, 0, length, 0, 0, 0, 0], actions].concat())
}

#[test]
fn requests_of_1_3() {
    use v13::{BadRequest::*, ErrorKind::*};
    let cases = [
        (message(3, 20, &[]), BadRequest(BadVersion)),
        (message(4, 30, &[]), BadRequest(BadType)),
        (message(4, 20, &[0]), BadRequest(BadLen)),
        (message(4, 9, &[0, 0, 0]), BadRequest(BadLen)),
        (message(4, 14, &[0; 39]), BadRequest(BadLen)),
        (message(4, 18, &[0, 14, 0, 0, 0, 0, 0, 0]), BadRequest(BadMultipart)),
        (message(4, 18, &[0, 4, 0, 0, 0, 0, 0, 0]), BadRequest(BadLen)),
        // A packet-out whose actions are longer than it is.
        (message(4, 13, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0]), BadRequest(BadLen)),
        // A bucket that claims less than it has to have.
        (message(4, 15, &[0, 0, 0, 0, 0, 0, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0]), BadRequest(BadLen)),
    ];
    for (bytes, expected) in cases {
        assert_eq!(refused_by_1_3(&bytes), expected, "{bytes:02x?}");
    }
}

#[test]
fn a_header_whose_length_is_not_the_messages_is_a_bad_length() {
    for length in [7, 9, 255] {
        let bytes = [4, 20, 0, length, 0, 0, 0, 9];
        assert_eq!(refused_by_1_3(&bytes), v13::ErrorKind::BadRequest(v13::BadRequest::BadLen));
    }
    let error = v13::Message::decode(&[4, 20, 0]).expect_err("half a header");
    assert_eq!((error.version, error.xid, error.refusal.fault), (4, 0, Fault::BAD_LENGTH));
}

#[test]
fn flow_mods_of_1_3() {
    use v13::ErrorKind::*;
    let instruction = |bytes: &[u8]| flow_mod(0, 0, &[&ANY[..], bytes].concat());
    let cases = [
        (flow_mod(5, 0, &ANY), FlowModFailed(v13::FlowModFailed::BadCommand)),
        (flow_mod(0, 0x20, &ANY), FlowModFailed(v13::FlowModFailed::BadFlags)),
        (flow_mod(0, 0, &[0, 0, 0, 4, 0, 0, 0, 0]), BadMatch(v13::BadMatch::BadType)),
        (flow_mod(0, 0, &[0, 1, 0, 40, 0, 0, 0, 0]), BadMatch(v13::BadMatch::BadLen)),
        (instruction(&[0, 7, 0, 8, 0, 0, 0, 0]), BadInstruction(v13::BadInstruction::UnknownInst)),
        (instruction(&[0, 1, 0, 4, 0, 0, 0, 0]), BadInstruction(v13::BadInstruction::BadLen)),
        (instruction(&[0, 1, 0, 16, 0, 0, 0, 0]), BadInstruction(v13::BadInstruction::BadLen)),
        (instruction(&[0, 1, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), BadInstruction(v13::BadInstruction::BadLen)),
    ];
    for (bytes, expected) in cases {
        assert_eq!(refused_by_1_3(&bytes), expected, "{bytes:02x?}");
    }
}

#[test]
fn matches_of_1_3() {
    use v13::{BadMatch::*, ErrorKind::*};
    let cases: [(&[u8], v13::BadMatch); 4] = [
        // OXM_OF_TCP_DST without anything.
        (&[0, 1, 0, 10, 0x80, 0, 0x1c, 2, 0, 80, 0, 0, 0, 0, 0, 0], BadPrereq),
        // OXM_OF_IN_PORT twice.
        (&[0, 1, 0, 20, 0x80, 0, 0, 4, 0, 0, 0, 1, 0x80, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0], DupField),
        // Field 40 of the basic class, and class 0x7000.
        (&[0, 1, 0, 9, 0x80, 0, 0x50, 1, 0, 0, 0, 0, 0, 0, 0, 0], BadField),
        (&[0, 1, 0, 9, 0x70, 0, 0x00, 1, 0, 0, 0, 0, 0, 0, 0, 0], BadField),
    ];
    for (bytes, expected) in cases {
        assert_eq!(refused_by_1_3(&flow_mod(0, 0, bytes)), BadMatch(expected), "{bytes:02x?}");
        let flow_stats = message(4, 18, &[&[0, 1, 0, 0, 0, 0, 0, 0][..], &[0; 32], bytes].concat());
        assert_eq!(refused_by_1_3(&flow_stats), BadMatch(expected), "{bytes:02x?} in a question");
    }
}

#[test]
fn actions_of_1_3() {
    use v13::{BadAction::*, ErrorKind::*};
    let cases: [(&[u8], v13::BadAction); 9] = [
        (&[0, 1, 0, 8, 0, 0, 0, 0], BadType),
        (&[0, 18, 0, 0, 0, 0, 0, 0], BadLen),
        (&[0, 18, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], BadLen),
        (&[0, 18, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], BadLen),
        (&[0, 18, 0, 24, 0, 0, 0, 0], BadLen),
        // Set-field of the port, of a masked address, of a DSCP in two bytes, of a DSCP of seven bits.
        (&[0, 25, 0, 16, 0x80, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0], BadSetType),
        (&[0, 25, 0, 16, 0x80, 0, 0x19, 8, 0, 0, 0, 1, 0, 0, 0, 0], BadSetType),
        (&[0, 25, 0, 16, 0x80, 0, 0x10, 2, 0, 0, 0, 0, 0, 0, 0, 0], BadSetLen),
        (&[0, 25, 0, 16, 0x80, 0, 0x10, 1, 64, 0, 0, 0, 0, 0, 0, 0], BadSetArgument),
    ];
    for (bytes, expected) in cases {
        assert_eq!(refused_by_1_3(&applying(bytes)), BadAction(expected), "{bytes:02x?}");
    }
}

#[test]
fn changes_of_groups_meters_roles_and_tables_of_1_3() {
    use v13::ErrorKind::*;
    let features = |property: &[u8]| {
        let length = (64 + property.len()) as u8;
        message(4, 18, &[&[0, 12, 0, 0, 0, 0, 0, 0, 0, length][..], &[0; 62], property].concat())
    };
    let meter = |command: u8, flags: u8, bands: &[u8]| {
        message(4, 29, &[&[0, command, 0, flags, 0, 0, 0, 1][..], bands].concat())
    };
    let cases = [
        (message(4, 15, &[0, 3, 0, 0, 0, 0, 0, 1]), GroupModFailed(v13::GroupModFailed::BadCommand)),
        (message(4, 15, &[0, 0, 4, 0, 0, 0, 0, 1]), GroupModFailed(v13::GroupModFailed::BadType)),
        (meter(3, 1, &[]), MeterModFailed(v13::MeterModFailed::BadCommand)),
        (meter(0, 16, &[]), MeterModFailed(v13::MeterModFailed::BadFlags)),
        (meter(0, 1, &[0, 3, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), MeterModFailed(v13::MeterModFailed::BadBand)),
        (
            message(4, 24, &[0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
            RoleRequestFailed(v13::RoleRequestFailed::BadRole),
        ),
        (message(4, 9, &[0, 3, 0, 0]), SwitchConfigFailed(v13::SwitchConfigFailed::BadFlags)),
        (features(&[0, 9, 0, 4, 0, 0, 0, 0]), TableFeaturesFailed(v13::TableFeaturesFailed::BadType)),
        (features(&[0, 0, 0, 3, 0, 0, 0, 0]), TableFeaturesFailed(v13::TableFeaturesFailed::BadLen)),
        (features(&[0, 0, 0, 8, 0, 1, 0, 5]), TableFeaturesFailed(v13::TableFeaturesFailed::BadLen)),
    ];
    for (bytes, expected) in cases {
        assert_eq!(refused_by_1_3(&bytes), expected, "{bytes:02x?}");
    }
}

#[test]
fn messages_of_1_0() {
    use v10::ErrorKind::*;
    let flow_mod = |command: u8, actions: &[u8]| {
        let mut body = vec![0; 64];
        body[49] = command;
        body.extend_from_slice(actions);
        message(1, 14, &body)
    };
    let cases = [
        (message(4, 18, &[]), BadRequest(v10::BadRequest::BadVersion)),
        (message(1, 22, &[]), BadRequest(v10::BadRequest::BadType)),
        (message(1, 18, &[0]), BadRequest(v10::BadRequest::BadLen)),
        (message(1, 16, &[0, 6, 0, 0]), BadRequest(v10::BadRequest::BadStat)),
        (flow_mod(5, &[]), FlowModFailed(v10::FlowModFailed::BadCommand)),
        (flow_mod(0, &[0, 12, 0, 8, 0, 0, 0, 0]), BadAction(v10::BadAction::BadType)),
        (flow_mod(0, &[0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), BadAction(v10::BadAction::BadLen)),
        (flow_mod(0, &[0, 11, 0, 8, 0, 0, 0, 0]), BadAction(v10::BadAction::BadLen)),
    ];
    for (bytes, expected) in cases {
        assert_eq!(refused_by_1_0(&bytes), expected, "{bytes:02x?}");
    }
}

#[test]
fn a_refusal_says_what_was_given_and_what_is_allowed() {
    let error = v13::Message::decode(&flow_mod(5, 0, &ANY)).expect_err("a command that there is not");
    let text = "the flow-mod command is 5; allowed is 0 to 4 (answered with error type 5, code 6, for transaction 9)";
    assert_eq!(error.to_string(), text);
    assert_eq!(v13::ErrorKind::from(error.refusal.fault).name(), Some("OFPFMFC_BAD_COMMAND"));
}

#[test]
fn the_answer_quotes_the_first_64_bytes_of_the_request() {
    let request = message(4, 30, &[7; 100]);
    let error = v13::Message::decode(&request).expect_err("a type that there is not");
    let answer = v13::Message::Error(v13::Error::refusing(&error, &request));
    let mut out = Vec::new();
    answer.encode(error.xid, &mut out).expect("short enough");
    assert_eq!(out, [&[4, 1, 0, 76, 0, 0, 0, 9, 0, 1, 0, 1][..], &request[..64]].concat());
}

#[test]
fn a_hello_of_any_version_and_content_is_taken() {
    let (header, hello) = v13::Message::decode(&message(6, 0, &[0, 1, 0, 8, 0, 0, 0, 0x12])).expect("a hello");
    assert_eq!(header.version, 6);
    assert_eq!(hello, v13::Message::Hello(v13::Hello::offering(&[1, 4])));
    let (_, hello) = v13::Message::decode(&message(4, 0, &[0xff; 5])).expect("a hello with odd contents");
    assert_eq!(hello, v13::Message::Hello(v13::Hello::default()));
}

/// Nicira's extension puts the table into the upper half of the command.
#[test]
fn the_table_of_a_flow_mod_of_1_0_is_no_part_of_its_command() {
    let mut body = vec![0; 64];
    (body[48], body[49]) = (7, 3);
    let Ok((_, v10::Message::FlowMod(change))) = v10::Message::decode(&message(1, 14, &body)) else {
        panic!("a flow-mod")
    };
    assert_eq!((change.table_id, change.command), (7, v10::FlowModCommand::Delete));
}
