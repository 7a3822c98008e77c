"""Available bandwidth by counters, asked for over HTTP."""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import pytest
import twinnet as tn
from twinnet.control import (
    AvailableBandwidth,
    BandwidthService,
    LearningSwitch,
    LinkDiscovery,
    Together,
    bandwidth_service,
)
from twinnet.errors import NotAvailable

PAYLOAD_SHARE = 1472 / 1538


@pytest.fixture(scope="module")
def services() -> Iterator[tuple[BandwidthService, BandwidthService]]:
    """One by the description, one by LLDP, of a path of 10 Mbit/s with 4 Mbit/s of traffic."""
    counters, discovery = AvailableBandwidth("500 ms"), LinkDiscovery("1 s")
    net = tn.Network(seed=1)
    s1, s2 = net.switch("s1"), net.switch("s2")
    net.link(net.host("h1"), s1, rate="100 Mbit")
    net.link(s1, s2, rate="10 Mbit")
    net.link(net.host("h2"), s2, rate="100 Mbit")
    net.controller(Together(discovery, counters, LearningSwitch()))
    with net.simulate() as lab:
        lab.wait_for_controllers()
        lab.start(tn.apps.ping("h2", "h1", count=1))
        lab.start(tn.apps.udp("h1", "h2", rate=f"{4e6 * PAYLOAD_SHARE:.0f} bit", duration="1 min"))
        lab.run_until("6 s")
        with BandwidthService(counters) as described, BandwidthService(counters, discovery) as found:
            yield described, found


def ask(service: BandwidthService, target: str) -> tuple[int, dict[str, Any]]:
    try:
        with urllib.request.urlopen(service.url + target, timeout=30) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def test_a_path_of_the_description_is_answered(services: tuple[BandwidthService, BandwidthService]) -> None:
    status, told = ask(services[0], "/available?from=h1&to=h2&since=2&until=5")
    assert status == 200
    # Two frames at the window's ends are 0.03 % of what is there in 3 s.
    assert told["available_bps"] == pytest.approx(6e6, rel=0.005)
    assert told["tight"]["switch"] == "s1"
    assert len(told["links"]) == 3


def test_a_path_that_lldp_found_is_answered_alike(services: tuple[BandwidthService, BandwidthService]) -> None:
    _, described = ask(services[0], "/available?from=h1&to=h2")
    status, found = ask(services[1], "/available?from=10.0.0.1&to=10.0.0.2")
    assert status == 200
    assert found["available_bps"] == described["available_bps"]
    assert [link["from"] for link in ask(services[1], "/links")[1]["links"]] == ["s1", "s2"]


@pytest.mark.parametrize(
    ("target", "status", "said"),
    [
        ("/", 404, "/available"),
        ("/available?from=h1", 400, "'from' and 'to'"),
        ("/available?from=h1&to=h9", 400, "no host"),
        ("/available?from=h1&to=h2&layer=ip", 400, "wire and network"),
        ("/available?from=h1&to=h2&since=soon&until=2", 400, "soon"),
        ("/available?from=h1&to=h2&speed=3", 400, "speed"),
        ("/available?" + "&".join(f"a{n}=1" for n in range(9)), 400, "more words"),
        ("/available?from=" + "h" * 3000, 414, "2000"),
    ],
)
def test_a_question_that_cannot_be_answered_is_told_why(
    services: tuple[BandwidthService, BandwidthService], target: str, status: int, said: str
) -> None:
    found, told = ask(services[0], target)
    assert found == status
    assert said in told["error"]


def test_it_listens_on_the_loopback_device_only_and_ends(services: tuple[BandwidthService, BandwidthService]) -> None:
    assert services[0].url.startswith("http://127.0.0.1:")
    taken = int(services[0].url.rpartition(":")[2])
    with pytest.raises(NotAvailable, match="cannot listen"):
        BandwidthService(AvailableBandwidth(), port=taken)


def test_connections_that_say_nothing_keep_nobody_out_and_end(
    services: tuple[BandwidthService, BandwidthService], monkeypatch: pytest.MonkeyPatch
) -> None:
    address = urlsplit(services[0].url)
    with ExitStack() as stack:
        silent = [
            stack.enter_context(socket.create_connection((address.hostname or "", address.port or 0), timeout=20))
            for _ in range(100)
        ]
        assert ask(services[0], "/available?from=h1&to=h2")[0] == 200
        # The first made room for the hundredth.
        assert silent[0].recv(1) == b""
        monkeypatch.setattr(bandwidth_service, "_PATIENCE_S", 0.2)
        assert silent[-1].recv(1) == b""
