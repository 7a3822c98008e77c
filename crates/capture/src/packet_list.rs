//! The first packets of a capture one by one, as the list of Wireshark has them: who sent what to whom, in a line.

use std::net::Ipv4Addr;

use rustc_hash::FxHashMap;
use twinnet_packet::{arp, icmpv4, icmpv6};

use crate::decode::{address, decode, Address, Layer, Transport, TCP, UDP};
use crate::link::LinkType;
use crate::reader::Record;
use crate::table::{Table, MISSING};

const ICMP: u8 = 1;
const ICMP_V6: u8 = 58;
const ARP: u16 = 0x0806;
const BROADCAST: [u8; 6] = [0xff; 6];
/// Names of TCP flags by their bit, in the order in which Wireshark writes them.
const FLAGS: [(u8, &str); 8] = [
    (0x02, "SYN"),
    (0x01, "FIN"),
    (0x04, "RST"),
    (0x08, "PSH"),
    (0x10, "ACK"),
    (0x20, "URG"),
    (0x40, "ECE"),
    (0x80, "CWR"),
];

/// One direction of a TCP connection: addresses and ports, the sender's first.
type Way = (Address, u16, Address, u16);

struct Row {
    number: u64,
    time_ns: i64,
    source: String,
    destination: String,
    protocol: String,
    /// Of TCP and UDP: the sender's port, then the receiver's.
    ports: Option<(u16, u16)>,
    length: u32,
    info: String,
}

/// Packets kept while a capture is read. Memory is bounded by how many are asked for.
pub(crate) struct PacketList {
    most: usize,
    rows: Vec<Row>,
    /// The first sequence number of each direction: numbers are told from there.
    first_sequence: FxHashMap<Way, u32>,
}

impl PacketList {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, rows: Vec::new(), first_sequence: FxHashMap::default() }
    }

    /// Keeps `record` unless there are enough.
    #[inline]
    pub(crate) fn add(&mut self, record: &Record<'_>) {
        if self.rows.len() < self.most {
            self.keep(record);
        }
    }

    fn keep(&mut self, record: &Record<'_>) {
        let mut row = Row {
            number: record.number,
            time_ns: record.time_ns.unwrap_or(MISSING),
            source: String::new(),
            destination: String::new(),
            protocol: String::new(),
            ports: None,
            length: record.original_length,
            info: String::new(),
        };
        match record.link {
            Err(number) => row.info = format!("link type {number} is not looked into"),
            Ok(link) => self.describe(link, record.bytes, &mut row),
        }
        self.rows.push(row);
    }

    fn describe(&mut self, link: LinkType, bytes: &[u8], row: &mut Row) {
        let mut innermost: Option<Layer<'_>> = None;
        let mut tunnels = Vec::new();
        decode(link, bytes, |layer| {
            if let Some(outer) = innermost.replace(*layer) {
                let name = protocol_name(&outer);
                let name = if outer.protocol == UDP { "VXLAN" } else { &name };
                tunnels.push(format!(
                    "in {name} {} \u{2192} {}: ",
                    address(outer.v6, outer.source),
                    address(outer.v6, outer.destination)
                ));
            }
        });
        let Some(layer) = innermost else {
            describe_frame(link, bytes, row);
            return;
        };
        row.source = address(layer.v6, layer.source).to_string();
        row.destination = address(layer.v6, layer.destination).to_string();
        row.protocol = protocol_name(&layer);
        row.ports = match layer.transport {
            Transport::Udp { source, destination, .. } | Transport::Tcp { source, destination, .. } => {
                Some((source, destination))
            }
            Transport::None => None,
        };
        row.info = tunnels.concat() + &self.info(&layer);
    }

    fn info(&mut self, layer: &Layer<'_>) -> String {
        if let Some(part) = layer.fragment.filter(|part| part.offset > 0) {
            let more = if part.more { "more follow" } else { "the last" };
            return format!("Fragment from byte {}, {more}, ID=0x{:04x}", part.offset, layer.identification);
        }
        let begin = if layer.fragment.is_some() { "First fragment, " } else { "" };
        let said = match layer.transport {
            Transport::Udp { source, destination, payload } => {
                format!("{source} \u{2192} {destination} Len={payload}")
            }
            Transport::Tcp { source, destination, sequence, acknowledgement, flags, window, payload, .. } => {
                let way = (layer.source, source, layer.destination, destination);
                let back = (layer.destination, destination, layer.source, source);
                if flags & 0x02 != 0 {
                    self.first_sequence.insert(way, sequence);
                }
                let first = *self.first_sequence.entry(way).or_insert(sequence);
                let mut said =
                    format!("{source} \u{2192} {destination} [{}] Seq={}", names(flags), sequence.wrapping_sub(first));
                if flags & 0x10 != 0 {
                    let first = *self.first_sequence.entry(back).or_insert(acknowledgement.wrapping_sub(1));
                    said += &format!(" Ack={}", acknowledgement.wrapping_sub(first));
                }
                format!("{said} Win={window} Len={payload}")
            }
            Transport::None => match layer.protocol {
                ICMP if !layer.v6 => icmp_v4(layer.payload),
                ICMP_V6 => icmp_v6(layer.payload),
                _ => format!("{} bytes", layer.payload_length),
            },
        };
        format!("{begin}{said}")
    }

    /// The packets kept; times are counted from `first_ns`.
    pub(crate) fn table(&self, first_ns: Option<i64>) -> Table {
        let mut table = Table::default();
        if self.most == 0 {
            return table;
        }
        let since = |time: i64| match first_ns {
            Some(first) if time != MISSING => time.saturating_sub(first),
            _ => MISSING,
        };
        let rows = || self.rows.iter();
        let port = |of: fn((u16, u16)) -> u16| rows().map(move |row| row.ports.map_or(MISSING, |both| of(both).into()));
        table.count("packet", rows().map(|row| row.number));
        table.whole("time_ns", rows().map(|row| row.time_ns));
        table.whole("since_start_ns", rows().map(|row| since(row.time_ns)));
        table.text("source", rows().map(|row| row.source.clone()));
        table.text("destination", rows().map(|row| row.destination.clone()));
        table.text("protocol", rows().map(|row| row.protocol.clone()));
        table.whole("source_port", port(|(source, _)| source));
        table.whole("destination_port", port(|(_, destination)| destination));
        table.count("length", rows().map(|row| u64::from(row.length)));
        table.text("info", rows().map(|row| row.info.clone()));
        table
    }
}

/// A frame that carries no network packet: ARP, or the number of what it carries.
fn describe_frame(link: LinkType, bytes: &[u8], row: &mut Row) {
    if link == LinkType::Ethernet {
        if let Some([destination, source]) = bytes.first_chunk::<12>().map(|pair| {
            let (first, second) = pair.split_at(6);
            [first, second].map(|half| <[u8; 6]>::try_from(half).unwrap_or_default())
        }) {
            row.source = hardware(source);
            row.destination = if destination == BROADCAST { "Broadcast".to_owned() } else { hardware(destination) };
        }
    }
    let Some((kind, at)) = link.payload(bytes) else {
        "802.2 LLC".clone_into(&mut row.protocol);
        return;
    };
    let carried = bytes.get(at..).unwrap_or(&[]);
    row.protocol = match kind {
        ARP => {
            row.info = arp::Packet::new_checked(carried).map_or_else(|_| "cut off".to_owned(), |packet| says(&packet));
            "ARP".to_owned()
        }
        0x88cc => "LLDP".to_owned(),
        0x0800 | 0x86dd => {
            "cut off, or no valid header".clone_into(&mut row.info);
            if kind == 0x0800 { "IPv4" } else { "IPv6" }.to_owned()
        }
        other => format!("0x{other:04x}"),
    };
}

fn says(packet: &arp::Packet<&[u8]>) -> String {
    let (sender, target): (Ipv4Addr, Ipv4Addr) = (packet.sender_protocol(), packet.target_protocol());
    match packet.operation() {
        1 => format!("Who has {target}? Tell {sender}"),
        2 => format!("{sender} is at {}", hardware(packet.sender_hardware())),
        other => format!("operation {other}"),
    }
}

fn hardware(address: [u8; 6]) -> String {
    address.map(|byte| format!("{byte:02x}")).join(":")
}

fn protocol_name(layer: &Layer<'_>) -> String {
    match layer.protocol {
        ICMP => "ICMP".to_owned(),
        2 => "IGMP".to_owned(),
        4 => "IPv4".to_owned(),
        TCP => "TCP".to_owned(),
        UDP => "UDP".to_owned(),
        41 => "IPv6".to_owned(),
        47 => "GRE".to_owned(),
        50 => "ESP".to_owned(),
        ICMP_V6 => "ICMPv6".to_owned(),
        89 => "OSPF".to_owned(),
        132 => "SCTP".to_owned(),
        other => format!("IP {other}"),
    }
}

fn names(flags: u8) -> String {
    let set: Vec<_> = FLAGS.iter().filter(|(bit, _)| flags & bit != 0).map(|(_, name)| *name).collect();
    if set.is_empty() {
        return "no flags".to_owned();
    }
    set.join(", ")
}

fn icmp_v4(bytes: &[u8]) -> String {
    let Ok(packet) = icmpv4::Packet::new_checked(bytes) else { return "cut off".to_owned() };
    let kind = match packet.kind() {
        8 => return echo("request", packet.rest()),
        0 => return echo("reply", packet.rest()),
        3 => match packet.code() {
            0 => "Network unreachable",
            1 => "Host unreachable",
            2 => "Protocol unreachable",
            3 => "Port unreachable",
            4 => "Fragmentation needed",
            13 => "Prohibited by a filter",
            _ => "Destination unreachable",
        },
        5 => "Redirect",
        11 => "Time to live exceeded",
        12 => "Parameter problem",
        _ => return format!("type {}, code {}", packet.kind(), packet.code()),
    };
    kind.to_owned()
}

fn icmp_v6(bytes: &[u8]) -> String {
    let Ok(packet) = icmpv6::Packet::new_checked(bytes) else { return "cut off".to_owned() };
    let target = || packet.target().map_or_else(String::new, |target| format!(" {target}"));
    match packet.kind() {
        1 if packet.code() == 4 => "Port unreachable".to_owned(),
        1 => "Destination unreachable".to_owned(),
        2 => format!("Packet too big, MTU={}", packet.rest()),
        3 => "Hop limit exceeded".to_owned(),
        128 => echo("request", packet.rest()),
        129 => echo("reply", packet.rest()),
        130 => "Multicast listener query".to_owned(),
        131 | 143 => "Multicast listener report".to_owned(),
        133 => "Router solicitation".to_owned(),
        134 => "Router advertisement".to_owned(),
        135 => format!("Neighbor solicitation for{}", target()),
        136 => format!("Neighbor advertisement{}", target()),
        other => format!("type {other}, code {}", packet.code()),
    }
}

fn echo(what: &str, rest: u32) -> String {
    format!("Echo (ping) {what} id=0x{:04x}, seq={}", rest >> 16, rest & 0xffff)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Column;

    fn record(number: u64, bytes: &[u8]) -> Record<'_> {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        Record {
            number,
            time_ns: Some(1_000 * number as i64),
            link: Ok(LinkType::Ethernet),
            original_length: length,
            bytes,
        }
    }

    fn ethernet(kind: [u8; 2], payload: &[u8]) -> Vec<u8> {
        [&[0xff; 6][..], &[2, 0, 0, 0, 0, 1], &kind, payload].concat()
    }

    fn ip(protocol: u8, from: u8, to: u8, payload: &[u8]) -> Vec<u8> {
        let total = (20 + payload.len()) as u16;
        let mut bytes = vec![0x45, 0, (total >> 8) as u8, total as u8, 0, 9, 0, 0, 64, protocol, 0, 0];
        bytes.extend([10, 0, 0, from, 10, 0, 0, to]);
        bytes.extend(payload);
        ethernet([8, 0], &bytes)
    }

    fn tcp(ports: (u16, u16), sequence: u32, acknowledgement: u32, flags: u8) -> Vec<u8> {
        let mut bytes = [ports.0.to_be_bytes(), ports.1.to_be_bytes()].concat();
        bytes.extend(sequence.to_be_bytes());
        bytes.extend(acknowledgement.to_be_bytes());
        bytes.extend([0x50, flags, 0x10, 0, 0, 0, 0, 0]);
        bytes
    }

    fn texts(list: &PacketList, column: &str) -> Vec<String> {
        match list.table(Some(0)).column(column) {
            Some(Column::Text(values)) => values.clone(),
            other => panic!("{column} is {other:?}"),
        }
    }

    #[test]
    fn a_line_says_what_a_packet_is() {
        let request = [&[0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1][..], &[0; 6], &[10, 0, 0, 2]].concat();
        let frames = [
            ethernet([8, 6], &request),
            ip(ICMP, 1, 2, &[8, 0, 0, 0, 0, 7, 0, 3]),
            ip(UDP, 1, 2, &[0x0f, 0xa0, 0, 53, 0, 11, 0, 0, 1, 2, 3]),
            ethernet([0x88, 0xcc], &[0; 4]),
            ethernet([8, 0], &[0x45]),
        ];
        let mut list = PacketList::new(10);
        for (number, frame) in (1..).zip(&frames) {
            list.add(&record(number, frame));
        }
        assert_eq!(texts(&list, "protocol"), ["ARP", "ICMP", "UDP", "LLDP", "IPv4"]);
        assert_eq!(
            texts(&list, "info"),
            [
                "Who has 10.0.0.2? Tell 10.0.0.1",
                "Echo (ping) request id=0x0007, seq=3",
                "4000 \u{2192} 53 Len=3",
                "",
                "cut off, or no valid header"
            ]
        );
        assert_eq!(texts(&list, "source")[..2], ["02:00:00:00:00:01", "10.0.0.1"]);
        assert_eq!(texts(&list, "destination")[..2], ["Broadcast", "10.0.0.2"]);
        let wholes = |column| list.table(Some(0)).column(column).cloned();
        let ports = |of_udp| Some(Column::Whole(vec![MISSING, MISSING, of_udp, MISSING, MISSING]));
        assert_eq!((wholes("source_port"), wholes("destination_port")), (ports(4000), ports(53)));
    }

    #[test]
    fn sequence_numbers_count_from_the_first_of_each_direction() {
        let frames = [
            ip(TCP, 1, 2, &tcp((4000, 80), u32::MAX, 0, 0x02)),
            ip(TCP, 2, 1, &tcp((80, 4000), 700, 0, 0x12)),
            ip(TCP, 1, 2, &[tcp((4000, 80), 0, 701, 0x18), vec![1; 5]].concat()),
            ip(TCP, 2, 1, &tcp((80, 4000), 701, 5, 0x10)),
        ];
        let mut list = PacketList::new(10);
        for (number, frame) in (1..).zip(&frames) {
            list.add(&record(number, frame));
        }
        assert_eq!(
            texts(&list, "info"),
            [
                "4000 \u{2192} 80 [SYN] Seq=0 Win=4096 Len=0",
                "80 \u{2192} 4000 [SYN, ACK] Seq=0 Ack=1 Win=4096 Len=0",
                "4000 \u{2192} 80 [PSH, ACK] Seq=1 Ack=1 Win=4096 Len=5",
                "80 \u{2192} 4000 [ACK] Seq=1 Ack=6 Win=4096 Len=0",
            ]
        );
    }

    #[test]
    fn no_more_are_kept_than_were_asked_for() {
        let frame = ethernet([0x88, 0xcc], &[]);
        let mut list = PacketList::new(2);
        (1..=5).for_each(|number| list.add(&record(number, &frame)));
        assert_eq!(list.rows.len(), 2);
        let mut none = PacketList::new(0);
        none.add(&record(1, &frame));
        assert!(none.table(None).columns.is_empty());
    }
}
