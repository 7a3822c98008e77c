"""The live page in the cell of a notebook: it hears of the lab from the notebook's kernel."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import twinnet as tn
from live_browser import expect, launched, needs_a_browser
from twinnet.errors import BadValue, NotAvailable
from twinnet.live.page_text import read_page_file

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Route
    from twinnet.lab.lab import Lab

pytest.importorskip("anywidget", reason="anywidget is not installed: pip install .[dev]")

NOTEBOOK = """<!doctype html><title>A notebook</title><div id="cell"></div>
<script type="module">
import widget from "./widget.js";
const heard = new Set();
window.sent = [];
window.tell = (message) => heard.forEach((one) => one(message));
const model = {
  get: (name) => JSON.parse(document.getElementById("state").textContent)[name],
  send: (message) => window.sent.push(message),
  on: (name, one) => name === "msg:custom" && heard.add(one),
  off: (name, one) => heard.delete(one),
};
window.remove = widget.render({ model, el: document.getElementById("cell") });
window.count = () => heard.size;
</script>"""
"""What stands for Jupyter: the part of its protocol that widgets of anywidget use."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from launched()


@pytest.fixture
def lab() -> Iterator[Lab]:
    net = tn.templates.single(3, rate="10 Mbit")
    with net.simulate(name=f"widget-{os.getpid()}") as lab:
        for sender in ("h1", "h2"):
            lab.start(tn.apps.udp(sender, "h3", rate="8 Mbit", duration="600 s"))
        yield lab


def sends(widget: Any, messages: list[dict[str, Any]]) -> Callable[[], None]:
    """Put what `widget` sends to its frames into `messages`; returns what says that a frame is ready."""
    widget.send = lambda content, buffers=None: messages.append(content)
    return lambda: widget._handle_custom_msg({"ready": True}, [])


def waited(messages: list[dict[str, Any]], kind: str, many: int = 1) -> list[Any]:
    end = time.monotonic() + 30
    while len(found := [one[kind] for one in messages if kind in one]) < many:
        assert time.monotonic() < end, messages
        time.sleep(0.05)
    return found


def test_it_tells_what_the_lab_does_from_when_it_is_seen_until_the_lab_has_ended(lab: Lab) -> None:
    widget, messages = lab.widget(height=500), list[dict[str, Any]]()
    ready = sends(widget, messages)
    assert (widget.height, lab.name in widget.page) == (500, True)
    time.sleep(0.6)
    assert messages == [], "nobody has seen it"
    ready()
    waited(messages, "stands")
    lab.run_until("2 s")
    tick = waited(messages, "tick")[-1]
    assert tick["now_s"] == 2 and max(way[1] for way in tick["ways"]) == pytest.approx(1, abs=0.01)
    ready()
    lab.run_until("3 s")
    waited(messages, "tick", 2)
    lab.stop()
    assert waited(messages, "news") == ["The lab has ended: what you see is its last moment."]
    assert [tick["now_s"] for tick in waited(messages, "tick")] == [2, 3], "each moment once, for all frames"


def test_a_widget_that_is_closed_looks_no_more(lab: Lab) -> None:
    widget, messages = lab.widget(), list[dict[str, Any]]()
    ready = sends(widget, messages)
    ready()
    waited(messages, "stands")
    widget.close()
    time.sleep(0.6)
    seen = len(messages)
    lab.run_until("1 s")
    time.sleep(0.6)
    assert messages[seen:] == []


def answers(text: str, kind: str) -> Callable[[Route], None]:
    return lambda route: route.fulfill(body=text, content_type=kind)


@needs_a_browser
def test_the_page_is_in_a_frame_that_reaches_nothing_and_shows_what_it_is_told(browser: Browser, lab: Lab) -> None:
    widget, messages = lab.widget(height=700), list[dict[str, Any]]()
    ready = sends(widget, messages)
    state = json.dumps({"page": widget.page, "height": widget.height}).replace("<", "\\u003c")
    state = f'<script id="state" type="application/json">{state}</script>'
    files = {
        "": NOTEBOOK.replace('<div id="cell">', f'{state}<div id="cell">'),
        "widget.js": read_page_file("widget.js"),
    }
    page, faults = browser.new_page(), list[str]()
    page.on("pageerror", lambda error: faults.append(str(error)))
    for name, text in files.items():
        page.route(f"http://notebook.test/{name}", answers(text, "text/javascript" if name else "text/html"))
    page.goto("http://notebook.test/")
    page.wait_for_function("window.sent?.length === 1")
    assert page.evaluate("window.sent") == [{"ready": True}]
    assert page.locator("iframe").bounding_box()["height"] == 700  # type: ignore[index]
    ready()
    frame = page.frame_locator("iframe")
    expect(frame.locator(".node")).to_have_count(4)
    # Rates are of the time since a look before.
    waited(messages, "stands")
    lab.run_until("2 s")
    for tick in waited(messages, "tick"):
        page.evaluate("(tick) => window.tell({ tick })", tick)
    expect(frame.locator("#verdict")).to_contain_text("valid")
    frame.get_by_role("button", name="s1-eth3").press("Enter")
    expect(frame.locator("#curves")).to_be_visible()
    page.evaluate("window.tell({ stands: true })")
    expect(frame.locator("#stands")).to_be_visible()
    page.evaluate("""window.tell({ news: "The lab has ended: what you see is its last moment." })""")
    expect(frame.locator("#news")).to_contain_text("The lab has ended")
    # Its frame has no origin of its own, and neither storage nor the notebook.
    inside = page.frames[1]
    assert inside.evaluate("window.origin") == "null"
    reaches = "() => { try { return parent.document.title; } catch { return 'refused'; } }"
    assert inside.evaluate(reaches) == "refused"
    page.evaluate("window.remove()")
    assert page.evaluate("window.count()") == 0
    assert faults == []
    page.close()


def test_what_it_cannot_be_is_said(lab: Lab) -> None:
    with pytest.raises(BadValue, match="height is 20"):
        lab.widget(height=20)
    with tn.templates.single(2, rate="10 Mbit").simulate() as nameless, pytest.raises(NotAvailable):
        nameless.widget()


def test_nobody_pays_for_it_who_does_not_ask(tmp_path: Path) -> None:
    (tmp_path / "anywidget.py").write_text("raise ImportError('no', name='anywidget')\n")
    script = (
        "import sys, twinnet as tn, twinnet.errors\n"
        "with tn.templates.single(2, rate='10 Mbit').simulate(name='widget-no-%d') as lab:\n"
        "    assert 'anywidget' not in sys.modules and 'traitlets' not in sys.modules\n"
        "    try:\n        lab.widget()\n"
        "    except twinnet.errors.NotAvailable as error:\n        print(error)\n"
    )
    path = os.pathsep.join([str(tmp_path), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, "-c", script % os.getpid()]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
    assert "needs anywidget, which is not installed" in done.stdout
    assert "pip install 'twinnet[notebook]'" in done.stdout
