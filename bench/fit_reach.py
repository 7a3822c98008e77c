"""What a source that the cable describes can reach at best, and what the cable's row reaches as it is, for the study
``multimedia-fitted``.

``python -m bench.fit_reach`` counts the published figures of the five predicted cases which no such source brings
closer to the real network than Mininet was, and says why. Beside it stands the baseline of a prediction: to copy the
cable's row into all cases, which takes no source and no network. It reads published.csv and measures nothing.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import Counter
from typing import Literal

from twinnet.study.closeness import Closeness, how_close
from twinnet.study.published_figures import read_figures
from twinnet.study.resolution import load_study

from bench.fit_source import FOLDER, PACKET_BITS, cable_row

__all__ = ["Reach", "copied", "reach"]

Reach = Literal["open", "met by Mininet", "unlike the cable", "impossible", "not comparable"]
STATISTICS = ("mean", "min", "max", "variance", "std")
UNCHANGED = {("2", "10"), ("2", "100"), ("3", "8")}
"""The lines that carry the busiest second of the cable three times and more."""
FRAMING_BYTES = {"2": 14 + 24, "3": 7}
"""Beyond the IP packet, of the slowest line: Ethernet, and HDLC."""
CLOSENESS: tuple[Closeness, ...] = ("closer", "not told apart", "farther", "not comparable")
_Row = dict[str, str]


def reach() -> dict[tuple[str, str, str, str], Reach]:
    """Return what stands in the way of each figure, by topology, rate of the line, metric and statistic."""
    lines = [line for line in (FOLDER / "published.csv").read_text().splitlines() if not line.startswith("#")]
    rows = {(row["topology"], row["link_mbit"], row["metric"], row["network"]): row for row in csv.DictReader(lines)}
    cable = cable_row()
    found: dict[tuple[str, str, str, str], Reach] = {}
    for (topology, link, metric, network), real in rows.items():
        if network == "real" and topology != "1":
            mininet = rows[topology, link, metric, "mininet"]
            for name in STATISTICS:
                if real[name] and mininet[name]:
                    found[topology, link, metric, name] = _reach(real, mininet, name, cable.get((metric, name)))
    return found


def _reach(real: _Row, mininet: _Row, name: str, cable: float | None) -> Reach:
    if real[name].startswith("<"):
        return "not comparable"
    if real[name] == mininet[name]:
        return "met by Mininet"
    if mininet[name].startswith("<"):
        return "open"
    metric = real["metric"]
    # The line lets all of the stream through: what the cable had is what comes, but for the hosts.
    kept = (metric == "delay" and name == "mean") or (
        metric == "bandwidth" and (real["topology"], real["link_mbit"]) in UNCHANGED
    )
    if kept and cable is not None:
        truth = float(real[name])
        if abs(cable - truth) >= abs(float(mininet[name]) - truth):
            return "unlike the cable"
    # Popoviciu: values between two ends deviate by half the distance of the ends at most.
    if name == "std" and float(real["std"]) > (float(real["max"]) - float(real["min"])) / 2:
        return "impossible"
    return "open"


def copied(frame_time: bool) -> Counter[Closeness]:
    """Return how close the cable's row is in the five predicted cases; with the time of one frame on the line as the
    least gap where `frame_time` says so, which takes no more than the line's rate."""
    study = load_study("multimedia-fitted")
    reference = study.specification.reference
    assert reference is not None
    cable = cable_row()
    counted: Counter[Closeness] = Counter()
    for figure in read_figures(reference, study.beside[reference.file], study.specification):
        topology, megabit = figure.levels["case"].removeprefix("topology-").split("-")
        if topology == "1":
            continue
        value = cable.get((figure.metric, figure.statistic))
        if frame_time and (figure.metric, figure.statistic) == ("delay", "min"):
            value = 8 * (PACKET_BITS / 8 + FRAMING_BYTES[topology]) / (float(megabit) * 1e3)
        if value is None:
            # The cable has "<0.001" there: a figure that comes to nothing.
            value = 0.0
        counted[how_close(figure, value * figure.scale)] += 1
    return counted


def main() -> int:
    """Print the counts and the figures."""
    parser = argparse.ArgumentParser(prog="python -m bench.fit_reach", description="What the cable's source can reach.")
    parser.parse_args()
    found = reach()
    counts = Counter(found.values())
    comparable = len(found) - counts["not comparable"]
    for key, what in found.items():
        if what not in ("open", "not comparable"):
            print(f"{what}: topology {key[0]} at {key[1]} Mbit/s, {key[2]}, {key[3]}")
    print(", ".join(f"{count} {what}" for what, count in counts.items()))
    print(f"at most {counts['open']} of {comparable} can be closer: {counts['open'] / comparable:.0%}")
    for what, frame_time in (("as it is", False), ("with one frame's time as the least gap", True)):
        told = copied(frame_time)
        print(f"the cable's row copied {what}: " + ", ".join(f"{told[name]} {name}" for name in CLOSENESS))
    return 0


if __name__ == "__main__":
    sys.exit(main())
