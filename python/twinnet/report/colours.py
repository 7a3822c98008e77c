"""One colour for each thing that is shown, the same in every figure; told apart with impaired colour vision too.

Wong 2011, Points of view: Color blindness, Nature Methods 8.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["colour_of", "dash_of"]

_KNOWN = {"udp": "#D55E00", "tcp": "#0072B2", "http": "#009E73", "icmp": "#CC79A7", "rtp": "#56B4E9"}
_OTHERS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F")
_DASHES = {"tcp": "solid", "udp": "dash", "http": "dot", "icmp": "dashdot", "virtual": "dash", "equal": "dot"}


def colour_of(label: str, labels: Sequence[str]) -> str:
    """The colour of `label` among all `labels` of a figure."""
    return _KNOWN.get(label) or _OTHERS[list(labels).index(label) % len(_OTHERS)]


def dash_of(label: str) -> str:
    """Return the dash style of the line of `label`, which tells it apart in print without colours."""
    return _DASHES.get(label, "solid")
