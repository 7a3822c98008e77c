"""Estimates over twenty modelled mobile links, beside the truth: ``python -m bench.mobile_links [--half chosen]``.
With ``--recorded FILE...`` they are over recorded traces in Mahimahi's format, such as those that come with it.

Ten links follow the package's model of fading (`tn.DeliveryTrace.fading`), and ten the model of a cellular link that
Sprout assumes (Winstein, Sivaraman, Balakrishnan, *Stochastic forecasts achieve high throughput and low delay over
cellular networks*, NSDI 2013). The settings of `slotted` were chosen on every other link; the rest are held back.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import twinnet as tn
from twinnet import bandwidth

PATH = ["h1", "s1", "s2", "h2"]
_PACKET, _ON_WIRE = 1472, 1538
_TRACE_MS = 60_000

FADING = (
    (40, 10, 5, 12, 2),
    (20, 5, 1, 12, 4),
    (80, 40, 10, 20, 2),
    (10, 4, 5, 5, 3),
    (60, 0, 30, 12, 1),
    (40, 28, 5, 12, 2),
    (15, 3, 70, 10, 6),
    (30, 12, 2, 25, 2),
    (100, 30, 5, 15, 4),
    (5, 1, 5, 12, 4),
)
"""Mean rate and cross traffic in Mbit/s, Doppler shift in Hz, signal-to-noise ratio in dB, users."""
BROWNIAN = (20, 50, 30, 70, 0, 40, 60, 10, 30, 50)
"""Cross traffic in percent of the mean rate."""


@dataclass(frozen=True)
class Link:
    """A mobile link and its cross traffic."""

    name: str
    trace: tn.DeliveryTrace
    cross_bps: float


@dataclass(frozen=True)
class Row:
    """What one estimate gave over a link; rates in Mbit/s."""

    link: str
    true: float
    estimate: float | None
    low: float
    high: float
    seconds: float
    megabytes: float

    @property
    def covered(self) -> bool:
        """Whether the interval contains the truth."""
        return self.estimate is not None and self.low <= self.true <= self.high


def brownian(seed: int, slots: int = _TRACE_MS) -> tn.DeliveryTrace:
    """Return a trace of Sprout's model: Poisson deliveries whose rate wanders.

    The rate is between 0 and 1000 packets/s and changes as a Brownian motion of 200 packets/s in the root of a second.
    At zero an outage begins, which lasts a second on average (exponential). After it, the rate is 100 packets/s (this
    number is ours).
    """
    source = random.Random(seed)
    rate, outage_until, moments = source.uniform(200, 1000), 0.0, list[int]()
    for slot in range(slots):
        if slot < outage_until:
            continue
        rate = min(rate + 200 * source.gauss(0, 1) * math.sqrt(0.001), 1000)
        if rate <= 0:
            rate, outage_until = 100.0, slot + 1000 * source.expovariate(1)
            continue
        least, product = math.exp(-rate / 1000), source.random()
        while product > least:
            moments.append(slot)
            product *= source.random()
    return tn.DeliveryTrace([*moments, slots])


def links(half: str) -> Iterator[Link]:
    """Yield the links of the half that settings were ``chosen`` on, of the one ``held`` back, or of ``all``."""
    for number, (mean, cross, doppler, snr, users) in enumerate(FADING):
        if half == "all" or (number % 2 == 0) == (half == "chosen"):
            trace = tn.DeliveryTrace.fading(
                f"{mean} Mbit", duration="60 s", doppler_hz=doppler, snr_db=snr, users=users, seed=number + 11
            )
            yield Link(f"fading, {mean} ({cross}), {doppler} Hz, {snr} dB, {users}", trace, cross * 1e6)
    for number, share in enumerate(BROWNIAN):
        if half == "all" or (number % 2 == 0) == (half == "chosen"):
            trace = brownian(number + 21)
            mean = trace.mean_bps()
            yield Link(f"Brownian, {mean / 1e6:.1f} ({share * mean / 1e8:.1f})", trace, share * mean / 100)


def recorded(path: Path, share: int) -> Link:
    """Return the link of a recorded trace, with cross traffic of `share` percent of its mean rate."""
    trace = tn.DeliveryTrace.read(path)
    cross = share * trace.mean_bps() / 100
    return Link(f"{path.stem}, {trace.mean_bps() / 1e6:.1f} ({cross / 1e6:.1f})", trace, cross)


def estimate(link: Link, seed: int) -> Row:
    """Estimate over `link`, beside Poisson cross traffic, on the virtual clock."""
    net = tn.Network(seed=seed)
    left, right = net.switch("s1"), net.switch("s2")
    for switch, hosts in ((left, ("h1", "x1")), (right, ("h2", "x2"))):
        for host in hosts:
            net.link(net.host(host), switch, rate="10 Gbit")
    net.link(left, right, delivery_trace=link.trace)
    with net.simulate() as lab:
        ports = bandwidth.path_ports(lab, PATH)
        sampler = lab.sample(list(ports), "1 ms")
        if link.cross_bps:
            rate = f"{link.cross_bps * _PACKET / _ON_WIRE:.0f} bit"
            lab.start(tn.apps.udp("x1", "x2", rate=rate, process="poisson", duration="10 min"))
        lab.run_until("1 s")
        probes = lab.start(bandwidth.bandwidth("h1", "h2", "slotted", settings={"line_bps": 1e10}))
        lab.wait([probes])
        lab.run_until(f"{lab.now() + 0.01:.6f} s")
        told = probes.report().bandwidth
        assert told is not None and told.window_start_ps is not None and told.window_end_ps is not None
        true = bandwidth.truth(sampler.read(), ports, told).available_bps / 1e6
    seconds = (told.window_end_ps - told.window_start_ps) / 1e12
    low, high = ((end or math.nan) / 1e6 for end in (told.low_bps, told.high_bps))
    found = None if told.estimate_bps is None else told.estimate_bps / 1e6
    return Row(link.name, true, found, low, high, seconds, told.probe_bytes / 1e6)


def table(rows: Sequence[Row]) -> str:
    """Return one line for each link, and one for all."""
    lines = [
        "| link | true, Mbit/s | errors, % | covered | half width, % | s | MB |",
        "|---|---:|---|---:|---:|---:|---:|",
    ]
    for link in dict.fromkeys(row.link for row in rows):
        of = [row for row in rows if row.link == link]
        errors = ", ".join(
            "none" if one.estimate is None else f"{100 * (one.estimate / one.true - 1):+.1f}" for one in of
        )
        widths = [50 * (one.high - one.low) / one.true for one in of if one.estimate is not None]
        half = f"{np.mean(widths):.0f}" if widths else ""
        mean = [np.mean([getattr(one, name) for one in of]) for name in ("true", "seconds", "megabytes")]
        covered = sum(one.covered for one in of)
        lines.append(f"| {link} | {mean[0]:.1f} | {errors} | {covered} | {half} | {mean[1]:.0f} | {mean[2]:.0f} |")
    covered, told = sum(row.covered for row in rows), [row for row in rows if row.estimate is not None]
    errors = np.array([100 * ((row.estimate or 0.0) / row.true - 1) for row in told])
    lines.append(
        f"\n{covered} of {len(rows)} intervals contain the truth; mean error {errors.mean():+.1f} %, "
        f"RMSE {math.sqrt((errors**2).mean()):.1f} %, {len(rows) - len(told)} without an answer"
    )
    return "\n".join(lines)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Estimates over modelled mobile links, beside the truth.")
    parser.add_argument("--half", choices=("chosen", "held", "all"), default="held")
    parser.add_argument("--recorded", type=Path, nargs="+", metavar="FILE", help="traces in Mahimahi's format instead")
    parser.add_argument("--cross", type=int, default=30, help="cross traffic there, in percent of the mean rate")
    parser.add_argument("--runs", type=int, default=3, help="estimates over each link")
    given = parser.parse_args()
    chosen = links(given.half)
    if given.recorded:
        chosen = (recorded(path, given.cross) for path in given.recorded)
    print(table([estimate(link, seed + 1) for link in chosen for seed in range(given.runs)]))


if __name__ == "__main__":
    main()
