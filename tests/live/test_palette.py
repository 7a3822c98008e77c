"""The colours of the page: told apart by readers who are colour-blind, and text that has contrast, in the light and in
the dark.

Colour blindness is simulated by the matrices of Machado, Oliveira and Fernandes, "A Physiologically-based Model for
Simulation of Color Vision Deficiency" (IEEE TVCG 15(6), 2009) for severity 1, on linear sRGB. The distance is that of
CIE L*a*b* (CIE 15:2004, D65): 2.3 is just noticeable side by side (Mahy, Van Eycken and Oosterlinck, Color Research and
Application 19(2), 1994). Lines are thin and apart, so several times as much is asked for. Contrast is that of WCAG 2.2.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence

import pytest
from twinnet.live.page_text import read_page_file

_MATRICES: Mapping[str, Sequence[Sequence[float]]] = {
    "usual": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
_TO_XYZ = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750), (0.0193339, 0.1191920, 0.9503041))
_WHITE = (0.95047, 1.0, 1.08883)
LOADS = ("idle", "some", "busy", "full")
LEAST_OF_NEIGHBOURS = 24
"""Ten times what is just noticeable."""
LEAST = 15
LEAST_CONTRAST = 4.5
TEXT = (
    ("ink", "paper"),
    ("faint", "paper"),
    ("ink", "node"),
    ("faint", "node"),
    ("invalid", "paper"),
    ("doubtful", "paper"),
    *(("paper", state) for state in ("valid", "doubtful", "invalid", "faint")),
)
"""What is written on what."""
_MIXED = re.compile(r"background: color-mix\(in srgb, var\(--([\w-]+)\) (\d+)%, (?:transparent|var\(--paper\))\)")
"""A ground that is mixed of a colour and paper."""

Colour = tuple[float, float, float]


def palette(scheme: str) -> dict[str, Colour]:
    light, _, dark = read_page_file("page.css").partition("@media screen and (prefers-color-scheme: dark)")
    rules = light + (dark.partition("\n* {")[0] if scheme == "dark" else "")
    found = dict(re.findall(r"--([\w-]+): #([0-9a-f]{6});", rules))
    return {name: tuple(int(text[at : at + 2], 16) / 255 for at in (0, 2, 4)) for name, text in found.items()}  # type: ignore[misc]


def linear(colour: Colour) -> list[float]:
    return [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in colour]


def product(matrix: Sequence[Sequence[float]], vector: Sequence[float]) -> list[float]:
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def seen(colour: Colour, by: str) -> tuple[float, float, float]:
    """The colour in L*a*b* as a reader of the kind `by` sees it."""
    shown = [min(1.0, max(0.0, one)) for one in product(_MATRICES[by], linear(colour))]
    x, y, z = (
        t ** (1 / 3) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116
        for t in (one / white for one, white in zip(product(_TO_XYZ, shown), _WHITE, strict=True))
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def distance(one: Colour, other: Colour, by: str) -> float:
    return sum((a - b) ** 2 for a, b in zip(seen(one, by), seen(other, by), strict=True)) ** 0.5


def contrast(one: Colour, other: Colour) -> float:
    dark, light = sorted(product(_TO_XYZ, linear(colour))[1] for colour in (one, other))
    return (light + 0.05) / (dark + 0.05)


def test_the_measures_give_known_figures() -> None:
    black, white, red = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0), (1.0, 0.0, 0.0)
    assert contrast(black, white) == pytest.approx(21, abs=1e-3)
    assert seen(red, "usual") == pytest.approx((53.24, 80.09, 67.20), abs=0.05)
    # Greys are grey to all. Who has no cones for long waves sees red and a dark yellow as nearly one.
    for by in _MATRICES:
        assert seen((0.5, 0.5, 0.5), by)[1:] == pytest.approx((0, 0), abs=0.1)
    red, olive = (1.0, 0.0, 0.0), (0.43, 0.37, 0.0)
    assert distance(red, olive, "protanopia") < 8 < 50 < distance(red, olive, "usual")


@pytest.mark.parametrize("by", _MATRICES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_of_load_are_told_apart(scheme: str, by: str) -> None:
    colours = palette(scheme)
    near = {pair: distance(*(colours[name] for name in pair), by) for pair in itertools.pairwise(LOADS)}
    assert min(near.values()) >= LEAST_OF_NEIGHBOURS, near
    all_loads = itertools.combinations((*LOADS, "open", "queue"), 2)
    far = {pair: distance(*(colours[name] for name in pair), by) for pair in all_loads}
    assert min(far.values()) >= LEAST, far
    # The parts of a queue's bar stand on each other; so do the first and, after the fourth, the first again.
    classes = [colours[f"class-{number % 4}"] for number in range(5)]
    parts = [distance(one, other, by) for one, other in itertools.pairwise(classes)]
    assert min(parts) >= LEAST, parts


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(scheme: str) -> None:
    colours = palette(scheme)
    found = {pair: contrast(*(colours[name] for name in pair)) for pair in TEXT}
    grounds = _MIXED.findall(read_page_file("page.css") + read_page_file("campaign.css"))
    assert len(grounds) == 5
    for ground, percent in grounds:
        share = int(percent) / 100
        mixed = [share * a + (1 - share) * b for a, b in zip(colours[ground], colours["paper"], strict=True)]
        found["ink", f"{percent} % {ground}"] = contrast(colours["ink"], (mixed[0], mixed[1], mixed[2]))
    assert min(found.values()) >= LEAST_CONTRAST, found


def test_no_text_has_a_colour_whose_contrast_is_not_held() -> None:
    style = read_page_file("page.css") + read_page_file("campaign.css")
    # Of SVG `color` is that of signs and lines, named by `currentColor`.
    texts = re.findall(r"(?<![\w-])color: var\(--([\w-]+)\)", re.sub(r"\.curve \.reason-\d \{.*?\}", "", style))
    texts += re.findall(r"\btext[^{},]*\{[^}]*fill: (?:var\(--([\w-]+)\)|currentColor)", style)
    assert set(texts) <= {name for name, _ in TEXT}
