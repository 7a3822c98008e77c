"""Campaigns on several machines: a scheduler, workers with slots on each machine, and a client that writes the store.

The engine is Dask's `distributed`, which comes with ``pip install twinnet[cluster]`` and is imported only when one of
these is started.
"""
