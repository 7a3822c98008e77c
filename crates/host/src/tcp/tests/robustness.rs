//! Any segments, and any fate of segments.

use proptest::prelude::*;
use twinnet_apps::Chunk;
use twinnet_packet::tcp::{Flags, Options};
use twinnet_units::{Duration, Time};

use super::path::{address, Pair};
use crate::tcp::{Connection, Ecn, Segment, TcpConfig};

/// A segment near what the connection expects, or anywhere.
#[derive(Clone, Debug)]
struct Wild {
    near: bool,
    sequence: u32,
    acknowledgement: u32,
    flags: u16,
    window: u16,
    options: Options,
    payload: Vec<u8>,
    elided: u32,
    marked: bool,
}

fn wild() -> impl Strategy<Value = Wild> {
    let offsets =
        (any::<bool>(), prop_oneof![-3000_i32..70_000, any::<i32>()], prop_oneof![-3000_i32..70_000, any::<i32>()]);
    let flags = prop_oneof![Just(Flags::ACK.0), Just(Flags::ACK.with(Flags::FIN).0), 0_u16..512];
    let sack = prop::collection::vec((0_u32..100_000, 0_u32..100_000), 0..4);
    let timestamps = prop::option::of((any::<u32>(), any::<u32>()));
    let options = (any::<Option<u16>>(), prop::option::of(0_u8..15), any::<bool>(), timestamps, sack);
    let rest = (any::<u16>(), prop::collection::vec(any::<u8>(), 0..40), prop_oneof![0_u32..3000, any::<u32>()]);
    (offsets, flags, options, rest, any::<bool>()).prop_map(|(offsets, flags, options, rest, marked)| {
        let mut sack = [None; 3];
        for (place, block) in sack.iter_mut().zip(options.4) {
            *place = Some(block);
        }
        let (maximum_segment, window_scale, sack_permitted, timestamps) = (options.0, options.1, options.2, options.3);
        Wild {
            near: offsets.0,
            sequence: offsets.1 as u32,
            acknowledgement: offsets.2 as u32,
            flags,
            window: rest.0,
            options: Options { maximum_segment, window_scale, sack_permitted, timestamps, sack },
            payload: rest.1,
            elided: rest.2,
            marked,
        }
    })
}

fn attack(connection: &mut Connection, segments: &[Wild]) {
    let mut now = Time::ZERO;
    let mut bytes = Vec::new();
    for (number, wild) in segments.iter().enumerate() {
        now += Duration::from_us(1 + 37_000 * (number as u64 % 7));
        let _ = connection.send(Chunk::Filler(10_000), now);
        let _ = connection.send(Chunk::Padded(b"header", 900), now);
        let (expected, sent) = (connection.incoming.next() as u32, connection.send.unacknowledged as u32);
        let base = |near: u32, offset: u32| if wild.near { near.wrapping_add(offset) } else { offset };
        let mut options = wild.options;
        options.sack = options.sack.map(|block| block.map(|(from, to)| (base(sent, from), base(sent, to))));
        if wild.near {
            // Timestamps that are not thrown away at once.
            options.timestamps = options.timestamps.map(|_| (number as u32, connection.timestamp(now)));
        }
        let segment = Segment {
            sequence: base(expected, wild.sequence),
            acknowledgement: base(sent, wild.acknowledgement),
            flags: Flags(wild.flags),
            window: wild.window,
            options,
            payload: &wild.payload,
            elided: wild.elided,
            congestion_experienced: wild.marked,
        };
        connection.receive(&segment, now);
        for _ in 0..200 {
            bytes.clear();
            let Some(outgoing) = connection.poll_send(now, &mut bytes) else { break };
            if number % 3 > 0 {
                connection.left_host(outgoing.payload);
            }
        }
        let mut buffer = [0; 700];
        let _ = connection.read(&mut buffer, now);
        if connection.deadline().is_some_and(|deadline| deadline <= now) {
            connection.timer(now);
        }
        if number % 50 == 49 {
            connection.packet_too_big(1400 - number as u32, now);
        }
        let _ = (connection.info(), connection.take_signals());
    }
    // It is left alone, and ends.
    connection.close(now);
    for _ in 0..10_000 {
        while connection.poll_send(now, &mut bytes).is_some_and(|outgoing| {
            connection.left_host(outgoing.payload);
            true
        }) {}
        bytes.clear();
        let Some(deadline) = connection.deadline() else { break };
        assert!(deadline >= now || deadline + Duration::from_secs(1) > now);
        now = deadline.max(now);
        connection.timer(now);
    }
    assert!(connection.take_signals().gone, "{connection:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_segments_panic_and_all_ends(segments in prop::collection::vec(wild(), 1..120), bits in 0_u32..16) {
        let on = |bit: u32| bits & 1 << bit != 0;
        let config = TcpConfig { sack: on(0), timestamps: on(1), window_scaling: on(2),
            ecn: if on(3) { Ecn::Ask } else { Ecn::Never }, ..TcpConfig::default() };
        let connection = || Connection::connect(&config, address(0), address(1), 1500, 4_294_960_000, Time::ZERO);
        // In the midst of opening, and open.
        attack(&mut connection(), &segments);
        let mut open = connection();
        let mut bytes = Vec::new();
        open.poll_send(Time::ZERO, &mut bytes);
        let answer = Segment {
            sequence: 4_294_967_000,
            acknowledgement: 4_294_960_001,
            flags: Flags::SYN.with(Flags::ACK),
            window: 60_000,
            options: Options {
                maximum_segment: Some(1460),
                window_scale: Some(7),
                sack_permitted: true,
                timestamps: Some((0, 0)),
                ..Options::default()
            },
            payload: &[],
            elided: 0,
            congestion_experienced: false,
        };
        open.receive(&answer, Time::ZERO);
        prop_assert!(open.take_signals().connected);
        attack(&mut open, &segments);
    }

    #[test]
    fn any_fate_of_segments_delivers_the_stream(
        seed in any::<u64>(),
        bits in 0_u32..16,
        loss in 0.0_f64..0.15,
        reordering in 0.0_f64..0.5,
        duplication in 0.0_f64..0.3,
        total in 1_u64..150_000,
        buffer in prop_oneof![Just(u64::MAX), 5_000_u64..50_000],
    ) {
        let on = |bit: u32| bits & 1 << bit != 0;
        let config = TcpConfig { sack: on(0), timestamps: on(1), window_scaling: on(2),
            ecn: if on(3) { Ecn::Ask } else { Ecn::Never }, ..TcpConfig::default() };
        let mut pair = Pair::new(&config, &config, 20, Duration::from_ms(10));
        pair.seed(seed);
        for line in &mut pair.lines {
            line.loss = loss;
            line.reordering = reordering;
            line.duplication = duplication;
            line.jitter = Duration::from_ms(30);
            line.buffer = buffer;
        }
        pair.run(Duration::from_secs(100));
        // Either end may have given up opening, also the one that answers, while the other holds it for open.
        prop_assume!(pair.signals.iter().all(|told| told.connected && told.failed.is_none()));
        let ended = pair.transfer(0, total, true, Duration::from_secs(24 * 3600));
        prop_assert!(ended.is_some(), "{:?}", pair.end(0).info());
    }
}
