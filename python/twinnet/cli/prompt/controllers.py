"""The controllers at the prompt: how switches stand with theirs, and the warning where one has none."""

from __future__ import annotations

from collections.abc import Sequence

from twinnet.cli.prompt.answer import Answer
from twinnet.lab.lab import Lab
from twinnet.lab.standing import standings

__all__ = ["controllers", "without_controller"]

_MOST_NAMED = 5


def controllers(lab: Lab, arguments: Sequence[str]) -> Answer:
    """Show how each switch stands with its controllers."""
    del arguments
    found = standings(lab)
    data = [{"switch": one.switch, "joined": one.joined, "controllers": list(one.rows)} for one in found]
    text = "\n".join(one.in_words for one in found) or "no switch has a controller: they forward as learning switches"
    return Answer(data, text, all(one.joined for one in found))


def without_controller(lab: Lab) -> list[str]:
    """One sentence for each switch whose controller has not joined or is gone, at most five and how many more."""
    if not any(node.get("controllers") for node in lab.describe()["nodes"]):
        return []
    waiting = [one.in_words for one in standings(lab) if not one.joined]
    more = len(waiting) - _MOST_NAMED
    return waiting if more <= 0 else [*waiting[:_MOST_NAMED], f"and {more} more switches; see: controllers"]
