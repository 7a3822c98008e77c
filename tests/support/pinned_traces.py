"""Trace hashes that programs without a library have on every machine (tests/lab/test_pinned_traces.py)."""

PINNED = {
    "7.3.4-twinnet": {"datagrams": "551ce499275f47e0", "connection": "ed824bc21c6dea3b"},
}
"""By the version of the guest's kernel, and by what the program does."""
