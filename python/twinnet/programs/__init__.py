"""Adapters of real programs: they run in the hosts of a lab and report in the columns of the built-in apps.

Each function returns a :class:`Transfer`; ``programs.start(lab, transfer)`` starts it, ``.wait()`` gives its reports.
"""

from __future__ import annotations

from twinnet.programs.apache_bench import apache_bench
from twinnet.programs.clip import Clip, make_clip
from twinnet.programs.estimated import estimate_by
from twinnet.programs.iperf2 import iperf2
from twinnet.programs.iperf3 import iperf3
from twinnet.programs.ping import ping
from twinnet.programs.streaming import stream
from twinnet.programs.transfer import Output, RunningTransfer, Transfer, installed, serve, start
from twinnet.programs.video_quality import judge_video
from twinnet.programs.viewer import clip_to_watch, watch
from twinnet.programs.wget import wget

__all__ = [
    "Clip",
    "Output",
    "RunningTransfer",
    "Transfer",
    "apache_bench",
    "clip_to_watch",
    "estimate_by",
    "installed",
    "iperf2",
    "iperf3",
    "judge_video",
    "make_clip",
    "ping",
    "serve",
    "start",
    "stream",
    "watch",
    "wget",
]
