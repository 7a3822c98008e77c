"""The calibration lab: two seconds on the wall clock in a slot, before it takes runs on the wall clock."""

from __future__ import annotations

from twinnet.errors import TwinnetError
from twinnet.network.network import Network
from twinnet.traffic import apps

__all__ = ["LENGTH_S", "calibrate"]

LENGTH_S = 2
_RATE = "20 Mbit"
_PAYLOAD = "1000 B"
_PATIENCE = "30 s"


def calibrate() -> tuple[str, str]:
    """Run the calibration lab on the processors of this process, and return its verdict and the reasons.

    One switch joins two hosts with links of 100 Mbit/s and 1 ms; UDP datagrams of 1000 bytes at 20 Mbit/s go each way.
    The verdict is `valid`, `doubtful` or `invalid`, or `unavailable` when no lab runs here.
    """
    network = Network()
    switch = network.switch("s1")
    for name in ("h1", "h2"):
        network.link(network.host(name), switch, rate="100 Mbit", delay="1 ms")
    try:
        with network.emulate() as lab:
            lab.wait([lab.start(apps.ping("h1", "h2"))], until=_PATIENCE)
            lab.fidelity(reset=True)
            begin = f"{lab.now() + 0.2:.6f} s"
            ways = (("h1", "h2"), ("h2", "h1"))
            flows = [
                apps.udp(one, other, rate=_RATE, payload=_PAYLOAD, duration=f"{LENGTH_S} s", port=5001 + number)
                for number, (one, other) in enumerate(ways)
            ]
            lab.wait([lab.start(flow, at=begin) for flow in flows], until=_PATIENCE)
            verdict = lab.fidelity().verdict()
    except TwinnetError as error:
        return "unavailable", str(error)
    return verdict.state, "; ".join(verdict.reasons)
