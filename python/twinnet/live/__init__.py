"""A page in the browser that shows a running lab: its network, the rate and load of each link, the queues, the verdict.

The server is a process outside the lab and speaks the lab protocol. It needs ``pip install twinnet[live]``, whose
packages are imported only when a page is asked for.
"""

from __future__ import annotations

from twinnet.live.listening import listening_at
from twinnet.live.server import serve
from twinnet.live.watch import PATIENCE_S

__all__ = ["PATIENCE_S", "listening_at", "serve"]
