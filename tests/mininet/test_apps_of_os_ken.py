"""os-ken's own applications over REST, unmodified, at the switches of a script: `rest_qos`, which sets queues through
OVSDB, `rest_conf_switch` and `ofctl_rest`.

They need an environment of their own, for os-ken 1.4.1 was the last to have them: ``python3.11 -m venv os-ken-apps &&
os-ken-apps/bin/pip install os-ken==1.4.1 "ovs<2.17"``, and ``TWINNET_OS_KEN_APPS=os-ken-apps/bin/python``.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from labs_here import can_run_labs
from mininet_scripts import run_script

PYTHON = os.environ.get("TWINNET_OS_KEN_APPS")
MANAGER = Path(__file__).parents[1] / "support" / "controllers" / "os_ken_apps.py"
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor"),
    pytest.mark.skipif(PYTHON is None, reason="os-ken's own applications are not installed: see the top of this file"),
    pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed"),
]

SCRIPT = """
    import json, subprocess, sys, time
    from mininet.net import Mininet
    from mininet.node import RemoteController
    from mininet.topo import SingleSwitchTopo
    from mininet.util import quietRun

    def rest(method, path, body=None):
        given = [] if body is None else ["-d", json.dumps(body)]
        return subprocess.run(["curl", "-s", "-X", method, *given, "http://127.0.0.1:8080" + path],
                              capture_output=True, text=True).stdout

    python, manager = sys.argv[1:]
    # As the book of Ryu has it: the learning switch keeps table 0 free for the rules of rest_qos.
    folder = quietRun([python, "-c", "import os_ken; print(os_ken.__path__[0])"]).strip()
    text = open(folder + "/app/simple_switch_13.py").read()
    open("qos_simple_switch_13.py", "w").write(text.replace("instructions=inst)", "instructions=inst, table_id=1)"))
    apps = ["os_ken.app." + name for name in ("rest_qos", "rest_conf_switch", "ofctl_rest")]
    controller = subprocess.Popen(
        [python, manager, "--app-lists", *apps, "qos_simple_switch_13.py"],
        stdout=subprocess.DEVNULL, stderr=open("log", "w"))
    for _ in range(600):
        if rest("GET", "/stats/switches") == "[]":
            break
        time.sleep(0.1)
    net = Mininet(SingleSwitchTopo(2), controller=None)
    net.addController("c0", RemoteController, ip="127.0.0.1", port=6653)
    net.start()
    quietRun("ovs-vsctl set Bridge s1 protocols=OpenFlow13 -- set-manager ptcp:6632")
    net.waitConnected(20)
    h1, h2, s1 = net["h1"], net["h2"], "0000000000000001"
    said = {"switches": rest("GET", "/stats/switches")}
    rest("PUT", f"/v1.0/conf/switches/{s1}/ovsdb_addr", "tcp:127.0.0.1:6632")
    said["keys"] = rest("GET", f"/v1.0/conf/switches/{s1}")
    said["address"] = rest("GET", f"/v1.0/conf/switches/{s1}/ovsdb_addr")
    queues = [{"max_rate": "500000"}, {"min_rate": "800000"}]
    wanted = {"port_name": "s1-eth1", "type": "linux-htb", "max_rate": "1000000", "queues": queues}
    said["made"] = rest("POST", f"/qos/queue/{s1}", wanted)
    said["queues"] = rest("GET", f"/qos/queue/{s1}")
    match = {"nw_dst": "10.0.0.1", "nw_proto": "UDP", "tp_dst": "5002"}
    said["rule"] = rest("POST", f"/qos/rules/{s1}", {"match": match, "actions": {"queue": "1"}})
    shown = quietRun("ovs-appctl qos/show s1-eth1")
    listed = quietRun("ovs-vsctl list queue"), quietRun("ovs-vsctl list qos")
    pings = [net.pingAll()]
    h2.cmd("for at in 1 2 3; do echo > /dev/udp/10.0.0.1/5002; done")
    counts = {one["queue_id"]: one["tx_packets"]
              for one in json.loads(rest("GET", "/stats/queue/1"))["1"] if one["port_no"] == 1}
    blocked = {"dpid": 1, "priority": 99, "match": {"in_port": 1}, "actions": []}
    rest("POST", "/stats/flowentry/add", blocked)
    pings.append(net.pingAll("0.5"))
    said["flows"] = rest("GET", "/stats/flow/1")
    rest("POST", "/stats/flowentry/delete_strict", blocked)
    pings.append(net.pingAll())
    said["gone"] = rest("DELETE", f"/qos/queue/{s1}")
    after = quietRun("ovs-vsctl get port s1-eth1 qos").strip()
    controller.terminate()
    controller.wait()
    net.stop()
    print(json.dumps([{key: json.loads(text) for key, text in said.items()}, shown, listed, pings, counts, after]))
    """


def result(reply: Any) -> Any:
    """What `rest_qos` says of the one switch."""
    return reply[0]["command_result"]


def test_its_rest_applications_set_queues_flows_and_settings(tmp_path: Path) -> None:
    done = run_script(tmp_path, SCRIPT, str(PYTHON), str(MANAGER))
    log = tmp_path / "log"
    assert done.returncode == 0, done.stderr + (log.read_text() if log.exists() else "")
    said, shown, (queues, qos), pings, counts, after = json.loads(done.stdout)
    assert (said["switches"], said["keys"], said["address"]) == ([1], ["ovsdb_addr"], "tcp:127.0.0.1:6632")
    asked = {"0": {"config": {"max-rate": "500000"}}, "1": {"config": {"min-rate": "800000"}}}
    assert result(said["made"]) == {"result": "success", "details": asked}
    # Setting queues does not part a switch from its controller, which would forget them.
    assert result(said["queues"]) == {"result": "success", "details": {"s1-eth1": asked}}
    assert result(said["rule"]) == [{"result": "success", "details": "QoS added. : qos_id=1"}]
    assert "max-rate: 500000" in shown and "min-rate: 800000" in shown, shown
    assert '{max-rate="500000"}' in queues and '{min-rate="800000"}' in queues
    assert 'other_config        : {max-rate="1000000"}' in qos
    # Three datagrams of the rule went by its queue, and all else by queue 0.
    assert counts["1"] == 3 and counts["0"] > 0, counts
    assert pings == [0, 100, 0]
    assert [one["actions"] for one in said["flows"]["1"] if one["priority"] == 99] == [[]]
    assert (result(said["gone"]), after) == ("success", "[]")
