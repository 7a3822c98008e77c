//! Code of the user's in Python that apps call while time passes.
//!
//! On the virtual clock it runs in the thread that lets time pass. When it raises, the lab's request ends with that;
//! and it cannot ask the lab anything, which waits for it. On the wall clock it runs in the thread of the apps, which
//! tell in their reports what it raised.

use std::cell::{Cell, RefCell};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use twinnet_lab::protocol::CodeBring;
use twinnet_linux::service::{ErrorName, LabError};
use twinnet_units::Time;

use crate::lab::core_error;

const PS_PER_S: f64 = 1e12;

thread_local! {
    static RUNS: Cell<bool> = const { Cell::new(false) };
    static FAILED: RefCell<Option<(String, PyErr)>> = const { RefCell::new(None) };
}

/// Runs `what`, code of what is called `name`.
///
/// # Errors
/// What it raised, in words; [`take_failure`] then gives it to who waits in this thread.
pub(crate) fn run<T>(name: &str, what: impl FnOnce(Python<'_>) -> PyResult<T>) -> Result<T, String> {
    RUNS.set(true);
    let done = Python::attach(what);
    RUNS.set(false);
    done.map_err(|error| {
        let said = Python::attach(|py| in_words(py, name, &error));
        FAILED.with_borrow_mut(|failed| {
            failed.get_or_insert_with(|| (said.clone(), error));
        });
        said
    })
}

fn in_words(py: Python<'_>, name: &str, error: &PyErr) -> String {
    format!("{name} failed: {error}{}", place(py, error).unwrap_or_default())
}

/// Returns `true` if code of the user's has raised since the last [`take_failure`].
pub(crate) fn has_failed() -> bool {
    FAILED.with_borrow(Option::is_some)
}

/// Returns what code of the user's raised first, as a refusal whose cause it is.
pub(crate) fn take_failure() -> Option<PyErr> {
    let (message, error) = FAILED.take()?;
    Some(Python::attach(|py| {
        let refusal = core_error(LabError::new(ErrorName::OwnCodeFailed, message, "mend it"));
        refusal.set_cause(py, Some(error));
        refusal
    }))
}

/// Where it was raised, in brackets.
fn place(py: Python<'_>, error: &PyErr) -> PyResult<String> {
    let Some(traceback) = error.traceback(py) else { return Ok(String::new()) };
    let last = py.import("traceback")?.call_method1("extract_tb", (traceback,))?.get_item(-1)?;
    let (file, line) = (last.getattr("filename")?.to_string(), last.getattr("lineno")?.to_string());
    Ok(format!(" ({file}, line {line})"))
}

/// Refuses a request by code that the lab waits for.
pub(crate) fn refuse_while_running() -> PyResult<()> {
    if !RUNS.get() {
        return Ok(());
    }
    let message = "the lab waits for the code that asks it";
    Err(core_error(LabError::new(
        ErrorName::NotAvailable,
        message,
        "use what the call was given, and ask between two waits",
    )))
}

/// Runs the code that a lab process was given, and makes it known to the apps of this process.
pub(crate) fn bring(asked: &CodeBring) -> Result<(), LabError> {
    let import = |py: Python<'_>| -> PyResult<()> {
        py.import("sys")?.setattr("path", &asked.search)?;
        let given = (&asked.kind, &asked.name, &asked.called, &asked.of, &asked.file, &asked.source);
        py.import("twinnet.traffic.brought_here")?.call_method1("bring_here", given)?;
        Ok(())
    };
    Python::attach(|py| {
        import(py)
            .map_err(|error| LabError::new(ErrorName::OwnCodeFailed, in_words(py, &asked.called, &error), "mend it"))
    })
}

/// The moment at which code that was told `now` wants to be asked again.
pub(crate) fn moment(at_s: f64, now: Time) -> PyResult<Time> {
    let at = Time::from_ps((at_s * PS_PER_S).round() as u64);
    if at_s.is_finite() && at_s < 9e6 && at > now {
        return Ok(at);
    }
    Err(PyValueError::new_err(format!("the moment {at_s} s is not later than now, or past the end of the clock")))
}
