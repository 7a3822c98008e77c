"""The virtual clock beside ns-3: the same dumbbells and the same fat tree, one core each, by turns."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median

from bench.figure import Figure
from bench.ns3_peer import ns3_installations, ns3_missing, ns3_program
from bench.outcome import Outcome, growth, jain_index, outcome_of
from bench.quiet import Quiet
from bench.scenarios import (
    FAT_TREE_PACKETS_PER_SECOND,
    fat_tree_delay_s,
    fat_tree_hosts,
    line_share,
    udp_dumbbell_delay_s,
)

TITLE = "The virtual clock beside ns-3: packet-hops per second of processor time, and what was simulated"
MEASURES = (
    "bench/simulation.py",
    "bench/scenarios.py",
    "crates/apps",
    "crates/fabric",
    "crates/host",
    "crates/queue",
    "crates/switch",
)

UDP_TARGET, TCP_TARGET, FAT_TREE_TARGET = 20.0, 15.0, 20.0
DELIVERED_TOLERANCE = 1e-4
DELAY_TOLERANCE = 1e-4
"""Of what the model's own arithmetic says: ns-3 rounds intervals to a nanosecond, which moves its moments a little."""
TCP_TOLERANCE = 0.02
FRAMING_BYTES = {"ours": 38, "ns-3": 2}
"""What a packet takes of the line beyond its own bytes: Ethernet's framing, and that of PPP."""
LONG_DELAY_US = 100_000
"""Of every link of the fat tree where many packets are to be in flight at once."""

_FRAMING = "a packet is 1054 bytes on the wire here until it has arrived (Ethernet), 1030 in ns-3 (PPP)"
_Pair = Mapping[str, Outcome]


def measure(quick: bool, quiet: Quiet) -> Iterator[Figure]:
    """Yield the figures."""
    dumbbell_s, fat_tree_s, repetitions = (5, 1, 1) if quick else (100, 10, 3)

    yield from _udp_dumbbell(_by_turns([_dumbbell("udp", dumbbell_s)] * repetitions, quiet), dumbbell_s)
    # How drop-tail shares among the flows hangs on their moments: each repetition has others.
    moments = [_dumbbell("tcp", dumbbell_s, 100 + 7 * repetition) for repetition in range(repetitions)]
    yield from _tcp_dumbbell(_by_turns(moments, quiet))
    yield from _fat_tree(_by_turns([_fat_tree_commands(8, fat_tree_s)] * repetitions, quiet))
    small, large = ({name: runs[0] for name, runs in _memory_runs(k, 0, quiet).items()} for k in (8, 16))
    yield _memory_per_host(small, large)
    full_small, full_large = (
        {name: runs[0] for name, runs in _memory_runs(k, LONG_DELAY_US, quiet).items()} for k in (8, 16)
    )
    yield _memory_per_packet((small, large), (full_small, full_large))


_Commands = tuple[Sequence[str], Sequence[str]]
"""The arguments of ours, and program and arguments of ns-3's."""


def _dumbbell(traffic: str, seconds: float, stagger_ms: int = 100) -> _Commands:
    ours = ["--seconds", str(seconds), "dumbbell", "--traffic", traffic, "--stagger-ms", str(stagger_ms)]
    return ours, ["dumbbell", f"--traffic={traffic}", f"--seconds={seconds}", f"--stagger_ms={stagger_ms}"]


def _fat_tree_commands(k: int, seconds: float, delay_us: int = 0) -> _Commands:
    ours = ["--seconds", str(seconds), "fat_tree", "--k", str(k), "--delay", f"{delay_us} us"]
    return ours, ["fat_tree", f"--k={k}", f"--seconds={seconds}", f"--delay_us={delay_us}"]


def _memory_runs(k: int, delay_us: int, quiet: Quiet) -> dict[str, list[Outcome]]:
    # A second and a half: twice the longest way of six links of 100 ms, and a little.
    return _by_turns([_fat_tree_commands(k, 1.5, delay_us)], quiet)


def _by_turns(repetitions: Sequence[_Commands], quiet: Quiet) -> dict[str, list[Outcome]]:
    """Run all in every repetition, one after the other; ns-3 only where it is installed, in each of its builds."""
    found: dict[str, list[Outcome]] = {"ours": []}
    for ours, theirs in repetitions:
        quiet.wait()
        found["ours"].append(outcome_of([sys.executable, "-m", "bench.simulated", *ours]))
        for library in ns3_installations() if ns3_missing() is None else ():
            program = str(ns3_program(theirs[0], library))
            quiet.wait()
            found.setdefault(library.name, []).append(outcome_of([program, *theirs[1:]]))
    return found


def _each(runs: Mapping[str, Sequence[Outcome]], of: Callable[[Outcome], float]) -> dict[str, list[float]]:
    return {name: [of(run) for run in outcomes] for name, outcomes in runs.items()}


def _speed(name: str, runs: Mapping[str, Sequence[Outcome]], target: float) -> Figure:
    hops = _each(runs, lambda run: run.hops_per_second / 1e6)
    ours = hops.pop("ours")
    first = runs["ours"][0]
    figure = Figure(
        f"{name}: speed",
        "million packet-hops/s",
        ours,
        hops,
        f"at least {target:g} times the fastest ns-3",
        note=f"{first.packet_hops} packet-hops, {first.events} events here"
        + "".join(f"; {one[0].packet_hops} and {one[0].events} in {who}" for who, one in runs.items() if who != "ours"),
    )
    strain = target * max(median(theirs) for theirs in hops.values()) / median(ours) if hops else None
    return _judged(figure, strain)


def _judged(figure: Figure, strain: float | None) -> Figure:
    return replace(figure, met=None if strain is None else strain <= 1, strain=strain)


def _beside(
    name: str,
    unit: str,
    runs: Mapping[str, Sequence[Outcome]],
    of: Callable[[Outcome], float],
    tolerance: float,
    target: str,
    note: str = "",
) -> Figure:
    """A figure that is to be that of ns-3 within `tolerance` of it."""
    found = _each(runs, of)
    ours = found.pop("ours")
    strain = max(apart(median(ours), median(theirs), tolerance) for theirs in found.values()) if found else None
    # Its own moments and losses are all that moves them: the same command gives the same.
    return _judged(Figure(name, unit, ours, found, target, note=note, deterministic=True), strain)


def apart(ours: float, theirs: float, tolerance: float) -> float:
    """Return how much of `tolerance`, a share of `theirs`, the distance of `ours` from it takes: above 1, too much."""
    return abs(ours - theirs) / (tolerance * abs(theirs))


def _delivered(name: str, runs: Mapping[str, Sequence[Outcome]]) -> Figure:
    return _beside(
        f"{name}: delivered",
        "packets",
        runs,
        lambda run: run.delivered_packets,
        DELIVERED_TOLERANCE,
        "as ns-3 to 0.01 %",
    )


def _delay(name: str, runs: Mapping[str, Sequence[Outcome]], target: str, strain: float, note: str) -> Figure:
    found = _each(runs, lambda run: run.mean_delay_s * 1e6)
    ours = found.pop("ours")
    return _judged(Figure(f"{name}: mean delay", "us", ours, found, target, note=note, deterministic=True), strain)


def _udp_dumbbell(runs: Mapping[str, Sequence[Outcome]], seconds: float) -> Iterator[Figure]:
    name = "dumbbell, ten UDP flows"
    yield _speed(name, runs, UDP_TARGET)
    yield _delivered(name, runs)
    expected_s = udp_dumbbell_delay_s()
    strain = apart(median(run.mean_delay_s for run in runs["ours"]), expected_s, DELAY_TOLERANCE)
    yield _delay(name, runs, f"{expected_s * 1e6:.3f} by arithmetic", strain, f"{seconds:g} s; {_FRAMING}")


def _goodputs(runs: Mapping[str, Sequence[Outcome]]) -> dict[str, list[float]]:
    return _each(runs, lambda run: run.goodput_bps)


def _tcp_dumbbell(runs: Mapping[str, Sequence[Outcome]]) -> Iterator[Figure]:
    name = "dumbbell, ten CUBIC flows"
    yield _speed(name, runs, TCP_TARGET)
    goodputs = {who: [of / 1e6 for of in each] for who, each in _goodputs(runs).items()}
    yield Figure(
        f"{name}: goodput of all",
        "Mbit/s",
        goodputs.pop("ours"),
        goodputs,
        note="a full segment takes 1538 bytes of the line here (Ethernet) and 1502 in ns-3 (PPP), 2.4 % less",
        deterministic=True,
    )
    shares = {
        who: [line_share(of, FRAMING_BYTES["ours" if who == "ours" else "ns-3"]) * 100 for of in each]
        for who, each in _goodputs(runs).items()
    }
    ours = shares.pop("ours")
    share = Figure(
        f"{name}: goodput of what the line can carry",
        "%",
        ours,
        shares,
        "as ns-3 within 2 %",
        deterministic=True,
    )
    strain = max(apart(median(ours), median(theirs), TCP_TOLERANCE) for theirs in shares.values()) if shares else None
    yield _judged(share, strain)
    yield _beside(
        f"{name}: Jain's index",
        "",
        runs,
        lambda run: jain_index(run.goodputs_bps),
        TCP_TOLERANCE,
        "as ns-3 within 2 %",
    )


def _fat_tree(runs: Mapping[str, Sequence[Outcome]]) -> Iterator[Figure]:
    name = f"fat tree, {fat_tree_hosts(8)} hosts"
    yield _speed(name, runs, FAT_TREE_TARGET)
    yield _delivered(name, runs)
    first = runs["ours"][0]
    unqueued_s = fat_tree_delay_s(first.packet_hops / max(first.delivered_packets, 1))
    # Where ways cross a datagram may wait for others, so the arithmetic is the least; by how much chance would have it.
    strain = unqueued_s * (1 - DELAY_TOLERANCE) / first.mean_delay_s
    note = f"the least is that without any waiting, a lower bound and no value; {_FRAMING}"
    yield _delay(name, runs, f"not below {unqueued_s * 1e6:.3f}, by arithmetic", strain, note)


def _memory_per_host(small: _Pair, large: _Pair) -> Figure:
    hosts = (fat_tree_hosts(8), fat_tree_hosts(16))
    each = {name: [growth(small[name].peak_bytes, large[name].peak_bytes, *hosts) / 1000] for name in small}
    ours = each.pop("ours")
    return Figure(
        "fat tree: memory per host",
        "kB",
        ours,
        each,
        "less than ns-3",
        all(ours[0] < theirs[0] for theirs in each.values()) if each else None,
        strain=ours[0] / min(theirs[0] for theirs in each.values()) if each else None,
        note=f"growth of the most that the whole process took, from {hosts[0]} to {hosts[1]} hosts; with a host come "
        "0.3 switches, three links and a flow",
    )


def in_flight(run: Outcome, hosts: int) -> float:
    """Return the packets that are under way at any moment, by Little's law: arrivals per second times their delay."""
    return hosts * FAT_TREE_PACKETS_PER_SECOND * run.mean_delay_s


def _memory_per_packet(empty: tuple[_Pair, _Pair], full: tuple[_Pair, _Pair]) -> Figure:
    hosts = (fat_tree_hosts(8), fat_tree_hosts(16))
    each: dict[str, list[float]] = {}
    for name in empty[0]:
        taken = [more[name].ended_bytes - less[name].ended_bytes for less, more in zip(empty, full, strict=True)]
        under_way = [in_flight(more[name], count) for more, count in zip(full, hosts, strict=True)]
        each[name] = [growth(*taken, *under_way)]
    ours = each.pop("ours")
    return Figure(
        "fat tree: memory per packet in flight",
        "B",
        ours,
        each,
        "less than ns-3",
        all(ours[0] < theirs[0] for theirs in each.values()) if each else None,
        strain=ours[0] / min(theirs[0] for theirs in each.values()) if each else None,
        note=f"what links of {LONG_DELAY_US / 1e6:g} s add to the process, from {hosts[0]} to {hosts[1]} hosts",
    )
