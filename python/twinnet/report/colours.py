"""One colour for each thing that is shown, the same in every figure; told apart with impaired colour vision too.

Wong 2011, Points of view: Color blindness, Nature Methods 8.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["SHADES", "colour_of", "dash_of", "rgb_of", "shades_of"]

_KNOWN = {"udp": "#D55E00", "tcp": "#0072B2", "http": "#009E73", "icmp": "#CC79A7", "rtp": "#56B4E9"}
_OTHERS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F", "#6A3D9A")
_DASHES = {"tcp": "solid", "udp": "dash", "http": "dot", "icmp": "dashdot", "virtual": "dash", "equal": "dot"}
SHADES = ("#D55E00", "#0072B2")
"""The colours of cells of a grid below and above zero."""
_LIGHTEST, _DARKEST = 0.06, 0.55
"""How much of its colour a cell has: text stays readable on it."""


def colour_of(label: str, labels: Sequence[str]) -> str:
    """The colour of `label` among all `labels` of a figure; up to eight of them have different ones."""
    if label in _KNOWN:
        return _KNOWN[label]
    kept = {_KNOWN[one] for one in labels if one in _KNOWN}
    free = [colour for colour in _OTHERS if colour not in kept]
    others = [one for one in labels if one not in _KNOWN]
    return free[others.index(label) % len(free)]


def dash_of(label: str) -> str:
    """Return the dash style of the line of `label`, which tells it apart in print without colours."""
    return _DASHES.get(label, "solid")


def rgb_of(colour: str) -> tuple[int, int, int]:
    """Return red, green and blue of `colour`, each from 0 to 255."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def shades_of(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return how much of its colour each cell of a grid has, negative below zero; 0 where there is no number.

    Where the sizes of values differ by more than ten, by their logarithm.
    """
    sizes = np.abs(values[np.isfinite(values) & (values != 0)])
    if not sizes.size:
        return np.zeros(values.shape)
    signed = bool((values[np.isfinite(values)] < 0).any())
    known = np.nan_to_num(np.abs(values), nan=0.0, posinf=float(sizes.max()))
    least, most = float(sizes.min()), float(sizes.max())
    if most > 10 * least:
        # Beyond a thousandth of the greatest nothing can be told apart.
        least = max(least, most / 1000)
        share = np.log(np.maximum(known, least) / least) / math.log(most / least)
    elif signed or most == least:
        share = known / most
    else:
        share = (known - least) / (most - least)
    shades = np.sign(np.nan_to_num(values)) * (_LIGHTEST + (_DARKEST - _LIGHTEST) * np.clip(share, 0.0, 1.0))
    return np.where(np.isnan(values), 0.0, shades)
