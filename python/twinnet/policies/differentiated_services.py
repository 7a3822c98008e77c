"""DiffServ: classes by the code point of packets, which the policy sets where it is zero."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from twinnet.errors import BadPolicy, did_you_mean
from twinnet.network.network import Network
from twinnet.policies.applications import application_matches
from twinnet.policies.load import Load
from twinnet.policies.match import Match
from twinnet.policies.policy import Policy
from twinnet.policies.traffic_class import TrafficClass
from twinnet.qos import Red

__all__ = ["CODE_POINTS", "DifferentiatedServices"]

CODE_POINTS: Mapping[str, Sequence[int]] = {
    "ef": (46,),
    "af4": (34, 36, 38),
    "af3": (26, 28, 30),
    "af2": (18, 20, 22),
    "af1": (10, 12, 14),
}
"""Recommended code points of each class: RFC 3246 (EF) and RFC 2597, section 6 (AF)."""
_MINIMUM = {"ef": 0.20, "af4": 0.25, "af3": 0.15, "af2": 0.10, "af1": 0.15, "be": 0.05}


class DifferentiatedServices(Policy):
    """EF, AF4 to AF1 and BE by code point; unmarked packets of known applications are marked on the way in.

    Parameters
    ----------
    marks
        The class of each application whose packets come unmarked (code point 0); default: ``ef`` for ping, ``af4`` for
        video, ``af1`` for HTTP.
    """

    name = "diffserv"
    title = "DiffServ: EF, AF4 to AF1 and best effort by code point"
    promise = (
        "EF is served first and has a fifth of the port at most; AF classes have their minimums and share the rest."
    )
    origin = "RFC 2474, RFC 2597, RFC 3246"
    fails = (
        "When EF asks for more than its fifth, or hosts mark what they should not. The drop precedences share a RED."
    )

    def __init__(self, marks: Mapping[str, str] | None = None) -> None:
        self._marks = dict(marks) if marks is not None else {"ping": "ef", "video": "af4", "http": "af1"}
        for application, name in self._marks.items():
            if name not in CODE_POINTS:
                raise BadPolicy(f"{application} is to be marked {name!r}", did_you_mean(name, CODE_POINTS))

    def classes(self, network: Network, load: Load) -> Sequence[TrafficClass]:
        """Return a class for each behaviour, and one for each application that is to be marked."""
        del network
        found: list[TrafficClass] = []
        early = Red(min="60 kB", max="180 kB", limit="500 kB")
        for place, (name, points) in enumerate(CODE_POINTS.items()):
            minimum = _MINIMUM[name]
            maximum, queue = (minimum, None) if name == "ef" else (None, early)
            applications = [one for one, behaviour in self._marks.items() if behaviour == name]
            unmarked = [match for one in applications for match in application_matches(load, one, dscp=0)]
            matches = [*(Match(dscp=point) for point in points), *unmarked]
            level = 0 if name == "ef" else 1
            found.append(
                TrafficClass(
                    name, matches, minimum, maximum, level, weight=6 - place, queue=queue, precedence=5 - place
                )
            )
        return [*found, TrafficClass("be", minimum=_MINIMUM["be"], priority=2)]
