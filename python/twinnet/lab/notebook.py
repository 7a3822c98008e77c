"""A lab as a notebook shows it: what it is at one moment, and its live page."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from twinnet.errors import BadValue, NotAvailable
from twinnet.shown_text import shown_text

if TYPE_CHECKING:
    from anywidget import AnyWidget

    from twinnet.lab.lab import Lab

__all__ = ["notebook_part", "notebook_widget"]


def notebook_part(lab: Lab) -> str:
    """Return HTML that shows `lab` in a notebook: what it is and, while it runs, its time, its verdict with the
    reasons, and its picture with links as they are now, where it can be drawn."""
    from twinnet.drawing.running import picture_of_running

    said = [repr(lab)]
    picture = ""
    if lab.running:
        verdict = lab.fidelity().verdict()
        told = [verdict.state, *verdict.reasons, *([verdict.by_hand] if verdict.by_hand else [])]
        said.append(f"{lab.now():.3f} s, {'; '.join(told)}")
        try:
            picture = picture_of_running(lab.layout.nodes, lab.layout.links, lab.links()).svg()
        except BadValue as too_large:
            said.append(too_large.message)
    return "<div>" + "".join(f"<p>{html.escape(shown_text(line))}</p>" for line in said) + picture + "</div>"


def notebook_widget(lab: Lab, height: int) -> AnyWidget:
    """Return the live page of `lab` for a notebook, `height` pixels high; raises what :meth:`twinnet.Lab.widget`
    does."""
    if not 100 <= height <= 10_000:
        raise BadValue(f"height is {height}; allowed are whole numbers of pixels from 100 to 10000")
    try:
        from twinnet.live.widget import lab_widget
    except ImportError as error:
        raise NotAvailable(
            f"the widget needs {error.name}, which is not installed",
            "install twinnet with its extra: pip install 'twinnet[notebook]'",
        ) from None
    return lab_widget(lab.name, height)
