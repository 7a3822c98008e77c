"""The names that scripts take from Mininet's modules, beside those of its own reference."""

from __future__ import annotations

from pathlib import Path

import pytest
from labs_here import can_run_labs
from mininet_scripts import run_script

pytestmark = pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")


def test_scripts_that_import_everything_get_what_mininets_modules_import_themselves(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        from mininet.clean import *
        from mininet.cli import *
        from mininet.link import *
        from mininet.log import *
        from mininet.moduledeps import *
        from mininet.net import *
        from mininet.node import *
        from mininet.nodelib import *
        from mininet.term import *
        from mininet.topo import *
        from mininet.topolib import *
        from mininet.util import *
        print(re.sub("a", "b", "a"), [*chain("c", "d")], Popen(["true"], stdout=PIPE).wait(), sleep(0), co(["true"]))
        info(os.path.basename("/x/y") + "\\n")
        """,
    )
    assert done.stdout == "b ['c', 'd'] 0 None b''\n", done.stderr


def test_control_groups_are_asked_and_set_by_mininets_names(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        from mininet.net import Mininet
        from mininet.node import CPULimitedHost
        net = Mininet(host=CPULimitedHost, controller=None)
        h1 = net.addHost("h1")
        h1.setCPUs("0")
        print(h1.cgroupGet("cpus", resource="cpuset"), h1.cgroupGet("cfs_period_us"), h1.cgroupGet("cfs_quota_us"))
        print(h1.cgroupSet("cfs_quota_us", 50000) == int(not h1.limited), h1.cgroupGet("cfs_quota_us"), h1.limited)
        print(h1.cgroupSet("shares", 5), h1.chrt(), h1.rtInfo(0.5), h1.cgroupDel(), h1.cgroupGet("cfs_quota_us"))
        net.stop()
        """,
    )
    asked, limited, rest = done.stdout.splitlines()
    assert asked == "0 100000 -1", done.stderr
    assert limited in ("True 50000 True", "True -1 False")
    assert rest == "1 SCHED_OTHER ('rt_period_us', 'rt_runtime_us', 100000, 50000) True -1"
    assert "cpu.shares of h1 is left out" in done.stderr


def test_the_rate_that_iperf_told_is_found(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        from mininet.net import Mininet
        print(Mininet._parseIperf("1.0 MBytes 9.11 Mbits/sec\\n[ 3] 11.0 MBytes 9.56 Mbits/sec\\n"))
        print(repr(Mininet._parseIperf("connect failed")))
        """,
    )
    assert done.stdout == "9.56 Mbits/sec\n''\n", done.stderr


def test_pings_right_after_the_start_reach_all_hosts_by_the_controller_that_comes_with_twinnet(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        from mininet.link import TCLink
        from mininet.net import Mininet
        from mininet.node import Controller
        from mininet.topo import LinearTopo
        net = Mininet(topo=LinearTopo(3), controller=Controller, link=TCLink)
        net.start()
        net.staticArp()
        print(net.pingAll())
        net.addLink(net.addHost("h4"), net["s3"])
        net["h4"].setIP("10.0.0.4/8")
        net["s3"].attach("s3-eth3")
        print(net.ping([net["h1"], net["h4"]]))
        net.stop()
        """,
    )
    assert done.stdout == "0.0\n0.0\n", done.stderr


def test_a_controller_that_stays_silent_does_not_stop_a_script(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        import socket
        from mininet.net import Mininet
        from mininet.node import RemoteController
        from mininet.topo import SingleSwitchTopo
        silent = socket.create_server(("127.0.0.1", 6653))
        net = Mininet(topo=SingleSwitchTopo(2), controller=RemoteController)
        net.start()
        net.addLink(net.addHost("h3"), net["s1"])
        net["s1"].attach("s1-eth3")
        print(net["h1"].cmd("echo goes on").strip(), net["s1"].connected())
        net.stop()
        """,
    )
    assert done.stdout == "goes on False\n", done.stderr


def test_classes_of_scripts_use_what_mininets_classes_keep_to_themselves(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        from mininet.link import TCIntf, TCLink
        from mininet.net import Mininet
        from mininet.node import CPULimitedHost, IVSSwitch, OVSSwitch
        from mininet.topo import Topo

        class Pair(Topo):
            def build(self):
                self.addLink(self.addHost("h1"), self.addSwitch("s1"))
                self.addLink(self.addHost("h2"), "s1")

        class OwnLink(TCLink):
            def makeIntfPair(self, *args, **kwargs):
                print("made", args[0])
                return TCLink.makeIntfPair(*args, **kwargs)

        class OwnSwitch(IVSSwitch):
            @classmethod
            def batchShutdown(cls, switches):
                print("ended", *[one.name for one in super().batchShutdown(switches)])
                return switches

        topo = Pair()
        links, key = topo._linkEntry("h1", "s1")
        print(key, links[key]["node1"], topo.linkInfo("h1", "s1", key) is links[key])
        net = Mininet(topo=topo, link=OwnLink, switch=OwnSwitch, host=CPULimitedHost, controller=None)
        net.start()
        print(TCIntf.delayCmds("parent 5:1", "5ms", "1ms", 1, 100)[0], TCIntf.delayCmds("root", "5ms")[0])
        print(net["h1"].cgroup, CPULimitedHost._rtGroupSched, OVSSwitch.batchShutdown.__self__ is OVSSwitch)
        net.stop()
        """,
    )
    assert done.stdout.splitlines() == [
        "1 h1 True",
        "made h1-eth0",
        "made h2-eth0",
        "['%s qdisc add dev %s parent 5:1 handle 10: netem delay 5ms 1ms loss 1.00000 limit 100'] "
        "['%s qdisc add dev %s root handle 10: netem delay 5ms']",
        "cpu,cpuacct,cpuset:/h1 False True",
        "ended s1",
    ], done.stderr
