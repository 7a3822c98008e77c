"""Controllers of a network on several machines: each machine connects its own switches to them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from twinnet.errors import TwinnetError
from twinnet.lab_process.pending_reply import JsonObject, PendingReply
from twinnet.lab_process.replies import ControllerRow, FinishedReply

__all__ = ["joined_when"]

_FIRST_LOOK_S = 0.02
_LONGEST_LOOK_S = 0.5


def joined_when(
    switches: Sequence[str], rows: Callable[[], list[ControllerRow]], closed: threading.Event
) -> PendingReply[FinishedReply]:
    """Return the answer to ``controllers.wait`` of the lab protocol, which comes when all `switches` have agreed on a
    version with a controller.

    Parameters
    ----------
    switches
        The names of the switches.
    rows
        Asks the parts how their controllers stand, as ``controllers`` of the lab protocol reports it.
    closed
        Set when the network has ended.
    """
    pending = PendingReply[FinishedReply]()

    def look() -> None:
        pause_s = _FIRST_LOOK_S
        reply: JsonObject | None = None
        try:
            while True:
                joined = {row["switch"] for row in rows() if row.get("version") and row["peer"] == "controller"}
                if joined.issuperset(switches):
                    reply = {"ok": {"finished": True}}
                    return
                if closed.wait(pause_s):
                    return
                pause_s = min(2 * pause_s, _LONGEST_LOOK_S)
        except TwinnetError as error:
            reply = {"error": {"name": error.name, "message": error.message, "remedy": error.remedy}}
        finally:
            pending.settle(reply)

    threading.Thread(target=look, name="controllers", daemon=True).start()
    return pending
