"""The greatest loads of a few common kinds that the forecast promises to be valid on a machine, in words to plan with.

Each kind is asked of :func:`twinnet.study.forecast.needed_frames`, so what `twinnet doctor` says and what `twinnet run`
refuses cannot differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from twinnet.network.network import Network
from twinnet.study.forecast import needed_frames
from twinnet.study.traffic import Traffic
from twinnet.units import BitsPerSecond

__all__ = ["KINDS", "GreatestLoad", "LoadKind", "greatest_loads", "loads_in_words"]

_LINK_BPS, _FAST_BPS, _GIGABIT_BPS = 10_000_000, 100_000_000, 1_000_000_000
_MOST = 1000
"""More than that is not listed: a lab of so many hosts is bounded by other things."""


@dataclass(frozen=True)
class LoadKind:
    """Pairs of hosts at one switch, all of whose receivers have lines that are full.

    Parameters
    ----------
    one, several
        The words for one such line and for more.
    app
        ``udp`` sends datagrams of 1470 bytes, ``tcp`` is a flow of TCP.
    rate_bps
        Rate of the receiver's line in bit/s.
    offered
        Multiples of that rate that a sender of datagrams offers.
    """

    one: str
    several: str
    app: str
    rate_bps: int
    offered: int = 1

    def needs(self, count: int) -> float:
        """Return the frames in and out a second that `count` of them need."""
        network = Network()
        switch = network.switch("s1")
        traffic: list[Traffic] = []
        for number in range(count):
            sender, receiver = f"a{number}", f"b{number}"
            access_bps = self.rate_bps * self.offered * (5 if self.app == "udp" else 1)
            network.link(network.host(sender), switch, rate=BitsPerSecond(access_bps))
            network.link(switch, network.host(receiver), rate=BitsPerSecond(self.rate_bps))
            settings = {"rate": f"{self.rate_bps * self.offered} bit", "payload": "1470 B"} if self.app == "udp" else {}
            flow = {"name": f"flow{number}", "app": self.app, "from": [sender], "to": receiver, "port": 5003}
            traffic.append(Traffic.model_validate(flow | settings | {"duration": "10 s"}))
        return needed_frames(network, traffic)


KINDS = (
    LoadKind("link of 10 Mbit/s at twice its rate", "links of 10 Mbit/s at twice their rate", "udp", _LINK_BPS, 2),
    LoadKind("TCP flow of 100 Mbit/s", "TCP flows of 100 Mbit/s", "tcp", _FAST_BPS),
    LoadKind("TCP flow of 1 Gbit/s", "TCP flows of 1 Gbit/s", "tcp", _GIGABIT_BPS),
    LoadKind("link of 1 Gbit/s at twice its rate", "links of 1 Gbit/s at twice their rate", "udp", _GIGABIT_BPS, 2),
)


@dataclass(frozen=True)
class GreatestLoad:
    """The greatest number of one kind, alone, that the machine carries.

    Parameters
    ----------
    kind
        The kind.
    count
        The number; 0 where not even one is carried.
    """

    kind: LoadKind
    count: int

    @property
    def words(self) -> str:
        """The number and the kind: ``about 12 TCP flows of 100 Mbit/s``."""
        if self.count == 0:
            return f"no {self.kind.one}"
        return f"1 {self.kind.one}" if self.count == 1 else f"about {self.count} {self.kind.several}"


def greatest_loads(carried: float) -> Iterator[GreatestLoad]:
    """Yield for each kind the greatest number of which `carried` frames in and out a second is enough."""
    for kind in KINDS:
        # Each pair has lines of its own, so that many need as much as one, so many times.
        yield GreatestLoad(kind, min(_MOST, int(carried / kind.needs(1))))


def loads_in_words(carried: float) -> str:
    """Tell the greatest loads in one sentence, each for itself."""
    words = [load.words for load in greatest_loads(carried)]
    return f"each alone: {', '.join(words[:-1])}, or {words[-1]}"
