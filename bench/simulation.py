"""The virtual clock beside ns-3: the same dumbbells and the same fat tree, one core each, by turns."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median

from bench.figure import Figure
from bench.ns3_peer import ns3_missing, ns3_program
from bench.outcome import Outcome, jain_index, outcome_of
from bench.quiet import Quiet
from bench.scenarios import (
    FAT_TREE_PACKETS_PER_SECOND,
    fat_tree_delay_s,
    fat_tree_hosts,
    udp_dumbbell_delay_s,
)

TITLE = "The virtual clock beside ns-3: packet-hops per second of processor time, and what was simulated"

NS3 = "ns-3"
UDP_TARGET, TCP_TARGET, FAT_TREE_TARGET = 20.0, 15.0, 20.0
DELIVERED_TOLERANCE = 1e-4
DELAY_TOLERANCE = 1e-4
"""Of what the model's own arithmetic says: ns-3 rounds intervals to a nanosecond, which moves its moments a little."""
TCP_TOLERANCE = 0.02
LONG_DELAY_US = 100_000
"""Of every link of the fat tree where many packets are to be in flight at once."""

_FRAMING = "a packet is 1054 bytes on the wire here until it has arrived (Ethernet), 1030 in ns-3 (PPP)"
_Pair = Mapping[str, Outcome]


def measure(quick: bool, quiet: Quiet) -> Iterator[Figure]:
    """Yield the figures."""
    dumbbell_s, fat_tree_s, repetitions = (5, 1, 1) if quick else (100, 10, 3)

    def by_turns(ours: Sequence[str], theirs: Sequence[str]) -> dict[str, list[Outcome]]:
        return _by_turns(ours, theirs, repetitions, quiet)

    yield from _udp_dumbbell(by_turns(*_dumbbell("udp", dumbbell_s)), dumbbell_s)
    yield from _tcp_dumbbell(by_turns(*_dumbbell("tcp", dumbbell_s)))
    yield from _fat_tree(by_turns(*_fat_tree_commands(8, fat_tree_s)))
    small, large = ({name: runs[0] for name, runs in _memory_runs(k, 0, quiet).items()} for k in (8, 16))
    yield _memory_per_host(small, large)
    full_small, full_large = (
        {name: runs[0] for name, runs in _memory_runs(k, LONG_DELAY_US, quiet).items()} for k in (8, 16)
    )
    yield _memory_per_packet((small, large), (full_small, full_large))


def _dumbbell(traffic: str, seconds: float) -> tuple[list[str], list[str]]:
    ours = ["--seconds", str(seconds), "dumbbell", "--traffic", traffic]
    return ours, ["dumbbell", f"--traffic={traffic}", f"--seconds={seconds}"]


def _fat_tree_commands(k: int, seconds: float, delay_us: int = 0) -> tuple[list[str], list[str]]:
    ours = ["--seconds", str(seconds), "fat_tree", "--k", str(k), "--delay", f"{delay_us} us"]
    return ours, ["fat_tree", f"--k={k}", f"--seconds={seconds}", f"--delay_us={delay_us}"]


def _memory_runs(k: int, delay_us: int, quiet: Quiet) -> dict[str, list[Outcome]]:
    # A second and a half: twice the longest way of six links of 100 ms, and a little.
    return _by_turns(*_fat_tree_commands(k, 1.5, delay_us), 1, quiet)


def _by_turns(ours: Sequence[str], theirs: Sequence[str], repetitions: int, quiet: Quiet) -> dict[str, list[Outcome]]:
    """Run both as often as said, one after the other; ns-3 only where it is installed."""
    commands = {"ours": [sys.executable, "-m", "bench.simulated", *ours]}
    if ns3_missing() is None:
        commands[NS3] = [str(ns3_program(theirs[0])), *theirs[1:]]
    found: dict[str, list[Outcome]] = {name: [] for name in commands}
    for _ in range(repetitions):
        for name, command in commands.items():
            quiet.wait()
            found[name].append(outcome_of(command))
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
        f"at least {target:g} times ns-3",
        note=f"{first.packet_hops} packet-hops, {first.events} events here"
        + "".join(f"; {one[0].packet_hops} and {one[0].events} in {who}" for who, one in runs.items() if who == NS3),
    )
    return _judged(figure, None if NS3 not in hops else (figure.ratio(NS3) or 0) >= target)


def _judged(figure: Figure, met: bool | None) -> Figure:
    return Figure(**{**vars(figure), "met": met})


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
    met = None if NS3 not in found else alike(median(ours), median(found[NS3]), tolerance)
    return Figure(name, unit, ours, found, target, met, note)


def alike(ours: float, theirs: float, tolerance: float) -> bool:
    """Whether `ours` differs from `theirs` by at most `tolerance` of it."""
    return abs(ours - theirs) <= tolerance * abs(theirs)


def _delivered(name: str, runs: Mapping[str, Sequence[Outcome]]) -> Figure:
    return _beside(
        f"{name}: delivered",
        "packets",
        runs,
        lambda run: run.delivered_packets,
        DELIVERED_TOLERANCE,
        "as ns-3 to 0.01 %",
    )


def _delay(name: str, runs: Mapping[str, Sequence[Outcome]], expected_s: float, met: bool | None, note: str) -> Figure:
    found = _each(runs, lambda run: run.mean_delay_s * 1e6)
    ours = found.pop("ours")
    return Figure(f"{name}: mean delay", "us", ours, found, f"{expected_s * 1e6:.3f} by arithmetic", met, note)


def _udp_dumbbell(runs: Mapping[str, Sequence[Outcome]], seconds: float) -> Iterator[Figure]:
    name = "dumbbell, ten UDP flows"
    yield _speed(name, runs, UDP_TARGET)
    yield _delivered(name, runs)
    expected_s = udp_dumbbell_delay_s()
    met = alike(median(run.mean_delay_s for run in runs["ours"]), expected_s, DELAY_TOLERANCE)
    yield _delay(name, runs, expected_s, met, f"{seconds:g} s; {_FRAMING}")


def _tcp_dumbbell(runs: Mapping[str, Sequence[Outcome]]) -> Iterator[Figure]:
    name = "dumbbell, ten CUBIC flows"
    yield _speed(name, runs, TCP_TARGET)
    yield _beside(
        f"{name}: goodput of all",
        "Mbit/s",
        runs,
        lambda run: run.goodput_bps / 1e6,
        TCP_TOLERANCE,
        "as ns-3 within 2 %",
        "a full segment is 1538 bytes on the wire here, and 1502 in ns-3: 2.4 % of the line",
    )
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
    met = first.mean_delay_s >= unqueued_s * (1 - DELAY_TOLERANCE)
    yield _delay(name, runs, unqueued_s, met, f"without waiting, the least that it can be; {_FRAMING}")


def growth(small: float, large: float, small_count: float, large_count: float) -> float:
    """Return by how much a quantity grows for one more of what is counted."""
    return (large - small) / (large_count - small_count)


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
        None if NS3 not in each else ours[0] < each[NS3][0],
        f"growth of the most that the whole process took, from {hosts[0]} to {hosts[1]} hosts; with a host come 0.3 "
        "switches, three links and a flow",
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
        None if NS3 not in each else ours[0] < each[NS3][0],
        f"what links of {LONG_DELAY_US / 1e6:g} s add to the process, from {hosts[0]} to {hosts[1]} hosts",
    )
