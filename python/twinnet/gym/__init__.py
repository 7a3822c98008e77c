"""Environments for reinforcement learning, by the interface of Gymnasium: ``pip install 'twinnet[gym]'``."""

from __future__ import annotations

from importlib.util import find_spec

from twinnet.errors import NotAvailable

if find_spec("gymnasium") is None:
    raise NotAvailable(
        "twinnet.gym needs gymnasium, which is not installed",
        "install twinnet with its extra: pip install 'twinnet[gym]'",
    )

from twinnet.gym.driver import Driven, Driver, Driving
from twinnet.gym.environment import LabEnv
from twinnet.gym.meters import FlowMeter, FlowReading, LinkMeters, LinkReading

__all__ = [
    "Driven",
    "Driver",
    "Driving",
    "FlowMeter",
    "FlowReading",
    "LabEnv",
    "LinkMeters",
    "LinkReading",
]
