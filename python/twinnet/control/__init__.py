"""Controllers: classes that run in the lab's process, programs beside it, and how switches reach them.

Names are loaded when they are first used: the controller of Mininet scripts has to listen at once.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from twinnet.control.arp_responder import ArpResponder
    from twinnet.control.available_bandwidth import AvailableBandwidth, BandwidthPrior, CountedLink, PassiveBandwidth
    from twinnet.control.bandwidth_service import BandwidthService
    from twinnet.control.connected_switch import ConnectedSwitch
    from twinnet.control.controller import Controller
    from twinnet.control.dialling import Dialling
    from twinnet.control.events import (
        ErrorReport,
        Flow,
        FlowRemoved,
        PacketIn,
        PacketOut,
        PortStatus,
        Statistics,
        SwitchPort,
    )
    from twinnet.control.learning import LearningSwitch
    from twinnet.control.link_discovery import LinkDiscovery
    from twinnet.control.lldp import PortAdvertisement
    from twinnet.control.program import ControllerProgram
    from twinnet.control.shortest_path import ShortestPath
    from twinnet.control.slices import Slices
    from twinnet.control.statistics_poller import StatisticsPoller
    from twinnet.control.targets import ListenTarget, Target, parse_listen, parse_target
    from twinnet.control.tls import Tls
    from twinnet.control.together import Together
    from twinnet.control.topology import Topology
    from twinnet.control.tree_flooding import TreeFlooding

__all__ = [
    "ArpResponder",
    "AvailableBandwidth",
    "BandwidthPrior",
    "BandwidthService",
    "ConnectedSwitch",
    "Controller",
    "ControllerProgram",
    "CountedLink",
    "Dialling",
    "ErrorReport",
    "Flow",
    "FlowRemoved",
    "LearningSwitch",
    "LinkDiscovery",
    "ListenTarget",
    "PacketIn",
    "PacketOut",
    "PassiveBandwidth",
    "PortAdvertisement",
    "PortStatus",
    "ShortestPath",
    "Slices",
    "Statistics",
    "StatisticsPoller",
    "SwitchPort",
    "Target",
    "Tls",
    "Together",
    "Topology",
    "TreeFlooding",
    "parse_listen",
    "parse_target",
]

_HOMES = {
    "ArpResponder": "arp_responder",
    "AvailableBandwidth": "available_bandwidth",
    "BandwidthPrior": "available_bandwidth",
    "BandwidthService": "bandwidth_service",
    "ConnectedSwitch": "connected_switch",
    "Controller": "controller",
    "ControllerProgram": "program",
    "CountedLink": "available_bandwidth",
    "Dialling": "dialling",
    "ErrorReport": "events",
    "Flow": "events",
    "FlowRemoved": "events",
    "LearningSwitch": "learning",
    "LinkDiscovery": "link_discovery",
    "ListenTarget": "targets",
    "PacketIn": "events",
    "PacketOut": "events",
    "PassiveBandwidth": "available_bandwidth",
    "PortAdvertisement": "lldp",
    "PortStatus": "events",
    "ShortestPath": "shortest_path",
    "Slices": "slices",
    "Statistics": "events",
    "StatisticsPoller": "statistics_poller",
    "SwitchPort": "events",
    "Target": "targets",
    "Tls": "tls",
    "Together": "together",
    "Topology": "topology",
    "TreeFlooding": "tree_flooding",
    "parse_listen": "targets",
    "parse_target": "targets",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(f"twinnet.control.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'twinnet.control' has no attribute {name!r}", name=name, obj=sys.modules[__name__])


def __dir__() -> list[str]:
    return sorted(__all__)
