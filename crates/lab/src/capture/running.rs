//! The captures of a lab that run, by number.

use std::collections::BTreeMap;

use twinnet_fabric::{Fabric, PortId};

use crate::error::{ErrorName, LabError};

/// The captures that run. A port is told to show its frames as long as one of them has it.
#[derive(Debug)]
pub struct RunningCaptures<C> {
    running: BTreeMap<u32, (PortId, C)>,
    next: u32,
}

impl<C> Default for RunningCaptures<C> {
    fn default() -> Self {
        Self { running: BTreeMap::new(), next: 0 }
    }
}

impl<C> RunningCaptures<C> {
    /// None yet; the first will have the number `first`.
    #[must_use]
    pub fn numbered_from(first: u32) -> Self {
        Self { next: first, ..Self::default() }
    }

    /// Adds a capture of `port` that was begun; returns its number.
    pub fn add(&mut self, port: PortId, capture: C, fabric: &mut Fabric) -> u32 {
        let number = self.next;
        self.next += 1;
        self.running.insert(number, (port, capture));
        fabric.set_capture(port, true);
        number
    }

    /// Takes a capture that is to end.
    ///
    /// # Errors
    /// `UnknownCapture`.
    pub fn remove(&mut self, number: u32, fabric: &mut Fabric) -> Result<C, LabError> {
        let (port, capture) = self
            .running
            .remove(&number)
            .ok_or_else(|| LabError::new(ErrorName::UnknownCapture, format!("there is no capture {number}"), ""))?;
        if !self.running.values().any(|(captured, _)| *captured == port) {
            fabric.set_capture(port, false);
        }
        Ok(capture)
    }

    /// All that run, with their ports.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut (PortId, C)> {
        self.running.values_mut()
    }

    /// Takes all of them.
    pub fn take(&mut self) -> impl Iterator<Item = C> {
        std::mem::take(&mut self.running).into_values().map(|(_, capture)| capture)
    }
}
