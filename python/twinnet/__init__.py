"""A laboratory for software-defined networks: describe a network, run real programs on it, measure, compare.

    import twinnet as tn

    net = tn.Network()
    s1 = net.switch("s1")
    for n in range(1, 5):
        net.link(net.host(f"h{n}"), s1, rate="1 Gbit", delay="50 us")

    with net.emulate() as lab:
        print(lab["h1"].run("ping -c 3 h4").stdout)

Names are loaded when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from twinnet import bandwidth, control, errors, lab, programs, qos, results, stats, studies, units
    from twinnet.deliveries import DeliveryTrace
    from twinnet.errors import LabError, TwinnetError, UsageError
    from twinnet.lab import Lab, attach, labs
    from twinnet.network import Network, templates
    from twinnet.network.impairments import GilbertElliott, Jitter, JitterTable
    from twinnet.network.nodes import Host, Router, Switch
    from twinnet.network.topology_file import load_network
    from twinnet.network.tunnels import Tunnel, gre, vxlan
    from twinnet.results import fidelity
    from twinnet.results.fidelity import FidelityRecord, Thresholds
    from twinnet.traffic import apps
    from twinnet.traffic import distributions as processes
    from twinnet.traffic.application import Application
    from twinnet.traffic.congestion import CongestionControl
    from twinnet.traffic.estimator import Estimator

__version__ = "0.1.0"

__all__ = [
    "Application",
    "CongestionControl",
    "DeliveryTrace",
    "Estimator",
    "FidelityRecord",
    "GilbertElliott",
    "Host",
    "Jitter",
    "JitterTable",
    "Lab",
    "LabError",
    "Network",
    "Router",
    "Switch",
    "Thresholds",
    "Tunnel",
    "TwinnetError",
    "UsageError",
    "__version__",
    "apps",
    "attach",
    "bandwidth",
    "control",
    "errors",
    "fidelity",
    "gre",
    "lab",
    "labs",
    "load_network",
    "processes",
    "programs",
    "qos",
    "results",
    "stats",
    "studies",
    "templates",
    "units",
    "vxlan",
]

_MODULES = {
    "apps": "traffic.apps",
    "bandwidth": "bandwidth",
    "control": "control",
    "errors": "errors",
    "fidelity": "results.fidelity",
    "lab": "lab",
    "processes": "traffic.distributions",
    "programs": "programs",
    "qos": "qos",
    "results": "results",
    "stats": "stats",
    "studies": "studies",
    "templates": "network.templates",
    "units": "units",
}
_HOMES = {
    "Application": "traffic.application",
    "CongestionControl": "traffic.congestion",
    "DeliveryTrace": "deliveries",
    "Estimator": "traffic.estimator",
    "FidelityRecord": "results.fidelity",
    "GilbertElliott": "network.impairments",
    "Host": "network.nodes",
    "Jitter": "network.impairments",
    "JitterTable": "network.impairments",
    "Lab": "lab",
    "LabError": "errors",
    "Network": "network",
    "Router": "network.nodes",
    "Switch": "network.nodes",
    "Thresholds": "results.fidelity",
    "Tunnel": "network.tunnels",
    "TwinnetError": "errors",
    "UsageError": "errors",
    "attach": "lab",
    "gre": "network.tunnels",
    "labs": "lab",
    "load_network": "network.topology_file",
    "vxlan": "network.tunnels",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"twinnet.{_MODULES[name]}")
    if name in _HOMES:
        value = getattr(importlib.import_module(f"twinnet.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    # With both, Python itself suggests the nearest name.
    raise AttributeError(f"module 'twinnet' has no attribute {name!r}", name=name, obj=sys.modules[__name__])


def __dir__() -> list[str]:
    return sorted(__all__)
