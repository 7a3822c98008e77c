"""``tc`` in a script's machine: disciplines at the ends of lines, shown and set in its words.

The line of an interface is shaped by the fabric; what ``tc`` says of it is read from its shaping, and what ``tc`` sets
changes it. Interfaces that are no ends of lines are left to the kernel's ``tc``.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from twinnet.mininet.fabric import Fabric
from twinnet.mininet.shaping import Shaping
from twinnet.mininet.tc_changes import set_class, with_discipline
from twinnet.mininet.tc_filter_table import filters_shown, set_filter
from twinnet.mininet.tc_queues import USUAL_LIMIT
from twinnet.mininet.tc_shown import Counts, classes_shown, disciplines_shown
from twinnet.mininet.tc_tree import Discipline, TcClass, Tree
from twinnet.mininet.tc_words import LineRefused, class_id, matching, taken

if TYPE_CHECKING:
    from twinnet.mininet.link import Intf

__all__ = ["LineControl", "LineRefused", "NoLine"]

_OBJECTS = ("qdisc", "class", "filter")
_ACTIONS = ("add", "change", "replace", "delete", "show", "list", "lst")
_SHOW = ("show", "list", "lst")
_OPTIONS = ("-statistics", "-details", "-pretty")
_OTHER_OPTIONS = (
    *("-raw", "-graph", "-iec", "-force", "-batch", "-netns", "-names", "-json", "-cf", "-color", "-timestamp"),
    *("-tshort", "-oneline", "-echo", "-brief"),
)


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
        words = list(arguments)
        options: list[str] = []
        while words and words[0].startswith("-"):
            options.append(words.pop(0))
        if not words or "dev" not in words[:-1]:
            raise NoLine
        what = matching(words[0], _OBJECTS)
        at = words.index("dev")
        intf = self.fabric.line_end(words[at + 1])
        if intf is None or what is None:
            raise NoLine
        chosen = {_option(option) for option in options}
        rest = words[2:at] + words[at + 2 :]
        action = matching(words[1], _ACTIONS) if at > 1 else "show"
        if (what, words[1]) in (("filter", "get"), ("qdisc", "link")):
            raise LineRefused(f"tc {what} {words[1]} is not there for our lines")
        if action is None:
            raise LineRefused(f'Command "{words[1]}" is unknown, try "tc {what} help".', 255)
        if action in _SHOW:
            return self._shown(intf, what, rest, chosen)
        tree = copy.deepcopy(self._tree(intf))
        action = action.removesuffix("ete")
        if what == "qdisc":
            tree = with_discipline(tree, action, rest)
        elif what == "class":
            set_class(tree, action, rest)
        else:
            set_filter(tree, action, rest)
        self._set(intf, tree)
        return ""

    @staticmethod
    def shows_all(arguments: Sequence[str]) -> bool:
        """Whether a command line asks for the disciplines of all interfaces."""
        words = [word for word in arguments if not word.startswith("-")]
        return (
            bool(words)
            and matching(words[0], _OBJECTS) == "qdisc"
            and (len(words) == 1 or (len(words) == 2 and matching(words[1], _ACTIONS) in _SHOW))
        )

    def _set(self, intf: Intf, tree: Tree) -> None:
        """Have the line do what `tree` means; what the fabric refuses changes nothing."""
        before = intf.shaping
        shaping = tree.shaping()
        intf.shaping = shaping
        try:
            self.fabric.shaping_changed(intf)
        except Exception:
            intf.shaping = before
            raise
        self.trees[intf.name] = (tree, shaping)

    def _shown(self, intf: Intf, what: str, words: list[str], options: set[str]) -> str:
        tree = self._tree(intf)
        if what == "filter":
            return filters_shown(tree, words, "-pretty" in options)
        asked = _asked(what, words)
        line = Counts.of_line(self.fabric.counters(intf)) if "-statistics" in options else None
        classes = self.fabric.classes(intf) if line and tree.places else []
        return (disciplines_shown if what == "qdisc" else classes_shown)(
            tree, line, classes, asked, "-details" in options
        )

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


def _option(word: str) -> str:
    """Return an option of ``tc``, which may be cut short."""
    if (name := matching(word.replace("-stats", "-statistics"), _OPTIONS)) is not None:
        return name
    if matching(word, _OTHER_OPTIONS) is not None:
        raise LineRefused(f"tc {word} is not there for our lines; write -s, -d or -p")
    raise LineRefused(f'Option "{word}" is unknown, try "tc -help".', 255)


def _asked(what: str, words: list[str]) -> dict[str, str]:
    """Return what the words after ``show`` ask for: parent and handle, or parent and class."""
    asked: dict[str, str] = {}
    given = list(words)
    while given:
        word = given.pop(0)
        if word == "root":
            asked["parent"] = "root"
        elif word in ("parent", "classid" if what == "class" else "handle"):
            text = taken(given)
            try:
                asked[word] = class_id(text)
            except ValueError:
                name = {"parent": "invalid parent ID", "classid": "invalid class ID"}.get(word, "invalid handle")
                raise LineRefused(f'Error: argument "{text}" is wrong: {name}', 255) from None
        elif word != "invisible" or what != "qdisc":
            raise LineRefused(f'What is "{word}"? Try "tc {what} help".', 255)
    return asked
