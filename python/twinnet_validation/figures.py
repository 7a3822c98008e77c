"""The page's figures: the wait of queues over load, and CUBIC's window over time."""

from __future__ import annotations

import importlib
import math
from pathlib import Path
from typing import Any

from twinnet.report.colours import colour_of

from twinnet_validation.cubic_window import BETA, LINK, C, peaks, window_over_time
from twinnet_validation.port import constant
from twinnet_validation.single_server import (
    LOADS,
    MEAN_BYTES,
    expected_wait_s,
    exponential_sizes,
    measured_wait,
)

__all__ = ["CUBIC_FIGURE", "WAIT_FIGURE", "draw_figures"]

WAIT_FIGURE = "validation-wait.svg"
CUBIC_FIGURE = "validation-cubic.svg"
_SETTINGS: dict[str, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.fonttype": "none",
    # The same results give the same bytes.
    "svg.hashsalt": "twinnet",
}
_NAMES = ("M/M/1", "M/D/1")
_FROM_S, _UNTIL_S = 30.0, 80.0


def draw_figures(folder: Path, quick: bool) -> None:
    """Draw both into `folder`."""
    matplotlib: Any = importlib.import_module("matplotlib")
    matplotlib.use("Agg")
    pyplot: Any = importlib.import_module("matplotlib.pyplot")
    with matplotlib.rc_context(_SETTINGS):
        for name, draw in ((WAIT_FIGURE, _draw_wait), (CUBIC_FIGURE, _draw_window)):
            figure, axes = pyplot.subplots(figsize=(5.6, 3.0), layout="constrained")
            try:
                draw(axes, quick)
                axes.legend(frameon=False)
                figure.savefig(folder / name, metadata={"Date": None})
            finally:
                pyplot.close(figure)


def _draw_wait(axes: Any, quick: bool) -> None:
    loads = [place / 100 for place in range(2, 97)]
    for name, sizes in zip(_NAMES, (exponential_sizes(), constant(MEAN_BYTES)), strict=True):
        colour = colour_of(name, _NAMES)
        # The formula is proportional to load / (1 - load): one sum over the sizes serves the whole curve.
        at_half_ms = expected_wait_s(sizes, 0.5) * 1e3
        axes.plot(loads, [at_half_ms * load / (1 - load) for load in loads], color=colour, label=f"{name}, formula")
        found = [(load, measured_wait(sizes, load, quick)) for load in (LOADS[1:3] if quick else LOADS)]
        means = [wait.mean_s * 1e3 for _, wait in found]
        spread = [(wait.high_s - wait.low_s) / 2 * 1e3 for _, wait in found]
        axes.errorbar(
            [load for load, _ in found],
            means,
            yerr=spread,
            fmt="o",
            markersize=3,
            capsize=2,
            color=colour,
            label=f"{name}, seen (99.9 %)",
        )
    axes.set_xlabel("load")
    axes.set_ylabel("mean wait (ms), service 1 ms")


def _draw_window(axes: Any, _quick: bool) -> None:
    info = window_over_time(round(_UNTIL_S))
    course = [
        (at, window)
        # A tenth of the samples: the figure stays small.
        for at, window in list(zip(info.at_s, info.congestion_windows, strict=True))[::10]
        if at >= _FROM_S
    ]
    names = ("seen", "RFC 9438")
    axes.plot(*zip(*course, strict=True), color=colour_of("seen", names), label="seen")
    found = peaks(info, after_s=0.0)
    label = "RFC 9438 from each loss on"
    for previous, first, second in zip(found, found[1:], found[2:], strict=False):
        if first.at_s < _FROM_S:
            continue
        top = first.before * (1 + BETA) / 2 if first.before < previous.before else first.before
        reached_s = math.cbrt((top - first.after) / C)
        times = [(second.at_s - first.at_s) * place / 60 for place in range(61)]
        axes.plot(
            [first.at_s + after for after in times],
            [C * (after - reached_s) ** 3 + top for after in times],
            color=colour_of("RFC 9438", names),
            linestyle="--",
            linewidth=1,
            label=label,
        )
        label = None
    axes.axhline(LINK.capacity_segments, color="#7F7F7F", linewidth=0.6, linestyle=":", label="line and buffer full")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("time (s)")
    axes.set_ylabel("congestion window (segments)")
