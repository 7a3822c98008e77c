"""Draws docs/images/demo.svg from the results of the demo: ``python docs/demo_picture.py results/tcp-udp-queues``.

The picture of README: the network of the first study, and the throughput that its receivers got under both levels.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from twinnet.measure.series import Band, band, flow_bytes
from twinnet.study.store import ResultStore

WIDTH, HEIGHT = 920, 380
LINK_BPS = 100e6
INTERVAL_S, END_S, UDP_END_S = 0.5, 10.0, 6.0
PLOT = {"top": 92.0, "bottom": 316.0, "width": 264.0}
LEFTS = {"shared": 318.0, "separate": 638.0}
TITLES = {"shared": "one queue for all", "separate": "a queue each for TCP and UDP"}

HEAD = f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="title desc" \
font-family="system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif" font-size="14">
  <title id="title">UDP starves TCP in a shared queue and not in separate ones</title>
  <desc id="desc">Left: hosts h1, h2, h3 and h4 at switch s1; h1 and h3 send TCP and UDP to h4, h2 fetches by HTTP. Right: \
throughput over ten seconds. In one shared queue UDP takes the link while it is sent and TCP gets almost nothing until UDP ends; \
with separate queues each has about half of the link.</desc>
  <style>
    .paper {{ fill: #ffffff; stroke: #c9d1d9 }}
    text {{ fill: #1c2733 }} .small {{ font-size: 12px; fill: #4a5868 }} .name {{ font-weight: 600 }}
    .host {{ fill: #e8f1fb; stroke: #2f6fb3 }} .switch {{ fill: #fdf3e3; stroke: #c07a12 }} .wire {{ stroke: #6b7888; stroke-width: 2 }}
    .hot {{ stroke: #c0392b; stroke-width: 3 }} .grid {{ stroke: #d8dee5 }} .udp {{ stroke: #c0392b }} .tcp {{ stroke: #1f6fb2 }}
    .line {{ fill: none; stroke-width: 2.4 }} .band {{ stroke: none; opacity: .2 }} .udp-fill {{ fill: #c0392b }} .tcp-fill {{ fill: #1f6fb2 }}
    @media (prefers-color-scheme: dark) {{
      .paper {{ fill: #12181f; stroke: #303a46 }} text {{ fill: #e4eaf0 }} .small {{ fill: #aab6c3 }}
      .host {{ fill: #14283d; stroke: #5b9ddd }} .switch {{ fill: #33260f; stroke: #d99a35 }} .wire {{ stroke: #93a0af }}
      .grid {{ stroke: #2c3642 }} .udp, .hot {{ stroke: #ff7b6b }} .tcp {{ stroke: #6cb6ff }} .udp-fill {{ fill: #ff7b6b }} .tcp-fill {{ fill: #6cb6ff }}
    }}
  </style>
  <rect class="paper" x="1" y="1" width="{WIDTH - 2}" height="{HEIGHT - 2}" rx="10"/>
"""

NETWORK = """\
  <text class="name" x="24" y="36">twinnet run tcp-udp-queues --preset demo</text>
  <line class="wire" x1="72" y1="112" x2="150" y2="190"/><line class="wire" x1="72" y1="200" x2="150" y2="200"/>
  <line class="wire" x1="72" y1="288" x2="150" y2="210"/><line class="hot" x1="166" y1="200" x2="244" y2="200"/>
  <rect class="host" x="28" y="92" width="56" height="40" rx="6"/><text class="name" x="46" y="117">h1</text>
  <rect class="host" x="28" y="180" width="56" height="40" rx="6"/><text class="name" x="46" y="205">h2</text>
  <rect class="host" x="28" y="268" width="56" height="40" rx="6"/><text class="name" x="46" y="293">h3</text>
  <rect class="switch" x="128" y="178" width="60" height="44" rx="6"/><text class="name" x="149" y="205">s1</text>
  <rect class="host" x="226" y="180" width="56" height="40" rx="6"/><text class="name" x="244" y="205">h4</text>
  <text class="small" x="92" y="108">TCP and UDP</text><text class="small" x="92" y="296">TCP and UDP</text><text class="small" x="86" y="172">HTTP</text>
  <text class="small" x="196" y="172">the queue</text>
  <text class="small" x="28" y="340">real Linux hosts, links of 100 Mbit/s,</text><text class="small" x="28" y="356">2 x 51.2 Mbit/s of UDP for 6 s, TCP for 10 s</text>
"""


def picture(results: Path) -> str:
    """Return the picture of the runs in `results`."""
    runs = list(ResultStore(results).all_runs())
    parts = [HEAD, NETWORK]
    for level, left in LEFTS.items():
        parts.append(_axes(level, left))
        for protocol in ("udp", "tcp"):
            series = [
                flow_bytes(run.table("intervals"), {"protocol": protocol}).rates_bps(INTERVAL_S, END_S)
                for run in runs
                if run.levels.get("queues") == level
            ]
            parts.append(_curve(protocol, band(series[0][0], [rates for _, rates in series]), left))
    parts.append(_legend())
    return "".join(parts) + "</svg>\n"


def _x(time_s: float, left: float) -> float:
    return left + PLOT["width"] * time_s / END_S


def _y(rate_bps: float) -> float:
    return PLOT["bottom"] - (PLOT["bottom"] - PLOT["top"]) * min(max(rate_bps, 0.0), LINK_BPS) / LINK_BPS


def _axes(level: str, left: float) -> str:
    lines = [f'  <text class="name" x="{left}" y="72">{TITLES[level]}</text>\n']
    for share in (0, 25, 50, 75, 100):
        y = _y(share * 1e6)
        lines.append(f'  <line class="grid" x1="{left}" y1="{y:.1f}" x2="{left + PLOT["width"]}" y2="{y:.1f}"/>')
        lines.append(f'<text class="small" x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{share}</text>\n')
    for second in (0, 2, 4, 6, 8, 10):
        lines.append(f'  <text class="small" x="{_x(second, left):.1f}" y="334" text-anchor="middle">{second}</text>\n')
    end = _x(UDP_END_S, left)
    lines.append(f'  <line class="grid" x1="{end:.1f}" y1="{PLOT["top"]}" x2="{end:.1f}" y2="{PLOT["bottom"]}" stroke-dasharray="4 3"/>')
    lines.append(f'<text class="small" x="{end + 5:.1f}" y="{PLOT["bottom"] - 6}">UDP ends</text>\n')
    return "".join(lines)


def _curve(protocol: str, values: Band, left: float) -> str:
    middles = values.start_s + INTERVAL_S / 2
    points = " ".join(f"{_x(t, left):.1f},{_y(rate):.1f}" for t, rate in zip(middles, values.mean, strict=True))
    edges = [*zip(middles, values.high, strict=True), *zip(middles[::-1], values.low[::-1], strict=True)]
    outline = " ".join(f"{_x(t, left):.1f},{_y(rate):.1f}" for t, rate in edges if not np.isnan(rate))
    shade = f'  <polygon class="band {protocol}-fill" points="{outline}"/>\n' if outline else ""
    return f'{shade}  <polyline class="line {protocol}" points="{points}"/>\n'


def _legend() -> str:
    return (
        f'  <text class="small" x="{LEFTS["shared"]}" y="356">Mbit/s of payload that h4 received, over seconds; bands: 95 % '
        "confidence</text>\n"
        '  <line class="line udp" x1="770" y1="32" x2="796" y2="32"/><text x="802" y="37">UDP</text>'
        '<line class="line tcp" x1="846" y1="32" x2="872" y2="32"/><text x="878" y="37">TCP</text>\n'
    )


if __name__ == "__main__":
    (Path(__file__).parent / "images/demo.svg").write_text(picture(Path(sys.argv[1])), encoding="utf-8")
