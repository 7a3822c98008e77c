"""Benchmarks: the figures by which twinnet is judged, beside the peers that are installed."""
