"""Puts the demo's measured curves into docs/images/demo.svg: ``python docs/demo_picture.py results/tcp-udp-queues``.

All else in the picture is drawn by hand; the curves are the group ``measured``.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
from twinnet.results.series import Band, band, flow_bytes
from twinnet.study.store import ResultStore

PICTURE = Path(__file__).parent / "images/demo.svg"
TOP, BOTTOM, WIDTH = 92.0, 316.0, 264.0
LEFTS = {"shared": 318.0, "separate": 638.0}
LINK_BPS, INTERVAL_S, END_S = 100e6, 0.5, 10.0


def curves(results: Path) -> str:
    """Return the curves of the usable runs in `results`: mean and confidence band for each level and protocol."""
    runs = [run for run in ResultStore(results).all_runs() if run.verdict != "invalid"]
    parts: list[str] = []
    for level, left in LEFTS.items():
        tables = [run.table("intervals") for run in runs if run.levels.get("queues") == level]
        for protocol in ("udp", "tcp"):
            series = [flow_bytes(one, {"protocol": protocol}).rates_bps(INTERVAL_S, END_S) for one in tables]
            parts.append(_curve(protocol, band(series[0][0], [rates for _, rates in series]), left))
    return "".join(parts)


def _curve(protocol: str, values: Band, left: float) -> str:
    middles = values.start_s + INTERVAL_S / 2
    points = " ".join(_point(time, rate, left) for time, rate in zip(middles, values.mean, strict=True))
    edges = [*zip(middles, values.high, strict=True), *zip(middles[::-1], values.low[::-1], strict=True)]
    outline = " ".join(_point(time, rate, left) for time, rate in edges if not np.isnan(rate))
    shade = f'  <polygon class="band {protocol}-fill" points="{outline}"/>\n' if outline else ""
    return f'{shade}  <polyline class="line {protocol}" points="{points}"/>\n'


def _point(time_s: float, rate_bps: float, left: float) -> str:
    share = min(max(rate_bps / LINK_BPS, 0.0), 1.0)
    return f"{left + WIDTH * time_s / END_S:.1f},{BOTTOM - (BOTTOM - TOP) * share:.1f}"


if __name__ == "__main__":
    group = f'<g id="measured">\n{curves(Path(sys.argv[1]))}  </g>'
    drawn = re.sub(r'<g id="measured">.*?</g>', group, PICTURE.read_text(encoding="utf-8"), flags=re.DOTALL)
    PICTURE.write_text(drawn, encoding="utf-8")
