"""Parts of a study that need real hosts, which the virtual clock refuses before anything starts."""

from __future__ import annotations

from twinnet.errors import BadValue
from twinnet.study.specification import StudySpecification, Traffic

__all__ = ["check_models"]

_PROGRAMS = {
    "udp": "iperf",
    "tcp": "iperf",
    "http": "wget",
    "ping": "ping",
    "rtp": "ffmpeg",
    "voice": "none",
    "bandwidth": "none",
    "video": "none",
}


def check_models(specification: StudySpecification, interface: str = "auto") -> None:
    """Raise `BadValue`, with every name and the remedy, when the study asks for what only the wall clock has.

    Parameters
    ----------
    specification
        The study.
    interface
        The kind of kernel interface that was asked for.
    """
    programs = [_named(entry) for entry in specification.traffic if entry.using == "programs"]
    if programs:
        raise BadValue(
            f"real programs cannot run on the virtual clock, whose hosts are models: {', '.join(programs)}",
            "write 'using: apps' there (in a study with the parameter tools: --set tools=apps), or use --clock wall",
        )
    if interface != "auto":
        raise BadValue(
            f"the virtual clock has no interfaces of the kernel, so none of the kind {interface!r}",
            "leave --interface away, or use --clock wall",
        )


def _named(entry: Traffic) -> str:
    return f"{_PROGRAMS[entry.app]} (traffic {entry.name}, in {', '.join([*entry.sources, entry.to])})"
