"""Parts of a study that the real clock refuses: what physical machines and cables cannot be made to do."""

from __future__ import annotations

from twinnet.errors import BadValue
from twinnet.study.program_traffic import check_files
from twinnet.study.specification import Level, StudySpecification

__all__ = ["check_machines"]

_OF_NETWORKS = ("queues", "flows", "links")


def check_machines(specification: StudySpecification) -> None:
    """Raise `BadValue`, with every name and the remedy, when the study asks of physical machines what only a network of
    twinnet's own does."""
    check_files(specification.traffic)
    ports = [name for name, one in specification.measurements.items() if one.ports]
    if ports:
        raise BadValue(
            f"the ports of real switches are not counted: measurements {', '.join(ports)}",
            "measure what hosts receive (throughput), or use --clock wall",
        )
    if specification.capture is not None:
        raise BadValue("the ports of real switches are not captured", "leave 'capture' out, or use --clock wall")
    if specification.policy is not None:
        raise BadValue("a policy is not installed in real switches", "leave 'policy' out, or use --clock wall")
    for factor, levels in specification.factors.items():
        for name, level in levels.levels.items():
            _check_level(factor, name, level)
    networks = list(specification.networks.values())
    networks += [specification.network] if specification.network is not None else []
    hosts = dict.fromkeys(name for entry in specification.traffic for name in (*entry.sources, entry.to))
    for network in networks:
        missing = [name for name in hosts if name not in network.machines]
        if missing:
            raise BadValue(
                f"traffic names hosts that are no physical machines: {', '.join(missing)}",
                "on the real clock each needs an entry under 'machines' with ssh, interface and address",
            )


def _check_level(factor: str, name: str, level: Level) -> None:
    given = [key for key in _OF_NETWORKS if getattr(level, key)]
    if level.network is not None:
        given.append("network")
    if given:
        raise BadValue(
            f"the level {name} of {factor} changes {', '.join(given)}, which is what it is between physical machines",
            "make a study for each network and compare the results, or use --clock wall",
        )
