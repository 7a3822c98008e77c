"""Recordings of networks that no lab has run: what a page shows of made numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from twinnet.drawing import picture_of
from twinnet.drawing.picture import MOST_LIVE_NODES
from twinnet.live.recording import Recording
from twinnet.live.watch import record_of_network
from twinnet.network.network import Network

__all__ = ["LINE_BPS", "recorded"]

LINE_BPS = 10_000_000


def recorded(net: Network, rates_bps: Sequence[int], file: Path, *later_bps: Sequence[int]) -> str:
    """The address of a recording of `net` at 1 s, when its first ways carry `rates_bps`, and a second later each, when
    they carry `later_bps`; the others are idle."""
    ends = [(link.a.node, link.b.node, link.a.name, link.b.name) for link in net.links]
    network = record_of_network("arranged", picture_of(net, MOST_LIVE_NODES), ends) | {"control": False}
    recording = Recording(network, file)
    for now_s, given in enumerate((rates_bps, *later_bps), 1):
        rates = [*given, *[0] * (2 * len(ends) - len(given))]
        ways: list[list[Any]] = [[rate, rate / LINE_BPS, 3 if rate else 0, 0, True, LINE_BPS] for rate in rates]
        verdict: dict[str, Any] = {"state": "valid", "reasons": [], "covers_s": 1.0, "at_s": now_s, "late_s": 0}
        recording.add({"now_s": float(now_s), "elapsed_s": 1.0, "ways": ways, "verdict": verdict})
    recording.write()
    return file.as_uri()
