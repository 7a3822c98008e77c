//! Flows and actions in the syntax of `ovs-ofctl` as messages of OpenFlow 1.0; what that version cannot say is refused
//! by its name. Matches of its messages as text again.

use std::collections::BTreeMap;
use std::fmt;

use twinnet_openflow::v10::{port_number, FlowFlags, FlowMod, FlowModCommand, Match as WireMatch, PacketOut};
use twinnet_openflow::{v10, NO_BUFFER};
use twinnet_packet::Field;

use super::super::action::{Action, List};
use super::super::flow::{FLAGS, NO_BYTE_COUNT, NO_FRAME_COUNT};
use super::super::matching::Match;
use super::super::parse;
use super::super::syntax::FlowSyntaxError;
use super::actions::write_list_v10;
use super::fields::{read_filter_v10, read_match_v10, write_match_v10};
use super::numbers::to_narrow;
use super::text::packet_out_actions;

/// Why a text is no message of OpenFlow 1.0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum V10TextError {
    /// It cannot be read: correct the word that the error points at.
    Syntax(FlowSyntaxError),
    /// Only a later version can say it: leave it away, or speak OpenFlow 1.3 with the switch.
    NotInVersion(String),
}

impl fmt::Display for V10TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(error) => error.fmt(f),
            Self::NotInVersion(what) => write!(f, "OpenFlow 1.0 has no {what}"),
        }
    }
}

impl std::error::Error for V10TextError {}

impl From<FlowSyntaxError> for V10TextError {
    fn from(error: FlowSyntaxError) -> Self {
        Self::Syntax(error)
    }
}

fn lacks<T>(what: impl Into<String>) -> Result<T, V10TextError> {
    Err(V10TextError::NotInVersion(what.into()))
}

/// A flow with a cookie, as it was written.
#[derive(Clone, Debug)]
struct Marked {
    cookie: u64,
    matching: Match,
    wire: WireMatch,
}

/// Writes the changes of one switch's flows.
///
/// A deletion by cookie is of later versions: it is written as one strict deletion for each flow that was added with
/// such a cookie and not deleted since. Flows that ended by themselves meanwhile are among them, and that does no harm.
#[derive(Clone, Debug, Default)]
pub struct FlowWriter {
    /// By match, as text, and priority: what makes a flow the same one. The order of deletions follows from it.
    marked: BTreeMap<(String, u16), Marked>,
}

impl FlowWriter {
    /// A flow to be added, or to replace the actions of those that it covers (`command`).
    ///
    /// # Errors
    /// [`V10TextError`]
    pub fn flow_mod(
        &mut self,
        line: &str,
        command: FlowModCommand,
        flags: FlowFlags,
        buffer_id: u32,
    ) -> Result<FlowMod, V10TextError> {
        let flow = parse::flow(line)?;
        only_table(flow.table)?;
        if let Some((name, _)) =
            FLAGS.iter().find(|(_, flag)| flow.flags & flag & (NO_FRAME_COUNT | NO_BYTE_COUNT) != 0)
        {
            return lacks(format!("flag {name}"));
        }
        let wire = match_of(&flow.matching)?;
        let actions = actions_of(&flow.actions, &flow.matching)?;
        let place = (flow.matching.parts().join(","), flow.priority);
        if command == FlowModCommand::Add {
            self.marked.remove(&place);
        }
        if flow.cookie != 0 {
            let marked = Marked { cookie: flow.cookie, matching: flow.matching, wire: wire.clone() };
            self.marked.entry(place).or_insert(marked);
        }
        let known = FlowFlags::SEND_FLOW_REM.0 | FlowFlags::CHECK_OVERLAP.0;
        Ok(FlowMod {
            matching: wire,
            cookie: flow.cookie,
            table_id: 0,
            command,
            idle_timeout: flow.idle_timeout_s,
            hard_timeout: flow.hard_timeout_s,
            priority: flow.priority,
            buffer_id,
            out_port: port_number::NONE,
            flags: FlowFlags(flow.flags & known | flags.0),
            actions,
        })
    }

    /// The deletions of the flows that match within the conditions of `line`; an empty one deletes all.
    ///
    /// # Errors
    /// [`V10TextError`]
    pub fn deletions(&mut self, line: &str) -> Result<Vec<FlowMod>, V10TextError> {
        let selection = parse::selection(line)?;
        only_table(selection.table.unwrap_or(0))?;
        let out_port = selection.out_port.map_or(port_number::NONE, to_narrow);
        let (cookie, mask) = selection.cookie;
        let meant = |one: &Marked| (one.cookie ^ cookie) & mask == 0 && one.matching.is_within(&selection.matching);
        let deletion = |matching, command, priority| FlowMod {
            matching,
            cookie: 0,
            table_id: 0,
            command,
            idle_timeout: 0,
            hard_timeout: 0,
            priority,
            buffer_id: NO_BUFFER,
            out_port,
            flags: FlowFlags::default(),
            actions: Vec::new(),
        };
        let messages = if mask == 0 {
            vec![deletion(match_of(&selection.matching)?, FlowModCommand::Delete, 0)]
        } else {
            let strict = |((_, priority), one): (&(String, u16), &Marked)| {
                deletion(one.wire.clone(), FlowModCommand::DeleteStrict, *priority)
            };
            self.marked.iter().filter(|(_, one)| meant(one)).map(strict).collect()
        };
        // A flow that outputs elsewhere is still there.
        if selection.out_port.is_none() {
            self.marked.retain(|_, one| !meant(one));
        }
        Ok(messages)
    }
}

/// A frame (or one that the switch keeps as `buffer_id`) that `actions` are done with; `table` sends it through the
/// flow table.
///
/// # Errors
/// [`V10TextError`]
pub fn packet_out(in_port: u32, actions: &str, buffer_id: u32, data: Vec<u8>) -> Result<PacketOut, V10TextError> {
    let actions = actions_of(&packet_out_actions(actions)?, &Match::default())?;
    Ok(PacketOut { buffer_id, in_port: to_narrow(in_port), actions, data })
}

/// A match as text.
#[must_use]
pub fn match_text(wire: &WireMatch) -> String {
    read_filter_v10(wire).parts().join(",")
}

fn only_table(table: u8) -> Result<(), V10TextError> {
    if table == 0 {
        return Ok(());
    }
    lacks(format!("table {table}: it has one table"))
}

fn match_of(matching: &Match) -> Result<WireMatch, V10TextError> {
    let wire = write_match_v10(matching);
    let mut back = read_match_v10(&wire);
    // It matches frames with one tag at most, whatever was asked.
    if back.value.get(Field::INNER_VLAN_PRESENT) == 0 {
        back.mask.set(Field::INNER_VLAN_PRESENT, matching.mask.get(Field::INNER_VLAN_PRESENT));
    }
    if back == *matching {
        return Ok(wire);
    }
    let said = back.parts();
    let (lost, all): (Vec<_>, Vec<_>) =
        (matching.parts().into_iter().filter(|part| !said.contains(part)).collect(), matching.parts());
    lacks(format!("match of {}", if lost.is_empty() { all } else { lost }.join(",")))
}

fn actions_of(actions: &[Action], matching: &Match) -> Result<Vec<v10::Action>, V10TextError> {
    let mut written = Vec::new();
    for action in actions.iter().filter(|action| **action != Action::Drop) {
        let one = std::slice::from_ref(action);
        let said = write_list_v10(one, matching);
        if said.is_empty() {
            return lacks(format!("action {}", List(one)));
        }
        written.extend(said);
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(writer: &mut FlowWriter, line: &str) -> Result<FlowMod, V10TextError> {
        writer.flow_mod(line, FlowModCommand::Add, FlowFlags::default(), NO_BUFFER)
    }

    #[test]
    fn a_flow_becomes_the_message_that_adds_it() {
        let line = "priority=7,cookie=0x5,idle_timeout=3,in_port=1,tcp,nw_dst=10.0.0.0/8,tp_dst=80,actions=output:2";
        let message = added(&mut FlowWriter::default(), line).unwrap();
        assert_eq!((message.priority, message.cookie, message.idle_timeout, message.table_id), (7, 5, 3, 0));
        assert_eq!(match_text(&message.matching), "tcp,in_port=1,nw_dst=10.0.0.0/8,tp_dst=80");
        assert_eq!(message.actions, [v10::Action::Output { port: 2, max_len: 0 }]);
        assert_eq!(added(&mut FlowWriter::default(), "actions=drop").unwrap().actions, []);
    }

    #[test]
    fn what_the_version_cannot_say_is_named() {
        for (line, what) in [
            ("table=1,actions=drop", "OpenFlow 1.0 has no table 1: it has one table"),
            ("ipv6,ipv6_src=fd00::1,actions=drop", "OpenFlow 1.0 has no match of ipv6_src=fd00::1"),
            (
                "dl_dst=01:00:00:00:00:00/01:00:00:00:00:00,actions=drop",
                "OpenFlow 1.0 has no match of dl_dst=01:00:00:00:00:00/01:00:00:00:00:00",
            ),
            ("ip,nw_src=10.0.0.1/255.0.0.255,actions=drop", "OpenFlow 1.0 has no match of nw_src=10.0.0.1/255.0.0.255"),
            ("actions=group:3", "OpenFlow 1.0 has no action group:3"),
            ("actions=meter:1,output:2", "OpenFlow 1.0 has no action meter:1"),
            ("actions=goto_table:1", "OpenFlow 1.0 has no action goto_table:1"),
            ("actions=push_vlan:0x8100,output:2", "OpenFlow 1.0 has no action push_vlan:0x8100"),
            ("no_packet_counts,actions=drop", "OpenFlow 1.0 has no flag no_packet_counts"),
        ] {
            assert_eq!(added(&mut FlowWriter::default(), line).unwrap_err().to_string(), what);
        }
        assert!(matches!(added(&mut FlowWriter::default(), "actions=nonsense"), Err(V10TextError::Syntax(_))));
    }

    #[test]
    fn a_deletion_by_cookie_names_each_flow_that_has_it() {
        let mut writer = FlowWriter::default();
        for line in [
            "cookie=5,priority=1,in_port=1,actions=output:2",
            "cookie=5,priority=2,in_port=1,actions=output:3",
            "cookie=6,priority=1,in_port=2,actions=output:1",
            "cookie=0x15,arp,actions=output:1",
            "priority=9,in_port=1,actions=drop",
        ] {
            added(&mut writer, line).unwrap();
        }
        let mut told = |line: &str| -> Vec<(FlowModCommand, u16, String)> {
            let messages = writer.deletions(line).unwrap().into_iter();
            messages.map(|one| (one.command, one.priority, match_text(&one.matching))).collect()
        };
        let strict = |priority, text: &str| (FlowModCommand::DeleteStrict, priority, text.to_owned());
        assert_eq!(told("cookie=5/-1"), [strict(1, "in_port=1"), strict(2, "in_port=1")]);
        assert_eq!(told("cookie=5/-1"), []);
        assert_eq!(told("cookie=0x5/0xf,in_port=1"), []);
        assert_eq!(told("cookie=0x5/0xf"), [strict(32768, "arp")]);
        assert_eq!(told("in_port=2"), [(FlowModCommand::Delete, 0, "in_port=2".to_owned())]);
        assert_eq!(told("cookie=6/-1"), []);
    }

    #[test]
    fn a_flow_that_is_replaced_has_its_new_cookie() {
        let mut writer = FlowWriter::default();
        for cookie in [5, 6] {
            added(&mut writer, &format!("cookie={cookie},in_port=1,actions=drop")).unwrap();
        }
        assert_eq!(writer.deletions("cookie=5/-1").unwrap().len(), 0);
        assert_eq!(writer.deletions("cookie=6/-1").unwrap().len(), 1);
    }

    #[test]
    fn actions_of_a_sent_frame_are_actions_only() {
        let message = packet_out(0xffff_fffd, "output:2,flood", NO_BUFFER, vec![0; 60]).unwrap();
        assert_eq!((message.in_port, message.actions.len()), (0xfffd, 2));
        assert_eq!(packet_out(1, "table", NO_BUFFER, Vec::new()).unwrap().actions.len(), 1);
        assert!(matches!(packet_out(1, "group:2", NO_BUFFER, Vec::new()), Err(V10TextError::NotInVersion(_))));
        assert!(matches!(packet_out(1, "goto_table:2", NO_BUFFER, Vec::new()), Err(V10TextError::Syntax(_))));
    }
}
