"""What a fast line lost, told apart by whether frames waited."""

from __future__ import annotations

import pytest
from twinnet.results.port_samples import PortSamples, PortSeries

from bench.fast_line import losses_of


def series(frames: tuple[int, ...], backlog: tuple[int, ...], received: tuple[int, ...]) -> PortSeries:
    zero = (0,) * len(frames)
    return PortSeries(frames, zero, zero, received, zero, zero, {}, zero, backlog, zero)


def test_a_line_loses_where_nothing_has_come_and_where_it_was_late_with_frames_waiting() -> None:
    # 100 frames of 1536 bytes in 2 ms.
    rate_bps = 100 * 1536 * 8 / 0.002
    line = series((100, 60, 95, 100), (7, 0, 9, 9), (0, 0, 0, 0))
    source = series((0, 0, 0, 0), (0, 0, 0, 0), (200, 0, 200, 200))
    samples = PortSamples(2_000_000_000, 0, False, {"in": source, "out": line})
    losses = losses_of(samples, "in", "out", rate_bps)
    assert losses.off == pytest.approx(100 * 45 / 400)
    assert (losses.idle, losses.waiting) == (pytest.approx(10.0), pytest.approx(1.25))
    assert losses.read == pytest.approx(600 / 0.008)
