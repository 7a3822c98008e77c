"""What tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fake_lab import FakeLab

import twinnet as tn


@pytest.fixture
def fake() -> Iterator[FakeLab]:
    """A scripted lab of one switch s1 and the hosts h1 to h4."""
    one = FakeLab(tn.templates.single(4, rate="1 Gbit"))
    yield one
    one.close()
