"""SFQ and FQ-CoDel: what flows get that share one line, whatever they send."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import twinnet as tn
from twinnet.qos import FqCodel, Queue, Sfq

from twinnet_validation.law import Law, Row
from twinnet_validation.scheduler_shares import shared_out

__all__ = ["FQ_CODEL", "SFQ", "flow_shares"]

_LINE_MBIT = 10
_FROM_S = 1
_WIRE_SHARE = 1000 / 1066
"""Payload of a datagram of 1000 bytes over what it takes of the line."""


@dataclass(frozen=True)
class _Shares:
    mbit: list[float]
    sparse_wait_ms: float


def flow_shares(queue: Queue, wants_mbit: Sequence[float], seconds: int) -> _Shares:
    """Return the payload rates of datagram flows that share a line of 10 Mbit/s, and the last flow's greatest delay."""
    network = tn.Network(seed=3)
    switch = network.switch("s1")
    sink = network.host("sink")
    network.link(switch, sink, rate=f"{_LINE_MBIT} Mbit", queue_a=queue)
    for number in range(len(wants_mbit)):
        network.link(network.host(f"h{number}"), switch, rate="1 Gbit")
    with network.simulate(seed=3) as lab:
        flows = [
            lab.start(
                tn.apps.udp(
                    f"h{number}",
                    "sink",
                    port=5001 + number,
                    rate=f"{round(mbit * 1e6)} bit",
                    payload="1000 B",
                    duration=f"{seconds} s",
                ),
                # Not in step: the flows' datagrams come at moments of their own.
                at=f"{100 + 137 * number} us",
            )
            for number, mbit in enumerate(wants_mbit)
        ]
        lab.run_until(f"{seconds + 30} s")
        reports = [flow.report() for flow in flows]
    rates: list[float] = []
    for report in reports:
        assert report.intervals is not None
        counts = zip(report.intervals.starts_s, report.intervals.bytes, strict=True)
        received = sum(count for start, count in counts if _FROM_S <= start < seconds)
        rates.append(received * 8 / (seconds - _FROM_S) / 1e6)
    delay = reports[-1].delay
    assert delay is not None
    return _Shares(rates, delay.max / 1e9)


def _measure(queue: Queue, seconds: int) -> Sequence[Row]:
    rows: list[Row] = []
    quantum_mbit = 2 * 1514 * 8 / 1e6 / (seconds - _FROM_S)
    for wants in ((9.0, 9.0, 9.0, 9.0), (9.0, 6.0, 4.0, 0.5)):
        found = flow_shares(queue, wants, seconds)
        expected = shared_out(_LINE_MBIT * _WIRE_SHARE, wants, [1] * len(wants))
        setting = "flows that want " + ", ".join(f"{mbit:g}" for mbit in wants) + " of 10 Mbit/s"
        for number, (share, seen) in enumerate(zip(expected, found.mbit, strict=True), 1):
            allowed = quantum_mbit + 0.01 * share
            why = f"{allowed:.2g} Mbit/s: a quantum at each end of {seconds - _FROM_S} s, and 1 %"
            rows.append(Row(setting, f"flow {number}", "Mbit/s", share, seen, why, abs(seen - share) <= allowed))
    # Each of the three others sends a quantum and the rest of a frame before a flow that was silent has its turn.
    bound_ms = (3 * (1514 + 1042) + 2 * 1066) * 8 / _LINE_MBIT / 1e3
    why = f"at most {bound_ms:.3g} ms: a turn of each of the others, and its own frame"
    rows.append(
        Row(
            "the flow of 0.5 Mbit/s among them",
            "greatest delay",
            "ms",
            None,
            found.sparse_wait_ms,
            why,
            found.sparse_wait_ms <= bound_ms,
        )
    )
    return rows


SFQ = Law(
    "sfq",
    "SFQ: equal shares for unequal flows",
    "Each bucket has its turn: flows that want more than their share get the same, and one that wants less gets what "
    "it wants and waits for a turn of each of the others at most. The flows here fall into buckets of their own.",
    "McKenney 1990, Stochastic fairness queueing; Bertsekas and Gallager 1992, 6.5.2 for the shares",
    lambda quick: _measure(Sfq(perturb="0 s"), 3 if quick else 11),
)
FQ_CODEL = Law(
    "fq-codel",
    "FQ-CoDel: equal shares, and no wait for sparse flows",
    "Queues are served by deficit round robin, and CoDel drops from those whose delay stands: datagrams that do not "
    "yield get the same shares as with SFQ, and a sparse flow does not wait for the queues of the others.",
    "RFC 8290, 4 and 6.1; Bertsekas and Gallager 1992, 6.5.2 for the shares",
    lambda quick: _measure(FqCodel(), 3 if quick else 11),
)
