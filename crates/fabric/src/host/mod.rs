//! The model host: a state machine with interfaces, a TCP/IP stack and apps, in place of a network namespace.
//!
//! The engine hands it frames and the time and takes frames from it one by one, when a serialiser is idle: what waits, waits in
//! the host, so that its TCP feels its own interface's queue as on hardware.

pub mod tcp;

use twinnet_apps::AppConfig;
use twinnet_packet::Frame;
use twinnet_units::Time;

use crate::lab::network::HostSpec;
use crate::lab::LabError;
use crate::pool::FramePool;

/// A host inside the fabric.
#[derive(Debug)]
pub struct ModelHost {
    name: String,
}

impl ModelHost {
    /// The host that `described` tells of; `mtus` are those of its interfaces. All its randomness comes from `seed` and its name.
    ///
    /// # Errors
    /// What a model cannot be: an unknown kernel parameter, for one.
    pub fn new(described: &HostSpec, _mtus: &[u32], _seed: u64) -> Result<Self, LabError> {
        Ok(Self { name: described.name.clone() })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A frame has arrived whole at interface `interface`.
    pub(crate) fn receive(&mut self, _interface: usize, frame: Box<Frame>, _now: Time, pool: &mut FramePool) {
        pool.recycle(frame);
    }

    /// The time asked for by [`ModelHost::deadline`] has come.
    pub(crate) fn timer(&mut self, _now: Time, _pool: &mut FramePool) {}

    /// When the host wants [`ModelHost::timer`] next.
    pub(crate) fn deadline(&self) -> Option<Time> {
        None
    }

    /// The next frame that `interface` has to send. Called when its serialiser is idle.
    pub(crate) fn pull(&mut self, _interface: usize, _now: Time, _pool: &mut FramePool) -> Option<Box<Frame>> {
        None
    }

    /// Whether `interface` has a frame to send now.
    pub(crate) fn has_frames(&self, _interface: usize) -> bool {
        false
    }

    /// An interface that has got something to send since it was last named here; called until it gives `None`.
    pub(crate) fn next_woken(&mut self) -> Option<usize> {
        None
    }

    /// The link at `interface` went up or down.
    pub(crate) fn carrier(&mut self, _interface: usize, _up: bool, _now: Time) {}

    /// Starts an app under `number` at `at`, or now when that has passed. Its random numbers come from `seed`.
    pub fn start_app(&mut self, _number: u32, _config: &AppConfig, _at: Time, _seed: u64) {}

    /// Asks an app to end; unknown ones are ignored.
    pub fn stop_app(&mut self, _number: u32, _now: Time, _pool: &mut FramePool) {}

    /// What an app has counted, as its report tells it; `None` when there is no such app.
    #[must_use]
    pub fn app_report(&self, _number: u32, _now: Time) -> Option<serde_json::Value> {
        None
    }

    /// Whether an app has nothing more to do; `None` when there is no such app.
    #[must_use]
    pub fn app_finished(&self, _number: u32) -> Option<bool> {
        None
    }

    /// How many of its apps have finished since the last call.
    pub(crate) fn take_finished_apps(&mut self) -> u32 {
        0
    }
}
