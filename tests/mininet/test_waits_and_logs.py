"""Logs of a script's controllers are its own, and what a script waits for ends."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from labs_here import can_run_labs
from mininet_scripts import run_script
from ordinary_user import an_ordinary_user

pytestmark = pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")


def test_a_network_that_is_started_twice_has_one_controller_and_stops(tmp_path: Path) -> None:
    name = f"c{os.getpid()}"
    done = run_script(
        tmp_path,
        """
        import sys
        from pathlib import Path
        from mininet.net import Mininet
        from mininet.node import Controller
        from mininet.topo import SingleSwitchTopo
        name = sys.argv[1]
        log = Path(f"/tmp/{name}.log")
        net = Mininet(SingleSwitchTopo(2), controller=None)
        controller = net.addController(name, controller=Controller)
        net.start()
        net.start()
        print(net.pingAll(), log.read_text() == "", len(controller.cmd("jobs -rp").split()))
        net.stop()
        print(log.exists() or log.is_symlink())
        """,
        name,
    )
    assert done.stdout == "0.0 True 1\nFalse\n", done.stderr


def test_a_log_of_somebody_else_in_the_way_stays_and_stops_nobody(tmp_path: Path) -> None:
    log = Path(f"/tmp/c{os.getpid()}.log")
    log.write_text("of somebody else\n")
    log.chmod(0o600)
    text = f"""
from mininet.net import Mininet
from mininet.node import Controller
from mininet.topo import SingleSwitchTopo
net = Mininet(SingleSwitchTopo(2), controller=None, waitConnected=True)
net.addController("{log.stem}", controller=Controller)
net.start()
print(net.pingAll())
net.stop()
"""
    try:
        assert run_script(tmp_path, text).stdout == "0.0\n"
        with an_ordinary_user() as user:
            script = user.folder / "script.py"
            script.write_text(text)
            done = user.run(user.twinnet("mininet", str(script)))
            assert done.stdout == "0.0\n", done.stderr
        assert log.read_text() == "of somebody else\n"
    finally:
        log.unlink()


def test_switches_wait_for_a_controller_that_does_not_come_for_a_while_and_say_so(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        from mininet import net as networks
        from mininet.node import RemoteController
        from mininet.node import Controller
        from mininet.topo import SingleSwitchTopo
        networks._CONTROLLER_PATIENCE_S, networks._QUIET_S = 0.4, 0.1
        net = networks.Mininet(SingleSwitchTopo(2), controller=None, waitConnected=True)
        net.addController(RemoteController("c0", ip="127.0.0.1", port=17663))
        net.start()
        print(net.waitConnected())
        net.stop()
        """,
    )
    assert done.stdout == "False\n", done.stderr
    assert "seconds for s1 to connect; controllers: c0 at 127.0.0.1:17663" in done.stderr
    assert "Warning: s1 is not connected to a controller" in done.stderr
