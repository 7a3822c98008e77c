"""Display of results: one line with units in a terminal, a table in a notebook."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from twinnet.units import format_rate, format_size

if TYPE_CHECKING:
    import polars as pl

__all__ = ["ShownInUnits", "html_section", "rate", "size", "span", "without_empty_columns"]

_TIMES = (("s", 1e12), ("ms", 1e9), ("us", 1e6), ("ns", 1e3), ("ps", 1.0))


class ShownInUnits:
    """A result whose `repr` is its text with units, so that a notebook and a list of results can be read."""

    def __repr__(self) -> str:
        """Return the name of the class and the text."""
        return f"<{type(self).__name__} {self}>"


def span(mean_ps: float, least_ps: float, most_ps: float) -> str:
    """Return a time and its range in one unit.

    Examples
    --------
    >>> span(1.31e9, 0.9e9, 2.2e9)
    '1.31 ms (0.9 to 2.2)'
    """
    name, ps = next((one for one in _TIMES if abs(most_ps) >= one[1]), _TIMES[-1])
    return f"{mean_ps / ps:.3g} {name} ({least_ps / ps:.3g} to {most_ps / ps:.3g})"


def rate(bps: float) -> str:
    """Return a rate with three digits.

    Examples
    --------
    >>> rate(9_812_345)
    '9.81 Mbit/s'
    """
    return format_rate(_three_digits(bps))


def size(count: float) -> str:
    """Return a size with three digits."""
    return format_size(_three_digits(count))


def _three_digits(value: float) -> int:
    return int(float(f"{value:.3g}"))


def without_empty_columns(frame: pl.DataFrame) -> pl.DataFrame:
    """Return `frame` without the columns that hold nothing."""
    return frame.select(name for name in frame.columns if frame[name].null_count() < frame.height)


def html_section(title: str, parts: Iterable[str | pl.DataFrame]) -> str:
    """Return a heading, lines and tables for a notebook; text is escaped, empty columns are left out."""
    import polars as pl

    shown = [f"<h4>{html.escape(title)}</h4>"]
    for part in parts:
        if isinstance(part, str):
            shown.append(f"<p>{html.escape(part)}</p>")
            continue
        # polars carries no type for what notebooks ask of it.
        table: Any = without_empty_columns(part)
        with pl.Config(tbl_rows=60, tbl_cols=-1, fmt_str_lengths=200):
            shown.append(table._repr_html_())
    return "<div>" + "".join(shown) + "</div>"
