"""The files that ``twinnet policy new`` writes: a commented policy and its test."""

from __future__ import annotations

import re
from pathlib import Path

from twinnet.errors import BadPolicy

__all__ = ["write_skeleton"]

_POLICY = '''"""{title}: a QoS policy for twinnet."""

from twinnet.policies import Match, Policy, TrafficClass


class {class_name}(Policy):
    """Say here what it does; `twinnet policy show {module}:{class_name}` prints the lines below."""

    name = "{name}"
    title = "HTTP has at least half of each port, the rest has what is left"
    promise = "HTTP is never below half of a port that it can fill."
    origin = "You"
    fails = "When HTTP is all there is to carry."

    def classes(self, network, load):
        # `network` is a twinnet.Network, `load` tells who asks whom for what; neither is to be changed.
        # A class has a match for each direction: what clients send to port 8080, and what servers answer.
        http = [Match("tcp", destination_port=8080), Match("tcp", source_port=8080)]
        return [
            # Amounts are shares of the scheduler's rate (0.5), or rates with unit ("5 Mbit").
            TrafficClass("http", http, minimum=0.5),
            # The class without matches takes the rest.
            TrafficClass("rest", minimum=0.1),
        ]

    # Further methods that you may override:
    #   queue(rate_bps, classes)    the discipline of a port; an HTB of the classes when you do not
    #   routes(network, load)       paths of a class that does not go the shortest way
    #   controller(compiled)        a controller that goes on deciding while the network runs
'''

_TEST = '''"""Tests of the policy {name}: `pytest test_{module}.py`."""

from twinnet import policies
from twinnet.network import templates
from twinnet.traffic import apps

from {module} import {class_name}


def test_http_keeps_its_half_beside_a_stream_that_would_take_all():
    net = templates.dumbbell(left=2, rate="10 Mbit")
    compiled = policies.compile_policy(net, {class_name}(), policies.Enforcement(["s1"]))
    compiled.deploy(net)
    with net.simulate(seed=1) as lab:
        page = lab.start(apps.http_get("h3", "h1", size="100 MB"))
        lab.start(apps.udp("h2", "h4", rate="20 Mbit", duration="20 s"))
        lab.run_until("20 s")
        rate_bps = page.report().bytes * 8 / 20
        assert policies.misplaced_traffic(lab, compiled) == []
    # Half of 10 Mbit/s, less the headers of TCP, IP and Ethernet (about 5 %) and the first second of slow start.
    assert rate_bps > 4.2e6
'''


def write_skeleton(name: str, folder: Path) -> list[Path]:
    """Write ``NAME.py`` and ``test_NAME.py`` into `folder`, and return their paths.

    Raises
    ------
    BadPolicy
        When the name cannot be a module's, or one of the files is there already.
    """
    module = name.replace("-", "_")
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,40}", module):
        raise BadPolicy(f"the policy's name is {name!r}", "a letter, then letters, digits, hyphens: fair-web")
    words = {
        "name": module.replace("_", "-"),
        "module": module,
        "class_name": "".join(part.capitalize() for part in module.split("_")),
        "title": module.replace("_", " ").capitalize(),
    }
    wanted = {folder / f"{module}.py": _POLICY, folder / f"test_{module}.py": _TEST}
    there = next((path for path in wanted if path.exists()), None)
    if there is not None:
        raise BadPolicy(f"{there} is there already", "choose another name, or another folder with --in")
    for path, text in wanted.items():
        path.write_text(text.format(**words), encoding="utf-8")
    return list(wanted)
