//! Tunnels to other speakers of GRE and VXLAN on the wall clock (docs/reference/lab-protocol.md, "Tunnels"): their
//! sockets come from the lab's owner, in whose network namespace the underlay is.

mod decapsulation;
mod underlay;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{OwnedFd, RawFd};

use serde::Serialize;
use serde_json::{json, Value};
use twinnet_fabric::{PortId, TunnelConfig};
use twinnet_lab::protocol::{TunnelAttach, TunnelRow};
use twinnet_lab::requests::missing;
use twinnet_lab::tunnel_end::TunnelEndSpec;
use twinnet_lab::RunningNetwork;
use twinnet_packet::Frame;

use crate::service::{ErrorName, LabError};
use decapsulation::{Identifier, Refusal, Refusals};
use underlay::{Protocol, Received, Underlay};

/// Packets that are no tunnel's, in one look at a socket, before others have their turn.
const MOST_REFUSED: usize = 64;
/// Frames that wait for a tunnel while another one of its socket is being served.
const LONGEST_INBOX: usize = 1024;

/// The counters of a tunnel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct Counters {
    sent: u64,
    sent_bytes: u64,
    received: u64,
    received_bytes: u64,
    /// Longer than the underlay takes whole, where nothing may be cut.
    dropped_too_long: u64,
    /// The socket's send buffer was full.
    dropped_buffer: u64,
    /// The kernel knows no way there, or may not send.
    dropped_unreachable: u64,
    /// More arrived for it than the loop took.
    dropped_inbox: u64,
}

/// A tunnel in motion.
struct End {
    socket: usize,
    identifier: Identifier,
    remote: SocketAddrV4,
    /// The longest frame that goes whole, where nothing may be cut.
    longest: Option<u64>,
    inbox: VecDeque<Box<Frame>>,
    counters: Counters,
    described: TunnelRow,
}

struct Socket {
    underlay: Underlay,
    /// The port that is woken when something arrives.
    port: u32,
    name: String,
    ends: Vec<(Identifier, Ipv4Addr, u32)>,
    refused: Refusals,
}

/// The tunnels of a lab.
#[derive(Default)]
pub(crate) struct Tunnels {
    sockets: Vec<Socket>,
    ends: HashMap<u32, End>,
    /// Ports for which something waits that no socket will tell of again.
    unfinished: Vec<PortId>,
}

impl Tunnels {
    /// `tunnel.attach`: takes the socket that came with the request for the tunnel `node`. Returns its port and, when
    /// the socket is a new one, the descriptor to wait on.
    ///
    /// # Errors
    /// The fault of the request.
    pub(crate) fn attach(
        &mut self,
        at: &RunningNetwork,
        asked: &TunnelAttach,
        socket: Option<OwnedFd>,
    ) -> Result<(PortId, Option<RawFd>), LabError> {
        let name = asked.node.as_str();
        let (index, spec) = at.spec.tunnel_ends().find(|(_, end)| end.name == name).ok_or_else(|| {
            LabError::new(ErrorName::UnknownNode, format!("there is no tunnel {name:?} in this lab"), "see `nodes`")
        })?;
        let port = at.names.ports_of_node.get(index).and_then(|ports| ports.first()).copied().ok_or_else(|| {
            LabError::new(ErrorName::UnknownPort, format!("no link ends at the tunnel {name:?}"), "link it to a node")
        })?;
        if self.ends.contains_key(&port.0) {
            return Err(LabError::new(
                ErrorName::BadRequest,
                format!("the tunnel {name:?} has its socket already"),
                "",
            ));
        }
        let TunnelAttach { underlay: underlay_name, mtu, .. } = asked;
        let descriptor = socket.ok_or_else(|| missing("a descriptor", "the tunnel's socket"))?;
        let known = self.sockets.iter().position(|socket| socket.name == *underlay_name);
        let (socket, new) = match known {
            Some(socket) => (socket, None),
            None => {
                let underlay = Underlay::new(descriptor, protocol(&spec.tunnel)).map_err(|error| {
                    LabError::new(
                        ErrorName::TunnelFailed,
                        format!("tunnel {name:?}: {error}"),
                        "pass a UDP or raw socket",
                    )
                })?;
                let raw = underlay.raw();
                let (ends, refused) = (Vec::new(), Refusals::default());
                self.sockets.push(Socket { underlay, port: port.0, name: underlay_name.to_owned(), ends, refused });
                (self.sockets.len() - 1, Some(raw))
            }
        };
        let end = End::new(spec, socket, *mtu);
        self.sockets[socket].ends.push((end.identifier, spec.remote, port.0));
        self.ends.insert(port.0, end);
        Ok((port, new))
    }

    /// `tunnels`: how each stands.
    pub(crate) fn state(&self) -> Vec<TunnelRow> {
        let mut ends: Vec<_> = self.ends.iter().collect();
        ends.sort_by_key(|(port, _)| **port);
        let row = |end: &End| TunnelRow {
            counters: json!(end.counters),
            refused: json!(self.sockets[end.socket].refused),
            ..end.described.clone()
        };
        ends.into_iter().map(|(_, end)| row(end)).collect()
    }

    /// Returns `true` if `port` is the end of a tunnel.
    pub(crate) fn has(&self, port: PortId) -> bool {
        self.ends.contains_key(&port.0)
    }

    /// Sends `frame`, a train frame by frame, through the tunnel behind `port`. Returns how many were handed to the
    /// kernel and how many it had no room for.
    pub(crate) fn send(&mut self, port: PortId, frame: Box<Frame>) -> (u64, u64) {
        let Some(end) = self.ends.get_mut(&port.0) else { return (0, 0) };
        let underlay = &mut self.sockets[end.socket].underlay;
        let (mut handed, mut full) = (0, 0);
        for mut single in frame.into_frames() {
            single.finish_checksum();
            if end.longest.is_some_and(|longest| single.length() > longest) {
                end.counters.dropped_too_long += 1;
                continue;
            }
            match underlay.send(&single, end.identifier, end.remote) {
                Ok(_) => {
                    handed += 1;
                    end.counters.sent += 1;
                    end.counters.sent_bytes += single.length();
                }
                Err(error) if error.raw_os_error() == Some(libc::EMSGSIZE) => end.counters.dropped_too_long += 1,
                Err(error) if is_full(&error) => {
                    end.counters.dropped_buffer += 1;
                    full += 1;
                }
                Err(_) => end.counters.dropped_unreachable += 1,
            }
        }
        (handed, full)
    }

    /// The next frame that came out of the tunnel behind `port`.
    pub(crate) fn next(&mut self, port: PortId) -> Option<Box<Frame>> {
        let end = self.ends.get_mut(&port.0)?;
        if let Some(frame) = end.inbox.pop_front() {
            return Some(frame);
        }
        let index = end.socket;
        for _ in 0..MOST_REFUSED {
            let socket = &mut self.sockets[index];
            let (to, frame) = match socket.underlay.receive() {
                Received::Nothing => return None,
                Received::Refused(why) => {
                    socket.refused.count(why);
                    continue;
                }
                Received::Frame(source, identifier, bytes) => match owner(&socket.ends, source, identifier) {
                    Ok(to) => (to, Box::new(Frame::new(bytes.to_vec()))),
                    Err(why) => {
                        socket.refused.count(why);
                        continue;
                    }
                },
            };
            let Some(end) = self.ends.get_mut(&to) else { continue };
            if to == port.0 {
                end.take(&frame);
                return Some(frame);
            }
            if end.inbox.len() >= LONGEST_INBOX {
                end.counters.dropped_inbox += 1;
                continue;
            }
            end.take(&frame);
            end.inbox.push_back(frame);
            self.unfinished.push(PortId(to));
        }
        // More may wait in the socket, which tells of it only once.
        self.unfinished.push(PortId(self.sockets[index].port));
        None
    }

    /// Ports that are to be looked at again.
    pub(crate) fn take_unfinished(&mut self) -> Vec<PortId> {
        std::mem::take(&mut self.unfinished)
    }
}

/// The port of the tunnel that a packet belongs to.
fn owner(ends: &[(Identifier, Ipv4Addr, u32)], source: Ipv4Addr, identifier: Identifier) -> Result<u32, Refusal> {
    let mut refusal = Refusal::OtherIdentifier;
    for (known, remote, port) in ends {
        if *known == identifier {
            if *remote == source {
                return Ok(*port);
            }
            refusal = Refusal::OtherSource;
        }
    }
    Err(refusal)
}

const fn protocol(tunnel: &TunnelConfig) -> Protocol {
    match tunnel {
        TunnelConfig::Gre { checksum, .. } => Protocol::Gre { checksum: *checksum },
        TunnelConfig::Vxlan { .. } => Protocol::Vxlan,
    }
}

fn is_full(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock || matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::ENOMEM))
}

impl End {
    fn new(spec: &TunnelEndSpec, socket: usize, mtu: u32) -> Self {
        let (identifier, port) = match spec.tunnel {
            TunnelConfig::Gre { key, .. } => (Identifier::Key(key), 0),
            TunnelConfig::Vxlan { vni, .. } => (Identifier::Vni(vni), spec.port),
        };
        let inner_mtu = mtu.saturating_sub(spec.tunnel.overhead());
        let longest = (!spec.tunnel.cuts()).then_some(u64::from(inner_mtu) + 14);
        let described = TunnelRow {
            node: spec.name.clone(),
            remote: spec.remote,
            tunnel: spec.tunnel,
            path_mtu: mtu,
            inner_mtu,
            counters: Value::Null,
            refused: Value::Null,
        };
        let remote = SocketAddrV4::new(spec.remote, port);
        Self { socket, identifier, remote, longest, inbox: VecDeque::new(), counters: Counters::default(), described }
    }

    fn take(&mut self, frame: &Frame) {
        self.counters.received += 1;
        self.counters.received_bytes += frame.length();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_belongs_to_the_tunnel_of_its_identifier_and_its_sender() {
        let [a, b] = [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2)];
        let ends = [(Identifier::Vni(1), a, 7), (Identifier::Vni(1), b, 8), (Identifier::Vni(2), a, 9)];
        assert_eq!(owner(&ends, b, Identifier::Vni(1)), Ok(8));
        assert_eq!(owner(&ends, b, Identifier::Vni(2)), Err(Refusal::OtherSource));
        assert_eq!(owner(&ends, a, Identifier::Vni(3)), Err(Refusal::OtherIdentifier));
        assert_eq!(owner(&[(Identifier::Key(None), a, 1)], a, Identifier::Key(Some(0))), Err(Refusal::OtherIdentifier));
    }
}
