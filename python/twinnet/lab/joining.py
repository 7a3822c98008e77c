"""Waiting until the switches of a lab have their controllers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from twinnet.errors import TimeLimit
from twinnet.lab_process.pending_reply import PendingReply
from twinnet.lab_process.replies import FinishedReply
from twinnet.units import Duration, duration_ps

if TYPE_CHECKING:
    from twinnet.lab.controllers import LabControllers
    from twinnet.lab.lab import Lab

__all__ = ["wait_until_joined"]

_LOOK_S = 0.2
"""Seconds between checks that the controller program still runs, while the lab waits for it."""


def wait_until_joined(lab: Lab, controllers: LabControllers | None, timeout: Duration) -> None:
    """Wait up to `timeout` until every switch that has controllers has one, as :meth:`Lab.wait_for_controllers` says.

    Raises
    ------
    TimeLimit
        When that takes longer.
    NotAvailable
        The program that is the controller has ended.
    Exception
        What the controller in this process has raised.
    """
    nodes = lab.describe()["nodes"]
    names = [node["name"] for node in nodes if node["kind"] == "switch" and node.get("controllers")]
    _check(controllers)
    if _have_joined(lab, controllers, names, duration_ps(timeout, "timeout")):
        return
    _check(controllers)
    states = {name: lab.switch(name).controller_state for name in names}
    waiting = [name for name, rows in states.items() if not any(row["version"] for row in rows)]
    troubles = {row["trouble"] for name in waiting for row in states[name] if row["trouble"]}
    said = controllers.last_words() if controllers is not None else ""
    why = f" ({'; '.join(sorted(troubles))})" if troubles else ""
    raise TimeLimit(
        f"after {timeout} no controller has joined {', '.join(waiting[:10])}{why}"
        + (f"; the controller said: {said}" if said else ""),
        "see that it runs, where it listens and which versions it speaks",
    )


def _have_joined(lab: Lab, controllers: LabControllers | None, switches: Sequence[str], timeout_ps: int) -> bool:
    if lab.clock == "virtual":
        until_ps = lab.now_ps() + timeout_ps
        return lab.connection.controllers_wait(switches=switches, until_ps=until_ps)["finished"]
    begin_s = time.monotonic()
    try:
        own = [name for name in switches if lab.switch(name).open_vswitch is None]
        deadline_s = begin_s + timeout_ps / 1e12
        joined = lab.connection.controllers_wait_later(switches=own)
        while not _is_done(joined, deadline_s):
            _check(controllers)
        for name in switches:
            bridge = lab.switch(name).open_vswitch
            while bridge is not None and not bridge.wait_for_controller(time.monotonic() + _LOOK_S):
                _check(controllers)
                if time.monotonic() >= deadline_s:
                    return False
    except TimeoutError:
        return False
    left_s = timeout_ps / 1e12 - (time.monotonic() - begin_s)
    if controllers is None or controllers.wait_served(switches, left_s):
        return True
    _check(controllers)
    return False


def _check(controllers: LabControllers | None) -> None:
    """Raise why nobody will join: waiting for the rest of the time would tell nothing more."""
    if controllers is not None:
        # An app that fails with its first switch may do so before the lab has seen the switch join.
        controllers.check()
        controllers.check_program()


def _is_done(request: PendingReply[FinishedReply], deadline_s: float) -> bool:
    """Return True if `request` is answered within a moment; raises `TimeoutError` past the deadline."""
    left_s = deadline_s - time.monotonic()
    try:
        request.result(max(0.0, min(left_s, _LOOK_S)))
    except TimeoutError:
        if left_s <= _LOOK_S:
            raise
        return False
    return True
