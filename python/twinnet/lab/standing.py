"""State of the controllers of a running lab's switches, so that nobody mistakes the answer of a switch without a
controller for a controller's work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from twinnet.lab.lab import Lab

__all__ = ["Standing", "standings"]


@dataclass(frozen=True)
class Standing:
    """A switch that was described with controllers.

    Attributes
    ----------
    switch
        Its name.
    fail_mode
        What it does without any: ``standalone`` (it forwards as a learning switch) or ``secure``.
    rows
        One row for each controller, as :attr:`twinnet.lab.parts.LabSwitch.controller_state` gives them.
    """

    switch: str
    fail_mode: str
    rows: Sequence[Mapping[str, Any]]

    @property
    def joined(self) -> bool:
        """True if it has agreed on a version with one of its controllers."""
        return any(row["version"] for row in self.rows)

    @property
    def in_words(self) -> str:
        """The state in one sentence, which begins with the switch's name."""
        return f"{self.switch}{':' if self.joined else ' has'} {self.state}"

    @property
    def state(self) -> str:
        """The same without the switch's name: its controller, or that it has none."""
        if self.joined:
            with_version = next(row for row in self.rows if row["version"])
            return f"{with_version['target']}, OpenFlow {with_version['version']}"
        targets = ", ".join(row["target"] for row in self.rows)
        troubles = list(dict.fromkeys(str(row["trouble"]) for row in self.rows if row["trouble"]))
        why = f": {'; '.join(troubles)}" if troubles else ""
        does = {
            "standalone": "it forwards as a learning switch",
            "secure": "it forwards only what its flows match",
        }.get(self.fail_mode, self.fail_mode)
        return f"no controller ({targets}{why}); meanwhile {does}"


def standings(lab: Lab) -> list[Standing]:
    """The switches of `lab` that were described with controllers, each with how it stands."""
    described = [node for node in lab.describe()["nodes"] if node["kind"] == "switch" and node.get("controllers")]
    found: list[Standing] = []
    for node in described:
        rows = [row for row in lab.switch(node["name"]).controller_state if row.get("peer", "controller") != "tool"]
        found.append(Standing(node["name"], str(node.get("fail_mode", "standalone")), rows))
    return found
