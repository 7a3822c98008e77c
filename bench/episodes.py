"""How long environments take to begin an episode and to make a step: ``python -m bench.episodes``.

Two networks on the virtual clock, each with a bulk transfer that is on its way: two hosts at a line of 20 Mbit/s, and a
tree of 100 hosts. A reset ends the lab before and counts all until the first observation; a step is 100 ms of the lab.
"""

from __future__ import annotations

import argparse
import time

import gymnasium
import numpy as np
import twinnet as tn
from twinnet.gym import FlowMeter, LabEnv, LinkMeters


class Episodes(LabEnv[np.ndarray, int]):
    """A bulk transfer over `net`, whose rate is observed; the only action does nothing."""

    def __init__(self, net: tn.Network, sink: str, line: tuple[str, str]) -> None:
        super().__init__(step="100 ms", duration="1 h")
        self.net, self.sink, self.line = net, sink, line
        self.observation_space = gymnasium.spaces.Box(0, np.inf, (2,))
        self.action_space = gymnasium.spaces.Discrete(1)

    def network(self) -> tn.Network:
        """Return the network that was given."""
        return self.net

    def begin(self, lab: tn.Lab) -> None:
        """Start the transfer."""
        self.flow = FlowMeter(lab, lab.start(tn.apps.tcp_bulk("h1", self.sink, duration="1 h")))
        self.links = LinkMeters(lab, self.line)

    def act(self, lab: tn.Lab, action: int) -> None:
        """Do nothing."""

    def observe(self, lab: tn.Lab) -> tuple[np.ndarray, float]:
        """Return the rates of flow and line."""
        rate_bps = self.flow.read().rate_bps
        return np.array([rate_bps, self.links.read()[0].rate_bps], np.float32), rate_bps


def networks() -> dict[str, Episodes]:
    """Return the environments by name."""
    line = tn.Network()
    s1 = line.switch("s1")
    line.link(line.host("h1"), s1, rate="1 Gbit")
    line.link(s1, line.host("h2"), rate="20 Mbit", delay="10 ms")
    tree = tn.templates.tree(depth=2, fanout=10, rate="20 Mbit")
    return {"2 hosts": Episodes(line, "h2", ("s1", "h2")), "100 hosts": Episodes(tree, "h100", ("s1", "s2"))}


def main() -> None:
    """Measure, and print a line for each network."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--resets", type=int, default=200)
    resets = asked.parse_args().resets
    for name, env in networks().items():
        env.reset(seed=0)
        times: dict[str, list[float]] = {"reset": [], "step": []}
        for seed in range(1, resets + 1):
            for what, do in (
                ("reset", lambda env=env, seed=seed: env.reset(seed=seed)),
                *[("step", lambda env=env: env.step(0))] * 5,
            ):
                begin_s = time.perf_counter()
                do()
                times[what].append(1000 * (time.perf_counter() - begin_s))
        env.close()
        for what, taken in times.items():
            low, middle, high = np.percentile(taken, [5, 50, 95])
            print(f"{name}, {what}: median {middle:.2f} ms (5 to 95 %: {low:.2f} to {high:.2f}), n = {len(taken)}")


if __name__ == "__main__":
    main()
