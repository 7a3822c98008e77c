//! Lab processes: starting one, being one, finding them.

use std::ffi::{CString, OsString};
use std::os::fd::{BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use pyo3::exceptions::{PyException, PyOSError, PyValueError};
use pyo3::prelude::*;
use twinnet_linux::agent::Agent;
use twinnet_linux::process::programs::apart::Program;
use twinnet_linux::process::programs::kernel_files;
use twinnet_linux::process::{self, Factories};
use twinnet_linux::service::{ErrorName, LabError};
use twinnet_linux::wall::parts::PartedFabric;
use twinnet_linux::wall::scheduling;

use crate::own_code;

pyo3::create_exception!(_core, CoreError, PyException, "A refusal: `args` are its stable name, message and remedy.");

pub(crate) fn core_error(error: LabError) -> PyErr {
    CoreError::new_err((error.name.as_str(), error.message, error.remedy))
}

/// A lab process as its owner holds it. Both descriptors belong to the caller, who closes them.
#[pyclass(frozen, get_all, module = "twinnet._core")]
pub struct LabHandle {
    /// Process identifier.
    pid: i32,
    /// Descriptor of the process.
    pidfd: i32,
    /// The owner's socket; the lab ends when it is closed.
    socket: i32,
    /// The lab's name.
    name: String,
}

/// Starts a lab process.
#[pyfunction]
#[pyo3(signature = (name, python, module))]
pub fn spawn_lab(py: Python<'_>, name: Option<String>, python: PathBuf, module: PathBuf) -> PyResult<LabHandle> {
    let handle = py.detach(|| process::spawn_lab(name.as_deref(), &python, &module)).map_err(core_error)?;
    Ok(LabHandle {
        pid: handle.pid,
        pidfd: handle.pidfd.into_raw_fd(),
        socket: handle.control.into_raw_fd(),
        name: handle.name,
    })
}

/// Becomes a lab: called by the bootstrap of `spawn_lab` only. Never returns.
#[pyfunction]
pub fn lab_main(py: Python<'_>, control: i32, listener: i32, name: String) -> PyResult<()> {
    if control < 3 || listener < 3 || control == listener {
        return Err(PyValueError::new_err("control and listener are two descriptors above 2"));
    }
    process::check_fresh([control, listener]).map_err(core_error)?;
    // SAFETY: both are open sockets of a fresh process, whose only code is the bootstrap that gives them away.
    let (control, listener) = unsafe { (OwnedFd::from_raw_fd(control), OwnedFd::from_raw_fd(listener)) };
    py.detach(|| {
        // SAFETY: this is the first process of its PID namespace and has one thread, which `check_fresh` has seen.
        unsafe { process::lab_main(control, listener, &name, factories()) }
    })
}

/// Becomes the first process of a guest, which finds its network in the file `given`: called by a guest's first program
/// only. Never returns.
#[pyfunction]
pub fn guest_main(py: Python<'_>, given: PathBuf) -> PyResult<()> {
    if std::process::id() != 1 {
        return Err(PyValueError::new_err("this is the first process of a guest: nothing else calls it"));
    }
    py.detach(|| twinnet_linux::guest::run_first_process(&given))
}

/// The parts of a lab.
fn factories() -> Factories {
    Factories {
        fabric: Box::new(|network, interfaces, clock, options| {
            Ok(Box::new(PartedFabric::start(network, interfaces, clock, options)?))
        }),
        agent: Box::new(|clock, hosts| {
            let agent = Agent::start(clock, hosts).map_err(|error| {
                LabError::new(
                    ErrorName::AgentFailed,
                    format!("the agent of the apps cannot start: {error}"),
                    "see `twinnet doctor`",
                )
            })?;
            Ok(Box::new(agent))
        }),
        bring: Box::new(own_code::bring),
    }
}

/// Makes `image` (JSON) the root of this process's mount namespace; `scratch` is a folder to be covered.
#[pyfunction]
pub fn enter_image(image: &str, scratch: PathBuf) -> PyResult<()> {
    let image = serde_json::from_str(image).map_err(|error| PyValueError::new_err(error.to_string()))?;
    process::programs::image::enter(&image, &scratch).map_err(core_error)
}

/// Makes what is the machine's, in a `/proc` or a `/sys` that was just mounted, read-only, where the caller could
/// write it.
#[pyfunction]
pub fn keep_kernel_files(proc: bool) -> PyResult<()> {
    if proc {
        kernel_files::keep_proc()?;
    } else {
        kernel_files::keep_sys()?;
    }
    Ok(())
}

/// Mounts the tree of control groups at the descriptor `there` in a fresh `/sys`, for reading alone.
#[pyfunction]
pub fn show_control_groups(there: i32) -> PyResult<()> {
    // SAFETY: the caller has it open; a number that is not is refused by the kernel.
    Ok(kernel_files::show_control_groups(unsafe { BorrowedFd::borrow_raw(there) })?)
}

/// Starts a program in a network and a mount namespace of its own; gives its number. See `Program`.
#[pyfunction]
#[pyo3(signature = (files, arguments, environment, descriptors, *, own_session))]
pub fn start_apart(
    py: Python<'_>,
    files: Vec<OsString>,
    arguments: Vec<OsString>,
    environment: Vec<OsString>,
    descriptors: [i32; 3],
    own_session: bool,
) -> PyResult<i32> {
    let texts = |given: Vec<OsString>| -> PyResult<Vec<CString>> {
        Ok(given.into_iter().map(|text| CString::new(text.into_vec())).collect::<Result<_, _>>()?)
    };
    let (files, arguments, environment) = (texts(files)?, texts(arguments)?, texts(environment)?);
    let program = Program { files, arguments, environment, descriptors, own_session };
    Ok(py.detach(|| program.start())?)
}

/// Gives the fabric of the lab process `pid` real-time scheduling, where the caller may; returns whether it did.
#[pyfunction]
pub fn promote_lab(pid: i32) -> bool {
    scheduling::promote(pid)
}

/// Opens an interface of the machine for a lab; returns a packet socket, a socket that hears of the interface, its
/// index and its MTU. The descriptors belong to the caller.
#[pyfunction]
pub fn open_interface(name: &str) -> PyResult<(i32, i32, u32, u32)> {
    let open = twinnet_linux::kernel::real_interface::open(name).map_err(core_error)?;
    Ok((open.packet.into_raw_fd(), open.watch.into_raw_fd(), open.index, open.mtu))
}

/// Returns `true` if the kernel has Open vSwitch's datapath.
#[pyfunction]
pub fn kernel_has_open_vswitch() -> bool {
    twinnet_linux::kernel::open_vswitch::kernel_has_datapath()
}

/// Names of the caller's running labs.
#[pyfunction]
pub fn list_labs(py: Python<'_>) -> PyResult<Vec<String>> {
    Ok(found_labs(py)?.labs)
}

/// Listeners at addresses of the caller's labs that are not known to be the caller's: the name of the lab and the
/// number of the user.
#[pyfunction]
pub fn strangers_at_labs(py: Python<'_>) -> PyResult<Vec<(String, Option<u32>)>> {
    Ok(found_labs(py)?.strangers.into_iter().map(|stranger| (stranger.name, stranger.user)).collect())
}

fn found_labs(py: Python<'_>) -> PyResult<process::Labs> {
    py.detach(|| process::find_labs(None)).map_err(|error| PyOSError::new_err(error.to_string()))
}

/// Takes a name for a lab of this process, the given one or a free one: the name, and the socket that listens under it,
/// which belongs to the caller.
#[pyfunction]
#[pyo3(signature = (name))]
pub fn claim_lab(py: Python<'_>, name: Option<String>) -> PyResult<(String, i32)> {
    let (name, listener) = py.detach(|| process::claim_lab(name.as_deref())).map_err(core_error)?;
    Ok((name, listener.into_raw_fd()))
}

/// Connects to the caller's running lab `name`; the descriptor belongs to the caller.
#[pyfunction]
pub fn open_lab(py: Python<'_>, name: &str) -> PyResult<i32> {
    Ok(py.detach(|| process::open_lab(name)).map_err(core_error)?.into_raw_fd())
}

/// The abilities that this machine has and lacks, as a JSON array.
#[pyfunction]
pub fn doctor(py: Python<'_>) -> String {
    py.detach(|| twinnet_linux::doctor::examine().to_string())
}

/// The names of all refusals.
#[pyfunction]
pub fn error_names() -> Vec<&'static str> {
    ErrorName::ALL.iter().map(|name| name.as_str()).collect()
}

/// The version of the lab protocol, its requests with their fields and answers, and the forms of the answers, as JSON.
#[pyfunction]
pub fn lab_protocol() -> (u32, String, String) {
    use twinnet_lab::protocol::{reference, Reply, VERSION};
    (VERSION, reference().to_string(), Reply::schemas().to_string())
}
