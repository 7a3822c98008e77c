//! Datagrams that came back: a host or router on the way said by ICMP that they reached nobody.

use std::net::SocketAddr;

use twinnet_units::Time;

use crate::account::errors::ErrorTally;
use crate::HostError;

/// When the first and the last datagram of a source came back.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Returns {
    between: Option<(Time, Time)>,
}

impl Returns {
    /// Enters in `errors` that `datagrams` to `to` came back at `now` because of `error`.
    pub fn add(&mut self, now: Time, to: SocketAddr, error: HostError, datagrams: u64, errors: &mut ErrorTally) {
        let told = match error {
            HostError::Refused => format!("nobody listened at {to}: a datagram came back"),
            error => format!("a datagram to {to} came back: {error}"),
        };
        errors.add_many(told, datagrams);
        self.between = Some((self.between.map_or(now, |(first, _)| first), now));
    }

    /// Returns when they came back, counted from `start`; `None` if none did.
    pub fn told(self, start: Option<Time>) -> Option<String> {
        let ((first, last), start) = self.between.zip(start)?;
        let seconds = |at: Time| at.since(start).as_secs_f64();
        Some(format!("datagrams came back between {:.3} s and {:.3} s after the start", seconds(first), seconds(last)))
    }
}
