"""``tc`` in a script's machine: disciplines at the ends of lines, shown and set in its words.

The line of an interface is shaped by the fabric; what ``tc`` says of it is read from its shaping, and what ``tc`` sets
changes it. Interfaces that are no ends of lines are left to the kernel's ``tc``.
"""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from twinnet.mininet.fabric import Fabric
from twinnet.mininet.shaping import Shaping
from twinnet.mininet.tc_filters import read_filter
from twinnet.mininet.tc_grammar import read_class, taken
from twinnet.mininet.tc_shown import Counts, classes_shown, disciplines_shown
from twinnet.mininet.tc_tree import USUAL_LIMIT, Discipline, TcClass, Tree, minor
from twinnet.mininet.tc_words import LineRefused, after

if TYPE_CHECKING:
    from twinnet.mininet.link import Intf

__all__ = ["LineControl", "LineRefused", "NoLine"]

_SHOW = ("show", "list", "ls")
_MAKE = ("add", "replace", "change")
_DELETE = ("del", "delete")
_OPTIONS = ("-s", "-d", "-p", "-g", "-statistics", "-details", "-pretty")
_STATISTICS = ("-s", "-statistics")


class NoLine(Exception):
    """The interface is no end of a line, or the command is of no concern here: the kernel's ``tc`` is to do it."""


@dataclass
class LineControl:
    """What ``tc`` shows and sets.

    Parameters
    ----------
    fabric
        The fabric whose lines are meant.
    trees
        What ``tc`` has set at interfaces, and the shaping that it made.
    """

    fabric: Fabric
    trees: dict[str, tuple[Tree, Shaping]] = field(default_factory=dict[str, tuple[Tree, Shaping]])

    def run(self, arguments: list[str]) -> str:
        """Do a command line and return what it prints; raises :class:`NoLine` and :class:`LineRefused`."""
        # A negative number is none.
        options = [word for word in arguments if word.startswith("-") and not word[1:2].isdigit()]
        words = [word for word in arguments if word not in options]
        if not words or "dev" not in words[:-1]:
            raise NoLine
        action = words[1] if len(words) > 1 and words[1] != "dev" else "show"
        at = words.index("dev")
        intf = self.fabric.line_end(words[at + 1])
        if intf is None or words[0] not in ("qdisc", "class", "filter"):
            raise NoLine
        if unknown := [option for option in options if option not in _OPTIONS]:
            raise LineRefused(f"tc {unknown[0]} is not there for our lines; write -s, -d or -p", 255)
        rest = words[2:at] + words[at + 2 :]
        if action not in (*_SHOW, *_MAKE, *_DELETE):
            raise LineRefused(f'Command "{action}" is unknown, try "tc {words[0]} help".', 255)
        if action in _SHOW:
            _check_shown(words[0], rest)
            return self._shown(intf, words[0], any(option in _STATISTICS for option in options))
        tree = copy.deepcopy(self._tree(intf))
        if words[0] == "qdisc":
            tree = _with_discipline(tree, action, rest)
        elif words[0] == "class":
            _set_class(tree, action, rest)
        else:
            _set_filter(tree, action, rest)
        shaping = tree.shaping()
        self.trees[intf.name] = (tree, shaping)
        intf.shaping = shaping
        self.fabric.shaping_changed(intf)
        return ""

    def _shown(self, intf: Intf, what: str, statistics: bool) -> str:
        tree = self._tree(intf)
        if what == "filter":
            return "".join(one.shown() for one in sorted(tree.filters, key=lambda one: (one.priority, one.number)))
        line = Counts.of_line(self.fabric.counters(intf)) if statistics else None
        classes = self.fabric.classes(intf) if statistics and tree.places else []
        return (disciplines_shown if what == "qdisc" else classes_shown)(tree, line, classes)

    def _tree(self, intf: Intf) -> Tree:
        """What ``tc`` has set, or what the interface's shaping stands for."""
        kept = self.trees.get(intf.name)
        return kept[0] if kept is not None and kept[1] == intf.shaping else _tree_of(intf.shaping)


def _tree_of(shaping: Shaping) -> Tree:
    """The tree by which Mininet would have made `shaping`."""
    found: list[Discipline] = []
    parent = "root"
    if shaping.bw:
        rate = shaping.bw * 1e6
        classes = {"5:1": TcClass("5:1", "5:", rate, rate, 15 * 1024)}
        found.append(Discipline("htb", "5:", "root", ["default", "1"], classes))
        parent = "5:1"
    if shaping.red:
        marks = ["ecn"] if shaping.red == "ECN" else []
        words = ["limit", "1000000", "min", "30000", "max", "35000", "avpkt", "1500", "burst", "20", "bandwidth"]
        found.append(Discipline("red", "6:", parent, [*words, f"{shaping.bw:g}mbit", "probability", "1", *marks]))
        parent = "6:"
    limit = (shaping.queue or {}).get("limit_frames")
    if shaping.delay or shaping.loss or limit is not None:
        words = ["limit", str(limit or USUAL_LIMIT)]
        if shaping.delay:
            words += ["delay", str(shaping.delay), *([str(shaping.jitter)] if shaping.jitter else [])]
        words += ["loss", f"{shaping.loss:g}%"] if shaping.loss else []
        found.append(Discipline("netem", "10:", parent, words))
    return Tree(found)


def _with_discipline(tree: Tree, action: str, words: list[str]) -> Tree:
    parent, handle, rest = _place(words)
    there = tree.at(parent)
    if action in _DELETE:
        if there is None:
            raise LineRefused("Error: Cannot delete qdisc with handle of zero.")
        return tree.without(there)
    if not rest:
        raise LineRefused("Error: Specified qdisc kind is unknown.")
    if there is not None and action == "add":
        raise LineRefused("Error: Exclusivity flag on, cannot modify.")
    if there is None and action == "change":
        raise LineRefused("Error: Qdisc not found. To create specify NLM_F_CREATE flag.")
    kind = rest[0]
    usual_handle = there.handle if there else f"{0x8001 + len(tree.disciplines):x}:"
    made = Discipline(kind, handle or usual_handle, parent, rest[1:])
    if there is not None and there.kind == kind and made.handle == there.handle:
        made.classes = there.classes
        tree.disciplines[tree.disciplines.index(there)] = made
        return tree
    tree = tree if there is None else tree.without(there)
    return Tree([*tree.disciplines, made], tree.filters)


def _place(words: list[str]) -> tuple[str, str, list[str]]:
    """Return parent, handle and what follows them."""
    parent, handle, rest = "", "", list(words)
    while rest and rest[0] in ("root", "parent", "handle", "ingress", "clsact"):
        word = rest.pop(0)
        if word in ("root", "parent") and parent:
            raise LineRefused(f'Error: "{word}" is duplicate parent ID', 255)
        if word == "root":
            parent = "root"
        elif word in ("ingress", "clsact"):
            raise LineRefused(f"{word} is not there at the ends of our lines")
        elif word == "parent":
            parent = _identity(taken(rest), "invalid parent ID")
        else:
            handle = _identity(taken(rest), "invalid qdisc ID").split(":")[0] + ":"
    if not parent:
        raise LineRefused("give root or parent")
    return parent, handle, rest


def _identity(text: str, what: str) -> str:
    """Return the number of a discipline or class, which is hexadecimal on both sides of its colon."""
    if re.fullmatch("[0-9a-f]{1,4}(:[0-9a-f]{0,4})?|:[0-9a-f]{1,4}", text, re.IGNORECASE) is None:
        raise LineRefused(f'Error: argument "{text}" is wrong: {what}', 255)
    return text


def _check_shown(what: str, words: list[str]) -> None:
    """Refuse words after ``show`` that are none."""
    given = list(words)
    while given:
        word = given.pop(0)
        if word in ("parent", "classid", "handle", *(("protocol", "prio", "pref") if what == "filter" else ())):
            taken(given)
        elif word not in ("root", "invisible"):
            raise LineRefused(f'What is "{word}"? Try "tc {what} help".', 255)


def _set_class(tree: Tree, action: str, words: list[str]) -> None:
    classid, parent, kind, rest = "", "", "", list(words)
    while rest and not kind:
        word = rest.pop(0)
        if word == "classid":
            classid = _identity(taken(rest), "invalid class ID")
        elif word == "parent":
            parent = _identity(taken(rest), "invalid parent ID")
        elif word != "root":
            kind = word
    owner = tree.owner(classid)
    if owner is None:
        raise LineRefused("Error: Failed to find qdisc with specified handle.")
    minor(classid)
    if action in _DELETE:
        if owner.classes.pop(classid, None) is None:
            raise LineRefused("Error: Specified class not found.")
        inside = tree.at(classid)
        left = tree if inside is None else tree.without(inside)
        tree.disciplines, tree.filters = left.disciplines, [one for one in left.filters if one.flowid != classid]
        return
    there = owner.classes.get(classid)
    if there is not None and action == "add":
        raise LineRefused("Error: Exclusivity flag on, cannot modify.")
    if there is None and action == "change":
        raise LineRefused("Error: Specified class not found.")
    if owner.kind not in ("htb", "hfsc"):
        raise LineRefused(f"classes of {owner.kind} are not made by tc class")
    if parent not in owner.classes:
        if parent and (not owner.owns(parent) or minor(parent)):
            raise LineRefused("Error: Failed to find the parent class; make it first.")
        parent = there.parent if there and not parent else owner.handle
    if kind != owner.kind:
        raise LineRefused(f"Error: {kind or 'a class without a kind'} is no class of {owner.kind}.")
    owner.classes[classid] = _read_class(classid, parent, owner.kind, rest)


def _read_class(classid: str, parent: str, kind: str, words: list[str]) -> TcClass:
    given = read_class(kind, words)
    if kind == "hfsc":
        rate = next(given[name] for name in ("sc", "rt", "ls") if name in given)
        return TcClass(classid, parent, rate, given.get("ul", 1e15))
    rate = given["rate"]
    priority, ceil_burst = given.get("prio", 0), given.get("cburst")
    return TcClass(classid, parent, rate, given.get("ceil", rate), given.get("burst"), priority, ceil_burst)


def _set_filter(tree: Tree, action: str, words: list[str]) -> None:
    if action in _DELETE:
        parent, priority = after(words, "parent"), after(words, "prio", "pref", "priority")
        gone = [
            one
            for one in tree.filters
            if (parent is None or one.parent == parent) and (priority is None or one.priority == int(priority, 0))
        ]
        if not gone:
            raise LineRefused("Error: Specified filter not found.")
        tree.filters = [one for one in tree.filters if one not in gone]
        return
    made = read_filter(words, tree.filters)
    if made.parent and not any(one.owns(made.parent) for one in tree.disciplines):
        raise LineRefused("Error: Parent Qdisc doesn't exists.")
    tree.filters.append(made)
