//! The buffer of a viewer: media comes in segments and leaves as time passes, unless playing stands still.

use twinnet_units::{Duration, Time};

use crate::account::video_report::{PlayedAt, VideoReport};

/// The media that has come, what was played, and the times it stood still. Told the time with each call; times never go
/// back.
#[derive(Clone, Debug)]
pub(super) struct Playback {
    ladder: Vec<u64>,
    segment: Duration,
    /// Media that must be there before playing begins, or goes on after standing still.
    needed: Duration,
    began: Time,
    /// The place in the ladder of each segment that has come.
    segments: Vec<u8>,
    /// Media that was played until `since`.
    played: Duration,
    /// The time when playing last began or was reckoned; nothing while it stands still.
    playing_since: Option<Time>,
    startup: Option<Duration>,
    stalls: u64,
    stalled: Duration,
    /// The time when it last stood still after it had begun.
    stalled_since: Option<Time>,
}

impl Playback {
    pub(super) fn new(ladder: Vec<u64>, segment: Duration, needed: Duration, began: Time) -> Self {
        Self {
            ladder,
            segment,
            needed,
            began,
            segments: Vec::new(),
            played: Duration::ZERO,
            playing_since: None,
            startup: None,
            stalls: 0,
            stalled: Duration::ZERO,
            stalled_since: None,
        }
    }

    fn arrived(&self) -> Duration {
        Duration::from_ps(self.segment.as_ps().saturating_mul(self.segments.len() as u64))
    }

    /// Media that waits to be played at `now`.
    pub(super) fn waiting(&mut self, now: Time) -> Duration {
        self.pass(now);
        Duration::from_ps(self.arrived().as_ps() - self.played.as_ps())
    }

    /// Plays until `now`, and notes when it began to stand still.
    fn pass(&mut self, now: Time) {
        let Some(since) = self.playing_since else { return };
        let left = self.arrived().as_ps() - self.played.as_ps();
        let passed = now.since(since).as_ps();
        if passed < left {
            self.played += Duration::from_ps(passed);
            self.playing_since = Some(now);
            return;
        }
        self.played = self.arrived();
        self.playing_since = None;
        self.stalled_since = Some(since + Duration::from_ps(left));
    }

    /// A segment of the place `rung` in the ladder has come whole.
    pub(super) fn add(&mut self, now: Time, rung: usize) {
        self.pass(now);
        self.segments.push(u8::try_from(rung).unwrap_or(u8::MAX));
        let waiting = self.arrived().as_ps() - self.played.as_ps();
        if self.playing_since.is_some() || waiting < self.needed.as_ps() {
            return;
        }
        if self.startup.is_none() {
            self.startup = Some(now.since(self.began));
        }
        if let Some(stood) = self.stalled_since.take() {
            // A segment that comes in the very moment in which the buffer runs out keeps it playing.
            let stalled = now.since(stood);
            if stalled > Duration::ZERO {
                self.stalls += 1;
                self.stalled += stalled;
            }
        }
        self.playing_since = Some(now);
    }

    /// Returns what the viewer had until `now`.
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn report(&self, now: Time) -> VideoReport {
        let mut at = self.clone();
        at.pass(now);
        if let Some(stood) = at.stalled_since.filter(|stood| *stood < now) {
            at.stalls += 1;
            at.stalled += now.since(stood);
        }
        let mut left = at.played.as_ps();
        let mut played_at: Vec<PlayedAt> =
            at.ladder.iter().map(|rate_bps| PlayedAt { rate_bps: *rate_bps, played_ps: 0 }).collect();
        for rung in &at.segments {
            let part = left.min(at.segment.as_ps());
            if let Some(played) = played_at.get_mut(usize::from(*rung)) {
                played.played_ps += part;
            }
            left -= part;
        }
        let bits: f64 = played_at.iter().map(|one| one.rate_bps as f64 * one.played_ps as f64).sum();
        VideoReport {
            played_ps: at.played.as_ps(),
            startup_ps: at.startup.map(Duration::as_ps),
            stalls: at.stalls,
            stalled_ps: at.stalled.as_ps(),
            switches: at.segments.windows(2).filter(|pair| pair[0] != pair[1]).count() as u64,
            rate_bps: (at.played > Duration::ZERO).then(|| bits / at.played.as_ps() as f64),
            played_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000_000;

    fn at(seconds: u64) -> Time {
        Time::from_ps(seconds * SECOND)
    }

    fn viewer(needed_s: u64) -> Playback {
        let ladder = vec![500_000, 1_000_000];
        Playback::new(ladder, Duration::from_secs(2), Duration::from_secs(needed_s), at(0))
    }

    #[test]
    fn media_that_comes_in_time_is_played_without_standing_still() {
        let mut viewer = viewer(2);
        for segment in 0..5 {
            viewer.add(at(1 + 2 * segment), usize::from(segment >= 2));
        }
        let report = viewer.report(at(11));
        assert_eq!((report.played_ps, report.startup_ps), (10 * SECOND, Some(SECOND)));
        assert_eq!((report.stalls, report.stalled_ps, report.switches), (0, 0, 1));
        // Two segments at 0.5 Mbit/s, three at 1 Mbit/s.
        assert_eq!(report.rate_bps, Some(800_000.0));
        assert_eq!((report.played_at[0].played_ps, report.played_at[1].played_ps), (4 * SECOND, 6 * SECOND));
    }

    #[test]
    fn it_stands_still_from_the_moment_the_buffer_is_empty_until_enough_has_come() {
        let mut viewer = viewer(4);
        viewer.add(at(1), 0);
        viewer.add(at(2), 0);
        assert_eq!(viewer.report(at(2)).startup_ps, Some(2 * SECOND));
        // Four seconds are played by 6; the next segment alone is not enough, the one after is.
        viewer.add(at(9), 0);
        viewer.add(at(10), 0);
        assert_eq!(viewer.waiting(at(11)), Duration::from_secs(3));
        let report = viewer.report(at(12));
        assert_eq!((report.stalls, report.stalled_ps, report.played_ps), (1, 4 * SECOND, 6 * SECOND));
        // A stall that lasts is told as far as it went.
        let report = viewer.report(at(20));
        assert_eq!((report.stalls, report.stalled_ps, report.played_ps), (2, (4 + 6) * SECOND, 8 * SECOND));
    }

    #[test]
    fn a_viewer_to_whom_nothing_came_has_played_nothing_and_not_stood_still() {
        let report = viewer(2).report(at(30));
        assert_eq!((report.played_ps, report.startup_ps, report.stalls, report.rate_bps), (0, None, 0, None));
    }
}
