"""The tutorial of lessons: its answers are those of the lab, and its pictures are taken by one command."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import twinnet as tn
from labs_here import needs_a_lab
from live_browser import launched, needs_a_browser
from PIL import Image
from twinnet.live.faults import chosen_fault

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "tutorial/three-lessons.md"


@pytest.fixture
def pictures(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(DOCS))
    import lesson_pictures

    yield lesson_pictures


def test_the_answers_to_the_exercise_are_those_of_its_network() -> None:
    told = dict(re.findall(r"^\| (\d+) \| ([^|]+) \|", PAGE.read_text(), re.MULTILINE))
    assert set(told) == {"7", "3", "5"}
    with tn.templates.tree(2, rate="10 Mbit").simulate() as lab:
        links = lab.layout.links
        faults = {seed: chosen_fault(lab, int(seed)) for seed in told}
        ends = {seed: links[fault["link"]] for seed, fault in faults.items() if "link" in fault}
    assert (faults["7"]["direction"], faults["7"]["set"]) == ("ab", {"delay": "200 ms"})
    assert (ends["7"]["a"]["node"], ends["7"]["b"]["node"]) == ("h1", "s2") and "From h1 to s2" in told["7"]
    assert (faults["3"]["direction"], faults["3"]["set"]) == ("ba", {"loss": "20 %"})
    assert (ends["3"]["a"]["node"], ends["3"]["b"]["node"]) == ("h3", "s3") and "From s3 to h3 a fifth" in told["3"]
    assert (faults["5"]["port"], faults["5"]["queue"]) == ("s2-eth3", "fifo,limit_frames=2")
    assert "s2-eth3 has room for 2 frames" in told["5"]


def test_each_picture_of_the_page_is_there_and_small(pictures: ModuleType) -> None:
    shown = re.findall(r"\.\./images/lessons/([\w-]+)\.png", PAGE.read_text())
    assert shown == [lesson.__name__.replace("_", "-") for _, lesson in pictures.LESSONS]
    for name in shown:
        path = DOCS / f"images/lessons/{name}.png"
        with Image.open(path) as picture:
            assert picture.size == (1100, 760)
        assert path.stat().st_size < 100_000


@needs_a_lab
@needs_a_browser
@pytest.mark.long
def test_the_pictures_can_be_taken_again(pictures: ModuleType, tmp_path: Path) -> None:
    (taken,) = [pictures.take(browser, tmp_path) for browser in launched()]
    assert len(taken) == 4 and all(path.stat().st_size > 5_000 for path in taken)
