//! Frames to test with, from host `from` to host `to`.

use twinnet_packet::{checksum, Checksum, Frame, Layout, Offload, Segmentation};

fn ethernet(from: u8, to: u8, eth_type: u16) -> Vec<u8> {
    let mut bytes = vec![0, 0, 0, 0, 0, to, 0, 0, 0, 0, 0, from];
    bytes.extend(eth_type.to_be_bytes());
    bytes
}

fn ipv4(from: u8, to: u8, protocol: u8, transport: &[u8]) -> Vec<u8> {
    let mut bytes = ethernet(from, to, 0x0800);
    bytes.extend([0x45, 0]);
    bytes.extend((20 + transport.len() as u16).to_be_bytes());
    bytes.extend([0, 1, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, from, 10, 0, 0, to]);
    let header = checksum::checksum(&bytes[14..34]);
    bytes[24..26].copy_from_slice(&header.to_be_bytes());
    bytes.extend(transport);
    bytes
}

fn finished(bytes: Vec<u8>, start: usize, offset: usize) -> Frame {
    let mut frame = unfinished(bytes, 0, start, offset);
    frame.finish_checksum();
    frame
}

/// With the sum of the pseudo-header in place of the checksum, for a payload of which `elided` bytes are not stored.
fn unfinished(bytes: Vec<u8>, elided: u32, start: usize, offset: usize) -> Frame {
    let length = (bytes.len() - start) as u32 + elided;
    let v6 = bytes[14] >> 4 == 6;
    let sum = if v6 {
        let address = |at: usize| bytes[at..at + 16].try_into().unwrap();
        checksum::pseudo_header_v6(&address(22), &address(38), bytes[20], length)
    } else {
        let address = |at: usize| bytes[at..at + 4].try_into().unwrap();
        checksum::pseudo_header_v4(address(26), address(30), bytes[23], length)
    };
    let mut frame = Frame::new(bytes);
    frame.bytes[start + offset..start + offset + 2].copy_from_slice(&sum.to_be_bytes());
    frame.checksum = Checksum::Partial { start: start as u16, offset: offset as u16 };
    frame.elided = elided;
    frame
}

fn tcp_header(to_port: u16) -> Vec<u8> {
    let mut header = vec![0x9c, 0x40];
    header.extend(to_port.to_be_bytes());
    header.extend([0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x10, 0x20, 0, 0, 0, 0, 0]);
    header
}

/// A TCP segment with ten bytes.
pub(crate) fn tcp(from: u8, to: u8, to_port: u16) -> Frame {
    finished(ipv4(from, to, 6, &[tcp_header(to_port), vec![7; 10]].concat()), 34, 16)
}

/// A TCP segment over IPv6.
pub(crate) fn tcp6(from: u8, to: u8, to_port: u16) -> Frame {
    let mut bytes = ethernet(from, to, 0x86dd);
    bytes.extend([0x60, 0, 0, 0, 0, 20, 6, 64]);
    for host in [from, to] {
        bytes.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
    }
    bytes.extend(tcp_header(to_port));
    finished(bytes, 54, 16)
}

/// A UDP datagram with ten bytes.
pub(crate) fn udp(from: u8, to: u8, to_port: u16) -> Frame {
    let mut transport = vec![0x9c, 0x40];
    transport.extend(to_port.to_be_bytes());
    transport.extend([0, 18, 0, 0]);
    transport.extend([7; 10]);
    finished(ipv4(from, to, 17, &transport), 34, 6)
}

/// A train of TCP segments: `payload` bytes that are not stored, 1448 a frame.
pub(crate) fn tcp_train(from: u8, to: u8, to_port: u16, payload: u32) -> Frame {
    let mut frame = unfinished(ipv4(from, to, 6, &tcp_header(to_port)), payload, 34, 16);
    frame.offload = Some(Offload { kind: Segmentation::Tcp4, segment: 1448, header: 54, ecn: false });
    frame
}

/// An ARP request for host `to`.
pub(crate) fn arp(from: u8, to: u8) -> Frame {
    let mut bytes = ethernet(from, to, 0x0806);
    bytes[..6].fill(0xff);
    bytes.extend([0, 1, 8, 0, 6, 4, 0, 1, 0, 0, 0, 0, 0, from, 10, 0, 0, from, 0, 0, 0, 0, 0, 0, 10, 0, 0, to]);
    Frame::new(bytes)
}

/// The same frame with a VLAN tag.
pub(crate) fn tagged(frame: &Frame, tci: u16) -> Frame {
    let mut frame = frame.clone();
    let [high, low] = tci.to_be_bytes();
    frame.bytes.splice(12..12, [0x81, 0, high, low]);
    frame
}

/// Checks that the checksums of an IPv4 or IPv6 frame are right (a partial one is finished first).
pub(crate) fn verify(frame: &Frame) {
    let mut frame = frame.clone();
    frame.finish_checksum();
    let bytes = &frame.bytes;
    let layout = Layout::of(bytes);
    let (l3, l4) = (layout.l3().unwrap(), layout.l4().unwrap());
    let length = (bytes.len() - l4) as u32 + frame.elided;
    let pseudo = if bytes[l3] >> 4 == 4 {
        assert_eq!(checksum::checksum(&bytes[l3..l3 + 20]), 0, "IPv4 header checksum");
        let address = |at: usize| bytes[l3 + at..l3 + at + 4].try_into().unwrap();
        checksum::pseudo_header_v4(address(12), address(16), layout.protocol(), length)
    } else {
        let address = |at: usize| bytes[l3 + at..l3 + at + 16].try_into().unwrap();
        checksum::pseudo_header_v6(&address(8), &address(24), layout.protocol(), length)
    };
    assert_eq!(checksum::add(pseudo, checksum::sum(&bytes[l4..])), 0xffff, "transport checksum");
}
