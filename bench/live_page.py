"""The live page: how soon it is there, how smoothly it moves, and what it takes of the machine and of the lab.

The browser is Debian's Chromium without a display: nothing but the processor draws, as on a machine without a graphics
card. Server, lab and browser share the machine's processors.
"""

from __future__ import annotations

import collections
import gzip
import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import linear_regression
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import HTTPCookieProcessor, build_opener

import twinnet as tn
import twinnet.live

from bench.figure import Figure
from bench.idle import seconds_until_calm
from bench.machine import cpu_s, descendants, process_memory_bytes
from bench.made_page import made_network
from bench.quiet import Quiet

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

TITLE = "The live page"
MEASURES = ("bench/live_page.py", "bench/made_page.py", "python/twinnet/live")
ROWS = ("picture", "frames", "memory", "runs", "code")

_FIRST_S = {200: 1.0, 1000: 3.0}
_FRAMES = ((480, 20.0, 60.0), (480, 0.1, None), (200, 4.0, None), (1000, 4.0, None))
"""Hosts, ticks a second, goal in frames a second. With 480 hosts there are 500 links; the second row is what the
browser draws where next to nothing changes."""
_LONG_GAP_MS = 25.0
"""Between two frames: a screen of 60 Hz has left one out."""
_MOST_TAB_MB = 150.0
_MOST_SERVER_PERCENT = 5.0
_MOST_CODE_KB = 300.0
_HOUR_TICKS = 4 * 3600
_FAST_TICKS_PER_S = 20.0
_MOST_FRAMES_PER_S = 60.0
"""What a browser draws at most on a screen of 60 Hz, and without a screen."""
_GAPS = """
(seconds) => new Promise((done) => {
  const begin = performance.now();
  const at = [];
  let painted = 0;
  const seen = new MutationObserver((marks) => (painted += marks.length));
  seen.observe(document.getElementById("lines"), { attributeFilter: ["data-painted"] });
  const drawn = (now) => {
    at.push(now);
    if (performance.now() - begin < 1000 * seconds) requestAnimationFrame(drawn);
    else done([at.slice(1).map((now, place) => now - at[place]), painted / seconds]);
  };
  requestAnimationFrame(drawn);
})
"""
_LOOKS = """
(seconds) => new Promise((done) => {
  let count = 0;
  const seen = new MutationObserver(() => (count += 1));
  seen.observe(document.getElementById("time"), { childList: true });
  setTimeout(() => done(count / seconds), 1000 * seconds);
})
"""
_BESIDE = {"page in a browser": "; the browser draws with the lab's own processors"}
_OPENINGS = 4
"""Of the page of each server: the first picture varies more than all else here."""
_OPEN_S = 1.0
"""How long a browser is left alone that has just been opened."""
_LINES = "#lines[data-painted] + #picture, #picture:first-child"
"""The picture, and where its lines are on a canvas, not before they are."""
_DRAWN = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


def measure(quick: bool, quiet: Quiet, rows: Sequence[str] = ROWS) -> Iterator[Figure]:
    """Yield the figures."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        raise OSError("Chromium is not installed")
    repetitions, seconds = (1, 3.0) if quick else (3, 8.0)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        if "picture" in rows:
            for hosts, most_s in _FIRST_S.items():
                quiet.wait()
                yield from _of_a_lab(browser, hosts, most_s, repetitions, seconds)
        if "frames" in rows:
            for hosts, ticks_per_s, goal in _FRAMES:
                quiet.wait()
                yield from _frames(browser, hosts, ticks_per_s, goal, repetitions, seconds)
        if "memory" in rows:
            yield from _memory(browser, 30.0 if quick else 220.0)
        if "runs" in rows:
            yield from _runs(browser, quiet, repetitions, seconds)
        browser.close()
    if "code" in rows:
        yield _size()
        yield from _imports(repetitions)


def _of_a_lab(browser: Browser, hosts: int, most_s: float, repetitions: int, seconds: float) -> Iterator[Figure]:
    """The first picture of a lab with so many hosts, of which ten send, and what its server takes."""
    firsts: list[float] = []
    starts: list[float] = []
    shares: list[float] = []
    looks: list[float] = []
    with made_network(hosts).emulate() as lab:
        seconds_until_calm(lab)
        for number in range(1, 11):
            lab.start(tn.apps.udp(f"h{number}", f"h{number + hosts // 2}", rate="1 Mbit", duration="600 s"))
        for _ in range(repetitions):
            begin_s = time.monotonic()
            before = set(descendants())
            with lab.live() as live:
                starts.append(time.monotonic() - begin_s)
                (server,) = set(descendants()) - before
                for _ in range(_OPENINGS - 1):
                    with _opened(browser, live.address) as (_, first_s):
                        firsts.append(first_s)
                with _opened(browser, live.address) as (page, first_s):
                    firsts.append(first_s)
                    time.sleep(1.0)
                    begin_s, used_s = time.monotonic(), cpu_s([server])
                    looks.append(page.evaluate(_LOOKS, seconds))
                    shares.append(100 * (cpu_s([server]) - used_s) / (time.monotonic() - begin_s))
    yield Figure(
        f"{hosts} hosts: first picture after the address is opened",
        "s",
        firsts,
        target=f"within {most_s:g}",
        met=max(firsts) <= most_s,
        strain=max(firsts) / most_s,
        summary="worst",
        note="from a new tab of an open browser until it has drawn hosts, switches and links",
    )
    yield Figure(f"{hosts} hosts: from `lab.live()` to the address", "s", starts)
    yield Figure(
        f"{hosts} hosts: the server while one browser watches",
        "% of one core",
        shares,
        summary="worst",
        note=f"spans of {seconds:g} s",
    ).below(_MOST_SERVER_PERCENT)
    yield Figure(f"{hosts} hosts: looks at the lab", "1/s", looks, note="four a second, fewer where they cost more")


def _frames(
    browser: Browser, hosts: int, ticks_per_s: float, goal: float | None, repetitions: int, seconds: float
) -> Iterator[Figure]:
    """How often the browser draws while all links change with each tick, and how often their lines are painted."""
    gaps: list[list[float]] = []
    painted: list[float] = []
    with _made(hosts, ticks_per_s) as address, _opened(browser, address) as (page, _):
        _until_it_moves(page)
        for _ in range(repetitions):
            span, paintings = page.evaluate(_GAPS, seconds)
            gaps.append(span)
            painted.append(paintings)
    found = [1000 * len(span) / sum(span) for span in gaps]
    every = sorted(gap for span in gaps for gap in span)
    long = sum(gap > _LONG_GAP_MS for gap in every)
    name = f"{len(made_network(hosts).links)} links, {ticks_per_s:g} ticks a second"
    yield Figure(
        name,
        "frames/s",
        found,
        target="" if goal is None else f"at least {goal:g}",
        # A span that ends between two frames may have one frame less.
        met=None if goal is None else min(found) >= goal - 1,
        strain=None if goal is None else goal / min(found),
        note=(
            f"all links change at each tick; a browser draws {_MOST_FRAMES_PER_S:g} at most; {long} of {len(every)}"
            f" gaps between frames are above {_LONG_GAP_MS:g} ms, the longest {every[-1]:.0f} ms"
        ),
    )
    if goal is not None:
        yield Figure(
            f"{name}: pictures of all lines",
            "1/s",
            painted,
            note="painted by a thread beside the page, one at a time; what comes meanwhile waits, the newest alone",
        )


def _memory(browser: Browser, seconds: float) -> Iterator[Figure]:
    """What the tab holds, and what that comes to after an hour if it goes on as in the second half."""
    held: list[tuple[float, float]] = []
    with _made(480, _FAST_TICKS_PER_S) as address, _opened(browser, address) as (page, _):
        _until_it_moves(page)
        session = page.context.new_cdp_session(page)
        begin_s = time.monotonic()
        while (passed_s := time.monotonic() - begin_s) < seconds:
            time.sleep(seconds / 12)
            session.send("HeapProfiler.collectGarbage")
            held.append((passed_s * _FAST_TICKS_PER_S, _held_mb(browser)))
    later = held[len(held) // 2 :]
    slope = linear_regression([ticks for ticks, _ in later], [megabytes for _, megabytes in later]).slope
    ticks, last = held[-1]
    after_an_hour = last + max(0.0, slope) * (_HOUR_TICKS - ticks)
    yield Figure(
        f"the tab, 500 links, after {ticks:.0f} ticks",
        "MB",
        [last],
        note=(
            f"{_FAST_TICKS_PER_S:g} ticks a second; the process of the tab with its share of shared pages; in the"
            f" second half {1000 * slope:+.2f} MB for 1,000 ticks"
        ),
    )
    yield Figure(
        "the tab after an hour at 4 ticks a second, extrapolated",
        "MB",
        [after_an_hour],
        note=f"from the row above and its slope to {_HOUR_TICKS:,} ticks; nobody watched for an hour",
    ).below(_MOST_TAB_MB)


def _runs(browser: Browser, quiet: Quiet, repetitions: int, seconds: float) -> Iterator[Figure]:
    """A lab without a page, with a page that a program reads, and with one in the browser, by turns."""
    ways: dict[str, list[tuple[float, float, float]]] = {
        "no page": [],
        "page read by a program": [],
        "page in a browser": [],
    }
    for _ in range(2 * repetitions):
        for way, found in ways.items():
            quiet.wait()
            found.append(_run(browser, way, seconds))
    for place, (name, unit) in enumerate((("TCP over 10 Mbit/s", "Mbit/s"), ("99 % of delays beside it", "us"))):
        for way, found in ways.items():
            yield Figure(f"{name}, {way}", unit, [one[place] for one in found])
    for way, found in ways.items():
        yield Figure(
            f"share of valid runs, {way}",
            "%",
            [100 * sum(valid for _, _, valid in found) / len(found)],
            note=f"{len(found)} runs of {seconds:g} s by turns" + _BESIDE.get(way, ""),
        )


def _run(browser: Browser, way: str, seconds: float) -> tuple[float, float, float]:
    """TCP over the bottleneck, UDP beside it on free links, and whether the run was valid."""
    with ExitStack() as stack:
        lab = stack.enter_context(tn.templates.dumbbell(4, rate="100 Mbit", bottleneck={"rate": "10 Mbit"}).emulate())
        if way != "no page":
            live = stack.enter_context(lab.live())
            if way == "page in a browser":
                page, _ = stack.enter_context(_opened(browser, live.address))
                _until_it_moves(page)
            else:
                stack.enter_context(_read_by_a_program(live.address))
        lab.fidelity(reset=True)
        lasts = f"{seconds:g} s"
        bulk = lab.start(tn.apps.tcp_bulk("h1", "h5", duration=lasts))
        probe = lab.start(tn.apps.udp("h2", "h3", packets_per_second=200, payload="100 B", duration=lasts))
        lab.wait([bulk, probe])
        delay = probe.report().delay
        if delay is None or delay.p99 is None:
            raise OSError("no packet of the probe arrived")
        valid = lab.fidelity().verdict().state == "valid"
        return bulk.report().throughput_bps / 1e6, delay.p99 / 1e6, float(valid)


@contextmanager
def _read_by_a_program(address: str) -> Iterator[None]:
    """Somebody reads what the page's server tells, as a browser on another machine does."""
    home = urlsplit(address)
    opener = build_opener(HTTPCookieProcessor())
    opener.open(address).read()
    stream = opener.open(f"{home.scheme}://{home.netloc}/ticks")
    reader = threading.Thread(target=lambda: collections.deque(stream, maxlen=0), daemon=True)
    reader.start()
    yield
    # The stream ends with the page, and so does the thread.


@contextmanager
def _made(hosts: int, ticks_per_s: float) -> Iterator[str]:
    """The address of the page of a made lab, whose server is a process of its own."""
    command = [sys.executable, "-m", "bench.made_page", str(hosts), str(ticks_per_s)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        try:
            yield json.loads(server.stdout.readline())["address"]
        finally:
            server.terminate()


@contextmanager
def _opened(browser: Browser, address: str) -> Iterator[tuple[Page, float]]:
    """The page in a tab of its own, and how many seconds it took from a new tab until its network was drawn.

    The browser is open and has come to rest, as that of somebody who works with it.
    """
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    try:
        context.new_page()
        time.sleep(_OPEN_S)
        begin_s = time.monotonic()
        page = context.new_page()
        page.goto(address)
        page.wait_for_selector(".node", state="attached")
        page.wait_for_selector(_LINES, state="attached")
        page.evaluate(_DRAWN)
        yield page, time.monotonic() - begin_s
    finally:
        context.close()


def _until_it_moves(page: Page) -> None:
    page.wait_for_selector("#verdict[class]")


def _held_mb(browser: Browser) -> float:
    """What the process of the tab holds: of all of the browser's that draw pages, the largest."""
    told = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    return max(process_memory_bytes([one["id"]]) for one in told if one["type"] == "renderer") / 1e6


def _size() -> Figure:
    here = Path(twinnet.live.__file__).parent
    files = {name: [path for path in (here / name).iterdir() if path.suffix] for name in ("page", "vendored")}
    content = [path.read_bytes() for several in files.values() for path in several]
    packed_kb = sum(len(gzip.compress(one)) for one in content) / 1e3
    return Figure(
        "code of the page, compressed",
        "kB",
        [packed_kb],
        note=f"{len(files['page'])} files of ours and {len(files['vendored'])} of others",
    ).below(_MOST_CODE_KB)


def _imports(repetitions: int) -> Iterator[Figure]:
    """How long `import twinnet` and `--help` take, and Python alone. Nothing of the page is among what they import."""

    def taken_s(*command: str | Path) -> float:
        begin_s = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - begin_s

    check = "import sys, twinnet; assert not {'starlette', 'uvicorn', 'twinnet.live'} & set(sys.modules)"
    python = Path(sys.executable)
    ways: dict[str, tuple[str | Path, ...]] = {
        "import twinnet": (python, "-c", check),
        "twinnet --help": (python.with_name("twinnet"), "--help"),
        "python -c pass": (python, "-c", "pass"),
    }
    for name, command in ways.items():
        yield Figure(name, "s", [taken_s(*command) for _ in range(5 * repetitions)])
