"""The congestion control of a study's TCP: one and the same on both clocks, and one that real hosts are given here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from twinnet.errors import NotAvailable
from twinnet.study.resolution import Study, with_changes
from twinnet.study.specification import USUAL_CONGESTION_CONTROL, StudySpecification

__all__ = ["controls_of", "for_this_machine", "told_controls"]

KEY = "congestion_control"
MODELLED = ("reno", "cubic", "bbr")
"""The congestion controls of model hosts."""
_AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
_OF_KERNEL = Path("/proc/sys/net/ipv4/tcp_congestion_control")


def controls_of(specification: StudySpecification) -> list[str]:
    """The congestion controls that the study's TCP and HTTP traffic uses, each once."""
    return list(dict.fromkeys(one.congestion_control for one in specification.traffic if one.congestion_control))


def told_controls(specification: StudySpecification) -> str | None:
    """A sentence on the congestion control of each kind of traffic; `None` when nothing uses TCP."""
    controls = controls_of(specification)
    if not controls:
        return None
    if len(controls) == 1:
        said = f"TCP congestion control: {controls[0]}"
    else:
        each = [f"{one.congestion_control} for {one.name}" for one in specification.traffic if one.congestion_control]
        said = f"TCP congestion control: {', '.join(each)}"
    return f"{said}; the same on both clocks."


def _words(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii", errors="replace").split()
    except OSError:
        return []


def for_this_machine(study: Study, available: Sequence[str] | None = None) -> tuple[Study, str]:
    """`study` with a congestion control that real hosts have here, and what is to be told about it.

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
    missing = [one for one in controls_of(study.specification) if one not in has]
    if not missing or not has:
        return study, ""
    named = set(study.named_controls)
    if study.specification.congestion_control is not None:
        named.add(study.specification.congestion_control)
    refused = [one for one in missing if one in named]
    if refused:
        raise NotAvailable(
            f"this machine's kernel has no TCP congestion control {refused[0]!r}; it has {', '.join(has)}",
            f"modprobe tcp_{refused[0]}, name one that it has, or simulate with --clock virtual",
        )
    own = [one for one in (*_words(_OF_KERNEL), "reno") if one in MODELLED and one in has]
    if not own:
        raise NotAvailable(
            f"this machine's kernel has none of the TCP congestion controls of model hosts: {', '.join(MODELLED)}",
            f"modprobe tcp_{USUAL_CONGESTION_CONTROL}, or simulate with --clock virtual",
        )
    changed = with_changes(study, {KEY: own[0]})
    pinned = [one for one in controls_of(changed.specification) if one not in has]
    if pinned:
        raise NotAvailable(
            f"sysctls of hosts pin the TCP congestion control {pinned[0]!r}, which this machine's kernel does not have",
            f"modprobe tcp_{pinned[0]}, or simulate with --clock virtual",
        )
    told = f"This machine's kernel has no TCP congestion control {USUAL_CONGESTION_CONTROL!r}."
    return changed, f"{told} Traffic that names none uses {own[0]} on both clocks."
