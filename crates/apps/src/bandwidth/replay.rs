//! Recorded trains through any estimator, without a network.
//!
//! A record holds the trains that one prober sent. The estimator hears them in their order, whatever it would have
//! asked for: methods that take any train give the estimate of the same stamps, so that a comparison is paired; a
//! method that finds trains of a kind that it cannot use says so in its finding.

use super::ceiling::{self, Ceiling};
use super::estimator::{Finding, Probing, Step};
use super::method::Method;
use super::slots::{self, Slots};
use super::train::Train;
use crate::check::ConfigError;

/// Returns what `method` finds in `trains`. Trains whose stamps do not fit their plan are left out and told of.
///
/// # Errors
/// [`ConfigError`] when a setting of the method is out of range.
pub fn replay(method: &Method, probing: Probing, trains: &[Train]) -> Result<Finding, ConfigError> {
    method.validate()?;
    let mut estimator = method.build(probing);
    let (mut broken, mut slots, mut ceiling) = (0, Slots::default(), Ceiling::default());
    let hinder = |slots: &Slots| slots.are_seen() && !method.is_for_slots();
    for train in trains {
        if hinder(&slots) || estimator.next() == Step::Done {
            break;
        }
        if train.is_whole() {
            slots.hear(train);
            ceiling.hear(train, probing.framing);
            estimator.hear(train);
        } else {
            broken += 1;
        }
    }
    let mut finding = if hinder(&slots) { slots::finding(method) } else { estimator.finding() };
    finding = ceiling::judged(finding, method, &ceiling, probing.most_rate_bps);
    if broken > 0 {
        finding.notes.push(format!("{broken} trains of the record have stamps that do not fit their plan"));
    }
    Ok(finding)
}
