//! Port numbers of 16 bits (OpenFlow 1.0 and Nicira's actions) and of 32.

/// The port of 32 bits: the reserved ones are at the end of either range.
#[must_use]
pub const fn from_narrow(port: u16) -> u32 {
    if port >= 0xff00 {
        0xffff_0000 | port as u32
    } else {
        port as u32
    }
}

/// The port of 16 bits; `OFPP_NONE` for one that has none.
pub(crate) const fn to_narrow(port: u32) -> u16 {
    if port < 0xff00 || port >= 0xffff_ff00 {
        port as u16
    } else {
        0xffff
    }
}
