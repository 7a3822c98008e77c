"""Dask, imported when it is needed and set to do no more than is wanted of it."""

from __future__ import annotations

import importlib
import logging
from typing import Any

from twinnet.errors import NotAvailable, TwinnetError

__all__ = ["ClusterError", "distributed", "hush_engine", "silent"]

REMEDY = "install twinnet with its extra: pip install 'twinnet[cluster]'"

_SETTINGS: dict[str, Any] = {
    # It would look into the threads of a worker a hundred times a second, beside a lab on the wall clock.
    "distributed.worker.profile.enabled": False,
    # What the engine remembers of what happened.
    "distributed.admin.low-level-log-length": 1000,
    "distributed.comm.timeouts.connect": "10s",
    # A connection whose cable was cut is given up after this time.
    "distributed.comm.timeouts.tcp": "15s",
    "distributed.scheduler.work-stealing": False,
}
_ENGINE = ("distributed", "tornado", "asyncio")
"""Those that write a log."""


class ClusterError(TwinnetError):
    """The scheduler or the workers of a cluster cannot be used, or have gone."""


def distributed() -> Any:
    """Dask's module `distributed`; raises `NotAvailable` where the extra is not installed."""
    try:
        dask = importlib.import_module("dask")
        module = importlib.import_module("distributed")
        importlib.import_module("cryptography")
    except ImportError as error:
        raise NotAvailable(f"runs on a cluster need {error.name or error}, which is not installed", REMEDY) from None
    dask.config.set(_SETTINGS)
    return module


def silent(kind: Any) -> Any:
    """`kind`, a scheduler or a worker of the engine, without its web pages, which would listen without TLS."""

    def start_http_server(*_: Any, **__: Any) -> None:
        """Listen nowhere."""

    return type(f"Silent{kind.__name__}", (kind,), {"start_http_server": start_http_server})


def hush_engine() -> None:
    """Keep the engine's own log from standard error: what matters is said in twinnet's words."""
    # When it is imported, the engine gives some of their parts a level of their own.
    distributed()
    names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] in _ENGINE]
    for name in {*_ENGINE, *names}:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
