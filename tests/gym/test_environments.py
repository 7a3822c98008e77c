"""Environments for reinforcement learning: Gymnasium's own check, seeds, times, meters, and windows that are driven."""

from __future__ import annotations

import importlib.util
import math
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
import twinnet as tn
from labs_here import needs_a_lab
from module_files import module_in
from twinnet.errors import BadTopology, BadValue, NotAvailable, UnknownNode

if importlib.util.find_spec("gymnasium") is None:
    pytest.skip("gymnasium is not installed", allow_module_level=True)

import gymnasium
import numpy as np
from gymnasium.utils.env_checker import check_env
from twinnet.gym import Driver, FlowMeter, LabEnv, LinkMeters

EXAMPLES = Path(__file__).parents[2] / "examples"


class Rate(LabEnv[np.ndarray, int]):
    """Chooses the rate of a line that UDP of 5 Mbit/s wants to pass."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"step": "100 ms", "duration": "1 s", **settings})
        self.observation_space = gymnasium.spaces.Box(0, np.inf, (2,))
        self.action_space = gymnasium.spaces.Discrete(2)
        self.delay_ms = 0

    def network(self) -> tn.Network:
        net = tn.Network()
        s1 = net.switch("s1")
        self.delay_ms = int(self.np_random.integers(1, 10))
        net.link(net.host("h1", model=True), s1, rate="1 Gbit")
        net.link(s1, net.host("h2", model=True), rate="10 Mbit", delay=f"{self.delay_ms} ms")
        return net

    def begin(self, lab: tn.Lab) -> None:
        gap = tn.processes.exponential("2 ms")
        self.started = lab.start(tn.apps.udp("h1", "h2", gap=gap, payload="1250 B", duration="1 h"))
        self.flow, self.links = FlowMeter(lab, self.started), LinkMeters(lab, ("s1", "h2"), ("h1", "s1"))

    def act(self, lab: tn.Lab, action: int) -> None:
        lab.link("s1", "h2").set("ab", rate=("2 Mbit", "10 Mbit")[action])

    def observe(self, lab: tn.Lab) -> tuple[np.ndarray, float]:
        told = self.flow.read()
        return np.array([told.rate_bps, told.delay_s or 0], np.float32), told.rate_bps


def test_gymnasiums_own_check_has_nothing_to_say() -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("error", category=UserWarning)
        # That Box has no upper bound is no fault: no rate is the greatest.
        warnings.filterwarnings("ignore", message=".*infinity.*")
        check_env(Rate(), skip_render_check=True)


def test_a_seed_repeats_an_episode_event_by_event_and_another_does_not() -> None:
    env = Rate()

    def hashed(seed: int | None) -> str:
        env.reset(seed=seed)
        env.step(1)
        assert env.lab is not None
        return env.lab.trace_hash

    first, second = hashed(3), hashed(None)
    assert (hashed(3), hashed(None)) == (first, second)
    assert first != second
    assert hashed(4) != first
    env.close()
    assert env.lab is None


def test_an_episode_lasts_as_long_as_it_says_and_the_last_steps_are_told() -> None:
    env = Rate(step="300 ms", warm_up="50 ms")
    _, info = env.reset(seed=1)
    assert info == {"time_s": 0.05}
    times, truncated = [], False
    while not truncated:
        _, _, terminated, truncated, info = env.step(0)
        assert not terminated
        times.append(info["time_s"])
    # 1 s is over in the fourth step of 0.3 s.
    assert times == [0.35, 0.65, 0.95, 1.25]
    with pytest.raises(BadValue, match=r"no episode is going on.*reset\(\)"):
        env.step(0)
    env.close()


def test_an_episode_can_end_by_itself() -> None:
    class Short(Rate):
        def ended(self, lab: tn.Lab) -> bool:
            return lab.now() >= 0.2

    env = Short()
    env.reset(seed=1)
    assert [env.step(1)[2] for _ in range(2)] == [False, True]
    with pytest.raises(BadValue, match="no episode"):
        env.step(1)
    env.close()


def test_meters_tell_what_happened_since_they_were_read() -> None:
    env = Rate(step="1 s", duration="3 s")
    env.reset(seed=1)
    env.links.read()
    env.step(1)
    sent, offered = env.links.read()
    # 500 datagrams a second on average, of 1250 B and 66 B of headers, preamble and gap.
    assert sent.rate_bps == pytest.approx(500 * 1316 * 8, rel=0.15)
    assert sent.seconds == 1 and sent.dropped == 0
    assert abs(offered.frames - sent.frames) <= 5
    (rate, delay_s), *_ = env.step(0)
    slow, _ = env.links.read()
    assert slow.rate_bps == pytest.approx(2e6, rel=0.01)
    assert slow.backlog_bytes > 100_000
    assert rate == pytest.approx(2e6 * 1250 / 1316, rel=0.02)
    assert delay_s > 0.2
    before = env.started.report()
    (_, mean_s), *_ = env.step(0)
    after = env.started.report()
    assert before.delay is not None and after.delay is not None
    sums = after.delay.count * after.delay.mean - before.delay.count * before.delay.mean
    assert mean_s == pytest.approx(sums / (after.delay.count - before.delay.count) / 1e12, rel=1e-6)
    env.close()


def test_losses_are_counted_once() -> None:
    net = tn.Network()
    net.link(net.host("h1"), net.host("h2"), rate="10 Mbit", loss="20 %")
    # Asking for addresses would lose datagrams in the host.
    with net.simulate(seed=1, static_neighbours=True) as lab:
        started = lab.start(tn.apps.udp("h1", "h2", rate="4 Mbit", payload="1000 B", duration="4 s"))
        flow, links = FlowMeter(lab, started), LinkMeters(lab, ("h1", "h2"))
        readings = []
        for second in range(1, 5):
            lab.run_until(f"{second} s")
            readings.append((flow.read(), links.read()[0]))
        total = started.report()
    assert sum(told.lost for told, _ in readings) == total.lost
    assert sum(told.packets for told, _ in readings) == total.packets
    assert sum(line.dropped for _, line in readings) == pytest.approx(total.lost, abs=2)
    assert all(told.lost == pytest.approx(100, rel=0.35) for told, _ in readings)


def test_a_driven_window_is_what_tcp_sends() -> None:
    driver = Driver()
    net = tn.Network()
    s1 = net.switch("s1")
    net.link(net.host("h1"), s1, rate="1 Gbit")
    net.link(s1, net.host("h2"), rate="20 Mbit", delay="20 ms")
    with net.simulate(seed=1) as lab:
        bulk = tn.apps.tcp_bulk("h1", "h2", duration="1 h", congestion_control=driver.control)
        flow = FlowMeter(lab, lab.start(bulk))
        lab.run_until("200 ms")
        (connection,) = driver.connections
        for window, second in ((10, 1), (25, 2)):
            connection.window = window
            lab.run_until(f"{second} s")
            flow.read(), connection.read()
            lab.run_until(f"{second}.5 s")
            told = connection.read()
            # A window a round trip: 40 ms, and 0.6 ms that a segment of 1448 B takes on the line.
            assert flow.read().rate_bps == pytest.approx(window * 1448 * 8 / 0.0406, rel=0.03)
            assert told.round_trip_s == pytest.approx(0.0406, rel=0.05)
            assert told.least_round_trip_s is not None and told.least_round_trip_s <= told.round_trip_s
            assert told.delivered == pytest.approx(window * 0.5 / 0.0406, rel=0.1)
            assert (told.lost, told.congested) == (0, 0)
    driver.begin()
    assert driver.connections == []


def test_several_labs_side_by_side_are_those_of_their_seeds() -> None:
    gymnasium.register("TwinnetRate-v0", Rate, disable_env_checker=True)
    for mode in ("sync", "async"):
        envs = gymnasium.make_vec("TwinnetRate-v0", num_envs=3, vectorization_mode=mode)
        envs.reset(seed=[5, 6, 5])
        seen = np.array([envs.step(np.array([1, 1, 1]))[0] for _ in range(3)])
        envs.close()
        assert (seen[:, 0] == seen[:, 2]).all()
        assert (seen[:, 0] != seen[:, 1]).any()


@needs_a_lab
def test_the_same_class_runs_on_the_wall_clock() -> None:
    env = Rate(clock="wall", duration="300 ms")
    env.reset(seed=1)
    told = [env.step(1) for _ in range(3)]
    env.close()
    assert [one[3] for one in told] == [False, False, True]
    # 500 datagrams a second come by chance, for 0.1 s each time.
    assert np.mean([one[1] for one in told]) == pytest.approx(500 * 1250 * 8, rel=0.5)
    assert told[-1][4]["time_s"] >= 0.3


@needs_a_lab
def test_a_driven_window_is_refused_on_the_wall_clock() -> None:
    driver = Driver()
    net = tn.Network()
    net.link(net.host("h1"), net.host("h2"))
    bulk = tn.apps.tcp_bulk("h1", "h2", duration="1 s", congestion_control=driver.control)
    with net.emulate() as lab, pytest.raises(NotAvailable, match=r"model hosts on the virtual clock.*simulate"):
        lab.start(bulk)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"step": "0 s"}, "give a step that is longer than none"),
        ({"step": "2 s"}, "not longer than the episode"),
        ({"step": "soon"}, "step"),
        ({"clock": "real"}, "write 'virtual' or 'wall'"),
    ],
)
def test_times_and_clocks_that_cannot_be_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Rate(**settings)


def test_what_is_not_there_is_refused_by_name() -> None:
    env = Rate()
    with pytest.raises(BadValue, match=r"no episode is going on"):
        env.step(1)
    env.reset(seed=1)
    with pytest.raises(BadValue, match=r"the action 7 is not in Discrete\(2\)"):
        env.step(7)
    assert env.lab is not None
    with pytest.raises(UnknownNode, match="s9"):
        LinkMeters(env.lab, ("s1", "s9"))
    with pytest.raises(BadTopology, match="not linked"):
        LinkMeters(env.lab, ("h1", "h2"))
    with pytest.raises(BadValue, match="no receiver that counts"):
        FlowMeter(env.lab, env.lab.start(tn.apps.ping("h1", "h2", count=1)))
    env.close()


def test_a_lab_that_cannot_begin_leaves_nothing_behind() -> None:
    class Wrong(Rate):
        def begin(self, lab: tn.Lab) -> None:
            self.begun = lab
            lab.link("h1", "h2")

    env = Wrong()
    with pytest.raises(BadTopology):
        env.reset(seed=1)
    assert env.lab is None and not env.begun.running


def test_without_gymnasium_the_extra_is_named() -> None:
    code = "import sys, importlib.util as u; f = u.find_spec\n"
    code += "u.find_spec = lambda name, *rest: None if name == 'gymnasium' else f(name, *rest)\nimport twinnet.gym"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "NotAvailable" in done.stderr and "pip install 'twinnet[gym]'" in done.stderr


@pytest.mark.parametrize("name", ["learned_congestion_control", "learned_routing"])
def test_the_gallerys_environments_pass_gymnasiums_check(name: str) -> None:
    module = module_in(EXAMPLES / f"{name}.py")
    (env_class,) = (
        one for one in vars(module).values() if isinstance(one, type) and issubclass(one, LabEnv) and one is not LabEnv
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("error", category=UserWarning)
        warnings.filterwarnings("ignore", message=".*infinity.*")
        check_env(env_class(), skip_render_check=True)
    env = env_class()
    observation, _ = env.reset(seed=1)
    assert all(math.isfinite(value) for value in observation)
    env.close()
