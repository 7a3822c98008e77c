//! The control channel on the virtual clock: what takes how long, and when time stops.

use serde_json::{json, Value};
use twinnet_lab::network::NetworkSpec;
use twinnet_lab::protocol::Request;
use twinnet_lab::{ControlMessage, VirtualLab};

const HELLO: [u8; 8] = [4, 0, 0, 8, 0, 0, 0, 1];
const BARRIER: [u8; 8] = [4, 20, 0, 8, 0, 0, 0, 9];
const BARRIER_REPLY: [u8; 8] = [4, 21, 0, 8, 0, 0, 0, 9];
const MS: u64 = 1_000_000_000;

struct Bench {
    lab: VirtualLab,
}

impl Bench {
    fn new(delay_ps: u64) -> Self {
        let switch = |number: u64| {
            json!({"kind": "switch", "name": format!("s{number}"), "dpid": number, "fail_mode": "secure",
                   "control_delay_ps": delay_ps, "ports": [{"name": format!("s{number}-eth1"), "number": 1}]})
        };
        let network = json!({"nodes": [switch(1), switch(2)], "links": [
            {"a": {"node": "s1", "port": 0}, "b": {"node": "s2", "port": 0}}]});
        let spec = NetworkSpec::from_json(&network).unwrap();
        Self { lab: VirtualLab::new(spec, std::sync::Arc::new(twinnet_lab::capture::NoFiles)).unwrap() }
    }

    fn ask(&mut self, body: Value) -> Value {
        self.lab.request(Request::read(body).unwrap(), &mut || false).unwrap().into_json()
    }

    fn open(&mut self, switch: &str) -> u64 {
        self.ask(json!({"do": "controller.open", "switch": switch, "target": "tcp:a"}))["connection"].as_u64().unwrap()
    }

    /// Lets time pass up to `until_ps`; says when controllers were to be told something, and what.
    fn advance(&mut self, until_ps: u64) -> (u64, Vec<ControlMessage>) {
        let answer = self.ask(json!({"do": "advance", "until_ps": until_ps}));
        (answer["now_ps"].as_u64().unwrap(), self.lab.take_control())
    }
}

#[test]
fn a_question_and_its_answer_take_the_delay_twice() {
    let mut bench = Bench::new(2 * MS);
    let connection = bench.open("s1");
    let (now, messages) = bench.advance(10 * MS);
    assert_eq!((now, messages.len()), (2 * MS, 1), "the switch's hello has come");
    bench.lab.give_control(connection, &HELLO).unwrap();
    bench.lab.give_control(connection, &BARRIER).unwrap();
    let (now, messages) = bench.advance(10 * MS);
    assert_eq!(now, 6 * MS);
    assert_eq!(messages[0].bytes, BARRIER_REPLY);
    assert_eq!(bench.advance(10 * MS), (10 * MS, Vec::new()));
}

#[test]
fn without_a_delay_no_time_passes_between_question_and_answer() {
    let mut bench = Bench::new(0);
    let connection = bench.open("s1");
    let (now, messages) = bench.advance(10 * MS);
    assert_eq!((now, messages.len()), (0, 1));
    bench.lab.give_control(connection, &HELLO).unwrap();
    bench.lab.give_control(connection, &BARRIER).unwrap();
    let (now, messages) = bench.advance(10 * MS);
    assert_eq!(now, 0);
    assert_eq!(messages[0].bytes, BARRIER_REPLY);
}

#[test]
fn what_several_switches_say_at_one_moment_comes_in_the_order_of_the_description() {
    let mut bench = Bench::new(MS);
    // The connections are made the other way round.
    let (second, first) = (bench.open("s2"), bench.open("s1"));
    let (now, messages) = bench.advance(10 * MS);
    assert_eq!(now, MS);
    assert_eq!(messages.iter().map(|message| message.connection).collect::<Vec<_>>(), [first, second]);
}

#[test]
fn a_controller_that_closes_is_gone_for_the_switch_after_the_delay() {
    let mut bench = Bench::new(MS);
    let connection = bench.open("s1");
    bench.advance(MS);
    bench.lab.give_control(connection, &HELLO).unwrap();
    bench.lab.give_control(connection, &BARRIER).unwrap();
    bench.advance(3 * MS);
    assert_eq!(bench.ask(json!({"do": "controllers"}))[0]["version"], "1.3");
    bench.ask(json!({"do": "controller.close", "connection": connection}));
    assert!(bench.lab.give_control(connection, &HELLO).unwrap_err().to_string().contains("no connection"));
    assert_eq!(bench.advance(10 * MS).0, 10 * MS);
}

#[test]
fn nonsense_ends_the_connection_and_says_why() {
    let mut bench = Bench::new(0);
    let connection = bench.open("s1");
    bench.advance(MS);
    bench.lab.give_control(connection, &[4, 0, 0, 3, 0, 0, 0, 0]).unwrap();
    let (_, messages) = bench.advance(MS);
    assert!(messages[0].ending.is_some(), "{messages:?}");
    assert_eq!(bench.ask(json!({"do": "controllers"})), json!([]));
}

#[test]
fn a_silent_controller_is_given_up_after_ten_seconds() {
    let mut bench = Bench::new(2 * MS);
    bench.open("s1");
    let mut ended = None;
    for _ in 0..10 {
        let (now, messages) = bench.advance(20_000 * MS);
        if let Some(message) = messages.iter().find(|message| message.ending.is_some()) {
            ended = Some((now, message.ending.clone()));
            break;
        }
    }
    let (now, _) = ended.expect("the connection ends");
    // It never said hello: after 5 s, and the delay until the other end hears of it.
    assert_eq!(now, 5_002 * MS);
}
