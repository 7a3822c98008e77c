"""Our own ``ovs-ofctl`` in a script's machine: beside Open vSwitch's, and what its commands do to the switches."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from labs_here import can_run_labs
from mininet_scripts import path_without_open_vswitch, run_script

machine = pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")
beside_ovs_ofctl = pytest.mark.skipif(shutil.which("ovs-ofctl") is None, reason="ovs-ofctl is not installed")

FLOWS = """
add-flow s1 priority=5,in_port=1,actions=output:2
add-flow s1 table=1,priority=7,ip,nw_dst=10.0.0.0/8,actions=output:2,1
add-flow s1 cookie=0x7,idle_timeout=60,hard_timeout=99,send_flow_rem,arp,actions=flood,controller
add-flow s1 priority=9,tcp,tp_dst=80,dl_vlan=5,actions=strip_vlan,output:1
add-flow s1 in_port=s1-eth2,udp,actions=s1-eth1
add-flow s1 in_port=1,actions=group:7
add-flow s1 in_port=1
dump-flows s1
-O OpenFlow13 dump-flows s1
-OOpenFlow10,OpenFlow13 dump-flows s1 table=1
-O OpenFlow13 dump-flows s1 cookie=7/-1
dump-flows s1 ip
dump-flows s1 out_port=1
dump-flows s1 arp,table=0
dump-flows s1 in_port=7
dump-flows s1 priority=5
dump-flows s1 x=5
dump-flows s9
dump-flows
--sort dump-flows s1
--rsort=priority dump-flows s1
--no-stats dump-flows s1
--names dump-flows s1 udp
-O OpenFlow11 dump-flows s1
--bogus dump-flows s1
dump-aggregate s1 in_port=7
-O OpenFlow13 dump-aggregate s1 table=1
mod-flows s1 ip,actions=drop
--strict mod-flows s1 priority=5,in_port=1,actions=NORMAL
mod-flows s1 in_port=7,actions=flood
-O OpenFlow13 mod-flows s1 in_port=8,actions=flood
--strict mod-flows s1 priority=77,in_port=1,actions=flood
mod-flows s1 in_port=7
mod-flows s1 a b
dump-flows s1
--strict del-flows s1 in_port=1
del-flows --strict s1 priority=5,in_port=1
del-flows s1 priority=9,in_port=1
-O OpenFlow13 del-flows s1 cookie=7/-1
dump-flows s1
add-flows s1 changes.txt
dump-flows s1
del-flows s1
add-flow s1 in_port=7,actions=drop
replace-flows s1 wrong.txt
replace-flows s1 none.txt
replace-flows s1
dump-flows s1
replace-flows s1 flows.txt
dump-flows s1
"""
GROUPS = """
add-group s1 group_id=1,type=select,bucket=weight:5,actions=output:1,bucket=output:s1-eth2
add-group s1 group_id=2,type=all,bucket=mod_dl_dst:00:00:00:00:00:05,output:1,bucket=strip_vlan,output:2
add-group s1 group_id=3,type=ff,bucket=watch_port:1,output:1,bucket=watch_port:2,output:2
add-group s1 group_id=4,type=indirect,bucket=output:1
add-group s1 group_id=4,type=indirect,bucket=output:1
add-group s1 group_id=5,type=select,bucket=set_field:10.0.0.1->ip_dst,output:1,bucket=weight:0,group:4
add-group s1 group_id=6,type=all
add-group s1 group_id=7
add-group s1 group_id=7,type=indirect
add-group s1 group_id=7,type=all,bucket=weight:3,output:1
add-group s1 group_id=7,type=all,bucket=group:99
add-group s1 group_id=0x20,type=fast_failover,bucket=watch_group:4,drop
dump-groups s1
dump-groups s1 1
--names dump-groups s1
add-flow s1 in_port=1,actions=group:1
add-flow s1 in_port=2,actions=group:77
dump-group-stats s1
dump-group-stats s1 group_id=4
dump-group-stats s1 4
dump-group-features s1
mod-group s1 group_id=1,type=all,bucket=output:1
mod-group s1 group_id=77,type=all,bucket=output:1
del-groups s1 group_id=2
del-groups s1 2
dump-groups s1
del-groups s1
dump-flows s1 in_port=1
add-groups s1 groups.txt
dump-groups s1
"""
METERS = """
add-meter s1 meter=1,kbps,burst,stats,bands=type=drop,rate=1000,burst_size=100
add-meter s1 meter=2,pktps,band=type=drop,rate=10,type=dscp_remark,rate=5,prec_level=1
add-meter s1 meter=2,pktps,band=type=drop,rate=10
add-meter s1 meter=5,kbps,pktps,bands=type=drop,rate=10
add-meter s1 meter=5,kbps,bands=type=drop
add-meter s1 meter=5,kbps,bands=type=drop,rate=10,burst_size=20
add-meter s1 meter=5,kbps,burst,bands=type=drop,rate=10
add-meter s1 meter=all,kbps,bands=type=drop,rate=10
dump-meters s1
dump-meter s1 meter=1
dump-meters s1 meter=99
add-flow s1 in_port=2,actions=meter:1,output:2
add-flow s1 in_port=2,actions=meter:66,output:2
meter-stats s1
meter-stats s1 meter=1
meter-stats s1 meter=99
meter-features s1
mod-meter s1 meter=1,kbps,bands=type=drop,rate=2000
mod-meter s1 meter=99,kbps,bands=type=drop,rate=2000
del-meter s1 meter=2
dump-meters s1
del-meters s1 meter=2,kbps
del-meters s1
dump-meters s1
dump-flows s1 in_port=2
"""
SWITCH = """
show s1
-O OpenFlow13 show s1
dump-ports s1
-O OpenFlow13 dump-ports s1 1
--names dump-ports s1
dump-ports-desc s1
-O OpenFlow13 dump-ports-desc s1
add-flow s1 in_port=1,actions=drop
dump-tables s1
-O OpenFlow13 dump-tables s1
dump-desc s1
-O OpenFlow13 dump-desc s1
ping s1 7
ping s1 1 2
probe s1
probe s9
get-frags s1
set-frags s1 drop
get-frags s1
queue-stats s1
-O OpenFlow13 queue-stats s1
--names queue-stats s1 s1-eth1 0
queue-stats s1 1 5
-O OpenFlow13 queue-stats s1 9
add-meter s1 meter=1,kbps,bands=type=drop,rate=1000
dump-meters s1
"""
_FRAME = "ffffffffffff00000000000108060001080006040001000000000001000000000a0000010000000000000a000002"
PACKETS = f"""
packet-out s1 in_port=controller,packet={_FRAME},actions=output:2
packet-out s1 in_port=LOCAL,packet={_FRAME},actions=flood
packet-out s1 packet={_FRAME},actions=output:2
packet-out s1 in_port=s1-eth1,packet={_FRAME},actions=output:s1-eth2
packet-out s1 in_port=1,packet={_FRAME}
packet-out s1 1 output:2 {_FRAME}
packet-out s1 none flood {_FRAME} {_FRAME}
-O OpenFlow13 packet-out s1 s1-eth1 mod_dl_src:00:00:00:00:00:08,table {_FRAME}
-O OpenFlow13 packet-out s1 in_port=1,packet={_FRAME},actions=set_field:00:00:00:00:00:09->eth_src,output:2
queue-get-config s1
queue-get-config s1 1
queue-get-config s1 any
queue-get-config s1 s1-eth2 7
queue-get-config s1 77
queue-get-config s1 LOCAL
-O OpenFlow13 queue-get-config s1 2
-O OpenFlow13 queue-get-config s1 77
dump-ports s1 77
dump-ports s1 2
dump-ports-desc s1
--names dump-ports-desc s1 s1-eth1
"""
REFUSALS = f"""
packet-out s1
packet-out s1 in_port=1,actions=output:2
packet-out s1 in_port=1,packet=12,actions=output:2
packet-out s1 in_port=1,packet=zz,actions=output:2
packet-out s1 in_port=foo,packet={_FRAME},actions=output:2
packet-out s1 in_port=1,foo=3,packet={_FRAME},actions=output:2
packet-out s1 in_port=1,packet={_FRAME},actions=foo:2
packet-out s1 in_port=1 packet={_FRAME} actions=output:2
packet-out s1 none output:2 xx
packet-out s1 foo output:2 {_FRAME}
packet-out s1 1 output:2
queue-get-config s1 foo
queue-get-config s1 1 2 3
queue-stats s1 foo
dump-ports s1 foo
dump-ports-desc s1 foo
mod-port s1 77 up
mod-port s1 1 foo
show s9
foo s1
--foo show s1
show
show s1 s2
-O OpenFlow99 show s1
dump-flows s1 foo
dump-flows s1 foo=3
dump-flows s1 in_port=x
dump-flows s1 nw_dst=1.2.3
add-flow s1
add-flow s1 priority=1
add-flow s1 foo=80,actions=1
add-flow s1 foo,actions=1
add-flow s1 actions=1,foo
add-flow s1 actions=output:x
add-flow s1 actions=enqueue:1
add-flow s1 actions=set_field:1->foo
add-flow s1 actions=load:1->foo
add-flow s1 actions=set_queue:x
add-flow s1 actions=mod_dl_src:zz
add-flow s1 actions=mod_vlan_vid:5000
add-flow s1 priority=70000,actions=1
add-flow s1 idle_timeout=x,actions=1
add-flow s1 hard_timeout=70000,actions=1
add-flow s1 cookie=x,actions=1
add-flow s1 dl_src=00:00,actions=1
add-flow s1 ip,nw_dst=1.2.3,actions=1
-O OpenFlow13 add-group s1 group_id=1,type=foo,bucket=output:1
-O OpenFlow13 add-group s1 type=all,bucket=output:1
-O OpenFlow13 add-group s1 group_id=1
-O OpenFlow13 add-group s1 group_id=1,type=all,foo=3
-O OpenFlow13 add-meter s1 meter=1,kbps
-O OpenFlow13 add-meter s1 kbps,band=type=drop,rate=1
-O OpenFlow13 add-meter s1 meter=1,kbps,band=type=foo,rate=1
-O OpenFlow13 add-meter s1 meter=1,kbps,band=type=drop
"""
BOTH = """
import json, subprocess, sys
from pathlib import Path
from mininet.net import Mininet
from mininet.topo import Topo
from twinnet.mininet.tool_clients import client


class Two(Topo):
    def build(self):
        for switch in ("s1", "s2"):
            self.addSwitch(switch)
            for place in (1, 2):
                self.addLink(self.addHost(f"h{place}{switch}"), switch)


net = Mininet(topo=Two(), controller=None)
net.start()
own = Path("own/ovs-ofctl")
own.parent.mkdir()
own.write_text(client())
own.chmod(0o755)
done = []
for line in json.loads(Path("lines.json").read_text()):
    for program, switch in (("ovs-ofctl", "s1"), (str(own), "s2")):
        words = [program, *line.replace("s1", switch).split()]
        ran = subprocess.run(words, capture_output=True, text=True)
        done.append((ran.returncode, ran.stdout, ran.stderr))
Path("done.json").write_text(json.dumps(done))
net.stop()
"""
FILES = {
    "changes.txt": "delete in_port=8\nadd priority=3,actions=drop # the last\nmodify_strict in_port=7,actions=drop\n",
    "wrong.txt": "in_port=1,actions=output:2\nin_port=2,actions=outptu:1\n",
    "flows.txt": "# both ways\nin_port=1,actions=output:2\n\nin_port=2,actions=output:1\npriority=3,actions=drop\n",
    "groups.txt": "group_id=1,type=all,bucket=output:1\n# and\ngroup_id=2,type=all,bucket=output:2\n",
}


def blanked(text: str) -> str:
    """What is printed, without times, counters, transactions and what tells the two switches apart."""
    text = re.sub(r"(duration[=:])[\d.]+s", r"\1", text)
    counters = r"n_packets|n_bytes|pkts|bytes|lookup|matched|drop|(?:packet|byte)(?:_in)?_count"
    text = re.sub(rf"\b({counters}|time|xid|addr)([=:])[\w.:]+", r"\1\2", text)
    return text.replace("s2", "s1").replace("000000000002", "000000000001").replace("Num: 2", "Num: 1")


@machine
@beside_ovs_ofctl
@pytest.mark.parametrize(
    ("lines", "options"),
    [(FLOWS, ""), (GROUPS + METERS, "-O OpenFlow13 "), (SWITCH, ""), (PACKETS, "")],
    ids=["flows", "13", "switch", "packets"],
)
def test_it_prints_what_open_vswitchs_prints_and_ends_with_its_status(tmp_path: Path, lines: str, options: str) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    asked = [options + line for line in lines.strip().splitlines()]
    (tmp_path / "lines.json").write_text(json.dumps(asked))
    script = run_script(tmp_path, BOTH)
    assert script.returncode == 0, script.stderr
    done = json.loads((tmp_path / "done.json").read_text())
    for line, theirs, ours in zip(asked, done[::2], done[1::2], strict=True):
        assert (line, ours[0], blanked(ours[1])) == (line, theirs[0], blanked(theirs[1])), ours[2]
        # Where it refuses, it says so in a line that begins as theirs do.
        assert (ours[2] == "") == (ours[0] == 0), line
        assert ours[0] == 0 or re.fullmatch(r"ovs-ofctl: .+\n", ours[2]), line


@machine
@beside_ovs_ofctl
def test_it_refuses_in_the_words_of_open_vswitch(tmp_path: Path) -> None:
    asked = REFUSALS.strip().splitlines()
    (tmp_path / "lines.json").write_text(json.dumps(asked))
    script = run_script(tmp_path, BOTH)
    assert script.returncode == 0, script.stderr
    done = json.loads((tmp_path / "done.json").read_text())
    for line, theirs, ours in zip(asked, done[::2], done[1::2], strict=True):
        # Before it they may have logged a warning.
        said = theirs[2].strip().splitlines()[-1]
        assert (line, ours[0], theirs[0]) == (line, 1, 1), ours[2]
        assert (line, ours[2].replace("s2", "s1")[: len(said)]) == (line, said)


@machine
def test_queues_are_told_with_their_rates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", path_without_open_vswitch(tmp_path / "bin"))
    done = run_script(
        tmp_path,
        """
        import subprocess
        from mininet.link import TCIntf
        from mininet.net import Mininet
        from mininet.node import OVSSwitch
        from mininet.topo import SingleSwitchTopo
        net = Mininet(topo=SingleSwitchTopo(2), switch=OVSSwitch, controller=None, intf=TCIntf)
        net["s1"].intf("s1-eth2").config(bw=10)
        net.start()
        subprocess.getoutput(
            "ovs-vsctl -- set port s1-eth2 qos=@q -- --id=@q create qos type=linux-htb other-config:max-rate=10000000 "
            "queues:1=@a -- --id=@a create queue other-config:max-rate=5000000 other-config:min-rate=1000000"
        )
        print(subprocess.getoutput("ovs-ofctl queue-get-config s1 2; ovs-ofctl -O OpenFlow13 queue-get-config s1 2"))
        net.stop()
        """,
    )
    # What Open vSwitch's own prints of the same switch.
    assert done.stdout.splitlines() == [
        "OFPT_QUEUE_GET_CONFIG_REPLY (xid=0x2): port=2",
        "queue 0: min_rate:0.1%",
        "queue 1: min_rate:10.0%",
        "OFPT_QUEUE_GET_CONFIG_REPLY (OF1.3) (xid=0x2): port=2",
        "queue 0: min_rate:0.1% max_rate:100.0%",
        "queue 1: min_rate:10.0% max_rate:50.0%",
    ], done.stdout + done.stderr


@machine
def test_frames_that_a_tool_has_sent_arrive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", path_without_open_vswitch(tmp_path / "bin"))
    done = run_script(
        tmp_path,
        f"""
        import subprocess
        from mininet.net import Mininet
        from mininet.node import OVSSwitch
        from mininet.topo import SingleSwitchTopo
        net = Mininet(topo=SingleSwitchTopo(2), switch=OVSSwitch, controller=None)
        net.start()
        h2 = net["h2"]
        subprocess.check_call("ovs-ofctl add-flow s1 in_port=LOCAL,actions=output:2", shell=True)

        def received(line):
            before = int(h2.cmd("cat /sys/class/net/h2-eth0/statistics/rx_packets"))
            subprocess.check_call("ovs-ofctl packet-out s1 " + line, shell=True)
            for _ in range(200):
                after = int(h2.cmd("cat /sys/class/net/h2-eth0/statistics/rx_packets"))
                if after > before:
                    break
            return after - before

        print(received("'in_port=controller packet={_FRAME} actions=output:2'"))
        print(received("none output:2 {_FRAME} {_FRAME}") > 0)
        print(received("'in_port=local packet={_FRAME} actions=table'"))
        net.stop()
        """,
    )
    assert done.stdout.splitlines() == ["1", "True", "1"], done.stdout + done.stderr


@machine
def test_an_arp_responder_of_flows_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", path_without_open_vswitch(tmp_path / "bin"))
    done = run_script(
        tmp_path,
        """
        import subprocess
        from mininet.net import Mininet
        from mininet.node import OVSSwitch
        from mininet.topo import SingleSwitchTopo
        net = Mininet(topo=SingleSwitchTopo(1), switch=OVSSwitch, controller=None)
        net.start()
        nine = ("table=0,arp,arp_op=1,arp_tpa=10.0.0.9,actions=move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[],"
                "mod_dl_src:00:00:00:00:00:09,load:0x2->NXM_OF_ARP_OP[],move:NXM_NX_ARP_SHA[]->NXM_NX_ARP_THA[],"
                "load:0x000000000009->NXM_NX_ARP_SHA[],move:NXM_OF_ARP_SPA[]->NXM_OF_ARP_TPA[],"
                "load:0x0a000009->NXM_OF_ARP_SPA[],in_port")
        eight = ("arp,arp_op=1,arp_tpa=10.0.0.8,actions=move:eth_src->eth_dst,set_field:00:00:00:00:00:08->eth_src,"
                 "set_field:2->arp_op,move:arp_sha[]->arp_tha[],set_field:00:00:00:00:00:08->arp_sha,"
                 "move:arp_spa[]->arp_tpa[],set_field:10.0.0.8->arp_spa,in_port")
        for flow in (nine, eight):
            subprocess.check_call(["ovs-ofctl", "add-flow", "s1", flow])
        h1 = net["h1"]
        for last in (9, 8, 7):
            h1.cmd(f"ping -c 1 -W 0.2 10.0.0.{last}")
            print(h1.cmd(f"ip neigh show 10.0.0.{last}").strip().split()[3:5])
        net.stop()
        """,
    )
    assert done.stdout.splitlines() == [
        "['lladdr', '00:00:00:00:00:09']",
        "['lladdr', '00:00:00:00:00:08']",
        "['INCOMPLETE']",
    ], done.stdout + done.stderr


@machine
def test_flows_and_groups_forward_as_they_are_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", path_without_open_vswitch(tmp_path / "bin"))
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    done = run_script(
        tmp_path,
        """
        import subprocess
        from mininet.net import Mininet
        from mininet.node import OVSSwitch
        from mininet.topo import SingleSwitchTopo

        def ofctl(line, status=0):
            ran = subprocess.run("ovs-ofctl " + line, shell=True, capture_output=True, text=True)
            assert ran.returncode == status, (line, ran)
            return ran.stdout

        def reach():
            return net.ping([h1, h2], timeout="0.2") == 0

        net = Mininet(topo=SingleSwitchTopo(2), switch=OVSSwitch, controller=None, listenPort=6659, autoStaticArp=True)
        net.start()
        s1, h1, h2 = net.get("s1", "h1", "h2")
        ofctl("add-flow s1 - < flows.txt")
        print(reach())
        ofctl("mod-flows s1 in_port=2,actions=drop")
        print(reach())
        ofctl("replace-flows s1 wrong.txt", status=1)
        before = ofctl("dump-flows s1 in_port=1").count("n_packets=0")
        ofctl("replace-flows tcp:127.0.0.1:6659 flows.txt")
        print(reach(), before, ofctl("dump-flows s1 in_port=1").count("n_packets=0"))
        ofctl("add-group s1 group_id=1,type=all,bucket=output:1")
        ofctl("add-group s1 group_id=2,type=all,bucket=group:1")
        ofctl("-O OpenFlow13 add-meter s1 meter=1,kbps,burst,bands=type=drop,rate=1000,burst_size=100")
        ofctl("--strict mod-flows s1 in_port=2,actions=group:2")
        ofctl("add-flow s1 priority=9,in_port=1,icmp,actions=meter:1,output:2")
        ofctl("add-flow s1 in_port=9,actions=group:9", status=1)
        ofctl("add-group s1 group_id=9,type=all" + 3000 * ",bucket=output:1", status=1)
        print(reach(), ",packet_count=0," in ofctl("dump-group-stats s1 group_id=2"))
        link = net.addLink(net.addHost("h3"), s1)
        s1.attach(link.intf2)
        print(reach(), ofctl("-O OpenFlow13 dump-meters s1").splitlines()[1])
        ofctl("--may-create mod-group s1 group_id=3,type=select,bucket=weight:2,s1-eth1")
        print(ofctl("dump-groups s1"), end="")
        ofctl("del-groups s1 group_id=2")
        print(reach(), ofctl("dump-flows s1 in_port=2").count("actions="))
        print(s1.cmd("ovs-ofctl --no-stats dump-flows s1 icmp"), end="")
        s1.cmd("ovs-vsctl set bridge s1 protocols=OpenFlow10")
        ofctl("-O OpenFlow13 dump-flows s1", status=1)
        ofctl("dump-groups s1", status=1)
        ofctl("replace-flows s1 flows.txt", status=1)
        ofctl("del-flows s1; ovs-ofctl add-flow s1 priority=7,ip,actions=drop; ovs-ofctl mod-flows s1 ip,actions=flood")
        print(ofctl("--no-stats dump-flows s1 ip"), end="")
        ofctl("del-flows --strict s1 priority=7,ip; ovs-ofctl mod-flows s1 arp,actions=flood")
        print(ofctl("--no-stats dump-flows s1"), end="")
        net.stop()
        """,
    )
    assert done.stdout.splitlines() == [
        "True",
        "False",
        "True 0 0",
        "True False",
        "True meter=1 kbps burst bands=",
        "NXST_GROUP_DESC reply (xid=0x2):",
        " group_id=1,type=all,bucket=bucket_id:0,actions=output:1",
        " group_id=2,type=all,bucket=bucket_id:0,actions=group:1",
        " group_id=3,type=select,bucket=bucket_id:0,weight:2,actions=output:1",
        "False 0",
        ' priority=9,icmp,in_port="s1-eth1" actions=meter:1,output:"s1-eth2"',
        " priority=7,ip actions=FLOOD",
        " arp actions=FLOOD",
    ], done.stdout + done.stderr
