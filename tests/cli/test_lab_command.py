"""``twinnet lab`` and ``twinnet do``: options that change the network, controllers that are waited for."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import twinnet as tn
from labs_here import needs_a_lab
from twinnet.cli.lab_options import give_controller, give_models, give_queues, give_switches
from twinnet.errors import BadValue, NotAvailable
from twinnet.qos.queue_text import queue_from_text

TWINNET = [sys.executable, "-c", "from twinnet.cli import main; main()"]


def called(*arguments: str, timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*TWINNET, *arguments], capture_output=True, text=True, timeout=timeout_s)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def test_options_change_the_network_that_a_template_describes() -> None:
    net = tn.templates.single(2)
    give_controller(net, "tcp:127.0.0.1:6653")
    give_queues(net, "fifo, limit_frames=50")
    give_switches(net, "ovs:system")
    give_models(net)
    spec = net.to_spec()
    switch, *hosts = spec["nodes"]
    assert switch["controllers"] == ["tcp:127.0.0.1:6653"] and switch["datapath"] == "system"
    assert all(host["model"] for host in hosts)
    assert [port["queue"]["limit_frames"] for node in spec["nodes"] for port in node["ports"]] == [50] * 4


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("remote", "tcp:127.0.0.1:6653"),
        ("remote,port=6633", "tcp:127.0.0.1:6633"),
        ("remote,ip=127.0.0.2,port=7", "tcp:127.0.0.2:7"),
    ],
)
def test_a_controller_may_be_named_as_mininet_names_it(text: str, target: str) -> None:
    net = tn.templates.single(2)
    give_controller(net, text)
    assert net.to_spec()["nodes"][0]["controllers"] == [target]


def test_a_controller_of_the_package_is_named() -> None:
    net = tn.templates.single(2)
    give_controller(net, "learning")
    assert net.to_spec()["nodes"][0]["controllers"] == ["app:learning"]
    with pytest.raises(BadValue, match="did you mean 'learning'"):
        give_controller(net, "lerning")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("codell", "did you mean 'codel'"),
        ("codel,targt=5ms", "did you mean 'target'"),
        ("codel,target", "is not NAME=VALUE"),
        ("fifo,limit_frames=many", "limit_frames: "),
        ("htb", "htb needs rate"),
        ("red", "red needs min"),
    ],
)
def test_a_queue_that_cannot_be_meant_is_refused(text: str, said: str) -> None:
    with pytest.raises(BadValue) as caught:
        queue_from_text(text)
    assert said in str(caught.value)


@needs_a_lab
def test_a_lab_whose_controller_does_not_join_ends_and_says_why() -> None:
    target = f"tcp:127.0.0.1:{free_port()}"
    done = called("lab", "single:2", "--controller", target, "--wait", "500 ms", "-c", "pingall")
    assert done.returncode == 1
    assert "no controller has joined s1" in done.stderr and "--no-wait" in done.stderr
    assert "dropped" not in done.stdout
    done = called("lab", "single:2", "--controller", target, "--no-wait", "-c", "pingall")
    assert done.returncode == 0
    assert f"*** s1 has no controller ({target}" in done.stderr
    assert "meanwhile it forwards as a learning switch" in done.stderr


@needs_a_lab
def test_a_lab_with_its_controller_says_nothing_of_it() -> None:
    done = called("lab", "single:2", "--controller", "learning", "-c", "controllers", "-c", "pingall")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("s1: app:learning, OpenFlow 1.3\n") and "0% dropped" in done.stdout


@needs_a_lab
def test_pings_between_all_hosts_go_on_when_one_is_unplugged() -> None:
    done = called("lab", "single:3", "-c", "h2 ip link set h2-eth0 down", "-c", "pingall")
    assert "h1 -> X h3\nh2 -> X X\nh3 -> h1 X\n*** Results: 67% dropped (2/6 received)\n" in done.stdout
    assert done.returncode == 1


@needs_a_lab
def test_a_controller_program_that_ends_is_an_error_at_once() -> None:
    net = tn.templates.single(2)
    net.controller(run=[sys.executable, "-c", "import sys; sys.exit('no module osken')", "{port}"])
    with net.emulate() as lab:
        began_s = time.monotonic()
        with pytest.raises(NotAvailable, match="has ended with status 1; its last output: no module osken"):
            lab.wait_for_controllers("30 s")
        # The patience is half a minute: a tenth of it allows for a slow start of Python.
        assert time.monotonic() - began_s < 10


@needs_a_lab
def test_another_terminal_does_what_the_prompt_does(tmp_path: Path) -> None:
    with tn.templates.single(2).emulate() as lab:
        done = called("do", lab.name, "link s1 h1 down", "links")
        assert done.returncode == 0
        assert "h1-eth0<->s1-eth1 DOWN" in done.stdout
        assert called("do", lab.name, "link s1 h1 up", "pingpair").returncode == 0
        assert called("do", lab.name, "pingal").returncode == 1
        capture = tmp_path / "c.pcapng"
        following = subprocess.Popen([*TWINNET, "do", lab.name, f"capture s1-eth1 {capture}"], stdout=subprocess.PIPE)
        try:
            _until(lambda: capture.exists() and capture.stat().st_size > 0)
            lab["h1"].run("ping -c 1 h2")
            following.send_signal(2)
            told, _ = following.communicate(timeout=20)
        finally:
            following.kill()
        assert following.returncode == 0
        assert told.decode().startswith("s1-eth1: ") and " frames in " in told.decode()
    assert capture.stat().st_size > 200


def _until(come: Callable[[], bool], limit_s: float = 20) -> None:
    deadline_s = time.monotonic() + limit_s
    while not come():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


@needs_a_lab
def test_a_lab_without_ip6_has_names_of_one_address_and_a_loop_of_switches_is_told_once() -> None:
    done = called("lab", "mesh:3", "--no-ip6", "-c", "h1 getent ahosts h2", "-c", "h1 ip -6 addr")
    assert done.returncode == 0, done.stderr
    assert "10.0.0.2" in done.stdout
    assert "fd00" not in done.stdout
    assert "inet6" not in done.stdout
    assert done.stderr.count("the switches form a loop: their spanning tree leaves out") == 1
    led = called("lab", "mesh:3", "--controller", "shortest-path", "-c", "nodes")
    assert "spanning tree" not in led.stderr


@needs_a_lab
def test_hosts_of_arp_know_each_other_and_do_not_ask() -> None:
    done = called("lab", "single:3", "--arp", "-c", "h1 ip neigh", "-c", "h2 ping -4 -q -c 1 h3", "-c", "h3 ip neigh")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "10.0.0.2 dev h1-eth0 lladdr 00:00:00:00:00:02 PERMANENT" in [line.strip() for line in lines]
    assert sum("PERMANENT" in line and "fd00::" in line for line in lines) == 4
    assert not any("REACHABLE" in line or "STALE" in line for line in lines)


def test_models_of_arp_know_each_other_too() -> None:
    frames = "py sum(port['counters']['frames'] for port in lab.ports() if port['port'] == 'h1-eth0')"
    line = ("lab", "single:2", "--clock", "virtual", "-c", "pingpair", "-c", frames)
    asked, told = (int(called(*line, *more).stdout.splitlines()[-1]) for more in ((), ("--arp",)))
    assert asked > told
