//! The VLAN tag of a received frame. The kernel takes it out before a packet socket sees the frame (as network
//! cards do) and tells it beside, in a `tpacket_auxdata`; a switch needs it where it was.

use std::mem::{size_of, zeroed};
use std::os::fd::RawFd;

/// Bytes of a tag.
pub(crate) const BYTES: u16 = 4;
/// The offset at which it stands: behind both addresses.
const PLACE: usize = 12;
/// The tag protocol identifier of IEEE 802.1Q, which old kernels do not tell.
const IEEE_802_1Q: u16 = 0x8100;
const TP_STATUS_VLAN_VALID: u32 = 1 << 4;
const TP_STATUS_VLAN_TPID_VALID: u32 = 1 << 6;

/// `struct tpacket_auxdata` of `linux/if_packet.h`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct AuxiliaryData {
    status: u32,
    length: u32,
    snapped_length: u32,
    mac: u16,
    net: u16,
    vlan_tci: u16,
    vlan_tpid: u16,
}

/// Room for one control message, as `CMSG_SPACE` reckons it, aligned as its header is.
#[repr(C, align(8))]
struct Control([u8; 64]);

/// A tag that was taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VlanTag {
    protocol: u16,
    control: u16,
}

impl VlanTag {
    fn of(told: AuxiliaryData) -> Option<Self> {
        let has = |flag| told.status & flag != 0;
        let protocol = if has(TP_STATUS_VLAN_TPID_VALID) { told.vlan_tpid } else { IEEE_802_1Q };
        has(TP_STATUS_VLAN_VALID).then_some(Self { protocol, control: told.vlan_tci })
    }

    /// Puts the tag where it was.
    pub(crate) fn put_back(self, bytes: &mut Vec<u8>) {
        if bytes.len() >= PLACE {
            let tag = (u32::from(self.protocol) << 16 | u32::from(self.control)).to_be_bytes();
            bytes.splice(PLACE..PLACE, tag);
        }
    }
}

/// Receives a frame into `parts`; gives what the kernel returned, and the tag that it had taken out.
///
/// # Safety
/// The parts must point to writable memory of the lengths that they tell.
pub(crate) unsafe fn receive(socket: RawFd, parts: &mut [libc::iovec; 2]) -> (isize, Option<VlanTag>) {
    let mut control = Control([0; 64]);
    let mut message: libc::msghdr = zeroed();
    message.msg_iov = parts.as_mut_ptr();
    message.msg_iovlen = parts.len();
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len();
    let length = libc::recvmsg(socket, &raw mut message, 0);
    if length < 0 {
        return (length, None);
    }
    let mut part = libc::CMSG_FIRSTHDR(&raw const message);
    while !part.is_null() {
        let told = (*part).cmsg_len as usize >= libc::CMSG_LEN(size_of::<AuxiliaryData>() as u32) as usize;
        if (*part).cmsg_level == libc::SOL_PACKET && (*part).cmsg_type == libc::PACKET_AUXDATA && told {
            return (length, VlanTag::of(libc::CMSG_DATA(part).cast::<AuxiliaryData>().read_unaligned()));
        }
        part = libc::CMSG_NXTHDR(&raw const message, part);
    }
    (length, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_put_behind_the_addresses() {
        let told = AuxiliaryData { status: 0x51, vlan_tci: 0x6064, vlan_tpid: 0x88a8, ..AuxiliaryData::default() };
        let mut bytes: Vec<u8> = (0..14).collect();
        VlanTag::of(told).unwrap().put_back(&mut bytes);
        assert_eq!(bytes[10..], [10, 11, 0x88, 0xa8, 0x60, 0x64, 12, 13]);
    }

    #[test]
    fn a_tag_of_priority_only_is_a_tag_and_none_is_none() {
        let told = AuxiliaryData { status: 0x11, ..AuxiliaryData::default() };
        assert_eq!(VlanTag::of(told), Some(VlanTag { protocol: 0x8100, control: 0 }));
        assert_eq!(VlanTag::of(AuxiliaryData { status: 1, vlan_tci: 5, ..told }), None);
    }

    #[test]
    fn a_frame_too_short_for_a_tag_stays_as_it_is() {
        let mut bytes = vec![1, 2, 3];
        VlanTag { protocol: 0x8100, control: 1 }.put_back(&mut bytes);
        assert_eq!(bytes, [1, 2, 3]);
    }
}
