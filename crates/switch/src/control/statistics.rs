//! Answers to questions about the state of the switch, in OpenFlow 1.3; and what both versions share.

use std::sync::Arc;

use twinnet_openflow::v13::multipart::{
    AggregateStats, BucketCounter, Description, FlowStats, FlowStatsRequest, GroupCapabilities, GroupDescription,
    GroupFeatures, GroupStats, MeterBandCounter, MeterConfig, MeterFeatures, MeterStats, PortStats, QueueStats,
    TableStats,
};
use twinnet_openflow::v13::{
    self, BadRequest, ErrorKind, FlowFlags, GroupType, Message, MeterFlags, MeterModFailed, Multipart, PortConfig,
    PortFeatures, PortState, QueueOpFailed, ReplyBody, RequestBody,
};
use twinnet_openflow::{v10, Text, Verbatim};

use super::super::event::{lived, seconds_and_nanoseconds};
use super::super::group::{GroupKind, MOST_GROUPS};
use super::super::meter::{MOST_BANDS, MOST_METERS};
use super::super::parse::Selection;
use super::super::pipeline::Entry;
use super::super::port::{Port, NO_FLOOD};
use super::super::written::Form;
use super::actions::write_instructions;
use super::connection::Connection;
use super::fields::{read_match, write_match};
use super::{Context, PortFacts};

/// The counters of a queue of a port.
pub(super) struct QueueFacts {
    pub(super) queue: u32,
    pub(super) frames: u64,
    pub(super) bytes: u64,
    pub(super) drops: u64,
    /// Guaranteed and highest rate in tenths of a percent of the line's, where the queue has such.
    pub(super) rates: Option<(u16, u16)>,
}

impl QueueFacts {
    pub(super) fn properties_v13(&self) -> Vec<v13::QueueProperty> {
        let both = |(least, most)| vec![v13::QueueProperty::MinimumRate(least), v13::QueueProperty::MaximumRate(most)];
        self.rates.map_or_else(Vec::new, both)
    }

    pub(super) fn properties_v10(&self) -> Vec<v13::QueueProperty> {
        self.rates.map_or_else(Vec::new, |(least, _)| vec![v13::QueueProperty::MinimumRate(least)])
    }
}

/// `rate` in tenths of a percent of the line's; more than the line has is all of it. Without a line rate there are
/// none.
fn share(rate_bps: u64, line_bps: Option<u64>) -> Option<u16> {
    let line = u128::from(line_bps.filter(|line| *line > 0)?);
    u16::try_from((u128::from(rate_bps) * 1000 / line).min(1000)).ok()
}

pub(super) fn described(dpid: u64) -> Description {
    let text = |text: &str| Text::new(text).unwrap_or_default();
    Description {
        manufacturer: text("twinnet"),
        hardware: text("none: a switch of the fabric"),
        software: text(env!("CARGO_PKG_VERSION")),
        serial_number: Text::new(&dpid.to_string()).unwrap_or_default(),
        datapath: Text::new(&format!("{dpid:016x}")).unwrap_or_default(),
    }
}

/// The speed of a port: 0 where nothing is known of it, and that of a virtual Ethernet interface, as Open vSwitch tells
/// it, where it leads to a line without a rate.
fn kbps(facts: Option<&PortFacts>) -> u32 {
    let Some(facts) = facts else { return 0 };
    facts.rate_bps.map_or(UNLIMITED_KBPS, |rate| u32::try_from(rate / 1000).unwrap_or(u32::MAX))
}

const UNLIMITED_KBPS: u32 = 10_000_000;

fn name<const N: usize>(port: &Port) -> Text<N> {
    let end = port.name.char_indices().map(|(at, one)| at + one.len_utf8()).take_while(|end| *end < N).last();
    Text::new(&port.name[..end.unwrap_or(0)]).unwrap_or_default()
}

pub(super) fn port_v13(port: &Port, facts: Option<&PortFacts>) -> v13::Port {
    let rate = kbps(facts);
    let features = match rate {
        10_000 => PortFeatures::RATE_10MB_FD,
        100_000 => PortFeatures::RATE_100MB_FD,
        1_000_000 => PortFeatures::RATE_1GB_FD,
        10_000_000 => PortFeatures::RATE_10GB_FD,
        40_000_000 => PortFeatures::RATE_40GB_FD,
        100_000_000 => PortFeatures::RATE_100GB_FD,
        0 => PortFeatures::default(),
        _ => PortFeatures::RATE_OTHER,
    };
    let down = if port.up { PortState::default() } else { PortState::LINK_DOWN };
    let live = if port.is_live() { PortState::LIVE } else { PortState::default() };
    v13::Port {
        port_no: port.number,
        hw_addr: port.mac,
        name: name(port),
        config: PortConfig(port.config & !NO_FLOOD & PortConfig::ALL.0),
        state: down | live,
        current: features,
        advertised: PortFeatures::default(),
        supported: features,
        peer: PortFeatures::default(),
        current_kbps: rate,
        maximum_kbps: rate,
    }
}

pub(super) fn port_v10(port: &Port, facts: Option<&PortFacts>) -> v10::Port {
    let features = match kbps(facts) {
        10_000 => v10::PortFeatures::RATE_10MB_FD,
        100_000 => v10::PortFeatures::RATE_100MB_FD,
        1_000_000 => v10::PortFeatures::RATE_1GB_FD,
        10_000_000 => v10::PortFeatures::RATE_10GB_FD,
        _ => v10::PortFeatures::default(),
    };
    v10::Port {
        port_no: super::numbers::to_narrow(port.number),
        hw_addr: port.mac,
        name: name(port),
        config: v10::PortConfig(port.config),
        state: if port.up { v10::PortState::default() } else { v10::PortState::LINK_DOWN },
        current: features,
        advertised: v10::PortFeatures::default(),
        supported: features,
        peer: v10::PortFeatures::default(),
    }
}

/// Hands over as many replies as it takes: a list that is too long for a message is halved.
pub(super) fn send_in_parts<T>(items: Vec<T>, more: bool, send: &mut dyn FnMut(&[T], bool) -> bool) {
    let mut ranges = vec![(0, items.len(), more)];
    while let Some((from, to, more)) = ranges.pop() {
        if send(&items[from..to], more) || to - from <= 1 {
            continue;
        }
        let middle = from + (to - from) / 2;
        ranges.push((middle, to, more));
        ranges.push((from, middle, true));
    }
}

/// Replies are tried with so many items at once.
const ITEMS_AT_ONCE: usize = 256;

fn send_list<T: Clone>(connection: &mut Connection, xid: u32, items: &[T], body: impl Fn(Vec<T>) -> ReplyBody) {
    let mut send = |items: &[T], more: bool| {
        let message = Message::MultipartReply(Multipart { more, body: body(items.to_vec()) });
        connection.send_v13(xid, &message)
    };
    let mut chunks = items.chunks(ITEMS_AT_ONCE).peekable();
    if chunks.peek().is_none() {
        send(&[], false);
    }
    while let Some(chunk) = chunks.next() {
        send_in_parts(chunk.to_vec(), chunks.peek().is_some(), &mut send);
    }
}

impl Context<'_> {
    pub(super) fn multipart(
        &mut self,
        connection: &mut Connection,
        xid: u32,
        request: Multipart<RequestBody>,
    ) -> Result<(), ErrorKind> {
        let single = match request.body {
            RequestBody::Description => ReplyBody::Description(Box::new(described(self.switch.config.dpid))),
            RequestBody::Flow(request) => {
                let flows: Vec<FlowStats> =
                    self.selected(&request)?.into_iter().map(|entry| self.flow_stats(entry)).collect();
                send_list(connection, xid, &flows, ReplyBody::Flow);
                return Ok(());
            }
            RequestBody::Aggregate(request) => ReplyBody::Aggregate(aggregate(&self.selected(&request)?)),
            RequestBody::Table => {
                send_list(connection, xid, &self.table_stats(), ReplyBody::Table);
                return Ok(());
            }
            RequestBody::PortStats(request) => {
                let ports = self.ports(request.port_no, v13::port_number::ANY)?;
                let rows: Vec<PortStats> = ports.into_iter().map(|port| self.port_stats(port)).collect();
                send_list(connection, xid, &rows, ReplyBody::PortStats);
                return Ok(());
            }
            RequestBody::Queue(request) => {
                let rows = self.queue_stats(request.port_no, request.queue_id)?;
                send_list(connection, xid, &rows, ReplyBody::Queue);
                return Ok(());
            }
            RequestBody::Group(request) => {
                let rows = self.group_stats(request.group_id);
                send_list(connection, xid, &rows, ReplyBody::Group);
                return Ok(());
            }
            RequestBody::GroupDescription => {
                send_list(connection, xid, &self.group_descriptions(), ReplyBody::GroupDescription);
                return Ok(());
            }
            RequestBody::GroupFeatures => ReplyBody::GroupFeatures(group_features()),
            RequestBody::Meter(request) => {
                let rows = self.meter_stats(request.meter_id)?;
                send_list(connection, xid, &rows, ReplyBody::Meter);
                return Ok(());
            }
            RequestBody::MeterConfig(request) => {
                let rows = self.meter_configs(request.meter_id)?;
                send_list(connection, xid, &rows, ReplyBody::MeterConfig);
                return Ok(());
            }
            RequestBody::MeterFeatures => ReplyBody::MeterFeatures(MeterFeatures {
                max_meter: MOST_METERS as u32,
                band_types: 0b110,
                capabilities: MeterFlags::ALL.0.into(),
                max_bands: MOST_BANDS as u8,
                max_color: 0,
            }),
            RequestBody::TableFeatures(tables) => {
                if request.more {
                    connection.features_so_far.extend(tables);
                    if connection.features_so_far.len() > usize::from(u8::MAX) {
                        connection.features_so_far.clear();
                        return Err(ErrorKind::BadRequest(BadRequest::MultipartBufferOverflow));
                    }
                    return Ok(());
                }
                let mut all = std::mem::take(&mut connection.features_so_far);
                all.extend(tables);
                self.write_table_features(&all)?;
                send_list(connection, xid, &self.table_features(), ReplyBody::TableFeatures);
                return Ok(());
            }
            RequestBody::PortDescription => {
                let ports = self.switch.datapath.ports.iter();
                let rows: Vec<v13::Port> =
                    ports.map(|port| port_v13(port, self.lines.facts(port.number).as_ref())).collect();
                send_list(connection, xid, &rows, ReplyBody::PortDescription);
                return Ok(());
            }
            RequestBody::Experimenter(_) => return Err(ErrorKind::BadRequest(BadRequest::BadExperimenter)),
        };
        connection.send_v13(xid, &Message::MultipartReply(Multipart { more: false, body: single }));
        Ok(())
    }

    fn selected(&self, request: &FlowStatsRequest) -> Result<Vec<&Entry>, ErrorKind> {
        let all = request.table_id == v13::table_number::ALL;
        let selection = Selection {
            table: (!all).then_some(request.table_id),
            cookie: (request.cookie & request.cookie_mask, request.cookie_mask),
            out_port: (request.out_port != v13::port_number::ANY).then_some(request.out_port),
            out_group: (request.out_group != v13::group_number::ANY).then_some(request.out_group),
            matching: read_match(&request.matching)?,
            ..Selection::default()
        };
        Ok(self.entries(&selection))
    }

    /// The flows that are meant, by table, then priority, then age.
    pub(super) fn entries(&self, selection: &Selection) -> Vec<&Entry> {
        let pipeline = &self.switch.pipeline;
        let mut entries: Vec<&Entry> =
            pipeline.select(selection).into_iter().filter_map(|id| pipeline.entry(id)).collect();
        entries.sort_by_key(|entry| (entry.flow.table, std::cmp::Reverse(entry.flow.priority), entry.sequence));
        entries
    }

    fn flow_stats(&self, entry: &Entry) -> FlowStats {
        let (duration_sec, duration_nsec) = seconds_and_nanoseconds(lived(entry.added, self.now));
        let flow = &entry.flow;
        FlowStats {
            table_id: flow.table,
            duration_sec,
            duration_nsec,
            priority: flow.priority,
            idle_timeout: flow.idle_timeout_s,
            hard_timeout: flow.hard_timeout_s,
            flags: FlowFlags(flow.flags),
            cookie: flow.cookie,
            packet_count: entry.frames,
            byte_count: entry.bytes,
            matching: flow.written.matching_in(Form::V13, || write_match(&flow.matching)),
            instructions: flow.written.actions_in(Form::V13, || write_instructions(&flow.actions, &flow.matching)),
        }
    }

    fn table_stats(&self) -> Vec<TableStats> {
        (0..super::TABLES)
            .map(|table| {
                let (active_count, lookup_count, matched_count) = self.table_counts(table);
                TableStats { table_id: table, active_count, lookup_count, matched_count }
            })
            .collect()
    }

    /// Flows in `table`, look-ups in it, and those that found a flow.
    pub(super) fn table_counts(&self, table: u8) -> (u32, u64, u64) {
        let (lookups, matches) = self.switch.tables.get(usize::from(table)).copied().unwrap_or_default();
        let flows = self.switch.pipeline.flows_in(usize::from(table));
        (u32::try_from(flows).unwrap_or(u32::MAX), lookups, matches)
    }

    /// The ports that a question means, `any` all of them.
    pub(super) fn ports(&self, wanted: u32, any: u32) -> Result<Vec<u32>, ErrorKind> {
        let ports = self.switch.datapath.ports.iter().map(|port| port.number);
        let found: Vec<u32> = ports.filter(|number| wanted == any || *number == wanted).collect();
        if found.is_empty() && wanted != any {
            return Err(ErrorKind::BadRequest(BadRequest::BadPort));
        }
        Ok(found)
    }

    pub(super) fn port_stats(&self, port_no: u32) -> PortStats {
        let facts = self.lines.facts(port_no).unwrap_or_default();
        let traffic = &facts.traffic;
        let (duration_sec, duration_nsec) = seconds_and_nanoseconds(lived(facts.since, self.now));
        PortStats {
            port_no,
            rx_packets: traffic.received_frames,
            tx_packets: traffic.sent_frames,
            rx_bytes: traffic.received_bytes,
            tx_bytes: traffic.sent_bytes,
            rx_dropped: traffic.received_dropped,
            tx_dropped: traffic.sent_dropped,
            rx_errors: 0,
            tx_errors: 0,
            rx_frame_errors: 0,
            rx_over_errors: 0,
            rx_crc_errors: 0,
            collisions: 0,
            duration_sec,
            duration_nsec,
        }
    }

    /// The queues of a port: the classes of its queue discipline, or one without classes.
    pub(super) fn queues_of(&self, port: u32) -> Vec<QueueFacts> {
        let Some(facts) = self.lines.facts(port) else { return Vec::new() };
        let number = |row: &serde_json::Value, key: &str| row.get(key).and_then(serde_json::Value::as_u64).unwrap_or(0);
        let rows = facts.classes.as_array().into_iter().flatten();
        let queues: Vec<QueueFacts> = rows
            .zip(0..)
            .map(|(row, place): (_, u32)| {
                let class = row.get("class").and_then(|class| class.as_u64().or_else(|| class.as_str()?.parse().ok()));
                let drops = row.get("drops").and_then(serde_json::Value::as_object);
                let queue = class.and_then(|class| u32::try_from(class).ok()).unwrap_or(place);
                let promised = facts.rates.iter().find(|rates| rates.class == queue);
                let part = |rate| share(rate, facts.rate_bps);
                QueueFacts {
                    queue,
                    rates: promised.and_then(|rates| part(rates.min_rate_bps).zip(part(rates.max_rate_bps))),
                    frames: number(row, "frames"),
                    bytes: number(row, "bytes"),
                    drops: drops.map_or(0, |drops| drops.values().filter_map(serde_json::Value::as_u64).sum()),
                }
            })
            .collect();
        if !queues.is_empty() {
            return queues;
        }
        let sent = &facts.traffic;
        vec![QueueFacts {
            queue: 0,
            frames: sent.sent_frames,
            bytes: sent.sent_bytes,
            drops: sent.sent_dropped,
            rates: None,
        }]
    }

    fn queue_stats(&self, port: u32, queue: u32) -> Result<Vec<QueueStats>, ErrorKind> {
        let bad = |code| ErrorKind::QueueOpFailed(code);
        let ports = self.ports(port, v13::port_number::ANY).map_err(|_| bad(QueueOpFailed::BadPort))?;
        let mut rows = Vec::new();
        for port_no in ports {
            let since = self.lines.facts(port_no).map_or(self.now, |facts| facts.since);
            let (duration_sec, duration_nsec) = seconds_and_nanoseconds(lived(since, self.now));
            let queues = self.queues_of(port_no).into_iter();
            let wanted = queues.filter(|facts| queue == v13::ALL_QUEUES || facts.queue == queue);
            rows.extend(wanted.map(|facts| QueueStats {
                port_no,
                queue_id: facts.queue,
                tx_bytes: facts.bytes,
                tx_packets: facts.frames,
                tx_errors: facts.drops,
                duration_sec,
                duration_nsec,
            }));
        }
        if rows.is_empty() && queue != v13::ALL_QUEUES {
            return Err(bad(QueueOpFailed::BadQueue));
        }
        Ok(rows)
    }

    /// The counters of a group, or of all; of one that does not exist there are none.
    fn group_stats(&self, wanted: u32) -> Vec<GroupStats> {
        let groups = &self.switch.pipeline.groups;
        let meant = groups.iter().filter(|(id, _)| wanted == v13::group_number::ALL || *id == wanted);
        meant
            .map(|(group_id, group)| {
                let (duration_sec, duration_nsec) = seconds_and_nanoseconds(lived(group.added, self.now));
                let flows = Selection { out_group: Some(group_id), ..Selection::default() };
                let references = groups.references(group_id) + self.switch.pipeline.select(&flows).len();
                let counter = |bucket: &super::super::group::Bucket| BucketCounter {
                    packet_count: bucket.frames,
                    byte_count: bucket.bytes,
                };
                GroupStats {
                    group_id,
                    ref_count: u32::try_from(references).unwrap_or(u32::MAX),
                    packet_count: group.frames,
                    byte_count: group.bytes,
                    duration_sec,
                    duration_nsec,
                    buckets: group.buckets.iter().map(counter).collect(),
                }
            })
            .collect()
    }

    fn group_descriptions(&self) -> Vec<GroupDescription> {
        let groups = self.switch.pipeline.groups.iter();
        groups
            .map(|(group_id, group)| GroupDescription {
                group_type: match group.kind {
                    GroupKind::All => GroupType::All,
                    GroupKind::Select => GroupType::Select,
                    GroupKind::Indirect => GroupType::Indirect,
                    GroupKind::FastFailover => GroupType::FastFailover,
                },
                group_id,
                buckets: Verbatim::Bytes(Arc::clone(&group.written)),
            })
            .collect()
    }

    fn meters(&self, wanted: u32) -> Result<Vec<(u32, &super::super::meter::Meter)>, ErrorKind> {
        let meters = &self.switch.pipeline.meters.meters;
        if wanted != v13::meter_number::ALL && !meters.contains_key(&wanted) {
            return Err(ErrorKind::MeterModFailed(MeterModFailed::UnknownMeter));
        }
        let meant = meters.iter().filter(|(id, _)| wanted == v13::meter_number::ALL || **id == wanted);
        Ok(meant.map(|(id, meter)| (*id, meter)).collect())
    }

    fn meter_stats(&self, wanted: u32) -> Result<Vec<MeterStats>, ErrorKind> {
        let meters = self.meters(wanted)?.into_iter();
        Ok(meters
            .map(|(meter_id, meter)| {
                let (duration_sec, duration_nsec) = seconds_and_nanoseconds(lived(meter.added, self.now));
                let flows = Selection { meter: Some(meter_id), ..Selection::default() };
                let counters = meter
                    .bands
                    .iter()
                    .map(|band| MeterBandCounter { packet_count: band.frames, byte_count: band.bytes });
                MeterStats {
                    meter_id,
                    flow_count: u32::try_from(self.switch.pipeline.select(&flows).len()).unwrap_or(u32::MAX),
                    packet_in_count: meter.frames,
                    byte_in_count: meter.bytes,
                    duration_sec,
                    duration_nsec,
                    bands: counters.collect(),
                }
            })
            .collect())
    }

    fn meter_configs(&self, wanted: u32) -> Result<Vec<MeterConfig>, ErrorKind> {
        let meters = self.meters(wanted)?.into_iter();
        Ok(meters
            .map(|(meter_id, meter)| MeterConfig {
                flags: MeterFlags(meter.flags),
                meter_id,
                bands: Verbatim::Bytes(Arc::clone(&meter.written)),
            })
            .collect())
    }
}

pub(super) fn aggregate(entries: &[&Entry]) -> AggregateStats {
    AggregateStats {
        packet_count: entries.iter().map(|entry| entry.frames).sum(),
        byte_count: entries.iter().map(|entry| entry.bytes).sum(),
        flow_count: u32::try_from(entries.len()).unwrap_or(u32::MAX),
    }
}

/// Bits of the actions of 1.3 by their types: all of them.
const EVERY_ACTION: u32 = 1 | 0b11 << 11 | 0x1fff << 15;

fn group_features() -> GroupFeatures {
    GroupFeatures {
        types: 0b1111,
        capabilities: GroupCapabilities::SELECT_WEIGHT
            | GroupCapabilities::SELECT_LIVENESS
            | GroupCapabilities::CHAINING
            | GroupCapabilities::CHAINING_CHECKS,
        max_groups: [MOST_GROUPS as u32; 4],
        actions: [EVERY_ACTION; 4],
    }
}
