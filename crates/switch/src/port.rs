//! The ports of a switch.

/// One port.
#[derive(Clone, Debug)]
pub(super) struct Port {
    pub(super) number: u32,
    pub(super) name: String,
    pub(super) mac: [u8; 6],
    pub(super) up: bool,
    /// It is in the spanning tree: a switch that keeps to the tree floods to it and learns from it.
    pub(super) in_tree: bool,
    /// `OFPPC_*`, those of 1.0 among them.
    pub(super) config: u32,
}

/// `OFPPC_PORT_DOWN`.
pub(super) const PORT_DOWN: u32 = 1;
/// `OFPPC_NO_RECV`.
pub(super) const NO_RECEIVE: u32 = 1 << 2;
/// `OFPPC_NO_FLOOD` of OpenFlow 1.0.
pub(super) const NO_FLOOD: u32 = 1 << 4;
/// `OFPPC_NO_FWD`.
pub(super) const NO_FORWARD: u32 = 1 << 5;
/// `OFPPC_NO_PACKET_IN`.
pub(super) const NO_PACKET_IN: u32 = 1 << 6;

impl Port {
    /// Returns `true` if the link is up and the port not taken down.
    pub(super) fn is_live(&self) -> bool {
        self.up && self.config & PORT_DOWN == 0
    }

    /// Returns `true` if no controller took it out of flooding.
    pub(super) fn floods(&self) -> bool {
        self.config & NO_FLOOD == 0
    }
}

/// All ports, in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct Ports {
    ports: Vec<Port>,
    /// Ports that were taken away, and may come back.
    away: Vec<Port>,
}

impl Ports {
    /// Adds a port; one with that number is replaced.
    pub(super) fn add(&mut self, port: Port) {
        match self.ports.binary_search_by_key(&port.number, |port| port.number) {
            Ok(at) => self.ports[at] = port,
            Err(at) => self.ports.insert(at, port),
        }
    }

    /// Takes a port away; false when there is none.
    pub(super) fn take_away(&mut self, number: u32) -> bool {
        let Ok(at) = self.ports.binary_search_by_key(&number, |port| port.number) else { return false };
        let port = self.ports.remove(at);
        self.away.push(port);
        true
    }

    /// Puts a port back as it was when it was added, `up` or down; false when it was not away.
    pub(super) fn put_back(&mut self, number: u32, up: bool) -> bool {
        let Some(at) = self.away.iter().position(|port| port.number == number) else { return false };
        let port = self.away.swap_remove(at);
        self.add(Port { up, in_tree: true, config: 0, ..port });
        true
    }

    pub(super) fn get(&self, number: u32) -> Option<&Port> {
        // Numbers without a gap from 1, as they nearly always are, need no search.
        let guess = self.ports.get((number as usize).wrapping_sub(1));
        if let Some(port) = guess.filter(|port| port.number == number) {
            return Some(port);
        }
        self.ports.binary_search_by_key(&number, |port| port.number).ok().map(|at| &self.ports[at])
    }

    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut Port> {
        self.ports.binary_search_by_key(&number, |port| port.number).ok().map(|at| &mut self.ports[at])
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Port> {
        self.ports.iter()
    }
}
