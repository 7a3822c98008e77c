"""The method section of a report, written from the specification: what was built, sent, measured and computed."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence

from twinnet.network.topology_schema import NetworkModel
from twinnet.report.wording import counted
from twinnet.results.fidelity import PROMISES
from twinnet.study.analysis import Analysis
from twinnet.study.guest_settings import GuestSettings
from twinnet.study.mixes import part_in_words
from twinnet.study.named_code import own_disciplines
from twinnet.study.own_metric import OwnMetric
from twinnet.study.own_source import OWN_OF_TRAFFIC
from twinnet.study.specification import Measurement, Traffic
from twinnet.study.virtual_hosts import has_programs
from twinnet.traffic.own_code import brought
from twinnet.units import format_duration, format_rate, format_size

__all__ = ["method_paragraphs", "parameter_rows", "traffic_rows"]

_LAYERS = {
    "payload": "of the payload that applications read (headers, retransmissions and acknowledgements not counted)",
    "network": "at the network layer (packets with their IP headers)",
    "link": "at the link layer (frames with their Ethernet header, without FCS)",
    "wire": "on the wire (frames with preamble, FCS and inter-frame gap)",
}
_CLOCKS = {
    "wall": "Real Linux hosts (network namespaces) on the wall clock.",
    "virtual": "Model hosts on the virtual clock (simulation).",
    "real": "Physical machines and the network between them; links are given as the study describes them.",
}
_REAL_ON_VIRTUAL = (
    "Real hosts, virtual clock: Linux hosts in a guest kernel, whose time goes on as lines and timers say."
)
_MOST_NAMED = 12
"""Hosts whose names are all given."""


def method_paragraphs(analysis: Analysis) -> list[tuple[str, str]]:
    """Paragraphs with their headings."""
    own, measured = analysis.study.own_metrics(), analysis.specification.measurements.items()
    return [
        ("Network", _network(analysis)),
        ("Plan", _plan(analysis) + _own_code_of_levels(analysis)),
        ("Measurements", " ".join(_measured(name, one, own) for name, one in measured)),
        ("Statistics", _statistics(analysis)),
        ("Fidelity", _fidelity(analysis)),
    ]


def _network(analysis: Analysis) -> str:
    specification = analysis.specification
    chosen = {
        f"{factor} {name}": specification.factors[factor].levels[name].network
        for factor, names in specification.levels_run().items()
        for name in names
        if specification.factors[factor].levels[name].network is not None
    }
    networks: list[str] = []
    for network_name, network in specification.networks.items():
        under = ", ".join(level for level, network in chosen.items() if network == network_name)
        networks.append(f"{network_name} (under {under}): {_described(network)}" if under else "")
    if specification.network is not None:
        networks.append(_described(specification.network))
    models = [*specification.networks.values(), *([specification.network] if specification.network else [])]
    said = " ".join(part for part in networks if part)
    real = specification.clock == "virtual" and has_programs(specification)
    clock = _REAL_ON_VIRTUAL + _guest(specification.guest) if real else _CLOCKS[specification.clock]
    said += f" {clock} Links serialise frames at line rate, framing included."
    pinned = {
        f"{key} = {value}"
        for network in models
        for host in network.hosts.values()
        if host
        for key, value in host.sysctls.items()
    }
    if pinned:
        said += f" Pinned in hosts, since kernels differ: {', '.join(sorted(pinned))}."
    for one in own_disciplines(specification):
        said += f" Queues of the kind own are {one.name}, {one.file} with the SHA-256 {one.sha256}."
    return said


def _guest(asked: GuestSettings) -> str:
    """Say what of the guest is not as usual."""
    usual, said = GuestSettings(), ""
    if asked.begins_s != usual.begins_s:
        begins = datetime.datetime.fromtimestamp(asked.begins_s, datetime.UTC)
        said += f" Their clock begins at {begins:%Y-%m-%d %H:%M:%S} UTC."
    if asked.memory_bytes != usual.memory_bytes:
        said += f" All of them have {format_size(asked.memory_bytes)} of memory."
    return said


def _described(network: NetworkModel) -> str:
    """The nodes of `network`, and its links where they are few enough to be read."""
    nodes = [
        f"{counted(len(names), *kind)} ({', '.join(list(names)[:8])}{', ...' if len(names) > 8 else ''})"
        for kind, names in (
            (("host",), network.hosts),
            (("router",), network.routers),
            (("switch", "switches"), network.switches),
        )
        if names
    ]
    parts = [f"the template {network.template}"] if network.template else []
    said = f"{'; '.join([*parts, *nodes]).capitalize()}. "
    settings = network.link_defaults.model_dump(exclude_unset=True) if network.link_defaults else {}
    links = ", ".join(f"{key} {value}" for key, value in settings.items())
    return said + (f"Links: {links}." if links else "")


def _plan(analysis: Analysis) -> str:
    specification = analysis.specification
    factors = "; ".join(
        f"{name}: "
        + ", ".join(f"{level} ({one.text.rstrip('.')})" if one.text else level for level, one in factor.levels.items())
        for name, factor in specification.factors.items()
    )
    order = "in the listed order, repetitions outermost" if specification.order == "listed" else "in random order"
    said = f"{counted(specification.repetitions, 'repetition')} of each combination of levels, {order}. "
    if factors:
        said += f"{'Factor' if len(specification.factors) == 1 else 'Factors'}: {factors}. "
    return said + (
        f"Each run builds its network anew and has a seed derived from the study's seed {specification.seed}, "
        + ("the levels and the repetition. " if specification.seeds == "run" else "")
        + ("the repetition alone, so that the same traffic meets all levels. " if specification.seeds != "run" else "")
        + "Traffic begins at time 0 of the figures, "
        f"{format_duration(specification.settle_ps)} after the network is up."
    )


def _carriers(layer: str) -> str:
    """Explain how bytes below the payload were determined; empty where they are simply counted."""
    if layer == "payload":
        return ""
    return (
        " Datagrams of the built-in sinks are counted one by one; TCP and HTTP are taken to travel in full segments,"
        " and datagrams of programs to be of their mean size."
    )


def _measured(name: str, measurement: Measurement, own: Mapping[str, OwnMetric]) -> str:
    if name in own:
        metric = own[name]
        said = f" ({measurement.text.rstrip('.')})" if measurement.text else ""
        return f"{name}{said}: the own metric {metric.name}, {metric.file} with the SHA-256 {metric.sha256}."
    text = f" ({measurement.text[0].lower()}{measurement.text[1:].rstrip('.')})" if measurement.text else ""
    if measurement.of == "throughput":
        interval = format_duration(measurement.interval_ps or 0)
        what = f"throughput at the receivers per {measurement.per}"
        layer = _LAYERS[measurement.layer]
        bounds = _carriers(measurement.layer) + (
            " The least, greatest and deviation are over intervals that last from the last arrival before them to "
            "their own last arrival, so that no datagram counts in less time than it took to arrive."
            if measurement.bounds == "arrivals"
            else ""
        )
        return f"{name}{text}: {what}, in intervals of {interval}, {layer}.{bounds}"
    if measurement.of == "port_throughput":
        interval = format_duration(measurement.interval_ps or 0)
        what = f"what {', '.join(measurement.ports or [])} sent"
        return f"{name}{text}: {what}, in intervals of {interval}, {_LAYERS[measurement.layer]}."
    meaning = measurement.quantity.meaning.rstrip(".")
    what = meaning[0].lower() + meaning[1:]
    if measurement.interval_ps is not None:
        where = f" of {', '.join(measurement.ports)}" if measurement.ports else ""
        return f"{name}{text}: {what}{where}, every {format_duration(measurement.interval_ps)}."
    after = measurement.minimum_after
    late = f"; the least leaves out the first {after} packets" if after else ""
    return f"{name}{text}: {what}, per {measurement.per}{late}."


def _statistics(analysis: Analysis) -> str:
    percent = f"{analysis.specification.confidence * 100:g} %"
    blocked = (
        " The runs were made on several machines, which are blocks: differences between levels and the intervals of "
        "statements come from an additive model of levels and machines (least squares, a variance for each level), in "
        "the place of Welch's, where some machine made runs of both levels. Hedges' g is of the values as they are."
        if len(analysis.machines) > 1
        else ""
    )
    return (
        f"The unit of analysis is the run. Means over repetitions carry {percent} confidence intervals from Student's "
        "t, where repetitions differ; where positive values are skewed they reach as far as that of a lognormal mean "
        "(Krishnamoorthy and Mathew 2003). Differences between levels are tested by Welch's t test, or where a side is "
        "skewed by the wider interval, p-values adjusted for all comparisons of the study by Holm's method, their "
        "intervals by Bonferroni's; effect sizes are Hedges' g. Equal values of runs that chance has a "
        "part in have the spread of one step of what is counted. What happens in few runs may be in none of these. "
        "The levels of factors that a statement leaves out are blocks: only what repetitions of the same levels differ "
        "by makes its interval. A statement is supported when the whole confidence interval of the difference of its "
        "two sides lies where it claims, not supported when it lies wholly on the other side, and undecided otherwise. "
        "Least and greatest values are those of the worst unit. Where the study's parameters are scaled, statements "
        "scale with them." + blocked
    )


def _fidelity(analysis: Analysis) -> str:
    if analysis.specification.clock == "virtual" and has_programs(analysis.specification):
        return (
            "On the virtual clock no event is late, and computing takes no time: the numbers show what these programs "
            "and Linux's network stack do over these lines, on hosts that are never slow. A run's trace hash covers "
            "every frame in order; the same study, seed, version, kernel and programs give the same hash."
        )
    if analysis.specification.clock == "virtual":
        return (
            "On the virtual clock no event is late, so the numbers show what the models do. A run's trace hash "
            "covers all its events in their order; the same study, seed and version give the same hash on every "
            "machine. To see how closely the models match real hosts, run twinnet twin."
        )
    if analysis.specification.clock == "real":
        return (
            "Every run records for each machine how late its timers were, what its processors were taken for, frames "
            "and datagrams that it had no room for, and how its clock stood to that of the first machine; thresholds "
            "make a run valid, doubtful or invalid. Invalid runs are left out of all numbers unless asked for."
        )
    return (
        "Every run records how late frames were handed over, how far the schedule slipped, which frames were lost "
        "because the machine was too slow, and CPU time taken by others; thresholds make a run valid, doubtful or "
        f"invalid. By the default thresholds a valid run promises {PROMISES['valid']}; a doubtful one promises "
        f"{PROMISES['doubtful']}. Invalid runs are left out of all numbers unless asked for."
    )


def traffic_rows(analysis: Analysis) -> list[tuple[str, str, str, str, str]]:
    """Name, path, what, when, tool of each kind of traffic."""
    mixes = analysis.specification.mixes
    return [
        (
            entry.name,
            f"{_few(entry.sources)} → {entry.to}{part_in_words(mixes, entry)}",
            _sent(entry),
            _when(entry),
            entry.using,
        )
        for entry in analysis.specification.traffic
    ]


def _few(hosts: Sequence[str]) -> str:
    """Names of hosts; of many the first two and the last."""
    if len(hosts) <= _MOST_NAMED:
        return ", ".join(hosts)
    return f"{hosts[0]}, {hosts[1]}, ..., {hosts[-1]} ({len(hosts)} hosts)"


def _sent(entry: Traffic) -> str:
    said = entry.kind.in_words
    sends = entry.sends
    process = ", Poisson" if sends.get("process") == "poisson" else ", constant rate"
    if "rate" in sends:
        said += f" at {format_rate(sends['rate'])} of payload each{process}"
    if "packets_per_second" in sends:
        said += f" at {sends['packets_per_second']:g} a second each{process}"
    if "gap" in sends:
        said += f", gaps {sends['gap']}"
    if "size" in sends:
        said += f", sizes {sends['size']}"
    if "preset" in sends:
        said += f" as of {sends['preset']}"
    if sends.get("unpaced") or (entry.app == "tcp" and not {"rate", "packets_per_second", "gap"} & sends.keys()):
        said += ", as fast as it goes"
    if "dscp" in sends:
        said += f", DSCP {sends['dscp']}"
    if "payload" in sends:
        said += f", {sends['payload']} B payload"
    if "bytes" in sends:
        said += f", {format_size(sends['bytes'])}"
    if "rates" in sends:
        said += f", at {' or '.join(format_rate(rate) for rate in sends['rates'])}"
    if sends.get("count", 1) > 1:
        said += f", {sends['count']} times"
    if entry.congestion_control is not None:
        said += f", {entry.congestion_control}"
    said += "".join(f" ({one})" for one in _own_code(entry))
    return said + (f", port {entry.port}" if entry.port is not None else "")


def _own_code(entry: Traffic) -> list[str]:
    found = {what: brought(entry.sends.get(key)) for key, what in OWN_OF_TRAFFIC.items()}
    return [
        f"the own {what} {own.name}, {own.file} with the SHA-256 {own.sha256}" for what, own in found.items() if own
    ]


def _own_code_of_levels(analysis: Analysis) -> str:
    """What of one's own only levels of factors use; empty if there is nothing."""
    specification = analysis.specification
    changed = [
        analysis.study.at({factor: level})
        for factor, levels in specification.levels_run().items()
        for level in levels
        if specification.factors[factor].levels[level].set
    ]
    usual = {one for entry in specification.traffic for one in _own_code(entry)}
    own = dict.fromkeys(one for study in changed for entry in study.traffic for one in _own_code(entry))
    return "".join(f" Levels use {one}." for one in own if one not in usual)


def _when(entry: Traffic) -> str:
    begin = f"from {format_duration(entry.start_ps) if entry.start_ps else '0 s'}"
    if entry.apart_ps and len(entry.sources) > 1:
        begin += f", each source {format_duration(entry.apart_ps)} after the one before,"
    return (
        f"{begin} for {format_duration(entry.duration_ps)}" if entry.duration_ps is not None else f"{begin}, until done"
    )


def parameter_rows(analysis: Analysis) -> list[tuple[str, str, str]]:
    """Name, value and meaning of each parameter."""
    rows: list[tuple[str, str, str]] = []
    for name, declared in analysis.specification.parameters.items():
        text = declared.text if not isinstance(declared, str | int | float) else ""
        rows.append((name, analysis.study.parameters[name].text, text))
    return rows
