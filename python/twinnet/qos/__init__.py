"""Queue disciplines of ports: what a port does with frames that it cannot send yet."""

from __future__ import annotations

from twinnet.qos.drr import Drr, DrrClass
from twinnet.qos.fifo import Fifo
from twinnet.qos.htb import Htb, HtbQueue
from twinnet.qos.priority import Priority
from twinnet.qos.queue import Queue
from twinnet.qos.tbf import Tbf

__all__ = ["Drr", "DrrClass", "Fifo", "Htb", "HtbQueue", "Priority", "Queue", "Tbf"]
