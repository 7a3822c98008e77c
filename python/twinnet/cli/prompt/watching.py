"""Watching ports at the prompt, as ``ifstat`` does: ``watch``."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from twinnet.cli.prompt.answer import Answer
from twinnet.errors import BadValue, UsageError, did_you_mean
from twinnet.lab.lab import Lab
from twinnet.lab.port_sampler import PortSampler
from twinnet.results.port_samples import PortSamples
from twinnet.units import Picoseconds, duration_ps, format_rate

__all__ = ["Watches"]

_USAGE = (
    "write: watch s1-eth1 [s1-eth2]... INTERVAL [DURATION] to see ten intervals or so long, "
    "watch s1-eth1 100ms FILE.csv to go on in the background, and watch stop [FILE.csv] to write that file"
)
_USUAL_INTERVALS = 10


class Watches:
    """The samplers that write a file when they are stopped, by its path.

    Parameters
    ----------
    show
        Takes each line while ports are watched; `None` when nothing is to be shown before the answer.
    """

    def __init__(self, show: Callable[[str], None] | None = None) -> None:
        self.running: dict[str, PortSampler] = {}
        self._show = show

    def command(self, lab: Lab, arguments: Sequence[str]) -> Answer:
        """Show the rates of ports interval by interval, or begin or end to write them to a file."""
        if list(arguments[:1]) == ["stop"]:
            return self.stop(list(arguments[1:]) or None)
        if not arguments:
            return Answer(list(self.running), "\n".join(self.running) or "nothing is watched")
        interfaces, interval, rest = _split(lab, arguments)
        path = rest.pop() if rest and rest[-1].endswith(".csv") else None
        if len(rest) > 1:
            raise BadValue(f"watch does not understand {rest[1]!r} there", _USAGE)
        if path is not None and path in self.running:
            raise BadValue(f"{path} is being written already", "watch stop first")
        if path is not None:
            _check_writable(path)
        length_ps = duration_ps(rest[0], "duration") if rest else None
        if length_ps is not None and length_ps < duration_ps(interval, "interval"):
            raise BadValue(f"the duration {rest[0]} is shorter than the interval {interval}", _USAGE)
        sampler = lab.sample(interfaces, interval)
        if path is not None and length_ps is None:
            self.running[path] = sampler
            return Answer({"watch": interfaces, "path": path})
        count = _USUAL_INTERVALS if length_ps is None else length_ps // duration_ps(interval, "interval")
        samples = self._follow(lab, sampler, count)
        return _written(samples, path) if path is not None else _shown(samples, self._show is None)

    def stop(self, paths: Sequence[str] | None = None) -> Answer:
        """End the samplers of `paths` (default: all) and write their files."""
        answers: dict[str, Any] = {}
        lines: list[str] = []
        for path in list(self.running) if paths is None else paths:
            if path not in self.running:
                raise BadValue(f"nothing is watched for {path}", did_you_mean(path, self.running))
            answer = _written(self.running.pop(path).stop(), path)
            answers[path] = answer.data
            lines.append(answer.text)
        return Answer(answers, "\n".join(lines))

    def _follow(self, lab: Lab, sampler: PortSampler, count: int) -> PortSamples:
        """Let `count` intervals pass, and show each; Ctrl-C ends them early."""
        with sampler:
            try:
                samples = sampler.read()
                if self._show is not None:
                    self._show(_head(samples))
                for place in range(count):
                    # A nanosecond past its end, so that the interval is in it.
                    end_ps = samples.start_ps + (place + 1) * samples.interval_ps + 1000
                    lab.run_until(Picoseconds(end_ps))
                    samples = sampler.read()
                    if self._show is not None and place < len(samples):
                        self._show(_line(samples, place))
                    if samples.full:
                        break
            except KeyboardInterrupt:
                pass
            return sampler.stop()


def _split(lab: Lab, arguments: Sequence[str]) -> tuple[list[str], str, list[str]]:
    """Return the interfaces, the interval, and what follows it."""
    rest = list(arguments)
    interfaces: list[str] = []
    while rest and not _is_duration(rest[0]):
        if rest[0].replace(".", "", 1).isdigit():
            raise BadValue(f"the interval {rest[0]} has no unit", f"write for example {rest[0]}s, or {rest[0]}ms")
        lab.layout.port(rest[0])
        interfaces.append(rest.pop(0))
    if not interfaces or not rest:
        raise BadValue("watch needs interfaces and an interval", _USAGE)
    return interfaces, rest[0], rest[1:]


def _is_duration(word: str) -> bool:
    try:
        duration_ps(word, "interval")
    except UsageError:
        return False
    return True


def _check_writable(path: str) -> None:
    """Make the file, so that what cannot be written is refused before anything is measured."""
    try:
        Path(path).touch()
    except OSError as error:
        raise BadValue(f"{path} cannot be written: {error.strerror}", "choose another file") from None


def _head(samples: PortSamples) -> str:
    ports = "".join(f"  {name:^33}" for name in samples.ports)
    columns = "".join(f"  {'sent':>12} {'received':>13} {'queued':>6}" for _ in samples.ports)
    return f"{'':>10}{ports}\n{'s':>10}{columns}"


def _line(samples: PortSamples, place: int) -> str:
    end_s = samples.starts_s[place] + samples.interval_s
    words = [f"{end_s:10.3f}"]
    for series in samples.ports.values():
        sent, received = (8 * one[place] / samples.interval_s for one in (series.link_bytes, series.received_bytes))
        # Frames that wait at the end of the interval.
        words.append(f"  {_rate(sent):>12} {_rate(received):>13} {series.backlog_frames[place]:>6}")
        dropped = [f"{counts[place]} {reason}" for reason, counts in series.dropped.items() if counts[place]]
        if dropped:
            words.append(f" (dropped: {', '.join(dropped)})")
    return "".join(words)


def _rate(bps: float) -> str:
    digits = max(len(str(round(bps))) - 4, 0)
    return format_rate(round(round(bps), -digits))


def _shown(samples: PortSamples, with_lines: bool) -> Answer:
    lines = [_head(samples), *(_line(samples, place) for place in range(len(samples)))] if with_lines else []
    lines += [_FULL] if samples.full else []
    return Answer({"rows": samples.rows(), "full": samples.full}, "\n".join(lines))


_FULL = "the sampler keeps no more: it ended before its time"


def _written(samples: PortSamples, path: str) -> Answer:
    rows = samples.rows()
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]) if rows else ["port", "start_s", "length_s"])
        writer.writeheader()
        writer.writerows(rows)
    note = f" ({_FULL})" if samples.full else ""
    data = {"path": path, "intervals": len(samples), "full": samples.full}
    return Answer(data, f"{path}: {len(samples)} intervals of {len(samples.ports)} ports{note}")
