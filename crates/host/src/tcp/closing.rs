//! The end of a connection: in order from either side or both at once, by a reset, by a failure (RFC 9293, 3.6 and
//! 3.10.7.4).

use twinnet_packet::tcp::Flags;
use twinnet_units::Time;

use super::config::Failure;
use super::connection::{Connection, State};
use super::handshake::header_bytes;
use super::segment::Segment;

/// Least MTU of a path that is believed: Linux's `min_pmtu`, and RFC 8200's.
const LEAST_PATH_MTU_V4: u32 = 552;
const LEAST_PATH_MTU_V6: u32 = 1280;

impl Connection {
    /// Our FIN has left for the first time.
    pub(super) fn fin_sent(&mut self, _now: Time) {
        self.state = match self.state {
            State::Established => State::FinWait1,
            State::CloseWait => State::LastAck,
            other => other,
        };
    }

    /// Something was acknowledged: perhaps our FIN.
    pub(super) fn after_acknowledgement(&mut self, now: Time) {
        if self.send.fin.is_none_or(|fin| self.send.unacknowledged <= fin) {
            return;
        }
        match self.state {
            State::FinWait1 => {
                self.state = State::FinWait2;
                if self.abandoned {
                    self.timers.wait_in_state(now);
                }
            }
            State::Closing => self.enter_time_wait(now),
            State::LastAck => self.end(now),
            _ => {}
        }
    }

    /// The peer's FIN was taken in.
    pub(super) fn peer_finished(&mut self, now: Time) {
        match self.state {
            State::Established => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => self.enter_time_wait(now),
            _ => {}
        }
    }

    /// In TIME-WAIT a FIN that comes again begins the wait anew.
    pub(super) fn restart_time_wait(&mut self, segment: &Segment<'_>, now: Time) {
        if self.state == State::TimeWait && segment.flags.has(Flags::FIN) {
            self.timers.wait_in_state(now);
        }
    }

    /// It is over, without a failure.
    pub(super) fn end(&mut self, _now: Time) {
        self.state = State::Closed;
        self.sent.clear();
        self.outgoing.release(u64::MAX);
        self.timers.stop_all();
        self.conclude();
    }

    /// Ends by a reset.
    pub(super) fn abort(&mut self, _now: Time) {
        if self.state != State::SynSent {
            self.reset = Some((self.send.next as u32, Some(self.incoming.next() as u32)));
        }
        self.state = State::Closed;
        self.sent.clear();
        self.outgoing.release(u64::MAX);
        self.incoming.clear();
        self.timers.stop_all();
        self.conclude();
    }

    /// It has failed.
    pub(super) fn fail(&mut self, failure: Failure) {
        self.failure = Some(failure);
        if !self.abandoned {
            self.signals.failed = Some(failure);
        }
        self.state = State::Closed;
        self.sent.clear();
        self.outgoing.release(u64::MAX);
        self.timers.stop_all();
        self.conclude();
    }

    /// Says that nothing is left to do, when that is so: what the owner has not read keeps a connection that ended
    /// well.
    pub(super) fn conclude(&mut self) {
        let read = self.finished_by_peer && self.incoming.unread() == 0;
        let opened = self.handshake.peer_known;
        if self.state == State::Closed
            && self.reset.is_none()
            && (self.abandoned || self.failure.is_some() || read || !opened)
        {
            self.signals.gone = true;
        }
    }

    /// ICMP said that the peer cannot be reached: ends an attempt to connect; an established connection goes on
    /// (RFC 1122, 4.2.3.9).
    pub fn unreachable(&mut self, _now: Time) {
        if matches!(self.state, State::SynSent | State::SynReceived) {
            self.fail(Failure::Unreachable);
        }
    }

    /// ICMP said that packets of more than `mtu` bytes do not pass (RFC 1191, RFC 8201).
    pub fn packet_too_big(&mut self, mtu: u32, now: Time) {
        let least = if self.local.is_ipv4() { LEAST_PATH_MTU_V4 } else { LEAST_PATH_MTU_V6 };
        let mtu = mtu.max(least);
        if mtu >= self.mtu || mtu <= header_bytes(self.local) {
            return;
        }
        self.mtu = mtu;
        self.fit_segments();
        if self.state.is_synchronised() {
            self.resend_oversized(now);
        }
    }
}
