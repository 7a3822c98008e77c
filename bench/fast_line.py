"""Where a fast line loses what it loses: ``python -m bench.fast_line [--mbit RATE] [--runs N]``.

iperf 2 offers twice the line's rate behind a switch, and the ports are sampled each 2 ms. A line that is below its rate
either stood idle, because nothing had come to it, or it was looked at late while frames waited, and gave up what it
could not catch up with. The record of fidelity tells the second, the samples tell the first.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import twinnet as tn
from twinnet.results.port_samples import PortSamples

from bench.machine import describe, missing

__all__ = ["Losses", "losses_of"]

_SECONDS = 4
_INTERVAL = "2 ms"
_FRAME_BYTES = 1470 + 42
_FRAMING_BYTES = 24
_THREADS = ("fabric", "delivery", "iperf")


@dataclass(frozen=True)
class Losses:
    """What a line carried less than its rate, in per cent of it.

    Parameters
    ----------
    off
        All of it.
    idle
        What it did not carry in intervals that ended with an empty queue.
    waiting
        What it did not carry though frames waited.
    read
        Frames a second that came to the switch.
    """

    off: float
    idle: float
    waiting: float
    read: float


def losses_of(samples: PortSamples, came: str, left: str, rate_bps: float) -> Losses:
    """Return what the line that leaves `left` lost; what it carries comes in at `came`."""
    full = rate_bps * samples.interval_s / (8 * (_FRAME_BYTES + _FRAMING_BYTES))
    line, count = samples[left], len(samples)
    idle = sum(full - sent for sent, waits in zip(line.frames, line.backlog_frames, strict=True) if waits == 0)
    whole = full * count
    off = whole - sum(line.frames)
    read = sum(samples[came].received_frames) / (count * samples.interval_s)
    return Losses(*(100 * part / whole for part in (off, idle, off - idle)), read)


def _processors(seconds: float, before: dict[str, float], after: dict[str, float]) -> str:
    shares = {name: (after.get(name, 0.0) - before.get(name, 0.0)) / seconds for name in _THREADS}
    return ", ".join(f"{name} {share:.2f}" for name, share in shares.items())


def _used_s() -> dict[str, float]:
    """Return the processor time of all threads on the machine that have these names, in seconds."""
    found = dict.fromkeys(_THREADS, 0.0)
    for stat in Path("/proc").glob("[0-9]*/task/[0-9]*/stat"):
        try:
            name, fields = stat.read_text().split("(", 1)[1].rsplit(")", 1)
        except OSError:
            continue
        if name in found:
            found[name] += sum(map(int, fields.split()[11:13])) / os.sysconf("SC_CLK_TCK")
    return found


def _run(rate_bps: float) -> tuple[Losses, str, str]:
    net = tn.Network()
    switch = net.switch("s1")
    net.link(net.host("h1"), switch)
    net.link(switch, net.host("h2"), rate=tn.units.BitsPerSecond(rate_bps))
    with net.emulate() as lab:
        lab["h2"].popen("iperf -s -u", stdout=tn.lab.DEVNULL)
        time.sleep(0.5)
        source = f"iperf -c h2 -u -l 1470 -b {2 * rate_bps:.0f} -t {_SECONDS + 2}"
        lab["h1"].popen(source, stdout=tn.lab.DEVNULL)
        time.sleep(1)
        lab.fidelity(reset=True)
        used, begin = _used_s(), time.monotonic()
        with lab.sample(["s1-eth1", "s1-eth2"], _INTERVAL) as sampler:
            time.sleep(_SECONDS)
        taken, after = time.monotonic() - begin, _used_s()
        losses = losses_of(sampler.read(), "s1-eth1", "s1-eth2", rate_bps)
        return losses, _processors(taken, used, after), str(lab.fidelity().verdict())


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row for each run, and the medians."""
    parser = argparse.ArgumentParser(prog="python -m bench.fast_line", description=__doc__)
    parser.add_argument("--mbit", type=float, default=1000, metavar="RATE", help="the line's, in Mbit/s (1000)")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="how often (5)")
    wanted = parser.parse_args(arguments)
    if absent := missing("iperf"):
        print(absent, file=sys.stderr)
        return 1
    print("   ".join(f"{name}: {value}" for name, value in describe().items()))
    print("below the rate (idle + while frames waited), frames a second that came, processors")
    found: list[Losses] = []
    for _ in range(wanted.runs):
        losses, processors, verdict = _run(1e6 * wanted.mbit)
        found.append(losses)
        parts = f"{losses.off:5.2f} % ({losses.idle:.2f} + {losses.waiting:.2f})"
        print(f"{parts}  {losses.read:8,.0f}  {processors}  {verdict}")
    off, idle, waiting = (median(getattr(one, name) for one in found) for name in ("off", "idle", "waiting"))
    print(f"medians: {off:.2f} % ({idle:.2f} + {waiting:.2f})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
