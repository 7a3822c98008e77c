//! A watchdog in real time: a guest that has the turn and does nothing with it.

use std::time::{Duration, Instant};

use crate::service::{ErrorName, LabError};

/// How long the guest has had the turn and neither said anything nor computed: it was stopped from outside, or waits
/// for a file of the machine that never comes.
pub struct Silence {
    patience: Duration,
    /// The moment of real time since which it has used so much processor time.
    since: Option<(Instant, Duration)>,
}

impl Silence {
    /// One that may last for `patience`.
    pub fn new(patience: Duration) -> Self {
        Self { patience, since: None }
    }

    /// The guest's time goes on.
    pub fn ends(&mut self) {
        self.since = None;
    }

    /// Returns `true` if it has lasted for too long; by now the guest has `computed` for so long.
    pub fn is_over(&mut self, computed: Duration) -> bool {
        match self.since {
            Some((since, before)) if before == computed => since.elapsed() >= self.patience,
            _ => {
                self.since = Some((Instant::now(), computed));
                false
            }
        }
    }

    /// What it is when it is over.
    pub fn error(&self) -> LabError {
        let message = format!(
            "the guest's kernel has stood still for {} s of real time: it has the turn, and it neither computes nor \
             answers",
            self.patience.as_secs()
        );
        let remedy = "it was stopped (kill -CONT lets it go on), or waits for a file system of the machine, such as \
                      one of the network: keep what programs read on a disk of this machine";
        LabError::new(ErrorName::GuestStands, message, remedy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_over_when_nothing_was_computed_for_the_whole_patience() {
        let (none, some) = (Duration::ZERO, Duration::from_millis(10));
        let mut silence = Silence::new(Duration::ZERO);
        assert!(!silence.is_over(none), "it has just begun");
        assert!(silence.is_over(none));
        assert!(!silence.is_over(some), "it has computed");
        assert!(silence.is_over(some));
        silence.ends();
        assert!(!silence.is_over(some), "its time has gone on");
        let mut patient = Silence::new(Duration::MAX);
        assert!(!patient.is_over(none) && !patient.is_over(none));
    }
}
