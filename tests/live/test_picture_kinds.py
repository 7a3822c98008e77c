"""Each kind of node in the picture, in the light and in the dark, and pages of finished runs: all ports over time,
find, and what is saved."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest
import twinnet as tn
from labs_here import needs_a_lab
from live_browser import expect, launched, needs_a_browser, opened
from made_studies import made_study
from study_networks import one_switch
from twinnet.cli import run
from twinnet.drawing import picture_of
from twinnet.drawing.picture import MOST_LIVE_NODES
from twinnet.live.recording import Recording
from twinnet.live.watch import record_of_network

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = needs_a_browser

STUDY = """\
study: clocks
title: A queue on two clocks
question: How long is the queue?
NETWORK
factors:
  queue: {levels: {short: {queues: {s1 to h2: {kind: fifo, limit_frames: 10}}}}}
traffic:
  - {name: load, app: udp, from: [h1], to: h2, port: 5003, rate: 20 Mbit, duration: 1 s}
measurements:
  waiting: {of: queue_length, interval: 100 ms, ports: [s1 to h2]}
repetitions: 1
clock: virtual
time_limit: 10 s
""".replace("NETWORK\n", one_switch("rate: 100 Mbit", "rate: 10 Mbit"))
DARK = ("rgb(17, 20, 23)", "rgb(241, 243, 245)")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from launched()


def every_kind() -> tn.Network:
    net = tn.Network()
    r1, s1, s2 = net.router("r1"), net.switch("s1"), net.switch("s2")
    net.link(r1, s1, rate="100 Mbit", address_a="10.1.0.1/24")
    net.link(r1, s2, rate="100 Mbit", address_a="10.2.0.1/24")
    for number in range(1, 5):
        net.link(net.host(f"h{number}"), s1 if number < 3 else s2, rate="10 Mbit")
    net.tunnel(s1, tn.vxlan(7, remote="192.0.2.7"), rate="10 Mbit")
    return net


def of_every_kind(path: Path) -> Path:
    """A recording of a network with each kind of node, whose lines have each colour of load, with a queue and a line
    that is down."""
    net = every_kind()
    ends = [(link.a.node, link.b.node, link.a.name, link.b.name) for link in net.links]
    about = record_of_network("kinds", picture_of(net, MOST_LIVE_NODES), ends) | {"control": False}
    target = "tcp:127.0.0.1:6653"
    recording = Recording(about | {"controllers": [{"target": target, "switches": ["s1", "s2"]}]}, path)
    loads = (0.0, 0.2, 0.7, 1.0, None, 0.2, 0.7)
    ways = [
        [
            [1_000_000 if load is None else round(load * 1e7), load, 40 if load == 1 else 0, 0, True, 1e7],
            [0] * 5 + [1e7],
        ]
        for load in loads
    ]
    for link in ways:
        link[1] = [0, 0.0, 0, 0, link is not ways[-1], 10_000_000]
    verdict = {"state": "valid", "reasons": [], "covers_s": 1.0, "at_s": 1.0, "late_s": 0}
    told = {"elapsed_s": 1.0, "ways": [way for link in ways for way in link], "verdict": verdict}
    for now_s in (1.0, 2.0, 3.0):
        recording.add({"now_s": now_s, **told, "controllers": [[True, False]]})
    recording.write()
    return path


def colours(page: Page, selector: str, *names: str) -> tuple[str, ...]:
    style = page.locator(selector).first
    script = "(one, names) => names.map((name) => getComputedStyle(one).getPropertyValue(name))"
    return tuple(style.evaluate(script, list(names)))


def test_each_kind_of_node_has_a_look_of_its_own_in_the_light_and_in_the_dark(browser: Browser, tmp_path: Path) -> None:
    faults: list[str] = []
    page = opened(browser, of_every_kind(tmp_path / "kinds.html").as_uri(), faults)
    drawn = ("fill", "stroke", "stroke-width", "stroke-dasharray", "rx")
    for scheme, ground in (("light", ("rgb(255, 255, 255)", "rgb(22, 25, 29)")), ("dark", DARK)):
        page.emulate_media(color_scheme=scheme)
        assert colours(page, "body", "background-color", "color") == ground
        looks = {kind: colours(page, f".node.{kind} rect", *drawn) for kind in ("host", "switch", "router", "tunnel")}
        looks["controller"] = colours(page, ".node.controller rect", *drawn)
        assert len(set(looks.values())) == len(looks), looks
        loads = {name: colours(page, f".way.{name}", "stroke") for name in ("idle", "some", "busy", "full", "open")}
        assert len(set(loads.values())) == 5
        assert page.locator(".way.down").count() == 1
    assert (
        page.locator(".node.router").count() == 1 and page.locator(".node.tunnel title").text_content() == "tunnel tun1"
    )
    # Names are in their boxes, and no box is on another one.
    boxes = [one.bounding_box() for one in page.locator(".node rect").all()]
    for at, one in enumerate(boxes):
        for other in boxes[at + 1 :]:
            assert one is not None and other is not None
            apart = one["x"] + one["width"] <= other["x"] or other["x"] + other["width"] <= one["x"]
            assert apart or one["y"] + one["height"] <= other["y"] or other["y"] + other["height"] <= one["y"]
    page.context.close()
    assert faults == []


def test_a_router_is_in_the_page_of_a_running_lab(browser: Browser) -> None:
    net = tn.Network()
    r1 = net.router("r1")
    for number in (1, 2):
        net.link(net.host(f"h{number}"), r1, rate="10 Mbit", address_b=f"10.{number}.0.1/24")
    faults: list[str] = []
    with net.simulate(name="") as lab, lab.live() as live:
        page = opened(browser, live.address, faults)
        assert page.locator(".node.router title").text_content() == "router r1"
        assert page.locator(".node.host").count() == 2
        page.context.close()
    assert faults == []


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_study(STUDY, tmp_path_factory.mktemp("clocks"), "--no-report")


def test_a_finished_run_has_its_heat_map_find_and_saved_pictures(
    browser: Browser, results: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run.html"
    assert run(["live", str(results), "--run", "short", "--out", str(out)]) == 0
    faults: list[str] = []
    page = opened(browser, out.as_uri(), faults)
    page.emulate_media(color_scheme="dark")
    assert colours(page, "body", "background-color", "color") == DARK
    page.locator("#heat summary").click()
    page.locator("#heat-of").select_option("queue")
    page.locator("#heat-order").select_option("busiest")
    heat = page.locator("#heat-map")
    heat.scroll_into_view_if_needed()
    box = heat.bounding_box()
    assert box is not None
    # The first row is the port that was sampled; its queue was full in the midst of the run.
    heat.hover(position={"x": box["width"] * 0.3, "y": 6})
    expect(page.locator("#heat-told")).to_contain_text("s1-eth2")
    expect(page.locator("#heat-told")).to_contain_text(re.compile("queue (9|10)"))
    heat.click(position={"x": box["width"] * 0.3, "y": 6})
    expect(page.locator("#chosen")).to_contain_text("s1-eth2")
    page.locator("#find").fill("h2")
    expect(page.locator("#found")).to_have_text("1 found")
    expect(page.locator(".node.found title")).to_have_text("host h2")
    for button, marks in (("Picture as SVG", ("way", "node host found", "#111417")), ("Curves as SVG", ("there",))):
        with page.expect_download() as waiting:
            page.get_by_role("button", name=button).click()
        waiting.value.save_as(tmp_path / "saved.svg")
        text = (tmp_path / "saved.svg").read_text()
        assert ElementTree.fromstring(text).tag.endswith("svg")
        assert all(mark in text for mark in marks) and "var(--" not in text
    page.context.close()
    assert faults == []


@needs_a_lab
@pytest.mark.long
def test_a_run_on_the_wall_clock_is_seen_beside_one_on_the_virtual_clock(browser: Browser, tmp_path: Path) -> None:
    study = tmp_path / "study.yaml"
    study.write_text(STUDY)
    # A busy machine may make the difference larger than the twin tolerates, which is no matter here.
    assert run(["twin", str(study), "--out", str(tmp_path / "out"), "--no-report", "--yes"]) in (0, 1)
    results = tmp_path / "out" / "clocks"
    clocks = {json.loads(path.read_text())["clock"]: path.parent.name for path in results.glob("*/run.json")}
    out = tmp_path / "both.html"
    assert run(["live", str(results), "--run", clocks["wall"], "--run", clocks["virtual"], "--out", str(out)]) == 0
    faults: list[str] = []
    page = opened(browser, out.as_uri(), faults)
    assert clocks["wall"] in page.inner_text("#lab")
    expect(page.locator("#beside")).to_have_text(f"Thin lines: {clocks['virtual']}")
    page.get_by_role("button", name="s1-eth2").focus()
    page.keyboard.press("Enter")
    for name in ("#queue .there", "#queue .there.beside", "#queue-difference .there"):
        expect(page.locator(name).first).to_have_attribute("d", re.compile("M(.*L){5}"))
    page.context.close()
    assert faults == []
