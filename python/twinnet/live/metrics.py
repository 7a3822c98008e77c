"""What a running lab counts, as text for Prometheus (its exposition format, version 0.0.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from twinnet.live.watch import DROPS

if TYPE_CHECKING:
    from twinnet.lab.lab import Lab

__all__ = ["CONTENT_TYPE", "metrics_text"]

Row = Mapping[str, Any]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_STATES = ("valid", "doubtful", "invalid")
_OF_PORTS = (
    ("frames_total", "counter", "Frames whose last bit has left the port.", "frames"),
    ("bytes_total", "counter", "Bytes of these frames, from the Ethernet header on.", "link_bytes"),
    ("wire_bytes_total", "counter", "Bytes of these frames on the wire, with preamble, FCS and gap.", "wire_bytes"),
    ("marked_total", "counter", "Frames marked for congestion (ECN) instead of dropped.", "marked"),
    ("queue_frames", "gauge", "Frames that wait at the port.", "backlog_frames"),
    ("queue_bytes", "gauge", "Bytes that wait at the port.", "backlog_bytes"),
)


def metrics_text(lab: Lab, hides_settings: Callable[[], bool] = lambda: False) -> str:
    """Return the counters of all ports of `lab` that lead to a link, its time and its verdict; and the line rates,
    unless it then `hides_settings`.

    Raises
    ------
    LabClosed
        The lab has ended.
    TimeoutError
        It does not answer.
    """
    return "".join(f"{line}\n" for line in _lines(lab, hides_settings))


def _lines(lab: Lab, hides_settings: Callable[[], bool]) -> Iterator[str]:
    name = {"lab": lab.name}
    yield from _head("twinnet_lab_time_seconds", "gauge", "The time of the lab's clock.")
    yield _sample("twinnet_lab_time_seconds", name, lab.now())
    state = lab.fidelity().verdict().state
    yield from _head("twinnet_fidelity", "gauge", "The fidelity verdict: 1 for the state that holds.")
    for one in _STATES:
        yield _sample("twinnet_fidelity", name | {"state": one}, int(one == state))
    ways = list(_ways(lab.links(), name))
    for metric, kind, text, counter in _OF_PORTS:
        yield from _head(f"twinnet_port_{metric}", kind, text)
        for labels, row in ways:
            yield _sample(f"twinnet_port_{metric}", labels, row["counters"][counter])
    yield from _head("twinnet_port_dropped_total", "counter", "Frames to be sent that did not arrive, by reason.")
    for labels, row in ways:
        for reason, counter in DROPS.items():
            yield _sample("twinnet_port_dropped_total", {**labels, "reason": reason}, row["counters"][counter])
    yield from _head("twinnet_port_up", "gauge", "1 if the link carries frames.")
    for labels, row in ways:
        yield _sample("twinnet_port_up", labels, int(bool(row["up"])))
    if hides_settings():
        return
    yield from _head("twinnet_port_line_rate_bits_per_second", "gauge", "The line rate; none for links without one.")
    for labels, row in ways:
        config: Row = row["config"] or {}
        if config.get("rate_bps"):
            yield _sample("twinnet_port_line_rate_bits_per_second", labels, config["rate_bps"])


def _ways(links: Sequence[Row], labels: Mapping[str, str]) -> Iterator[tuple[dict[str, str], Row]]:
    """Each direction of a link with its labels."""
    for link in links:
        for way in ("ab", "ba"):
            yield {**labels, "port": link[way]["port"], "to": link[way[1]]}, link[way]


def _head(metric: str, kind: str, text: str) -> list[str]:
    return [f"# HELP {metric} {text}", f"# TYPE {metric} {kind}"]


def _sample(metric: str, labels: Mapping[str, Any], value: float) -> str:
    escaped = {
        key: str(one).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") for key, one in labels.items()
    }
    pairs = ",".join(f'{key}="{one}"' for key, one in escaped.items())
    return f"{metric}{{{pairs}}} {value}"
