"""os-ken's own application `rest_qos` over REST, unmodified, at a running lab: it sets queues through OVSDB.

It needs an environment of its own: see ``tests/mininet/test_apps_of_os_ken.py``.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import twinnet as tn
from labs_here import needs_a_lab

PYTHON = os.environ.get("TWINNET_OS_KEN_APPS")
MANAGER = Path(__file__).parents[1] / "support" / "controllers" / "os_ken_apps.py"
SWITCH = "0000000000000001"
pytestmark = [
    needs_a_lab,
    pytest.mark.skipif(PYTHON is None, reason="os-ken's own applications are not installed: see the top of this file"),
    pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed"),
]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


class Rest:
    """os-ken with `rest_qos` and `rest_conf_switch`, and a switch's controller at `target`."""

    def __init__(self, folder: Path) -> None:
        controller, self._port = free_port(), free_port()
        self.target = f"tcp:127.0.0.1:{controller}"
        apps = ["os_ken.app.rest_qos", "os_ken.app.rest_conf_switch"]
        ports = ["--ofp-tcp-listen-port", str(controller), "--wsapi-port", str(self._port)]
        self.log = folder / "log"
        with self.log.open("w") as log:
            command = [str(PYTHON), str(MANAGER), *ports, "--app-lists", *apps]
            self._program = subprocess.Popen(command, stdout=log, stderr=log)

    def ask(self, method: str, path: str, body: object = None) -> Any:
        given = [] if body is None else ["-d", json.dumps(body)]
        again = ["--retry", "50", "--retry-connrefused", "--retry-delay", "1"]
        url = f"http://127.0.0.1:{self._port}{path}"
        command = ["curl", "-s", *again, "-X", method, *given, url]
        said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
        return json.loads(said) if said else None

    def end(self) -> None:
        self._program.terminate()
        self._program.wait()


@pytest.fixture
def rest(tmp_path: Path) -> Iterator[Rest]:
    made = Rest(tmp_path)
    yield made
    made.end()


def test_rest_qos_sets_and_removes_the_queues_of_a_running_lab(rest: Rest) -> None:
    # It answers before the switch dials.
    assert rest.ask("GET", "/v1.0/conf/switches") == []
    net = tn.Network()
    s1 = net.switch("s1", controllers=[rest.target], protocols=["OpenFlow13"])
    for name in ("h1", "h2"):
        net.link(net.host(name), s1)
    place = free_port()
    with net.emulate() as lab:
        lab.serve_ovsdb(f"ptcp:{place}")
        lab.wait_for_controllers()
        rest.ask("PUT", f"/v1.0/conf/switches/{SWITCH}/ovsdb_addr", f"tcp:127.0.0.1:{place}")
        queues = [{"max_rate": "500000"}, {"min_rate": "800000"}]
        wanted = {"port_name": "s1-eth1", "type": "linux-htb", "max_rate": "1000000", "queues": queues}
        # It answers before it has connected to the database.
        while "not exists" in str(made := rest.ask("POST", f"/qos/queue/{SWITCH}", wanted)):
            assert lab.now() < 20, rest.log.read_text()
        asked = {"0": {"config": {"max-rate": "500000"}}, "1": {"config": {"min-rate": "800000"}}}
        assert made[0]["command_result"] == {"result": "success", "details": asked}, rest.log.read_text()
        given = lab.queues_given["s1-eth1"].to_spec()
        assert (given["rate_bps"], given["queues"]["0"]["max_rate_bps"]) == (1_000_000, 500_000)
        assert given["queues"]["1"]["min_rate_bps"] == 800_000
        match = {"nw_dst": "10.0.0.1", "nw_proto": "UDP", "tp_dst": "5002"}
        [rule] = rest.ask("POST", f"/qos/rules/{SWITCH}", {"match": match, "actions": {"queue": "1"}})
        assert rule["command_result"] == [{"result": "success", "details": "QoS added. : qos_id=1"}]
        while not any("set_queue:1" in flow for flow in lab.switch("s1").dump_flows()):
            assert lab.now() < 20, rest.log.read_text()
        [gone] = rest.ask("DELETE", f"/qos/queue/{SWITCH}")
        assert gone["command_result"] == "success", rest.log.read_text()
        assert lab.queues_given["s1-eth1"].to_spec()["kind"] == "fifo"
