"""All laws in the order of the page, and what is found of them. Adding a law is adding it here."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from twinnet_validation import (
    active_queues,
    cubic_window,
    datagram_delay,
    deterministic_queue,
    equal_sources,
    fair_queues,
    finite_queue,
    jitter,
    laws_of_values,
    link_sharing,
    loss,
    loss_limited,
    policy_shares,
    scheduler_shares,
    single_server,
    statements,
    tcp_shares,
    token_bucket,
)
from twinnet_validation.law import Law, Row

__all__ = ["LAWS", "measured"]

LAWS: tuple[Law, ...] = (
    datagram_delay.LAW,
    deterministic_queue.LAW,
    single_server.LAW,
    finite_queue.LAW,
    scheduler_shares.HTB,
    scheduler_shares.DRR,
    scheduler_shares.PRIORITY,
    fair_queues.SFQ,
    fair_queues.FQ_CODEL,
    link_sharing.LAW,
    policy_shares.LAW,
    active_queues.RED,
    active_queues.CODEL,
    active_queues.PIE,
    token_bucket.LAW,
    loss.LAW,
    jitter.LAW,
    equal_sources.LAW,
    cubic_window.LAW,
    loss_limited.LAW,
    tcp_shares.FAIRNESS,
    tcp_shares.RIVALS,
    statements.LAW,
    laws_of_values.LAW,
)


def measured(laws: Sequence[Law], quick: bool) -> list[tuple[Law, list[Row]]]:
    """Return what is found of each of `laws`, in their order; several are measured on all processors."""
    if len(laws) < 2:
        return [(law, list(law.measure(quick))) for law in laws]
    workers = min(len(laws), len(os.sched_getaffinity(0)))
    # Ctrl-C reaches the workers too, and ends them without a word.
    quietly = (signal.SIGINT, signal.SIG_DFL)
    with ProcessPoolExecutor(workers, get_context("spawn"), initializer=signal.signal, initargs=quietly) as pool:
        # Those that take longest stand at the end.
        begun = [pool.submit(_rows, law.name, quick) for law in reversed(laws)]
        return [(law, rows.result()) for law, rows in zip(laws, reversed(begun), strict=True)]


def _rows(name: str, quick: bool) -> list[Row]:
    return list(next(law for law in LAWS if law.name == name).measure(quick))
