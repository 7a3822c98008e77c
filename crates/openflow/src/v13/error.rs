//! Errors: every type and code of OpenFlow 1.3.5, and the message that carries them.

use crate::layout::{error_kinds, open_enum, record};

error_kinds! {
HelloFailed = 0 "OFPET_HELLO_FAILED" {
    Incompatible = 0 "OFPHFC_INCOMPATIBLE",
    Eperm = 1 "OFPHFC_EPERM",
}
BadRequest = 1 "OFPET_BAD_REQUEST" {
    BadVersion = 0 "OFPBRC_BAD_VERSION",
    BadType = 1 "OFPBRC_BAD_TYPE",
    BadMultipart = 2 "OFPBRC_BAD_MULTIPART",
    BadExperimenter = 3 "OFPBRC_BAD_EXPERIMENTER",
    BadExpType = 4 "OFPBRC_BAD_EXP_TYPE",
    Eperm = 5 "OFPBRC_EPERM",
    BadLen = 6 "OFPBRC_BAD_LEN",
    BufferEmpty = 7 "OFPBRC_BUFFER_EMPTY",
    BufferUnknown = 8 "OFPBRC_BUFFER_UNKNOWN",
    BadTableId = 9 "OFPBRC_BAD_TABLE_ID",
    IsSlave = 10 "OFPBRC_IS_SLAVE",
    BadPort = 11 "OFPBRC_BAD_PORT",
    BadPacket = 12 "OFPBRC_BAD_PACKET",
    MultipartBufferOverflow = 13 "OFPBRC_MULTIPART_BUFFER_OVERFLOW",
}
BadAction = 2 "OFPET_BAD_ACTION" {
    BadType = 0 "OFPBAC_BAD_TYPE",
    BadLen = 1 "OFPBAC_BAD_LEN",
    BadExperimenter = 2 "OFPBAC_BAD_EXPERIMENTER",
    BadExpType = 3 "OFPBAC_BAD_EXP_TYPE",
    BadOutPort = 4 "OFPBAC_BAD_OUT_PORT",
    BadArgument = 5 "OFPBAC_BAD_ARGUMENT",
    Eperm = 6 "OFPBAC_EPERM",
    TooMany = 7 "OFPBAC_TOO_MANY",
    BadQueue = 8 "OFPBAC_BAD_QUEUE",
    BadOutGroup = 9 "OFPBAC_BAD_OUT_GROUP",
    MatchInconsistent = 10 "OFPBAC_MATCH_INCONSISTENT",
    UnsupportedOrder = 11 "OFPBAC_UNSUPPORTED_ORDER",
    BadTag = 12 "OFPBAC_BAD_TAG",
    BadSetType = 13 "OFPBAC_BAD_SET_TYPE",
    BadSetLen = 14 "OFPBAC_BAD_SET_LEN",
    BadSetArgument = 15 "OFPBAC_BAD_SET_ARGUMENT",
}
BadInstruction = 3 "OFPET_BAD_INSTRUCTION" {
    UnknownInst = 0 "OFPBIC_UNKNOWN_INST",
    UnsupInst = 1 "OFPBIC_UNSUP_INST",
    BadTableId = 2 "OFPBIC_BAD_TABLE_ID",
    UnsupMetadata = 3 "OFPBIC_UNSUP_METADATA",
    UnsupMetadataMask = 4 "OFPBIC_UNSUP_METADATA_MASK",
    BadExperimenter = 5 "OFPBIC_BAD_EXPERIMENTER",
    BadExpType = 6 "OFPBIC_BAD_EXP_TYPE",
    BadLen = 7 "OFPBIC_BAD_LEN",
    Eperm = 8 "OFPBIC_EPERM",
}
BadMatch = 4 "OFPET_BAD_MATCH" {
    BadType = 0 "OFPBMC_BAD_TYPE",
    BadLen = 1 "OFPBMC_BAD_LEN",
    BadTag = 2 "OFPBMC_BAD_TAG",
    BadDlAddrMask = 3 "OFPBMC_BAD_DL_ADDR_MASK",
    BadNwAddrMask = 4 "OFPBMC_BAD_NW_ADDR_MASK",
    BadWildcards = 5 "OFPBMC_BAD_WILDCARDS",
    BadField = 6 "OFPBMC_BAD_FIELD",
    BadValue = 7 "OFPBMC_BAD_VALUE",
    BadMask = 8 "OFPBMC_BAD_MASK",
    BadPrereq = 9 "OFPBMC_BAD_PREREQ",
    DupField = 10 "OFPBMC_DUP_FIELD",
    Eperm = 11 "OFPBMC_EPERM",
}
FlowModFailed = 5 "OFPET_FLOW_MOD_FAILED" {
    Unspecified = 0 "OFPFMFC_UNKNOWN",
    TableFull = 1 "OFPFMFC_TABLE_FULL",
    BadTableId = 2 "OFPFMFC_BAD_TABLE_ID",
    Overlap = 3 "OFPFMFC_OVERLAP",
    Eperm = 4 "OFPFMFC_EPERM",
    BadTimeout = 5 "OFPFMFC_BAD_TIMEOUT",
    BadCommand = 6 "OFPFMFC_BAD_COMMAND",
    BadFlags = 7 "OFPFMFC_BAD_FLAGS",
}
GroupModFailed = 6 "OFPET_GROUP_MOD_FAILED" {
    GroupExists = 0 "OFPGMFC_GROUP_EXISTS",
    InvalidGroup = 1 "OFPGMFC_INVALID_GROUP",
    WeightUnsupported = 2 "OFPGMFC_WEIGHT_UNSUPPORTED",
    OutOfGroups = 3 "OFPGMFC_OUT_OF_GROUPS",
    OutOfBuckets = 4 "OFPGMFC_OUT_OF_BUCKETS",
    ChainingUnsupported = 5 "OFPGMFC_CHAINING_UNSUPPORTED",
    WatchUnsupported = 6 "OFPGMFC_WATCH_UNSUPPORTED",
    Loop = 7 "OFPGMFC_LOOP",
    UnknownGroup = 8 "OFPGMFC_UNKNOWN_GROUP",
    ChainedGroup = 9 "OFPGMFC_CHAINED_GROUP",
    BadType = 10 "OFPGMFC_BAD_TYPE",
    BadCommand = 11 "OFPGMFC_BAD_COMMAND",
    BadBucket = 12 "OFPGMFC_BAD_BUCKET",
    BadWatch = 13 "OFPGMFC_BAD_WATCH",
    Eperm = 14 "OFPGMFC_EPERM",
}
PortModFailed = 7 "OFPET_PORT_MOD_FAILED" {
    BadPort = 0 "OFPPMFC_BAD_PORT",
    BadHwAddr = 1 "OFPPMFC_BAD_HW_ADDR",
    BadConfig = 2 "OFPPMFC_BAD_CONFIG",
    BadAdvertise = 3 "OFPPMFC_BAD_ADVERTISE",
    Eperm = 4 "OFPPMFC_EPERM",
}
TableModFailed = 8 "OFPET_TABLE_MOD_FAILED" {
    BadTable = 0 "OFPTMFC_BAD_TABLE",
    BadConfig = 1 "OFPTMFC_BAD_CONFIG",
    Eperm = 2 "OFPTMFC_EPERM",
}
QueueOpFailed = 9 "OFPET_QUEUE_OP_FAILED" {
    BadPort = 0 "OFPQOFC_BAD_PORT",
    BadQueue = 1 "OFPQOFC_BAD_QUEUE",
    Eperm = 2 "OFPQOFC_EPERM",
}
SwitchConfigFailed = 10 "OFPET_SWITCH_CONFIG_FAILED" {
    BadFlags = 0 "OFPSCFC_BAD_FLAGS",
    BadLen = 1 "OFPSCFC_BAD_LEN",
    Eperm = 2 "OFPSCFC_EPERM",
}
RoleRequestFailed = 11 "OFPET_ROLE_REQUEST_FAILED" {
    Stale = 0 "OFPRRFC_STALE",
    Unsup = 1 "OFPRRFC_UNSUP",
    BadRole = 2 "OFPRRFC_BAD_ROLE",
}
MeterModFailed = 12 "OFPET_METER_MOD_FAILED" {
    Unspecified = 0 "OFPMMFC_UNKNOWN",
    MeterExists = 1 "OFPMMFC_METER_EXISTS",
    InvalidMeter = 2 "OFPMMFC_INVALID_METER",
    UnknownMeter = 3 "OFPMMFC_UNKNOWN_METER",
    BadCommand = 4 "OFPMMFC_BAD_COMMAND",
    BadFlags = 5 "OFPMMFC_BAD_FLAGS",
    BadRate = 6 "OFPMMFC_BAD_RATE",
    BadBurst = 7 "OFPMMFC_BAD_BURST",
    BadBand = 8 "OFPMMFC_BAD_BAND",
    BadBandValue = 9 "OFPMMFC_BAD_BAND_VALUE",
    OutOfMeters = 10 "OFPMMFC_OUT_OF_METERS",
    OutOfBands = 11 "OFPMMFC_OUT_OF_BANDS",
}
TableFeaturesFailed = 13 "OFPET_TABLE_FEATURES_FAILED" {
    BadTable = 0 "OFPTFFC_BAD_TABLE",
    BadMetadata = 1 "OFPTFFC_BAD_METADATA",
    BadType = 2 "OFPTFFC_BAD_TYPE",
    BadLen = 3 "OFPTFFC_BAD_LEN",
    BadArgument = 4 "OFPTFFC_BAD_ARGUMENT",
    Eperm = 5 "OFPTFFC_EPERM",
}}

/// `OFPET_EXPERIMENTER`: a code is the experimenter's own type, and the experimenter follows it.
const EXPERIMENTER: u16 = 0xffff;

impl Error {
    /// The experimenter, when the error is one of an experimenter.
    #[must_use]
    pub fn experimenter(&self) -> Option<u32> {
        let first = self.data.first_chunk().filter(|_| self.kind.fault().error_type == EXPERIMENTER);
        first.map(|bytes| u32::from_be_bytes(*bytes))
    }
}
