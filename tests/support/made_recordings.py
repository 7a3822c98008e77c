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


def recorded(net: Network, rates_bps: Sequence[int], file: Path) -> str:
    """The address of a recording of `net` of one moment, whose first ways carry `rates_bps`."""
    ends = [(link.a.node, link.b.node, link.a.name, link.b.name) for link in net.links]
    network = record_of_network("arranged", picture_of(net, MOST_LIVE_NODES), ends) | {"control": False}
    recording = Recording(network, file)
    rates = [*rates_bps, *[0] * (2 * len(ends) - len(rates_bps))]
    ways: list[list[Any]] = [[rate, rate / LINE_BPS, 3 if rate else 0, 0, True, LINE_BPS] for rate in rates]
    verdict = {"state": "valid", "reasons": [], "covers_s": 1.0, "at_s": 1.0, "late_s": 0}
    recording.add({"now_s": 1.0, "elapsed_s": 0.25, "ways": ways, "verdict": verdict})
    recording.write()
    return file.as_uri()
