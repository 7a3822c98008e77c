"""Measurements of the prompt: ``pingall``, ``iperf`` and ``fidelity``, all with the built-in apps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from twinnet.cli.prompt.answer import Answer
from twinnet.errors import BadValue, LabClosed, TwinnetError
from twinnet.lab.lab import Lab
from twinnet.lab.parts import AppHandle
from twinnet.traffic import apps
from twinnet.units import format_duration, format_rate, rate_bps

__all__ = ["fidelity", "iperf", "iperfudp", "pingall", "pingallfull", "pingpair"]

_PINGALL_HOSTS = 100
_PATIENCE_S = 5


def pingall(lab: Lab, arguments: Sequence[str]) -> Answer:
    """Ping from every host to every other; ``X`` stands for no answer."""
    lines: list[str] = []
    pairs = _pinged(lab, arguments)
    for source in dict.fromkeys(pair["from"] for pair in pairs):
        own = [pair for pair in pairs if pair["from"] == source]
        lines.append(f"{source} -> {' '.join(pair['to'] if pair['rtt_ms'] is not None else 'X' for pair in own)}")
    return _ping_answer(pairs, lines)


def pingallfull(lab: Lab, arguments: Sequence[str]) -> Answer:
    """Ping from every host to every other, and show each round trip in milliseconds."""
    pairs = _pinged(lab, arguments)

    def worded(pair: Mapping[str, Any]) -> str:
        rtt = pair["rtt_ms"]
        return f" {pair['from']}->{pair['to']}: " + (f"1/1, rtt {rtt:.3f} ms" if rtt is not None else "1/0")

    return _ping_answer(pairs, [worded(pair) for pair in pairs])


def _ping_answer(pairs: Sequence[Mapping[str, Any]], lines: Sequence[str]) -> Answer:
    received = sum(pair["rtt_ms"] is not None for pair in pairs)
    loss = 100 * (1 - received / len(pairs)) if pairs else 0.0
    result = f"*** Results: {loss:.0f}% dropped ({received}/{len(pairs)} received)"
    text = "\n".join(["*** Ping: testing ping reachability", *lines, result])
    return Answer({"pairs": list(pairs), "loss_percent": loss}, text, received == len(pairs))


def _pinged(lab: Lab, arguments: Sequence[str]) -> list[dict[str, Any]]:
    """One ping from every host to every other: of each pair the round trip in milliseconds, or ``None``."""
    hosts = list(arguments) or lab.layout.names("host")
    for name in hosts:
        lab.layout.node(name, "host")
    if len(hosts) > _PINGALL_HOSTS:
        raise BadValue(
            f"{len(hosts)} hosts are too many for pingall; at most {_PINGALL_HOSTS}", "name some: pingall h1 h2 h3"
        )
    pairs: list[dict[str, Any]] = []
    for source in hosts:
        others = [name for name in hosts if name != source]
        started = [_ping(lab, source, other) for other in others]
        lab.wait([handle for handle in started if handle is not None], f"{lab.now() + _PATIENCE_S:.6f} s")
        for other, handle in zip(others, started, strict=True):
            rtt = handle.report().rtt if handle is not None else None
            pairs.append({"from": source, "to": other, "rtt_ms": rtt.mean / 1e9 if rtt is not None else None})
    return pairs


def _ping(lab: Lab, source: str, target: str) -> AppHandle | None:
    """Begin one ping; ``None`` from or to a host that cannot, such as one without an address."""
    try:
        return lab.start(apps.ping(source, target, count=1))
    except LabClosed:
        raise
    except TwinnetError:
        return None


def pingpair(lab: Lab, arguments: Sequence[str]) -> Answer:
    """Ping between two hosts both ways: those that are named, or the first two."""
    hosts = list(arguments) or lab.layout.names("host")[:2]
    if len(hosts) != 2:
        raise BadValue(f"pingpair needs two hosts, not {len(hosts)}", "write for example: pingpair h1 h2")
    return pingall(lab, hosts)


def iperfudp(lab: Lab, arguments: Sequence[str]) -> Answer:
    """Send UDP between two hosts: ``iperfudp RATE A B``, as in Mininet; the first and the last when none is named. The
    rate may stand last."""
    usage = "write for example: iperfudp 10Mbit h1 h2"
    names = lab.layout.names("host")
    rates = [word for word in arguments if word not in names]
    hosts = [word for word in arguments if word in names]
    if not rates:
        raise BadValue("iperfudp needs a rate", usage)
    rate = rates.pop(0 if arguments[0] not in names else -1)
    hosts += rates
    rate = _in_bits(rate)
    if len(hosts) not in (0, 2) or len(names) < 2:
        raise BadValue(f"iperfudp needs two hosts, not {len(hosts)}", usage)
    source, target = hosts or (names[0], names[-1])
    return iperf(lab, [source, target, "udp", rate])


def _in_bits(rate: str) -> str:
    """Return `rate` with the unit that Mininet and iperf leave out: ``10M`` is ``10Mbit``."""
    return f"{rate}bit" if rate[:-1].replace(".", "", 1).isdigit() and rate[-1] in "kMG" else rate


def iperf(lab: Lab, arguments: Sequence[str]) -> Answer:
    """Send TCP (or, with a rate, UDP) between two hosts for five seconds and print what both ends saw."""
    usage = "write: iperf h1 h4 [SECONDS s] [udp RATE], for example: iperf h1 h4 2s udp 100Mbit"
    words = list(arguments)
    if not words and len(lab.layout.names("host")) > 1:
        words = [lab.layout.names("host")[0], lab.layout.names("host")[-1]]
    rate = None
    if "udp" in words:
        at = words.index("udp")
        rate = _in_bits(" ".join(words[at + 1 :]) or "10 Mbit")
        rate_bps(rate)
        words = words[:at]
    if len(words) < 2:
        raise BadValue("iperf needs two hosts", usage)
    source, target, *rest = words
    duration = " ".join(rest) or "5 s"
    for name in (source, target):
        lab.layout.node(name, "host")
    if source == target:
        raise BadValue(f"{source} would send to itself, over no link", "name two different hosts")
    flow = (
        apps.udp(source, target, rate=rate, duration=duration)
        if rate
        else apps.tcp_bulk(source, target, duration=duration)
    )
    handle = lab.start(flow)
    span = flow.sender.fields["duration_ps"] / 1e12
    finished = lab.wait([handle], f"{lab.now() + span + _PATIENCE_S:.6f} s")
    ends: dict[str, float] = {}
    errors: list[str] = []
    for report in handle.reports():
        for one in report.flows:
            if one.flow == handle.flow:
                ends[one.role] = one.throughput_bps
                errors += one.errors
    rates = [f"{role} {_rounded(bps)}" for role, bps in ends.items()]
    data = {
        "from": source,
        "to": target,
        "protocol": "udp" if rate else "tcp",
        "throughput_bps": ends,
        "errors": errors,
    }
    text = f"*** {source} -> {target}: {', '.join(rates) or 'nothing arrived'}" + "".join(f"\n{e}" for e in errors)
    return Answer(data, text, finished and ends.get("sink", 0) > 0)


def fidelity(lab: Lab, arguments: Sequence[str]) -> Answer:
    """Tell how well the lab kept its schedule; ``fidelity reset`` begins the record anew."""
    if list(arguments) not in ([], ["reset"]):
        raise BadValue(
            f"fidelity takes nothing but reset, and {' '.join(arguments)!r} was given", "write: fidelity reset"
        )
    record = lab.fidelity(reset=bool(arguments))
    verdict = record.verdict()
    late = record.lateness_ns
    slips = "once" if record.slips == 1 else f"{record.slips} times"
    lines = [
        f"verdict: {verdict}",
        f"frames handed over: {record.handed_over} in {format_duration(record.elapsed_ps // 10**9 * 10**9)}",
        "lateness: " + ", ".join(f"{name} {getattr(late, field) / 1000:.1f} us" for name, field in (
            ("median", "p50"), ("99 %", "p99"), ("99.9 %", "p999"), ("largest", "max"))),
        f"the worst line slipped: {slips}, {record.slipped_ps / 1e9:.3f} ms in all, "
        f"{record.regained_ps / 1e9:.3f} ms regained; longest pause: {record.longest_pause_ps / 1e9:.3f} ms",
        f"lost by overload: {record.machine_losses}; stolen CPU: {record.steal_s:.2f} s",
    ]  # fmt: skip
    return Answer({"verdict": verdict.state, "reasons": list(verdict.reasons), **record.raw}, "\n".join(lines))


def _rounded(bps: float) -> str:
    """Return a measured rate with four digits: more would pretend to be known."""
    digits = max(len(str(round(bps))) - 4, 0)
    return format_rate(round(bps, -digits).__trunc__())
