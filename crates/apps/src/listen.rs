//! Waiting on a port of both address families, as a server does.

use crate::account::errors::ErrorTally;
use crate::{Event, Host, HostError, SocketId};

/// Opens UDP sockets on `port`.
///
/// # Errors
/// The refusal of IPv4, or of IPv6 when the port is taken there.
pub fn udp(host: &mut dyn Host, port: u16) -> Result<Vec<SocketId>, HostError> {
    open_both(host, |host, v6| host.udp_bind(port, v6))
}

/// Opens TCP listeners on `port`.
///
/// # Errors
/// As [`udp`].
pub fn tcp(host: &mut dyn Host, port: u16) -> Result<Vec<SocketId>, HostError> {
    open_both(host, |host, v6| host.tcp_listen(port, v6))
}

/// As [`tcp`], where what is accepted has this congestion control.
///
/// # Errors
/// As [`tcp`], and as [`Host::set_congestion_control`]; no listener is left then.
pub fn tcp_with(host: &mut dyn Host, port: u16, congestion_control: Option<&str>) -> Result<(), HostError> {
    let listeners = tcp(host, port)?;
    let Some(name) = congestion_control else { return Ok(()) };
    for listener in &listeners {
        if let Err(error) = host.set_congestion_control(*listener, name) {
            listeners.iter().for_each(|listener| host.close(*listener));
            return Err(error);
        }
    }
    Ok(())
}

/// Opens a socket of each family. A host without IPv6 is content with IPv4.
fn open_both(
    host: &mut dyn Host,
    open: impl Fn(&mut dyn Host, bool) -> Result<SocketId, HostError>,
) -> Result<Vec<SocketId>, HostError> {
    let first = open(host, false)?;
    match open(host, true) {
        Ok(second) => Ok(vec![first, second]),
        Err(error @ HostError::AddressInUse(_)) => {
            host.close(first);
            Err(error)
        }
        Err(_) => Ok(vec![first]),
    }
}

/// The state that a sink of datagrams has beside its flows.
#[derive(Debug, Default)]
pub struct SinkState {
    /// What went wrong.
    pub errors: ErrorTally,
    /// Whether it was stopped, or could not begin.
    pub finished: bool,
}

impl SinkState {
    /// Handles what is the same for all sinks of datagrams: opens `port` at the start, ends, and notes what went wrong.
    /// Datagrams are the sink's own.
    pub fn handle(&mut self, event: &Event<'_>, host: &mut dyn Host, port: u16) {
        match event {
            Event::Start => {
                if let Err(error) = udp(host, port) {
                    self.errors.add(error);
                    self.finished = true;
                }
            }
            Event::Overflowed { datagrams, .. } => {
                self.errors
                    .add_many("a datagram was dropped in the receiving host: its socket's buffer was full", *datagrams);
            }
            Event::ClockStepped { by_ns } => self.errors.add(stepped(*by_ns)),
            Event::Stop => self.finished = true,
            Event::Failed { error, .. } => self.errors.add(error),
            _ => {}
        }
    }
}

/// Returns what a sink tells when the machine's clock was set.
#[allow(clippy::cast_precision_loss)]
fn stepped(by_ns: i64) -> String {
    format!(
        "the machine's clock was set by {:.3} ms: arrivals in that moment have the time at which they were read",
        by_ns as f64 / 1e6
    )
}
