"""What lines of ``tc qdisc`` and ``tc class`` do with the tree of an interface, as the kernel does.

Texts are those of iproute2 and of the kernel (Linux ``net/sched/sch_api.c``).
"""

from __future__ import annotations

from twinnet.mininet.tc_grammar import read_class
from twinnet.mininet.tc_tree import KINDS, ONE_CLASS, WITHOUT_EFFECT, Discipline, TcClass, Tree, minor
from twinnet.mininet.tc_words import LineRefused, class_id, matching, number, taken

__all__ = ["set_class", "with_discipline"]

_MADE_BY_HAND = ("htb", "hfsc")
_WITH_CLASSES = (*_MADE_BY_HAND, "prio")
_WITH_FLOWS = ("sfq", "fq_codel")
_WITHOUT_WORDS = ("pfifo", "bfifo", "sfq", *WITHOUT_EFFECT)
"""Of these ``tc`` sends nothing to the kernel where the line has no words."""
_WITHOUT_CHANGE = ("htb", "sfq")
_OF_LINUX = (
    *("atm", "cake", "cbq", "cbs", "choke", "drr", "dsmark", "etf", "ets", "fq_pie", "gred", "hhf"),
    *("mqprio", "multiq", "pfifo_head_drop", "pie", "plug", "qfq", "rr", "sfb", "skbprio", "taprio"),
)
_FIRST_HANDLE = 0x8001
_NO_SUCH = "RTNETLINK answers: No such file or directory"


def with_discipline(tree: Tree, action: str, words: list[str]) -> Tree:
    """Return the tree after a line of ``tc qdisc``: ``add``, ``change``, ``replace`` or ``del``; raises
    :class:`LineRefused`."""
    parent, handle, kind, rest = _place(words)
    if action == "del":
        return _without(tree, parent, handle, kind)
    # Its words are read before the kernel sees the line.
    made = Discipline(kind, handle or _free_handle(tree), parent, rest) if _is_known(kind, rest) else None
    if not parent:
        raise LineRefused("Error: Handle cannot be zero." if not handle else "Error: Specified qdisc not found.")
    _check_parent(tree, parent)
    there = tree.at(parent)
    other = next((one for one in tree.disciplines if handle and one.handle == handle), None)
    if other is not None and other is not there:
        raise LineRefused("Error: Cannot move an existing qdisc to a different parent.")
    if there is not None and action == "add":
        raise LineRefused("Error: Exclusivity flag on, cannot modify.")
    if there is not None and handle not in ("", there.handle) and action == "change":
        raise LineRefused("Error: NLM_F_REPLACE needed to override.")
    if there is None and action == "change":
        raise LineRefused("Error: Qdisc not found. To create specify NLM_F_CREATE flag.")
    if made is None:
        raise LineRefused(f"Error: Specified qdisc kind is unknown.\nOur lines have {', '.join(KINDS)}.")
    if there is not None and there.kind == kind and handle in ("", there.handle):
        tree.disciplines[tree.disciplines.index(there)] = _changed(there, rest)
        return tree
    if there is not None and handle == there.handle:
        raise LineRefused("Error: Invalid qdisc name: must match existing qdisc.")
    tree = tree if there is None else tree.without(there)
    return Tree([*tree.disciplines, made], tree.filters)


def _changed(there: Discipline, words: list[str]) -> Discipline:
    if not words and there.kind in _WITHOUT_WORDS:
        return there
    if there.kind in _WITHOUT_CHANGE:
        raise LineRefused("Error: Change operation not supported by specified qdisc.")
    if there.kind == "fq_codel" and "flows" in words:
        raise LineRefused("RTNETLINK answers: Invalid argument")
    return there.changed(words)


def _is_known(kind: str, words: list[str]) -> bool:
    """Return whether our lines have the discipline; raises :class:`LineRefused` where ``tc`` does not read its words,
    and for what Linux has and our lines do not."""
    if kind in _OF_LINUX:
        raise LineRefused(f"qdisc {kind} is not there; our lines have {', '.join(KINDS)}")
    if kind in KINDS or not words:
        return kind in (*KINDS, *WITHOUT_EFFECT)
    if kind == "pfifo_fast":
        raise LineRefused("qdisc 'pfifo_fast' does not support option parsing", 255)
    if kind == "fq":
        return True
    raise LineRefused(f'Unknown qdisc "{kind}", hence option "{words[0]}" is unparsable', 1)


def _without(tree: Tree, parent: str, handle: str, kind: str) -> Tree:
    there = tree.at(parent) if parent else next((one for one in tree.disciplines if one.handle == handle), None)
    if parent not in ("", "root") and tree.owner(parent) is None:
        raise LineRefused("Error: Failed to find qdisc with specified classid.")
    if not parent:
        found = "Classid cannot be zero." if there else "Failed to find qdisc with specified handle."
        raise LineRefused(f"Error: {found}")
    if there is not None and handle not in ("", there.handle):
        raise LineRefused("Error: Invalid handle.")
    if there is not None and kind not in ("", there.kind):
        raise LineRefused("Error: Invalid qdisc name: must match existing qdisc.")
    if there is None:
        raise LineRefused("Error: Cannot delete qdisc with handle of zero.")
    return tree.without(there)


def _place(words: list[str]) -> tuple[str, str, str, list[str]]:
    """Return parent, handle, kind, and what follows the kind."""
    parent, handle, rest = "", "", list(words)
    while rest:
        word = rest.pop(0)
        if word in ("root", "ingress", "clsact") and parent:
            raise LineRefused(f'Error: "{word}" is {"" if word == "root" else "a "}duplicate parent ID', 255)
        if word in ("ingress", "clsact"):
            raise LineRefused(f"{word} is not there at the ends of our lines")
        if word == "root":
            parent = "root"
        elif word == "parent":
            parent = _identity(rest, parent, word, "invalid parent ID")
        elif word == "handle":
            if handle:
                raise LineRefused('Error: duplicate "handle": "handle" is the second value.', 255)
            handle = _handle(taken(rest))
        elif (name := matching(word, ("estimator", "stab", "ingress_block", "egress_block"))) is not None:
            raise LineRefused(f"qdisc {name} is not there at the ends of our lines")
        else:
            return parent, handle, word, rest
    return parent, handle, "", []


def _identity(given: list[str], before: str, name: str, wrong: str) -> str:
    """Take the name of a class."""
    text = taken(given)
    if before:
        raise LineRefused(f'Error: duplicate "{name}": "{text}" is the second value.', 255)
    try:
        return class_id(text).replace("none", "")
    except ValueError:
        raise LineRefused(f'Error: argument "{text}" is wrong: {wrong}', 255) from None


def _handle(text: str) -> str:
    """Return the handle that `text` gives; what follows its colon does not count."""
    try:
        major = 0 if text == "none" else number(text.split(":")[0], 16, 0xFFFF)
    except ValueError:
        raise LineRefused(f'Error: argument "{text}" is wrong: invalid qdisc ID', 255) from None
    return f"{major:x}:" if major else ""


def _free_handle(tree: Tree) -> str:
    used = {one.handle for one in tree.disciplines}
    return next(handle for number in range(_FIRST_HANDLE, 0x10000) if (handle := f"{number:x}:") not in used)


def _check_parent(tree: Tree, parent: str) -> None:
    if parent == "root":
        return
    owner = tree.owner(parent)
    if owner is None:
        raise LineRefused("Error: Failed to find specified qdisc.")
    if owner.kind in ONE_CLASS:
        return
    if owner.kind not in _WITH_CLASSES + _WITH_FLOWS:
        raise LineRefused("Error: Parent qdisc is not classful.")
    if parent not in owner.class_names():
        raise LineRefused("Error: Specified class not found.")
    if any(one.parent == parent for one in owner.classes.values()):
        raise LineRefused("RTNETLINK answers: Invalid argument")


def set_class(tree: Tree, action: str, words: list[str]) -> None:
    """Do a line of ``tc class`` with the tree: ``add``, ``change``, ``replace`` or ``del``; raises
    :class:`LineRefused`."""
    classid, parent, kind, rest = "", "", "", list(words)
    while rest and not kind:
        word = rest.pop(0)
        if word == "handle":
            raise LineRefused('Error: try "classid" instead of "handle"', 255)
        if word == "classid":
            classid = _identity(rest, classid, word, "invalid class ID")
        elif word == "parent":
            parent = _identity(rest, parent, word, "invalid parent ID")
        elif word == "root":
            if parent:
                raise LineRefused('Error: "root" is duplicate parent ID.', 255)
            parent = "root"
        elif "estimator".startswith(word):
            raise LineRefused("class estimator is not there at the ends of our lines")
        else:
            kind = word
    if kind and kind not in _MADE_BY_HAND:
        raise LineRefused(f'Error: Qdisc "{kind}" is classless.', 1)
    given = read_class(kind, rest) if kind and action != "del" else None
    owner = tree.owner(classid or parent)
    if owner is None:
        raise LineRefused(_NO_SUCH)
    if action == "del":
        _delete_class(tree, owner, classid)
        return
    if given is None or kind != owner.kind or not minor(classid):
        raise LineRefused("RTNETLINK answers: Invalid argument")
    there = owner.classes.get(classid)
    if there is not None and action == "add":
        raise LineRefused("RTNETLINK answers: File exists")
    if there is None and action == "change":
        raise LineRefused(_NO_SUCH)
    if there is not None:
        # The kernel does not move classes.
        parent = there.parent
    elif parent not in owner.classes:
        if parent not in ("", "root", owner.handle):
            raise LineRefused(f"the parent class {parent} is not there; make it first")
        parent = owner.handle
    owner.classes[classid] = _made_class(classid, parent, kind, given)


def _delete_class(tree: Tree, owner: Discipline, classid: str) -> None:
    if owner.kind not in _MADE_BY_HAND:
        raise LineRefused("RTNETLINK answers: Operation not supported")
    if classid not in owner.classes:
        raise LineRefused(_NO_SUCH)
    below = any(one.parent == classid for one in owner.classes.values())
    if below or any(one.flowid == classid and one.parent == owner.handle for one in tree.filters):
        raise LineRefused(f"Error: {owner.kind.upper()} class in use.")
    del owner.classes[classid]
    if (inside := tree.at(classid)) is not None:
        left = tree.without(inside)
        tree.disciplines, tree.filters = left.disciplines, left.filters


def _made_class(classid: str, parent: str, kind: str, given: dict[str, float]) -> TcClass:
    if kind == "hfsc":
        rate = next(given[name] for name in ("sc", "rt", "ls") if name in given)
        same = "rt" in given and given["rt"] == given.get("ls")
        curves = {
            "sc" if same and name == "rt" else name: given[name] for name in ("sc", "rt", "ls", "ul") if name in given
        }
        if same:
            del curves["ls"]
        return TcClass(classid, parent, rate, given.get("ul", 1e15), curves=curves)
    rate, burst, ceil_burst = given["rate"], given.get("burst"), given.get("cburst")
    return TcClass(
        classid,
        parent,
        rate,
        given.get("ceil", rate),
        int(burst) if burst else None,
        int(given.get("prio", 0)),
        int(ceil_burst) if ceil_burst else None,
        int(given.get("quantum", 0)),
    )
