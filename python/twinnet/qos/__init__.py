"""Queue disciplines of ports: what a port does with frames that it cannot send yet."""

from __future__ import annotations

from twinnet.qos.cbq import Cbq, CbqClass, LinkSharing
from twinnet.qos.classify import Classify, ClassifyRule, HeaderMatch
from twinnet.qos.codel import Codel
from twinnet.qos.delay import Delay
from twinnet.qos.drr import Drr, DrrClass
from twinnet.qos.fifo import Fifo
from twinnet.qos.fq_codel import FqCodel
from twinnet.qos.htb import Htb, HtbQueue
from twinnet.qos.own import Discipline, Own, Waiting
from twinnet.qos.pie import Pie
from twinnet.qos.priority import Priority
from twinnet.qos.queue import Queue
from twinnet.qos.red import Red
from twinnet.qos.sfq import Sfq
from twinnet.qos.tbf import Tbf

__all__ = [
    "Cbq",
    "CbqClass",
    "Classify",
    "ClassifyRule",
    "Codel",
    "Delay",
    "Discipline",
    "Drr",
    "DrrClass",
    "Fifo",
    "FqCodel",
    "HeaderMatch",
    "Htb",
    "HtbQueue",
    "LinkSharing",
    "Own",
    "Pie",
    "Priority",
    "Queue",
    "Red",
    "Sfq",
    "Tbf",
    "Waiting",
]
