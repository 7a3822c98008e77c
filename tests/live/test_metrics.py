"""The counters of a lab for Prometheus, and the dashboard that shows them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import twinnet as tn
from fake_lab import FakeLab
from labs_here import needs_a_lab
from twinnet.live.metrics import metrics_text

DASHBOARD = Path(__file__).parents[2] / "docs" / "how-to" / "grafana-dashboard.json"
SAMPLE = re.compile(r'([a-z_]+)\{((?:[a-z]+="(?:[^"\\\n]|\\.)*",?)*)\} ([0-9.e+]+)')


def samples(text: str) -> dict[tuple[str, str], float]:
    """The samples by metric and labels; each line must be one, or a comment."""
    found: dict[tuple[str, str], float] = {}
    typed: set[str] = set()
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            assert line.split()[3] in ("counter", "gauge") and line.split()[2] not in typed
            typed.add(line.split()[2])
        elif not line.startswith("# HELP "):
            told = SAMPLE.fullmatch(line)
            assert told is not None and told[1] in typed, line
            assert (told[1], told[2]) not in found
            found[told[1], told[2]] = float(told[3])
    return found


@needs_a_lab
def test_counters_are_those_of_the_lab_and_all_that_the_dashboard_asks_for_is_there() -> None:
    with tn.templates.single(2, rate="10 Mbit").emulate() as lab:
        lab.wait([lab.start(tn.apps.udp("h1", "h2", rate="20 Mbit", duration="1 s"))])
        # A neighbour may be asked for while it is counted.
        before, found, after = lab.links()[0], samples(metrics_text(lab)), lab.links()[0]
        way = f'lab="{lab.name}",port="h1-eth0",to="s1"'
        counters = after["ab"]["counters"]
        least = before["ab"]["counters"]["frames"]
        assert 0 < least <= found["twinnet_port_frames_total", way] <= counters["frames"]
        assert found["twinnet_port_dropped_total", f'{way},reason="overlimit"'] == counters["dropped_overlimit"]
        assert found["twinnet_port_line_rate_bits_per_second", way] == 10_000_000
        assert found["twinnet_port_up", way] == 1
        states = [
            found["twinnet_fidelity", f'lab="{lab.name}",state="{one}"'] for one in ("valid", "doubtful", "invalid")
        ]
        assert sorted(states) == [0, 0, 1]
    asked = set(re.findall(r"twinnet_[a-z_]+", DASHBOARD.read_text()))
    assert asked and asked <= {metric for metric, _ in found}
    assert json.loads(DASHBOARD.read_text())["panels"]


def test_names_are_written_so_that_they_end_no_label() -> None:
    fake = FakeLab(tn.templates.single(1))
    counters: dict[str, Any] = dict.fromkeys(
        [
            *("frames", "link_bytes", "wire_bytes", "marked", "backlog_frames", "backlog_bytes", "lost"),
            *(f"dropped_{one}" for one in ("overlimit", "early", "unclassified", "down", "oversize", "unfragmentable")),
        ],
        1,
    )
    way = {"port": 'x"} 1\n\\', "up": False, "config": {"rate_bps": None}, "counters": counters}
    fake.answers["links"] = lambda _: [{"a": "h1", "b": "s1", "ab": way, "ba": way | {"port": "y"}}]
    fake.answers["fidelity"] = lambda _: {"clock": "virtual"}
    found = samples(metrics_text(fake.lab))
    fake.close()
    assert found["twinnet_port_up", r'lab="fake",port="x\"} 1\n\\",to="s1"'] == 0
    assert not [metric for metric, _ in found if metric.startswith("twinnet_port_line_rate")]
