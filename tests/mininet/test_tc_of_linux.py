"""Lines of ``tc`` beside what Linux has answered: exit status, messages, and what is shown afterwards.

`tc_of_linux.json` has its answers, and says of which kernel and ``tc`` and how they are made again. A line that Linux
takes and ours refuse by choice has the reason in its field ``ours``.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from twinnet import _core
from twinnet.mininet.fabric import Fabric
from twinnet.mininet.line_control import LineControl, LineRefused, NoLine
from twinnet.mininet.shaping import Shaping
from twinnet.mininet.tc_filters import KINDS as FILTERS
from twinnet.mininet.tc_tree import KINDS as DISCIPLINES

from tools.record_tc import asks, numbered, shown_after

SAID: dict[str, Any] = json.loads((Path(__file__).parent / "tc_of_linux.json").read_text())
LINES: list[dict[str, Any]] = SAID["lines"]
MOST_REFUSED_BY_CHOICE = 0.2
MOST_BROKEN = 60
"""Of each beginning so many lines are tried with broken words: all take half a minute."""


class Line:
    """A fabric with the one line of the interface x, whose queue has to be one that the core takes."""

    def __init__(self) -> None:
        self.intf = SimpleNamespace(name="x", shaping=Shaping())

    def line_end(self, name: str) -> Any:
        return self.intf if name == "x" else None

    def shaping_changed(self, intf: Any) -> None:
        if intf.shaping.queue is not None:
            _core.check_queue(json.dumps(intf.shaping.queue))


def named(case: dict[str, Any]) -> str:
    """Return what the case is called: what was there before, and the line."""
    return f"{case.get('before', 'nothing')}: {case['tc']}"


@pytest.mark.parametrize("case", LINES, ids=named)
def test_ours_answers_as_linux_or_refuses_with_its_reason(case: dict[str, Any]) -> None:
    lines = LineControl(cast("Fabric", Line()))
    for before in SAID["before"].get(case.get("before"), []):
        lines.run(before.split())
    shown_before = [lines.run([what, "show", "dev", "x"]) for what in ("qdisc", "class", "filter")]
    try:
        text = lines.run(case["tc"].split())
        if not asks(case["tc"]):
            text = "".join(lines.run([what, "show", "dev", "x"]) for what in shown_after(case["tc"]))
        status, error = 0, ""
    except LineRefused as refused:
        text, status, error = "", refused.status, str(refused)
        assert [lines.run([what, "show", "dev", "x"]) for what in ("qdisc", "class", "filter")] == shown_before
    if "ours" in case:
        assert status == 2
        assert case["status"] in (0, 2)
        assert case["ours"] in error
        return
    assert status == case["status"], error
    assert numbered(text) == case["shown"]
    if status:
        # Ours may say more: what our lines have.
        said = case["err"].splitlines()
        assert error.splitlines()[: len(said)] == said


def test_all_disciplines_and_filters_are_among_the_lines_and_few_are_refused_by_choice() -> None:
    kinds = (*DISCIPLINES, "fq", *FILTERS)
    of_kinds = Counter(kind for case in LINES for kind in kinds if kind in case["tc"].split())
    assert set(of_kinds) == set(kinds)
    statuses = Counter(case["status"] for case in LINES)
    assert min(statuses[status] for status in (0, 1, 2, 255)) > 20
    assert sum("ours" in case for case in LINES) < MOST_REFUSED_BY_CHOICE * len(LINES)
    assert {"by", "kernel", "tc"} == SAID["made"].keys()
    assert len({named(case) for case in LINES}) == len(LINES)


JUNK = ("", "x", "-1", "999999999999999999999", "1e400", "0x", "%", "1:2:3", "none", "nexthdr+", "1_0")


def broken(line: str) -> list[list[str]]:
    """Return the words of the line without one of them, with one twice, with another one, and its begin alone."""
    words = line.split()
    places = range(len(words))
    return [
        *(words[:at] + words[at + 1 :] for at in places),
        *(words[:at] for at in places),
        *(words[: at + 1] + words[at:] for at in places),
        *([*words[:at], junk, *words[at + 1 :]] for at in places for junk in JUNK),
    ]


@pytest.mark.parametrize("before", [*SAID["before"], None])
def test_no_line_that_is_broken_in_one_word_ends_in_an_error_of_ours(before: str | None) -> None:
    line = Line()
    lines = LineControl(cast("Fabric", line))
    for command in SAID["before"].get(before, []):
        lines.run(command.split())
    trees, shaping = dict(lines.trees), line.intf.shaping
    answered = 0
    for case in [case for case in LINES if case.get("before") == before][:MOST_BROKEN]:
        for words in broken(case["tc"]):
            with suppress(LineRefused, NoLine):
                lines.run(words)
            lines.trees, line.intf.shaping = dict(trees), shaping
            answered += 1
    assert answered > 50
