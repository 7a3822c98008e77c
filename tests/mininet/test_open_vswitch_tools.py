"""Open vSwitch's tools in a script's machine: ``ovs-vsctl`` of our own, and an installed ``ovs-ofctl`` by names."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from labs_here import can_run_labs
from mininet_scripts import run_script
from twinnet.mininet.fabric import Fabric
from twinnet.mininet.fabric_plan import BarePort, Plan, SwitchPlan
from twinnet.mininet.switch_database import Refused, SwitchDatabase

machine = pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")


@pytest.fixture
def database() -> SwitchDatabase:
    """A switch s1 with two ports in a fabric that does not run."""
    fabric = Fabric()
    fabric.topology_changed = lambda: None  # type: ignore[method-assign]
    plan = SwitchPlan("s1", 1, {1: BarePort("s1-eth1"), 2: BarePort("s1-eth2")}, controllers=["tcp:127.0.0.1:6653"])
    fabric.start_switch(plan)
    return SwitchDatabase(fabric)


def test_bridges_ports_and_controllers_are_told_and_changed(database: SwitchDatabase) -> None:
    assert database.run(["list-br"]) == "s1\n"
    assert database.run(["-t", "5", "list-ports", "s1"]) == "s1-eth1\ns1-eth2\n"
    assert database.run(["port-to-br", "s1-eth2"]) == "s1\n"
    assert database.run(["get-controller", "s1"]) == "tcp:127.0.0.1:6653\n"
    database.run(
        ["--may-exist", "add-br", "s1", "--", "set-fail-mode", "s1", "standalone", "--", "del-controller", "s1"]
    )
    assert database.run(["get-fail-mode", "s1"]) == "standalone\n"
    database.run(["set", "bridge", "s1", "stp_enable=true"])
    assert database.run(["get", "Bridge", "s1", "stp_enable", "rstp_enable"]) == "true\nfalse\n"
    assert database.run(["get-controller", "s1"]) == ""
    database.run(["set", "bridge", "s1", "protocols=OpenFlow13", "other-config:datapath-id=00000000000000ff"])
    plan = database.fabric.switch("s1")
    assert plan is not None
    assert (plan.protocols, plan.dpid) == (["OpenFlow13"], 255)
    database.run(["add-br", "s2", "--", "add-port", "s2", "other0", "--", "del-port", "s1", "s1-eth1"])
    assert database.run(["list-br"]) == "s1\ns2\n"
    assert database.run(["get", "Interface", "other0", "ofport"]) == "1\n"
    assert database.run(["list-ports", "s1"]) == "s1-eth2\n"
    database.run(["del-br", "s2", "--", "--if-exists", "del-br", "s2"])
    assert "    Bridge s1\n" in database.run(["show"])


@pytest.mark.parametrize(
    ("line", "refusal"),
    [
        ("-- create queue other-config:max-rate=1000000 -- set port nosuch qos=1", 'no row "nosuch" in table Port'),
        (
            "create queue other-config:max-rate=1 -- set bridge s1 protocols=OpenFlow13 -- set bridge s1 nonsense=7",
            'Bridge does not contain a column whose name matches "nonsense"',
        ),
        (
            "add-br s9 -- del-port s1-eth1 -- set-controller s1 tcp:1.2.3.4:1 -- set bridge s1 protocols=OpenFlow99",
            "OpenFlow99 is not one of the allowed values ([OpenFlow10, OpenFlow11, OpenFlow12, OpenFlow13, OpenFlow14, "
            "OpenFlow15])",
        ),
        ("set port s1-eth1 tag=5 -- set port s1-eth2 tag=abc", '"abc" is not a valid integer or range'),
        ("set port s1-eth1 tag=5 -- set port s1-eth2 tag=5000", "5000 is not in the valid range 0 to 4095 (inclusive)"),
        ("set bridge s1 stp_enable=true -- set bridge s1 rstp_enable=maybe", '"maybe" is not a valid boolean'),
        (
            "create queue other-config:max-rate=1 -- set port s1-eth1 qos=@nope",
            'row id "@nope" is referenced but never',
        ),
        ("-- --id=@q create qos queues:x=@a -- --id=@a create queue other-config:max-rate=1", '"x" is not a valid int'),
        ("add-br s9 -- set bridge s1 fail_mode", 'fail_mode: argument does not end in "=" followed by a value.'),
        ("add-br s9 -- list nosuch", 'unknown table "nosuch"'),
    ],
)
def test_a_command_line_with_a_refused_command_leaves_nothing(
    database: SwitchDatabase, line: str, refusal: str
) -> None:
    before = repr((database, _switch(database)))
    with pytest.raises(Refused, match=re.escape(refusal)):
        database.run(line.split())
    assert repr((database, _switch(database))) == before
    assert database.run(["list-br"]) == "s1\n"


def test_numbers_that_are_none_are_kept_without_effect_as_open_vswitch_does(database: SwitchDatabase) -> None:
    for given in ("abc", "5M", "-5", "1e6"):
        line = "-- set port s1-eth1 qos=@q -- --id=@q create qos type=linux-htb other-config:max-rate=" + given
        database.run(line.split())
        assert database.fabric.queues["s1-eth1"]["rate_bps"] == 1_000_000_000
        assert database.notes[-1].startswith(f"other_config:max-rate={given} is no whole number")


@pytest.mark.parametrize(
    ("line", "printed"),
    [
        ("--columns=name,protocols list bridge", "name                : s1\nprotocols           : []\n"),
        ("-- --columns=name list bridge -- list-br", "name                : s1\ns1\n"),
        ("--columns=name,protocols --format=csv list bridge", "name,protocols\ns1,[]\n"),
        ("--columns=name -f csv --no-headings list port", "s1-eth1\ns1-eth2\n"),
        ("--bare --columns=name list port", "s1-eth1\n\ns1-eth2\n"),
        ("-f table --columns=name,tag list port", "name    tag\n------- ---\ns1-eth1 []\ns1-eth2 []\n"),
        (
            "--format=json --columns=name,tag,stp_enable list bridge".replace("tag", "protocols"),
            '{"data":[["s1",["set",[]],false]],"headings":["name","protocols","stp_enable"]}\n',
        ),
        ("--data=json --columns=name list bridge", 'name                : "s1"\n'),
        ("--bare --columns=name find port name!=s1-eth1", "s1-eth2\n"),
        ("--columns=name find bridge name=s7", ""),
        ("--columns=status list bridge", "status              : {}\n"),
        ("--dry-run add-br s9 -- list-br", "s1\ns9\n"),
    ],
)
def test_rows_are_printed_in_the_forms_of_open_vswitch(database: SwitchDatabase, line: str, printed: str) -> None:
    assert database.run(line.split()) == printed
    assert database.run(["list-br"]) == "s1\n"


@pytest.mark.parametrize(
    ("line", "refusal"),
    [
        ("--columns=nosuch list bridge", 'Bridge does not contain a column whose name matches "nosuch"'),
        ("-f nosuch list bridge", 'unknown output format "nosuch"'),
        ("-d nosuch list bridge", 'unknown data format "nosuch"'),
        ("--nosuch list-br", "unrecognized option '--nosuch'"),
    ],
)
def test_forms_that_open_vswitch_does_not_have_are_refused(database: SwitchDatabase, line: str, refusal: str) -> None:
    with pytest.raises(Refused, match=re.escape(refusal)):
        database.run(line.split())


def test_interfaces_tell_what_has_gone_through_them(database: SwitchDatabase) -> None:
    counts = {"received_bytes": 500, "received_frames": 5, "link_bytes": 700, "frames": 7, "dropped_early": 2}
    database.fabric.counters = lambda _intf: counts  # type: ignore[method-assign]
    assert database.run(["get", "Interface", "s1-eth1", "statistics:rx_bytes", "statistics:tx_dropped"]) == "500\n2\n"
    whole = "{rx_bytes=500, rx_packets=5, tx_bytes=700, tx_dropped=2, tx_packets=7}"
    assert database.run(["get", "Interface", "s1-eth1", "statistics"]) == whole + "\n"
    assert f"statistics          : {whole}\n" in database.run(["list", "interface", "s1-eth1"])
    with pytest.raises(Refused, match='no key "rx_crc_err" in Interface record "s1-eth1" column statistics'):
        database.run(["get", "Interface", "s1-eth1", "statistics:rx_crc_err"])


def test_what_comes_in_at_a_port_is_policed_where_it_comes_from(database: SwitchDatabase) -> None:
    database.run(["set", "interface", "s1-eth1", "ingress_policing_rate=2000"])
    database.run(["set", "Interface", "s1-eth1", "ingress_policing_burst=160"])
    columns = ["ingress_policing_rate", "ingress_policing_burst"]
    assert database.run(["get", "interface", "s1-eth1", *columns]) == "2000\n160\n"
    nodes = Plan({"s1": _switch(database)}, []).spec({})["nodes"]
    queues = [node["ports"][0]["queue"] for node in nodes if node["kind"] == "interface"]
    once = {"kind": "fifo", "limit_frames": 1}
    assert queues == [{"kind": "tbf", "rate_bps": 2_000_000, "burst_bytes": 20_000, "queue": once}, None]
    database.run(["set", "interface", "s1-eth1", "ingress_policing_burst=0"])
    assert _switch(database).policer(BarePort("s1-eth1")) == queues[0] | {"burst_bytes": 1_000_000}
    database.run(["set", "interface", "s1-eth1", "ingress_policing_rate=0"])
    assert _switch(database).policer(BarePort("s1-eth1")) is None
    with pytest.raises(Refused, match="-5 is less than minimum allowed value 0"):
        database.run(["set", "interface", "s1-eth1", "ingress_policing_rate=-5"])


def test_a_bridge_may_be_made_with_its_controllers_in_one_line(database: SwitchDatabase) -> None:
    line = (
        '-- --id=@s1c0 create Controller target="tcp:127.0.0.1:6633" max_backoff=1000 '
        '-- --id=@s1-listen create Controller target="ptcp:6654" max_backoff=1000 '
        "-- --if-exists del-br s1 -- add-br s1 -- set bridge s1 controller=[@s1c0,@s1-listen] "
        "other_config:datapath-id=00000000000000ab fail_mode=secure other-config:disable-in-band=true "
        "-- add-port s1 other7 -- set Interface other7 ofport_request=7"
    )
    first = database.run(line.split()).split()[0]
    plan = _switch(database)
    assert (plan.controllers, plan.listen, plan.dpid, plan.fail_mode) == (
        ["tcp:127.0.0.1:6633"],
        "ptcp:6654",
        0xAB,
        "secure",
    )
    assert list(plan.ports) == [7]
    assert database.run(["get", "Controller", first, "is_connected", "target"]) == 'false\n"tcp:127.0.0.1:6633"\n'
    assert database.run(["get", "Controller", "s1.0", "is_connected"]) == "false\n"
    assert "is_connected        : false\n" in database.run(["list", "controller"])
    with pytest.raises(Refused, match="no row"):
        database.run(["get", "Controller", "s7.0", "is_connected"])


def test_rows_of_qos_become_queues_of_a_port(database: SwitchDatabase) -> None:
    line = (
        "-- set port s1-eth2 qos=@q -- --id=@q create qos type=linux-htb other-config:max-rate=10000000 "
        "queues=0=@a,1=@b -- --id=@a create queue other-config:max-rate=8000000 "
        "-- --id=@b create queue other-config:min-rate=2000000 other-config:max-rate=3000000"
    )
    said = database.run(line.split())
    assert len(said.split()) == 3
    assert database.fabric.queues["s1-eth2"] == {
        "kind": "htb",
        "rate_bps": 10_000_000,
        "queues": {
            "0": {"min_rate_bps": 12_000, "max_rate_bps": 8_000_000},
            "1": {"min_rate_bps": 2_000_000, "max_rate_bps": 3_000_000},
        },
    }
    database.run(["set", "queue", said.split()[2], "other_config:max-rate=4000000"])
    assert database.fabric.queues["s1-eth2"]["queues"]["1"]["max_rate_bps"] == 4_000_000
    assert database.run(["list", "qos"]).count("linux-htb") == 1
    database.run(["clear", "port", "s1-eth2", "qos", "--", "--all", "destroy", "qos"])
    assert database.fabric.queues == {}
    assert database.run(["list", "qos"]) == ""


def test_rows_of_qos_may_have_bursts_priorities_and_other_types(database: SwitchDatabase) -> None:
    line = (
        "set port s1-eth1 qos=@q -- --id=@q create qos type=linux-htb other-config={max-rate=10000000} queues={1=@a} "
        "-- --id=@a create queue other-config={max-rate=8000000,burst=80000,priority=2}"
    )
    qos = database.run(line.split()).split()[0]
    first = database.fabric.queues["s1-eth1"]["queues"]["1"]
    assert (first["burst_bytes"], first["priority"]) == (10_000, 2)
    assert database.run(["get", "port", "s1-eth1", "qos"]) == f"{qos}\n"
    database.run(["set", "qos", qos, "type=linux-hfsc"])
    # linux-hfsc has no priorities.
    assert "priority" not in database.fabric.queues["s1-eth1"]["queues"]["1"]
    database.run(["remove", "port", "s1-eth1", "qos", qos])
    assert database.fabric.queues == {}
    assert "qos                 : []" in database.run(["list", "port", "s1-eth1"])
    line = "set port s1-eth2 qos=@p -- --id=@p create qos type=egress-policer other-config:cir=125000"
    with pytest.raises(Refused, match="needs a number in other_config:cbs"):
        database.run(line.split())
    database.run([*line.split(), "other-config:cbs=15000"])
    policer = database.fabric.queues["s1-eth2"]
    assert (policer["rate_bps"], policer["burst_bytes"], policer["queue"]["limit_frames"]) == (1_000_000, 15_000, 1)


def _nodes(database: SwitchDatabase) -> list[dict[str, Any]]:
    return [node for node in Plan({"s1": _switch(database)}, []).spec({})["nodes"] if node["kind"] == "switch"]


def _switch(database: SwitchDatabase) -> SwitchPlan:
    plan = database.fabric.switch("s1")
    assert plan is not None
    return plan


def _vlans(database: SwitchDatabase) -> list[dict[str, Any] | None]:
    return [port["vlans"] for port in _nodes(database)[0]["ports"]]


def test_columns_of_ports_become_their_vlans(database: SwitchDatabase) -> None:
    database.run(["set", "port", "s1-eth1", "tag=10", "--", "set", "Port", "s1-eth2", "trunks=[10,20]"])
    assert _vlans(database) == [{"mode": "access", "tag": 10}, {"mode": "trunk", "trunks": [10, 20]}]
    database.run(
        [
            "set",
            "port",
            "s1-eth2",
            "vlan-mode=native-untagged",
            "tag=7",
            "--",
            "remove",
            "port",
            "s1-eth2",
            "trunks",
            "10",
        ]
    )
    database.run(["add", "port", "s1-eth2", "trunks", "30"])
    assert _vlans(database)[1] == {"mode": "native-untagged", "tag": 7, "trunks": [20, 30]}
    assert database.run(["get", "port", "s1-eth2", "tag", "trunks", "vlan_mode"]) == "7\n[20, 30]\nnative-untagged\n"
    database.run(["clear", "port", "s1-eth1", "tag", "--", "clear", "port", "s1-eth2", "tag", "trunks", "vlan_mode"])
    assert _vlans(database) == [None, None]
    assert database.run(["get", "port", "s1-eth1", "tag"]) == "[]\n"
    database.run(
        [
            "set",
            "port",
            "s1-eth1",
            "vlan_mode=access",
            "--",
            "set",
            "port",
            "s1-eth2",
            "vlan_mode=native-tagged",
            "trunks=5",
        ]
    )
    # Without a tag they are in VLAN 0: frames without tags.
    assert _vlans(database) == [{"mode": "trunk", "trunks": [0]}, {"mode": "trunk", "trunks": [0, 5]}]
    database.run(["add-port", "s1", "other0", "tag=3", "--", "del-port", "other0", "--", "add-port", "s1", "other0"])
    assert _vlans(database)[2] is None


MIRROR = (
    "-- set bridge s1 mirrors=@m -- --id=@a get port s1-eth1 -- --id=@b get port s1-eth2 "
    "-- --id=@m create mirror name=m1 select-src-port=@a select-dst-port=@a,@b output-port=@b"
)


def test_rows_of_mirrors_become_mirrors_of_a_bridge(database: SwitchDatabase) -> None:
    identifier = database.run(MIRROR.split()).strip()
    assert _switch(database).mirrors == [{"to": {"port": 2}, "all": False, "from": [1], "towards": [1, 2], "vlans": []}]
    assert database.run(["get", "bridge", "s1", "mirrors"]) == f"[{identifier}]\n"
    database.run(["set", "mirror", "m1", "select_all=true", "select_vlan=5", "output_vlan=9", "output_port=[]"])
    assert _nodes(database)[0]["mirrors"] == [
        {"to": {"vlan": 9}, "all": True, "from": [1], "towards": [1, 2], "vlans": [5]}
    ]
    database.run(["del-port", "s1-eth2"])
    assert _switch(database).mirrors[0]["towards"] == [1]
    assert "name                : m1" in database.run(["list", "mirror"])
    for gone in ("remove bridge s1 mirrors m1", "clear bridge s1 mirrors", "destroy mirror m1"):
        database.run(f"set bridge s1 mirrors={identifier}".split())
        database.run(gone.split())
        assert _switch(database).mirrors == []
    database.run(["--if-exists", "destroy", "mirror", "m1"])


def test_managers_are_kept_and_those_that_are_dialled_told(database: SwitchDatabase) -> None:
    database.run(["set-manager", "ptcp:6632", "tcp:10.0.0.9:6640"])
    assert database.run(["get-manager"]) == "ptcp:6632\ntcp:10.0.0.9:6640\n"
    assert database.notes == ["tcp:10.0.0.9:6640 is not dialled here; write ptcp:PORT"]
    database.run(["del-manager"])
    assert database.run(["get-manager"]) == ""


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("br-exists s9", "no bridge named s9"),
        ("set port s1-eth1 tag=4095", "tag=4095: VLANs are 0 to 4094"),
        ("set port s1-eth1 vlan_mode=dot1q-tunnel", "vlan_mode=dot1q-tunnel: our switches have access"),
        ("set port s1-eth1 lacp=active", "our switches have no lacp"),
        ("clear port nosuch qos", 'no row "nosuch" in table Port'),
        ("set port nosuch qos=x", 'no row "nosuch" in table Port'),
        ("set port s1-eth1 qos=x", 'no row "x"'),
        ("nonsense", "unknown command 'nonsense'"),
        ("add-br s1", "already exists"),
        ("set-fail-mode s1 loud", '"secure" or "standalone"'),
        ("create mirror name=m snaplen=100", "our switches have no snaplen"),
        ("create flow_table name=x", "cannot be made here"),
        ("set bridge s1 mirrors=nosuch", 'no row "nosuch" in table Mirror'),
        ("-- set bridge s1 mirrors=@m -- --id=@m create mirror output-port=s9-eth1", "no port s9-eth1"),
        ("set interface s1-eth1 type=vxlan", "no type=vxlan"),
        ("set bridge s1 flood_vlans=5", "no column flood_vlans"),
    ],
)
def test_what_is_not_there_is_refused_by_its_name(database: SwitchDatabase, command: str, words: str) -> None:
    with pytest.raises(Refused, match=re.escape(words)):
        database.run(command.split())


@machine
@pytest.mark.skipif(shutil.which("ovs-ofctl") is None, reason="ovs-ofctl is not installed")
def test_lines_of_a_queue_study_work_when_they_are_pasted(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        import subprocess
        from mininet.net import Mininet
        from mininet.topo import SingleSwitchTopo
        net = Mininet(topo=SingleSwitchTopo(3), controller=None)
        net.start()
        h1, h2, h3 = net.hosts
        print(subprocess.getoutput("ovs-vsctl list-br; ovs-vsctl br-exists s9; echo $?"))
        for line in (
            "ovs-vsctl -- set port s1-eth2 qos=@n -- --id=@n create qos type=linux-htb other-config:max-rate=10000000 "
            "queues:1=@q1 -- --id=@q1 create queue other-config:max-rate=3000000",
            "ovs-ofctl add-flow s1 priority=1,actions=normal",
            "ovs-ofctl add-flow s1 priority=5,in_port=1,actions=set_queue:1,normal",
        ):
            subprocess.run(line, shell=True, check=True, stdout=subprocess.DEVNULL)
        print("set_queue:1" in net["s1"].dpctl("dump-flows"))
        link = net.addLink(net.addHost("h4", ip="10.0.0.4/8"), net["s1"])
        net["s1"].attach(link.intf2)
        h4 = net["h4"]
        h4.configDefault()
        print("set_queue:1" in net["s1"].dpctl("dump-flows"), net.ping([h1, h4]))
        print(net.iperf([h1, h2], fmt="m", seconds=3)[0], net.iperf([h3, h2], fmt="m", seconds=3)[0])
        """,
    )
    lines = done.stdout.splitlines()
    assert lines[:2] == ["s1", "ovs-vsctl: no bridge named s9"], done.stderr
    assert lines[2:5] == ["2", "True", "True 0.0"]
    slow, fast = (float(text) for text in re.findall(r"([0-9.]+) mbits/sec", lines[5].lower()))
    # The queue's greatest rate, and the port's; iperf counts payload only, 95 % of it.
    assert 2.4 <= slow <= 3
    assert 7 <= fast <= 10


def test_a_fault_of_ours_at_one_command_leaves_the_next_ones_answered(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        r"""
        import os, socket
        from mininet.net import Mininet
        from mininet.node import OVSBridge
        from mininet.topo import SingleSwitchTopo
        from mininet.util import quietRun
        from twinnet.mininet.switch_database import SwitchDatabase
        net = Mininet(topo=SingleSwitchTopo(2), switch=OVSBridge, controller=None)
        net.start()

        def fails(self, asked):
            raise KeyError("odd")

        usual, SwitchDatabase.run = SwitchDatabase.run, fails
        print(quietRun("ovs-vsctl list-br").strip())
        SwitchDatabase.run = usual
        for junk in b"", b"\0", b"no-such\0words", b"\xff\xfe", b"tc", b"tc\0qdisc", b"ovs-ofctl", b"ovs-ofctl\0-O":
            with socket.socket(socket.AF_UNIX) as sock:
                sock.connect(f"{os.environ['OVS_RUNDIR']}/{os.getpid()}.vsctl")
                sock.sendall(junk)
                sock.shutdown(socket.SHUT_WR)
                assert sock.recv(1000).count(b"a fault of twinnet") == 0, junk
        print(quietRun("ovs-vsctl list-br").strip())
        net.stop()
        """,
    )
    assert done.stdout == "ovs-vsctl: a fault of twinnet: KeyError('odd')\ns1\n", done.stdout + done.stderr
    assert "*** ovs-vsctl: a fault of twinnet: KeyError('odd')" in done.stderr


def test_rows_that_are_referred_to_are_not_destroyed(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        from mininet.net import Mininet
        from mininet.node import OVSBridge
        from mininet.topo import SingleSwitchTopo
        from mininet.util import quietRun
        net = Mininet(topo=SingleSwitchTopo(2), switch=OVSBridge, controller=None)
        net.start()
        qos = quietRun(
            "ovs-vsctl set port s1-eth1 qos=@q -- --id=@q create qos type=linux-htb queues=1=@one"
            " -- --id=@one create queue other-config:max-rate=1000000"
        ).split()[0]
        refused = '{"details":"cannot delete %s row %s because of 1 remaining reference(s)"'
        print(refused % ("QoS", qos) in quietRun("ovs-vsctl -- --all destroy qos -- --all destroy queue"))
        print('"cannot delete Queue row' in quietRun("ovs-vsctl --all destroy queue"))
        print(quietRun("ovs-vsctl get port s1-eth1 qos").strip() == qos)
        print(repr(quietRun("ovs-vsctl set-manager ptcp:6640")), quietRun("ovs-vsctl list-br").strip())
        print(repr(quietRun("ovs-vsctl -- --all destroy qos -- --all destroy queue -- clear port s1-eth1 qos")))
        print(repr(quietRun("ovs-vsctl list qos")), quietRun("ovs-vsctl get port s1-eth1 qos").strip())
        net.stop()
        """,
    )
    assert done.stdout.splitlines() == ["True", "True", "True", "'' s1", "''", "'' []"], done.stdout + done.stderr


@pytest.mark.parametrize(
    ("line", "printed"),
    [
        ("--col=name list Br", "name                : s1\n"),
        ("get b s1 name prot", "s1\n[]\n"),
        ("--no-h --form=csv --col=name,tag list port", "s1-eth1,[]\ns1-eth2,[]\n"),
        ("-t5 --time=5 -vconsole:off set por s1-eth1 ta=7 -- get Port s1-eth1 tag", "7\n"),
        ("--if-exist del-br s9", ""),
        ("--may add-br s1", ""),
        ("--if-exists get br s9 name", ""),
        ("--no-wait set int s1-eth1 ofport-r=5 -- get interface s1-eth1 ofport", "5\n"),
        ("set br s1 stp_en=true -- get br s1 stp", "true\n"),
        ("--columns=name find int ofport=1", "name                : s1-eth1\n"),
        ("get o . ovs_v", '"2.17.0"\n'),
        (
            "set open-vswitch . external-ids:system-id=x -- get open . external_ids",
            '{system-id="x"}\n'.replace('"', ""),
        ),
        ("set br s1 other_config=disable-in-band=true -- get br s1 other_config:disable-in-band", '"true"\n'),
        ("br-set-external-id s1 a b -- br-get-external-id s1 -- br-get-external-id s1 a", "a=b\nb\n"),
        ("set port s1-eth1 external_ids:a=b -- remove port s1-eth1 ext a -- get port s1-eth1 ext", "{}\n"),
        ("br-to-vlan s1 -- br-to-parent s1", "0\ns1\n"),
        ("get controller s1 target", '"tcp:127.0.0.1:6653"\n'),
        ("wait-until br s1 name=s1", ""),
    ],
)
def test_words_may_be_cut_short_as_for_open_vswitch(database: SwitchDatabase, line: str, printed: str) -> None:
    # What Debian's ovs-vsctl 3.1 prints for the same lines.
    assert database.run(line.split()) == printed


@pytest.mark.parametrize(
    ("condition", "names"),
    [
        ("int ofport>1", "s1-eth2"),
        ("int ofport<=1", "s1-eth1"),
        ("int ofport!=1", "s1-eth2"),
        ("int ofport{=}1", "s1-eth1"),
        ("int name>s1-eth1", "s1-eth2"),
        ("port tag>3", "s1-eth1"),
        ("port tag=[]", "s1-eth2"),
        ("port tag=5 name=s1-eth1", "s1-eth1"),
        ("port tr{>=}5", "s1-eth2"),
        ("port trunks{<=}5", "s1-eth1"),
        ("port trunks{<}[5,7,9]", "s1-eth1 s1-eth2"),
        ("port trunks=5", ""),
        ("port trunks=[7,5]", "s1-eth2"),
        ("port trunks!=[]", "s1-eth2"),
        ("br external_ids:a=b", "s1"),
        ("br external_ids:x!=b", ""),
        ("br external_ids=a=b", ""),
        ("br external-ids{>=}a=b", "s1"),
        ("br external_ids:c>3", "s1"),
        ("br stp_enable=false", "s1"),
    ],
)
def test_rows_are_found_by_the_conditions_of_open_vswitch(database: SwitchDatabase, condition: str, names: str) -> None:
    database.run(["set", "br", "s1", "external_ids:a=b", "external_ids:c=5"])
    database.run(["set", "port", "s1-eth1", "tag=5", "--", "set", "port", "s1-eth2", "trunks=5,7"])
    assert database.run(["--bare", "--columns=name", "find", *condition.split()]).split() == names.split()


@pytest.mark.parametrize(
    ("line", "refusal"),
    [
        ("find int ofport=x", '"x" is not a valid integer or range'),
        ("find int ofport", 'ofport: argument does not end in "=", "!=", "<", ">", "<="'),
        ("find int foo=0", 'Interface does not contain a column whose name matches "foo"'),
        ("wait-until int s1-eth1 ofport=7", "ofport=7 is not so, and would not be later"),
        ("list i", '"i" matches multiple table names: IPFIX, Interface'),
        ("list c", '"c" matches multiple table names: CT_Timeout_Policy, CT_Zone, Controller'),
        ("list iface", 'unknown table "iface"'),
        ("set port s1-eth1 t=5", 'Port contains more than one column whose name matches "t": tag, trunks'),
        ("get int s1-eth1 ofp", 'whose name matches "ofp": ofport, ofport_request'),
        ("get port s1-eth1 ofport", 'Port does not contain a column whose name matches "ofport"'),
        ("--m add-port s1 x", "option '--m' is ambiguous; possibilities: '--max-column-width' '--may-exist'"),
        ("--i del-br s9", "option '--i' is ambiguous; possibilities: '--if-exists' '--id' '--inactivity-probe'"),
        ("--p list-br", "option '--p' is ambiguous; possibilities: '--pretty' '--private-key' '--peer-ca-cert'"),
        ("--no-wait=3 list-br", "option '--no-wait' doesn't allow an argument"),
        ("--timeout", "option '--timeout' requires an argument"),
        ("-t", "option requires an argument -- 't'"),
        ("-t x list-br", "value x on -t or --timeout is invalid"),
        ("-x list-br", "invalid option -- 'x'"),
        ("-- --col=name list br", "'list' command has no '--col' option"),
        ("--may-exist list br s1", "'list' command has no '--may-exist' option"),
        ("-- --if-exists=3 del-br s1", "'--if-exists' option on 'del-br' does not accept an argument"),
        ("-- --id create qos", "missing argument to '--id' option on 'create' command"),
        ("list-b", "unknown command 'list-b'; use --help for help"),
        ("list-br s1", "'list-br' command takes at most 0 arguments"),
        ("add-port s1", "'add-port' command requires at least 2 arguments"),
        ("add-port s1 x y", 'Port does not contain a column whose name matches "y"'),
        ("set br s1", "'set' command requires at least 3 arguments"),
        ("--columns= list br", "must specify at least one column name"),
        ("get br s1 name:foo", "cannot specify key to get for non-map column name"),
        ("get o . external_ids:foo", 'no key "foo" in Open_vSwitch record "." column external_ids'),
        ("list controller s2", 'no row "s2" in table Controller'),
    ],
)
def test_words_that_mean_none_or_several_are_refused_as_by_open_vswitch(
    database: SwitchDatabase, line: str, refusal: str
) -> None:
    with pytest.raises(Refused, match=re.escape(refusal)):
        database.run(line.split())


def test_rows_are_named_by_their_identifiers_in_part_too(database: SwitchDatabase) -> None:
    identifier = database.run(["get", "br", "s1", "_uuid"]).strip()
    assert database.run(["get", "br", identifier, "name"]) == "s1\n"
    assert database.run(["get", "br", identifier[:4], "name"]) == "s1\n"
    assert database.run(["get", "br", ".", "name"]) == "s1\n"
    with pytest.raises(Refused, match=f'no row "{identifier[:3]}" in table Bridge'):
        database.run(["get", "br", identifier[:3], "name"])
    line = "-- set port s1-eth1 qos=@q -- --id=@q create qos type=linux-htb other-config:max-rate=1000000"
    qos = database.run(line.split()).strip()
    assert database.run(["get", "qos", "s1-eth1", "_uuid"]) == f"{qos}\n"
    assert f"_uuid               : {qos}\n" in database.run(["list", "qos", qos[:8]])


def test_rows_of_samples_are_kept_and_shown_while_a_bridge_refers_to_them(
    database: SwitchDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    line = (
        '-- --id=@s create sflow agent=s1-eth0 target="127.0.0.1:6343" header=128 sampling=64 polling=10 '
        "-- set bridge s1 sflow=@s"
    )
    identifier = database.run(line.split()).strip()
    shown = (
        f"_uuid               : {identifier}\n"
        "agent               : s1-eth0\nexternal_ids        : {}\nheader              : 128\n"
        "polling             : 10\nsampling            : 64\ntargets             : [\"127.0.0.1:6343\"]\n"
    )  # fmt: skip
    assert database.run(["list", "sflow"]) == shown
    assert database.run(["list", "sflow", "s1"]) == shown
    assert database.run(["get", "bridge", "s1", "sflow"]) == f"{identifier}\n"
    database.run(["set", "sflow", "s1", "sampling=1", "--", "destroy", "sflow", identifier])
    assert database.run(["get", "sflow", "s1", "sampling"]) == "1\n"
    assert caplog.text.count("sFlow of s1 is kept and shown, and no samples are sent") == 1
    database.run(["clear", "bridge", "s1", "sflow"])
    assert (database.run(["list", "sflow"]), database.run(["get", "bridge", "s1", "sflow"])) == ("", "[]\n")
    line = (
        "-- set Bridge s1 netflow=@n ipfix=@i -- --id=@n create NetFlow targets=\\\"192.168.0.34:5566\\\" "
        "active-timeout=30 -- --id=@i create IPFIX targets=[\"192.168.0.34:4739\",\"192.168.0.35:4739\"]"
    )  # fmt: skip
    netflow = database.run(line.replace("\\", "").split()).split()[0]
    assert database.run(["get", "netflow", "s1", "active_timeout", "targets"]) == '30\n["192.168.0.34:5566"]\n'
    assert database.run(["get", "ipfix", "s1", "targets"]) == '["192.168.0.34:4739", "192.168.0.35:4739"]\n'
    database.run(["remove", "bridge", "s1", "netflow", netflow, "--", "set", "bridge", "s1", "ipfix=[]"])
    assert database.run(["list", "netflow", "--", "list", "ipfix"]) == ""
    database.run(["create", "sflow", 'targets="127.0.0.1:6343"'])
    assert database.notes[-1].endswith("to table sFlow without --id option will have no effect")
    assert database.run(["list", "sflow"]) == ""


def test_what_is_kept_of_a_bridge_goes_with_it(database: SwitchDatabase) -> None:
    database.run(["add-br", "s2", "--", "set", "br", "s2", "datapath_type=netdev", "external_ids:a=b"])
    assert "    Bridge s2\n        fail_mode: standalone\n        datapath_type: netdev\n" in database.run(["show"])
    database.run(["del-br", "s2", "--", "add-br", "s2"])
    assert database.run(["get", "br", "s2", "datapath_type", "external_ids"]) == '""\n{}\n'


def test_ports_are_shown_with_their_vlans(database: SwitchDatabase) -> None:
    database.run(["set", "port", "s1-eth1", "tag=10", "--", "set", "port", "s1-eth2", "trunks=10,20"])
    shown = database.run(["show"])
    assert "        Port s1-eth1\n            tag: 10\n            Interface s1-eth1\n" in shown
    assert "        Port s1-eth2\n            trunks: [10, 20]\n            Interface s1-eth2\n" in shown
