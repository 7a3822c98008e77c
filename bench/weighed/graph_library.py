"""``python -m bench.weighed.graph_library CYTOSCAPE.MIN.JS``: how often Cytoscape.js draws our networks.

The networks of the frames of ``bench live_page``, and as many ticks a second: all links change their width and colour
at each. Get the library from npm (package ``cytoscape``, ``dist/cytoscape.min.js``).
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from statistics import median

from twinnet.drawing import picture_of
from twinnet.drawing.picture import MOST_LIVE_NODES

from bench.live_page import _FRAMES, _GAPS
from bench.made_page import made_network

_PAGE = """<!doctype html><style>#graph { width: 1248px; height: 560px }</style><div id="graph"></div>"""
_DRAW = """
([nodes, links, ticksPerS]) => {
  const elements = [
    ...nodes.map(({ name, x, y }) => ({ data: { id: name }, position: { x: 120 * x, y: 120 * y } })),
    ...links.flatMap(({ a, b }, n) => [
      { data: { id: `${n}ab`, source: a, target: b } }, { data: { id: `${n}ba`, source: b, target: a } },
    ]),
  ];
  const graph = cytoscape({
    container: document.getElementById("graph"), elements, layout: { name: "preset" },
    style: [
      { selector: "node", style: { label: "data(id)", shape: "round-rectangle", width: 60, height: 30 } },
      { selector: "edge", style: { "curve-style": "haystack", width: "data(width)", "line-color": "data(colour)" } },
    ],
  });
  const edges = graph.edges();
  setInterval(() => graph.batch(() => edges.forEach((edge) => {
    const load = Math.random();
    const colour = load < 0.5 ? "#005f99" : load < 0.95 ? "#e69f00" : "#c84b00";
    edge.data({ width: 1.5 + 7 * Math.sqrt(load), colour });
  })), 1000 / ticksPerS);
}
"""
_REPETITIONS, _SECONDS = 3, 8.0


def main(library: Path) -> None:
    """Print a line for each network."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        raise OSError("Chromium is not installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for hosts, ticks_per_s, _ in _FRAMES:
            net = made_network(hosts)
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.set_content(_PAGE)
            page.add_script_tag(path=library)
            nodes = [
                {"name": node.name, "x": node.place[0], "y": node.place[1]}
                for node in picture_of(net, MOST_LIVE_NODES).nodes
            ]
            links = [{"a": link.a.node, "b": link.b.node} for link in net.links]
            page.evaluate(_DRAW, [nodes, links, ticks_per_s])
            page.wait_for_timeout(1000)
            found = [page.evaluate(_GAPS, _SECONDS) for _ in range(_REPETITIONS)]
            rates = sorted(1000 * len(gaps) / sum(gaps) for gaps in found)
            print(
                f"{len(net.links)} links, {ticks_per_s:g} ticks a second: {median(rates):.1f} frames/s"
                f" ({rates[0]:.1f} to {rates[-1]:.1f}), n = {_REPETITIONS}",
                flush=True,
            )
            page.close()
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
