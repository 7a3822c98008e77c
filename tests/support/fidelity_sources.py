"""The counters that a machine offers to a record of fidelity, for records that tests write."""

from __future__ import annotations

SOURCES = dict.fromkeys(("thread_waits", "memory_pressure", "quota", "steal", "programs", "sockets"), True)
"""All that a verdict on the wall clock needs."""
