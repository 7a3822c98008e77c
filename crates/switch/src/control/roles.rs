//! The requests that a slave may not make, known from a message's first bytes: its role is looked at before what it
//! wrote.

use twinnet_openflow::{nicira, v10};

/// The transaction of a whole message.
pub(super) fn xid_of(message: &[u8]) -> u32 {
    message.get(4..8).map_or(0, |xid| u32::from_be_bytes([xid[0], xid[1], xid[2], xid[3]]))
}

/// Returns `true` if a whole message sends frames or changes the state of the switch, which "the slave controller must
/// be denied" (OpenFlow 1.3, 6.3.4). In 1.0 roles are Nicira's extension, with the same meaning.
pub(super) fn is_denied_to_slaves(version: u8, message: &[u8]) -> bool {
    const EXPERIMENTER: u8 = 4;
    const SET_CONFIG: u8 = 9;
    const PACKET_OUT: u8 = 13;
    const FLOW_MOD: u8 = 14;
    /// 1.0: port-mod, 1.3: group-mod.
    const PORT_MOD_V10_GROUP_MOD: u8 = 15;
    const PORT_MOD: u8 = 16;
    const TABLE_MOD: u8 = 17;
    const MULTIPART_REQUEST: u8 = 18;
    const METER_MOD: u8 = 29;
    const TABLE_FEATURES: [u8; 2] = [0, 12];
    const FLOW_MOD_OF_NICIRA: [u8; 4] = [0, 0, 0, 13];
    match message.get(1) {
        Some(&(SET_CONFIG | PACKET_OUT | FLOW_MOD | PORT_MOD_V10_GROUP_MOD)) => true,
        Some(&EXPERIMENTER) => {
            message.get(8..12) == Some(&nicira::NICIRA.to_be_bytes())
                && message.get(12..16) == Some(&FLOW_MOD_OF_NICIRA)
        }
        Some(_) if version == v10::VERSION => false,
        Some(&(PORT_MOD | TABLE_MOD | METER_MOD)) => true,
        // Features that are to be written; a question has no body.
        Some(&MULTIPART_REQUEST) => message.get(8..10) == Some(&TABLE_FEATURES) && message.len() > 16,
        _ => false,
    }
}
