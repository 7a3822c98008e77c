"""The running labs of this user, which other processes own."""

from __future__ import annotations

from dataclasses import dataclass

from twinnet.lab.lab import Lab
from twinnet.lab.parts import Layout
from twinnet.lab_process.connection import connect

__all__ = ["LabInfo", "attach", "labs"]


@dataclass(frozen=True)
class LabInfo:
    """A running lab of this user.

    Parameters
    ----------
    name
        Its name.
    """

    name: str


def attach(name: str, patience_s: float | None = None) -> Lab:
    """Return the running lab `name` of this user, which another process owns and which goes on when we leave.

    Parameters
    ----------
    name
        Its name.
    patience_s
        How long each of its answers is waited for, in seconds, before `TimeoutError` is raised; ``None``: for as long
        as the lab lives.

    Raises
    ------
    NotAvailable
        When there is no such lab. A stranger that listens at its address is none, and is sent nothing.
    """
    connection = connect(name, patience_s)
    try:
        layout = Layout(connection.describe())
    except BaseException:
        connection.close()
        raise
    is_virtual = layout.spec.get("clock") == "virtual"
    # Whether its hosts run programs is known there.
    lab = Lab(None, name, clock="virtual" if is_virtual else "wall", programs=is_virtual)
    lab.adopt(connection, layout)
    return lab


def labs() -> list[LabInfo]:
    """Return the running labs of this user, by name."""
    from twinnet._core import list_labs

    return [LabInfo(name) for name in list_labs()]
