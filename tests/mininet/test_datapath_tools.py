"""``ovs-appctl``, ``ovs-dpctl`` and our own ``ovs-ofctl`` in a script's machine."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from labs_here import can_run_labs
from mininet_scripts import path_without_open_vswitch, run_script
from twinnet.mininet.datapath_tools import DatapathTools
from twinnet.mininet.fabric import Fabric
from twinnet.mininet.fabric_plan import BarePort, SwitchPlan
from twinnet.mininet.port_configuration import Change
from twinnet.ovsdb.qos_rows import Refused

machine = pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")


class Told(Fabric):
    """A fabric that does not run, with a switch s1 that has learnt, forwarded and counted."""

    def __init__(self) -> None:
        super().__init__()
        self._state.switches["s1"] = SwitchPlan("s1", 0xAB, {2: BarePort("s1-eth2"), 1: BarePort("s1-eth1")})
        self.changes: list[tuple[str, ...]] = []

    def learnt(self, switch: str) -> list[Any]:
        assert switch == "s1"
        return [{"port": 2, "vlan": 10, "mac": "00:00:00:00:00:01", "age_ps": 3_900_000_000_000}]

    def forget_learnt(self, switch: str) -> None:
        self.changes.append(("forgotten", switch))

    def protocols(self, switch: str) -> list[str]:
        return ["OpenFlow10", "OpenFlow13"]

    def configure_port(self, switch: str, number: int, change: Change) -> None:
        self.changes.append((switch, str(number), f"{change.config:#x}/{change.mask:#x}"))

    def flow_lines(self, switch: str) -> list[str]:
        assert switch == "s1"
        return [
            " cookie=0x0, duration=1.000s, table=0, n_packets=1, n_bytes=64, priority=1 actions=NORMAL",
            " cookie=0x0, duration=1.000s, table=1, n_packets=0, n_bytes=0, priority=2 actions=drop",
        ]

    def counters(self, intf: Any) -> dict[str, int]:
        if intf.name == "s1-eth1":
            return {}
        return {
            "frames": 7,
            "link_bytes": 700,
            "received_frames": 5,
            "received_bytes": 500,
            "dropped_overlimit": 2,
            "dropped_early": 1,
        }

    def add_flows(self, switch: str, flows: Any) -> None:
        self.changes.append((switch, *flows))

    def delete_flows(self, switch: str, match: str) -> None:
        self.changes.append((switch, "del", match))


@pytest.fixture
def fabric() -> Told:
    """The fabric that is asked."""
    return Told()


@pytest.fixture
def tools(fabric: Told) -> DatapathTools:
    """The programs on that fabric."""
    return DatapathTools(fabric)


def test_learnt_addresses_stand_in_the_columns_of_fdb_show(tools: DatapathTools) -> None:
    said = tools.run("ovs-appctl", ["-t", "ovs-vswitchd", "fdb/show", "s1"])
    assert said == " port  VLAN  MAC                Age\n    2    10  00:00:00:00:00:01    3\n"


@pytest.mark.parametrize("line", ["fdb/flush", "fdb/flush s1"])
def test_learnt_addresses_are_flushed(tools: DatapathTools, fabric: Told, line: str) -> None:
    assert tools.run("ovs-appctl", line.split()) == "table successfully flushed\n"
    assert fabric.changes == [("forgotten", "s1")]


def test_the_datapath_numbers_the_ports_of_all_switches(tools: DatapathTools) -> None:
    lines = tools.run("ovs-dpctl", ["show"]).splitlines()
    assert lines[0] == "system@ovs-system:"
    assert lines[1] == "  flows: 2"
    assert lines[2:] == [
        "  port 0: ovs-system (internal)",
        "  port 1: s1 (internal)",
        "  port 2: s1-eth1",
        "  port 3: s1-eth2",
    ]
    counted = tools.run("ovs-dpctl", ["-s", "show"])
    assert "RX packets:5 errors:0" in counted
    assert "TX packets:7 errors:0 dropped:3" in counted
    assert "RX bytes:500  TX bytes:700" in counted
    assert "    s1-eth2 2/3: (system)\n" in tools.run("ovs-appctl", ["dpif/show"])


def test_flows_are_told_with_a_heading_and_at_a_terminal_without_and_by_names(
    tools: DatapathTools, fabric: Told
) -> None:
    told = tools.run("ovs-ofctl", ["-O", "OpenFlow13", "dump-flows", "s1"])
    assert told.splitlines()[0] == "OFPST_FLOW reply (OF1.3) (xid=0x2):"
    assert told.count("\n") == 3
    assert tools.run("ovs-ofctl", ["dump-flows", "s1"]).startswith("NXST_FLOW reply (xid=0x4):\n cookie=0x0, duration")
    assert tools.run("ovs-ofctl", ["--names", "dump-flows", "s1"]).startswith(" cookie=0x0, duration")
    assert tools.run("ovs-ofctl", ["--no-stats", "dump-flows", "s1"]) == (
        " priority=1 actions=NORMAL\n table=1, priority=2 actions=drop\n"
    )
    assert tools.run("ovs-appctl", ["bridge/dump-flows", "s1"]) == "".join(told.splitlines(keepends=True)[1:])
    tools.run("ovs-ofctl", ["add-flow", "s1", 'in_port="s1-eth2",actions=s1-eth1'])
    tools.run("ovs-ofctl", ["del-flows", "s1", "in_port=1,ip"])
    assert fabric.changes == [("s1", "in_port=2,actions=1"), ("s1", "del", "in_port=1,ip")]


def test_ports_are_configured_by_number_or_name(tools: DatapathTools, fabric: Told) -> None:
    for line in ("s1 1 noflood", "s1 s1-eth2 receive", "s1 2 down"):
        assert tools.run("ovs-ofctl", ["mod-port", *line.split()]) == ""
    assert fabric.changes == [("s1", "1", "0x10/0x10"), ("s1", "2", "0x0/0x4"), ("s1", "2", "0x1/0x1")]


def test_queues_of_a_port_are_told_with_their_counts(tools: DatapathTools, fabric: Told) -> None:
    assert tools.run("ovs-appctl", ["qos/show", "s1-eth2"]) == "QoS not configured on s1-eth2\n"
    rates = {"0": {"min_rate_bps": 12_000, "max_rate_bps": 10**7}, "1": {"min_rate_bps": 12_000, "max_rate_bps": 10**6}}
    fabric.set_queue("s1-eth2", {"kind": "htb", "rate_bps": 10**7, "queues": rates})
    row = {"class": 1, "frames": 3, "bytes": 300, "drops": {"overlimit": 4, "early": 1}}
    fabric.classes = lambda _intf: [row]  # type: ignore[method-assign]
    said = tools.run("ovs-appctl", ["qos/show", "s1-eth2"])
    assert said.startswith("QoS: s1-eth2 linux-htb\nmax-rate: 10000000\n\nDefault:\n  min-rate: 12000\n")
    assert "Queue 1:\n  min-rate: 12000\n  max-rate: 1000000\n  tx_packets: 3\n  tx_bytes: 300\n  tx_errors: 5" in said
    with pytest.raises(Refused, match="no port named s9-eth1"):
        tools.run("ovs-appctl", ["qos/show", "s9-eth1"])


@pytest.mark.parametrize(
    ("program", "line", "told"),
    [
        ("ovs-appctl", "fdb/show s9", "no bridge named s9"),
        ("ovs-appctl", "fdb/add s1", "fdb/add is not there: our switches answer fdb/show, fdb/flush"),
        ("ovs-appctl", "fdb/flush s9", "no bridge named s9"),
        ("ovs-appctl", "-t ovsdb-server exit", "no ovsdb-server here"),
        ("ovs-dpctl", "dump-flows", "dump-flows is not there"),
        ("ovs-ofctl", "snoop s1", "install openvswitch-switch"),
        ("ovs-ofctl", "show", "'show' command requires at least 1 arguments"),
        ("ovs-ofctl", "show s9", "s9 is not a bridge or a socket"),
        ("ovs-ofctl", "show tcp:127.0.0.1:6654", "tcp:127.0.0.1:6654 is not a bridge or a socket"),
        ("ovs-ofctl", "--bogus show s1", "unrecognized option '--bogus'"),
        ("ovs-ofctl", "-O OpenFlow9 dump-flows s1", 'Unknown OpenFlow version: "OpenFlow9"'),
        ("ovs-ofctl", "-O OpenFlow14 dump-flows s1", "speaks OpenFlow10,OpenFlow13, not OpenFlow14: write -O"),
        ("ovs-ofctl", "--sort=cookie dump-flows s1", "--sort is by priority here, and 'cookie' was given"),
        ("ovs-ofctl", "add-group s1 group_id=1", "must specify a type"),
        ("ovs-ofctl", "add-group s1 group_id=1,type=all,fields=ip_dst", "unknown keyword fields"),
        ("ovs-ofctl", "add-group s1 group_id=1,type=all,bucket=weight:2,output:1", "of the type select"),
        ("ovs-ofctl", "add-group s1 group_id=1,type=all,bucket=", "a bucket needs actions"),
        ("ovs-ofctl", "add-group s1 group_id=1,type=all,bucket=outptu:1", 'did you mean "output"?'),
        ("ovs-ofctl", "add-group s1 group_id=1,type=all,bucket=goto_table:2", "belongs to flows"),
        ("ovs-ofctl", "add-group s1 group_id=4294967041,type=all", "group_id is a number from 0 to 4294967040"),
        ("ovs-ofctl", "del-groups s1 type=all", "type selects no groups"),
        (
            "ovs-ofctl",
            "add-meter s1 meter=1,kbps,bands=type=drop,rate=1",
            "OpenFlow10 has no meters: write -O OpenFlow13",
        ),
        ("ovs-ofctl", "-O OpenFlow13 add-meter s1 meter=1,bands=type=drop,rate=1", "write kbps or pktps"),
        ("ovs-ofctl", "-O OpenFlow13 add-meter s1 meter=0,kbps,bands=type=drop,rate=1", "numbered from 1"),
        ("ovs-ofctl", "-O OpenFlow13 add-meter s1 meter=1,kbps", "must specify bands"),
        ("ovs-ofctl", "-O OpenFlow13 add-meter s1 meter=1,kbps,bands=rate=1", "a band begins with type="),
        ("ovs-ofctl", "-O OpenFlow13 add-meter s1 meter=1,kbps,bands=type=drop", "band must have 'rate'"),
        ("ovs-ofctl", "-O OpenFlow13 del-meters s1 7", "7 selects no meters"),
        ("ovs-ofctl", "ping s1 70000", "the payload in bytes is a number from 0 to 65527"),
        ("ovs-ofctl", "queue-stats s1 s7-eth1", "s1: unknown port `s7-eth1'"),
        ("ovs-ofctl", "set-frags s1 shred", "no way shred to handle fragments"),
        ("ovs-ofctl", "mod-port s1 1 bogus", "unknown mod-port command 'bogus'"),
        ("ovs-ofctl", "mod-port s1 s1-eth7 flood", "s1: couldn't find port `s1-eth7'"),
        ("ovs-ofctl", "mod-port s1 1", "'mod-port' command requires at least 3 arguments"),
    ],
)
def test_what_is_not_there_is_refused_with_its_name(tools: DatapathTools, program: str, line: str, told: str) -> None:
    with pytest.raises(Refused, match=re.escape(told)):
        tools.run(program, line.split())


@machine
def test_scripts_ask_what_their_switches_have_learnt(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        import subprocess
        import time
        from mininet.net import Mininet
        from mininet.node import OVSBridge
        from mininet.topo import SingleSwitchTopo

        net = Mininet(topo=SingleSwitchTopo(2), switch=OVSBridge, controller=None, autoSetMacs=True)
        net.start()
        net.pingAll()
        print(net["s1"].cmd("ovs-appctl fdb/show s1"))
        print(subprocess.getoutput("ovs-dpctl show"))
        print(subprocess.getstatusoutput("ovs-appctl fdb/show s7"))
        for host in net.hosts:
            host.cmd("ip link set", host.defaultIntf(), "down")
        # What the hosts sent before may still be on its way.
        for _ in range(150):
            said = subprocess.getoutput("ovs-appctl fdb/flush s1; ovs-appctl fdb/show s1 | wc -l")
            if said.endswith("\\n1"):
                break
            time.sleep(0.1)
        print(said)
        net.stop()
        """,
    )
    rows = re.findall(r"^ +(\d+) +0  00:00:00:00:00:0(\d) +\d+\s*$", done.stdout, re.MULTILINE)
    assert rows == [("1", "1"), ("2", "2")], done.stdout + done.stderr
    assert "  port 2: s1-eth1" in done.stdout
    assert "(1, 'ovs-appctl: no bridge named s7')" in done.stdout
    assert done.stdout.endswith("table successfully flushed\n1\n")


@machine
def test_scripts_add_flows_where_open_vswitch_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", path_without_open_vswitch(tmp_path / "bin"))
    (tmp_path / "flows.txt").write_text("# both ways\nin_port=1,actions=output:2\nin_port=2,actions=output:1\n")
    done = run_script(
        tmp_path,
        """
        from mininet.net import Mininet
        from mininet.topo import SingleSwitchTopo

        net = Mininet(topo=SingleSwitchTopo(2), controller=None)
        net.start()
        s1 = net["s1"]
        print(net.pingAll(timeout="0.2"))
        print(s1.cmd("ovs-ofctl add-flows s1 flows.txt"), end="")
        print(net.pingAll())
        print(s1.dpctl("dump-flows"))
        s1.dpctl("del-flows", "in_port=1")
        print(s1.dpctl("dump-flows").count("actions="), s1.cmd("ovs-ofctl add-flow s1 in_port=x,actions=drop"))
        print(s1.cmd("ovs-ofctl mod-port s1 s1-eth2 no-flood; ovs-ofctl show s1 | grep config"))
        net.stop()
        """,
    )
    lines = done.stdout.splitlines()
    assert lines[:2] == ["100.0", "0.0"], done.stdout + done.stderr
    assert sum("actions=output:" in line for line in lines) == 2
    assert any(line.startswith("1 ovs-ofctl: ") and "in_port" in line for line in lines), done.stdout
    configurations = [line.split()[1] for line in lines if "config:" in line]
    assert configurations == ["0", "NO_FLOOD", "0"], done.stdout


@machine
def test_classes_of_scripts_may_start_their_switches_by_ovs_vsctl(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        from mininet.net import Mininet
        from mininet.node import OVSSwitch
        from mininet.topo import SingleSwitchTopo

        class Own(OVSSwitch):
            def start(self, controllers):
                ports = [intf for intf in self.intfList() if self.ports[intf] and not intf.IP()]
                rows = {f"{self.name}{c.name}": f"{c.protocol}:{c.IP()}:{c.port}" for c in controllers}
                made = " ".join(f'-- --id=@{key} create Controller target=\\\\"{row}\\\\"' for key, row in rows.items())
                named = ",".join("@" + key for key in rows)
                self.vsctl(
                    made,
                    f"-- --if-exists del-br {self} -- add-br {self}",
                    f"-- set bridge {self} controller=[{named}]" + self.bridgeOpts(),
                    *(f"-- add-port {self} {intf}" + self.intfOpts(intf) for intf in ports),
                )

        net = Mininet(topo=SingleSwitchTopo(2), switch=Own, waitConnected=True)
        net.start()
        s1 = net["s1"]
        print(net.pingAll(), s1.controllerUUIDs(), s1.cmd("ovs-vsctl get Controller s1.0 is_connected").strip())
        net.stop()
        """,
    )
    assert done.stdout == "0.0 ['s1.0'] true\n", done.stdout + done.stderr


@machine
def test_what_comes_in_at_a_port_is_policed(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        from mininet.link import TCLink
        from mininet.net import Mininet
        from mininet.node import OVSBridge
        from mininet.topo import Topo

        class Two(Topo):
            def build(self):
                self.addSwitch("s1")
                self.addLink(self.addHost("h1"), "s1")
                self.addLink(self.addHost("h2"), "s1", bw=100, cls=TCLink)

        net = Mininet(topo=Two(), switch=OVSBridge, controller=None)
        net.start()
        s1, h1, h2 = net.get("s1", "h1", "h2")
        print(s1.cmd("ovs-vsctl set interface s1-eth1 ingress_policing_rate=2000 ingress_policing_burst=160"), end="")
        print(net.iperf([h1, h2], l4Type="UDP", udpBw="10M", fmt="m", seconds=3)[1])
        print(net.iperf([h2, h1], l4Type="UDP", udpBw="10M", fmt="m", seconds=2)[1])
        print(s1.cmd("ovs-vsctl set interface s1-eth2 ingress_policing_rate=2000"))
        net.stop()
        """,
    )
    into, back, refused = done.stdout.strip().splitlines()
    # 2 Mbit/s at the link layer are 1.94 of payload, and the burst adds 0.05 in 3 s.
    assert 1.8 <= float(into.split()[0]) <= 2.1, done.stdout + done.stderr
    assert float(back.split()[0]) > 9, done.stdout
    assert "s1-eth2: what comes in there has a rate already, on the line from h2-eth0" in refused
