"""The database of Open vSwitch that clients see: its rules, its server, and the switches that follow it."""

from __future__ import annotations

import json
import shlex
import shutil
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from labs_here import can_run_labs
from mininet_scripts import run_script
from twinnet.mininet.bare_ports import VirtualPort
from twinnet.mininet.fabric import Fabric
from twinnet.mininet.fabric_plan import BarePort, SwitchPlan
from twinnet.mininet.followed_database import FollowedDatabase
from twinnet.mininet.switch_database import SwitchDatabase
from twinnet.mininet.tool_doors import bound
from twinnet.ovsdb.database import Database
from twinnet.ovsdb.messages import MOST_BYTES, Messages
from twinnet.ovsdb.schema import open_vswitch
from twinnet.ovsdb.values import BadValue

machine = pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")
real_tool = pytest.mark.skipif(shutil.which("ovs-vsctl") is None, reason="ovs-vsctl is not installed")

ROOT = {"op": "insert", "table": "Open_vSwitch", "row": {"bridges": ["set", [["named-uuid", "b"]]]}}
BRIDGE = {"op": "insert", "table": "Bridge", "uuid-name": "b", "row": {"name": "s1"}}
EVERY: list[Any] = []


@pytest.fixture
def rows() -> Database:
    """A database with the bridge s1."""
    database = Database(open_vswitch())
    assert all("error" not in one for one in database.transact([ROOT, BRIDGE]))
    return database


def selected(database: Database, table: str, *columns: str) -> list[dict[str, Any]]:
    return database.transact([{"op": "select", "table": table, "where": EVERY, "columns": list(columns)}])[0]["rows"]


def mutate(*mutation: Any) -> dict[str, Any]:
    return {"op": "mutate", "table": "Bridge", "where": EVERY, "mutations": [list(mutation)]}


def test_named_rows_refer_to_each_other_and_have_defaults(rows: Database) -> None:
    [root] = selected(rows, "Open_vSwitch", "bridges", "next_cfg", "external_ids")
    [bridge] = selected(rows, "Bridge", "_uuid", "name", "stp_enable", "fail_mode")
    assert root == {"bridges": bridge["_uuid"], "next_cfg": 0, "external_ids": ["map", []]}
    assert (bridge["name"], bridge["stp_enable"], bridge["fail_mode"]) == ("s1", False, ["set", []])


def test_sets_and_maps_are_mutated(rows: Database) -> None:
    given = [
        mutate("protocols", "insert", ["set", ["OpenFlow13", "OpenFlow10"]]),
        mutate("protocols", "delete", "OpenFlow10"),
        mutate("other_config", "insert", ["map", [["a", "1"], ["b", "2"]]]),
        mutate("other_config", "insert", ["map", [["a", "9"]]]),
        mutate("other_config", "delete", ["set", ["b"]]),
        {"op": "mutate", "table": "Open_vSwitch", "where": EVERY, "mutations": [["next_cfg", "+=", 3]]},
    ]
    assert [one["count"] for one in rows.transact(given)] == [1] * 6
    assert selected(rows, "Bridge", "protocols", "other_config") == [
        {"protocols": "OpenFlow13", "other_config": ["map", [["a", "1"]]]}
    ]
    assert selected(rows, "Open_vSwitch", "next_cfg") == [{"next_cfg": 3}]


@pytest.mark.parametrize(
    ("operation", "error"),
    [
        ({"op": "insert", "table": "Bridge", "row": {"nosuch": 1}}, "syntax error"),
        ({"op": "insert", "table": "Nosuch", "row": {}}, "syntax error"),
        ({"op": "insert", "table": "Bridge", "row": {"name": 5}}, "constraint violation"),
        ({"op": "update", "table": "Bridge", "where": EVERY, "row": {"fail_mode": "loud"}}, "constraint violation"),
        ({"op": "update", "table": "Bridge", "where": EVERY, "row": {"protocols": 7}}, "constraint violation"),
        ({"op": "select", "table": "Bridge"}, "syntax error"),
        ({"op": "select", "table": "Bridge", "where": [["name", "like", "s"]]}, "syntax error"),
        (
            {"op": "wait", "table": "Bridge", "where": EVERY, "columns": ["name"], "until": "==", "rows": []},
            "timed out",
        ),
        ({"op": "abort"}, "aborted"),
        ({"op": "dance"}, "syntax error"),
        (5, "syntax error"),
    ],
)
def test_a_refused_operation_changes_nothing(rows: Database, operation: Any, error: str) -> None:
    before = rows.tables
    comment = {"op": "comment"}
    done = rows.transact([mutate("protocols", "insert", "OpenFlow13"), operation, comment])
    assert (done[1]["error"], done[2]) == (error, None)
    assert rows.tables is before


def test_rows_that_nothing_keeps_go_and_names_are_not_given_twice(rows: Database) -> None:
    lost = {"op": "insert", "table": "Bridge", "row": {"name": "s2"}}
    assert "uuid" in rows.transact([lost])[0]
    assert selected(rows, "Bridge", "name") == [{"name": "s1"}]
    twice = {**BRIDGE, "uuid-name": "c"}
    root = {"table": "Open_vSwitch", "where": EVERY}
    add = {**root, "op": "mutate", "mutations": [["bridges", "insert", ["named-uuid", "c"]]]}
    assert rows.transact([twice, add])[-1]["error"] == "constraint violation"
    nowhere = {**root, "op": "update", "row": {"bridges": ["uuid", str(uuid.UUID(int=0))]}}
    assert rows.transact([nowhere])[-1]["error"] == "referential integrity violation"


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_messages_are_put_together_from_pieces(size: int) -> None:
    text = b' {"a": "}{\\"", "b": [1, {"c": 2}]}\n{"d": 1}{"e":2}'
    reader = Messages()
    found = [one for at in range(0, len(text), size) for one in reader.take(text[at : at + size])]
    assert found == [{"a": '}{"', "b": [1, {"c": 2}]}, {"d": 1}, {"e": 2}]


@pytest.mark.parametrize(
    "junk", [b"GET / HTTP/1.1\r\n", b"[1]", b"{nonsense}", b"\x16\x03\x01", b"{" + b" " * (MOST_BYTES + 1)]
)
def test_what_is_no_message_is_refused(junk: bytes) -> None:
    with pytest.raises(BadValue):
        list(Messages().take(junk))


class Clients:
    """A database of the switch s1 with two ports, in a fabric that does not run, and clients of it."""

    def __init__(self, folder: Path) -> None:
        self.fabric = Fabric()
        self.fabric.topology_changed = lambda: None  # type: ignore[method-assign]
        ports: dict[int, Any] = {1: BarePort("s1-eth1"), 2: BarePort("s1-eth2")}
        self.fabric.start_switch(SwitchPlan("s1", 1, ports, controllers=["tcp:127.0.0.1:6653"]))
        self.switches = SwitchDatabase(self.fabric)
        self.path = folder / "db.sock"
        self.followed = FollowedDatabase(self.switches, bound(self.path))

    def plan(self, name: str = "s1") -> SwitchPlan:
        plan = self.fabric.switch(name)
        assert plan is not None
        return plan

    def vsctl(self, line: str) -> str:
        """What the real ``ovs-vsctl`` prints."""
        command = ["ovs-vsctl", "-t", "10", f"--db=unix:{self.path}", *line.split()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def listen(self) -> int:
        """Have a manager's port opened, and return it."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.switches.run(["set-manager", f"ptcp:{port}:127.0.0.1"])
        self.followed.follow_managers()
        return port

    def connect(self) -> socket.socket:
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(10)
        sock.connect(str(self.path))
        return sock


@pytest.fixture
def clients(tmp_path: Path) -> Iterator[Clients]:
    made = Clients(tmp_path)
    yield made
    made.followed.server.end()


def asked(sock: socket.socket, reader: Messages, method: str, *parameters: Any) -> dict[str, Any]:
    sock.sendall(json.dumps({"id": 7, "method": method, "params": parameters}).encode())
    return answered(sock, reader)


def answered(sock: socket.socket, reader: Messages) -> dict[str, Any]:
    while True:
        for one in reader.take(sock.recv(1 << 16)):
            return one


@real_tool
def test_the_real_tool_sees_the_switches(clients: Clients) -> None:
    assert clients.vsctl("list-br") == "s1\n"
    assert clients.vsctl("list-ports s1") == "s1-eth1\ns1-eth2\n"
    assert clients.vsctl("get Interface s1-eth2 ofport") == "2\n"
    assert clients.vsctl("get bridge s1 datapath_id fail_mode") == '"0000000000000001"\nsecure\n'
    assert clients.vsctl("get-controller s1") == "tcp:127.0.0.1:6653\n"
    assert "Port s1-eth1" in clients.vsctl("show")


@real_tool
def test_the_switches_follow_the_real_tool(clients: Clients) -> None:
    clients.vsctl("add-br s2 -- add-port s2 other0 tag=5 -- set-fail-mode s1 standalone -- del-controller s1")
    assert [plan.name for plan in clients.fabric.switches()] == ["s1", "s2"]
    assert [intf.name for intf in clients.plan("s2").ports.values()] == ["other0"]
    assert clients.plan("s2").vlans == {"other0": {"tag": "5"}}
    assert (clients.plan().fail_mode, clients.plan().controllers) == ("standalone", [])
    clients.vsctl("set bridge s1 protocols=OpenFlow13 other-config:datapath-id=00000000000000ff")
    assert (clients.plan().protocols, clients.plan().dpid) == (["OpenFlow13"], 255)
    clients.vsctl("set interface s1-eth2 ofport_request=9 -- set port s1-eth1 trunks=1,2 vlan_mode=native-tagged tag=3")
    assert sorted(clients.plan().ports) == [1, 9]
    clients.vsctl("set interface s1-eth1 ingress_policing_rate=2000 ingress_policing_burst=100")
    assert clients.plan().policing == {"s1-eth1": (2000, 100)}
    assert clients.vsctl("get interface s1-eth1 ingress_policing_rate") == "2000\n"
    assert clients.plan().vlans["s1-eth1"] == {"tag": "3", "trunks": "1,2", "vlan_mode": "native-tagged"}
    clients.vsctl("add-port s2 p2 -- set interface p2 type=patch options:peer=p1")
    [patch] = [intf for intf in clients.plan("s2").ports.values() if intf.name == "p2"]
    assert isinstance(patch, VirtualPort)
    assert (patch.kind, patch.options) == ("patch", {"peer": "p1"})
    assert clients.vsctl("get interface p2 options:peer") == "p1\n"
    clients.vsctl("set bridge s1 external_ids:colour=blue -- del-port s1-eth2 -- del-br s2")
    assert clients.vsctl("get bridge s1 external_ids") == "{colour=blue}\n"
    assert [plan.name for plan in clients.fabric.switches()] == ["s1"]
    assert [intf.name for intf in clients.plan().ports.values()] == ["s1-eth1"]


@real_tool
def test_queues_and_mirrors_of_the_real_tool_are_those_of_ours(clients: Clients) -> None:
    clients.vsctl(
        "-- set port s1-eth1 qos=@q -- --id=@q create qos type=linux-htb other-config:max-rate=10000000 queues:1=@a "
        "-- --id=@a create queue other-config:max-rate=3000000"
    )
    assert clients.fabric.queues["s1-eth1"]["queues"]["1"]["max_rate_bps"] == 3_000_000
    assert clients.switches.run(["list", "qos"]).count("linux-htb") == 1
    queue = clients.switches.run(["list", "queue"]).split()[2]
    clients.switches.run(["set", "queue", queue, "other_config:max-rate=4000000"])
    assert clients.vsctl(f"get queue {queue} other_config:max-rate") == '"4000000"\n'
    clients.vsctl(
        "-- set bridge s1 mirrors=@m -- --id=@a get port s1-eth1 -- --id=@b get port s1-eth2 "
        "-- --id=@m create mirror name=m select-src-port=@a output-port=@b"
    )
    assert clients.plan().mirrors == [{"to": {"port": 2}, "all": False, "from": [1], "towards": [], "vlans": []}]
    clients.vsctl("clear bridge s1 mirrors -- clear port s1-eth1 qos")
    assert (clients.plan().mirrors, clients.fabric.queues) == ([], {})
    clients.vsctl("--all destroy qos -- --all destroy queue")
    assert clients.switches.run(["list", "qos"]) == ""


@real_tool
def test_queues_are_listed_as_the_real_tool_lists_them(clients: Clients) -> None:
    line = (
        "-- set port s1-eth1 qos=@q -- --id=@q create qos type=linux-htb other-config:max-rate=10000000 queues:1=@a "
        "queues:12=@b -- --id=@a create queue other-config:max-rate=3000000 other-config:min-rate=1000 "
        "-- --id=@b create queue dscp=8 external-ids:who=me external-ids:where='a b'"
    )
    clients.switches.run(shlex.split(line))
    clients.followed.pull()
    for table in ("qos", "queue"):
        ours, real = (sorted(run.split("\n\n")) for run in (
            clients.switches.run(["list", table]).rstrip(), clients.vsctl(f"list {table}").rstrip()
        ))  # fmt: skip
        assert ours == real
        row = ours[0].split()[2]
        for column in ("other_config", "queues" if table == "qos" else "dscp", "external_ids"):
            assert clients.switches.run(["get", table, row, column]) == clients.vsctl(f"get {table} {row} {column}")
    qos = clients.vsctl("get port s1-eth1 qos").strip()
    for columns in ("other_config:max-rate", "queues:12", "queues:1 type"):
        words = ["get", "qos", qos, *columns.split()]
        assert clients.switches.run(words) == clients.vsctl(" ".join(words))


@real_tool
def test_queues_of_a_client_leave_the_switch_with_its_controllers(clients: Clients) -> None:
    clients.followed.pull()
    built: list[bool] = []
    clients.fabric.topology_changed = lambda: built.append(True)  # type: ignore[method-assign]
    clients.vsctl("set port s1-eth1 qos=@q -- --id=@q create qos type=linux-htb other-config:max-rate=10000000")
    assert (list(clients.fabric.queues), built) == (["s1-eth1"], [])
    clients.vsctl("set port s1-eth1 tag=3")
    assert built


def test_a_client_hears_of_what_others_change(clients: Clients) -> None:
    with clients.connect() as sock:
        reader = Messages()
        wanted = {"Bridge": {"columns": ["name", "fail_mode"]}}
        told = asked(sock, reader, "monitor", "Open_vSwitch", "mine", wanted)["result"]["Bridge"]
        assert [one["new"]["name"] for one in told.values()] == ["s1"]
        clients.switches.run(["set-fail-mode", "s1", "standalone"])
        with clients.followed.server.lock:
            clients.followed.pull()
            clients.followed.server.tell_changes()
        update = answered(sock, reader)
        [change] = update["params"][1]["Bridge"].values()
        assert (update["method"], update["params"][0]) == ("update", "mine")
        assert change == {"old": {"fail_mode": "secure"}, "new": {"name": "s1", "fail_mode": "standalone"}}
        assert asked(sock, reader, "monitor_cancel", "mine")["result"] == {}
        assert asked(sock, reader, "monitor_cancel", "mine")["error"] == "unknown monitor"


def test_questions_that_cannot_be_answered_are_refused_and_junk_ends_its_connection_alone(clients: Clients) -> None:
    with clients.connect() as sock, clients.connect() as junk, clients.connect():
        reader = Messages()
        assert asked(sock, reader, "echo", 1, 2)["result"] == [1, 2]
        assert asked(sock, reader, "list_dbs")["result"] == ["Open_vSwitch"]
        assert asked(sock, reader, "dance")["error"] == "unknown method"
        assert asked(sock, reader, "get_schema", "Other")["error"] == "unknown database Other"
        assert asked(sock, reader, "get_schema")["error"].startswith("syntax error")
        assert asked(sock, reader, "monitor", "Open_vSwitch", 1, {"Bridge": {"columns": ["x"]}})["error"]
        junk.sendall(b"\x00" * 100)
        assert junk.recv(10) == b""
        assert asked(sock, reader, "get_schema", "Open_vSwitch")["result"]["name"] == "Open_vSwitch"


def test_a_manager_is_listened_for_until_it_is_taken_away(clients: Clients) -> None:
    port = clients.listen()
    with socket.create_connection(("127.0.0.1", port), 10) as sock:
        assert asked(sock, Messages(), "list_dbs")["result"] == ["Open_vSwitch"]
    clients.switches.run(["del-manager"])
    clients.followed.follow_managers()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 10)


@machine
@real_tool
def test_the_real_tool_works_in_a_scripts_machine(tmp_path: Path) -> None:
    tool = shutil.which("ovs-vsctl")
    done = run_script(
        tmp_path,
        f"""
        import subprocess
        from mininet.net import Mininet
        from mininet.node import OVSSwitch
        from mininet.topo import SingleSwitchTopo
        from functools import partial
        net = Mininet(SingleSwitchTopo(3), partial(OVSSwitch, failMode="standalone"), controller=None)
        net.start()
        h1, h2, h3 = net.hosts
        real = "{tool} -t 20 "
        print(subprocess.getoutput(real + "list-ports s1").split())
        print(net.ping([h1, h2]), subprocess.getoutput(real + "set port s1-eth1 tag=5"), net.ping([h1, h2]))
        subprocess.run("ovs-vsctl set-manager ptcp:6640; " + real + "--db=tcp:127.0.0.1:6640 set port s1-eth2 tag=5",
                       shell=True, check=True)
        print(net.ping([h1, h2]), net.ping([h1, h3]))
        net.stop()
        """,
    )
    assert done.returncode == 0, done.stderr
    last = [line for line in done.stdout.splitlines() if line.strip()]
    assert last[0] == "['s1-eth1', 's1-eth2', 's1-eth3']"
    assert [line.split()[-1] for line in last[1:]] == ["100.0", "100.0"]
    assert "0.0" in last[2]


OS_KEN = """
import sys
import ovs.db.idl
from os_ken import cfg

# The function that os-ken calls; the library has it as a method since.
ovs.db.idl._uuid_to_row = lambda atom, base: base.ref_table.rows.get(atom) if base.ref_table else atom
from os_ken.lib.ovs.bridge import OVSBridge

bridge = OVSBridge(cfg.CONF, 1, sys.argv[1])
bridge.init()
print(bridge.br_name)
bridge.set_controller(["tcp:127.0.0.1:6699"])
print(bridge.get_ofport("s1-eth2"), sorted(bridge.get_port_name_list()))
"""


def test_os_kens_own_client_finds_and_changes_the_switch(clients: Clients) -> None:
    pytest.importorskip("os_ken", reason="os-ken is not installed")
    port = clients.listen()
    command = [sys.executable, "-c", OS_KEN, f"tcp:127.0.0.1:{port}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == ["s1", "2 ['s1-eth1', 's1-eth2']"], done.stderr
    assert clients.plan().controllers == ["tcp:127.0.0.1:6699"]
