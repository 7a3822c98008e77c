"""Flows in ``ovs-ofctl`` syntax, checked by the switch's own parser before anything is built."""

from __future__ import annotations

from twinnet.errors import BadFlow

__all__ = ["checked_flow"]


def checked_flow(line: str) -> str:
    """Return `line` when it is a flow.

    Raises
    ------
    BadFlow
        With the word that is wrong, its column, and what to write instead.

    Examples
    --------
    >>> checked_flow("priority=65535,ip,nw_dst=10.0.0.4,tcp,tp_dst=5002,actions=enqueue:4:1")
    'priority=65535,ip,nw_dst=10.0.0.4,tcp,tp_dst=5002,actions=enqueue:4:1'
    """
    from twinnet import _core

    try:
        _core.check_flow(line)
    except ValueError as error:
        shown = line if len(line) <= 120 else line[:117] + "..."
        raise BadFlow(f"the flow {shown!r} cannot be read: {error}") from None
    return line
