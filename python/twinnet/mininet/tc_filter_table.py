"""The filters of an interface: what the lines of ``tc filter`` do with them, as the kernel does.

Filters of one priority of a discipline have one kind and one protocol. Texts are those of the kernel (Linux
``net/sched/cls_api.c``).
"""

from __future__ import annotations

import dataclasses

from twinnet.mininet.tc_filters import Filter, FilterWords, protocol_name, read_filter
from twinnet.mininet.tc_flower import Flower
from twinnet.mininet.tc_tree import ONE_CLASS, Tree, minor
from twinnet.mininet.tc_u32 import U32
from twinnet.mininet.tc_words import LineRefused, kernel_refuses

__all__ = ["filters_shown", "set_filter"]

_WITH_CLASSES = ("htb", "hfsc", "prio")
_WITH_FLOWS = ("sfq", "fq_codel")
_FIRST_AUTOMATIC, _LEAST_AUTOMATIC = 0xC000, 0x8000
"""A filter without a priority goes before those that have got theirs so (`tcf_auto_prio`)."""
_FIRST_TABLE = _FIRST_NODE = 0x800


def set_filter(tree: Tree, action: str, words: list[str]) -> None:
    """Do a line of ``tc filter``: ``add``, ``replace``, ``change`` or ``del``; raises :class:`LineRefused`."""
    said = read_filter(words, action)
    if action == "del":
        gone = _deleted(tree, said)
        tree.filters = [one for one in tree.filters if one not in gone]
        return
    create = action != "change"
    if not said.priority and not create:
        raise kernel_refuses("Error: Invalid filter command with priority of zero.")
    parent = _parent(tree, said.parent)
    there = [one for one in tree.filters if one.parent == parent]
    said.priority = said.priority or _automatic_priority(there)
    same = [one for one in there if one.priority == said.priority]
    _check_same(said, same)
    if not said.kind or not (same or said.protocol):
        raise kernel_refuses("Error: Filter kind and protocol must be specified.")
    if not same and not create:
        raise kernel_refuses("Error: Need both RTM_NEWTFILTER and NLM_F_CREATE to create a new filter.")
    said.protocol = same[0].protocol if same else said.protocol
    table = same[0].table if same else _next_table(there)
    old = _by_handle(same, said, table)
    if old is not None and action == "add":
        raise kernel_refuses("Error: Filter already exists.")
    if old is None and not create:
        raise kernel_refuses("Error: Need both RTM_NEWTFILTER and NLM_F_CREATE to create a new filter.")
    made = _made_u32(said, parent, table, same, old) if said.kind == "u32" else _made(said, parent, same, old)
    _check_class(tree, made)
    tree.filters = [one for one in tree.filters if one is not old]
    tree.filters.append(made)


def filters_shown(tree: Tree, words: list[str], pretty: bool) -> str:
    """Return what ``tc filter show`` prints, or `pretty` ``tc -p filter show``: the filters of one discipline, without
    what the line has asked for."""
    asked = read_filter(words, "show")
    root = tree.at("root")
    handle = f"{asked.parent.split(':')[0]}:" if asked.parent else root.handle if root else ""
    text, priority = "", -1
    for one in sorted(tree.filters, key=lambda one: (one.priority, one.number)):
        if one.parent != handle or asked.priority not in (0, one.priority):
            continue
        if asked.protocol not in (0, one.protocol):
            continue
        head = "filter " + ("" if asked.parent == one.parent else f"parent {one.parent} ")
        head += "" if asked.protocol else f"protocol {protocol_name(one.protocol)} "
        head += f"{'' if asked.priority else f'pref {one.priority} '}{one.kind} chain 0 "
        if one.priority != priority:
            text += f"{head}\n" + (f"{head}fh {one.table:x}: ht divisor 1 \n" if one.kind == "u32" else "")
        text += head + one.shown(pretty)
        priority = one.priority
    return text


def _parent(tree: Tree, parent: str) -> str:
    """Return the handle of the discipline that `parent` means."""
    if parent == "root":
        raise kernel_refuses("Error: Parent Qdisc doesn't exists.")
    major = parent.split(":")[0]
    one = next((one for one in tree.disciplines if one.major == major), None) if parent else tree.at("root")
    if parent and one is None:
        raise kernel_refuses("Error: Parent Qdisc doesn't exists.")
    if one is None or one.kind not in _WITH_CLASSES + ONE_CLASS + _WITH_FLOWS:
        raise kernel_refuses("Error: Qdisc not classful.")
    if parent and minor(parent):
        if parent not in one.class_names():
            raise kernel_refuses("Error: Specified class doesn't exist.")
        raise LineRefused(f"filters of the class {parent} are not there; write parent {one.handle}")
    if one.kind in ONE_CLASS:
        raise kernel_refuses("Error: Class doesn't support blocks.")
    if one.kind in _WITH_FLOWS:
        raise LineRefused(f"filters of {one.kind} are not there: it tells flows by itself")
    return one.handle


def _automatic_priority(there: list[Filter]) -> int:
    after = [one.priority for one in there if one.priority >= _LEAST_AUTOMATIC]
    return min(after) - 1 if after else _FIRST_AUTOMATIC


def _next_table(there: list[Filter]) -> int:
    tables = [one.table for one in there if one.kind == "u32"]
    return max(tables) + 1 if tables else _FIRST_TABLE


def _check_same(said: FilterWords, same: list[Filter]) -> None:
    """Refuse another protocol and kind than those of the filters of the same priority."""
    if same and said.protocol not in (0, same[0].protocol):
        raise kernel_refuses("Error: Protocol mismatch for filter with specified priority.")
    if same and said.kind not in ("", same[0].kind):
        raise kernel_refuses("Error: Specified filter kind does not match existing one.")


def _by_handle(same: list[Filter], said: FilterWords, table: int) -> Filter | None:
    wanted_table, node = said.handle
    if not node or (said.kind == "u32" and wanted_table not in (_FIRST_TABLE, table)):
        return None
    return next((one for one in same if one.number == node), None)


def _made_u32(said: FilterWords, parent: str, table: int, same: list[Filter], old: Filter | None) -> Filter:
    options = said.options
    assert isinstance(options, U32)
    if old is not None:
        # The kernel keeps what is compared.
        return dataclasses.replace(old, flowid=options.flowid or old.flowid)
    if options.table not in (_FIRST_TABLE, table):
        raise kernel_refuses("Error: cls_u32: Specified hash table not found.")
    wanted_table, node = said.handle
    if wanted_table not in (0, table) and not options.refused:
        raise kernel_refuses("Error: cls_u32: Handle specified hash table address mismatch.")
    taken = {one.number for one in same}
    if node in taken:
        raise kernel_refuses("RTNETLINK answers: No space left on device")
    if options.keys is None and not said.bare and not options.refused:
        raise kernel_refuses("Error: cls_u32: Selector not specified.")
    if options.link:
        raise kernel_refuses("Error: cls_u32: Link hash table not found.")
    said.check()
    number = node or next(number for number in range(_FIRST_NODE, 0x1000) if number not in taken)
    skip = "skip_hw" in options.flags
    return Filter(parent, said.protocol, said.priority, "u32", options.flowid, said.keys(), number, table, (), skip)


def _made(said: FilterWords, parent: str, same: list[Filter], old: Filter | None) -> Filter:
    """A ``flower`` or ``matchall``."""
    options = said.options
    assert isinstance(options, Flower)
    if said.kind == "matchall" and same:
        raise kernel_refuses("RTNETLINK answers: File exists")
    if (said.kind == "matchall" and said.bare) or len(options.flags) > 1:
        raise kernel_refuses("RTNETLINK answers: Invalid argument")
    said.check()
    keys, lines = said.keys(), tuple(options.lines())
    places = [[(key.at, key.mask) for key in each] for each in (keys, old.keys if old else keys)]
    if places[0] != places[1]:
        raise kernel_refuses("RTNETLINK answers: Invalid argument")
    if said.kind == "flower" and any(one.keys == keys for one in same if one is not old):
        raise kernel_refuses("RTNETLINK answers: File exists")
    taken = {one.number for one in same}
    number = said.handle[1] or next(number for number in range(1, len(taken) + 2) if number not in taken)
    return Filter(parent, said.protocol, said.priority, said.kind, options.flowid, keys, number, lines=lines)


def _check_class(tree: Tree, made: Filter) -> None:
    """Refuse the class 0 of a ``htb``, which would let frames pass all classes by beside a class for the rest."""
    if made.flowid == made.parent:
        raise LineRefused(f"flowid {made.flowid} is not there: our filters choose classes, {made.flowid}1 for example")


def _deleted(tree: Tree, said: FilterWords) -> list[Filter]:
    if not said.priority and (said.protocol or said.kind or said.handle_text):
        raise kernel_refuses("Error: Cannot flush filters with protocol, handle or kind set.")
    parent = _parent(tree, said.parent)
    there = [one for one in tree.filters if one.parent == parent]
    if not said.priority:
        return there
    if not there:
        raise kernel_refuses("Error: Cannot find specified filter chain.")
    same = [one for one in there if one.priority == said.priority]
    if not same:
        raise kernel_refuses("Error: Filter with specified priority/protocol not found.")
    _check_same(said, same)
    if not said.handle_text:
        return same
    one = _by_handle(same, said, same[0].table)
    if one is None:
        raise kernel_refuses("Error: Specified filter handle not found.")
    return [one]
