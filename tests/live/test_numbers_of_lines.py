"""Rates beside lines: where several links leave one node at small angles, none covers another."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import twinnet.live
from live_browser import launched, needs_a_browser, opened
from made_recordings import LINE_BPS, recorded
from twinnet.drawing import picture_of
from twinnet.network import templates

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NODE = shutil.which("node")
PAGE = Path(twinnet.live.__file__).parent / "page"
FANS = ["single:8", "single:12", "tree:2,4"]

SCRIPT = """
import assert from "node:assert/strict";
const { chosenPlaces, labelChoices, roomOf, shared } = await import(`${process.argv[1]}/labels.js`);
const { lines, nodes } = JSON.parse(process.argv[2]);
const choices = lines.map(([from, to]) => labelChoices(from, to));
const covered = (places) => places.map(roomOf).flatMap((one, number, rooms) =>
  rooms.slice(number + 1).map((other) => shared(one, other)).filter((area) => area > 0));
assert.ok(covered(choices.map(([first]) => first)).length > 4, "each at its best place would cover others");
const places = chosenPlaces(choices, nodes);
assert.equal(places.length, lines.length);
assert.deepEqual(covered(places), []);
assert.ok(places.every((place) => nodes.every((node) => shared(roomOf(place), node) === 0)), "no node is covered");
// Alone, each is at its best place.
assert.deepEqual(chosenPlaces([choices[0]], []), [choices[0][0]]);
// Where nothing is free, that is taken which covers least.
const crowd = [0, 1].map(() => [0, 20, 40].map((x) => ({ x, y: 0, "text-anchor": "start" })));
assert.deepEqual(chosenPlaces(crowd, []).map(({ x }) => x).sort((one, other) => one - other), [0, 40]);
"""


@pytest.mark.skipif(NODE is None, reason="Node is not installed")
@pytest.mark.parametrize("shape", FANS)
def test_each_number_has_a_place_of_its_own_in_a_fan(shape: str) -> None:
    assert NODE is not None
    picture = picture_of(templates.from_text(shape))
    places = {node.name: (120 * node.place[0], 120 * node.place[1]) for node in picture.nodes}
    lines = [
        [{"x": x, "y": y} for x, y in (places[one], places[other])]
        for link in picture.links
        for one, other in ((link.a, link.b), (link.b, link.a))
    ]
    nodes = [[x - 30, y - 15, x + 30, y + 15] for x, y in places.values()]
    done = subprocess.run(
        [NODE, "--input-type=module", "-e", SCRIPT, PAGE.as_uri(), json.dumps({"lines": lines, "nodes": nodes})],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from launched()


@needs_a_browser
@pytest.mark.parametrize("shape", FANS)
def test_no_rate_covers_another_on_the_page(browser: Browser, shape: str, tmp_path: Path) -> None:
    net = templates.from_text(shape)
    faults: list[str] = []
    # All lines are nearly full, so that all numbers are as long as they get.
    rates = [LINE_BPS - 11_000 * (number + 1) for number in range(2 * len(net.links))]
    page = opened(browser, recorded(net, rates, tmp_path / "fan.html"), faults)
    rooms = [told.bounding_box() for told in page.locator(".told", has_text="bit/s").all()]
    assert len(rooms) == len(rates) and None not in rooms
    for one, other in itertools.combinations([room for room in rooms if room], 2):
        wide = min(one["x"] + one["width"], other["x"] + other["width"]) - max(one["x"], other["x"])
        high = min(one["y"] + one["height"], other["y"] + other["height"]) - max(one["y"], other["y"])
        # Lines of text may touch: a third of a box is above and below the letters.
        assert wide <= 0 or high <= 0.34 * one["height"], (one, other)
    page.context.close()
    assert faults == []
