"""A finished run of a study as the page shows it: its network, and what its sampled ports did."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinnet.drawing import picture_of
from twinnet.drawing.picture import MOST_LIVE_NODES
from twinnet.errors import BadValue, TwinnetError, did_you_mean
from twinnet.live.kept_traffic import traffic_of_run
from twinnet.live.recording import Recording
from twinnet.live.repetitions import means_of
from twinnet.live.watch import DROPS, is_lossy, more_of_way, record_of_network, with_more
from twinnet.study.filled_ports import loads_at
from twinnet.study.mixes import drawn_traffic
from twinnet.study.network_of import network_of
from twinnet.study.store import ResultStore
from twinnet.units import PS_PER_SECOND

if TYPE_CHECKING:
    import polars as pl

    from twinnet.study.analysis import Analysis
    from twinnet.study.resolution import Study
    from twinnet.study.specification import StudySpecification
    from twinnet.study.store import StoredRun

__all__ = ["FinishedRun", "runs_with_samples", "served_page", "write_page", "write_recordings"]

_FOLDER = "runs"
_MOST_RECORDINGS = 64
_MOST_BYTES = 100_000_000
"""Of all pages of runs that belong to a report. One takes 110 kB for the page itself, and about 30 ms to be made."""
_LATE_MS = 1.0
"""As :attr:`~twinnet.results.fidelity_counts.Lateness.late` counts."""


@dataclass(frozen=True)
class FinishedRun:
    """A run of a study, or the mean of several.

    Attributes
    ----------
    name
        Its name: that of its folder.
    network
        Its network as :func:`~twinnet.live.watch.network_record` gives it.
    ticks
        What each direction of a link did in each interval, as :meth:`~twinnet.live.watch.LabWatch.look` gives it;
        times count from the start of the run's traffic. Of ports that were not sampled nothing is known: ``None``.
    """

    name: str
    network: Mapping[str, Any]
    ticks: Sequence[Mapping[str, Any]]

    @classmethod
    def read(cls, results: Path, name: str) -> FinishedRun:
        """Return the run of the results in the folder `results` whose name is or begins with `name`. Of several that
        are repetitions of one combination of levels it is their mean.

        Raises
        ------
        BadValue
            There is none, there are several of different levels, or the study sampled no ports.
        """
        store = ResultStore(results)
        study = store.read_study()
        found = [run for run in store.all_runs() if run.record["status"] == "finished"]
        chosen = [run for run in found if run.id == name] or [run for run in found if run.id.startswith(name)]
        if not chosen:
            raise BadValue(f"{results} has no finished run {name!r}", did_you_mean(name, [run.id for run in found]))
        if any((run.levels, run.record["clock"]) != (chosen[0].levels, chosen[0].record["clock"]) for run in chosen):
            names = ", ".join(run.id for run in chosen[:5])
            raise BadValue(
                f"{len(chosen)} runs of different levels begin with {name!r}: {names}", "write more of the name"
            )
        return cls._mean([cls.of(study, run) for run in chosen])

    @classmethod
    def _mean(cls, runs: Sequence[FinishedRun]) -> FinishedRun:
        first = runs[0]
        if len(runs) == 1:
            return first
        if any(run.network["links"] != first.network["links"] for run in runs):
            raise BadValue(f"the repetitions of {first.name} have different networks", "name one of them")
        means = means_of([run.ticks for run in runs], [run.name for run in runs])
        mean = f"{first.network['lab']}, mean of {len(runs)} runs"
        told = {"lab": mean, "repetitions": len(runs), "traffic": None}
        return cls(f"{first.name}-mean-of-{len(runs)}", {**first.network, **told}, means)

    @classmethod
    def of(cls, study: Study, run: StoredRun) -> FinishedRun:
        """Return `run` of `study`; raises `BadValue` when no ports were sampled, and what its network raises."""
        samples = run.table("port_samples")
        if samples.is_empty():
            raise BadValue(
                f"the run {run.id} has no samples of ports", "measure queue_length or queue_drops of ports in the study"
            )
        try:
            specification = study.at(run.levels)
            network = network_of(specification, run.levels, int(run.record["seed"]))
            zero_ps, judged = int(run.record["notes"]["zero_ps"]), _Judgement(run)
        except TwinnetError:
            raise
        except (KeyError, TypeError, ValueError) as error:
            raise BadValue(f"the record of the run {run.id} was altered: {error}", "make the run again") from None
        spec = network.to_spec()
        nodes = {node["name"]: node for node in spec["nodes"]}
        ends = [
            (link["a"]["node"], link["b"]["node"], _port(nodes, link["a"]), _port(nodes, link["b"]))
            for link in spec["links"]
        ]
        shown = record_of_network(f"{study.name}: {run.id}", picture_of(network, MOST_LIVE_NODES), ends)
        shown["filled"] = _filled(specification, run)
        shown["followed"] = run.record["notes"].get("ways", [])
        shown["traffic"] = traffic_of_run(run)
        lines = _Lines(spec, zero_ps)
        ports = [port for _, _, *both in ends for port in both]
        ticks: list[Mapping[str, Any]] = []
        for now_s, length_s, rows in _intervals(samples):
            now = [lines.at(place, now_s - length_s) for place in range(len(ports))]
            ways = [_way(rows.get(port), line, length_s) for port, line in zip(ports, now, strict=True)]
            ticks.append({"now_s": now_s, "elapsed_s": length_s, "ways": ways, "verdict": judged.at(now_s)})
        return cls(run.id, shown | {"control": False}, ticks)


def runs_with_samples(results: Path) -> list[str]:
    """Return the names of the finished runs in the folder `results` of which ports were sampled."""
    runs = (run for run in ResultStore(results).all_runs() if run.record["status"] == "finished")
    return [run.id for run in runs if not run.table("port_samples").is_empty()]


def write_page(runs: Sequence[FinishedRun], out: str | os.PathLike[str]) -> None:
    """Write one run, or two side by side, as the HTML file `out`.

    Raises
    ------
    BadValue
        The two have different links, or no file can be written there.
    """
    first, *others = runs
    for other in others:
        if other.network["links"] != first.network["links"]:
            raise BadValue(
                f"{first.name} and {other.name} have different links", "set runs of one network side by side"
            )
    recording = Recording(first.network, out)
    for tick in first.ticks:
        recording.add(tick)
    beside = [{"name": other.name, "ticks": list(other.ticks)} for other in others]
    recording.write(beside=beside[0] if beside else None)


def served_page(run: FinishedRun) -> str:
    """Return the page of a run, for a server that has the page's files, too."""
    recording = Recording(run.network, None)
    for tick in run.ticks:
        recording.add(tick)
    return recording.served()


def write_recordings(analysis: Analysis, folder: Path) -> dict[str, str]:
    """Write the first run of each combination of levels as a page in a folder within `folder`, as far as ports were
    sampled, and return the places of the pages there by the names of the runs. No more are written than 64 pages with
    100 MB together."""
    first: dict[tuple[tuple[str, str], ...], StoredRun] = {}
    for run in sorted(analysis.stored.values(), key=lambda run: run.repetition):
        first.setdefault(tuple(sorted(run.levels.items())), run)
    found: dict[str, str] = {}
    left_bytes = _MOST_BYTES
    for run in first.values():
        if len(found) == _MOST_RECORDINGS:
            break
        place = f"{_FOLDER}/{run.id}.html"
        try:
            finished = FinishedRun.of(analysis.study, run)
            (folder / _FOLDER).mkdir(parents=True, exist_ok=True)
            write_page([finished], folder / place)
            left_bytes -= (folder / place).stat().st_size
            if left_bytes < 0:
                (folder / place).unlink()
                break
        except (TwinnetError, OSError):
            # No ports were sampled, the study was changed since, its network is too large to be drawn, or the folder
            # cannot be written to, which the report itself says.
            continue
        found[run.id] = place
    return found


def _filled(specification: StudySpecification, run: StoredRun) -> list[dict[str, Any]]:
    """The directions of links that the run's traffic was to fill: ``way``, the place in a tick's ``ways``, and
    ``words``."""
    seed = int(run.record["seed"])
    drawn = drawn_traffic(specification.mixes, specification.traffic, seed)
    loads = loads_at(specification.model_copy(update={"traffic": drawn}), run.levels, seed)
    return [
        {"way": place, "words": f"{load.words}: to be filled by {', '.join(load.filled_by)}"}
        for place, load in enumerate(loads)
        if load.filled_by
    ]


def _port(nodes: Mapping[str, Mapping[str, Any]], end: Mapping[str, Any]) -> str:
    return str(nodes[end["node"]]["ports"][end["port"]]["name"])


def _intervals(samples: pl.DataFrame) -> Iterator[tuple[float, float, Mapping[str, Mapping[str, Any]]]]:
    """The end and the length of each interval, and its rows by port."""
    for _, rows in samples.sort("start_s").group_by("start_s", maintain_order=True):
        by_port = {row["port"]: row for row in rows.iter_rows(named=True)}
        length_s = float(rows["length_s"][0])
        yield float(rows["start_s"][0]) + length_s, length_s, by_port


def _way(row: Mapping[str, Any] | None, line: tuple[int | None, bool, bool], length_s: float) -> list[Any] | None:
    """What one direction did, in the form of :func:`~twinnet.live.watch.way_record`."""
    if row is None:
        return None
    line_bps, up, lossy = line
    load = round(row["wire_bytes"] * 8 / length_s / line_bps, 4) if line_bps else None
    plain = [round(row["link_bytes"] * 8 / length_s), load, row["backlog_frames"], row["drops"], up, line_bps]
    return with_more(plain, more_of_way({one: row[f"dropped_{one}"] for one in DROPS}, row["marked"], lossy))


class _Lines:
    """The line rate of each direction, whether it is up, and whether it loses frames by chance, as the network's
    description and its schedule say. Asked with times that rise."""

    def __init__(self, spec: Mapping[str, Any], zero_ps: int) -> None:
        self._now = [
            [link[way].get("rate_bps"), link["up"], is_lossy(link[way])]
            for link in spec["links"]
            for way in ("ab", "ba")
        ]
        self._zero_s = zero_ps / PS_PER_SECOND
        changes: Sequence[Mapping[str, Any]] = spec["schedule"]
        self._coming = iter([*changes, None])
        self._next = next(self._coming)

    def at(self, place: int, time_s: float) -> tuple[int | None, bool, bool]:
        """Return the rate in bit/s (``None``: none), whether it is up and whether it loses frames by chance, `time_s`
        after the start of traffic."""
        while self._next is not None and self._next["at_ps"] / PS_PER_SECOND <= time_s + self._zero_s:
            change = self._next["set"]
            for offset, way in enumerate(("ab", "ba")):
                if change["direction"] in (way, "both"):
                    line = self._now[2 * change["link"] + offset]
                    line[0] = change["set"].get("rate_bps", line[0])
                    line[1] = change["set"].get("up", line[1])
                    line[2] = is_lossy(change["set"]) if "loss" in change["set"] else line[2]
            self._next = next(self._coming)
        rate_bps, up, lossy = self._now[place]
        return rate_bps, bool(up), lossy


class _Judgement:
    """The verdict of a run, and the times for which it was late. Asked with times that rise."""

    def __init__(self, run: StoredRun) -> None:
        looks = run.table("fidelity").sort("start_s")
        self._looks = list(looks.iter_rows(named=True))
        reasons = [str(one) for one in run.record["fidelity"].get("reasons", ())]
        self._verdict: dict[str, Any] = {
            "state": run.verdict,
            "reasons": reasons,
            "covers_s": float(run.record["elapsed_s"]),
        }
        self._place = 0
        self._late: dict[str, float] = {"at_s": 0, "late_s": 0}

    def at(self, now_s: float) -> dict[str, Any]:
        """Return the verdict, and how long the lab was late according to the looks at it since the last call: from the
        first of them that found it late to the last, ``at_s``."""
        since = self._place
        while self._place < len(self._looks) and _end(self._looks[self._place]) <= now_s:
            self._place += 1
        late = [look for look in self._looks[since : self._place] if _was_late(look)]
        if late:
            self._late = {"at_s": _end(late[-1]), "late_s": _end(late[-1]) - float(late[0]["start_s"])}
        elif self._place > since:
            self._late = {"at_s": _end(self._looks[self._place - 1]), "late_s": 0}
        return self._verdict | self._late


def _was_late(look: Mapping[str, Any]) -> bool:
    return bool(look["slips"] or look["lost_frames"] or (look["lateness_max_ms"] or 0) > _LATE_MS)


def _end(look: Mapping[str, Any]) -> float:
    return float(look["start_s"] + look["length_s"])
