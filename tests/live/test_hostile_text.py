"""Names, labels and reasons from a lab or from a file of somebody else: the page shows them as text, and what would
steer a terminal or turn a line around as it is written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import twinnet as tn
from fake_lab import FakeLab
from hypothesis import given, settings
from hypothesis import strategies as st
from live_browser import expect, launched, needs_a_browser, opened
from page_data import page_data
from starlette.testclient import TestClient
from twinnet.drawing import picture_of
from twinnet.drawing.picture import MOST_LIVE_NODES
from twinnet.live.acts import Acts
from twinnet.live.feed import Feed
from twinnet.live.recording import Recording
from twinnet.live.routes import routes
from twinnet.live.watch import record_of_network
from twinnet.network import templates
from twinnet.shown_text import shown_json, shown_text

if TYPE_CHECKING:
    from playwright.sync_api import Browser

HOSTILE = "\x1b]0;owned\x07\x9b31m\r\u202eeslaf\u2066<img src=x onerror=alert(1)>\u2028\ufeff\\u001b\x7f"
SHOWN = "\\x1b]0;owned\\x07\\x9b31m\\r\\u202eeslaf\\u2066<img src=x onerror=alert(1)>\\u2028\\ufeff\\u001b\\x7f"
STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c\u2028\u2029\ufeff]")


@pytest.fixture
def browser() -> Iterator[Browser]:
    yield from launched()


@settings(max_examples=50, deadline=None)
@given(
    st.recursive(
        st.none() | st.integers() | st.text(st.characters(codec=None)),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=9,
    )
)
def test_json_for_the_page_has_each_text_as_it_is_shown(value: Any) -> None:
    def shown(one: Any) -> Any:
        if isinstance(one, dict):
            return {shown_text(name): shown(inner) for name, inner in one.items()}
        return (
            [shown(inner) for inner in one] if isinstance(one, list) else shown_text(one) if type(one) is str else one
        )

    assert json.loads(shown_json(value)) == shown(value)


def test_all_that_scripts_are_told_is_shown() -> None:
    lab = FakeLab(tn.templates.single(2))
    job = {"job": 1, "host": "h1", "argv": [HOSTILE], "state": "running"}
    lab.answers |= {
        "links": lambda _: [],
        "flows.dump": lambda _: [f"priority=1,actions={HOSTILE}"],
        "app.report": lambda _: [],
        "jobs": lambda _: [job],
    }
    acts = Acts(lab.lab)
    acts.note(HOSTILE)
    network = {"lab": HOSTILE, "title": HOSTILE, "nodes": [], "links": [], "control": True}
    browser = TestClient(routes(network, Feed(), acts))
    assert page_data(browser.get("/").text, "network")["title"] == SHOWN
    assert browser.get("/flows/s1").json() == [f"priority=1,actions={SHOWN}"]
    assert browser.get("/acts").json()[0]["note"] == SHOWN
    refused = browser.post("/act", json={"act": "queue", "port": HOSTILE, "queue": "codel"})
    assert refused.status_code == 400
    for answer in (refused, *map(browser.get, ("/", "/traffic", "/flows/s1", "/acts", "/follow?from=%1b[2J"))):
        assert not STEERS.search(answer.text.replace("\n", ""))
        assert not STEERS.search(json.dumps(answer.json() if answer.text[0] in "[{" else "", ensure_ascii=False))
    lab.close()


@needs_a_browser
def test_a_hostile_file_is_shown_as_text_in_the_browser(browser: Browser, tmp_path: Path) -> None:
    net = templates.single(2)
    ends = [(link.a.node, HOSTILE, HOSTILE, link.b.name) for link in net.links]
    about = record_of_network(HOSTILE, picture_of(net, MOST_LIVE_NODES), ends)
    about["title"] = HOSTILE
    about["links"] = [{**link, "b": real.b.node} for link, real in zip(about["links"], net.links, strict=True)]
    about["nodes"] = [{**node, "note": HOSTILE} for node in about["nodes"]]
    row = {"host": HOSTILE, "what": HOSTILE, "ends": HOSTILE, "start_s": 0, "end_s": 1, "bytes": 1, "mean_bps": 8}
    row |= {"lost": 0, "rtt_ms": None, "window": None}
    exit_of = {"interface": HOSTILE, "text": HOSTILE}
    hop = {"node": HOSTILE, "interface": HOSTILE, "steps": [{"kind": "drop", "text": HOSTILE}], "exits": [exit_of]}
    way = {"arrives": False, "destination": HOSTILE, "hops": [hop], "whole": True}
    about |= {"traffic": {"count": 1, "rows": [row]}, "followed": [{"words": HOSTILE, "at_s": 1.0, "way": way}]}
    recording = Recording(about | {"control": False}, tmp_path / "run.html")
    verdict = {"state": "invalid", "reasons": [HOSTILE, HOSTILE], "covers_s": 1.0, "at_s": 1.0, "late_s": 0}
    verdict |= {"by_hand": f"changed by hand once {HOSTILE}"}
    there = [5_000_000, 0.5, 3, 0, True, 10_000_000]
    for now_s in (1.0, 2.0):
        recording.add({"now_s": now_s, "elapsed_s": 1.0, "ways": [there] * 2 * len(ends), "verdict": verdict})
    act = {"number": 1, "at_s": 1.0, "commands": [HOSTILE], "python": [HOSTILE], "note": HOSTILE, "undoes": None}
    recording.write([act], {"name": HOSTILE, "ticks": []})
    faults: list[str] = []
    page = opened(browser, (tmp_path / "run.html").as_uri(), faults)
    page.on("dialog", lambda dialog: faults.append(dialog.message))
    assert page.inner_text("#lab") == SHOWN and page.inner_text("#title") == SHOWN
    assert page.inner_text("#worst") == SHOWN
    page.locator("#all-reasons").click()
    assert page.locator("#other-reasons li").inner_text() == SHOWN
    assert page.get_attribute("#by-hand", "title") == f"changed by hand once {SHOWN}"
    expect(page.locator("#ports tr").first).to_contain_text(SHOWN)
    page.locator("#ports tr").first.click()
    expect(page.locator("#chosen")).to_contain_text(SHOWN)
    expect(page.locator("#acts-done .note")).to_have_text(SHOWN)
    expect(page.locator("#beside")).to_contain_text(SHOWN)
    page.locator("#traffic summary").click()
    assert page.locator("#traffic td").all_inner_texts()[:3] == [SHOWN] * 3
    page.locator("#follow-which").select_option("0")
    assert page.locator("#follow-hops p").all_inner_texts() == [SHOWN, SHOWN]
    assert page.locator("img").count() == 0
    whole = page.evaluate("document.title + document.body.innerText + document.getElementById('picture').outerHTML")
    assert not STEERS.search(whole)
    # Not even what is saved has it.
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Data as CSV").click()
    waiting.value.save_as(tmp_path / "data.csv")
    assert not STEERS.search((tmp_path / "data.csv").read_text())
    page.context.close()
    assert faults == []
