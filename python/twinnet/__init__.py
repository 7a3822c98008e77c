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
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from twinnet import apps, control, errors, fidelity, lab, processes, programs, qos, templates, units
    from twinnet.errors import LabError, TwinnetError, UsageError
    from twinnet.fidelity import FidelityRecord, Thresholds
    from twinnet.lab import Lab, attach, labs
    from twinnet.link_settings import GilbertElliott, Jitter, JitterTable
    from twinnet.network import Network
    from twinnet.topology_file import load_network
    from twinnet.tunnels import Tunnel, gre, vxlan

__version__ = "0.1.0"

__all__ = [
    "FidelityRecord",
    "GilbertElliott",
    "Jitter",
    "JitterTable",
    "Lab",
    "LabError",
    "Network",
    "Thresholds",
    "Tunnel",
    "TwinnetError",
    "UsageError",
    "__version__",
    "apps",
    "attach",
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
    "templates",
    "units",
    "vxlan",
]

_MODULES = ("apps", "control", "errors", "fidelity", "lab", "processes", "programs", "qos", "templates", "units")
_HOMES = {
    "FidelityRecord": "fidelity",
    "GilbertElliott": "link_settings",
    "Jitter": "link_settings",
    "JitterTable": "link_settings",
    "Lab": "lab",
    "LabError": "errors",
    "Network": "network",
    "Thresholds": "fidelity",
    "Tunnel": "tunnels",
    "TwinnetError": "errors",
    "UsageError": "errors",
    "attach": "lab",
    "gre": "tunnels",
    "labs": "lab",
    "load_network": "topology_file",
    "vxlan": "tunnels",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"twinnet.{name}")
    if name in _HOMES:
        value = getattr(importlib.import_module(f"twinnet.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'twinnet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
