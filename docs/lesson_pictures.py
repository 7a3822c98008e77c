"""Takes the pictures of docs/tutorial/three-lessons.md: ``python docs/lesson_pictures.py [FOLDER]``.

Each is the page in Debian's Chromium, beside a lab in which happens what the lesson does. The lab is real, so that no
two pictures have the same numbers.
"""

from __future__ import annotations

import io
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import twinnet as tn
from PIL import Image

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FOLDER = Path(__file__).parent / "images/lessons"
_SIZE = {"width": 1100, "height": 760}
_COLOURS = 64
_LONG = "120 s"

Labs = AbstractContextManager[tn.Lab]


@contextmanager
def home() -> Iterator[tn.Lab]:
    """The lab of the first two lessons."""
    net = tn.templates.dumbbell(2, rate="100 Mbit", delay="5 ms", queue=tn.qos.Fifo(limit_frames=1000))
    with net.emulate() as lab:
        lab.link("s1", "s2").set(rate="10 Mbit")
        yield lab


def bufferbloat(lab: tn.Lab, page: Page) -> None:
    """A download fills the queue before the slow line."""
    lab.start(tn.apps.tcp_bulk("h1", "h3", duration=_LONG, congestion_control="cubic"))
    lab.start(tn.apps.ping("h2", "h4", count=1000, interval="100 ms", timeout="5 s"))
    _until(lambda: _waiting(lab, "s1-eth3") > 300)
    page.wait_for_timeout(3000)


def udp_against_tcp(lab: tn.Lab, page: Page) -> None:
    """UDP of 9 Mbit/s beside TCP, and the table of traffic."""
    lab.switch("s1").set_queue("s1-eth3", tn.qos.Fifo(limit_frames=100))
    lab.start(tn.apps.tcp_bulk("h1", "h3", duration=_LONG, congestion_control="cubic", info_interval="100 ms"))
    lab.start(tn.apps.udp("h2", "h4", rate="9 Mbit", duration=_LONG))
    _lower(page)
    page.get_by_text("Traffic", exact=True).click()
    page.wait_for_timeout(8000)


def loop(lab: tn.Lab, page: Page) -> None:
    """One ping fills all links between the switches."""
    for switch in lab.switches:
        switch.add_flow("priority=1,actions=all")
    # More than one, so that the storm goes on until the picture is taken.
    lab.start(tn.apps.ping("h1", "h4", count=1000, interval="100 ms", timeout="1 s"))
    _until(lambda: page.locator(".way.full").count() >= 12)


def what_broke(lab: tn.Lab, page: Page) -> None:
    """A sealed fault."""
    page.locator("#puzzle [name=seed]").fill("7")
    page.get_by_role("button", name="Break something").click()
    page.wait_for_selector("#acts-done li")
    lab.start(tn.apps.ping("h1", "h2", count=100, interval="100 ms"))
    _lower(page)
    page.wait_for_timeout(2000)


LESSONS: Sequence[tuple[Callable[[], Labs], Callable[[tn.Lab, Page], None]]] = (
    (home, bufferbloat),
    (home, udp_against_tcp),
    (lambda: tn.templates.mesh(4, rate="10 Mbit").emulate(), loop),
    (lambda: tn.templates.tree(2, rate="10 Mbit").emulate(), what_broke),
)


def take(browser: Browser, folder: Path) -> list[Path]:
    """Write the pictures into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    return [_taken(browser, start, lesson, folder) for start, lesson in LESSONS]


def _taken(browser: Browser, start: Callable[[], Labs], lesson: Callable[[tn.Lab, Page], None], folder: Path) -> Path:
    path = folder / f"{lesson.__name__.replace('_', '-')}.png"
    with start() as lab, lab.live(control=True) as live:
        page = browser.new_context(viewport=_SIZE, color_scheme="light").new_page()
        page.goto(live.address)
        page.wait_for_selector(".node")
        lesson(lab, page)
        page.evaluate("() => scrollTo(0, 0)")
        with Image.open(io.BytesIO(page.screenshot())) as picture:
            few = picture.convert("RGB").quantize(_COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
            few.save(path, optimize=True)
        page.context.close()
    return path


def _lower(page: Page) -> None:
    """Make room below the picture for what the lesson is about."""
    page.evaluate("() => { document.getElementById('picture').style.height = '20rem'; }")
    page.evaluate("() => { for (const id of ['follow', 'controllers']) document.getElementById(id).hidden = true; }")


def _waiting(lab: tn.Lab, port: str) -> int:
    counters = next(one["counters"] for one in lab.ports() if one["port"] == port)
    return int(counters["backlog_frames"])


def _until(true: Callable[[], bool]) -> None:
    end_s = time.monotonic() + 20
    while not true() and time.monotonic() < end_s:
        time.sleep(0.1)


def main() -> None:
    """Take them."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for path in take(browser, Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER):
            print(path, path.stat().st_size)


if __name__ == "__main__":
    main()
