//! The switch as a whole: what goes in, what comes out.

mod cached;
mod flows;
mod forwarding;
pub(crate) mod frames;
mod properties;
mod rewriting;
mod speed;
mod syntax;
mod syntax_round_trip;

use twinnet_packet::Frame;
use twinnet_units::{Duration, Time};

use super::{FailMode, Output, Switch, SwitchConfig, SwitchDrop};

/// A switch with ports 1 to 4.
fn switch(fail_mode: FailMode) -> Switch {
    let mut switch = Switch::new(SwitchConfig { dpid: 1, fail_mode, seed: 7 });
    for number in 1..=4 {
        switch.add_port(number, &format!("s1-eth{number}"), [0, 0, 0, 0, 1, number as u8]);
    }
    switch
}

/// A switch that drops what no flow matches, with these flows.
fn secure(flows: &[&str]) -> Switch {
    let mut switch = switch(FailMode::Secure);
    for line in flows {
        switch.add_flow(line, Time::ZERO).unwrap_or_else(|error| panic!("{line}: {error}"));
    }
    switch
}

pub(crate) fn at(seconds: u64) -> Time {
    Time::ZERO + Duration::from_secs(seconds)
}

pub(crate) fn send_at(switch: &mut Switch, in_port: u32, frame: &Frame, now: Time) -> Vec<Output> {
    let mut out = Vec::new();
    switch.receive(in_port, Box::new(frame.clone()), now, &mut out);
    out
}

fn send(switch: &mut Switch, in_port: u32, frame: &Frame) -> Vec<Output> {
    send_at(switch, in_port, frame, Time::ZERO)
}

/// The ports that a frame leaves by.
pub(crate) fn ports(outputs: &[Output]) -> Vec<u32> {
    outputs.iter().map(|output| output.port).collect()
}

fn drops(switch: &Switch, reason: SwitchDrop) -> u64 {
    switch.counters().drops.get(&reason).copied().unwrap_or(0)
}
