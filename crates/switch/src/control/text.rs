//! Flows and actions in the syntax of `ovs-ofctl` as messages of OpenFlow 1.3, for controllers that write them as
//! text; and matches of such messages as text again.

use twinnet_openflow::oxm::Match as OxmMatch;
use twinnet_openflow::v13::{group_number, port_number, table_number, FlowFlags, FlowMod, FlowModCommand, PacketOut};
use twinnet_openflow::NO_BUFFER;

use super::super::action::Action;
use super::super::matching::Match;
use super::super::parse;
use super::super::syntax::FlowSyntaxError;
use super::actions::{write_instructions, write_list};
use super::fields::{read_match, write_match};

/// A flow to be added, or to replace the actions of those that it covers (`command`).
///
/// # Errors
/// [`FlowSyntaxError`] points at the word that is wrong.
pub fn flow_mod(
    line: &str,
    command: FlowModCommand,
    flags: FlowFlags,
    buffer: u32,
) -> Result<FlowMod, FlowSyntaxError> {
    let flow = parse::flow(line)?;
    Ok(FlowMod {
        cookie: flow.cookie,
        cookie_mask: 0,
        table_id: flow.table,
        command,
        idle_timeout: flow.idle_timeout_s,
        hard_timeout: flow.hard_timeout_s,
        priority: flow.priority,
        buffer_id: buffer,
        out_port: port_number::ANY,
        out_group: group_number::ANY,
        flags: FlowFlags(flow.flags | flags.0),
        matching: write_match(&flow.matching),
        instructions: write_instructions(&flow.actions, &flow.matching),
    })
}

/// The deletion of the flows that match within the conditions of `line`; an empty one deletes all.
///
/// # Errors
/// [`FlowSyntaxError`] points at the word that is wrong.
pub fn deletion(line: &str) -> Result<FlowMod, FlowSyntaxError> {
    let selection = parse::selection(line)?;
    let (cookie, cookie_mask) = selection.cookie;
    Ok(FlowMod {
        cookie,
        cookie_mask,
        table_id: selection.table.unwrap_or(table_number::ALL),
        command: FlowModCommand::Delete,
        idle_timeout: 0,
        hard_timeout: 0,
        priority: 0,
        buffer_id: NO_BUFFER,
        out_port: selection.out_port.unwrap_or(port_number::ANY),
        out_group: selection.out_group.unwrap_or(group_number::ANY),
        flags: FlowFlags::default(),
        matching: write_match(&selection.matching),
        instructions: Vec::new(),
    })
}

/// A frame (or one that the switch keeps as `buffer_id`) that `actions` are done with; `table` sends it through the
/// flow tables.
///
/// # Errors
/// [`FlowSyntaxError`] points at the word that is wrong.
pub fn packet_out(in_port: u32, actions: &str, buffer_id: u32, data: Vec<u8>) -> Result<PacketOut, FlowSyntaxError> {
    Ok(PacketOut { buffer_id, in_port, actions: write_list(&packet_out_actions(actions)?, &Match::default()), data })
}

/// The actions of a frame that is sent.
pub(super) fn packet_out_actions(actions: &str) -> Result<Vec<Action>, FlowSyntaxError> {
    let (before, last) = match actions.rsplit_once(',') {
        Some((before, last)) => (Some(before), last),
        None => (None, actions),
    };
    if last.trim().eq_ignore_ascii_case("table") {
        let mut first = before.map_or(Ok(Vec::new()), packet_out_actions)?;
        first.push(Action::Table);
        return Ok(first);
    }
    parse::actions(actions).map_err(|error| FlowSyntaxError {
        problem: error
            .problem
            .replace("cannot stand in write_actions", "belongs to flows, not to a frame that is sent"),
        remedy: error.remedy.replace("write it beside write_actions", "write for example output:2 or flood"),
        ..error
    })
}

/// A match as text; `None` for one that the switches here know nothing of.
#[must_use]
pub fn match_text(wire: &OxmMatch) -> Option<String> {
    Some(read_match(wire).ok()?.parts().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_becomes_the_message_that_adds_it() {
        let line = "table=1,priority=7,cookie=0x5,idle_timeout=3,ip,nw_dst=10.0.0.0/8,actions=dec_ttl,output:2";
        let message = flow_mod(line, FlowModCommand::Add, FlowFlags::SEND_FLOW_REM, NO_BUFFER).unwrap();
        assert_eq!((message.table_id, message.priority, message.cookie, message.idle_timeout), (1, 7, 5, 3));
        assert_eq!(message.flags, FlowFlags::SEND_FLOW_REM);
        assert_eq!(match_text(&message.matching).unwrap(), "ip,nw_dst=10.0.0.0/8");
        assert_eq!(message.instructions.len(), 1);
    }

    #[test]
    fn conditions_become_the_message_that_deletes() {
        let message = deletion("arp,out_port=3").unwrap();
        assert_eq!((message.command, message.table_id, message.out_port), (FlowModCommand::Delete, 0xff, 3));
        assert!(deletion("arp,actions=drop").is_err());
    }

    #[test]
    fn actions_of_a_sent_frame_are_actions_only() {
        assert_eq!(packet_out(1, "output:2,flood", NO_BUFFER, vec![0; 60]).unwrap().actions.len(), 2);
        assert_eq!(packet_out(1, "table", NO_BUFFER, vec![0; 60]).unwrap().actions.len(), 1);
        let changed = packet_out(1, "mod_dl_src:00:00:00:00:00:08, TABLE", NO_BUFFER, vec![0; 60]).unwrap();
        assert_eq!(changed.actions.len(), 2);
        assert!(packet_out(1, "table,output:2", NO_BUFFER, Vec::new()).is_err());
        let refusal = packet_out(1, "goto_table:2", NO_BUFFER, Vec::new()).unwrap_err();
        assert!(refusal.to_string().contains("belongs to flows"), "{refusal}");
    }
}
