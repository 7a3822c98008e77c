"""Clients of OVSDB at a running lab: what Debian's ``ovs-vsctl`` reads and changes, and what it is refused."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import twinnet as tn
from labs_here import needs_a_lab
from open_vswitch_here import needs_ovs
from twinnet.control import LearningSwitch
from twinnet.errors import BadValue, NotAvailable
from twinnet.ovsdb.messages import Messages

pytestmark = [
    needs_a_lab,
    pytest.mark.skipif(shutil.which("ovs-vsctl") is None, reason="ovs-vsctl is not installed"),
]
TWINNET = [sys.executable, "-c", "from twinnet.cli import main; main()"]
EVERY: list[Any] = []
SHAPED = (
    "-- set port s1-eth2 qos=@newqos -- --id=@newqos create qos type=linux-htb other-config:max-rate=5000000 "
    "queues:0=@q0 -- --id=@q0 create queue other-config:max-rate=2000000"
)


class Served:
    """A lab of h1, h2 and h3 at s1 that serves OVSDB."""

    def __init__(self, lab: tn.Lab, place: Path) -> None:
        self.lab = lab
        self.place = place
        self.told: list[str] = []
        self.database = lab.serve_ovsdb(f"punix:{place}", tell=self.told.append)

    def run(self, line: str) -> subprocess.CompletedProcess[str]:
        command = ["ovs-vsctl", "-t", "10", f"--db=unix:{self.place}", *shlex.split(line)]
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)

    def vsctl(self, line: str) -> str:
        """What the real ``ovs-vsctl`` prints."""
        done = self.run(line)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.strip()

    def connect(self) -> socket.socket:
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(10)
        sock.connect(str(self.place))
        return sock


def network() -> tn.Network:
    """Its queues are told apart from those that nobody described."""
    net = tn.Network()
    s1 = net.switch("s1")
    for name in ("h1", "h2"):
        net.link(net.host(name), s1, rate="10 Mbit", queue_b=tn.qos.Fifo(limit_frames=50))
    classes = {1: tn.qos.HtbQueue(min_rate="1 Mbit", max_rate="3 Mbit", burst="10 kB", queue=tn.qos.FqCodel())}
    net.link(net.host("h3"), s1, rate="10 Mbit", queue_b=tn.qos.Htb("8 Mbit", classes))
    return net


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with network().emulate() as lab:
        yield Served(lab, tmp_path / "db.sock")


def rows(printed: str) -> list[dict[str, Any]]:
    """What ``ovs-vsctl --format=json list`` has printed, each row by column."""
    table = json.loads(printed)
    return [dict(zip(table["headings"], row, strict=True)) for row in table["data"]]


def asked(method: str, *parameters: Any) -> dict[str, Any]:
    return {"id": 1, "method": method, "params": parameters}


def answered(sock: socket.socket, reader: Messages, question: dict[str, Any] | None = None) -> dict[str, Any]:
    """The next message of the server, after `question` where there is one."""
    if question is not None:
        sock.sendall(json.dumps(question).encode())
    while True:
        for one in reader.take(sock.recv(1 << 16)):
            return one


def test_the_real_tool_reads_what_the_switches_are(served: Served) -> None:
    assert served.vsctl("list-br") == "s1"
    assert served.vsctl("list-ports s1").split() == ["s1-eth1", "s1-eth2", "s1-eth3"]
    assert served.vsctl("get bridge s1 datapath_id fail_mode protocols").split("\n") == [
        '"0000000000000001"',
        "standalone",
        "[OpenFlow10, OpenFlow13]",
    ]
    served.lab["h1"].run("ping -4 -c 2 -i 0.2 h2", check=True)
    served.lab.link("h3", "s1").set(up=False)
    columns = "--columns=name,ofport,link_state,link_speed,mtu,statistics"
    found = {one["name"]: one for one in rows(served.vsctl(f"--format=json {columns} list interface"))}
    assert {name: one["ofport"] for name, one in found.items()} == {
        "s1": 65534,
        "s1-eth1": 1,
        "s1-eth2": 2,
        "s1-eth3": 3,
    }
    assert {name: found[name]["link_state"] for name in ("s1-eth2", "s1-eth3")} == {"s1-eth2": "up", "s1-eth3": "down"}
    assert (found["s1-eth1"]["link_speed"], found["s1-eth1"]["mtu"]) == (10_000_000, 1500)
    counted = dict(found["s1-eth1"]["statistics"][1])
    # Two echoes and the question for an address came from h1, and as many answers went back.
    assert counted["rx_packets"] >= 3 and counted["tx_packets"] >= 3 and counted["rx_bytes"] > 200


def test_vlans_mirrors_and_where_a_switch_listens_are_read(tmp_path: Path) -> None:
    net = tn.Network()
    vlans: Any = {1: {"tag": 10}, 2: {"trunks": [10, 20]}}
    mirrors: list[Any] = [{"to": {"port": 2}, "from": [1], "vlans": [10]}]
    place = f"punix:{tmp_path}/tools"
    s1 = net.switch("s1", listen=place, spanning_tree=True, vlans=vlans, mirrors=mirrors)
    for name in ("h1", "h2"):
        net.link(net.host(name), s1)
    with net.emulate() as lab:
        served = Served(lab, tmp_path / "db.sock")
        assert served.vsctl("get port s1-eth1 tag vlan_mode").split() == ["10", "access"]
        assert served.vsctl("get port s1-eth2 tag vlan_mode trunks").split("\n") == ["[]", "trunk", "[10, 20]"]
        [mirror] = rows(served.vsctl("--format=json list mirror"))
        ports = [["uuid", served.vsctl(f"get port {name} _uuid")] for name in ("s1-eth1", "s1-eth2")]
        assert [mirror[one] for one in ("select_src_port", "output_port", "select_vlan")] == [*ports, 10]
        assert served.vsctl("get-controller s1") == place
        assert served.vsctl("get bridge s1 stp_enable") == "true"


def test_a_queue_of_the_real_tool_shapes_what_its_port_sends_until_it_is_taken_away(served: Served) -> None:
    served.vsctl(SHAPED)
    flow = served.lab.start(tn.apps.udp("h1", "h2", rate="8 Mbit", duration="1 s"))
    served.lab.wait([flow])
    # Queue 0 sends 2 Mbit/s, headers included, and a burst at the beginning; without it all 8 Mbit/s would arrive.
    assert 1e6 < flow.report().throughput_bps < 3e6
    [port] = [one for one in served.lab.ports() if one["port"] == "s1-eth2"]
    assert [one["class"] for one in port["classes"]] == [0]
    served.vsctl("clear port s1-eth2 qos")
    assert served.lab.queues_given["s1-eth2"] == tn.qos.Fifo(limit_frames=50)
    served.vsctl("clear port s1-eth3 qos -- --all destroy qos -- --all destroy queue")
    assert served.vsctl("list queue") == served.vsctl("list qos") == ""


def test_a_row_that_changes_changes_the_queue_of_its_port(served: Served) -> None:
    queue = served.vsctl(SHAPED).splitlines()[-1]
    served.vsctl(f"set queue {queue} other-config:max-rate=1000000")
    given = served.lab.queues_given["s1-eth2"].to_spec()
    assert given["queues"]["0"]["max_rate_bps"] == 1_000_000


def test_an_egress_policer_and_hfsc_are_queues_too(served: Served) -> None:
    served.vsctl(
        "set port s1-eth1 qos=@p -- --id=@p create qos type=egress-policer other-config:cir=125000 "
        "other-config:cbs=3000 -- set port s1-eth2 qos=@h -- --id=@h create qos type=linux-hfsc "
        "other-config:max-rate=4000000"
    )
    given = {port: queue.to_spec() for port, queue in served.lab.queues_given.items()}
    assert (given["s1-eth1"]["kind"], given["s1-eth1"]["rate_bps"]) == ("tbf", 1_000_000)
    assert (given["s1-eth2"]["kind"], given["s1-eth2"]["rate_bps"]) == ("htb", 4_000_000)


def test_a_queue_of_the_description_is_a_row_and_keeps_what_rows_do_not_tell(served: Served) -> None:
    [qos] = rows(served.vsctl("--format=json list qos"))
    assert (qos["type"], dict(qos["other_config"][1])) == ("linux-htb", {"max-rate": "8000000"})
    queue = dict(qos["queues"][1])[1][1]
    assert served.vsctl(f"get queue {queue} other_config") == '{burst="80000", max-rate="3000000", min-rate="1000000"}'
    served.vsctl(f"set queue {queue} other-config:max-rate=2000000")
    changed = served.lab.queues_given["s1-eth3"].to_spec()["queues"]["1"]
    assert (changed["max_rate_bps"], changed["burst_bytes"], changed["queue"]["kind"]) == (
        2_000_000,
        10_000,
        "fq_codel",
    )
    served.vsctl("clear port s1-eth3 qos")
    assert served.lab.queues_given["s1-eth3"].to_spec()["kind"] == "fifo"
    served.vsctl(SHAPED.replace("s1-eth2", "s1-eth3").replace("queues:0", "queues:1"))
    assert served.lab.queues_given["s1-eth3"].to_spec()["queues"]["1"]["queue"] is None
    served.vsctl(f"set port s1-eth3 qos={qos['_uuid'][1]}")
    again = served.lab.queues_given["s1-eth3"].to_spec()["queues"]["1"]
    assert (again["max_rate_bps"], again["queue"]["kind"]) == (2_000_000, "fq_codel")


def test_a_queue_that_python_gives_is_what_clients_read(served: Served) -> None:
    served.vsctl(SHAPED)
    s1 = served.lab.switch("s1")
    s1.set_queue(2, tn.qos.Fifo())
    assert served.vsctl("get port s1-eth2 qos") == "[]"
    s1.set_queue(2, tn.qos.Htb("7 Mbit"))
    qos = served.vsctl("get port s1-eth2 qos")
    assert served.vsctl(f"get qos {qos} other_config:max-rate") == '"7000000"'
    s1.set_queue(2, tn.qos.Fifo())
    assert qos not in served.vsctl("list qos")


def test_a_row_that_two_ports_share_stays_with_the_other_when_one_leaves_it(served: Served) -> None:
    qos = served.vsctl("get port s1-eth3 qos")
    served.vsctl(f"set port s1-eth1 qos={qos}")
    served.lab.switch("s1").set_queue(3, tn.qos.Fifo())
    assert served.vsctl("get port s1-eth3 qos") == "[]"
    assert served.vsctl("get port s1-eth1 qos") == qos
    served.lab.switch("s1").set_queue(3, tn.qos.Htb("5 Mbit"))
    assert served.vsctl(f"get qos {qos} other_config") == '{max-rate="8000000"}'
    assert served.lab.queues_given["s1-eth1"].to_spec()["rate_bps"] == 8_000_000


def test_whoever_is_told_may_fail_without_harm_to_clients(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def fail(_: str) -> None:
        raise ZeroDivisionError

    with network().emulate() as lab:
        served = Served(lab, tmp_path / "db.sock")
        served.database.stop()
        lab.serve_ovsdb(f"punix:{tmp_path}/db.sock", tell=fail)
        served.vsctl("set bridge s1 other-config:forward-bpdu=true")
        assert served.vsctl("list-br") == "s1"
    assert "ZeroDivisionError" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("add-br s9", "bridge s9 cannot be added while the lab runs"),
        ("del-br s1", "bridge s1 cannot be removed while the lab runs"),
        ("add-port s1 eth7", "port eth7 of s1 cannot be added while the lab runs"),
        ("del-port s1-eth1", "port s1-eth1 of s1 cannot be removed while the lab runs"),
        ("set-fail-mode s1 secure", "Bridge s1: fail_mode cannot change while the lab runs; write fail_mode"),
        ("set bridge s1 protocols=OpenFlow13", "Bridge s1: protocols cannot change"),
        ("set bridge s1 stp_enable=true", "Bridge s1: stp_enable cannot change"),
        ("set bridge s1 other-config:datapath-id=00000000000000ff", "other_config:datapath-id cannot change"),
        ("set port s1-eth1 tag=5", "Port s1-eth1: tag cannot change"),
        ("set interface s1-eth1 ofport_request=9", "Interface s1-eth1: ofport_request cannot change"),
        ("set interface s1-eth1 ingress_policing_rate=9", "give the other end of the link a queue with a rate"),
        ("set-manager ptcp:6632", "Open_vSwitch: manager_options cannot change"),
        ("-- set bridge s1 mirrors=@m -- --id=@m create mirror name=m", "mirror m of s1 cannot be added"),
        ("set-controller s1 ptcp:6634", "controller ptcp:6634 of s1 cannot be added"),
        ("set-controller s1 nonsense", "'nonsense' names no controller"),
        ("set-controller s1 ssl:127.0.0.1:6653", "s1 has no key and certificate"),
        ("set port s1 qos=@q -- --id=@q create qos type=linux-htb", "s1 is the switch's own port"),
        (
            "set port s1-eth1 qos=@q -- --id=@q create qos type=linux-sfq",
            "s1-eth1: a QoS of type linux-sfq is not there",
        ),
        ("set port s1-eth1 qos=@q -- --id=@q create qos type=egress-policer", "needs a number in other_config:cir"),
        (f"{SHAPED.replace('5000000', '9' * 18)}", "is out of range; allowed are 1 bit/s to 1000 Tbit/s"),
        ("--all destroy qos", "qos of Port names"),
    ],
)
def test_what_cannot_change_while_a_lab_runs_is_refused_whole_and_by_name(served: Served, line: str, said: str) -> None:
    # What comes with it is not done either.
    done = served.run(f"set port s1-eth2 qos=@w -- --id=@w create qos type=linux-htb -- {line}")
    assert done.returncode == 1
    assert said in done.stderr
    assert served.lab.queues_given == {}
    assert served.vsctl("get port s1-eth2 qos") == "[]"
    assert served.vsctl("get-controller s1") == ""


def test_a_port_has_one_row_of_qos_at_most(served: Served) -> None:
    made = [{"op": "insert", "table": "QoS", "uuid-name": name, "row": {"type": "linux-htb"}} for name in "ab"]
    both = ["set", [["named-uuid", "a"], ["named-uuid", "b"]]]
    port = {"op": "update", "table": "Port", "where": [["name", "==", "s1-eth1"]], "row": {"qos": both}}
    with served.connect() as sock:
        result = answered(sock, Messages(), asked("transact", "Open_vSwitch", *made, port))["result"]
    assert result[2] == {"error": "constraint violation", "details": "2 values; allowed are 0 to 1"}
    assert served.vsctl("get port s1-eth1 qos") == "[]"


def test_what_is_asked_for_as_it_is_and_notes_of_clients_are_taken(served: Served) -> None:
    served.vsctl("set-fail-mode s1 standalone -- set interface s1-eth2 ofport_request=2 -- del-controller s1")
    served.vsctl("set bridge s1 other-config:datapath-id=0000000000000001 external-ids:who=me")
    served.vsctl("--may-exist add-br s1 -- --may-exist add-port s1 s1-eth1 -- del-fail-mode s1")
    assert served.vsctl("get bridge s1 external-ids fail_mode").split("\n") == ["{who=me}", "standalone"]
    assert served.told == []


def test_what_is_kept_without_effect_is_told_once_by_name(served: Served) -> None:
    for _ in range(2):
        served.vsctl("set bridge s1 other-config:forward-bpdu=true")
        served.vsctl("remove bridge s1 other-config forward-bpdu")
    served.vsctl(SHAPED.replace("2000000", "5M"))
    served.vsctl("set port s1-eth1 qos=@q -- --id=@q create qos queues:1=@a -- --id=@a create queue dscp=8")
    assert served.told == [
        "Bridge s1: other_config:forward-bpdu=true has no effect in a lab",
        "Queue: other_config:max-rate=5M is no whole number of 0 or more: it is kept and has no effect, as in Open "
        "vSwitch",
        "QoS: without a type, or as linux-noop, it shapes nothing, as in Open vSwitch",
        "Queue: dscp=8 has no effect in a lab",
    ]
    assert served.lab.queues_given["s1-eth2"].to_spec()["queues"]["0"]["max_rate_bps"] == 5_000_000
    assert served.lab.queues_given["s1-eth1"] == tn.qos.Fifo(limit_frames=50)


def test_controllers_come_and_go_while_the_lab_runs(served: Served) -> None:
    hello, ask = bytes([4, 0, 0, 8, 0, 0, 0, 1]), bytes([4, 5, 0, 8, 0, 0, 0, 2])
    with socket.create_server(("127.0.0.1", 0)) as server:
        target = f"tcp:127.0.0.1:{server.getsockname()[1]}"
        served.vsctl(f"set-controller s1 {target}")
        server.settimeout(10)
        controller, _ = server.accept()
        with controller:
            controller.settimeout(10)
            controller.sendall(hello + ask)
            served.lab.wait_for_controllers()
            [row] = rows(served.vsctl("--format=json list controller"))
            assert (row["target"], row["is_connected"], row["role"]) == (target, True, "other")
            # Nobody forwards for a switch of OpenFlow 1.3 that has a controller and no flows.
            assert served.lab["h1"].run("ping -4 -c 1 -W 1 h2").returncode == 1
            # The same once more leaves the connection as it is.
            served.vsctl(f"set-controller s1 {target} -- set controller s1 connection-mode=out-of-band")
            assert served.vsctl("get controller s1 is_connected") == "true"
            served.vsctl("del-controller s1")
            while controller.recv(4096):
                pass
    assert served.lab.switch("s1").controller_state == []
    served.lab["h1"].run("ping -4 -c 1 -W 5 h2", check=True)
    assert served.told == []


def test_a_controller_in_the_labs_process_neither_comes_nor_goes(tmp_path: Path) -> None:
    net = network()
    net.controller(LearningSwitch)
    with net.emulate() as lab:
        lab.wait_for_controllers()
        served = Served(lab, tmp_path / "db.sock")
        [row] = rows(served.vsctl("--format=json list controller"))
        assert (row["target"].partition(":")[0], row["is_connected"]) == ("app", True)
        refused = served.run("del-controller s1")
        assert "in this process cannot come or go while the lab runs" in refused.stderr
        s1 = lab.switch("s1")
        with pytest.raises(BadValue, match="the controllers are one text"):
            s1.set_controllers("tcp:127.0.0.1:6653")
        with tn.lab.attach(lab.name) as attached, pytest.raises(NotAvailable, match="another program has started"):
            attached.switch("s1").set_controllers([])
        assert [one["version"] for one in s1.controller_state] == ["1.3"]


def test_changes_by_clients_are_in_the_record_of_changes_by_hand(served: Served) -> None:
    served.vsctl(SHAPED)
    served.vsctl("set-controller s1 tcp:127.0.0.1:1")
    noted = served.lab.fidelity().by_hand
    assert noted is not None
    assert [(one.door, one.what) for one in noted.first] == [
        ("OVSDB", "queue s1-eth2: htb"),
        ("OVSDB", "controllers of s1: tcp:127.0.0.1:1"),
    ]


def test_a_client_hears_of_changes_that_happen_by_themselves(served: Served) -> None:
    wanted = {"Interface": {"columns": ["name", "link_state"]}}
    with served.connect() as sock:
        reader = Messages()
        answered(sock, reader, asked("monitor", "Open_vSwitch", "mine", wanted))
        served.lab.link("h1", "s1").set(up=False)
        update = answered(sock, reader)
    [change] = update["params"][1]["Interface"].values()
    assert (update["method"], change["new"]) == ("update", {"name": "s1-eth1", "link_state": "down"})


def test_silent_clients_junk_and_clients_that_leave_in_the_middle_harm_nobody(served: Served) -> None:
    cut_off = asked("transact", "Open_vSwitch", {"op": "delete", "table": "QoS", "where": EVERY})
    with served.connect(), served.connect() as junk, served.connect() as leaving:
        junk.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert junk.recv(10) == b""
        leaving.sendall(json.dumps(cut_off).encode()[:-5])
        leaving.close()
        assert served.vsctl("list-br") == "s1"
    assert "linux-htb" in served.vsctl("list qos")


def test_the_end_of_the_lab_frees_its_places_and_one_that_is_taken_is_refused(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
        with network().emulate() as lab, pytest.raises(NotAvailable, match=r"OVSDB cannot listen on ptcp:.*in use"):
            lab.serve_ovsdb(f"punix:{tmp_path}/db", f"ptcp:{port}")
        assert not (tmp_path / "db").exists()
    with network().emulate() as lab:
        lab.serve_ovsdb(f"ptcp:{port}", f"punix:{tmp_path}/db")
        with pytest.raises(NotAvailable, match="serves OVSDB already"):
            lab.serve_ovsdb("ptcp:6640")
        with socket.create_connection(("127.0.0.1", port), 10) as client:
            client.settimeout(10)
            assert answered(client, Messages(), asked("echo"))["result"] == []
            lab.stop()
            assert client.recv(10) == b""
    assert not (tmp_path / "db").exists()
    with socket.create_server(("127.0.0.1", port)):
        pass


def test_a_lab_that_dies_is_told_to_who_asks(served: Served) -> None:
    with served.connect() as sock:
        reader = Messages()
        select = {"op": "select", "table": "Bridge", "where": EVERY, "columns": ["name"]}
        question = asked("transact", "Open_vSwitch", select)
        assert answered(sock, reader, question)["result"] == [{"rows": [{"name": "s1"}]}]
        os.kill(served.lab.pid, 9)
        assert served.lab.connection.wait_closed(10)
        assert answered(sock, reader, question)["error"].startswith("the lab does not answer: ")


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("pssl:6640", "not served over TLS"),
        ("tcp:127.0.0.1:6640", "is no place to serve OVSDB"),
        ("ptcp:70000", "allowed are 1 to 65535"),
        ("punix:", "is no place to serve OVSDB"),
    ],
)
def test_a_place_that_is_none_is_refused_before_anything_is_built(place: str, said: str) -> None:
    done = subprocess.run([*TWINNET, "lab", "single:2", "--ovsdb", place], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_a_lab_on_the_virtual_clock_serves_none() -> None:
    arguments = ["lab", "single:2", "--clock", "virtual", "--ovsdb", "ptcp:6640"]
    done = subprocess.run([*TWINNET, *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "a lab on the virtual clock has no --ovsdb" in done.stderr
    with network().simulate() as lab:
        with pytest.raises(NotAvailable, match="its clients live in real time"):
            lab.serve_ovsdb("ptcp:6640")
        with pytest.raises(BadValue, match="there is no place"):
            lab.serve_ovsdb()


@needs_ovs
def test_bridges_of_open_vswitch_have_a_database_of_their_own() -> None:
    net = tn.Network()
    net.link(net.host("h1"), net.switch("s1", kind="ovs"))
    with net.emulate() as lab, pytest.raises(NotAvailable, match="s1 is Open vSwitch, with a database of its own"):
        lab.serve_ovsdb("ptcp:6640")


def test_the_command_serves_it_and_tells_what_has_no_effect(tmp_path: Path) -> None:
    vsctl = f"sh ovs-vsctl --db=unix:{tmp_path}/db "
    lines = [f"{vsctl} set port s1-eth2 qos=@q -- --id=@q create qos type=linux-htb other-config:max-rate=5M"]
    lines += [f"{vsctl} get port s1-eth2 tag", f"{vsctl} list-ports s1"]
    command = [*TWINNET, "lab", "single:2", "--ovsdb", f"punix:{tmp_path}/db"]
    done = subprocess.run(
        [*command, *(word for line in lines for word in ("-c", line))], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-3:] == ["[]", "s1-eth1", "s1-eth2"]
    assert "*** OVSDB: QoS: other_config:max-rate=5M is no whole number" in done.stderr
    assert not (tmp_path / "db").exists()
