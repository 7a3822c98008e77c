"""The pictures of a study's networks."""

from __future__ import annotations

from dataclasses import dataclass

from twinnet.drawing import picture_of
from twinnet.drawing.picture import MOST_NODES
from twinnet.errors import TwinnetError
from twinnet.study.network_of import network_of
from twinnet.study.resolution import Study

__all__ = ["NetworkPicture", "network_pictures"]

_MOST_PICTURES = 4
_MOST_NODES_ON_A_PAGE = min(150, MOST_NODES)


@dataclass(frozen=True)
class NetworkPicture:
    """A picture as SVG, and what stands below it."""

    svg: str
    caption: str


def network_pictures(study: Study) -> list[NetworkPicture]:
    """A picture of each network of `study` that its runs have: one, unless levels choose others."""
    specification = study.specification
    levels_run = specification.levels_run()
    usual = {name: levels[0] for name, levels in levels_run.items()}
    cases = [usual]
    under = [""]
    for name, factor in specification.factors.items():
        by_network: dict[str, list[str]] = {}
        for level in levels_run[name]:
            by_network.setdefault(factor.levels[level].network or "", []).append(level)
        if len(by_network) < 2:
            continue
        cases = [{**usual, name: levels[0]} for levels in by_network.values()]
        under = [
            f"{name} {levels[0]}" + (f" (and {len(levels) - 1} more)" if len(levels) > 1 else "")
            for levels in by_network.values()
        ]
        break
    found: list[NetworkPicture] = []
    for levels, said in list(zip(cases, under, strict=True))[:_MOST_PICTURES]:
        try:
            network = network_of(study.at(levels), levels, 1)
        except TwinnetError:
            # A study whose file was changed after its runs still has a report of them.
            continue
        if len(network.nodes) > _MOST_NODES_ON_A_PAGE:
            continue
        picture = picture_of(network)
        found.append(
            NetworkPicture(
                picture.svg(), f"{said[:1].upper()}{said[1:]}: {picture.caption}" if said else picture.caption
            )
        )
    return found
