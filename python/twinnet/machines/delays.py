"""One-way delays between two clocks: given only where the clocks are known well enough."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twinnet.sockets.delays import without_delays

__all__ = ["LARGEST_SHARE", "judged_delays"]

LARGEST_SHARE = 0.1
"""A one-way delay is given when the bound of the clocks is at most this share of its mean."""


def judged_delays(flow: Mapping[str, Any], bound_ps: int) -> dict[str, Any]:
    """Return the report `flow` of a receiver, without one-way delays unless clocks that are apart by at most `bound_ps`
    permit them. Jitter and delay variation of the whole flow stay: an offset does not
    change them."""
    delay = flow.get("delay_ps")
    if not delay or bound_ps == 0:
        return dict(flow)
    mean_ps = float(delay.get("mean") or 0)
    if not flow.get("delays_below_zero") and bound_ps <= LARGEST_SHARE * mean_ps:
        return dict(flow)
    why = (
        f"one-way delay is not given: the clocks of both machines are known to {bound_ps / 1e6:.3g} us, more than a"
        f" tenth of the delay"
    )
    judged = without_delays(flow)
    return judged | {"errors": [*judged.get("errors", []), why]}
