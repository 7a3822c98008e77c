"""The scheduler: workers and clients meet there. It makes no runs and keeps no results."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path

from twinnet.cluster.address import Address
from twinnet.cluster.certificates import Certificates
from twinnet.cluster.contact import VERSION_OP, security_of
from twinnet.cluster.doorkeeper import guard
from twinnet.cluster.engine import ClusterError, distributed, hush_engine, silent
from twinnet.cluster.scratch import remove_left, scratch
from twinnet.code_version import code_version

__all__ = ["serve_scheduler"]

_SILENT_WORKER_S = 20
"""A worker that says nothing for so long is taken for dead: its cable may be cut."""


def serve_scheduler(address: Address, certificates: Certificates | None, tell: Callable[[str], None]) -> None:
    """Be the scheduler at `address` until SIGINT or SIGTERM; `tell` gets the address when it listens.

    Raises
    ------
    ClusterError
        It cannot listen there.
    """
    distributed()
    hush_engine()
    remove_left()
    with scratch() as folder:
        asyncio.run(_serve(address, certificates, tell, folder))


async def _serve(
    address: Address, certificates: Certificates | None, tell: Callable[[str], None], folder: Path
) -> None:
    def version() -> str:
        return code_version()

    scheduler = silent(distributed().Scheduler)(
        host=address.host,
        port=address.port,
        protocol=address.protocol,
        security=security_of(certificates),
        # The client makes a run again elsewhere; the engine is not to guess where.
        allowed_failures=0,
        worker_ttl=f"{_SILENT_WORKER_S} s",
        dashboard=False,
        local_directory=str(folder),
    )
    scheduler.handlers[VERSION_OP] = version
    try:
        await scheduler
    except (OSError, RuntimeError, ValueError) as error:
        cause = error.__cause__ or error
        raise ClusterError(f"the scheduler cannot listen at {address}: {cause}", "choose another port") from None
    guard(scheduler)
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    tell(str(scheduler.address))
    await stop.wait()
    await scheduler.close()
