"""Trace hashes that programs without a library have on every machine (tests/lab/test_pinned_traces.py)."""

PINNED = {
    "7.3.4-twinnet": {"datagrams": "e47897ab72ddb5ca", "connection": "71796994a6683f70"},
}
"""By the version of the guest's kernel, and by what the program does."""
