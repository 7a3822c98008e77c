"""``python -m bench.made_page HOSTS TICKS_PER_S``: the live page of a lab that is not there.

Its server is that of `twinnet live`, and what the links do is drawn by chance: the browser alone is at work.
"""

from __future__ import annotations

import asyncio
import json
import random
import socket
import sys
from types import SimpleNamespace
from typing import cast

import twinnet as tn
import uvicorn
from twinnet.drawing import picture_of
from twinnet.drawing.picture import MOST_LIVE_NODES
from twinnet.live.acts import Acts
from twinnet.live.feed import Feed
from twinnet.live.gate import Gate
from twinnet.live.routes import routes
from twinnet.live.watch import record_of_network

_HOSTS_PER_SWITCH = 25
_LINE_BPS = 1_000_000_000


def made_network(hosts: int) -> tn.Network:
    """A switch above switches of 25 hosts each: a link for each node but one."""
    net = tn.Network()
    top = net.switch("s0")
    for number in range(hosts):
        if number % _HOSTS_PER_SWITCH == 0:
            below = net.switch(f"s{number // _HOSTS_PER_SWITCH + 1}")
            net.link(top, below, rate="10 Gbit")
        net.link(net.host(f"h{number + 1}"), below, rate="1 Gbit")
    return net


async def _ticks(feed: Feed, ways: int, every_s: float) -> None:
    chance, clock = random.Random(1), asyncio.get_running_loop().time
    begin_s = due_s = clock()
    while True:
        due_s += every_s
        await asyncio.sleep(max(0.0, due_s - clock()))
        drawn = [[round(load * _LINE_BPS), load, queue, 0, True, _LINE_BPS] for load, queue in _drawn(chance, ways)]
        now_s = clock() - begin_s
        verdict = {"state": "valid", "reasons": [], "covers_s": now_s, "at_s": int(now_s), "late_s": 0}
        tick = {"now_s": now_s, "elapsed_s": every_s, "ways": drawn, "verdict": verdict, "acts": 0}
        await feed.publish(f"event: tick\ndata: {json.dumps(tick, separators=(',', ':'))}\n\n".encode())


def _drawn(chance: random.Random, ways: int) -> list[tuple[float, int]]:
    return [(round(chance.random(), 4), int(chance.expovariate(0.05))) for _ in range(ways)]


async def main(hosts: int, ticks_per_s: float) -> None:
    """Serve the page until a signal comes; print its address first."""
    net = made_network(hosts)
    ends = [(link.a.node, link.b.node, link.a.name, link.b.name) for link in net.links]
    record = record_of_network("made", picture_of(net, MOST_LIVE_NODES), ends)
    feed = Feed()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        app = routes(record | {"control": False, "clock": "wall"}, feed, cast(Acts, SimpleNamespace(lab=None)))
        gate = Gate(app, port, ())
        print(json.dumps({"address": f"http://127.0.0.1:{port}/?token={gate.token}"}), flush=True)
        ticks = asyncio.create_task(_ticks(feed, 2 * len(ends), 1 / ticks_per_s))
        await uvicorn.Server(uvicorn.Config(gate, lifespan="off", log_level="critical", ws="none")).serve([listener])
        ticks.cancel()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), float(sys.argv[2])))
