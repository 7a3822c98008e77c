//! The socket of a source of datagrams, with the counts that every such source reports.

use std::net::SocketAddr;

use twinnet_units::Time;

use crate::account::errors::ErrorTally;
use crate::account::pacing::Pacing;
use crate::account::report::{FlowReport, Protocol, Role};
use crate::account::returns::Returns;
use crate::{Chunk, Host, HostError, SocketId};

/// The sending end of a flow of datagrams to `to`. Its source binds it once, sends through it, and closes it.
pub(crate) struct Sender {
    to: SocketAddr,
    pub socket: Option<SocketId>,
    from: Option<SocketAddr>,
    pub start: Option<Time>,
    /// Datagrams that the host has taken.
    pub sent: u64,
    last_sent: Option<Time>,
    pub finished: bool,
    pub pacing: Pacing,
    returns: Returns,
    pub errors: ErrorTally,
}

impl Sender {
    pub(crate) fn new(to: SocketAddr) -> Self {
        Self {
            to,
            socket: None,
            from: None,
            start: None,
            sent: 0,
            last_sent: None,
            finished: false,
            pacing: Pacing::default(),
            returns: Returns::default(),
            errors: ErrorTally::default(),
        }
    }

    /// Binds the socket, whose datagrams carry `dscp` and, if they may not be cut, are kept `whole`; says whether it
    /// can send. When it cannot, the reason is in `errors`, and the source has finished.
    pub(crate) fn bind(&mut self, now: Time, dscp: Option<u8>, whole: bool, host: &mut dyn Host) -> bool {
        let socket = match host.udp_bind(0, self.to.is_ipv6()) {
            Ok(socket) => socket,
            Err(error) => {
                self.errors.add(error);
                self.finished = true;
                return false;
            }
        };
        self.socket = Some(socket);
        self.from = host.addresses(socket).map(|(local, _)| local);
        let marked = dscp.map_or(Ok(()), |dscp| host.set_dscp(socket, dscp));
        let kept = marked.and_then(|()| if whole { host.forbid_fragments(socket) } else { Ok(()) });
        if let Err(error) = kept {
            self.errors.add(error);
            self.close(now, host);
            return false;
        }
        true
    }

    /// Hands a datagram to the host. One that it refuses is not counted: it was never in the network.
    pub(crate) fn send(&mut self, now: Time, chunk: Chunk<'_>, host: &mut dyn Host) -> Result<(), HostError> {
        let Some(socket) = self.socket else { return Err(HostError::NoSuchSocket) };
        host.udp_send(socket, self.to, chunk)?;
        self.sent += 1;
        self.last_sent = Some(now);
        Ok(())
    }

    /// Counts that `datagrams` came back because of `error`.
    pub(crate) fn note_returned(&mut self, now: Time, error: HostError, datagrams: u64) {
        self.returns.add(now, self.to, error, datagrams, &mut self.errors);
    }

    /// Closes the socket: the source has finished.
    pub(crate) fn close(&mut self, now: Time, host: &mut dyn Host) {
        self.finished = true;
        if let Some(socket) = self.socket.take() {
            for (error, datagrams) in host.returned(socket) {
                self.note_returned(now, error, datagrams);
            }
            host.close(socket);
        }
    }

    /// The report of the flow, without its bytes.
    pub(crate) fn report(&self, flow: u32, protocol: Protocol) -> FlowReport {
        let mut row = FlowReport::new(Some(flow), protocol, Role::Source).with_errors(&self.errors);
        row.from = self.from.map(|from| from.to_string());
        row.to = Some(self.to.to_string());
        row.start_ps = self.start.map(Time::as_ps);
        row.end_ps = self.last_sent.or(self.start).map(Time::as_ps);
        row.packets = Some(self.sent);
        row.errors.extend(self.returns.told(self.start));
        row.pacing = self.pacing.report().into();
        row
    }
}
