//! Controllers on the virtual clock. Time stops when they are to be told something; whoever drives the lab takes
//! that out, asks them, and hands in what they answer, all at one moment.

use std::collections::BTreeMap;

use twinnet_fabric::{NodeId, World};
use twinnet_switch::control::Peer;

use super::assemble::RunningNetwork;
use super::error::{ErrorName, LabError};
use super::protocol::{Answer, ControllerOpen, ControllerRow, PeerKind, Reply};

/// A connection of a switch.
#[derive(Debug)]
struct Attached {
    node: NodeId,
    switch: String,
    target: String,
}

/// A message of a switch to a controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlMessage {
    /// The connection's number.
    pub connection: u64,
    /// The bytes: whole messages.
    pub bytes: Vec<u8>,
    /// Why the connection is over after them, if it is.
    pub ending: Option<String>,
}

/// The connections of a lab's switches, numbered in the order in which they were made.
#[derive(Debug, Default)]
pub(super) struct VirtualControl {
    attached: BTreeMap<u64, Attached>,
    next: u64,
}

impl VirtualControl {
    /// `controller.open`: a connection between a switch and a controller.
    pub(super) fn open(&mut self, at: &mut RunningNetwork, asked: ControllerOpen) -> Answer {
        let ControllerOpen { switch, target } = asked;
        let node = at.switch(&switch)?;
        at.fabric.ensure_agent(node, &at.versions(&switch));
        let connection = self.next;
        self.next += 1;
        at.fabric.controller_opened(node, connection, Peer::Controller);
        self.attached.insert(connection, Attached { node, switch, target });
        Ok(Reply::Connection { connection })
    }

    /// `controller.close`: the controller ended the connection.
    pub(super) fn close(&mut self, at: &mut RunningNetwork, connection: u64) -> Answer {
        if let Some(attached) = self.attached.remove(&connection) {
            at.fabric.controller_closed(attached.node, connection);
        }
        Ok(Reply::Done {})
    }

    /// `controllers`: how the connections stand, and what was `said`.
    pub(super) fn state(&self, at: &RunningNetwork, said: bool) -> Reply {
        let rows = self.attached.iter().map(|(connection, attached)| {
            let states = at.fabric.controllers(attached.node);
            ControllerRow {
                switch: attached.switch.clone(),
                target: attached.target.clone(),
                peer: PeerKind::Controller,
                state: states.into_iter().find(|state| state.connection == *connection),
                said: said.then(|| at.fabric.control_messages(attached.node, *connection)).flatten(),
            }
        });
        Reply::Controllers(rows.collect())
    }

    /// Takes what controllers are to get now: by switch, then by connection, both in the order in which they were made.
    pub(super) fn take(&mut self, at: &mut RunningNetwork) -> Vec<ControlMessage> {
        let mut outputs = at.fabric.take_control_output();
        outputs.sort_by_key(|output| (output.node, output.connection));
        for output in outputs.iter().filter(|output| output.ending.is_some()) {
            self.attached.remove(&output.connection);
        }
        let message = |output: twinnet_fabric::ControlOutput| ControlMessage {
            connection: output.connection,
            bytes: output.bytes,
            ending: output.ending,
        };
        outputs.into_iter().map(message).collect()
    }

    /// A controller says `bytes`.
    pub(super) fn give(
        &mut self,
        at: &mut RunningNetwork,
        connection: u64,
        bytes: &[u8],
        world: &mut dyn World,
    ) -> Result<(), LabError> {
        let attached = self.attached.get(&connection).ok_or_else(|| {
            LabError::new(
                ErrorName::UnknownConnection,
                format!("there is no connection {connection}"),
                "it was closed, perhaps",
            )
        })?;
        at.fabric.controller_said(attached.node, connection, bytes, world);
        Ok(())
    }
}
