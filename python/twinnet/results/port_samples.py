"""Counts at ports, interval by interval, from a lab's samplers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from twinnet.results.read_fields import Reported
from twinnet.results.shown import ShownInUnits, html_section

if TYPE_CHECKING:
    import polars as pl

__all__ = ["DROP_COUNTERS", "DROP_REASONS", "PortSamples", "PortSeries"]

DROP_REASONS = ("overlimit", "early", "unclassified", "down", "oversize", "unfragmentable", "loss", "loop")
"""The reasons for which frames are dropped: `overlimit`, `early` and `unclassified` by the queue, `down` for the
link, `oversize` for its MTU, `unfragmentable` by a tunnel, `loss` on the line, `loop` on arrival, after too many
switches."""

DROP_COUNTERS = {reason: f"dropped_{reason}" for reason in DROP_REASONS} | {"loss": "lost"}
"""The counters of a port by reason, as the lab protocol names them."""


@dataclass(frozen=True)
class PortSeries:
    """One port: an entry of each series for each interval.

    Parameters
    ----------
    frames, link_bytes, wire_bytes
        What it sent: frames whose last bit left in the interval, their bytes with the Ethernet header, and those on the
        wire, with padding, preamble, check sequence and gap.
    received_frames, received_bytes
        What arrived at it; bytes with the Ethernet header.
    drops
        Frames that it was to send and that did not arrive.
    dropped
        Frames that were dropped, by reason (``DROP_REASONS``); all but `loop` are among `drops`.
    marked
        Frames marked as having met congestion instead of being dropped.
    backlog_frames, backlog_bytes
        What waited at the end of the interval.
    """

    frames: tuple[int, ...]
    link_bytes: tuple[int, ...]
    wire_bytes: tuple[int, ...]
    received_frames: tuple[int, ...]
    received_bytes: tuple[int, ...]
    drops: tuple[int, ...]
    dropped: Mapping[str, tuple[int, ...]]
    marked: tuple[int, ...]
    backlog_frames: tuple[int, ...]
    backlog_bytes: tuple[int, ...]

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> PortSeries:
        """Return the series in the form of the lab protocol."""
        dropped = {reason: tuple(spec[column]) for reason, column in DROP_COUNTERS.items()}
        plain = {name: tuple(spec[name]) for name in cls.__dataclass_fields__ if name != "dropped"}
        return cls(dropped=dropped, **plain)


@dataclass(frozen=True, repr=False)
class PortSamples(Reported, ShownInUnits):
    """The counts of a sampler.

    Parameters
    ----------
    interval_ps
        The length of an interval.
    start_ps
        When the first began, on the lab's clock.
    full
        Whether the sampler ended because it keeps no more: 1,048,576 intervals, of all its ports together.
    ports
        The series by interface.
    """

    interval_ps: int
    start_ps: int
    full: bool
    ports: Mapping[str, PortSeries]

    def __getitem__(self, interface: str) -> PortSeries:
        """Return the series of the port `interface`; raises `KeyError` when it is not sampled."""
        return self.ports[interface]

    def __len__(self) -> int:
        """Return how many intervals there are."""
        return min((len(series.frames) for series in self.ports.values()), default=0)

    @property
    def interval_s(self) -> float:
        """The length of an interval in seconds."""
        return self.interval_ps / 1e12

    @property
    def starts_s(self) -> tuple[float, ...]:
        """The start of each interval, in seconds of the lab's clock."""
        return tuple((self.start_ps + place * self.interval_ps) / 1e12 for place in range(len(self)))

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each port and interval: counts, and rates in bit/s."""
        found: list[dict[str, Any]] = []
        starts = self.starts_s
        for name, series in self.ports.items():
            columns = {key: getattr(series, key) for key in series.__dataclass_fields__ if key != "dropped"}
            columns |= {f"dropped_{reason}": counts for reason, counts in series.dropped.items()}
            for place, start_s in enumerate(starts):
                row: dict[str, Any] = {"port": name, "start_s": start_s, "length_s": self.interval_s}
                row |= {key: counts[place] for key, counts in columns.items()}
                row["sent_bps"] = row["link_bytes"] * 8 / self.interval_s
                row["received_bps"] = row["received_bytes"] * 8 / self.interval_s
                found.append(row)
        return found

    @property
    def table(self) -> pl.DataFrame:
        """A row for each port and interval, with the columns of the table `port_samples` of a study, and rates."""
        import polars as pl

        from twinnet.results.tables import PORT_SAMPLES

        schema = PORT_SAMPLES | {"sent_bps": pl.Float64, "received_bps": pl.Float64}
        return pl.DataFrame([{name: row[name] for name in schema} for row in self.rows()], schema=schema, orient="row")

    def __str__(self) -> str:
        """Return what was sampled in one line."""
        cut = "; the sampler was full and ended early" if self.full else ""
        return f"{len(self)} intervals of {self.interval_s:g} s at {', '.join(self.ports)}{cut}"

    def _repr_html_(self) -> str:
        return html_section(str(self), [self.table])
