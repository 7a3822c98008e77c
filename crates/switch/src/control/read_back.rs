//! Whatever a controller wrote it reads back bit for bit, in both versions: flows in statistics and at their end,
//! groups, meters, and settings.

use arbitrary::Unstructured;
use proptest::prelude::*;
use twinnet_openflow::{nicira, v10, v13, NO_BUFFER};

use super::tests::Bench;

/// A message of either version, whole.
fn encoded_v13(message: &v13::Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.encode(7, &mut bytes).expect("short enough");
    bytes
}

fn encoded_v10(message: &v10::Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.encode(7, &mut bytes).expect("short enough");
    bytes
}

/// Returns what the switch sends when it gets `message`, in whole messages.
fn answers(bench: &mut Bench, message: &[u8]) -> Vec<Vec<u8>> {
    bench.raw(1, message);
    let bytes: Vec<u8> =
        bench.agent.take_output(twinnet_units::Time::ZERO).into_iter().flat_map(|(_, bytes, _)| bytes).collect();
    let mut messages = Vec::new();
    let mut rest = bytes.as_slice();
    while rest.len() >= 8 {
        let (first, others) = rest.split_at(usize::from(u16::from_be_bytes([rest[2], rest[3]])));
        messages.push(first.to_vec());
        rest = others;
    }
    messages
}

const ERROR: u8 = 1;

fn is_obeyed(bench: &mut Bench, message: &[u8]) -> bool {
    answers(bench, message).iter().all(|answer| answer[1] != ERROR)
}

/// Of `parts` those with which `build` makes a message that a switch obeys, one after the other.
fn accepted<T: Clone>(version: u8, parts: Vec<T>, build: impl Fn(&[T]) -> Vec<u8>) -> Vec<T> {
    let mut kept: Vec<T> = Vec::new();
    for part in parts {
        kept.push(part);
        if !is_obeyed(&mut furnished(version), &build(&kept)) {
            kept.pop();
        }
    }
    kept
}

/// A switch with a group 1 and a meter 1 for flows to use.
fn furnished(version: u8) -> Bench {
    let mut bench = Bench::new(version);
    if version == v13::VERSION {
        let group = v13::GroupMod {
            command: v13::GroupModCommand::Add,
            group_type: v13::GroupType::All,
            group_id: 1,
            buckets: Vec::new(),
        };
        assert!(is_obeyed(&mut bench, &encoded_v13(&v13::Message::GroupMod(group))));
        let bands = vec![v13::MeterBand { rate: 1, burst_size: 0, effect: v13::MeterEffect::Drop }];
        let meter =
            v13::MeterMod { command: v13::MeterModCommand::Add, flags: v13::MeterFlags::KBPS, meter_id: 1, bands };
        assert!(is_obeyed(&mut bench, &encoded_v13(&v13::Message::MeterMod(meter))));
    }
    bench
}

/// Bytes to build messages from.
fn seed() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..600)
}

fn several<T: for<'a> arbitrary::Arbitrary<'a>>(source: &mut Unstructured, most: usize) -> Vec<T> {
    (0..most).filter_map(|_| source.arbitrary().ok()).collect()
}

/// Actions of 1.3 as a controller might write them: any, and outputs to ports that there are, with any `max_len`.
fn actions_v13(source: &mut Unstructured) -> Vec<v13::Action> {
    let mut actions: Vec<v13::Action> = several(source, 6);
    for port in [1, 2, v13::port_number::IN_PORT, v13::port_number::FLOOD, v13::port_number::CONTROLLER] {
        if source.arbitrary().unwrap_or(false) {
            actions.push(v13::Action::Output { port, max_len: source.arbitrary().unwrap_or(0) });
        }
    }
    if source.arbitrary().unwrap_or(false) {
        actions.push(v13::Action::Group(1));
    }
    actions
}

/// The flow-mod with a mask of all ones after each field of its match that may have one: it means the same, and is
/// other bytes.
fn with_full_masks(mut message: Vec<u8>) -> Vec<u8> {
    const MATCH: usize = 48;
    let length = usize::from(u16::from_be_bytes([message[MATCH + 2], message[MATCH + 3]]));
    let instructions = message.split_off(MATCH + length.next_multiple_of(8));
    let fields = message.split_off(MATCH)[4..length].to_vec();
    let mut rest = fields.as_slice();
    let mut written = vec![0, 1, 0, 0];
    while let [class_high, class_low, number, size, tail @ ..] = rest {
        let (value, others) = tail.split_at(usize::from(*size));
        let ether_address = [*class_high, *class_low] == [0x80, 0] && matches!(number >> 1, 3 | 4) && number & 1 == 0;
        if ether_address {
            written.extend([*class_high, *class_low, number | 1, 2 * size]);
            written.extend(value);
            written.extend(vec![0xff; value.len()]);
        } else {
            written.extend([*class_high, *class_low, *number, *size]);
            written.extend(value);
        }
        rest = others;
    }
    let length = written.len() as u16;
    written[2..4].copy_from_slice(&length.to_be_bytes());
    written.resize(written.len().next_multiple_of(8), 0);
    message.extend(written);
    message.extend(instructions);
    let length = message.len() as u16;
    message[2..4].copy_from_slice(&length.to_be_bytes());
    message
}

fn flow_mod_v13(seed: &[u8]) -> Vec<u8> {
    let source = &mut Unstructured::new(seed);
    let mut change: v13::FlowMod = source.arbitrary().expect("an exhausted source gives zeros");
    change.command = v13::FlowModCommand::Add;
    change.table_id %= 254;
    change.buffer_id = NO_BUFFER;
    change.flags = v13::FlowFlags(change.flags.0 | v13::FlowFlags::SEND_FLOW_REM.0);
    let build = |change: &v13::FlowMod| with_full_masks(encoded_v13(&v13::Message::FlowMod(change.clone())));
    let with = |instructions: Vec<v13::Instruction>| build(&v13::FlowMod { instructions, ..change.clone() });
    let listed = |actions: &[v13::Action]| with(vec![v13::Instruction::ApplyActions(actions.to_vec())]);
    let applied = accepted(v13::VERSION, actions_v13(source), listed);
    let written = accepted(v13::VERSION, actions_v13(source), listed);
    // In an order that is not that of their execution.
    let mut instructions = vec![
        v13::Instruction::GotoTable(254),
        v13::Instruction::WriteActions(written),
        v13::Instruction::WriteMetadata { metadata: 5, mask: u64::MAX },
        v13::Instruction::ApplyActions(applied),
        v13::Instruction::ClearActions,
        v13::Instruction::Meter(1),
    ];
    instructions.retain(|_| source.arbitrary().unwrap_or(true));
    with(instructions)
}

fn flow_mod_v10(seed: &[u8]) -> Vec<u8> {
    let source = &mut Unstructured::new(seed);
    let mut change: v10::FlowMod = source.arbitrary().expect("an exhausted source gives zeros");
    change.command = v10::FlowModCommand::Add;
    change.table_id = 0;
    change.buffer_id = NO_BUFFER;
    change.flags = v10::FlowFlags::SEND_FLOW_REM;
    if source.arbitrary().unwrap_or(false) {
        change.matching.wildcards = v10::Wildcards(0);
    }
    let build = |actions: &[v10::Action]| {
        encoded_v10(&v10::Message::FlowMod(v10::FlowMod { actions: actions.to_vec(), ..change.clone() }))
    };
    let mut parts: Vec<v10::Action> = several(source, 6);
    parts.push(v10::Action::Output { port: 2, max_len: source.arbitrary().unwrap_or(0) });
    build(&accepted(v10::VERSION, parts, build))
}

/// All flows, one message of statistics for each version.
fn flow_stats(version: u8) -> Vec<u8> {
    if version == v13::VERSION {
        let mut request = vec![4, 18, 0, 56, 0, 0, 0, 9, 0, 1, 0, 0, 0, 0, 0, 0, 0xff, 0, 0, 0];
        request.extend([0xff; 8]);
        request.extend([0; 20]);
        request.extend([0, 1, 0, 4, 0, 0, 0, 0]);
        return request;
    }
    let mut request = vec![1, 16, 0, 56, 0, 0, 0, 9, 0, 1, 0, 0];
    request.extend(u32::MAX.to_be_bytes());
    request.extend([0; 36]);
    request.extend([0xff, 0, 0xff, 0xff]);
    request
}

/// The flow-mod that deletes all flows.
fn deletion(version: u8) -> Vec<u8> {
    if version == v13::VERSION {
        let change = v13::FlowMod {
            cookie: 0,
            cookie_mask: 0,
            table_id: v13::table_number::ALL,
            command: v13::FlowModCommand::Delete,
            idle_timeout: 0,
            hard_timeout: 0,
            priority: 0,
            buffer_id: NO_BUFFER,
            out_port: v13::port_number::ANY,
            out_group: v13::group_number::ANY,
            flags: v13::FlowFlags::default(),
            matching: Default::default(),
            instructions: Vec::new(),
        };
        return encoded_v13(&v13::Message::FlowMod(change));
    }
    let change = v10::FlowMod {
        matching: v10::Match::any(),
        cookie: 0,
        table_id: 0,
        command: v10::FlowModCommand::Delete,
        idle_timeout: 0,
        hard_timeout: 0,
        priority: 0,
        buffer_id: NO_BUFFER,
        out_port: v10::port_number::NONE,
        flags: v10::FlowFlags::default(),
        actions: Vec::new(),
    };
    encoded_v10(&v10::Message::FlowMod(change))
}

/// Cookie, priority, timeouts, match, actions.
#[derive(Debug, PartialEq)]
struct FlowBytes {
    cookie: Vec<u8>,
    priority: Vec<u8>,
    timeouts: Vec<u8>,
    matching: Vec<u8>,
    actions: Vec<u8>,
}

fn parts(bytes: &[u8], [cookie, priority, timeouts, matching, actions]: [usize; 5]) -> FlowBytes {
    let part = |from: usize, count: usize| bytes[from..from + count].to_vec();
    FlowBytes {
        cookie: part(cookie, 8),
        priority: part(priority, 2),
        timeouts: part(timeouts, 4),
        matching: bytes[matching..actions].to_vec(),
        actions: bytes[actions..].to_vec(),
    }
}

/// Returns the offset at which the match of 1.3 at `at` ends, padding included.
fn match_end(bytes: &[u8], at: usize) -> usize {
    at + usize::from(u16::from_be_bytes([bytes[at + 2], bytes[at + 3]])).next_multiple_of(8)
}

fn written_parts(version: u8, message: &[u8]) -> FlowBytes {
    if version == v13::VERSION {
        parts(message, [8, 30, 26, 48, match_end(message, 48)])
    } else {
        parts(message, [48, 62, 58, 8, 72])
    }
}

fn told_parts(version: u8, reply: &[u8]) -> FlowBytes {
    if version == v13::VERSION {
        parts(&reply[16..], [24, 12, 14, 48, match_end(&reply[16..], 48)])
    } else {
        // The match stands before the rest.
        let entry = &reply[12..];
        let told = parts(entry, [64, 52, 54, 4, 88]);
        FlowBytes { matching: entry[4..44].to_vec(), ..told }
    }
}

fn written_flow(version: u8, message: &[u8]) -> FlowBytes {
    let whole = written_parts(version, message);
    let matching = if version == v13::VERSION { whole.matching.clone() } else { message[8..48].to_vec() };
    // OpenFlow 1.0, 3.4: a flow without wildcards has the highest priority, whatever was written.
    let wildcards = u32::from_be_bytes([message[8], message[9], message[10], message[11]]);
    let exact = version == v10::VERSION && wildcards & v10::Wildcards::ALL.0 == 0;
    let priority = if exact { vec![0xff; 2] } else { whole.priority };
    FlowBytes { matching, priority, ..whole }
}

fn a_flow_reads_back(version: u8, message: &[u8]) -> Result<(), TestCaseError> {
    const REMOVED: u8 = 11;
    let mut bench = furnished(version);
    let refusals = answers(&mut bench, message);
    prop_assert!(refusals.is_empty(), "refused: {refusals:?}");
    let told = answers(&mut bench, &flow_stats(version));
    prop_assert_eq!(told.len(), 1);
    let written = written_flow(version, message);
    prop_assert_eq!(&told_parts(version, &told[0]), &written);
    let ended = answers(&mut bench, &deletion(version));
    prop_assert_eq!(ended.len(), 1);
    prop_assert_eq!(ended[0][1], REMOVED);
    let (matching, priority) = if version == v13::VERSION {
        (&ended[0][48..], &ended[0][16..18])
    } else {
        (&ended[0][8..48], &ended[0][56..58])
    };
    prop_assert_eq!(matching, &written.matching[..]);
    prop_assert_eq!(priority, &written.priority[..]);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn flows_of_1_3(seed in seed()) {
        let message = flow_mod_v13(&seed);
        // A match may ask for what no key has, such as two ports at once: that is refused, and tested elsewhere.
        prop_assume!(is_obeyed(&mut furnished(v13::VERSION), &message));
        a_flow_reads_back(v13::VERSION, &message)?;
    }

    #[test]
    fn flows_of_1_0(seed in seed()) {
        a_flow_reads_back(v10::VERSION, &flow_mod_v10(&seed))?;
    }

    #[test]
    fn other_actions_of_a_flow(seeds in (seed(), seed())) {
        let (mut first, mut second) = (flow_mod_v13(&seeds.0), flow_mod_v13(&seeds.1));
        // The same table, cookie, timeouts, flags and match; other instructions.
        let end = match_end(&first, 48);
        second = [&first[..end], &second[match_end(&second, 48)..]].concat();
        first[25] = 0;
        second[25] = 2;
        for message in [&mut first, &mut second] {
            let length = message.len() as u16;
            message[2..4].copy_from_slice(&length.to_be_bytes());
        }
        let mut bench = furnished(v13::VERSION);
        prop_assume!(is_obeyed(&mut bench, &first) && is_obeyed(&mut bench, &second));
        let told = answers(&mut bench, &flow_stats(v13::VERSION));
        prop_assert_eq!(told_parts(v13::VERSION, &told[0]).actions, &second[end..]);
    }

    #[test]
    fn flows_of_nicira(seed in seed()) {
        let source = &mut Unstructured::new(&seed);
        let mut change: nicira::FlowMod = source.arbitrary().expect("an exhausted source gives zeros");
        change.command = v10::FlowModCommand::Add;
        change.buffer_id = NO_BUFFER;
        change.flags = v10::FlowFlags::default();
        let build = |actions: &[v10::Action]| {
            let message = nicira::Message::FlowMod(nicira::FlowMod { actions: actions.to_vec(), ..change.clone() });
            encoded_v10(&v10::Message::Vendor(message.to_vendor()))
        };
        let message = build(&accepted(v10::VERSION, several(source, 4), build));
        let mut bench = Bench::new(v10::VERSION);
        prop_assume!(is_obeyed(&mut bench, &message));
        let request = nicira::StatsRequest::Flow(nicira::FlowStatsRequest {
            out_port: v10::port_number::NONE, table_id: 0xff, matching: Default::default(),
        });
        let body = v10::RequestBody::Vendor(v10::statistics::VendorStats { vendor: nicira::NICIRA,
            data: request.encode() });
        let question = v10::Message::StatsRequest(v10::Statistics { more: false, body });
        let told = answers(&mut bench, &encoded_v10(&question));
        // Statistics of Nicira: 24 bytes before the entry, whose match stands at 48.
        let entry = &told[0][24..];
        let length = usize::from(u16::from_be_bytes([message[40], message[41]]));
        prop_assert_eq!(&entry[48..], &message[48..]);
        prop_assert_eq!(usize::from(u16::from_be_bytes([entry[18], entry[19]])), length);
    }

    #[test]
    fn groups(seed in seed(), group_type in 0..4_u8, id in 2..1000_u32) {
        let source = &mut Unstructured::new(&seed);
        let group_type = [v13::GroupType::All, v13::GroupType::Select, v13::GroupType::Indirect,
            v13::GroupType::FastFailover]
            [usize::from(group_type)];
        let build = |buckets: Vec<v13::Bucket>| {
            let command = v13::GroupModCommand::Add;
            encoded_v13(&v13::Message::GroupMod(v13::GroupMod { command, group_type, group_id: id, buckets }))
        };
        let weight = if group_type == v13::GroupType::Select { source.arbitrary().unwrap_or(1) } else { 0 };
        let with = |actions: &[v13::Action]| {
            let (watch_port, watch_group) = (2, v13::group_number::ANY);
            vec![v13::Bucket { weight, watch_port, watch_group, actions: actions.to_vec() }]
        };
        let actions = accepted(v13::VERSION, actions_v13(source), |actions| build(with(actions)));
        let message = build(with(&actions));
        let mut bench = furnished(v13::VERSION);
        prop_assert!(is_obeyed(&mut bench, &message));
        let question = v13::RequestBody::GroupDescription;
        let question = v13::Message::MultipartRequest(v13::Multipart { more: false, body: question });
        let told = answers(&mut bench, &encoded_v13(&question));
        // Behind the group that was there before, which has eight bytes; type, number and buckets.
        prop_assert_eq!(&told[0][16 + 8 + 2..16 + 8 + 8], &message[10..16]);
        prop_assert_eq!(&told[0][16 + 8 + 8..], &message[16..]);
    }

    #[test]
    fn meters(seed in seed(), id in 2..1000_u32) {
        let source = &mut Unstructured::new(&seed);
        let flags: v13::MeterFlags = source.arbitrary().expect("an exhausted source gives zeros");
        let build = |bands: &[v13::MeterBand]| {
            let command = v13::MeterModCommand::Add;
            let message = v13::MeterMod { command, flags, meter_id: id, bands: bands.to_vec() };
            encoded_v13(&v13::Message::MeterMod(message))
        };
        let message = build(&accepted(v13::VERSION, several(source, 4), build));
        let mut bench = Bench::new(v13::VERSION);
        prop_assume!(is_obeyed(&mut bench, &message));
        let question = v13::RequestBody::MeterConfig(v13::multipart::MeterRequest { meter_id: v13::meter_number::ALL });
        let question = v13::Message::MultipartRequest(v13::Multipart { more: false, body: question });
        let told = answers(&mut bench, &encoded_v13(&question));
        prop_assert_eq!(&told[0][16 + 2..], &message[10..]);
    }

    #[test]
    fn what_is_told_unasked(told: [u32; 6]) {
        let mut bench = Bench::new(v13::VERSION);
        let body: Vec<u8> = told.iter().flat_map(|mask| mask.to_be_bytes()).collect();
        let written = [&[4, 28, 0, 32, 0, 0, 0, 7][..], &body].concat();
        prop_assert!(is_obeyed(&mut bench, &written));
        let answer = answers(&mut bench, &[4, 26, 0, 8, 0, 0, 0, 8]);
        prop_assert_eq!(&answer[0][8..], &body[..]);
    }

    #[test]
    fn the_configuration(version in prop::sample::select(vec![v10::VERSION, v13::VERSION]), flags in 0..2_u16,
        miss_send_len: u16) {
        let mut bench = Bench::new(version);
        let body = [flags.to_be_bytes(), miss_send_len.to_be_bytes()].concat();
        let written = [&[version, 9, 0, 12, 0, 0, 0, 7][..], &body].concat();
        prop_assert!(is_obeyed(&mut bench, &written));
        let answer = answers(&mut bench, &[version, 7, 0, 8, 0, 0, 0, 8]);
        prop_assert_eq!(&answer[0][8..], &body[..]);
    }

    #[test]
    fn the_configuration_of_a_port(config: u32, mask: u32,
        version in prop::sample::select(vec![v10::VERSION, v13::VERSION])) {
        let mut bench = Bench::new(version);
        let known = if version == v13::VERSION { v13::PortConfig::ALL.0 } else { v10::PortConfig::ALL.0 };
        let (config, mask) = (config & known, mask & known);
        let address = [0, 0, 0, 0, 1, 2];
        let (message, question, at) = if version == v13::VERSION {
            let change = v13::PortMod {
                port_no: 2, hw_addr: address, config: v13::PortConfig(config), mask: v13::PortConfig(mask),
                advertise: v13::PortFeatures::default(),
            };
            let question = v13::Multipart { more: false, body: v13::RequestBody::PortDescription };
            // The second of ports with 64 bytes, the configuration at 32.
            let question = encoded_v13(&v13::Message::MultipartRequest(question));
            (encoded_v13(&v13::Message::PortMod(change)), question, 16 + 64 + 32)
        } else {
            let change = v10::PortMod {
                port_no: 2, hw_addr: address, config: v10::PortConfig(config), mask: v10::PortConfig(mask),
                advertise: v10::PortFeatures::default(),
            };
            // The second of ports with 48 bytes behind 24 of features, the configuration at 24.
            (encoded_v10(&v10::Message::PortMod(change)), encoded_v10(&v10::Message::FeaturesRequest), 8 + 24 + 48 + 24)
        };
        // That the port has changed is told unasked; nothing is refused.
        prop_assert!(is_obeyed(&mut bench, &message));
        let answer = answers(&mut bench, &question);
        let told = answer.last().map(|message| u32::from_be_bytes([message[at], message[at + 1], message[at + 2],
            message[at + 3]]));
        prop_assert_eq!(told, Some(config & mask));
    }

    #[test]
    fn a_role_and_its_generation(role in 0..3_u32, generation: u64) {
        let mut bench = Bench::new(v13::VERSION);
        let body = [&role.to_be_bytes()[..], &[0; 4], &generation.to_be_bytes()].concat();
        let master = [&[4, 24, 0, 24, 0, 0, 0, 7, 0, 0, 0, 2, 0, 0, 0, 0][..], &generation.to_be_bytes()].concat();
        prop_assert!(is_obeyed(&mut bench, &master));
        let message = [&[4, 24, 0, 24, 0, 0, 0, 7][..], &body].concat();
        let answer = answers(&mut bench, &message);
        // No change: what was there is told.
        let due = if role == 0 { [&2_u32.to_be_bytes()[..], &[0; 4],
            &generation.to_be_bytes()].concat() } else { body };
        prop_assert_eq!(&answer[0][8..], &due[..]);
    }

    #[test]
    fn what_an_echo_carries(version in prop::sample::select(vec![v10::VERSION, v13::VERSION]),
        data in prop::collection::vec(any::<u8>(), 0..300)) {
        let length = (8 + data.len()) as u16;
        let [high, low] = length.to_be_bytes();
        let message = [&[version, 2, high, low, 0, 0, 0, 7][..], &data].concat();
        let answer = answers(&mut Bench::new(version), &message);
        prop_assert_eq!(&answer[0][8..], &data[..]);
    }
}

/// The seeds build flows with all that there is to write: else the properties above would hold of nothing.
#[test]
fn the_seeds_build_flows_of_every_kind() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut obeyed, mut fields, mut actions) =
        (0, std::collections::BTreeSet::new(), std::collections::BTreeSet::new());
    for _ in 0..400 {
        let message = flow_mod_v13(&seed().new_tree(&mut runner).expect("a seed").current());
        if !is_obeyed(&mut furnished(v13::VERSION), &message) {
            continue;
        }
        obeyed += 1;
        let Ok((_, v13::Message::FlowMod(change))) = v13::Message::decode(&message) else { panic!("{message:?}") };
        fields.extend(change.matching.fields.iter().map(|condition| condition.field as u8));
        for instruction in &change.instructions {
            if let v13::Instruction::ApplyActions(list) | v13::Instruction::WriteActions(list) = instruction {
                actions.extend(list.iter().map(v13::Action::kind));
            }
        }
    }
    assert!(obeyed > 200, "{obeyed} of 400");
    assert!(fields.len() > 30, "{fields:?}");
    assert!(actions.len() > 10, "{actions:?}");
}
