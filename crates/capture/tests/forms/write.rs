//! Captures as bytes, in every form.

/// The byte order of what is written.
#[derive(Clone, Copy, Debug)]
pub enum Order {
    Little,
    Big,
}

impl Order {
    pub fn half(self, value: u16) -> [u8; 2] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }

    pub fn word(self, value: u32) -> [u8; 4] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }

    pub fn long(self, value: u64) -> [u8; 8] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }
}

/// A packet: nanoseconds since 1970 (whole microseconds) and its bytes.
pub type Packet = (u64, Vec<u8>);

/// An Ethernet frame with a UDP datagram that carries `payload` to port 5004.
pub fn frame(payload: &[u8]) -> Vec<u8> {
    let datagram = (8 + payload.len()) as u16;
    let total = 20 + datagram;
    let mut bytes = vec![0; 12];
    bytes.extend([8, 0, 0x45, 0]);
    bytes.extend(total.to_be_bytes());
    bytes.extend([0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    for word in [4000, 5004, datagram, 0] {
        bytes.extend(word.to_be_bytes());
    }
    bytes.extend(payload);
    bytes
}

/// An RTP packet of 40 bytes.
pub fn rtp(sequence: u16) -> Vec<u8> {
    let mut bytes = vec![0x80, 33];
    bytes.extend(sequence.to_be_bytes());
    bytes.extend((u32::from(sequence) * 900).to_be_bytes());
    bytes.extend(7_u32.to_be_bytes());
    bytes.resize(40, 0);
    bytes
}

/// Twenty packets of a stream, ten milliseconds apart.
pub fn packets() -> Vec<Packet> {
    (0..20).map(|index| (1_700_000_000_000_000_000 + u64::from(index) * 10_000_000, frame(&rtp(index)))).collect()
}

pub fn pcap(order: Order, nanoseconds: bool, packets: &[Packet]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(order.word(if nanoseconds { 0xa1b2_3c4d } else { 0xa1b2_c3d4 }));
    bytes.extend(order.half(2));
    bytes.extend(order.half(4));
    for word in [0, 0, 262_144, 1] {
        bytes.extend(order.word(word));
    }
    for (time, packet) in packets {
        let fraction = (time % 1_000_000_000) as u32 / if nanoseconds { 1 } else { 1000 };
        for word in [(time / 1_000_000_000) as u32, fraction, packet.len() as u32, packet.len() as u32] {
            bytes.extend(order.word(word));
        }
        bytes.extend(packet);
    }
    bytes
}

pub fn block(order: Order, kind: u32, body: &[u8]) -> Vec<u8> {
    let padded = body.len().next_multiple_of(4);
    let length = order.word(padded as u32 + 12);
    let mut bytes = [order.word(kind), length].concat();
    bytes.extend(body);
    bytes.resize(8 + padded, 0);
    bytes.extend(length);
    bytes
}

pub fn section(order: Order) -> Vec<u8> {
    let body = [&order.word(0x1a2b_3c4d)[..], &order.half(1), &order.half(0), &[0xff; 8]].concat();
    block(order, 0x0a0d_0d0a, &body)
}

/// The description of an interface; `resolution` and `offset_s` as the options have them.
pub fn interface(order: Order, link: u16, resolution: u8, offset_s: u64) -> Vec<u8> {
    let mut body = [&order.half(link)[..], &order.half(0), &order.word(0)].concat();
    body.extend([&order.half(9)[..], &order.half(1), &[resolution, 0, 0, 0]].concat());
    body.extend([&order.half(14)[..], &order.half(8), &order.long(offset_s)].concat());
    body.extend(order.word(0));
    block(order, 1, &body)
}

pub fn enhanced(order: Order, interface: u32, ticks: u64, packet: &[u8]) -> Vec<u8> {
    let length = packet.len() as u32;
    let mut body = Vec::new();
    for word in [interface, (ticks >> 32) as u32, ticks as u32, length, length] {
        body.extend(order.word(word));
    }
    body.extend(packet);
    body.resize(body.len().next_multiple_of(4), 0);
    // A comment, to be stepped over.
    body.extend([&order.half(1)[..], &order.half(2), b"hi\0\0", &order.word(0)].concat());
    block(order, 6, &body)
}

pub fn old(order: Order, interface: u16, ticks: u64, packet: &[u8]) -> Vec<u8> {
    let length = packet.len() as u32;
    let mut body = [order.half(interface), order.half(0)].concat();
    for word in [(ticks >> 32) as u32, ticks as u32, length, length] {
        body.extend(order.word(word));
    }
    body.extend(packet);
    block(order, 2, &body)
}

pub fn simple(order: Order, packet: &[u8]) -> Vec<u8> {
    block(order, 3, &[&order.word(packet.len() as u32)[..], packet].concat())
}

/// A capture of two sections in both byte orders, with interfaces of different clocks, and blocks that are passed over.
pub fn pcapng(packets: &[Packet]) -> Vec<u8> {
    let (little, big) = (Order::Little, Order::Big);
    let mut bytes = section(little);
    bytes.extend(interface(little, 1, 6, 0));
    bytes.extend(block(little, 4, &[0; 8]));
    bytes.extend(interface(little, 1, 9, 1_000_000_000));
    let (first, second) = packets.split_at(packets.len() / 2);
    for (index, (time, packet)) in first.iter().enumerate() {
        bytes.extend(match index % 3 {
            0 => enhanced(little, 0, time / 1000, packet),
            1 => enhanced(little, 1, time - 1_000_000_000_000_000_000, packet),
            _ => old(little, 0, time / 1000, packet),
        });
    }
    bytes.extend(block(little, 0x8000_0bad, &[1, 2, 3, 4, 5]));
    bytes.extend(section(big));
    bytes.extend(interface(big, 1, 12, 1_699_000_000));
    for (time, packet) in second {
        bytes.extend(enhanced(big, 0, (time - 1_699_000_000_000_000_000) * 1000, packet));
    }
    bytes
}
