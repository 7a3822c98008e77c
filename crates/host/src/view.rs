//! A model host as one of its apps sees it.

use std::net::SocketAddr;

use rand::Rng as _;
use twinnet_apps::{Chunk, Host, HostError, SocketId, TcpInfo};
use twinnet_units::random::Rng;

use super::sockets::{any_address, Kind, Socket};
use super::stack::{Stack, Turn};
use super::tcp::Connection;

/// A host during one call of an app.
pub(super) struct HostView<'a, 'b> {
    stack: &'a mut Stack,
    turn: &'a mut Turn<'b>,
    /// Place of the app.
    app: u32,
    random: &'a mut Rng,
}

impl<'a, 'b> HostView<'a, 'b> {
    /// Returns what the app at place `app` sees.
    pub(super) fn new(stack: &'a mut Stack, turn: &'a mut Turn<'b>, app: u32, random: &'a mut Rng) -> Self {
        Self { stack, turn, app, random }
    }

    /// The app's own socket: it cannot touch those of others.
    fn mine(&mut self, socket: SocketId) -> Result<&mut Socket, HostError> {
        let mine = |found: &&mut Socket| found.app == self.app && !found.closed;
        self.stack.sockets.get(socket.0).filter(mine).ok_or(HostError::NoSuchSocket)
    }

    fn connection(&mut self, socket: SocketId) -> Result<&mut Connection, HostError> {
        match &mut self.mine(socket)?.kind {
            Kind::Tcp(tcp) => Ok(&mut tcp.connection),
            _ => Err(HostError::NoSuchSocket),
        }
    }
}

impl Host for HostView<'_, '_> {
    fn udp_bind(&mut self, port: u16, v6: bool) -> Result<SocketId, HostError> {
        self.stack.udp_bind(self.app, port, v6).map(SocketId)
    }

    fn udp_send(&mut self, socket: SocketId, to: SocketAddr, datagram: Chunk<'_>) -> Result<(), HostError> {
        self.mine(socket)?;
        self.stack.udp_send(socket.0, to, datagram, self.turn)
    }

    fn set_dscp(&mut self, socket: SocketId, dscp: u8) -> Result<(), HostError> {
        match &mut self.mine(socket)?.kind {
            Kind::Udp(udp) => {
                // RFC 2474: the upper six bits of what was the type of service; the lower two are for ECN.
                udp.traffic_class = dscp << 2;
                Ok(())
            }
            Kind::Icmp(icmp) => {
                icmp.traffic_class = dscp << 2;
                Ok(())
            }
            _ => Err(HostError::NoSuchSocket),
        }
    }

    fn set_hop_limit(&mut self, socket: SocketId, hops: u8) -> Result<(), HostError> {
        let Kind::Udp(udp) = &mut self.mine(socket)?.kind else { return Err(HostError::NoSuchSocket) };
        udp.hop_limit = Some(hops.max(1));
        // The way is worked out with its headers.
        udp.path = None;
        Ok(())
    }

    fn icmp_open(&mut self, v6: bool) -> Result<SocketId, HostError> {
        self.stack.icmp_open(self.app, v6).map(SocketId)
    }

    fn icmp_send(&mut self, socket: SocketId, to: SocketAddr, message: Chunk<'_>) -> Result<(), HostError> {
        self.mine(socket)?;
        self.stack.icmp_send(socket.0, to, message, self.turn)
    }

    fn tcp_listen(&mut self, port: u16, v6: bool) -> Result<SocketId, HostError> {
        self.stack.tcp_listen(self.app, port, v6).map(SocketId)
    }

    fn tcp_connect(&mut self, to: SocketAddr) -> Result<SocketId, HostError> {
        self.stack.tcp_connect(self.app, to, 0, self.turn).map(SocketId)
    }

    fn tcp_connect_marked(&mut self, to: SocketAddr, dscp: u8) -> Result<SocketId, HostError> {
        self.stack.tcp_connect(self.app, to, dscp, self.turn).map(SocketId)
    }

    fn set_congestion_control(&mut self, socket: SocketId, name: &str) -> Result<(), HostError> {
        self.mine(socket)?;
        self.stack.set_congestion_control(socket.0, name, self.turn.now)
    }

    fn tcp_send(&mut self, socket: SocketId, chunk: Chunk<'_>) -> Result<u64, HostError> {
        let now = self.turn.now;
        let taken = self.connection(socket)?.send(chunk, now)?;
        // At once, as Linux does: what is offered in two calls leaves in two segments.
        self.stack.tcp_serve(socket.0, self.turn);
        Ok(taken)
    }

    fn tcp_receive(&mut self, socket: SocketId, buffer: &mut [u8]) -> Result<Option<usize>, HostError> {
        let now = self.turn.now;
        let received = self.connection(socket)?.read(buffer, now);
        self.stack.mark_unserved(socket.0);
        received
    }

    fn tcp_discard(&mut self, socket: SocketId, most: u64) -> Result<Option<u64>, HostError> {
        let now = self.turn.now;
        let discarded = self.connection(socket)?.discard(most, now);
        self.stack.mark_unserved(socket.0);
        discarded
    }

    fn tcp_info(&mut self, socket: SocketId) -> Option<TcpInfo> {
        let told = self.connection(socket).ok()?.info();
        Some(TcpInfo {
            congestion_window: told.congestion_window,
            slow_start_threshold: Some(told.slow_start_threshold).filter(|threshold| *threshold != u32::MAX),
            smoothed_round_trip: told.round_trip,
            retransmitted: told.retransmitted,
        })
    }

    fn tcp_finish(&mut self, socket: SocketId) {
        let now = self.turn.now;
        if let Ok(connection) = self.connection(socket) {
            connection.finish(now);
            self.stack.tcp_serve(socket.0, self.turn);
        }
    }

    fn addresses(&self, socket: SocketId) -> Option<(SocketAddr, SocketAddr)> {
        let found = self.stack.sockets.peek(socket.0).filter(|found| found.app == self.app && !found.closed)?;
        match &found.kind {
            Kind::Udp(udp) => Some((any_address(udp.v6, udp.port), any_address(udp.v6, 0))),
            Kind::Listener(listener) => {
                let (v6, port) = listener.port();
                Some((any_address(v6, port), any_address(v6, 0)))
            }
            Kind::Tcp(tcp) => tcp.is_connected().then(|| tcp.connection.addresses()),
            Kind::Icmp(_) => None,
        }
    }

    fn close(&mut self, socket: SocketId) {
        if self.mine(socket).is_ok() {
            self.stack.close(socket.0, self.turn.now);
        }
    }

    fn random(&mut self) -> u64 {
        self.random.next_u64()
    }
}
