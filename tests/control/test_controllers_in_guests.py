"""Controllers that run in a host of the network on the virtual clock: their timers are virtual, and runs repeat."""

from __future__ import annotations

import importlib.util
import shutil
import sys
import textwrap
import warnings
from pathlib import Path

import pytest
import twinnet as tn
from kernels_here import a_kernel_is_here
from twinnet.errors import BadValue, ControllerWarning, LabError, NotAvailable

CONTROLLERS = Path(__file__).parents[1] / "support" / "controllers"
needs_kernel = pytest.mark.skipif(not a_kernel_is_here(), reason="there is no kernel for programs on the virtual clock")
needs_ping = pytest.mark.skipif(shutil.which("ping") is None, reason="ping is not installed")
needs_os_ken = pytest.mark.skipif(
    importlib.util.find_spec("os_ken") is None, reason="os-ken is not installed: pip install os-ken"
)


def controlled(*run: str, host: str = "c0") -> tn.Network:
    net = tn.Network()
    net.host("c0")
    s1, s2 = (net.switch(name, fail_mode="secure") for name in ("s1", "s2"))
    net.link(net.host("h1"), s1, rate="10 Mbit", delay="1 ms")
    net.link(s1, s2, rate="10 Mbit", delay="1 ms")
    net.link(s2, net.host("h2"), rate="10 Mbit", delay="1 ms")
    net.controller(run=run, host=host)
    return net


def pinged(net: tn.Network) -> tuple[str, str]:
    with net.simulate(hosts="programs", seed=7) as lab:
        lab.wait_for_controllers("20 s")
        said = lab["h1"].run("ping -4 -c 4 h2", check=True).stdout
        return said, lab.trace_hash


@needs_kernel
@needs_ping
def test_a_controller_in_a_host_serves_the_switches_and_two_runs_are_one() -> None:
    program = [sys.executable, str(CONTROLLERS / "small_learning_13.py"), "{port}"]
    said, trace = pinged(controlled(*program))
    assert "4 packets transmitted, 4 received" in said
    assert pinged(controlled(*program)) == (said, trace)


@needs_kernel
@needs_ping
@needs_os_ken
def test_an_os_ken_application_runs_there_unmodified_and_two_runs_are_one() -> None:
    program = [sys.executable, str(CONTROLLERS / "learning_13.py"), "{port}"]
    said, trace = pinged(controlled(*program))
    assert "4 packets transmitted, 4 received" in said
    assert pinged(controlled(*program)) == (said, trace)


@needs_kernel
def test_its_timers_are_virtual(tmp_path: Path) -> None:
    # It asks the switch for an echo each simulated minute, and notes when the answer came.
    program = tmp_path / "minutes.py"
    program.write_text(
        textwrap.dedent(
            """
            import socket, struct, sys, threading, time

            def listen():
                while True:
                    _, kind, length, number = struct.unpack("!BBHI", said.read(8))
                    body = said.read(length - 8)
                    if kind == 2:
                        one.sendall(struct.pack("!BBHI", 4, 3, length, number) + body)
                    elif kind == 3:
                        with open("/tmp/minutes", "a") as file:
                            print(number, f"{time.monotonic() - begun:.1f}", file=file)

            one, _ = socket.create_server(("127.0.0.1", int(sys.argv[1]))).accept()
            said = one.makefile("rb")
            one.sendall(struct.pack("!BBHIBBHI", 4, 0, 8, 1, 4, 5, 8, 2))
            begun = time.monotonic()
            threading.Thread(target=listen, daemon=True).start()
            for minute in range(1, 61):
                time.sleep(60)
                one.sendall(struct.pack("!BBHI", 4, 2, 8, minute))
            """
        )
    )
    net = tn.Network()
    net.host("c0")
    net.link(net.host("h1"), net.switch("s1"), rate="10 Mbit")
    net.controller(run=[sys.executable, str(program), "{port}"], host="c0")
    with net.simulate(hosts="programs") as lab:
        lab.wait_for_controllers("20 s")
        lab.run_until("3590 s")
        assert lab["c0"].run("tail -n 1 /tmp/minutes").stdout == "59 3540.0\n"


@needs_kernel
def test_one_that_ends_is_told_with_its_last_words() -> None:
    net = controlled(sys.executable, "-c", "raise SystemExit('no such app')")
    told = "has ended with status 1; its last output: no such app"
    with net.simulate(hosts="programs") as lab, pytest.raises(NotAvailable, match=told):
        lab.wait_for_controllers("20 s")


@needs_kernel
@needs_ping
def test_a_switch_whose_controller_died_goes_on_by_its_fail_mode() -> None:
    program = [sys.executable, str(CONTROLLERS / "small_learning_13.py"), "{port}", "die"]
    with controlled(*program).simulate(hosts="programs") as lab, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ControllerWarning)
        lab.wait_for_controllers("20 s")
        assert lab["h1"].run("ping -4 -c 2 -W 1 h2").returncode == 1
        assert any("has lost its controller" in str(one.message) for one in told)


@needs_kernel
def test_a_host_that_is_not_there_or_a_model_is_refused() -> None:
    with pytest.raises(LabError, match="c9"), controlled("true", host="c9").simulate(hosts="programs"):
        pass


def test_what_a_host_cannot_run_is_refused() -> None:
    net = tn.Network()
    for settings in ({"host": "c0"}, {"host": "c0", "run": "app {port}", "tls": {}}):
        with pytest.raises(BadValue, match="a controller in the host 'c0'"):
            net.controller(**settings)  # type: ignore[arg-type]


def test_beside_models_it_runs_beside_the_lab() -> None:
    net = tn.Network()
    net.host("c0")
    s1 = net.switch("s1", fail_mode="secure")
    for name in ("h1", "h2"):
        net.link(net.host(name), s1, rate="10 Mbit")
    net.controller(run=[sys.executable, str(CONTROLLERS / "small_learning_13.py"), "{port}"], host="c0", quiet="0 s")
    with net.simulate() as lab:
        lab.wait_for_controllers()
        pings = lab.start(tn.apps.ping("h1", "h2", count=2))
        assert lab.wait([pings], until="5 s") and pings.report().lost == 0
