"""Code of one's own that an app of a lab names: it is made known where the app runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

from twinnet.errors import NotAvailable
from twinnet.lab_process.requests import LabRequests
from twinnet.traffic import application, congestion, estimator
from twinnet.traffic.own_code import brought

__all__ = ["bring_along"]

_KINDS = {
    "congestion_control": ("congestion control", congestion.hand_to_the_core),
    "code": ("application", application.hand_to_the_core),
    "method": ("estimator", estimator.hand_to_the_core),
}
"""By the field of an app that names it: what it is, and what makes it known to the hosts of this process."""


def bring_along(
    fields: Mapping[str, Any],
    connection: LabRequests,
    clock: Literal["wall", "virtual", "real"],
    here: bool,
    brought_before: set[str],
) -> None:
    """Make the code of one's own that an app names known where it runs.

    Parameters
    ----------
    fields
        Those of the app in the lab protocol.
    connection
        To the lab.
    clock
        The lab's.
    here
        Whether the lab lives in this process.
    brought_before
        The names that the lab process has been brought; more are added.

    Raises
    ------
    NotAvailable
        The lab's hosts cannot run it.
    LabError
        It raised when the lab process ran it.
    """
    for field, (kind, hand) in _KINDS.items():
        given: Any = fields.get(field)
        name: Any = cast("Mapping[str, Any]", given).get("code") if isinstance(given, Mapping) else given
        own = brought(name) if isinstance(name, str) else None
        if own is None:
            continue
        if here:
            hand(name)
        elif clock == "wall" and field != "congestion_control":
            if name not in brought_before:
                connection.code_bring(kind=kind, name=name, **own.for_another_process())
                brought_before.add(name)
        else:
            raise NotAvailable(
                f"{own.name} is your own {kind}: model hosts on the virtual clock run it, in the lab's own process"
                + ("" if field == "congestion_control" else ", and hosts on the wall clock"),
                "use net.simulate()",
            )
