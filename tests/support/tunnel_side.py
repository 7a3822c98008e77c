"""A lab whose host h1 is joined to another speaker by a tunnel, spoken to by lines of JSON.

Its argument has `address` of the host, `tunnels` (mappings as in network files), `mtu` of all links.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import twinnet as tn


def network(settings: dict[str, Any]) -> tn.Network:
    """h1 at the switch s1, and a tunnel's end for each tunnel."""
    net = tn.Network()
    mtu = settings.get("mtu", 1500)
    for number, tunnel in enumerate(settings["tunnels"], 1):
        name = "h1" if number == 1 else f"h{number}"
        address = settings["address"] if number == 1 else f"10.0.0.{10 + number}/24"
        host = net.host(name, ip=address, ip6=False, mac=settings.get("mac"))
        net.link(host, net.switch(f"s{number}"), mtu=mtu)
        net.tunnel(f"s{number}", tunnel, mtu=mtu)
    return net


def answer(lab: tn.Lab, request: dict[str, Any]) -> Any:
    """Do what one line asks."""
    if "run" in request:
        return lab[request.get("host", "h1")].run(request["run"], timeout="60 s").stdout
    if "start" in request:
        lab["h1"].popen(request["start"])
        return None
    return lab.tunnels()


def main() -> None:
    """Run the lab until nobody speaks any more."""
    try:
        with network(json.loads(sys.argv[1])).emulate() as lab:
            print(json.dumps({"ready": True}), flush=True)
            for line in sys.stdin:
                print(json.dumps({"answer": answer(lab, json.loads(line))}), flush=True)
    except tn.TwinnetError as error:
        print(json.dumps({"refused": str(error)}), flush=True)


main()
