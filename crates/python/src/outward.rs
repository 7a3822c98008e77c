//! The way from a network to the world as ordinary sockets of the caller.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::BorrowedFd;
use std::sync::Mutex;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use twinnet_linux::outward::{Destinations, Outward as Carried};

/// A thread that carries what a network has to say outward, in the caller's network namespace.
#[pyclass(frozen, module = "twinnet._core")]
pub struct Outward {
    carried: Mutex<Option<Carried>>,
}

#[pymethods]
impl Outward {
    /// Starts the thread on a copy of the descriptor `packets`. `gateway` and `names` are addresses in the network of
    /// the interface, whose addresses begin with the same `prefix` bits; `resolver` (`ADDRESS:PORT`) answers for
    /// `names`.
    #[new]
    #[pyo3(signature = (packets, gateway, prefix, names, resolver = None))]
    fn new(packets: i32, gateway: &str, prefix: u8, names: &str, resolver: Option<&str>) -> PyResult<Self> {
        let address = |text: &str| text.parse::<Ipv4Addr>().map_err(|error| PyValueError::new_err(error.to_string()));
        let resolver = resolver.map(str::parse::<SocketAddrV4>).transpose();
        let destinations = Destinations {
            gateway: address(gateway)?,
            prefix,
            names: address(names)?,
            resolver: resolver.map_err(|error| PyValueError::new_err(error.to_string()))?,
        };
        if packets < 0 || prefix > 32 {
            return Err(PyValueError::new_err("packets is an open descriptor, and a prefix has 0 to 32 bits"));
        }
        // SAFETY: the caller holds the descriptor open during the call, which copies it.
        let packets = unsafe { BorrowedFd::borrow_raw(packets) }.try_clone_to_owned().map_err(PyOSError::new_err)?;
        let carried = Carried::start(packets, destinations).map_err(PyOSError::new_err)?;
        Ok(Self { carried: Mutex::new(Some(carried)) })
    }

    /// Ends the thread and all connections.
    fn close(&self, py: Python<'_>) {
        let carried = self.carried.lock().ok().and_then(|mut carried| carried.take());
        py.detach(|| drop(carried));
    }
}
