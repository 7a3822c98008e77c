"""Controllers: classes that run in the lab's process, programs beside it, and how switches reach them."""

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
