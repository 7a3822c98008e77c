"""Traffic generators beside each other: whether they keep the rate and the gaps asked for, and what they reach.

All send in one namespace to a receiver of their own in another, joined by a veth pair; what arrives there is stamped by
the kernel for one independent observer, a packet socket that knows none of them.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from scipy import stats
from twinnet.programs.generators import PEERS, Generator, installed

from bench.arena import Arena
from bench.figure import Figure
from bench.machine import BARE, missing
from bench.processor_watch import ProcessorWatch
from bench.quiet import Quiet

TITLE = "Traffic generators"
MEASURES = ("bench/generators.py", "crates/apps", "crates/linux", "python/twinnet/sockets")

TARGET = "10.99.0.2"
TARGET_RATE_PERCENT = 0.1
TARGET_GAP_US = {"own": 2.0, "shared": 50.0}
TARGET_GAP_UP_TO = 50_000
TARGET_UNPACED = 0.9
_RATES = (100, 1000, 10_000, 50_000, 200_000)
_SIZES = (64, 512, 1470)


def _row(rate: int, size: int) -> str:
    return f"{rate:,}/s of {size} B"


_RANDOM, _UNPACED, _RECEIVED = "random gaps", "unpaced", "received"
ROWS = (*(_row(rate, size) for rate in _RATES for size in _SIZES), _RANDOM, _UNPACED, _RECEIVED)
"""What can be measured by itself."""
_TWINNET = Path(sys.executable).parent / "twinnet"
_MOST_FRAMES = 250_000
_PATIENCE_S = 60
_TOGETHER_PERCENT = 1.0
"""With more of the gaps gone, the error at 99 % is the gap itself: the gaps were not kept, whatever it says."""
_DRAWS = 10_000
_CRITICAL = 1.95
"""The 0.1 % level of the distance of Kolmogorov and Smirnov, times the root of the number of draws."""
_COUNTED_PERCENT = 0.01
"""What a receiver got and what its host counted as dropped may be so far from all that was sent."""


def _within(law: Any, least: float, most: float) -> Callable[[Any], Any]:
    """Return the distribution function of `law` whose draws outside of `least` to `most` are drawn again."""
    below, all_of_it = law.cdf(least), law.cdf(most) - law.cdf(least)
    return lambda gaps: np.clip((law.cdf(gaps) - below) / all_of_it, 0, 1)


_PROCESSES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "exponential": ("exponential(500 us)", stats.expon(scale=0.5).cdf),
    "uniform": ("uniform(250 us, 750 us)", stats.uniform(0.25, 0.5).cdf),
    "normal": ("normal(500 us, 100 us)", stats.norm(0.5, 0.1).cdf),
    "pareto": ("pareto(2.5, 300 us)", stats.pareto(2.5, scale=0.3).cdf),
    "gamma": ("gamma(2, 250 us)", stats.gamma(2, scale=0.25).cdf),
    "weibull": ("weibull(1.5, 500 us)", stats.weibull_min(1.5, scale=0.5).cdf),
    # Without bounds its mean does not exist, and one gap may be an hour.
    "cauchy": ("cauchy(500 us, 50 us, least=100 us, most=5 ms)", _within(stats.cauchy(0.5, 0.05), 0.1, 5)),
}
"""Random processes as the command line takes them, and their distribution functions of milliseconds."""


@dataclass(frozen=True)
class Seen:
    """What the observer saw of one flow.

    Parameters
    ----------
    rate_error_percent
        Distance of the achieved from the requested rate.
    gap_p99_us
        99 % of the gaps are wrong by no more.
    together_percent
        Share of the gaps that are none: the datagrams came in one train.
    """

    rate_error_percent: float
    gap_p99_us: float
    together_percent: float


def measure(quick: bool, quiet: Quiet, rows: Sequence[str] = ROWS) -> Iterator[Figure]:
    """Yield the figures of `rows`."""
    if absent := missing("bare") or missing("kernel"):
        yield Figure("generators", "", [], note=absent)
        return
    peers = {name: peer for name, peer in PEERS.items() if installed(peer)}
    away = [name for name in PEERS if name not in peers]
    rates, sizes, repetitions = (_RATES[1:], (512,), 1) if quick else (_RATES, _SIZES, 3)
    with Arena() as arena:
        arena.host_pair()
        for rate in rates:
            for size in sizes:
                if _row(rate, size) in rows:
                    yield from _accuracy(arena, peers, rate, size, repetitions, quiet)
        for process in _PROCESSES if _RANDOM in rows else ():
            yield _distribution(arena, process, quiet)
        if _UNPACED in rows:
            yield _unpaced(arena, peers, repetitions, quiet)
        if _RECEIVED in rows:
            yield from _receiver(arena, repetitions, quiet)
    if away:
        yield Figure("not installed", "", [], note=", ".join(away))


def _accuracy(
    arena: Arena, peers: Mapping[str, Generator], rate: int, size: int, repetitions: int, quiet: Quiet
) -> Iterator[Figure]:
    """Yield how exactly each generator sent `rate` datagrams of `size` bytes a second."""
    seconds = max(1, min(10, 200 // rate)) if rate < 1000 else 1
    if rate * (seconds + 1) > _MOST_FRAMES * 2:
        raise ValueError(f"the observer cannot take note of {rate} datagrams a second")
    ours: list[Seen] = []
    theirs: dict[str, list[Seen]] = {name: [] for name in peers}
    shared: list[bool] = []
    peers_shared = dict.fromkeys(peers, False)
    for _ in range(repetitions):
        quiet.wait()
        seen, was_shared = _ours(arena, rate, size, seconds)
        ours.append(seen)
        shared.append(was_shared)
        for name, peer in peers.items():
            quiet.wait()
            watched: list[bool] = []

            def send(peer: Generator = peer, watched: list[bool] = watched) -> None:
                watched.append(_run(arena, peer, rate, size, seconds))

            found = seen_of(_observe(arena, peer.port, seconds, size, send), rate)
            if found is not None:
                theirs[name].append(found)
            peers_shared[name] |= any(watched)
    absent = [name for name, found in theirs.items() if not found]
    known = {name: found for name, found in theirs.items() if found}
    name = _row(rate, size)
    own_or_shared = ["shared" if one else "own" for one in shared]
    sharing = [name for name in known if peers_shared[name]]
    whose = f"our sender's processor: {', '.join(own_or_shared)}"
    if sharing:
        whose += f"; shared ones of peers: {', '.join(sharing)}"
    rate_errors = [one.rate_error_percent for one in ours]
    yield Figure(
        f"{name}: distance from the rate",
        "%",
        rate_errors,
        {name: [one.rate_error_percent for one in found] for name, found in known.items()},
        f"within {TARGET_RATE_PERCENT}",
        median(rate_errors) <= TARGET_RATE_PERCENT,
        note="; ".join([whose, *(f"not measured: {name}" for name in absent)]),
        goal=f"distance from the rate: within {TARGET_RATE_PERCENT} %",
        strain=median(rate_errors) / TARGET_RATE_PERCENT,
    )
    yield _gaps(name, ours, known, own_or_shared, whose, rate <= TARGET_GAP_UP_TO)


def _gaps(
    name: str,
    ours: Sequence[Seen],
    known: Mapping[str, Sequence[Seen]],
    own_or_shared: Sequence[str],
    whose: str,
    judged: bool,
) -> Figure:
    """How wrong gaps were; `own_or_shared` is the processor of each repetition."""
    gaps = [one.gap_p99_us for one in ours]
    # Each repetition by the limit of the processor that it had.
    limits = [TARGET_GAP_US[one] for one in own_or_shared]
    of_limit = median(gap / limit for gap, limit in zip(gaps, limits, strict=True))
    return Figure(
        f"{name}: p99 error of gaps",
        "us",
        gaps,
        {name: [one.gap_p99_us for one in found] for name, found in known.items()},
        " or ".join(f"within {limit:.0f}" for limit in sorted(set(limits))) if judged else "",
        of_limit <= 1 if judged else None,
        note=whose,
        goal="p99 error of gaps: within the limit of the sender's processor" if judged else "",
        strain=of_limit if judged else None,
        marks={
            name: f"gaps not kept: {share:.0f} % left together"
            for name, found in (("ours", ours), *known.items())
            if (share := median(one.together_percent for one in found)) > _TOGETHER_PERCENT
        },
    )


def _distribution(arena: Arena, process: str, quiet: Quiet) -> Figure:
    """Return how far the realised gaps of a random process are from its distribution, by Kolmogorov and Smirnov."""
    text, law = _PROCESSES[process]
    command = ["--gap", text, "--payload", "64 B", "--packets", str(_DRAWS + 1)]
    quiet.wait()
    stamps, shared = _stamps_of_ours(arena, command, 15, 64)
    distance = float(stats.kstest(np.diff(stamps) / 1e6, law).statistic)
    critical = _CRITICAL / math.sqrt(_DRAWS)
    missing = _DRAWS + 1 - len(stamps)
    return Figure(
        f"{process} gaps: Kolmogorov-Smirnov distance",
        "",
        [distance],
        {},
        f"below {critical:.4f}",
        distance < critical and not missing,
        note=f"{text}, {len(stamps) - 1} gaps as the observer saw them; 0.1 % level; the sender's processor: "
        + ("shared" if shared else "own"),
        # A draw that is missing misses the goal, whatever the others are like.
        strain=max(distance / critical, 1 + missing / _DRAWS if missing else 0.0),
    )


def _ours(arena: Arena, rate: int, size: int, seconds: int) -> tuple[Seen, bool]:
    """Return what the observer saw of ours, and whether the sender said that its processor was shared."""
    command = ["--pps", str(rate), "--payload", f"{size} B", "--duration", f"{seconds} s"]
    stamps, shared = _stamps_of_ours(arena, command, seconds, size)
    seen = seen_of(stamps, rate)
    if seen is None:
        raise OSError(f"next to nothing arrived of ours at {rate} datagrams a second")
    return seen, shared


def _stamps_of_ours(arena: Arena, flow: Sequence[str], seconds: int, size: int) -> tuple[np.ndarray, bool]:
    """Return when the observer saw each datagram of ours, and whether the sender said that its processor was shared."""
    receiver = arena.popen([str(_TWINNET), "recv", "--udp", "5003", "--no-clock", "--json"], "h2")
    told: list[str] = []
    try:
        _wait_for(receiver, b"Listening")
        command = [str(_TWINNET), "send", TARGET, *flow, "--no-clock", "--json"]

        def send() -> None:
            # A sender that could not keep up says so by its status, too; what it told counts.
            done = subprocess.run(
                arena.inside(command, "h1"), capture_output=True, text=True, check=False, timeout=_PATIENCE_S
            )
            told.append(done.stdout)

        stamps = _observe(arena, 5003, seconds, size, send)
    finally:
        _end(arena, receiver, "twinnet")
    return stamps, bool(json.loads(told[0])["processor"]["shared"])


def _observe(arena: Arena, port: int, seconds: int, size: int, send: Callable[[], None]) -> np.ndarray:
    """Let `send` send datagrams of `size` bytes to `port` and return when the observer saw each, in nanoseconds."""
    watcher = arena.popen([str(BARE), "watch", str(seconds + 5), str(port)], "h2")
    _wait_for(watcher, b"READY")
    send()
    told, said = watcher.communicate(timeout=_PATIENCE_S)
    if watcher.returncode != 0:
        raise OSError(f"the observer failed: {said.decode(errors='replace').strip()}")
    stamps, lengths = np.frombuffer(told, dtype="<u8").astype(np.int64).reshape(-1, 2).T
    # What the sender let the kernel cut passes a veth pair whole: several datagrams of one moment.
    return np.repeat(stamps, np.maximum(1, lengths // size))


def seen_of(stamps: np.ndarray, rate: float) -> Seen | None:
    """Return what `stamps` in nanoseconds tell of a flow of `rate` datagrams a second."""
    if len(stamps) < 10:
        return None
    gaps = np.diff(stamps)
    achieved = len(gaps) / ((stamps[-1] - stamps[0]) / 1e9)
    errors_us = np.abs(gaps - 1e9 / rate) / 1e3
    together = 100 * float(np.mean(gaps == 0))
    return Seen(abs(float(achieved) / rate - 1) * 100, float(np.percentile(errors_us, 99)), together)


def _run(arena: Arena, peer: Generator, rate: int, size: int, seconds: int) -> bool:
    """Let `peer` send; return whether it shared its processor."""
    receiver = arena.popen(peer.receiver, "h2")
    try:
        arena.await_port(*peer.ready, "h2")
        sender = arena.popen(peer.sender(TARGET, rate, size, seconds), "h1")
        watch: ProcessorWatch | None = None
        patience_s = time.monotonic() + seconds + 15
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                sender.communicate(timeout=0.02)
                break
            if watch is None and (pid := arena.program(sender)) is not None:
                watch = ProcessorWatch(pid)
            if watch is not None:
                watch.look()
            if time.monotonic() > patience_s:
                # Some wait for a report of their receiver for long; what was sent was seen.
                _end(arena, sender, peer.program)
                break
        return watch is not None and watch.shared
    finally:
        _end(arena, receiver, peer.receiver[0])


def _end(arena: Arena, process: subprocess.Popen[bytes], name: str) -> bytes:
    """End what runs as `name` in the arena, as Ctrl-C does, then by force; return what it said."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        for found in arena.processes(name):
            with contextlib.suppress(ProcessLookupError):
                os.kill(found, number)
        try:
            return process.communicate(timeout=3)[0]
        except subprocess.TimeoutExpired:
            continue
    process.kill()
    return process.communicate()[0]


def _wait_for(process: subprocess.Popen[bytes], word: bytes) -> None:
    assert process.stderr is not None
    line = process.stderr.readline()
    if word not in line:
        process.kill()
        raise OSError(f"a receiver did not start: {line.decode(errors='replace').strip()}")


def _arrived(arena: Arena) -> int:
    """Return how many datagrams the receiving host's UDP has got so far, with those that it had no room or use for."""
    lines = [
        line.split() for line in arena.run(["cat", "/proc/net/snmp"], "h2").splitlines() if line.startswith("Udp:")
    ]
    counts = dict(zip(lines[0][1:], map(int, lines[1][1:]), strict=True))
    return counts["InDatagrams"] + counts["InErrors"] + counts["NoPorts"]


def _arrivals_per_second(arena: Arena) -> float:
    """Return the rate of arrivals in a part of the first second of sending."""
    before, patience = _arrived(arena), time.monotonic() + 10
    while _arrived(arena) < before + 100:
        if time.monotonic() > patience:
            return 0.0
        time.sleep(0.02)
    time.sleep(0.2)
    begin, first = time.monotonic(), _arrived(arena)
    time.sleep(0.5)
    last, end = _arrived(arena), time.monotonic()
    return (last - first) / (end - begin)


def _unpaced(arena: Arena, peers: Mapping[str, Generator], repetitions: int, quiet: Quiet) -> Figure:
    """Return how many datagrams of 64 bytes arrive when nobody holds the sender back."""
    seconds = 1
    ours_command = [str(_TWINNET), "send", TARGET, "--unpaced", "--payload", "64 B", "--duration", f"{seconds} s"]
    blast = [str(BARE), "blast", str(seconds), TARGET, "64"]
    hearing = [str(_TWINNET), "recv", "--udp", "5003", "--no-clock"]
    commands: dict[str, tuple[Sequence[str], Sequence[str]]] = {
        "ours": ([*ours_command, "--no-clock", "--json"], hearing),
        "bare sendmmsg": (blast, hearing),
        "bare UDP_SEGMENT": ([str(BARE), "train", str(seconds), TARGET, "64"], hearing),
        **{
            name: (peer.unpaced(TARGET, 64, seconds), peer.receiver)
            for name, peer in peers.items()
            if peer.unpaced is not None
        },
    }
    found: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(repetitions):
        for name, (sender, receiver) in commands.items():
            quiet.wait()
            heard = arena.popen(receiver, "h2")
            arena.await_port(*(peers[name].ready if name in peers else ("udp", 5003)), "h2")
            running = arena.popen(sender, "h1")
            found[name].append(_arrivals_per_second(arena))
            try:
                running.communicate(timeout=seconds + 15)
            except subprocess.TimeoutExpired:
                _end(arena, running, Path(sender[0]).name)
            _end(arena, heard, Path(receiver[0]).name)
    ours = found.pop("ours")
    bare = median(found["bare sendmmsg"])
    others = [median(found[name]) for name in peers if name in found]
    return Figure(
        "64-byte datagrams, unpaced",
        "/s",
        ours,
        found,
        "at least 0.9 of bare, above all others",
        median(ours) >= TARGET_UNPACED * bare and median(ours) > max(others, default=0),
        note="both bare ones send 64 datagrams a call; the kernel cuts those of bare UDP_SEGMENT from one "
        "message, as it does ours",
        strain=max(TARGET_UNPACED * bare, max(others, default=0)) / median(ours),
    )


def _receiver(arena: Arena, repetitions: int, quiet: Quiet) -> Iterator[Figure]:
    """Yield what `twinnet recv` got and counted of what a bare sender sent."""
    got: list[float] = []
    counted: list[float] = []
    for _ in range(repetitions):
        quiet.wait()
        receiver = arena.popen([str(_TWINNET), "recv", "--udp", "5003", "--no-clock", "--json"], "h2")
        _wait_for(receiver, b"Listening")
        sent = int(arena.run([str(BARE), "blast", "1", TARGET, "64"], "h1"))
        arena.await_read("udp", 5003, "h2")
        told = json.loads(_end(arena, receiver, "twinnet"))
        received = sum(int(flow["packets"]) for flow in told["flows"])
        dropped = sum(_dropped(text) for text in told["errors"])
        got.append(100 * received / sent)
        counted.append(100 * (received + dropped) / sent)
    farthest = max(abs(share - 100) for share in counted)
    yield Figure(
        "received of what a bare sender sent", "%", got, {}, "100", None, note="64-byte datagrams by sendmmsg, 1 s"
    )
    yield Figure(
        "received, or counted as dropped by the host",
        "%",
        counted,
        {},
        f"within {_COUNTED_PERCENT} of 100",
        farthest < _COUNTED_PERCENT,
        strain=farthest / _COUNTED_PERCENT,
    )


def _dropped(text: str) -> int:
    """Return how many datagrams an error of the receiver says its host dropped."""
    if "socket's buffer was full" not in text:
        return 0
    times = re.search(r"\((\d+) times\)", text)
    return int(times.group(1)) if times else 1
