"""Faults that a class is to find: no door of the page tells how links and queues are set before the answer."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import twinnet as tn
from starlette.testclient import TestClient
from twinnet.lab.lab import Lab
from twinnet.live.acts import Acts
from twinnet.live.done import Done
from twinnet.live.faults import chosen_fault, faults_of
from twinnet.live.feed import Feed
from twinnet.live.recording import Recording
from twinnet.live.routes import routes
from twinnet.live.seal import Seal
from twinnet.live.watch import LabWatch, network_record

SETTINGS = ("slow", "loss", "delay", "queue")
"""Kinds of faults that nobody sees before there is traffic; the others are seen in the picture and in flow tables."""


class Doors:
    """All that the page of `lab` tells."""

    def __init__(self, lab: Lab, out: Path) -> None:
        self.lab = lab
        self.acts = Acts(lab)
        network = network_record(lab) | {"control": True, "clock": lab.clock}
        self.browser = TestClient(routes(network, Feed(), self.acts))
        self.watch, self.out = LabWatch(lab), out
        self.recording = Recording(network, out)

    def look(self) -> dict[str, Any]:
        for _ in range(2):
            self.lab.run_until(f"{self.lab.now_ps() + 10**12} ps")
            seen = self.acts.seal.hide(self.watch.look())
        assert seen is not None
        self.recording.add(seen)
        return seen

    def told(self) -> dict[str, str]:
        """What each door tells, without what differs between two labs that do the same."""
        hosts = self.lab.layout.names("host")
        ways = [
            f"/follow?from={a}&to={b}&protocol={protocol}"
            for protocol in ("udp", "tcp", "icmp")
            for a, b in ((hosts[0], hosts[-1]), (hosts[-1], hosts[0]))
        ]
        links = range(len(self.lab.layout.links))
        of_links = [f"/{what}/{number}" for what in ("settings", "samples") for number in links]
        of_switches = [f"/{what}/{name}" for what in ("flows", "groups") for name in self.lab.layout.names("switch")]
        rest = ["/", "/acts", "/network.yaml", "/metrics", "/traffic", "/controllers", "/captures"]
        found = {path: self.browser.get(path).text for path in [*ways, *of_links, *of_switches, *rest]}
        found["ticks"] = str(self.look())
        self.recording.write(self.acts.record())
        found |= {"recording": self.out.read_text(), "by hand": str(self.lab.fidelity().by_hand)}
        return {door: re.sub(r"seed \d+", "seed", text.replace(self.lab.name, "LAB")) for door, text in found.items()}


def network() -> tn.Network:
    net = tn.Network()
    switch = net.switch("s1", fail_mode="secure", flows=["priority=1,actions=flood"])
    net.link(net.host("h1"), switch, rate="10 Mbit", delay="1 ms", loss="1 %")
    net.link(net.host("h2"), switch)
    net.link(net.host("h3"), switch, rate="20 Mbit")
    return net


def seeds_of(kinds: tuple[str, ...], most: int) -> list[int]:
    """Seeds of several faults of each of `kinds`."""
    with network().simulate(name="") as lab:
        faults = {kind: list(some) for kind, some in faults_of(lab).items()}
        chosen = {seed: chosen_fault(lab, seed) for seed in range(200)}
    return [seed for kind in kinds for seed in [seed for seed, fault in chosen.items() if fault in faults[kind]][:most]]


def sealed(seed: int, out: Path) -> dict[str, str]:
    with network().simulate(name="") as lab:
        doors = Doors(lab, out)
        doors.acts.do({"act": "seal", "seed": seed})
        return doors.told()


def test_no_door_tells_one_fault_of_settings_from_another(tmp_path: Path) -> None:
    seeds = seeds_of(SETTINGS, 3)
    assert len(seeds) == 12
    first, *others = [sealed(seed, tmp_path / "run.html") for seed in seeds]
    assert len(first) == 24 and all(len(text) > 1 for text in first.values())
    for seed, told in zip(seeds[1:], others, strict=True):
        assert {door for door in first if told[door] != first[door]} == set(), seed


@pytest.mark.parametrize("kind", ["down", "rule", "missing"])
def test_what_is_broken_is_not_named_by_acts_and_verdict_before_the_answer(kind: str, tmp_path: Path) -> None:
    for seed in seeds_of((kind,), 2):
        with network().simulate(name="") as lab:
            doors = Doors(lab, tmp_path / "run.html")
            doors.acts.do({"act": "seal", "seed": seed})
            told = doors.told()
            answer = doors.acts.do({"act": "answer"})
            words = {word for line in answer.python for word in re.findall(r'"([^"]+)"', line)} - {"s1"}
            for door in ("/acts", "by hand"):
                assert "something is broken" in told[door]
                assert not [word for word in words if word in told[door]]
            after = doors.told()
            assert all(word in after["/acts"] for word in words) and words
            assert "sends" in after["/follow?from=h1&to=h3&protocol=udp"]


def test_all_is_told_after_the_answer(tmp_path: Path) -> None:
    (seed,) = seeds_of(("delay",), 1)
    with network().simulate(name="") as lab:
        doors = Doors(lab, tmp_path / "run.html")
        assert all(line["ways"][0][5] == 10_000_000 for line in [doors.look()])
        doors.acts.do({"act": "seal", "seed": seed})
        before = doors.told()
        doors.acts.do({"act": "answer"})
        after = doors.told()
    follow = "/follow?from=h1&to=h3&protocol=udp"
    assert re.search("delay|sends|waits_ps", before[follow]) is None and "frames" in before[follow]
    assert "delay 1 ms" in after[follow] and '"sends_ps"' in after[follow]
    assert "line_rate" in after["/metrics"] and "line_rate" not in before["/metrics"]
    assert "200 ms" in str([text for door, text in after.items() if door.startswith("/settings")])
    assert "200 ms" in after["/acts"] and "links:" in after["/network.yaml"] and "links:" not in before["/network.yaml"]


def test_loads_stay_true_and_lines_are_told_as_they_were() -> None:
    with network().simulate(name="") as lab:
        acts, watch = Acts(lab), LabWatch(lab)
        lab.start(tn.apps.udp("h3", "h1", rate="5 Mbit", duration="60 s"))
        lab.start(tn.apps.udp("h3", "h2", rate="5 Mbit", duration="60 s"))
        acts.seal.put_on(lambda: slowed(lab))
        for _ in range(2):
            lab.run_until(f"{lab.now_ps() + 10**12} ps")
            seen = acts.seal.hide(watch.look())
        assert seen is not None
        to_h1, to_h2 = (seen["ways"][place] for place in (1, 3))
        assert to_h1[1] == pytest.approx(1, abs=0.02) and to_h1[5] == 10_000_000
        assert to_h1[0] == pytest.approx(1e6, rel=0.05)
        # That this line has a rate now, and had none, is told by what comes, and not by a load.
        assert to_h2[0] == pytest.approx(1e6, rel=0.05) and to_h2[1] is to_h2[5] is None
        assert to_h2[2] > 10


def slowed(lab: Lab) -> Done:
    for name in ("h1", "h2"):
        lab.link(name, "s1").set(rate="1 Mbit")
    return Done([], [], None)


def test_nothing_undoes_an_older_change_and_tells_by_that_how_a_link_was_set(tmp_path: Path) -> None:
    with network().simulate(name="") as lab:
        acts = Acts(lab)
        links = range(len(lab.layout.links))
        for number in links:
            acts.do({"act": "link", "link": number, "direction": "both", "set": {"rate": "9 Mbit", "delay": "3 ms"}})
            acts.do({"act": "queue", "port": f"s1-eth{number + 1}", "queue": "fifo,limit_frames=7"})
        acts.do({"act": "seal", "seed": 1})
        count = acts.count
        tried = [{"act": "undo", "number": number} for number in range(1, count)]
        tried += [{"act": "link", "link": number, "direction": "ab", "set": {"loss": None}} for number in links]
        tried += [{"act": "queue", "port": "s1-eth1", "queue": "codel"}]
        for asked in tried:
            with pytest.raises(tn.errors.BadValue, match="does not tell what"):
                acts.do(asked)
        assert acts.count == count
        # Traffic is started and ended, flows are added: so it is found.
        acts.do({"act": "send", "what": "tcp", "from": "h1", "to": "h2", "duration": "1 s"})
        acts.do({"act": "add flow", "switch": "s1", "flow": "priority=3,arp,actions=flood"})
        for number in (count + 1, count + 2):
            acts.do({"act": "undo", "number": number})
        acts.do({"act": "answer"})
        for asked in reversed(tried[: 2 * len(links)]):
            acts.do(asked)
        assert [row["ab"]["config"]["rate_bps"] for row in lab.links()] == [10_000_000, None, 20_000_000]


def test_the_seal_is_on_before_anything_is_broken_and_off_where_that_fails() -> None:
    with network().simulate(name="") as lab:
        acts = Acts(lab)
        seal = acts.seal

        def work() -> Done:
            for ask in (lambda: acts.settings(0), acts.network_now, lambda: seal.put_on(work)):
                with pytest.raises(tn.errors.BadValue, match="does not tell what"):
                    ask()
            raise tn.errors.BadValue("nothing was broken", "try again")

        with pytest.raises(tn.errors.BadValue, match="nothing was broken"):
            seal.put_on(work)
        assert not seal.is_on and acts.settings(0)["up"]
        with pytest.raises(tn.errors.BadValue, match="nothing is sealed"):
            Seal(lab).take_off()
