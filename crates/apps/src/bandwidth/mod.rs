//! Available bandwidth: estimators, and the apps that probe for them and listen.
//!
//! Available bandwidth of a path over a time is the least, over its links, of capacity less traffic. An
//! [`estimator::Estimator`] says which train of packets to send and hears when each was sent and arrived; [`prober`]
//! sends them and asks [`listener`] for the arrivals. A new method is a file with an `Estimator` and a line in
//! [`method`].

#[cfg(test)]
mod accuracy_tests;
pub(crate) mod assolo;
mod ceiling;
mod chirp;
#[cfg(test)]
mod conversation_tests;
#[cfg(test)]
mod counters_tests;
pub(crate) mod estimator;
mod excursions;
pub(crate) mod framing;
mod hinge;
mod hybrid;
mod kalman;
pub(crate) mod listener;
pub(crate) mod message;
pub(crate) mod method;
#[cfg(test)]
mod model_path;
mod other_links;
pub(crate) mod own;
mod pathchirp;
mod pathload;
#[cfg(test)]
mod pathload_tests;
pub(crate) mod prober;
pub(crate) mod prober_config;
pub(crate) mod replay;
mod slots;
mod slotted;
#[cfg(test)]
mod slotted_tests;
mod spruce;
mod stab;
mod student;
pub(crate) mod train;
mod trend;
mod turning_point;
mod yaz;
