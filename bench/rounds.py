"""Several sites measured by turns, so that what others do on the machine meanwhile falls on all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from typing import TypeVar

from bench.quiet import Quiet
from bench.sites import Site

__all__ = ["SiteFactory", "rounds"]

SiteFactory = Callable[[], AbstractContextManager[Site]]
Measured = TypeVar("Measured")


def rounds(
    sites: Mapping[str, SiteFactory], repetitions: int, quiet: Quiet, measure: Callable[[Site], Measured]
) -> dict[str, list[Measured]]:
    """Open all `sites`, measure each in every round, and return what was found, by the site's name.

    A site that is not measured at the moment is idle, and costs next to nothing.
    """
    with ExitStack() as stack:
        opened = {name: stack.enter_context(factory()) for name, factory in sites.items()}
        found: dict[str, list[Measured]] = {name: [] for name in sites}
        for _ in range(repetitions):
            for name, site in opened.items():
                quiet.wait()
                found[name].append(measure(site))
        return found
