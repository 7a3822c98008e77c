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
    [(FLOWS, ""), (GROUPS + METERS, "-O OpenFlow13 "), (SWITCH, "")],
    ids=["flows", "13", "switch"],
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
