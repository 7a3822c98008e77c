//! The accounts of apps: moments and quantiles, intervals, loss and reordering, and the report that tells it.

pub(crate) mod arrivals;
pub(crate) mod bandwidth_report;
pub(crate) mod carrier;
pub(crate) mod clock_report;
pub(crate) mod column;
pub(crate) mod errors;
pub(crate) mod interval_orders;
pub(crate) mod interval_round_trips;
pub(crate) mod interval_times;
pub(crate) mod intervals;
pub(crate) mod length_histogram;
pub(crate) mod pacing;
pub(crate) mod receiver;
pub(crate) mod reordering_density;
pub(crate) mod report;
pub(crate) mod returns;
pub(crate) mod rtp_report;
pub(crate) mod samples;
pub(crate) mod sender;
pub(crate) mod sequence;
pub(crate) mod summary;
pub(crate) mod tcp_info;
pub(crate) mod video_report;
