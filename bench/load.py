"""Many busy links at once: whether each keeps its rate, and whether the lab still calls itself valid."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import twinnet as tn

from bench.arena import Arena
from bench.figure import Figure
from bench.machine import missing
from bench.quiet import Quiet

TITLE = "Many busy links"
MEASURES = (
    "bench/load.py",
    "crates/fabric",
    "crates/linux",
    "crates/queue",
    "crates/switch",
    "python/twinnet/results/fidelity_verdict.py",
)

LINK_BPS = 10_000_000
PAYLOAD = 1470
LINKS = (2, 10, 25, 50, 100)
FLOWS = ((1, 100_000_000), (5, 100_000_000), (20, 100_000_000), (1, 1_000_000_000), (3, 1_000_000_000))
PAIRS = (5, 100)
_MININET = Path(__file__).with_name("mininet_load_peer.py")
_MININET_LINKS = (2, 10, 25)
_SETTLED_S = 1.0
_TCP_SHARE = 1514 / 1538
"""What framing leaves of a line's rate to full-size frames, in bytes with the Ethernet header."""

Around = Callable[[], AbstractContextManager[object]]
"""Opens what is to hold while a load is measured."""

_BOUNDS = {2: 0.1, 10: 0.1, 25: 0.2, 50: 0.3, 100: 3.0}
_TCP_BOUNDS = {(1, 100_000_000): 0.5, (5, 100_000_000): 0.5, (20, 100_000_000): 1.5}
_GIGABIT_BOUNDS = {(1, 1_000_000_000): 0.2, (3, 1_000_000_000): 0.5}


@dataclass(frozen=True)
class Outcome:
    """What the links of one run carried.

    Parameters
    ----------
    errors_percent
        For each link by how much its rate was off what framing leaves.
    state
        The lab's verdict on itself; empty for a peer, which has none.
    reasons
        Why it says so.
    """

    errors_percent: tuple[float, ...]
    state: str = ""
    reasons: tuple[str, ...] = ()

    @property
    def error_percent(self) -> float:
        """That of the link whose rate is off the most."""
        return max(self.errors_percent, key=abs)


def measure(quick: bool, quiet: Quiet) -> Iterator[Figure]:
    """Yield the figures."""
    seconds, repetitions = (2.0, 1) if quick else (4.0, 3)
    for count in LINKS[:3] if quick else LINKS:
        runs = _by_turns(count, seconds, repetitions, quiet)
        yield _rate(f"{count} links of 10 Mbit/s at twice their rate", runs, _BOUNDS[count])
        yield _valid(f"{count} links of 10 Mbit/s", runs[_OURS])
    for count in PAIRS[:1] if quick else PAIRS:
        light = _several(repetitions, quiet, lambda c=count: datagrams(c, LINK_BPS, 10 * LINK_BPS, seconds))
        yield _valid(f"{count} pairs of 10 Mbit/s on links of 100 Mbit/s", light)
    bounds = _TCP_BOUNDS | _GIGABIT_BOUNDS
    for count, rate_bps in FLOWS[:2] if quick else FLOWS:
        flows = _several(repetitions, quiet, lambda c=count, r=rate_bps: streams(c, r, seconds))
        name = f"{count} TCP flow{'s' * (count > 1)} of {rate_bps / 1e6:g} Mbit/s"
        yield _rate(name, {_OURS: flows}, bounds[count, rate_bps])
        yield _valid(name, flows)
    if not quick:
        yield _greatest("datagrams of 1470 bytes", quiet, lambda count: datagrams(count, 2 * LINK_BPS, LINK_BPS, 2.0))
        yield _greatest(
            "datagrams of 100 bytes", quiet, lambda count: datagrams(count, LINK_BPS, LINK_BPS // 2, 2.0, 100)
        )
        yield _greatest("TCP flows of 100 Mbit/s", quiet, lambda count: streams(count, 100_000_000, 2.0))


_OURS = "twinnet"


def _by_turns(count: int, seconds: float, repetitions: int, quiet: Quiet) -> dict[str, list[Outcome]]:
    """Drive `count` links of ours and of each peer that is there, one after another in each repetition."""
    load = (count, 2 * LINK_BPS, LINK_BPS, seconds)
    drivers: dict[str, Callable[[], Outcome]] = {_OURS: lambda: datagrams(*load)}
    if missing("kernel") is None and missing("iperf") is None:
        drivers["kernel bridge + HTB"] = lambda: kernel_datagrams(*load)
    if count in _MININET_LINKS and missing("mininet") is None and missing("iperf") is None:
        drivers["Mininet, OVS user space"] = lambda: mininet_datagrams(*load)
    runs: dict[str, list[Outcome]] = {name: [] for name in drivers}
    for _ in range(repetitions):
        for name, drive in drivers.items():
            quiet.wait()
            runs[name].append(drive())
    return runs


def _several(repetitions: int, quiet: Quiet, run: Callable[[], Outcome]) -> list[Outcome]:
    found: list[Outcome] = []
    for _ in range(repetitions):
        quiet.wait()
        found.append(run())
    return found


def _rate(name: str, runs: Mapping[str, Sequence[Outcome]], bound: float) -> Figure:
    found = {driver: [run.error_percent for run in theirs] for driver, theirs in runs.items()}
    ours = found.pop(_OURS)
    return Figure(
        f"{name}: rate of the worst link off by",
        "%",
        ours,
        found,
        f"within {bound:g}",
        all(abs(one) <= bound for one in ours),
        summary="farthest",
        goal="rate of the worst link",
        strain=max(map(abs, ours)) / bound,
    )


def _valid(name: str, runs: Sequence[Outcome]) -> Figure:
    valid = [float(run.state == "valid") for run in runs]
    strain = 1 + valid.count(0.0)
    return Figure(f"{name}: valid runs", "", valid, {}, "all", all(valid), goal="all runs are valid", strain=strain)


def _greatest(name: str, quiet: Quiet, run: Callable[[int], Outcome]) -> Figure:
    """The greatest number of links that stays valid, by bisection."""
    most, too_many = 0, 129
    while too_many - most > 1:
        count = (most + too_many) // 2 if most else 16 if too_many > 16 else too_many // 2 or 1
        quiet.wait()
        if run(count).state == "valid":
            most = count
        else:
            too_many = count
    return Figure(f"greatest valid number of {name}", "", [float(most)], {}, "", None)


def datagrams(
    count: int, offered_bps: int, link_bps: int, seconds: float, payload: int = PAYLOAD, around: Around = nullcontext
) -> Outcome:
    """Drive `count` links of `link_bps` of ours with UDP of `offered_bps` each."""
    with _pairs(count, max(offered_bps * 5, link_bps), link_bps).emulate() as lab:
        length = f"{seconds + 2 * _SETTLED_S} s"
        flows = [
            tn.apps.udp(
                f"a{n}",
                f"b{n}",
                rate=tn.units.BitsPerSecond(offered_bps),
                payload=tn.units.Bytes(payload),
                duration=length,
            )
            for n in range(count)
        ]
        frame = payload + 42
        expected = min(link_bps * frame / (frame + 24), offered_bps * frame / payload)
        return _watch(lab, flows, seconds, expected, around)


def streams(count: int, link_bps: int, seconds: float, around: Around = nullcontext) -> Outcome:
    """Drive `count` links of `link_bps` of ours with a CUBIC flow each."""
    with _pairs(count, link_bps, link_bps).emulate() as lab:
        length = f"{seconds + 2 * _SETTLED_S} s"
        flows = [tn.apps.tcp_bulk(f"a{n}", f"b{n}", duration=length, congestion_control="cubic") for n in range(count)]
        return _watch(lab, flows, seconds, link_bps * _TCP_SHARE, around)


def _pairs(count: int, access_bps: int, link_bps: int) -> tn.Network:
    net = tn.Network()
    switch = net.switch("s1")
    for number in range(count):
        net.link(net.host(f"a{number}"), switch, rate=tn.units.BitsPerSecond(access_bps))
        net.link(switch, net.host(f"b{number}"), rate=tn.units.BitsPerSecond(link_bps))
    return net


def _watch(lab: tn.Lab, flows: Sequence[tn.apps.Flow], seconds: float, expected_bps: float, around: Around) -> Outcome:
    # All begin together, when each receiver listens.
    begin = lab.now() + _SETTLED_S + 0.02 * len(flows)
    apps = [lab.start(flow, at=f"{begin:.6f} s") for flow in flows]
    # Is measured when queues are full and windows have grown.
    lab.run_until(f"{begin + _SETTLED_S:.6f} s")
    with around():
        lab.fidelity(reset=True)
        sampler = lab.sample([f"b{number}-eth0" for number in range(len(flows))], interval="250 ms")
        time.sleep(seconds)
        verdict = lab.fidelity().verdict()
        samples = sampler.stop()
    lab.wait(apps)
    errors: list[float] = []
    for series in samples.ports.values():
        whole = series.received_bytes[:-1]
        errors.append(100 * (sum(whole) * 8 / (len(whole) * 0.25) / expected_bps - 1))
    return Outcome(tuple(errors), verdict.state, tuple(verdict.reasons))


def kernel_datagrams(count: int, offered_bps: int, link_bps: int, seconds: float) -> Outcome:
    """Drive as many links of the kernel: a bridge, and HTB as Mininet sets it before each receiver; iperf 2 sends."""
    with Arena() as arena, contextlib.ExitStack() as stack:
        arena.run(["ip", "link", "add", "br0", "type", "bridge"])
        arena.run(["ip", "link", "set", "br0", "up"])
        for number in range(count):
            for side, address in (("a", 2 * number + 1), ("b", 2 * number + 2)):
                _bridged_host(arena, f"{side}{number}", f"10.98.{address // 250}.{address % 250 + 1}")
            port = f"b{number}-br"
            arena.run(["tc", "qdisc", "add", "dev", port, "root", "handle", "5:0", "htb", "default", "1"])
            rate = ["rate", f"{link_bps / 1e6:g}Mbit", "burst", "15k"]
            arena.run(["tc", "class", "add", "dev", port, "parent", "5:0", "classid", "5:1", "htb", *rate])
        for number in range(count):
            address = 2 * number + 2
            target = f"10.98.{address // 250}.{address % 250 + 1}"
            sender = ["iperf", "-u", "-c", target, "-b", str(offered_bps), "-l", str(PAYLOAD)]
            length = ["-t", f"{seconds + 3 * _SETTLED_S:g}"]
            stack.callback(_end, arena.popen([*sender, *length], f"a{number}"))
        time.sleep(_SETTLED_S)
        before = _received(arena, count)
        begin = time.monotonic()
        time.sleep(seconds)
        after = _received(arena, count)
        elapsed = time.monotonic() - begin
        # HTB counts bytes with the Ethernet header and no framing.
        bps = ((last - first) * 8 / elapsed for first, last in zip(before, after, strict=True))
        return Outcome(tuple(100 * (one / link_bps - 1) for one in bps))


def mininet_datagrams(count: int, offered_bps: int, link_bps: int, seconds: float) -> Outcome:
    """Drive as many links in Mininet: Open vSwitch in user space, and HTB before each receiver; iperf 2 sends."""
    load = [count, offered_bps, link_bps // 1_000_000, PAYLOAD, round(seconds)]
    with Arena() as arena:
        arena.start_open_vswitch()
        said = arena.run(["/usr/bin/python3", str(_MININET), *map(str, load)], timeout_s=300)
    # HTB counts bytes with the Ethernet header and no framing.
    return Outcome(tuple(100 * (float(bps) / link_bps - 1) for bps in said.split()))


def _bridged_host(arena: Arena, name: str, address: str) -> None:
    arena.run(["ip", "netns", "add", name])
    arena.run(["ip", "link", "add", f"{name}-br", "type", "veth", "peer", "name", "eth0", "netns", name])
    arena.run(["ip", "link", "set", f"{name}-br", "master", "br0", "up"])
    arena.run(["ip", "-n", name, "address", "add", f"{address}/16", "dev", "eth0"])
    arena.run(["ip", "-n", name, "link", "set", "eth0", "up"])


def _received(arena: Arena, count: int) -> list[int]:
    """Bytes that the kernel's bridge has sent to each receiver."""
    paths = [f"/sys/class/net/b{number}-br/statistics/tx_bytes" for number in range(count)]
    # The arena's own view of the devices: /sys shows those of the namespace that mounted it.
    told = arena.run(["sh", "-c", "mount -t sysfs none /sys 2>/dev/null; cat " + " ".join(paths)])
    return [int(line) for line in told.split()]


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()
