"""Rows of data frames as people are shown them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Column", "Row", "shown_rows"]

Row = dict[str, Any]
Column = str | Callable[[Row], object]
"""The name of a column of the frame, or what is made of its row."""


def shown_rows(frame: pl.DataFrame, columns: Mapping[str, Column], most: int) -> list[list[object]]:
    """Return the cells of the first `most` rows of `frame`."""
    return [
        [row[column] if isinstance(column, str) else column(row) for column in columns.values()]
        for row in frame.head(most).to_dicts()
    ]
