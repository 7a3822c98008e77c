//! For how long the programs of a lab were held, by what looks at them found.

use std::time::{Duration, Instant};

use serde_json::{json, Value};

use super::programs::{name_of, Holder, Look};

/// For so long after a program is found to be held its end is looked for more often.
const SHORT: Duration = Duration::from_millis(200);

/// The times for which some program was held, since a moment.
///
/// A look that finds a held thread says nothing of when that began. The longest time is the most that it may have been:
/// from the look before it to the one that finds no thread held. The sum, of many such times, is from the look that
/// finds it. What a control group counts itself is exact.
#[derive(Debug)]
pub(super) struct Holds {
    at: Instant,
    before: Option<(i32, Holder)>,
    frozen_before: std::collections::HashMap<String, (Duration, i32)>,
    total: Duration,
    /// The time that is not over, and the longest.
    running: Duration,
    longest: Duration,
    /// Of the longest.
    program: String,
    by: Option<Holder>,
}

impl Holds {
    /// Begins with what `look` found at `now`.
    pub(super) fn begin(look: Option<&Look>, now: Instant) -> Self {
        Self {
            at: now,
            before: look.and_then(|look| look.held),
            frozen_before: look.map(|look| look.frozen.clone()).unwrap_or_default(),
            total: Duration::ZERO,
            running: Duration::ZERO,
            longest: Duration::ZERO,
            program: String::new(),
            by: None,
        }
    }

    /// Returns `true` if a program is held since a short time ago.
    pub(super) fn have_just_begun(&self) -> bool {
        self.before.is_some() && self.running < SHORT
    }

    /// Counts what `look` found at `now`.
    pub(super) fn enter(&mut self, look: &Look, now: Instant) {
        let window = now.saturating_duration_since(self.at);
        self.at = now;
        let frozen = self.frozen_since(look);
        self.frozen_before.clone_from(&look.frozen);
        let found = std::mem::replace(&mut self.before, look.held);
        let held = look.held.or(found).map(|(thread, by)| (window, thread, by));
        let counted = frozen.map(|(time, process)| (time.min(window), process, Holder::Group));
        let Some((time, thread, by)) = held.or(counted) else {
            self.running = Duration::ZERO;
            return;
        };
        if found.is_some() || held.is_none() {
            self.total += time;
        }
        self.running += time;
        if self.running >= self.longest {
            self.longest = self.running;
            let name = name_of(thread);
            // Who was held may have ended since.
            if !name.is_empty() || self.by != Some(by) {
                self.program = name;
            }
            self.by = Some(by);
        }
    }

    /// The longest time for which a group was frozen since the look before, and a process of it.
    fn frozen_since(&self, look: &Look) -> Option<(Duration, i32)> {
        let grown = look.frozen.iter().map(|(group, (frozen, process))| {
            let before = self.frozen_before.get(group).map_or(Duration::ZERO, |(before, _)| *before);
            (frozen.saturating_sub(before), *process)
        });
        grown.max().filter(|(time, _)| *time > Duration::ZERO)
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "total_s": self.total.as_secs_f64(), "longest_s": self.longest.as_secs_f64(), "program": self.program,
            "by": self.by.map_or("", Holder::name),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(held: Option<Holder>, frozen_ms: u64) -> Look {
        let frozen = [("/a".to_owned(), (Duration::from_millis(frozen_ms), 2))].into();
        Look { held: held.map(|by| (-1, by)), frozen, ..Look::default() }
    }

    fn entered(looks: &[Look]) -> Holds {
        let begin = Instant::now();
        let mut holds = Holds::begin(Some(&look(None, 7)), begin);
        for (number, look) in looks.iter().enumerate() {
            holds.enter(look, begin + Duration::from_millis(50 * (number as u64 + 1)));
        }
        holds
    }

    #[test]
    fn programs_that_nothing_holds_are_told_with_no_time() {
        let told = entered(&[look(None, 7), look(None, 7)]).to_json();
        assert_eq!(told, json!({"total_s": 0.0, "longest_s": 0.0, "program": "", "by": ""}));
    }

    #[test]
    fn a_thread_that_two_looks_find_stopped_was_so_from_the_look_before_to_the_look_after() {
        let tracer = Some(Holder::Tracer);
        let told = entered(&[look(tracer, 7), look(tracer, 7), look(None, 7), look(None, 7)]).to_json();
        assert_eq!((&told["longest_s"], &told["total_s"]), (&json!(0.15), &json!(0.1)));
        assert_eq!(told["by"], json!("tracer"));
    }

    #[test]
    fn looks_come_soon_while_a_program_is_held_for_a_short_time() {
        let tracer = || look(Some(Holder::Tracer), 7);
        assert!(!entered(&[look(None, 7)]).have_just_begun());
        assert!(entered(&[tracer(), tracer()]).have_just_begun());
        assert!(!entered(&[tracer(), look(None, 7)]).have_just_begun());
        assert!(!entered(&[tracer(), tracer(), tracer(), tracer()]).have_just_begun());
    }

    #[test]
    fn what_a_control_group_counts_is_exact_and_times_apart_are_not_one() {
        let told = entered(&[look(None, 12), look(None, 12), look(None, 40), look(None, 60)]).to_json();
        assert_eq!((&told["total_s"], &told["longest_s"]), (&json!(0.053), &json!(0.048)));
        assert_eq!(told["by"], json!("frozen"));
    }
}
