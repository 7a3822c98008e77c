"""What published scripts of courses and papers do, written anew: each test is one such script, run unchanged."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from labs_here import can_run_labs
from mininet_scripts import run_script, twinnet

pytestmark = pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")


def test_static_routes_over_two_routers_carry_pings_of_both_ends_at_once(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        from mininet.net import Mininet
        net = Mininet()
        pc1, pc2, r1, r2 = [net.addHost(name) for name in ("pc1", "pc2", "r1", "r2")]
        for one, other in ((pc1, r1), (r1, r2), (r2, pc2)):
            net.addLink(one, other)
        net.start()
        pc1.setIP("10.0.0.2/24", intf="pc1-eth0")
        pc2.setIP("10.0.1.4/24", intf="pc2-eth0")
        for router, near, far, other, via in (
            (r1, "10.0.0.1/24", "100.0.0.1/30", "10.0.1.0/24", "100.0.0.2"),
            (r2, "10.0.1.1/24", "100.0.0.2/30", "10.0.0.0/24", "100.0.0.1"),
        ):
            ends = ("eth0", "eth1") if router is r1 else ("eth1", "eth0")
            for address, end in zip((near, far), ends):
                router.setIP(address, intf=f"{router}-{end}")
            router.cmd(f"ip route add {other} via {via}")
            router.cmd("sysctl -w net.ipv4.ip_forward=1")
        pc1.cmd("ip route add default via 10.0.0.1")
        pc2.cmd("ip route add default via 10.0.1.1")
        both = [pc1.popen("ping -c2 10.0.1.4", universal_newlines=True), pc2.popen("ping -c2 10.0.0.2", text=True)]
        print([" 0% packet loss" in one.communicate()[0] for one in both])
        net.stop()
        """,
    )
    assert done.stdout == "[True, True]\n", done.stderr


def test_a_linux_router_has_its_routes_before_the_network_starts(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        from mininet.cli import CLI
        from mininet.net import Mininet
        from mininet.node import Node, OVSBridge
        from mininet.topo import Topo

        class LinuxRouter(Node):
            def config(self, **params):
                super().config(**params)
                self.cmd("sysctl net.ipv4.ip_forward=1")

            def terminate(self):
                self.cmd("sysctl net.ipv4.ip_forward=0")
                super().terminate()

        class NetworkTopo(Topo):
            def build(self, **_opts):
                for number in (1, 2):
                    self.addHost(f"r{number}", cls=LinuxRouter, ip=f"10.{number}.0.1/24")
                    self.addHost(f"d{number}", ip=f"10.{number}.0.251/24", defaultRoute=f"via 10.{number}.0.1")
                    switch = self.addSwitch(f"s{number}")
                    params = {"ip": f"10.{number}.0.1/24"}
                    self.addLink(switch, f"r{number}", intfName2=f"r{number}-eth1", params2=params)
                    self.addLink(f"d{number}", switch)
                names = dict(intfName1="r1-eth2", intfName2="r2-eth2")
                self.addLink("r1", "r2", **names, params1={"ip": "10.100.0.1/24"}, params2={"ip": "10.100.0.2/24"})

        net = Mininet(topo=NetworkTopo(), switch=OVSBridge, controller=None)
        net["r1"].cmd("ip route add 10.2.0.0/24 via 10.100.0.2 dev r1-eth2")
        net["r2"].cmd("ip route add 10.1.0.0/24 via 10.100.0.1 dev r2-eth2")
        net.start()
        print(net["d1"].cmd("ping -c2 10.2.0.251"))
        net.stop()
        """,
    )
    assert " 0% packet loss" in done.stdout, done.stdout + done.stderr
    assert "ttl=62" in done.stdout


def test_links_with_addresses_are_added_to_a_network_that_runs(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        from mininet.net import Mininet
        net = Mininet()
        routers = [net.addHost(f"r{number}") for number in (1, 2, 3)]
        net.start()
        for number, (one, other) in enumerate(zip(routers, routers[1:])):
            ends = {f"params{end + 1}": {"ip": f"10.0.{number}.{end + 1}/30"} for end in (0, 1)}
            net.addLink(one, other, **ends)
        for router in routers:
            router.cmd("sysctl -w net.ipv4.ip_forward=1")
        routers[0].cmd("ip route add 10.0.1.0/30 via 10.0.0.2")
        routers[2].cmd("ip route add 10.0.0.0/30 via 10.0.1.1")
        print(b" 0% packet loss" in routers[0].popen("ping", "-c2", "10.0.1.2").communicate()[0])
        """,
    )
    assert done.stdout == "True\n", done.stderr


@pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is not installed")
def test_both_ends_of_a_transfer_are_driven_from_forked_processes_and_a_background_job_watches_it(
    tmp_path: Path,
) -> None:
    done = run_script(
        tmp_path,
        """
        import multiprocessing, re
        from mininet.link import TCLink
        from mininet.net import Mininet
        from mininet.node import OVSController
        from mininet.topo import SingleSwitchTopo
        net = Mininet(topo=SingleSwitchTopo(2, lopts=dict(bw=20, delay="5ms")), link=TCLink,
                      controller=OVSController, waitConnected=True)
        net.start()
        h1, h2 = net.hosts
        h1.cmd("while true; do ss -tin dst 10.0.0.2 | grep -o 'cwnd:[0-9]*' >> cwnd; sleep 0.1; done &")
        watcher = int(h1.cmd("echo $!"))
        def serve():
            h2.cmd("iperf3 -s --one-off > server")
        def send():
            h1.cmd("sleep 1; iperf3 -c 10.0.0.2 -t 3 -f m > client")
        ends = [multiprocessing.Process(target=end) for end in (serve, send)]
        [end.start() for end in ends]
        [end.join() for end in ends]
        h1.cmd("kill -9", watcher)
        print(max(int(text) for text in re.findall("cwnd:([0-9]+)", open("cwnd").read())) > 1)
        for name in ("server", "client"):
            print(re.findall("([0-9.]+) Mbits/sec .*receiver", open(name).read())[-1])
        """,
    )
    lines = done.stdout.splitlines()
    assert lines[:1] == ["True"], done.stdout + done.stderr
    # No more than what 20 Mbit/s of frames carry, on both ends. How much less depends on the other work of the machine.
    assert len(lines) == 3
    assert all(5 < float(line) < 19.5 for line in lines[1:]), lines


@pytest.mark.skipif(shutil.which("ovs-ofctl") is None, reason="ovs-ofctl is not installed")
def test_flows_by_hand_and_losses_of_each_host(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        import os
        from mininet.link import TCLink
        from mininet.net import Mininet
        net = Mininet(controller=None, link=TCLink)
        switch = net.addSwitch("s1")
        for number, loss in ((1, 0), (2, 0), (3, 100)):
            net.addLink(net.addHost(f"h{number}"), switch, bw=50, delay="2ms", loss=loss)
        net.start()
        print(net.ping([net["h1"], net["h2"]], timeout="0.3"))
        os.system("ovs-vsctl set bridge s1 protocols=OpenFlow13; ovs-ofctl -O OpenFlow13 add-flow s1 action=normal")
        print(net.ping([net["h1"], net["h2"]]), net.ping([net["h1"], net["h3"]], timeout="0.5"))
        """,
    )
    assert done.stdout.split() == ["100.0", "0.0", "100.0"], done.stdout + done.stderr


def test_switches_of_one_dpid_and_a_prompt_of_its_own_that_adds_more(tmp_path: Path) -> None:
    path = tmp_path / "own_prompt.py"
    path.write_text(
        """
import cmd
from mininet.net import Mininet
from mininet.node import OVSSwitch
from mininet.topo import Topo
from mininet.util import customConstructor

class Dumbbell(Topo):
    def build(self):
        for name in ("bbR1", "aR1"):
            self.addSwitch(name)
        for host, switch in (("sH1", "aR1"), ("rH1", "bbR1")):
            self.addLink(self.addHost(host), switch)
        self.addLink("aR1", "bbR1")

class Prompt(cmd.Cmd):
    prompt = "mininet> "

    def do_start(self, line):
        switch = customConstructor({"ovs": OVSSwitch}, "ovs,failMode=standalone")
        self.net = Mininet(topo=Dumbbell(), switch=switch, controller=None)
        self.net.start()

    def do_add_switch(self, line):
        switch = self.net.addSwitch("s" + line)
        self.net.addLink(switch, self.net.get("bbR1"))
        host = self.net.addHost("h" + line, ip="10.0.0.9/8")
        self.net.addLink(host, switch)
        self.net.get("bbR1").attach("bbR1-eth3")
        switch.start([])
        host.configDefault()

    def do_sh(self, line):
        print(self.net.get("aR1").cmd(line))

    def do_ping(self, line):
        print(self.net.pingAll(timeout="3"), self.net.topo.nodeInfo("sH1"))

    def do_exit(self, line):
        self.net.stop()
        return True

Prompt().cmdloop()
"""
    )
    done = twinnet(
        "mininet",
        str(path),
        folder=tmp_path,
        given="start\nping\nadd_switch 5\nping\nsh ovs-vsctl list-br\nexit\n",
    )
    assert done.stdout.count("0.0 {}") == 2, done.stdout + done.stderr
    assert {"aR1", "bbR1", "s5"} <= set(done.stdout.split())
    assert done.returncode == 0
