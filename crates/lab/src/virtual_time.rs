//! The order in which fabric and guest take turns on the virtual clock.
//!
//! A guest counts nanoseconds and the fabric picoseconds. What happens in the fabric within a nanosecond of the guest's
//! reaches it at that nanosecond's end. At one moment the fabric's events come first: a guest's timers find what has
//! arrived, as those of model hosts do (`fabric/src/event.rs`).

use twinnet_fabric::Fabric;
use twinnet_units::Time;

use super::error::LabError;
use super::guest::Turn;
use super::virtual_lab::Outside;

/// Picoseconds in a guest's shortest time.
const NANOSECOND_PS: u64 = 1000;
/// Turns between two looks at whether the owner wants to pause: one of a guest takes longer than an event.
const TURNS: usize = 512;

/// Handles at most `most` turns of the fabric and of the guest until `until`, and none past the moment at which the
/// lab's owner is to do something; returns whether any due one is left.
///
/// # Errors
/// As [`crate::guest::Guest::resume`].
pub(super) fn pass(fabric: &mut Fabric, outside: &mut Outside, until: Time, most: usize) -> Result<bool, LabError> {
    let Some(hosts) = &mut outside.hosts else { return Ok(fabric.advance_some(until, most, outside)) };
    hosts.guest.begins();
    let passed = take_turns(fabric, outside, until, most.min(TURNS));
    if let Some(hosts) = &mut outside.hosts {
        hosts.guest.rests();
    }
    passed
}

/// As [`pass`], where there is a guest.
fn take_turns(fabric: &mut Fabric, outside: &mut Outside, until: Time, most: usize) -> Result<bool, LabError> {
    for _ in 0..most {
        match step(fabric, outside, until)? {
            Step::Went => {}
            Step::Holds => return Ok(true),
            Step::Done => return Ok(false),
        }
    }
    Ok(true)
}

enum Step {
    /// There may be more to do.
    Went,
    /// The owner is to look, or the guest is still at work.
    Holds,
    /// Nothing more is due.
    Done,
}

fn step(fabric: &mut Fabric, outside: &mut Outside, until: Time) -> Result<Step, LabError> {
    let Some(hosts) = &mut outside.hosts else { return Ok(Step::Done) };
    if hosts.has_turn {
        return turn(fabric, outside, fabric.now(), until);
    }
    hosts.settle(nanosecond(fabric.now()))?;
    if fabric.controllers_are_due() || hosts.guest.has_news() {
        return Ok(Step::Holds);
    }
    let next = fabric.next_event();
    if let Some(wanted) = hosts.guest.wants() {
        if wanted <= until && next.is_none_or(|next| wanted < next) {
            // Nothing happens in the fabric until then. Who asks what time it is between two turns is to hear it.
            fabric.advance(wanted, outside);
            return turn(fabric, outside, wanted, until);
        }
    }
    if next.is_none_or(|next| next > until) {
        fabric.advance(until, outside);
        return Ok(Step::Done);
    }
    let moment = nanosecond(next.unwrap_or(until)).min(until);
    while fabric.advance_some(moment, usize::MAX, outside) && !fabric.controllers_are_due() {}
    Ok(Step::Went)
}

/// Gives the guest the turn at `at`, or lets it go on.
fn turn(fabric: &mut Fabric, outside: &mut Outside, at: Time, until: Time) -> Result<Step, LabError> {
    let next = fabric.next_event();
    let Some(hosts) = &mut outside.hosts else { return Ok(Step::Done) };
    match hosts.guest.resume(at, next.map_or(until, |next| next.min(until)))? {
        Turn::Goes => {
            hosts.has_turn = true;
            Ok(Step::Holds)
        }
        Turn::Waits => {
            hosts.has_turn = false;
            if hosts.guest.has_news() {
                // The lab's owner hears of it at its moment.
                let reached = hosts.guest.reached().min(until);
                fabric.advance(reached, outside);
            }
            Ok(Step::Went)
        }
        Turn::Sends { port, at } => {
            hosts.has_turn = true;
            if let Some(port) = hosts.port(port) {
                fabric.advance(at, outside);
                outside.set(at);
                while fabric.readable(port, outside) {}
            }
            Ok(Step::Went)
        }
    }
}

/// The end of the nanosecond in which `at` is.
fn nanosecond(at: Time) -> Time {
    Time::from_ps(at.as_ps().div_ceil(NANOSECOND_PS).saturating_mul(NANOSECOND_PS))
}
