//! The lab on the virtual clock with a guest, which is a script here: who has the turn when, and what the trace covers.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use serde_json::{json, Value};
use twinnet_lab::capture::{CaptureFile, CaptureStore};
use twinnet_lab::guest::{Guest, News, ProgramOrder, Turn};
use twinnet_lab::network::NetworkSpec;
use twinnet_lab::protocol::Request;
use twinnet_lab::{LabError, VirtualLab};
use twinnet_packet::Frame;
use twinnet_units::Time;

struct NoFiles;

impl CaptureStore for NoFiles {
    fn open(&self, _name: &str) -> std::io::Result<Box<dyn CaptureFile>> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    fn remove(&self, _name: &str) -> std::io::Result<()> {
        Ok(())
    }
}

/// One file in memory, of so many bytes.
#[derive(Clone)]
struct Memory(Arc<Mutex<Vec<u8>>>, usize);

impl std::io::Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut kept = self.0.lock().unwrap();
        if kept.len() + bytes.len() > self.1 {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        kept.extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl CaptureFile for Memory {
    fn cut(&mut self, _length: u64) -> std::io::Result<()> {
        Ok(())
    }
}

impl CaptureStore for Memory {
    fn open(&self, _name: &str) -> std::io::Result<Box<dyn CaptureFile>> {
        Ok(Box::new(self.clone()))
    }

    fn remove(&self, _name: &str) -> std::io::Result<()> {
        Ok(())
    }
}

/// What the guest saw: times in nanoseconds.
type Log = Arc<Mutex<Vec<(u64, &'static str, usize)>>>;

/// A guest that sends frames at given moments, and answers each frame that comes in by another.
struct Echo {
    log: Log,
    /// Moments in nanoseconds and interfaces.
    to_send: VecDeque<(u64, usize)>,
    on_the_line: [Option<Frame>; 2],
    came: VecDeque<usize>,
    answers: u32,
    now: Time,
    news: Vec<News>,
}

impl Echo {
    fn note(&self, what: &'static str, port: usize) {
        self.log.lock().unwrap().push((self.now.as_ns(), what, port));
    }
}

impl Guest for Echo {
    fn wants(&self) -> Option<Time> {
        if !self.came.is_empty() {
            return Some(self.now);
        }
        self.to_send.front().map(|(at, _)| Time::from_ns(*at))
    }

    fn reached(&self) -> Time {
        self.now
    }

    fn resume(&mut self, at: Time, until: Time) -> Result<Turn, LabError> {
        self.now = self.now.max(at);
        assert!(until > at || until == Time::from_ns(1_000_000_000), "a turn that ends before it begins");
        if let Some(port) = self.came.pop_front() {
            if self.answers > 0 {
                self.answers -= 1;
                self.on_the_line[port] = Some(Frame::new(vec![7; 1000]));
                return Ok(Turn::Sends { port, at: self.now });
            }
            return Ok(Turn::Waits);
        }
        let Some((at, port)) = self.to_send.front().copied().filter(|(at, _)| Time::from_ns(*at) < until) else {
            return Ok(Turn::Waits);
        };
        self.to_send.pop_front();
        self.now = Time::from_ns(at);
        self.note("sends", port);
        self.on_the_line[port] = Some(Frame::new(vec![3; 500]));
        Ok(Turn::Sends { port, at: self.now })
    }

    fn settle(&mut self, at: Time) -> Result<(), LabError> {
        assert_eq!(at.as_ps() % 1000, 0, "a guest counts nanoseconds");
        assert!(at >= self.now, "time goes back");
        self.now = at;
        Ok(())
    }

    fn deliver(&mut self, port: usize, _frame: Box<Frame>) {
        self.came.push_back(port);
        self.log.lock().unwrap().push((0, "came", port));
    }

    fn pull(&mut self, port: usize) -> Option<Box<Frame>> {
        self.on_the_line[port].take().map(Box::new)
    }

    fn carrier(&mut self, port: usize, up: bool) {
        self.log.lock().unwrap().push((0, if up { "up" } else { "down" }, port));
    }

    fn order(&mut self, order: ProgramOrder) {
        if let ProgramOrder::Start(program) = order {
            self.news.push(News::Started { job: program.job, pid: 42 });
        }
    }

    fn take_news(&mut self) -> Vec<News> {
        std::mem::take(&mut self.news)
    }

    fn has_news(&self) -> bool {
        !self.news.is_empty()
    }
}

fn network(rate_bps: Value) -> NetworkSpec {
    let host = |name: &str, number: u8| {
        json!({"kind": "host", "name": name, "ports": [{"name": format!("{name}-eth0"),
               "mac": format!("00:00:00:00:00:0{number}"), "addresses": [format!("10.0.0.{number}/8")]}]})
    };
    let way = json!({"rate_bps": rate_bps, "delay_ps": 1_000_000_500_u64});
    NetworkSpec::from_json(&json!({"seed": 3, "nodes": [host("h1", 1), host("h2", 2)],
        "links": [{"a": {"node": "h1", "port": 0}, "b": {"node": "h2", "port": 0}, "ab": way, "ba": way}]}))
    .unwrap()
}

fn lab(answers: u32) -> (VirtualLab, Log) {
    lab_with(answers, Arc::new(NoFiles))
}

fn lab_with(answers: u32, files: Arc<dyn CaptureStore>) -> (VirtualLab, Log) {
    let log = Log::default();
    let echo = Echo {
        log: Arc::clone(&log),
        to_send: VecDeque::from([(0, 0), (5_000_000, 1)]),
        on_the_line: [None, None],
        came: VecDeque::new(),
        answers,
        now: Time::ZERO,
        news: Vec::new(),
    };
    let lab = VirtualLab::with_guest(network(json!(10_000_000)), files, |_| Ok(Box::new(echo)));
    (lab.unwrap(), log)
}

fn ask(lab: &mut VirtualLab, body: Value) -> Value {
    lab.request(Request::read(body).unwrap(), &mut || false).unwrap().into_json()
}

fn second(lab: &mut VirtualLab) -> Value {
    ask(lab, json!({"do": "advance", "until_ps": 1_000_000_000_000_u64}))
}

#[test]
fn a_guests_frames_take_the_time_of_the_line_and_its_answers_wait_for_it() {
    let (mut lab, log) = lab(1);
    let answer = second(&mut lab);
    assert_eq!(answer["now_ps"], json!(1_000_000_000_000_u64));
    let seen = log.lock().unwrap().clone();
    assert_eq!(seen.iter().filter(|(_, what, _)| *what == "came").count(), 3, "{seen:?}");
    // 0 ns: h1 sends. It is at h2 after 512 bytes at 10 Mbit/s and the delay; h2's answer is at h1 before h2 sends.
    let order: Vec<(&str, usize)> = seen.iter().map(|(_, what, port)| (*what, *port)).collect();
    assert_eq!(order, [("sends", 0), ("came", 1), ("came", 0), ("sends", 1), ("came", 0)]);
    let ports = ask(&mut lab, json!({"do": "ports"}));
    assert_eq!(ports[0]["counters"]["received_frames"], json!(2), "{ports}");
}

#[test]
fn the_trace_covers_the_bytes_of_frames_and_is_the_same_twice() {
    let trace = |answers| {
        let (mut lab, _) = lab(answers);
        second(&mut lab);
        ask(&mut lab, json!({"do": "fidelity"}))["trace_hash"].clone()
    };
    assert_eq!(trace(1), trace(1));
    assert_ne!(trace(1), trace(0));
}

#[test]
fn a_trace_that_is_written_tells_each_event_and_frame_and_changes_none() {
    let file = Memory(Arc::default(), 1 << 20);
    let (mut lab, _) = lab_with(1, Arc::new(file.clone()));
    lab.keep_trace("here").unwrap();
    ask(&mut lab, json!({"do": "spawn", "host": "h1", "argv": ["a b", "c"]}));
    lab.take_news();
    second(&mut lab);
    let hash = ask(&mut lab, json!({"do": "fidelity"}))["trace_hash"].clone();
    lab.end_trace().unwrap();
    let written = String::from_utf8(file.0.lock().unwrap().clone()).unwrap();
    let lines: Vec<&str> = written.lines().collect();
    assert_eq!(lines[..2], ["twinnet trace 1", r#"0 starts h1 1 ["a b","c"]"#]);
    let sent = "0 sends h1-eth0 500 ";
    assert!(lines[2].starts_with(sent) && lines[2].ends_with(&format!(" {}", "03".repeat(134))), "{}", lines[2]);
    // 512 bytes at 10 Mbit/s, and the delay.
    assert_eq!(lines[3], "1409600500 receives h2-eth0");
    let events: Vec<String> =
        lines[1..].iter().map(|line| line.split(' ').skip(1).take(2).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(
        events[1..],
        ["sends h1-eth0", "receives h2-eth0", "sends h2-eth0", "receives h1-eth0", "sends h2-eth0", "receives h1-eth0"]
    );
    let (mut without, _) = self::lab(1);
    ask(&mut without, json!({"do": "spawn", "host": "h1", "argv": ["a b", "c"]}));
    without.take_news();
    second(&mut without);
    assert_eq!(ask(&mut without, json!({"do": "fidelity"}))["trace_hash"], hash);
}

#[test]
fn a_trace_that_does_not_fit_is_told() {
    let (mut lab, _) = lab_with(1, Arc::new(Memory(Arc::default(), 10)));
    lab.keep_trace("here").unwrap();
    second(&mut lab);
    let refusal = lab.end_trace().unwrap_err();
    assert!(refusal.name == "TraceFailed" && refusal.message.contains("here"), "{refusal:?}");
    assert_eq!(self::lab(1).0.keep_trace("here").unwrap_err().name, "TraceFailed");
}

#[test]
fn news_of_programs_stop_time_until_they_are_taken() {
    let (mut lab, _) = lab(0);
    assert_eq!(ask(&mut lab, json!({"do": "spawn", "host": "h1", "argv": ["true"]}))["job"], json!(1));
    let answer = second(&mut lab);
    assert_eq!((&answer["programs"], &answer["now_ps"]), (&json!(true), &json!(0)));
    assert_eq!(lab.take_news(), [News::Started { job: 1, pid: 42 }]);
    assert_eq!(second(&mut lab)["now_ps"], json!(1_000_000_000_000_u64));
}

#[test]
fn what_a_lab_with_programs_cannot_do_is_refused_with_what_to_write() {
    let refusal = VirtualLab::with_guest(network(Value::Null), Arc::new(NoFiles), |_| panic!("no guest is made"));
    let refusal = refusal.err().unwrap();
    assert_eq!(
        (refusal.name.as_str(), refusal.remedy.as_str()),
        ("NoRate", "give it one, for example rate=\"1 Gbit\"")
    );
    let (mut lab, _) = lab(0);
    let mut refused = |body| lab.request(Request::read(body).unwrap(), &mut || false).unwrap_err();
    assert_eq!(refused(json!({"do": "spawn", "host": "h3", "argv": ["true"]})).name, "UnknownHost");
    assert_eq!(refused(json!({"do": "signal", "job": 9, "signal": 15})).name, "UnknownJob");
    assert_eq!(refused(json!({"do": "signal", "job": 1, "signal": 99})).name, "BadRequest");
}
