"""Available bandwidth of a path: estimates by probes, by port counters, by both; the truth in a lab; replay.

Available bandwidth over a time is the least, over the path's links, of capacity less traffic.
"""

from twinnet.bandwidth.fused import Fused, fuse
from twinnet.bandwidth.replay import replay
from twinnet.bandwidth.truth import Truth, available, path_ports, truth
from twinnet.traffic.bandwidth import (
    METHODS,
    bandwidth,
    bandwidth_listener,
    bandwidth_method,
    bandwidth_prober,
)
from twinnet.traffic.estimator import Heard, Train

__all__ = [
    "METHODS",
    "Fused",
    "Heard",
    "Train",
    "Truth",
    "available",
    "bandwidth",
    "bandwidth_listener",
    "bandwidth_method",
    "bandwidth_prober",
    "fuse",
    "path_ports",
    "replay",
    "truth",
]
