//! Errors: every type and code of OpenFlow 1.0.2, and the message that carries them.

use crate::layout::{error_kinds, open_enum, record};

error_kinds! {
HelloFailed = 0 "OFPET_HELLO_FAILED" {
    Incompatible = 0 "OFPHFC_INCOMPATIBLE",
    Eperm = 1 "OFPHFC_EPERM",
}
BadRequest = 1 "OFPET_BAD_REQUEST" {
    BadVersion = 0 "OFPBRC_BAD_VERSION",
    BadType = 1 "OFPBRC_BAD_TYPE",
    BadStat = 2 "OFPBRC_BAD_STAT",
    BadVendor = 3 "OFPBRC_BAD_VENDOR",
    BadSubtype = 4 "OFPBRC_BAD_SUBTYPE",
    Eperm = 5 "OFPBRC_EPERM",
    BadLen = 6 "OFPBRC_BAD_LEN",
    BufferEmpty = 7 "OFPBRC_BUFFER_EMPTY",
    BufferUnknown = 8 "OFPBRC_BUFFER_UNKNOWN",
}
BadAction = 2 "OFPET_BAD_ACTION" {
    BadType = 0 "OFPBAC_BAD_TYPE",
    BadLen = 1 "OFPBAC_BAD_LEN",
    BadVendor = 2 "OFPBAC_BAD_VENDOR",
    BadVendorType = 3 "OFPBAC_BAD_VENDOR_TYPE",
    BadOutPort = 4 "OFPBAC_BAD_OUT_PORT",
    BadArgument = 5 "OFPBAC_BAD_ARGUMENT",
    Eperm = 6 "OFPBAC_EPERM",
    TooMany = 7 "OFPBAC_TOO_MANY",
    BadQueue = 8 "OFPBAC_BAD_QUEUE",
}
FlowModFailed = 3 "OFPET_FLOW_MOD_FAILED" {
    AllTablesFull = 0 "OFPFMFC_ALL_TABLES_FULL",
    Overlap = 1 "OFPFMFC_OVERLAP",
    Eperm = 2 "OFPFMFC_EPERM",
    BadEmergTimeout = 3 "OFPFMFC_BAD_EMERG_TIMEOUT",
    BadCommand = 4 "OFPFMFC_BAD_COMMAND",
    Unsupported = 5 "OFPFMFC_UNSUPPORTED",
}
PortModFailed = 4 "OFPET_PORT_MOD_FAILED" {
    BadPort = 0 "OFPPMFC_BAD_PORT",
    BadHwAddr = 1 "OFPPMFC_BAD_HW_ADDR",
}
QueueOpFailed = 5 "OFPET_QUEUE_OP_FAILED" {
    BadPort = 0 "OFPQOFC_BAD_PORT",
    BadQueue = 1 "OFPQOFC_BAD_QUEUE",
    Eperm = 2 "OFPQOFC_EPERM",
}}
