"""What Mininet leaves out in silence, and what cannot be as it was asked for: told once, and refused when strict."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import textwrap
import threading
from pathlib import Path

import pytest
from labs_here import can_run_labs
from mininet_scripts import run_script, twinnet

pytestmark = pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")


def strictly(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(textwrap.dedent(text))
    return twinnet("mininet", "--strict", str(folder / "script.py"), folder=folder)


def test_misspelt_settings_of_nodes_are_told_once_and_the_scripts_own_are_not(tmp_path: Path) -> None:
    script = """
        from functools import partial
        from mininet.net import Mininet
        from mininet.node import Host, OVSSwitch

        class Router(Host):
            def __init__(self, name, *, daemons=(), **params):
                super().__init__(name, **params)

        net = Mininet(controller=None)
        net.addHost("h1", defaultroute="via 10.0.0.9")
        net.addHost("h2", default_route="x", isRouter=True, level="core", privateDirs=[])
        net.addHost("r1", cls=partial(Router, daemons="x"), Daemons="bgp")
        net.addSwitch("s1", failmode="standalone", stp=True)
        net.addSwitch("s2", cls=OVSSwitch, faliMode="standalone", failMode="secure", colour="red")
        print("made")
    """
    done = run_script(tmp_path, script)
    assert (done.returncode, done.stdout) == (0, "made\n"), done.stderr
    told = [line for line in done.stderr.splitlines() if "keeps in params" in line]
    assert [line.split(" is no setting")[0] for line in told] == [
        "twinnet: h1: defaultroute",
        "twinnet: h2: default_route",
        "twinnet: r1: Daemons",
        "twinnet: s1: failmode",
        "twinnet: s2: faliMode",
    ]
    assert told[0].endswith("write defaultRoute if that is meant")
    strict = strictly(tmp_path, script)
    assert strict.returncode == 1
    assert "h1: defaultroute is no setting of it" in strict.stderr


def test_versions_come_as_a_text_or_a_list_and_those_that_no_switch_speaks_are_told(tmp_path: Path) -> None:
    script = """
        from mininet.net import Mininet
        from mininet.util import quietRun
        net = Mininet(controller=None)
        given = ["OpenFlow13"], ("OpenFlow10", "OpenFlow13"), "OpenFlow13,OpenFlow14", "[OpenFlow10]", None
        for number, versions in enumerate(given, 1):
            net.addSwitch(f"s{number}", protocols=versions, failMode="standalone")
        net.start()
        for switch in net.switches:
            print(switch.cmd(f"ovs-vsctl get bridge {switch} protocols").strip())
        print(quietRun("ovs-vsctl set bridge s1 protocols=OpenFlow15").strip())
        net.stop()
        print("stopped", flush=True)
        net = Mininet(controller=None)
        net.addSwitch("s1", protocols="OpenFlow14")
        net.start()
    """
    done = run_script(tmp_path, script)
    assert done.stdout.splitlines() == [
        "[OpenFlow13]",
        "[OpenFlow10, OpenFlow13]",
        "[OpenFlow13, OpenFlow14]",
        "[OpenFlow10]",
        "[]",
        "ovs-vsctl: s1 cannot speak OpenFlow15, and speaks OpenFlow10 and OpenFlow13",
        "stopped",
    ], done.stdout + done.stderr
    assert "s1: protocols='OpenFlow14', and no switch here speaks these" in done.stderr
    strict = strictly(tmp_path, script)
    assert strict.returncode == 1
    assert "no switch here speaks these" in strict.stderr


def test_a_shaped_link_that_is_refused_leaves_its_names_free(tmp_path: Path) -> None:
    done = strictly(
        tmp_path,
        """
        from mininet.link import TCLink
        from mininet.net import Mininet
        from mininet.node import OVSBridge
        net = Mininet(controller=None, link=TCLink, switch=OVSBridge)
        ends = net.addHost("h1"), net.addSwitch("s1")
        for settings in dict(delay=5), dict(loss=101), dict(loss="much"), dict(delay="5ms", loss=1), dict(delay="1ms"):
            try:
                print(net.addLink(*ends, **settings).intf2)
            except Exception as refused:
                print(type(refused).__name__)
        """,
    )
    assert done.stdout.split() == ["BadValue", "BadValue", "BadValue", "s1-eth1", "s1-eth2"], done.stdout + done.stderr


def test_a_controller_beside_the_machine_is_no_matter_to_one_inside(tmp_path: Path) -> None:
    with socket.socket() as beside:
        # Where that is refused, another program listens there already.
        with contextlib.suppress(OSError):
            beside.bind(("127.0.0.1", 6653))
            beside.listen()
        done = run_script(
            tmp_path,
            """
            from mininet.net import Mininet
            from mininet.topo import SingleSwitchTopo
            net = Mininet(topo=SingleSwitchTopo(2))
            net.start()
            print(net.pingAll())
            try:
                net.addController("c1")
            except Exception as taken:
                print("Please shut down" in str(taken) and "controller" in str(taken).splitlines()[-1])
            net.stop()
            """,
        )
    assert done.stdout.splitlines() == ["0.0", "True"], done.stdout + done.stderr


def test_without_controllers_nobody_waits_for_one(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        import time
        from mininet.net import Mininet
        from mininet.topo import SingleSwitchTopo
        net = Mininet(topo=SingleSwitchTopo(2), controller=None, waitConnected=True)
        begin = time.monotonic()
        net.start()
        print(net.waitConnected(), time.monotonic() - begin < 30)
        """,
    )
    assert done.stdout == "False True\n"
    assert "Warning: s1 is not connected to a controller" in done.stderr


def test_versions_that_a_controller_does_not_share_are_told_by_name(tmp_path: Path) -> None:
    hello_of_14 = bytes([5, 0, 0, 16, 0, 0, 0, 1, 0, 1, 0, 8, 0, 0, 0, 1 << 5])
    with socket.create_server(("127.0.0.1", 0)) as controller:

        def greet() -> None:
            while True:
                try:
                    sock, _ = controller.accept()
                except OSError:
                    return
                sock.sendall(hello_of_14)

        threading.Thread(target=greet, daemon=True).start()
        done = run_script(
            tmp_path,
            f"""
            from mininet.net import Mininet
            from mininet.node import RemoteController
            net = Mininet(controller=None)
            net.addController("c0", controller=RemoteController, ip="127.0.0.1", port={controller.getsockname()[1]})
            net.addSwitch("s1"), net.addSwitch("s2")
            net.start()
            print(net.waitConnected(1.5))
            net.stop()
            """,
        )
        controller.shutdown(socket.SHUT_RDWR)
    assert done.stdout == "False\n", done.stderr
    told = "no OpenFlow version in common: this switch speaks 1.0 and 1.3, the controller 1.4"
    assert done.stderr.count(told) == 1, done.stderr
