"""A learner finds routes: two ways, and three senders of which another one sends much every ten seconds or so. It shows
the interface, not that learning wins: the senders were chosen so that ways that stay do badly."""

import gymnasium
import numpy as np
import twinnet as tn
from twinnet.gym import LabEnv, LinkMeters

SENDERS = ("h1", "h2", "h3")
LOW_MBIT, HIGH_MBIT = 1.5, 10
UPPER, LOWER = 4, 5
"""The ports of s1 that lead to the way of 12 Mbit/s and to that of 4 Mbit/s."""


def network() -> tn.Network:
    net = tn.Network()
    there_and_back = ["in_port=1,actions=output:2", "in_port=2,actions=output:1"]
    s1 = net.switch("s1", flows=[f"in_port={UPPER},actions=output:1,output:2,output:3"])
    s2, s3 = net.switch("s2", flows=there_and_back), net.switch("s3", flows=there_and_back)
    s4 = net.switch(
        "s4", flows=["in_port=1,actions=output:3", "in_port=2,actions=output:3", "in_port=3,actions=output:1"]
    )
    for name in SENDERS:
        net.link(net.host(name), s1, rate="100 Mbit")
    queue = tn.qos.Fifo(limit_frames=20)
    for middle, rate in ((s2, "12 Mbit"), (s3, "4 Mbit")):
        net.link(s1, middle, rate=rate, delay="2 ms", queue=queue)
    for middle in (s2, s3):
        net.link(middle, s4, rate="100 Mbit")
    net.link(s4, net.host("sink"), rate="100 Mbit")
    return net


class Routing(LabEnv[np.ndarray, int]):
    """See what each sender sent in the last second; choose a way for each in the next."""

    def __init__(self, **times) -> None:
        super().__init__(**{"step": "1 s", "duration": "40 s", "warm_up": "1 s", **times})
        self.observation_space = gymnasium.spaces.Box(0, np.inf, (len(SENDERS),))
        self.action_space = gymnasium.spaces.Discrete(2 ** len(SENDERS))

    def network(self) -> tn.Network:
        return network()

    def begin(self, lab: tn.Lab) -> None:
        high = self.np_random.choice(SENDERS)
        for second in range(41):
            for sender in SENDERS:
                rate = f"{HIGH_MBIT if sender == high else LOW_MBIT} Mbit"
                lab.start(tn.apps.udp(sender, "sink", rate=rate, payload="1000 B", duration="1 s"), at=f"{second} s")
            high = self.np_random.choice(SENDERS) if self.np_random.random() < 0.15 else high
        self.act(lab, 0)
        self.meters = LinkMeters(lab, ("s4", "sink"), *((sender, "s1") for sender in SENDERS))

    def act(self, lab: tn.Lab, action: int) -> None:
        ways = (LOWER if action >> number & 1 else UPPER for number in range(len(SENDERS)))
        flows = [f"in_port={port},actions=output:{way}" for port, way in enumerate(ways, 1)]
        lab.switch("s1").add_flows(flows)

    def observe(self, lab: tn.Lab) -> tuple[np.ndarray, float]:
        arrived, *sent = (reading.rate_bps / 1e6 for reading in self.meters.read())
        return np.array(sent, np.float32), arrived / sum(sent)


gymnasium.register("Routing-v0", Routing)


def seen(observations: np.ndarray) -> np.ndarray:
    """Who sent most."""
    return observations.argmax(axis=-1)


def learned(rounds: int = 120, labs: int = 8) -> np.ndarray:
    """The mean share that arrived, by case and action, of several labs side by side."""
    envs = gymnasium.make_vec("Routing-v0", num_envs=labs, vectorization_mode="sync")
    random = np.random.default_rng(1)
    # Hoping for more than there is, it tries all.
    values, tried = np.full((3, 8), 1.1), np.zeros((3, 8))
    states, begun = seen(envs.reset(seed=1)[0]), np.zeros(labs, bool)
    for _ in range(rounds):
        by_chance = random.random(labs) < 0.1
        actions = np.where(by_chance, random.integers(8, size=labs), values[states].argmax(axis=1))
        observations, shares, _, over, _ = envs.step(actions)
        for one in np.flatnonzero(~begun):
            case = states[one], actions[one]
            tried[case] += 1
            values[case] += (shares[one] - values[case]) / tried[case]
        # The step after an episode's last only begins the next.
        states, begun = seen(observations), over
    envs.close()
    return values


def share(choose) -> float:
    """The share that arrives in episodes that were not learned from, when `choose` finds the action for a case."""
    env, shares = Routing(), []
    for seed in range(100, 105):
        observation, over = env.reset(seed=seed)[0], False
        while not over:
            observation, arrived, _, over, _ = env.step(int(choose(seen(observation))))
            shares.append(arrived)
    env.close()
    return float(np.mean(shares))


if __name__ == "__main__":
    values = learned()
    fixed = [share(lambda case, action=action: action) for action in range(8)]
    print(f"all by the wider way: {fixed[0]:.1%} arrives")
    print(f"the best ways that stay: {max(fixed):.1%}")
    print(f"learned: {share(lambda case: values[case].argmax()):.1%}")
