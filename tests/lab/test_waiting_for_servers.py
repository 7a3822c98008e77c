"""Waiting until a program of a host listens, in Python and at the prompt, on both clocks."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
import twinnet as tn
from kernels_here import a_kernel_is_here
from labs_here import can_run_labs
from twinnet.cli.prompt.session import Session
from twinnet.errors import BadValue, TimeLimit

SERVES = """
import socket, sys, time
time.sleep(0.5)
kind = socket.SOCK_STREAM if sys.argv[1] == "tcp" else socket.SOCK_DGRAM
with socket.socket(socket.AF_INET6, kind) as served:
    served.bind(("::", 7000))
    if kind == socket.SOCK_STREAM:
        served.listen()
    time.sleep(1000)
"""


@pytest.fixture(params=["wall", "virtual"])
def lab(request: pytest.FixtureRequest) -> Iterator[tn.Lab]:
    if request.param == "wall" and not can_run_labs():
        pytest.skip("this machine permits no namespaces: see twinnet doctor")
    if request.param == "virtual" and not a_kernel_is_here():
        pytest.skip("there is no kernel for programs on the virtual clock")
    net = tn.Network()
    net.link(net.host("h1"), net.host("h2"), rate="10 Mbit")
    with net.emulate() if request.param == "wall" else net.simulate(hosts="programs") as lab:
        yield lab


def test_a_server_that_takes_its_time_is_waited_for(lab: tn.Lab) -> None:
    for protocol, other in (("tcp", "udp"), ("udp", "tcp")):
        began_s = lab.now()
        job = lab["h2"].popen([sys.executable, "-c", SERVES, protocol], stdout=tn.lab.DEVNULL, stderr=tn.lab.DEVNULL)
        lab["h2"].wait_listening(7000, protocol)  # type: ignore[arg-type]
        assert lab.now() - began_s >= 0.5
        if lab.clock == "virtual":
            assert lab.now() - began_s < 0.6
        with pytest.raises(TimeLimit, match=rf"no program of h2 takes .* at port 7000 \({other}\) after 50 ms"):
            lab["h2"].wait_listening(7000, other, timeout="50 ms")  # type: ignore[arg-type]
        job.signal(9)
        job.wait()
    with pytest.raises(TimeLimit):
        lab["h1"].wait_listening(7000, timeout="1 ms")
    for port, protocol in ((0, "tcp"), (65536, "udp"), (80, "sctp")):
        with pytest.raises(BadValue, match=r"allowed are"):
            lab["h2"].wait_listening(port, protocol)  # type: ignore[arg-type]


def test_the_prompt_waits_too_and_says_what_is_wrong(lab: tn.Lab, capfd: pytest.CaptureFixture[str]) -> None:
    session = Session(lab)
    job = lab["h2"].popen([sys.executable, "-c", SERVES, "tcp"], stdout=tn.lab.DEVNULL, stderr=tn.lab.DEVNULL)
    assert session.execute("await h2 7000")
    assert not session.execute("await h2 udp 7000 40 ms")
    assert "no program of h2 takes datagrams at port 7000 (udp) after 40 ms" in capfd.readouterr().err
    for line in ("await", "await h2", "await h2 http", "await h9 7000", "await h2 " + "7" * 5000, "await h2 7000 soon"):
        assert not session.execute(line)
        assert capfd.readouterr().err.startswith("*** "), line
    job.signal(9)
    job.wait()
