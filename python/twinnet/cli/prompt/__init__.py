"""The prompt of ``twinnet lab``: what can be typed, and what it does."""

from __future__ import annotations
