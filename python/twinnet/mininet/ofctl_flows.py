"""Flows in our own ``ovs-ofctl``. The switch says which flows a match selects, and its own dump is what is printed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from twinnet.mininet.ofctl_call import Call, Command, of_file
from twinnet.mininet.ofctl_flow_messages import (
    USUAL_PRIORITY,
    VERBS,
    Entry,
    entries,
    flow_mod,
    meets,
    rows,
    strict_deletion,
)
from twinnet.mininet.tool_connection import OPENFLOW_10, best_version
from twinnet.ovsdb.qos_rows import Refused

__all__ = ["FLOW_COMMANDS"]

_LINE = re.compile(r"table=(\d+), (?:.* )?(\S*) actions=")
_STATISTICS = re.compile(r"cookie=0x0, |(?:duration|n_packets|n_bytes)=[^,]*, |\btable=0, ")
"""What ``--no-stats`` leaves out."""
_PARTS = re.compile(r"(?<![\w-])(group|meter):(\d+)")


def _lines(call: Call) -> list[str]:
    """The lines of the switch's dump that the call selects."""
    lines = call.fabric.flow_lines(call.plan.name)
    if not call.words:
        return lines
    wanted = set[tuple[int, str]]()
    with call.connection() as connection:
        for row in rows(connection, call.words[0]):
            priority = [f"priority={row['priority']}"] if row["priority"] != USUAL_PRIORITY else []
            wanted.add((row["table"], ",".join([*priority, row["match"]] if row["match"] else priority)))
    return [line for line in lines if _place(line) in wanted]


def _place(line: str) -> tuple[int, str]:
    """The table of a line of a dump, and its priority and match: what makes a flow the one that it is."""
    found = _LINE.search(line)
    return (int(found[1]), found[2]) if found else (0, "")


def _dump_flows(call: Call) -> str:
    head = f"{call.head('FLOW', 4 if call.version == OPENFLOW_10 else 2, 'NXST')}\n"
    lines = _lines(call)
    for option in {"--sort", "--rsort"} & set(call.options):
        if call.options[option] not in ("", "priority"):
            raise Refused(f"{option} is by priority here, and {call.options[option]!r} was given")
        lines, head = sorted(lines, key=_priority, reverse=option == "--rsort"), ""
    if "--no-stats" in call.options:
        lines, head = [_STATISTICS.sub("", line) for line in lines], ""
    return ("" if call.with_names else head) + "".join(f"{call.told(line)}\n" for line in lines)


def _priority(line: str) -> int:
    found = re.search(r"\bpriority=(\d+)", line)
    return int(found[1]) if found else USUAL_PRIORITY


def _dump_aggregate(call: Call) -> str:
    head = call.head("AGGREGATE", 4, "NXST")
    with call.connection() as connection:
        found = rows(connection, ",".join(call.words))
    frames, size = sum(row["frames"] for row in found), sum(row["bytes"] for row in found)
    return f"{head} packet_count={frames} byte_count={size} flow_count={len(found)}\n"


def _change(call: Call, changes: Sequence[tuple[str, str]]) -> str:
    """Make the changes (a verb and a flow each); none of them where one cannot be read."""
    version = call.version
    _check_parts(call, [line for _, line in changes])
    if all(verb == "add" for verb, _ in changes) and not _are_of_10(call, [line for _, line in changes]):
        call.fabric.add_flows(call.plan.name, [line for _, line in changes])
        return ""
    with call.connection() as connection:
        messages = [flow_mod(connection.version, verb, line) for verb, line in changes]
        for (verb, line), message in zip(changes, messages, strict=True):
            # In version 1.0 a change of flows that are not there adds one (1.0.0, section 4.6), in 1.3 it does not.
            adds = verb.startswith("modify") and version < connection.version and not meets(connection, message)
            connection.send(flow_mod(connection.version, "add", line) if adds else message)
        connection.finish()
    return ""


def _are_of_10(call: Call, lines: Sequence[str]) -> bool:
    """Whether a switch is to get flows in the messages of version 1.0, in which they are changed then, too: it speaks
    no other, and they can be said in it. What is behind a second tag is no ``ip`` there, but it is in text."""
    if best_version(call.protocols) != OPENFLOW_10:
        return False
    try:
        return all(flow_mod(OPENFLOW_10, "add", line) for line in lines)
    except Refused:
        return False


def _check_parts(call: Call, lines: Sequence[str]) -> None:
    """Refuse flows that use groups or meters which are not there: as text the switch takes them."""
    wanted = {(name, int(number)) for line in lines for name, number in _PARTS.findall(line)}
    if not wanted:
        return
    there = call.fabric.groups(call.plan.name)
    known = {("group", row["group"]) for row in there["groups"]} | {("meter", row["meter"]) for row in there["meters"]}
    for name, number in sorted(wanted - known):
        raise Refused(f"{call.plan.name} has no {name} {number}")


def _parted(line: str) -> tuple[str, str]:
    """The verb of a line of a file, and its flow."""
    verb, _, flow = line.strip().partition(" ")
    return (verb, flow) if verb in VERBS else ("add", line)


def _delete_flows(call: Call) -> str:
    match = ",".join(call.words)
    if call.strict:
        return _change(call, [("delete_strict", match)])
    if call.version:
        call.fabric.delete_flows(call.plan.name, match)
    return ""


def _replace_flows(call: Call, given: Sequence[str]) -> str:
    """Add the flows that are missing or differ, and delete the others: what stays as it is keeps its counters."""
    lines: dict[tuple[int, int, bytes], tuple[Entry, str]] = {}
    call.need_13("comparison of flows")
    _check_parts(call, given)
    with call.connection() as connection:
        for line in given:
            entry = Entry.of_line(line)
            lines[entry.place] = (entry, line)
        there = set(entries(connection))
        call.fabric.add_flows(call.plan.name, [line for entry, line in lines.values() if entry not in there])
        # Asked again: a match that a controller had written in another form has been replaced.
        for entry in entries(connection):
            if entry.place not in lines:
                connection.send(strict_deletion(entry))
        connection.finish()
    return ""


FLOW_COMMANDS = {
    "dump-flows": Command(_dump_flows, 2),
    "dump-aggregate": Command(_dump_aggregate, 2),
    "add-flow": Command(lambda call: _change(call, [("add", call.words[0])]), 2, 2),
    "add-flows": of_file(lambda call, lines: _change(call, [_parted(line) for line in lines])),
    "mod-flows": Command(
        lambda call: _change(call, [("modify_strict" if call.strict else "modify", call.words[0])]), 2, 2
    ),
    "del-flows": Command(_delete_flows, 2),
    "replace-flows": of_file(_replace_flows),
}
