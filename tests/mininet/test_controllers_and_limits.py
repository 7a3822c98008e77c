"""The controller that comes with twinnet after flows were deleted, shares of processors, and programs of the script."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from labs_here import can_run_labs
from mininet_scripts import run_script, twinnet

pytestmark = pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")


def test_the_learning_controller_goes_on_when_all_flows_are_deleted(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        from mininet.net import Mininet
        from mininet.topo import SingleSwitchTopo
        from twinnet.mininet.fabric import FABRIC
        net = Mininet(topo=SingleSwitchTopo(2), waitConnected=True)
        net.start()
        print(min(net.pingAll() for _ in range(3)))
        FABRIC.process.lab.flows_delete(switch="s1")
        print(min(net.pingAll() for _ in range(3)))
        """,
    )
    assert done.stdout.split() == ["0.0", "0.0"], done.stderr


def test_a_share_of_the_processors_is_kept_by_shells_and_processes_or_told_to_be_left_out(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        import time
        from mininet.net import Mininet
        from mininet.node import CPULimitedHost
        net = Mininet(host=CPULimitedHost, controller=None)
        host = net.addHost("h1", cpu=0.1)
        net.addLink(host, net.addHost("h2"))
        net.start()
        process = host.popen("sh", "-c", "while true; do :; done")
        shares = net.runCpuLimitTest(0.1, duration=3)[:3]
        used = sum(int(field) for field in open(f"/proc/{process.pid}/stat").read().split()[13:15])
        process.kill()
        print(host.limited, max(shares) + used / 3)
        net.stop()
        """,
    )
    limited, share = done.stdout.split() if done.stdout else ("", "")
    if "may not make control groups" in done.stderr:
        assert limited == "False"
        return
    assert limited == "True", done.stderr
    # Both loops together have a tenth of all processors: a second of each has at most that, and a period of it more.
    assert float(share) < 10 * (os.cpu_count() or 1) + 10
    assert not [path for path in Path("/sys/fs/cgroup").glob("**/twinnet-*") if re.search(r"-\\d+$", path.name)]


def test_programs_in_python_that_a_script_starts_can_import_mininet(tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("import mininet.net\nprint(mininet.net.Mininet.__module__)\n")
    done = run_script(
        tmp_path, "import subprocess, sys; print(subprocess.check_output([sys.executable, 'other.py']).decode())"
    )
    assert done.stdout.strip() == "twinnet.mininet.net", done.stderr


def test_a_real_time_scheduler_is_told_to_be_left_out_and_strictly_refused(tmp_path: Path) -> None:
    text = """
        from mininet.net import Mininet
        from mininet.node import CPULimitedHost
        net = Mininet()
        net.addHost("h1", cls=CPULimitedHost, sched="rt").config(cpu=0.5)
        """
    done = run_script(tmp_path, text)
    assert (done.returncode, done.stderr.count("write sched=cfs")) == (0, 1), done.stderr
    path = tmp_path / "script.py"
    strict = twinnet("mininet", "--strict", str(path), folder=tmp_path)
    assert (strict.returncode, "write sched=cfs" in strict.stderr) == (1, True), strict.stderr


def test_a_gateway_with_a_namespace_of_its_own_says_that_it_cannot_translate_without_iptables(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        import shutil
        from mininet.net import Mininet
        from mininet.topo import SingleSwitchTopo
        net = Mininet(SingleSwitchTopo(2), controller=None)
        net.addNAT(inNamespace=True).configDefault()
        print(shutil.which("iptables") is None, "default via" in net["h1"].cmd("ip route"))
        net.stop()
        """,
    )
    no_rules, routed = done.stdout.split()
    assert done.stderr.count("nat0 translates no addresses: iptables is not installed") == (no_rules == "True")
    assert routed == "True"
