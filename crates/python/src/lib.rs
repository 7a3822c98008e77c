//! The bindings behind the Python package `twinnet`: newtypes and conversions, nothing else.

mod bandwidth;
mod bare_switch;
mod cabled_switches;
mod captures;
mod flows;
mod lab;
mod openflow;
mod openflow_10;
mod outward;
mod own_application;
mod own_code;
mod own_congestion;
mod own_discipline;
mod own_estimator;
mod settings;
mod sockets;
mod theory;
mod units;
mod virtual_lab;

use pyo3::prelude::*;

/// The part of the package `twinnet` that only Rust can do. Private: its names may change.
#[pymodule]
mod _core {
    use super::{Bound, PyModule, PyModuleMethods, PyResult};

    #[pymodule_export]
    use super::bandwidth::{published_bandwidth_method, replay_bandwidth};
    #[pymodule_export]
    use super::bare_switch::BareSwitch;
    #[pymodule_export]
    use super::cabled_switches::CabledSwitches;
    #[pymodule_export]
    use super::captures::{analyze_capture, match_captures_at};
    #[pymodule_export]
    use super::flows::check_flow;
    #[pymodule_export]
    use super::lab::{
        claim_lab, doctor, enter_image, error_names, guest_main, keep_kernel_files, kernel_has_open_vswitch, lab_main,
        lab_protocol, list_labs, open_interface, open_lab, promote_lab, show_control_groups, spawn_lab, start_apart,
        strangers_at_labs, LabHandle,
    };
    #[pymodule_export]
    use super::openflow::OpenFlow13;
    #[pymodule_export]
    use super::openflow_10::OpenFlow10;
    #[pymodule_export]
    use super::outward::Outward;
    #[pymodule_export]
    use super::own_application::register_application;
    #[pymodule_export]
    use super::own_congestion::{register_congestion_control, Acknowledgement};
    #[pymodule_export]
    use super::own_discipline::register_discipline;
    #[pymodule_export]
    use super::own_estimator::register_estimator;
    #[pymodule_export]
    use super::settings::{check_app, check_queue, vocabulary};
    #[pymodule_export]
    use super::sockets::SocketAgent;
    #[pymodule_export]
    use super::theory::port_experiment;
    #[pymodule_export]
    use super::units::{format_duration, format_rate, format_size, parse_duration, parse_rate, parse_size};
    #[pymodule_export]
    use super::virtual_lab::VirtualLab;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        twinnet_linux::diagnostics::begin().map_err(pyo3::exceptions::PyValueError::new_err)?;
        module.add("version", env!("CARGO_PKG_VERSION"))?;
        module.add("CoreError", module.py().get_type::<super::lab::CoreError>())
    }
}
