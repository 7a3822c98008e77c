"""The programs of OpenFlow's reference switch, for scripts that start them by themselves."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from labs_here import can_run_labs
from mininet_scripts import run_script

pytestmark = pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")


def test_a_switch_of_programs_in_its_own_namespace_forwards_for_a_controller_in_another(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        from mininet.link import Link
        from mininet.net import Mininet
        from mininet.node import Node
        Mininet.init()
        c0, s0, h0, h1 = (Node(name) for name in ("c0", "s0", "h0", "h1"))
        control, first, second = Link(c0, s0), Link(h0, s0), Link(h1, s0)
        c0.setIP("10.0.123.1/24", intf=control.intf1)
        s0.setIP("10.0.123.2/24", intf=control.intf2)
        h0.setIP("192.168.123.1/24")
        h1.setIP("192.168.123.2/24")
        c0.cmd("controller ptcp: &")
        s0.cmd("ifconfig lo 127.0.0.1")
        s0.cmd(f"ofdatapath -i {first.intf2},{second.intf2} -d 2a ptcp: &")
        s0.cmd("ofprotocol tcp:localhost tcp:10.0.123.1 &")
        # On a busy machine the programs take some seconds.
        for _ in range(20):
            if " 0% packet loss" in h0.cmd("ping -c1 -W1 192.168.123.2"):
                print("reached")
                break
        print(h0.cmd("ofdatapath nonsense; echo status $?").strip())
        print(h0.cmd("ofprotocol tcp:localhost; echo status $?").strip())
        """,
    )
    lines = done.stdout.replace("\r", "").splitlines()
    assert lines[0] == "reached", done.stderr
    assert lines[1:3] == ["ofdatapath: 'nonsense' is no place to listen: write ptcp:PORT or punix:PATH", "status 1"]
    assert lines[3].startswith("ofprotocol: name the datapath and a controller")


def test_a_user_switch_has_one_controller_at_a_time_and_takes_the_next_when_that_ends(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        import socket, subprocess, sys, time
        from pathlib import Path
        from mininet.net import Mininet
        from mininet.node import RemoteController, UserSwitch
        net = Mininet(switch=UserSwitch, controller=None)
        name = "s" + sys.argv[1]
        net.addLink(net.addHost("h1"), net.addSwitch(name))
        programs = [subprocess.Popen(["controller", f"ptcp:{port}"]) for port in (17661, 17662)]
        for number, port in enumerate((17661, 17662)):
            while socket.socket().connect_ex(("127.0.0.1", port)):
                time.sleep(0.05)
            net.addController(RemoteController(f"c{number}", port=port))
        net.start()
        print(net.waitConnected(timeout=20))
        programs[0].kill()
        log = Path(f"/tmp/{name}-ofp.log")
        deadline = time.monotonic() + 20
        while not (log.exists() and "17662" in log.read_text()) and time.monotonic() < deadline:
            time.sleep(0.05)
        print([line.split(":")[2] for line in log.read_text().splitlines()])
        print(net.waitConnected(timeout=20))
        programs[1].kill()
        log.unlink()
        """,
        str(os.getpid()),
    )
    assert done.stdout.splitlines() == ["True", "['17661', '17662']", "True"], done.stderr
