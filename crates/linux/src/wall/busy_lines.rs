//! How busy the lines were: what a pause does to a queue depends on it.
//!
//! What a pause held up comes at once afterwards, and has to leave through a queue that goes on being filled. A line
//! that is busy for the share *u* of its time needs 1 / (1 - *u*) times the pause until its queue is as it would have
//! been, and all that leaves meanwhile is late. A line that drops what its queue has no room for knows no such time:
//! what comes late waits no longer than it would have, and one frame more is dropped. A line whose queue only grows
//! never makes up for the time that it lost. Only traffic that does not slow down by itself counts: see `inelastic.rs`.
//!
//! The share is that of the busiest tenth of a second, not of a second: what is sent can last for less than one, and
//! the queue that a pause fills is as old as the pause.
//!
//! A pause of the fabric holds up other frames on each line of a way whose delay is longer than the pause: those that
//! were to arrive meanwhile. So such lines count, too.

use std::collections::{HashMap, VecDeque};

use twinnet_fabric::{Fabric, PortId};
use twinnet_lab::Names;
use twinnet_units::{Duration, Time};

use crate::wall::inelastic::Inelastic;

/// The time over which a share is taken: of so many looks, each after a step.
const LOOKS: usize = 4;
const STEP: Duration = Duration::from_ms(25);
/// A line that is busy for more of its time always has a queue.
const SATURATED: f64 = 0.98;
/// A line that is busy for less of its time carries next to nothing, and keeps no pause.
const IDLE: f64 = 0.001;
/// Lines looked at in one turn of the loop, which each takes some ten nanoseconds.
const AT_ONCE: usize = 64;

/// What a line had sent at one moment, in bytes on the wire, and what its queue had dropped.
#[derive(Clone, Copy, Debug)]
struct Look {
    at: Time,
    wire_bytes: u64,
    /// At most as many of them were of inelastic traffic.
    inelastic_bytes: Option<u64>,
    drops: u64,
}

/// The last looks at a line, the oldest first, and how busy it was at most.
#[derive(Clone, Debug, Default)]
struct Looks {
    last: VecDeque<Look>,
    most_inelastic: f64,
    /// It was saturated, and dropped what it had no room for.
    overflowed: bool,
}

impl Looks {
    #[allow(clippy::cast_precision_loss)]
    fn add(&mut self, look: Look, rate_bps: u64) {
        if self.last.len() == LOOKS {
            if let Some(before) = self.last.pop_front() {
                let seconds = look.at.since(before.at).as_ps() as f64 / 1e12;
                let share = |bytes: u64| bytes as f64 * 8.0 / (rate_bps as f64 * seconds);
                let all = share(look.wire_bytes.saturating_sub(before.wire_bytes));
                let inelastic = look.inelastic_bytes.zip(before.inelastic_bytes);
                let inelastic = inelastic.map_or(all, |(now, before)| share(now.saturating_sub(before)).min(all));
                self.most_inelastic = self.most_inelastic.max(inelastic);
                self.overflowed |= all > SATURATED && look.drops > before.drops;
            }
        }
        self.last.push_back(look);
    }
}

/// How busy each line was in its busiest tenth of a second since the record began.
#[derive(Clone, Debug, Default)]
pub struct BusyLines {
    lines: Vec<Looks>,
    /// The port that is next.
    next: usize,
    /// When its round began.
    begun: Time,
}

impl BusyLines {
    /// Looks at some lines, if it is time; called once a turn.
    #[inline]
    pub fn look(&mut self, fabric: &Fabric, ports: usize, inelastic: &Inelastic, now: Time) {
        if self.next == 0 {
            if !self.lines.is_empty() && now.since(self.begun) < STEP {
                return;
            }
            self.begun = now;
        }
        self.look_at_some(fabric, ports, inelastic, now);
    }

    fn look_at_some(&mut self, fabric: &Fabric, ports: usize, inelastic: &Inelastic, now: Time) {
        self.lines.resize(ports.max(1), Looks::default());
        let end = (self.next + AT_ONCE).min(ports);
        for port in self.next..end {
            let id = PortId(u32::try_from(port).unwrap_or(u32::MAX));
            if let Some((wire_bytes, drops, rate_bps)) = fabric.sent_at_rate(id) {
                let inelastic_bytes = inelastic.most_on_line(id, end_of_sure_line(fabric, id));
                let look = Look { at: now, wire_bytes, inelastic_bytes, drops };
                self.lines[port].add(look, rate_bps);
            }
        }
        self.next = if end >= ports { 0 } else { end };
    }

    /// The line that was busiest with inelastic traffic and did not overflow, by its port, and its share. One that
    /// overflowed once was saturated in those times, too, in which its traffic began or ended.
    pub(crate) fn busiest(&self) -> Option<(PortId, f64)> {
        let lines = (0..).map(PortId).zip(&self.lines);
        let kept = lines.filter(|(_, line)| !line.overflowed && line.most_inelastic >= IDLE);
        let shares = kept.map(|(port, line)| (port, line.most_inelastic));
        shares.max_by(|(_, one), (_, other)| one.total_cmp(other))
    }
}

/// The far end of the line from `port`, if all that it carries arrives there, and within a small part of a look.
fn end_of_sure_line(fabric: &Fabric, port: PortId) -> Option<PortId> {
    let (config, _) = fabric.direction_config(port)?;
    (config.impair.is_transparent() && config.delay_ps < LONG).then(|| fabric.far_end(port)).flatten()
}

/// Lines with a delay of at least this are long.
const LONG: Duration = Duration::from_ms(1);

/// Returns the long lines on the way between the two nodes with most of them between each other: exactly in a tree,
/// and at most that elsewhere.
pub(crate) fn long_lines(names: &Names, fabric: &Fabric) -> usize {
    let mut neighbours: HashMap<&str, Vec<(&str, usize)>> = HashMap::new();
    for ((a, b), (from_a, _)) in names.link_ends.iter().zip(&names.links) {
        let long = fabric.direction_config(*from_a).is_some_and(|(config, _)| config.delay_ps >= LONG);
        neighbours.entry(a).or_default().push((b, usize::from(long)));
        neighbours.entry(b).or_default().push((a, usize::from(long)));
    }
    let Some((first, _)) = names.link_ends.first() else { return 0 };
    let (one_end, _) = farthest(&neighbours, first);
    farthest(&neighbours, one_end).1
}

/// The node with most long lines on the way from `start`, and how many they are.
fn farthest<'a>(neighbours: &HashMap<&'a str, Vec<(&'a str, usize)>>, start: &'a str) -> (&'a str, usize) {
    let mut known = HashMap::from([(start, 0)]);
    let mut next = VecDeque::from([(start, 0)]);
    while let Some((node, distance)) = next.pop_front() {
        if known[node] < distance {
            continue;
        }
        for (neighbour, length) in neighbours.get(node).into_iter().flatten() {
            let through = distance + length;
            if known.get(neighbour).is_none_or(|distance| *distance > through) {
                known.insert(neighbour, through);
                if *length == 0 {
                    next.push_front((neighbour, through));
                } else {
                    next.push_back((neighbour, through));
                }
            }
        }
    }
    known.into_iter().max_by_key(|(_, distance)| *distance).unwrap_or((start, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The looks at a line of 8 Mbit/s, which sends `bytes` in each step and drops `drops` frames.
    fn looks(steps: &[(u64, u64)]) -> Looks {
        let (mut line, mut wire_bytes, mut dropped) = (Looks::default(), 0, 0);
        for (step, (bytes, drops)) in (0..).zip(steps) {
            wire_bytes += bytes;
            dropped += drops;
            let at = Time::ZERO + Duration::from_ms(25 * step);
            line.add(Look { at, wire_bytes, inelastic_bytes: Some(wire_bytes), drops: dropped }, 8_000_000);
        }
        line
    }

    #[test]
    fn a_burst_of_a_tenth_of_a_second_is_as_busy_as_it_is_and_not_as_the_second_around_it() {
        let mut steps = vec![(0, 0); 40];
        steps[10..14].fill((22_500, 0));
        assert!((looks(&steps).most_inelastic - 0.9).abs() < 1e-9);
    }

    #[test]
    fn a_line_that_is_full_counts_until_its_queue_overflows() {
        assert!(!looks(&[(25_000, 0); 20]).overflowed);
        let mut steps = [(25_000, 0); 20];
        steps[15].1 = 3;
        assert!(looks(&steps).overflowed);
        // Drops of a line with room, such as those of a policer, empty no queue.
        assert!(!looks(&[(20_000, 1); 20]).overflowed);
    }

    #[test]
    fn the_way_with_most_long_lines_is_found_round_a_short_one() {
        let mut neighbours: HashMap<&str, Vec<(&str, usize)>> = HashMap::new();
        // A short ring of four with a long line to a host at one, and two after each other at another.
        for (a, b, long) in [
            ("s1", "s2", 0),
            ("s2", "s3", 0),
            ("s3", "s4", 0),
            ("s4", "s1", 1),
            ("s1", "h1", 1),
            ("s4", "x", 1),
            ("x", "h2", 1),
        ] {
            neighbours.entry(a).or_default().push((b, long));
            neighbours.entry(b).or_default().push((a, long));
        }
        assert_eq!(farthest(&neighbours, "s2"), ("h2", 2));
        assert_eq!(farthest(&neighbours, "h2"), ("h1", 3));
    }
}
