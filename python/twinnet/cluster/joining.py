"""A slot as a worker of the engine: it takes one run at a time, and ends a run that nobody wants any more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from twinnet.cluster.address import parse_address
from twinnet.cluster.certificates import read_certificates
from twinnet.cluster.contact import security_of
from twinnet.cluster.doorkeeper import guard
from twinnet.cluster.engine import distributed, hush_engine, silent
from twinnet.cluster.remote_run import SLOT
from twinnet.cluster.scratch import scratch
from twinnet.code_version import code_version
from twinnet.study.machine import describe_place

__all__ = ["ANNOUNCED", "PROGRESS", "join"]

ANNOUNCED = "twinnet"
"""Under this key a worker tells the scheduler, and so clients, what it is."""
PROGRESS = "twinnet-progress"
"""The topic on which a worker tells clients how far its run is."""
_TELL_EVERY_S = 0.5


def join(settings: Mapping[str, Any], joined: Callable[[], None]) -> None:
    """Be a worker of the scheduler that `settings` name until it has gone; `joined` is called when it took us."""
    distributed()
    hush_engine()
    asyncio.run(_join(settings, joined))


async def _join(settings: Mapping[str, Any], joined: Callable[[], None]) -> None:
    module = distributed()
    address = parse_address(settings["scheduler"], without_tls=not settings["keys"])
    certificates = read_certificates(Path(settings["keys"])) if settings["keys"] else None

    def announced(_: object) -> dict[str, Any]:
        place = describe_place(SLOT.number)
        return {**place, "version": code_version(), "wall": SLOT.takes_wall, "why_not": SLOT.why_not}

    def transition(_: object, key: str, start: str, finish: str, **__: Any) -> None:
        if start == "executing" and finish == "released":
            # Its client cancelled it, or has gone.
            SLOT.cancel(key)

    def teardown(_: object, __: object) -> None:
        # Without a scheduler nobody wants what is being made; the engine would wait for it.
        SLOT.cancel_all()

    parts = {"transition": transition, "teardown": teardown, "name": "twinnet"}
    watch = type("Watch", (module.WorkerPlugin,), parts)()
    with scratch() as folder:
        worker = silent(module.Worker)(
            str(address),
            nthreads=1,
            host=address.host if address.is_loopback else None,
            protocol=address.protocol,
            security=security_of(certificates),
            memory_limit=0,
            local_directory=str(folder),
            death_timeout=20,
            dashboard=False,
            plugins=(watch,),
            startup_information={ANNOUNCED: announced},
        )
        try:
            await worker
            guard(worker)
            joined()
            telling = asyncio.create_task(_tell_progress(worker))
            await worker.finished()
            telling.cancel()
        except (OSError, RuntimeError, TimeoutError):
            # The parent tries again.
            return


async def _tell_progress(worker: Any) -> None:
    while True:
        await asyncio.sleep(_TELL_EVERY_S)
        for attempt, progress in list(SLOT.going.items()):
            worker.log_event(PROGRESS, {"attempt": attempt, "fraction": progress.fraction, "doing": progress.doing})
