"""All laws in the order of the page. Adding a law is adding it here."""

from __future__ import annotations

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
from twinnet_validation.law import Law

__all__ = ["LAWS"]

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
