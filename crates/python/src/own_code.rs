//! Code of the user's in Python that a lab on the virtual clock calls while time passes.
//!
//! It runs in the thread that lets time pass. When it raises, the lab's request ends with that; and it cannot ask the
//! lab anything, which waits for it.

use std::cell::{Cell, RefCell};

use pyo3::prelude::*;
use twinnet_linux::service::LabError;

use crate::lab::core_error;

thread_local! {
    static RUNS: Cell<bool> = const { Cell::new(false) };
    static FAILED: RefCell<Option<(String, PyErr)>> = const { RefCell::new(None) };
}

/// Runs `what`, code of what is called `name`; `None` when it raised, which [`take_failure`] then tells.
pub(crate) fn run<T>(name: &str, what: impl FnOnce(Python<'_>) -> PyResult<T>) -> Option<T> {
    RUNS.set(true);
    let done = Python::attach(what);
    RUNS.set(false);
    done.map_err(|error| {
        FAILED.with_borrow_mut(|failed| {
            failed.get_or_insert_with(|| (name.to_owned(), error));
        });
    })
    .ok()
}

/// Returns `true` if code of the user's has raised since the last [`take_failure`].
pub(crate) fn has_failed() -> bool {
    FAILED.with_borrow(Option::is_some)
}

/// Returns what code of the user's raised first, as a refusal whose cause it is.
pub(crate) fn take_failure() -> Option<PyErr> {
    let (name, error) = FAILED.take()?;
    Some(Python::attach(|py| {
        let message = format!("{name} failed: {error}{}", place(py, &error).unwrap_or_default());
        let refusal = core_error(LabError::new("OwnCodeFailed", message, "mend it"));
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
    Err(core_error(LabError::new("NotAvailable", message, "use what the call was given, and ask between two waits")))
}
