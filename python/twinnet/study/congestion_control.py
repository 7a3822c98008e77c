"""The congestion control of a study's TCP: one and the same on both clocks, and one that real hosts are given here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from twinnet.errors import NotAvailable
from twinnet.study.resolution import Study, with_changes
from twinnet.study.specification import USUAL_CONGESTION_CONTROL
from twinnet.traffic.congestion import MODELLED
from twinnet.traffic.own_code import brought

__all__ = ["controls_in_words", "controls_of", "for_this_machine"]

KEY = "congestion_control"
_AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
_OF_KERNEL = Path("/proc/sys/net/ipv4/tcp_congestion_control")


def controls_of(study: Study) -> list[str]:
    """The congestion controls that the study's traffic over TCP uses under any level, each once."""
    return list(dict.fromkeys(control for chosen in _by_traffic(study).values() for control in chosen))


def controls_in_words(study: Study) -> str | None:
    """A sentence on the congestion control of each kind of traffic and, where levels change it, of each level; `None`
    when nothing uses TCP."""
    by_traffic = _by_traffic(study)
    controls = controls_of(study)
    if not controls:
        return None
    if len(controls) == 1:
        said = controls[0]
    else:
        said = ", ".join(
            f"{control} for {name}{_at(levels)}"
            for name, chosen in by_traffic.items()
            for control, levels in chosen.items()
        )
    own = [f"{control} is {one.name}" for control in controls if (one := brought(control))]
    where = f"{', '.join(own)}, on the virtual clock only" if own else "the same on both clocks"
    return f"TCP congestion control: {said}; {where}."


def _at(levels: Sequence[str]) -> str:
    return f" ({' or '.join(levels)})" if levels else ""


def _by_traffic(study: Study) -> dict[str, dict[str, list[str]]]:
    """By the name of the traffic its congestion controls, each with the levels that choose it; none where all do."""
    whole = {one.name: one.congestion_control for one in study.specification.traffic if one.takes_congestion_control}
    found: dict[str, dict[str, list[str]]] = {name: {} for name in whole}
    for factor, levels in study.specification.levels_run().items():
        at_levels: dict[str, list[tuple[str, str]]] = {}
        for level in levels:
            sets = study.specification.factors[factor].levels[level].set
            entries = study.at({factor: level}).traffic if sets else study.specification.traffic
            for one in entries:
                if one.name in whole and one.congestion_control is not None:
                    at_levels.setdefault(one.name, []).append((one.congestion_control, f"{factor}={level}"))
        for name, chosen in at_levels.items():
            if {control for control, _ in chosen} != {whole[name]}:
                for control, level in chosen:
                    found[name].setdefault(control, []).append(level)
    return {name: chosen or {str(whole[name]): []} for name, chosen in found.items()}


def _words(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii", errors="replace").split()
    except OSError:
        return []


def for_this_machine(study: Study, available: Sequence[str] | None = None) -> tuple[Study, str]:
    """`study` with a congestion control that real hosts have here, and what is to be said about it.

    Traffic that names no congestion control uses the study's, which is CUBIC (RFC 9438) unless it says otherwise. Where
    this machine's kernel does not have that one, the study takes the kernel's own, on both clocks.

    Parameters
    ----------
    study
        The study, some runs of which will be on the wall clock.
    available
        What the kernel has; asked of it when left out.

    Raises
    ------
    NotAvailable
        The study names a congestion control that real hosts do not have here.
    """
    has = list(available) if available is not None else _words(_AVAILABLE)
    missing = [one for one in controls_of(study) if one not in has]
    if not missing or not has:
        return study, ""
    # What the study leaves open is the usual one; all others it names, by itself or by a level.
    named = {one for one in controls_of(study) if one != USUAL_CONGESTION_CONTROL} | set(study.named_controls)
    if study.specification.congestion_control is not None:
        named.add(study.specification.congestion_control)
    refused = [one for one in missing if one in named]
    if own := brought(refused[0] if refused else None):
        raise NotAvailable(
            f"the congestion control {own.name} is your own: model hosts on the virtual clock have it",
            "simulate with --clock virtual",
        )
    if refused:
        raise NotAvailable(
            f"this machine's kernel has no TCP congestion control {refused[0]!r}; it has {', '.join(has)}",
            f"modprobe tcp_{refused[0]}, name one that it has, or simulate with --clock virtual",
        )
    kernels = [one for one in (*_words(_OF_KERNEL), "reno") if one in MODELLED and one in has]
    if not kernels:
        raise NotAvailable(
            f"this machine's kernel has none of the TCP congestion controls of model hosts: {', '.join(MODELLED)}",
            f"modprobe tcp_{USUAL_CONGESTION_CONTROL}, or simulate with --clock virtual",
        )
    changed = with_changes(study, {KEY: kernels[0]})
    pinned = [one for one in controls_of(changed) if one not in has]
    if pinned:
        raise NotAvailable(
            f"sysctls of hosts pin the TCP congestion control {pinned[0]!r}, which this machine's kernel does not have",
            f"modprobe tcp_{pinned[0]}, or simulate with --clock virtual",
        )
    lacking = f"This machine's kernel has no TCP congestion control {USUAL_CONGESTION_CONTROL!r}."
    return changed, f"{lacking} Traffic that names none uses {kernels[0]} on both clocks."
