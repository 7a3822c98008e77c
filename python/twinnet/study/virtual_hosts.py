"""The hosts of a study on the virtual clock: models for built-in apps, real ones in a guest kernel for programs."""

from __future__ import annotations

from twinnet.errors import BadValue, KernelMissing
from twinnet.guest import needed
from twinnet.network.network import Network
from twinnet.network.nodes import Host
from twinnet.study.program_traffic import check_programs
from twinnet.study.specification import StudySpecification, Traffic

__all__ = ["check_virtual", "choose_bodies", "has_programs"]

_BY_APPS = "write 'using: apps' there (in a study with the parameter tools: --set tools=apps), or use --clock wall"


def has_programs(specification: StudySpecification) -> bool:
    """Return whether real programs make some of the study's traffic."""
    return any(entry.using == "programs" for entry in specification.traffic)


def check_virtual(specification: StudySpecification, interface: str = "auto") -> None:
    """Raise an error that says what to do when runs of the study cannot be made on the virtual clock here.

    Parameters
    ----------
    specification
        The study.
    interface
        The kind of kernel interface that was asked for.

    Raises
    ------
    BadValue
        It asks for what only the wall clock has, or for apps and programs in one host.
    KernelMissing, KernelUnusable
        Programs make traffic, and there is no kernel that they can run in.
    ProgramMissing
        One of the programs is not installed.
    """
    if interface != "auto":
        raise BadValue(
            f"the virtual clock has no interfaces of the kernel, so none of the kind {interface!r}",
            "leave --interface away, or use --clock wall",
        )
    if not has_programs(specification):
        return
    confined = [entry.name for entry in specification.traffic if entry.processors]
    if confined:
        raise BadValue(
            f"on the virtual clock computing takes no time, so 'processors' has no effect: traffic {confined[0]}",
            "leave it out, or use --clock wall",
        )
    shared = _hosts(specification, "programs") & _hosts(specification, "apps")
    if shared:
        raise BadValue(
            f"on the virtual clock a host runs programs or built-in apps, and {min(shared)} is to run both",
            "write the same 'using' for all traffic of a host, or use --clock wall",
        )
    check_programs(specification.traffic)
    try:
        needed()
    except KernelMissing as missing:
        raise KernelMissing(missing.message, f"{missing.remedy}; or {_BY_APPS}") from None


def choose_bodies(specification: StudySpecification, network: Network) -> None:
    """Describe those hosts of `network` as models that only apps use; all others are real."""
    for name in _hosts(specification, "apps"):
        host = network.nodes[name]
        if isinstance(host, Host):
            host.model = True


def _hosts(specification: StudySpecification, using: str) -> set[str]:
    entries: list[Traffic] = [entry for entry in specification.traffic if entry.using == using]
    return {name for entry in entries for name in (*entry.sources, entry.to)}
