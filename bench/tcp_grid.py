"""One TCP flow over one bottleneck, on a grid of rates, round trips, buffers, losses and congestion controls.

``python -m bench.tcp_grid --clock programs --json FILE`` measures Linux's TCP by programs on the virtual clock,
``--clock wall`` Linux's in real hosts on the wall clock, ``--clock virtual`` the model's, all over the same links;
``python -m bench.tcp_grid_table`` compares them. Each cell has a path of its own - host, switch, bottleneck, switch,
host - and many of them stand side by side in one lab, or each alone with ``--alone``.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

import twinnet as tn
from twinnet.lab.guest_options import BEGINS_S
from twinnet.lab.parts import AppHandle

from bench.machine import describe
from bench.quiet import Quiet
from bench.record import commit, now

__all__ = [
    "ALGORITHMS",
    "BUFFERS",
    "LOSSES",
    "PROCESSING",
    "RATES_MBIT",
    "RTTS_MS",
    "Cell",
    "Flow",
    "batches",
    "cell_of",
    "grid",
    "kept",
    "lab_name",
    "measure",
    "network",
    "valid",
]

Clock = Literal["wall", "virtual", "programs"]
"""What moves the frames, and whose TCP it is: ``programs`` is Linux's, in a guest kernel on the virtual clock."""

RATES_MBIT = (2, 10, 100)
RTTS_MS = (10, 50, 200)
BUFFERS = (0.25, 1.0, 4.0)
LOSSES = (0.0, 0.001, 0.01)
ALGORITHMS = ("cubic", "reno", "bbr")

_FRAME_BYTES = 1514
_ACCESS = "1 Gbit"
_LAB_FLOWS = 40
_LAB_MBIT = 400
"""How many flows a lab may have, and what they carry together: what a machine of two cores keeps its schedule with on
the wall clock. The virtual clock could carry more, but a flow meets the same random losses on both clocks only when it
has the same place in the same lab."""
_CATCH_UP = {"slip_after_ps": 500_000_000}
"""How far the emulation may be behind before it moves its clock: a twentieth of the shortest round trip. Without it
the fast access links, which limit nothing here, would set 40 us."""
PROCESSING: dict[str, dict[str, str]] = {
    "measured": {"processing": "30 us", "processing_jitter": "20 us normal"},
    "none": {},
}
"""What a model host takes for each frame, by the name under which rows have it. *measured* is what passes in a real
host between an acknowledgement and the segment that it lets go: about the mean and the standard deviation of
bench/records/host-turnaround.csv. *none* is the default of model hosts. Without it a few frames of
buffer meet segments always at the same phase (docs/explanation/model-tcp.md)."""
DIFFERING = 0.05
"""The share of Linux's goodput from which on one run is not enough."""
_PATIENCE_S = 600.0
"""How long flows alone may wait together for a quiet machine."""
_START_S = 4
"""When the flows start on the lab's clock: all were described by then."""
_ENDS = (sys.executable, "-I", "-S", str(Path(__file__).with_name("tcp_ends.py")))
_PORT = 5001


@dataclass(frozen=True)
class Cell:
    """One point of the grid.

    Parameters
    ----------
    rate_mbit, rtt_ms
        The bottleneck's line rate, and the round trip without queues.
    buffer_bdp
        The bottleneck's buffer over the bandwidth-delay product.
    loss
        The probability that the bottleneck loses a frame on the way to the receiver.
    algorithm
        The sender's congestion control.
    """

    rate_mbit: int
    rtt_ms: int
    buffer_bdp: float
    loss: float
    algorithm: str

    @property
    def buffer_bytes(self) -> int:
        """The bottleneck's buffer: at least two frames."""
        return max(round(self.buffer_bdp * self.rate_mbit * 1e3 / 8 * self.rtt_ms), 2 * _FRAME_BYTES)

    @property
    def expected_mbit(self) -> float:
        """About what a flow carries: the rate, or what random losses leave of it (Mathis et al. 1997; not for BBR)."""
        if not self.loss or self.algorithm == "bbr":
            return self.rate_mbit
        return min(self.rate_mbit, 1448 * 8 / (self.rtt_ms * 1e3) * sqrt(1.5 / self.loss))

    def seconds(self, short: bool = False) -> int:
        """How long the flow lasts: 30 s, and twice that at the longest round trip; a third when `short`."""
        return (60 if self.rtt_ms >= 200 else 30) // (3 if short else 1)


Flow = tuple[Cell, int]
"""A cell and the number of its replica: the same path once more in one lab, with random losses of its own."""


def grid(only: Sequence[str] = ()) -> list[Cell]:
    """Return all cells, or those that agree with every one of `only` (such as ``rate_mbit=10``)."""
    cells = [Cell(*values) for values in itertools.product(RATES_MBIT, RTTS_MS, BUFFERS, LOSSES, ALGORITHMS)]
    for condition in only:
        name, _, wanted = condition.partition("=")
        if name not in Cell.__dataclass_fields__:
            raise ValueError(
                f"{condition!r} names no field of a cell; fields are {', '.join(Cell.__dataclass_fields__)}"
            )
        cells = [cell for cell in cells if str(getattr(cell, name)) in wanted.split(",")]
    return cells


def batches(flows: Sequence[Flow]) -> Iterator[list[Flow]]:
    """Yield the flows in groups for one lab each: equally long, and together no more than a lab can carry."""
    alike = sorted(flows, key=lambda flow: (flow[0].seconds(), flow[0].rate_mbit))
    for _, group in itertools.groupby(alike, key=lambda flow: (flow[0].seconds(), flow[0].rate_mbit)):
        batch: list[Flow] = []
        for flow in group:
            load = sum(cell.expected_mbit for cell, _ in (*batch, flow))
            if batch and (len(batch) >= _LAB_FLOWS or load > _LAB_MBIT):
                yield batch
                batch = []
            batch.append(flow)
        yield batch


def lab_name(flows: Sequence[Flow]) -> str:
    """Return what tells labs with other flows apart: in two labs of one name each place has the same losses."""
    return hashlib.sha256(repr([(asdict(cell), replica) for cell, replica in flows]).encode()).hexdigest()[:16]


def network(cells: Sequence[Cell], seed: int, processing: str = "measured") -> tn.Network:
    """Return a network with a path for each cell: ``aN`` sends, ``bN`` receives, ``lN`` to ``rN`` is the bottleneck."""
    hosts = PROCESSING[processing]
    net = tn.Network(seed=seed)
    for number, cell in enumerate(cells):
        left, right = net.switch(f"l{number}"), net.switch(f"r{number}")
        net.link(net.host(f"a{number}", **hosts), left, rate=_ACCESS)
        net.link(net.host(f"b{number}", **hosts), right, rate=_ACCESS)
        net.link(
            left,
            right,
            rate=f"{cell.rate_mbit} Mbit",
            delay=f"{cell.rtt_ms / 2} ms",
            queue_a=tn.qos.Fifo(limit=tn.units.Bytes(cell.buffer_bytes)),
            a_to_b={"loss": f"{100 * cell.loss:g} %"} if cell.loss else None,
        )
    return net


def measure(
    flows: Sequence[Flow], clock: Clock, seed: int, short: bool = False, processing: str = "measured"
) -> list[dict[str, Any]]:
    """Run one lab with all of `flows` and return a row for each."""
    cells = [cell for cell, _ in flows]
    net = network(cells, seed, processing)
    seconds = max(cell.seconds(short) for cell in cells)
    if clock == "programs":
        found, told = _by_programs(net, cells, seed, seconds)
        return _rows(flows, clock, seed, seconds, found, told)
    lab_of: Any = net.emulate(**_CATCH_UP) if clock == "wall" else net.simulate(seed=seed)
    with lab_of as lab:
        started = [
            lab.start(
                tn.apps.tcp_bulk(
                    f"a{number}", f"b{number}", duration=f"{seconds} s", congestion_control=cell.algorithm
                ),
                at=f"{_START_S} s",
            )
            for number, cell in enumerate(cells)
        ]
        if lab.now() > _START_S:
            raise OSError(
                f"{len(flows)} flows took {lab.now():.1f} s to describe, more than the {_START_S} s they have"
            )
        lab.run_until(f"{_START_S + seconds} s")
        fidelity = _fidelity(lab, clock)
        told = {
            "processing": processing if clock == "virtual" else None,
            **({"fidelity": fidelity} if fidelity else {}),
        }
        return _rows(flows, clock, seed, seconds, [_of_flow(flow, seconds) for flow in started], told)


def _rows(
    flows: Sequence[Flow],
    clock: Clock,
    seed: int,
    seconds: int,
    found: Sequence[Mapping[str, Any]],
    told: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """Return a row for each of `flows`: where it was, what was `found` of it, and what is `told` of its lab."""
    return [
        {
            **asdict(cell),
            "clock": clock,
            "processing": None,
            "seed": seed,
            "replica": replica,
            "lab": lab_name(flows),
            "place": place,
            "seconds": seconds,
            "commit": commit(),
            "date": now(),
            **of_flow,
            **told,
        }
        for place, ((cell, replica), of_flow) in enumerate(zip(flows, found, strict=True))
    ]


def _by_programs(
    net: tn.Network, cells: Sequence[Cell], seed: int, seconds: int
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return each flow's goodput by Linux's TCP in a guest kernel, and what tells the run from others: the hash of its
    trace, and the kernel."""
    first, last = _START_S + seconds // 3, _START_S + seconds
    with net.simulate(hosts="programs", seed=seed) as lab:
        sinks = [
            lab[f"b{number}"].popen([*_ENDS, "sink", str(_PORT), *map(str, (BEGINS_S, first, last))])
            for number in range(len(cells))
        ]
        for number, cell in enumerate(cells):
            words = [str(lab[f"b{number}"].ip), str(_PORT), *map(str, (BEGINS_S, _START_S)), cell.algorithm]
            lab[f"a{number}"].popen([*_ENDS, "source", *words], stdout=tn.lab.DEVNULL, stderr=tn.lab.DEVNULL)
        if lab.now() >= _START_S:
            raise OSError(f"the ends of {len(cells)} flows stood after {lab.now():.1f} s, not before {_START_S} s")
        lab.run_until(f"{last} s")
        trace = lab.trace_hash
        found: list[dict[str, Any]] = []
        for sink in sinks:
            said, error = (text.decode().strip() for text in sink.communicate())
            errors = {} if said else {"errors": [error or "nothing was received"]}
            found.append({"goodput_bps": int(said) * 8 / (last - first) if said else None, **errors})
        return found, {"trace": trace, "kernel": lab.started["kernel"]}


def _of_flow(flow: AppHandle, seconds: int) -> dict[str, Any]:
    """Return goodput over the last two thirds of a flow, as its receiver counted, and the errors of both ends."""
    errors = [error for report in flow.reports() for one in report.flows for error in one.errors]
    heard = flow.report()
    if heard.intervals is None or heard.role != "sink":
        return {"goodput_bps": None, "errors": [*errors, "nothing was received"]}
    first, last = _START_S + seconds // 3, _START_S + seconds
    counts = zip(heard.intervals.starts_s, heard.intervals.bytes, strict=True)
    received = sum(count for start, count in counts if first <= start < last)
    return {"goodput_bps": received * 8 / (last - first), **({"errors": errors} if errors else {})}


def _fidelity(lab: tn.Lab, clock: Clock) -> dict[str, Any] | None:
    """Return how well the lab kept its schedule; ``None`` on a clock that cannot miss it."""
    if clock == "virtual":
        return None
    record = lab.fidelity()
    verdict = record.verdict()
    return {
        "verdict": verdict.state,
        "reasons": list(verdict.reasons),
        "lateness_p999_ns": record.lateness_ns.p999,
        "slipped_share": record.slipped_share,
        "overload_drops": record.overload_drops,
        "steal_s": record.steal_s,
    }


def kept(row: Mapping[str, Any]) -> bool:
    """Whether a row counts: something was received, and its lab kept its schedule."""
    return row["goodput_bps"] is not None and row.get("fidelity", {}).get("verdict") != "invalid"


def valid(row: Mapping[str, Any]) -> bool:
    """Whether a row is of Linux, and its lab says that it can be trusted."""
    return row["clock"] == "wall" and row["goodput_bps"] is not None and row["fidelity"]["verdict"] == "valid"


def cell_of(row: Mapping[str, Any]) -> Cell:
    """Return the cell that a row is of."""
    return Cell(**{name: row[name] for name in Cell.__dataclass_fields__})


def _labs(wanted: argparse.Namespace, cells: Sequence[Cell], rows: Sequence[Mapping[str, Any]]) -> Iterator[_Lab]:
    """Yield the labs that are still to be run, with the seed of each; one that missed its schedule is run again."""
    known = {_run_of(row) for row in rows if kept(row)}
    processing = wanted.processing if wanted.clock == "virtual" else None
    if wanted.twins:
        labs: dict[tuple[str, int, bool], dict[int, Flow]] = {}
        for row in rows:
            if row["clock"] != "virtual" and (row["lab"], "virtual", processing, row["seed"]) not in known:
                short = row["seconds"] < cell_of(row).seconds()
                labs.setdefault((row["lab"], row["seed"], short), {})[row["place"]] = (cell_of(row), row["replica"])
        for (_, seed, short), lab in labs.items():
            yield [flow for _, flow in sorted(lab.items())], seed, short
        return
    if wanted.differing is not None:
        # The first run of a cell is that of `--missing`.
        differing = _differing(rows)
        cells = [cell for cell in cells if cell in differing]
    runs = wanted.repetitions if wanted.differing is None else wanted.differing
    for seed in range(wanted.seed, wanted.seed + runs):
        # On the virtual clock a path without random losses is the same again, but for the phases that BBR draws.
        again = wanted.clock == "programs" and seed > wanted.seed
        flows = [
            (cell, replica)
            for replica in range(wanted.replicas)
            for cell in cells
            if cell.loss or (replica == 0 and not again)
        ]
        for batch in ([flow] for flow in flows) if wanted.alone else batches(flows):
            if (lab_name(batch), wanted.clock, processing, seed) not in known:
                yield batch, seed, wanted.short


def _differing(rows: Sequence[Mapping[str, Any]]) -> set[Cell]:
    """Return the cells whose runs on both clocks differ by more than `DIFFERING`, or of which no run is valid."""
    found: set[Cell] = set()
    for cell in {cell_of(row) for row in rows if row["clock"] == "wall" and kept(row)}:
        of = [row for row in rows if cell_of(row) == cell and kept(row)]
        linux = [row["goodput_bps"] for row in of if valid(row)]
        model = [row["goodput_bps"] for row in of if row["clock"] == "virtual" and row["processing"] == "measured"]
        if not linux or not model or abs(fmean(model) / fmean(linux) - 1) > DIFFERING:
            found.add(cell)
    return found


_Lab = tuple[list[Flow], int, bool]
"""The flows of a lab, its seed, and whether they last a third of the time."""


def _run_of(row: Mapping[str, Any]) -> tuple[str, Clock, str | None, int]:
    return row["lab"], row["clock"], row.get("processing"), row["seed"]


def main() -> int:
    """Measure what was asked for; every lab's rows are on disk before the next one starts."""
    parser = argparse.ArgumentParser(prog="python -m bench.tcp_grid", description="Measure one TCP flow on a grid.")
    parser.add_argument(
        "--clock",
        choices=("wall", "virtual", "programs"),
        default="wall",
        help="wall: Linux in real hosts; programs: Linux on the virtual clock; virtual: the model",
    )
    parser.add_argument(
        "--json", type=Path, required=True, metavar="FILE", help="where the rows go; rows there are kept"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the first repetition")
    parser.add_argument("--repetitions", type=int, default=1)
    parser.add_argument("--replicas", type=int, default=1, help="of cells with random losses, side by side in a lab")
    parser.add_argument("--short", action="store_true", help="a third of the time: for a first look")
    parser.add_argument("--only", action="append", default=[], metavar="FIELD=VALUE,...", help="such as rate_mbit=2,10")
    parser.add_argument("--processing", choices=tuple(PROCESSING), default="measured", help="of model hosts")
    parser.add_argument("--alone", action="store_true", help="a lab for each flow, when the machine is quiet")
    parser.add_argument("--twins", action="store_true", help="the labs that FILE has of Linux, with the model")
    parser.add_argument("--missing", action="store_true", help="only cells of which FILE has no run of this clock yet")
    parser.add_argument(
        "--differing", type=int, metavar="N", help="N runs of cells that FILE has and where the clocks differ"
    )
    parser.add_argument("--attempts", type=int, default=3, help="at a flow alone whose lab missed its schedule")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no lab after so long; go on later")
    wanted = parser.parse_args()
    if wanted.twins:
        wanted.clock = "virtual"
    try:
        cells = grid(wanted.only)
    except ValueError as error:
        parser.error(str(error))
    known: dict[str, Any] = {"machines": [], "rows": []}
    if wanted.json.exists():
        known = json.loads(wanted.json.read_text())
    rows: list[dict[str, Any]] = known["rows"]
    if wanted.missing:
        there = {cell_of(row) for row in rows if row["clock"] == wanted.clock and kept(row)}
        cells = [cell for cell in cells if cell not in there]
    known["machines"].append(describe())
    machine = len(known["machines"]) - 1
    until = time.monotonic() + 60 * wanted.minutes
    quiet = Quiet(_PATIENCE_S)
    for batch, seed, short in _labs(wanted, cells, rows):
        for _ in range(wanted.attempts if wanted.alone and wanted.clock == "wall" else 1):
            if time.monotonic() > until:
                print("The time is used up; the same command goes on from here.")
                return 1
            if wanted.alone and wanted.clock == "wall":
                quiet.wait()
            found = measure(batch, wanted.clock, seed, short, wanted.processing)
            found = [{**row, "machine": machine} for row in found]
            print(_line(found), flush=True)
            if all(map(kept, found)):
                break
        rows[:] = [row for row in rows if _run_of(row) != _run_of(found[0])] + found
        _write(wanted.json, known)
    return 1 if any(row["goodput_bps"] is None for row in rows) else 0


def _write(path: Path, report: dict[str, Any]) -> None:
    """Write aside, then rename: an interruption loses no row that was measured. Each row has a line of its own."""
    parts = [
        f"{json.dumps(name)}: [\n" + ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows) + "\n]"
        for name, rows in report.items()
    ]
    aside = path.with_name(f".{path.name}.new")
    aside.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")
    aside.replace(path)


def _line(rows: Sequence[dict[str, Any]]) -> str:
    one = rows[0]
    shares = [(row["goodput_bps"] or 0) / row["rate_mbit"] / 1e4 for row in rows]
    kept = one["fidelity"]["verdict"] if "fidelity" in one else "exact"
    return (
        f"{one['clock']}, seed {one['seed']}: {len(rows)} flows at {one['rate_mbit']} Mbit/s, {one['seconds']} s: "
        f"{min(shares):.0f} to {max(shares):.0f} % of the rate, schedule {kept}"
    )


if __name__ == "__main__":
    sys.exit(main())
