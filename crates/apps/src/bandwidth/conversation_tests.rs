//! A prober and a listener over a network in memory, and what becomes of them when it misbehaves.

use serde_json::{json, Value};
use twinnet_units::{Duration, Time};

use super::listener::BandwidthListener;
use super::message::{Message, Stamps, HELLO_LENGTH};
use super::prober_config::BandwidthListenerConfig;
use crate::loop_network::{app, LoopNetwork, RecordingHost};
use crate::{App, Event, SocketId};

fn listener() -> Value {
    json!({"kind": "bandwidth_listener", "port": 5010, "most_rate_bps": 1_000_000_000_u64})
}

fn prober(method: Value) -> Value {
    json!({"kind": "bandwidth_prober", "to": "10.0.0.2", "port": 5010, "flow": 7, "method": method,
           "most_payload": 1472, "most_rate_bps": 100_000_000, "duration_ps": 60_000_000_000_000_u64, "record": true})
}

fn short() -> Value {
    json!({"name": "ptr", "gaps": 5})
}

/// The prober's row after `seconds`; datagrams meet `fate`.
fn run(prober: &Value, seconds: u64, fate: impl FnMut(u64) -> Vec<Duration> + 'static) -> Value {
    let mut network = LoopNetwork::new(Duration::from_ms(5));
    network.datagram_fate(fate);
    network.start(1, &app(listener()));
    let number = network.start(0, &app(prober.clone()));
    network.run_until(Time::ZERO + Duration::from_secs(seconds));
    assert!(network.finished(number), "{}", network.report(number));
    network.report(number)["flows"][0].clone()
}

#[test]
fn stamps_come_back_and_are_those_of_the_network() {
    let row = run(&prober(short()), 60, |_| vec![Duration::ZERO]);
    let told = &row["bandwidth"];
    let record = told["record"].as_array().unwrap();
    assert!(!record.is_empty() && told["trains"] == json!(record.len()), "{told}");
    let train = &record[0];
    for (sent, arrived) in train["sent_ns"].as_array().unwrap().iter().zip(train["arrived_ns"].as_array().unwrap()) {
        assert_eq!(arrived.as_i64().unwrap() - sent.as_i64().unwrap(), 5_000_000, "one way takes 5 ms");
    }
    assert_eq!((&told["probe_lost"], &told["interruptions"]), (&json!(0), &json!(0)));
}

#[test]
fn a_listener_that_is_not_there_is_told_of() {
    let mut network = LoopNetwork::new(Duration::from_ms(5));
    let number = network.start(0, &app(prober(short())));
    network.run_until(Time::ZERO + Duration::from_secs(60));
    assert!(network.finished(number));
    let row = &network.report(number)["flows"][0];
    assert!(row["errors"][0].as_str().unwrap().starts_with("no listener answers at 10.0.0.2:5010"), "{row}");
    assert_eq!(network.open_sockets(), 0);
}

#[test]
fn a_peer_that_dies_in_mid_probe_ends_the_estimate_with_what_is_known() {
    let row = run(&prober(short()), 120, |number| if number < 150 { vec![Duration::ZERO] } else { vec![] });
    assert!(row["bandwidth"]["gave_up"].as_str().unwrap().contains("has answered before"), "{row}");
    assert!(row["bandwidth"]["trains"].as_u64().unwrap() >= 1);
}

#[test]
fn losses_copies_and_packets_that_overtake_are_survived_by_every_method() {
    for name in ["pathload", "yaz", "pathchirp", "assolo", "spruce", "igi", "ptr", "kalman", "hybrid"] {
        let mut method = json!({"name": name});
        if name == "spruce" {
            method["capacity_bps"] = json!(50e6);
        }
        // Of twenty datagrams one is lost, one comes twice and one comes late.
        let row = run(&prober(method), 400, |number| match number % 20 {
            3 => vec![],
            7 => vec![Duration::ZERO, Duration::from_us(10)],
            11 => vec![Duration::from_ms(3)],
            _ => vec![Duration::ZERO],
        });
        let told = &row["bandwidth"];
        let answered = told["estimate_bps"].is_number() || told["gave_up"].is_string();
        assert!(answered && told["probe_lost"].as_u64().unwrap() > 0, "{name}: {told}");
    }
}

#[test]
fn a_budget_is_kept() {
    let mut given = prober(json!({"name": "kalman"}));
    given["budget_bytes"] = json!(200_000);
    let row = run(&given, 60, |number| vec![Duration::from_us(number % 7)]);
    let told = &row["bandwidth"];
    assert!(told["probe_bytes"].as_u64().unwrap() + told["control_bytes"].as_u64().unwrap() <= 200_000, "{told}");
    assert!(told["gave_up"].as_str().unwrap().contains("budget"), "{told}");
}

/// A listener that has just begun, and the host it runs on.
fn begun(allow: Option<Vec<std::net::IpAddr>>) -> (BandwidthListener, RecordingHost) {
    let mut host = RecordingHost::new(3);
    let mut listener = BandwidthListener::new(BandwidthListenerConfig { port: 5010, most_rate_bps: 10_000_000, allow });
    listener.handle(Time::ZERO, Event::Start, &mut host);
    (listener, host)
}

fn hear(listener: &mut BandwidthListener, host: &mut RecordingHost, from: &str, bytes: &[u8]) -> Vec<Vec<u8>> {
    let (socket, from, arrived) = (SocketId(1), from.parse().unwrap(), Time::from_ns(1_000));
    listener.handle(arrived, Event::Datagram { socket, from, bytes, length: bytes.len(), arrived }, host);
    host.take_datagrams()
}

#[test]
fn a_listener_tells_nothing_to_those_without_the_cookie_of_their_address() {
    let (mut listener, mut host) = begun(None);
    let hello = Message::Hello { nonce: 9 }.emit();
    let answer = hear(&mut listener, &mut host, "10.0.0.1:4000", &hello).remove(0);
    assert!(answer.len() <= hello.len());
    let Some(Message::Welcome { nonce: 9, cookie, most_rate_bps: 10_000_000 }) = Message::parse(&answer, answer.len())
    else {
        panic!("no welcome")
    };
    let ask = Message::Ask { cookie, train: 1, place: 0 }.emit();
    // Somebody else, who has heard of the cookie, would have the answers sent to the one whose address he writes.
    assert!(hear(&mut listener, &mut host, "10.0.0.66:4000", &ask).is_empty());
    let probe = Message::Probe { cookie, train: 1, place: 2 }.emit();
    assert!(hear(&mut listener, &mut host, "10.0.0.1:4000", &probe).is_empty(), "probes are not answered");
    let answer = hear(&mut listener, &mut host, "10.0.0.1:4000", &ask).remove(0);
    assert!(answer.len() <= ask.len());
    let Some(Message::Stamps(Stamps { arrived_ns, .. })) = Message::parse(&answer, answer.len()) else { panic!() };
    assert_eq!(arrived_ns, [None, None, Some(1_000)]);
}

#[test]
fn a_listener_answers_only_whom_it_is_let() {
    let (mut listener, mut host) = begun(Some(vec!["10.0.0.1".parse().unwrap()]));
    let hello = Message::Hello { nonce: 9 }.emit();
    assert!(hear(&mut listener, &mut host, "10.0.0.2:4000", &hello).is_empty());
    assert_eq!(hear(&mut listener, &mut host, "10.0.0.1:4000", &hello).len(), 1);
}

#[test]
fn what_a_listener_keeps_is_bounded() {
    let (mut listener, mut host) = begun(None);
    for prober in 0..1000_u32 {
        let from = format!("10.0.{}.{}:4000", prober / 250, prober % 250 + 1);
        let welcome = hear(&mut listener, &mut host, &from, &[Message::Hello { nonce: 1 }.emit(), vec![0; 8]].concat());
        let Some(Message::Welcome { cookie, .. }) = Message::parse(&welcome[0], HELLO_LENGTH) else { panic!() };
        for train in 0..10 {
            hear(&mut listener, &mut host, &from, &Message::Probe { cookie, train, place: u16::MAX }.emit());
            hear(&mut listener, &mut host, &from, &Message::Probe { cookie, train, place: 1023 }.emit());
        }
    }
    assert!(listener.kept_stamps() <= 32 * 4 * 1024, "{}", listener.kept_stamps());
}

#[test]
fn garbage_from_the_listeners_address_is_ignored_by_a_prober() {
    let config: crate::AppConfig = app(prober(short()));
    let (mut prober, mut host) = (config.build(), RecordingHost::new(1));
    prober.handle(Time::ZERO, Event::Start, &mut host);
    let sent = host.take_datagrams();
    let from = "10.0.0.2:5010".parse().unwrap();
    let stamps = Stamps { arrived_ns: vec![Some(1); 20], ..Stamps::default() };
    for bytes in
        [vec![0; 40], Message::Stamps(stamps).emit(), Message::Welcome { nonce: 0, cookie: 1, most_rate_bps: 1 }.emit()]
    {
        let arrived = Time::from_ns(5);
        prober.handle(
            arrived,
            Event::Datagram { socket: SocketId(1), from, bytes: &bytes, length: bytes.len(), arrived },
            &mut host,
        );
    }
    assert!(sent.len() == 1 && host.take_datagrams().is_empty(), "it still waits for its own welcome");
}

#[test]
fn a_sender_that_cannot_keep_its_rates_says_so_instead_of_an_estimate() {
    let config: crate::AppConfig = app(prober(json!({"name": "kalman"})));
    let (mut prober, mut host) = (config.build(), RecordingHost::new(1));
    let from = "10.0.0.2:5010".parse().unwrap();
    prober.handle(Time::ZERO, Event::Start, &mut host);
    let hello = host.take_datagrams().remove(0);
    let Some(Message::Hello { nonce }) = Message::parse(&hello, hello.len()) else { panic!("no hello") };
    let mut now = Time::from_ns(1_000);
    let hear = |prober: &mut Box<dyn App>, host: &mut RecordingHost, now: Time, message: Message| {
        let bytes = message.emit();
        let (socket, length) = (SocketId(1), bytes.len());
        prober.handle(now, Event::Datagram { socket, from, bytes: &bytes, length, arrived: now }, host);
    };
    hear(&mut prober, &mut host, now, Message::Welcome { nonce, cookie: 9, most_rate_bps: 100_000_000 });
    for _ in 0..2_000 {
        let Some(due) = prober.deadline() else { break };
        // It is called 5 ms late for every packet.
        now = due + Duration::from_ms(5);
        prober.handle(now, Event::Timer, &mut host);
        for asked in host.take_datagrams() {
            if let Some(Message::Ask { cookie, train, place }) = Message::parse(&asked, 128) {
                let arrived_ns = (0..20).map(|packet| Some(now.as_ns() + 100_000 * packet)).collect();
                hear(
                    &mut prober,
                    &mut host,
                    now,
                    Message::Stamps(Stamps { cookie, train, place, arrived_ns, ..Stamps::default() }),
                );
            }
        }
    }
    let told = &prober.report(now)["flows"][0]["bandwidth"];
    assert!(told["estimate_bps"].is_null() && told["generated_share"].as_f64().unwrap() < 0.5, "{told}");
    assert!(told["gave_up"].as_str().unwrap().contains("too busy for this method"), "{told}");
}
