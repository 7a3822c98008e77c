//! The times at which a connection wants to be called, and what it does then.

use twinnet_units::{Duration, Time};

use super::config::Failure;
use super::connection::{Connection, State};
use super::round_trip::{LEAST_TIMEOUT, LONGEST_TIMEOUT};

/// The time that TIME-WAIT lasts, and FIN-WAIT-2 once the owner has gone (`TCP_TIMEWAIT_LEN`, `tcp_fin_timeout`).
const WAIT_IN_STATE: Duration = Duration::from_secs(60);
/// The time that 15 timeouts with back-off from 200 ms take (`tcp_retries2`): so long nothing may be acknowledged.
const LONGEST_SILENCE: Duration = Duration::from_ms(924_600);
/// The time that 8 take (`tcp_orphan_retries`): so long once the owner has gone.
const LONGEST_SILENCE_ABANDONED: Duration = Duration::from_ms(102_200);
/// Probes of a shut window that may stay unanswered (`tcp_retries2`, `tcp_orphan_retries`).
const WINDOW_PROBES: u32 = 15;
const WINDOW_PROBES_ABANDONED: u32 = 8;
/// The time until the timeout is tried again when all that it is about has not left the host
/// (`TCP_RESOURCE_PROBE_INTERVAL`).
const RETRY_IN_HOST: Duration = Duration::from_ms(500);

/// The purpose of the transmission timer: one at a time, as in Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimerKind {
    /// Retransmission.
    Timeout,
    /// A probe for the loss of a tail.
    TailProbe,
    /// The end of the reordering window.
    Reordering,
    /// A probe of a shut window.
    WindowProbe,
}

/// The timers that no other part keeps.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timers {
    pub handshake: Option<Time>,
    transmission: Option<(TimerKind, Time)>,
    state: Option<Time>,
    /// The time when data last left.
    pub idle_since: Time,
    /// The window has been restarted since then.
    pub restarted: bool,
    /// The first timeout since something was last acknowledged.
    pub silent_since: Option<Time>,
    pub window_probe_wanted: bool,
    /// Probes without an answer, and doublings of their interval.
    pub window_probes: u32,
    window_probe_doublings: u32,
    pub challenged_at: Option<Time>,
}

impl Timers {
    /// Sets the transmission timer, in place of what it was set for.
    pub fn set(&mut self, kind: TimerKind, at: Time) {
        self.transmission = Some((kind, at));
    }

    /// Returns what the transmission timer is set for.
    pub fn kind(&self) -> Option<TimerKind> {
        self.transmission.map(|(kind, _)| kind)
    }

    /// Stops the transmission timer.
    pub fn stop(&mut self) {
        self.transmission = None;
    }

    /// The state that was just reached ends by itself.
    pub fn wait_in_state(&mut self, now: Time) {
        self.state = Some(now + WAIT_IN_STATE);
    }

    /// Stops everything.
    pub fn stop_all(&mut self) {
        *self = Self { idle_since: self.idle_since, ..Self::default() };
    }
}

impl Connection {
    /// Returns the time when [`Connection::timer`] is wanted.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        let transmission = self.timers.transmission.map(|(_, at)| at);
        let pacing = self.departures_resume();
        let all = [self.timers.handshake, transmission, self.timers.state, self.acks.deadline(), pacing];
        all.into_iter().flatten().min()
    }

    /// Its deadline has come.
    pub fn timer(&mut self, now: Time) {
        self.tell_time(now);
        let due = |at: Option<Time>| at.is_some_and(|at| at <= now);
        if due(self.timers.handshake) {
            self.timers.handshake = None;
            self.handshake_timer(now);
        }
        if due(self.timers.state) {
            self.timers.state = None;
            self.end(now);
        }
        self.acks.timer(self.round_trip.timeout(), now);
        if let Some((kind, _)) = self.timers.transmission.filter(|(_, at)| *at <= now) {
            self.timers.transmission = None;
            match kind {
                TimerKind::Timeout => self.timeout(now),
                TimerKind::TailProbe => self.tail_probe_timer(now),
                TimerKind::Reordering => self.reordering_timer(now),
                TimerKind::WindowProbe => self.window_probe_timer(now),
            }
            self.sent.settle();
            self.update_pace();
        }
    }

    /// The retransmission timer (RFC 6298, 5.4 to 5.6).
    fn timeout(&mut self, now: Time) {
        if self.sent.outstanding() == 0 {
            return;
        }
        let silent = now - *self.timers.silent_since.get_or_insert(now);
        if silent >= if self.abandoned { LONGEST_SILENCE_ABANDONED } else { LONGEST_SILENCE } {
            self.fail(Failure::TimedOut);
            return;
        }
        if self.all_waits_in_host() {
            // A slow interface: nothing can be lost yet.
            self.timers.set(TimerKind::Timeout, now + self.round_trip.timeout().min(RETRY_IN_HOST));
            return;
        }
        self.enter_loss(now);
        self.recovery.timeouts += 1;
        self.round_trip.back_off();
        self.timers.set(TimerKind::Timeout, now + self.round_trip.timeout());
    }

    /// Sets the retransmission timer for what is outstanding, or stops it (RFC 6298, 5.1 to 5.3). When it takes the
    /// place of a timer that came before it, the time since the oldest segment was sent counts.
    pub(super) fn rearm_timeout(&mut self, now: Time) {
        let Some(first) = self.sent.first() else {
            self.timers.stop();
            return;
        };
        let timeout = self.round_trip.timeout();
        let replaces = matches!(self.timers.kind(), Some(TimerKind::TailProbe | TimerKind::Reordering));
        let at = if replaces { (first.sent_at + timeout).max(now + Duration::from_us(1)) } else { now + timeout };
        self.timers.set(TimerKind::Timeout, at);
    }

    /// The timer after an acknowledgement that advanced.
    pub(super) fn set_transmission_timer(&mut self, now: Time) {
        if !self.schedule_tail_probe(true, now) {
            self.timers.stop();
            self.rearm_timeout(now);
        }
    }

    /// Starts to probe a window that is shut for what waits, when nothing in flight would tell of its opening;
    /// stops once it is open.
    pub(super) fn keep_probing_window(&mut self, now: Time) {
        if !self.state.is_synchronised() {
            return;
        }
        let shut = self.sent.outstanding() == 0 && self.is_window_shut();
        let probing = self.timers.kind() == Some(TimerKind::WindowProbe);
        if shut && self.timers.transmission.is_none() {
            let wait = self.window_probe_interval();
            self.timers.set(TimerKind::WindowProbe, now + wait);
        } else if !shut && probing {
            self.timers.stop();
        }
        if !shut {
            self.timers.window_probe_wanted = false;
            self.timers.window_probe_doublings = 0;
        }
    }

    fn window_probe_interval(&self) -> Duration {
        let base = self.round_trip.timeout().max(LEAST_TIMEOUT).as_ps();
        Duration::from_ps(base.saturating_mul(1 << self.timers.window_probe_doublings.min(16))).min(LONGEST_TIMEOUT)
    }

    /// The persist timer (RFC 9293, 3.8.6.1): goes on as long as the peer answers.
    fn window_probe_timer(&mut self, now: Time) {
        if self.sent.outstanding() > 0 || !self.is_window_shut() {
            return;
        }
        if self.timers.window_probes >= if self.abandoned { WINDOW_PROBES_ABANDONED } else { WINDOW_PROBES } {
            self.fail(Failure::TimedOut);
            return;
        }
        self.timers.window_probes += 1;
        self.timers.window_probe_doublings += 1;
        self.timers.window_probe_wanted = true;
        let wait = self.window_probe_interval();
        self.timers.set(TimerKind::WindowProbe, now + wait);
    }

    /// Sending begins after a pause: the window is no longer known to fit (RFC 9293, 3.8.6.2 and RFC 5681, 4.1).
    pub(super) fn restart_after_idle(&mut self, now: Time) {
        let idle = now - self.timers.idle_since;
        let timeout = self.round_trip.timeout();
        let waits = self.outgoing.end() > self.send.next;
        if self.state.may_send() && self.sent.outstanding() == 0 && !waits && idle > timeout && !self.timers.restarted {
            if !self.congestion.rules_recovery() {
                self.congestion.restarted(idle, timeout, now);
                self.update_pace();
            }
            self.timers.restarted = true;
        }
    }

    /// In TIME-WAIT it begins anew (RFC 9293, 3.10.7.4).
    pub(super) fn enter_time_wait(&mut self, now: Time) {
        self.state = State::TimeWait;
        self.timers.stop();
        self.timers.wait_in_state(now);
    }
}
