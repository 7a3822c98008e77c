"""How long a run on the virtual clock takes: as long as the frames take that its traffic sends over the lines."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence

from twinnet.network.network import Network
from twinnet.study.forecast import Share, flows_of, shares_at
from twinnet.study.offered_load import Offer
from twinnet.study.shared_lines import Way, Ways
from twinnet.study.traffic import Traffic

__all__ = ["PASSAGE_S", "passages"]

PASSAGE_S = 0.4e-6
"""A guess at the real time that a frame takes on one line: ``qos-class-profiles`` at full size has 1.4 events for it
of 245 to 280 ns."""
_MOST_LOOKS = 16
"""Of the moments at which flows begin or end, so many are looked at: what flows share changes at each."""


def passages(network: Network, traffic: Iterable[Traffic], until_s: float = math.inf) -> float:
    """Return how many frames pass the lines of `network` while `traffic` lasts, each counted once on each line; at most
    those of its first `until_s` seconds.

    Flows that share a line share its rate. What no line limits and has no rate of its own counts nothing, nor does what
    has no known end.
    """
    ways = Ways(network)
    flows = [(offer, way) for offer, way in flows_of(traffic, ways) if math.isfinite(offer.end_s)]
    return sum(
        (end_s - start_s) * sum(_passages_per_second(share) for share in shares_at((start_s + end_s) / 2, flows, ways))
        for start_s, end_s in _spans(flows, until_s)
    )


def _spans(flows: Sequence[tuple[Offer, Way]], until_s: float) -> Iterator[tuple[float, float]]:
    """The time of all flows until then, in spans in which about the same flows are active."""
    moments = sorted({min(moment, until_s) for offer, _ in flows for moment in (offer.start_s, offer.end_s)})
    step = max(1, math.ceil((len(moments) - 1) / _MOST_LOOKS))
    kept = [*moments[:-1:step], *moments[-1:]]
    yield from itertools.pairwise(kept)


def _passages_per_second(share: Share) -> float:
    # What a queue drops has passed the sender's line alone.
    there = share.taken + share.handed * (len(share.way.lines) - 1)
    if share.offer.kind == "echo":
        return 2 * there
    # RFC 9293, 3.8.6.3: an acknowledgement for at least every second full segment.
    return there * 1.5 if share.offer.kind == "stream" else there
