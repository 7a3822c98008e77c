"""The process of one slot, which :mod:`twinnet.cluster.worker` starts with its settings as JSON.

It takes its processors first, so that everything that it starts inherits them, calibrates if it is asked to, and joins
the scheduler. On standard output it tells its parent what it does, a JSON object a line; it ends when its parent does.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

__all__ = ["SCHEDULER_GONE", "main"]

_BACK_S = 30.0
SCHEDULER_GONE = 3
"""The exit status when the scheduler cannot be reached, or is no more."""


def main() -> None:
    """Be a slot until the scheduler or the parent has gone."""
    settings: dict[str, Any] = json.loads(sys.argv[1])
    os.sched_setaffinity(0, settings["processors"])
    threading.Thread(target=_end_with_parent, daemon=True).start()
    verdict, reasons = settings["verdict"], settings["reasons"]
    if verdict is None:
        from twinnet.cluster.calibration import calibrate

        verdict, reasons = calibrate()
        _tell({"verdict": verdict, "reasons": reasons})
    from twinnet.cluster.remote_run import SLOT

    SLOT.tell = _tell
    SLOT.number = settings["number"]
    SLOT.takes_wall = verdict == "valid"
    SLOT.why_not = f"{verdict}: {reasons}" if reasons else str(verdict)
    from twinnet.cluster.joining import join

    while True:
        join(settings, lambda: _tell({"joined": True}))
        _tell({"lost": True})
        # This process stays: starting another would take longer than a scheduler needs to come back.
        if not scheduler_is_back(settings):
            # Not `sys.exit`: a run that is going on would be waited for.
            os._exit(SCHEDULER_GONE)


def scheduler_is_back(settings: dict[str, Any]) -> bool:
    """Wait until a scheduler listens again; `False` when it did not within `_BACK_S`, or is another one."""
    from twinnet.cluster.address import parse_address
    from twinnet.cluster.certificates import read_certificates
    from twinnet.cluster.contact import wait_for_scheduler
    from twinnet.errors import TwinnetError

    address = parse_address(settings["scheduler"], without_tls=not settings["keys"])
    certificates = read_certificates(Path(settings["keys"])) if settings["keys"] else None
    try:
        wait_for_scheduler(address, certificates, _BACK_S)
    except TwinnetError:
        # The parent finds out why, says so and waits on.
        return False
    return True


def _tell(what: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def _end_with_parent() -> None:
    from twinnet.cluster.scratch import end_suddenly

    while os.read(0, 4096):
        pass
    end_suddenly()


if __name__ == "__main__":
    main()
