"""Datagrams by a traffic generator, its pace seen by an observer at the receiver and its toll by who runs it.

The same for all generators: ``metered.py`` runs the sender, ``observed.py`` the receiver; both are files of this folder
that run in the hosts of a lab, and neither knows which generator it is.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from twinnet.errors import NotAvailable, ProgramFailed, ReportUnreadable
from twinnet.interpreter import PYTHON
from twinnet.programs.generators import GENERATORS, Generator
from twinnet.programs.transfer import Output, Transfer
from twinnet.results.distributions import Summary
from twinnet.results.flow_report import FlowReport, Pacing, Toll

__all__ = ["generated"]

_HERE = Path(__file__).parent
_OVERTIME_S = 5
"""What a generator may take to start, and to end after its time."""
_KEPT_SHARE = 0.999
"""As for our own sources (:class:`twinnet.results.flow_report.Pacing`)."""


def generated(
    client: str,
    target: str,
    generator: str,
    *,
    packets_per_second: float | None,
    payload_bytes: int,
    duration_s: int,
    poisson: bool = False,
    processors: float | None = None,
    flow: int = 0,
) -> Transfer:
    """Return datagrams from host `client` to host `target`, which may be the same: they then cross its loopback device.

    Parameters
    ----------
    generator
        A name in :data:`twinnet.programs.generators.GENERATORS`.
    packets_per_second
        The rate that is asked for; ``None``: as much as goes.
    payload_bytes
        Of each datagram; the generator's least where that is more, which the report then says.
    duration_s
        How long, in whole seconds.
    poisson
        Whether gaps are exponential.
    processors
        The processor time that the sender may take, in processors; ``None``: no limit.

    Raises
    ------
    NotAvailable
        The generator cannot send such a process.
    """
    how = GENERATORS[generator]
    size = max(payload_bytes, how.least_payload)
    asked = None if packets_per_second is None else round(packets_per_second)
    command = _command(generator, asked, size, duration_s, poisson)
    gap_ns = 1e9 / asked if asked is not None and not poisson else 0.0
    confined = ["--confined"] if processors is not None else []
    observer = [*PYTHON, str(_HERE / "observed.py"), str(how.port), str(size)]
    protocol, port = how.ready
    notes = (f"{generator} sends no payload below {size} B",) if size > payload_bytes else ()

    def parse(transfer: Transfer, output: Output) -> list[FlowReport]:
        return _reports(transfer, output, how, size, None if asked is None else float(asked), notes)

    return Transfer(
        how.program,
        client,
        target,
        (*PYTHON, str(_HERE / "metered.py"), "{from}", str(duration_s + _OVERTIME_S), *confined, *command),
        parse,
        server_argv=(*observer, f"{gap_ns:.3f}", *how.receiver),
        protocol=protocol,
        port=port,
        flow=flow,
        linger_s=0.1,
        processors=processors,
    )


def _command(generator: str, asked_pps: int | None, size: int, duration_s: int, poisson: bool) -> Sequence[str]:
    """The words that send; raises `NotAvailable` when the generator cannot do so."""
    how = GENERATORS[generator]
    if asked_pps is None:
        if how.unpaced is None:
            raise NotAvailable(f"{generator} always keeps a rate", "give it one")
        return how.unpaced("{to}", size, duration_s)
    send = how.poisson if poisson else how.sender
    if send is None:
        raise NotAvailable(f"{generator} has no exponential gaps", "write 'process: constant'")
    return send("{to}", asked_pps, size, duration_s)


def _reports(
    transfer: Transfer,
    output: Output,
    how: Generator,
    size: int,
    asked_pps: float | None,
    notes: tuple[str, ...],
) -> list[FlowReport]:
    cost, seen = _read(output.client, "its cost"), _read(output.server, "what arrived")
    if cost.get("ended"):
        notes += ("it was ended, because it did not end by itself",)
    elif cost.get("status") not in (0, how.lagging_status):
        said = output.errors.strip().splitlines()[-1:]
        why = said[0] if said else f"status {cost.get('status')}"
        raise ProgramFailed(f"{transfer.program} in {transfer.client} failed: {why}")
    senders = cast("dict[str, dict[str, Any]]", seen.get("senders") or {})
    if seen.get("missed"):
        raise ProgramFailed(f"the observer missed {seen['missed']} datagrams: its processor was taken from it for long")
    source = str(cost.get("source"))
    # Senders may share a receiver: they are told apart by their addresses.
    if source not in senders:
        raise ProgramFailed(f"nothing of what {transfer.program} sent in {transfer.client} arrived")
    return _both_ends(transfer, source, senders[source], cost, (size, asked_pps, notes), output.start_ps)


def _both_ends(
    transfer: Transfer,
    source: str,
    seen: dict[str, Any],
    cost: dict[str, Any],
    asked: tuple[int, float | None, tuple[str, ...]],
    start_ps: int,
) -> list[FlowReport]:
    size, pps, notes = asked
    packets, took_s = int(seen["packets"]), (seen["last_ns"] - seen["first_ns"]) / 1e9
    achieved = (packets - 1) / took_s if took_s > 0 else None
    kept = pps is None or (achieved is not None and achieved >= _KEPT_SHARE * pps)
    pacing = Pacing(
        Summary.from_spec(seen["gap_error_ps"]),
        None,
        pps,
        achieved,
        None if pps is None else pps * size * 8,
        None if achieved is None else achieved * size * 8,
        kept,
    )
    spent_s = max(float(cost["took_s"]), 1e-3)
    toll = Toll(
        float(cost["processor_s"]) / spent_s,
        (int(cost["switches"]) + int(cost["involuntary_switches"])) / spent_s,
        int(cost["involuntary_switches"]) / spent_s,
        seen["together"],
    )
    both: dict[str, Any] = {
        "flow": transfer.flow,
        "protocol": "udp",
        "source": source,
        "start_ps": start_ps,
        "end_ps": start_ps + (seen["last_ns"] - seen["first_ns"]) * 1000,
        "packets": packets,
        "bytes": int(seen["bytes"]),
    }
    return [
        FlowReport(role="source", pacing=pacing, toll=toll, errors=notes, **both),
        FlowReport(role="sink", gap=Summary.from_spec(seen["gap_ps"]), **both),
    ]


def _read(text: str, what: str) -> dict[str, Any]:
    last = text.strip().splitlines()[-1:] or [""]
    try:
        found: Any = json.loads(last[0])
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ReportUnreadable(f"a generator's run reported nothing of {what}: {last[0][:200]!r}")
    return cast("dict[str, Any]", found)
