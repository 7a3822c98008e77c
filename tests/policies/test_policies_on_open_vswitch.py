"""The printed commands, given to a real Open vSwitch: it takes them all, and forwards and classifies as ours does."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from policy_networks import small_load, small_tree
from twinnet import policies
from twinnet.policies import Enforcement, compile_policy

SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
TOOLS = ("ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl", "ovs-ofctl", "ovs-appctl")

pytestmark = pytest.mark.skipif(
    not SCHEMA.exists() or any(shutil.which(tool, path=PATH) is None for tool in TOOLS),
    reason="Open vSwitch is not installed",
)


class OpenVSwitch:
    """An instance of its own with ports that lead nowhere."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = os.environ | {"PATH": PATH, "OVS_RUNDIR": str(folder), "OVS_LOGDIR": str(folder)}
        self.environment |= {"OVS_DBDIR": str(folder)}
        self.run("ovsdb-tool", "create", str(folder / "conf.db"), str(SCHEMA))
        self.processes = [self.start("ovsdb-server", str(folder / "conf.db"), f"--remote=punix:{folder}/db.sock")]
        self.run("ovs-vsctl", "--no-wait", "--retry", "init")
        self.processes.append(
            self.start("ovs-vswitchd", "--enable-dummy=override", "--disable-system", f"--unixctl={folder}/ctl")
        )

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*words, "-vconsole:off"], env=self.environment, stderr=subprocess.DEVNULL)

    def run(self, *words: str, given: str | None = None) -> str:
        done = subprocess.run(words, env=self.environment, input=given, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout


@pytest.fixture
def ovs(tmp_path: Path) -> Iterator[OpenVSwitch]:
    instance = OpenVSwitch(tmp_path)
    yield instance
    for process in reversed(instance.processes):
        process.kill()
        process.wait()


@pytest.mark.parametrize("name", ["basic-cbq", "source-cbq", "destination-cbq", "source-destination-cbq", "measuring"])
def test_open_vswitch_takes_the_printed_commands_and_has_every_queue_and_rule(name: str, ovs: OpenVSwitch) -> None:
    net = small_tree()
    compiled = compile_policy(net, policies.find_policy(name), Enforcement("leaf", "50 Mbit"), small_load())
    for switch in net.switches:
        ports = [word for port in switch.ports for word in ("--", "add-port", switch.name, port.name)]
        ports += [word for p in switch.ports for word in ("--", "set", "Interface", p.name, "type=dummy")]
        numbers = [w for p in switch.ports for w in ("--", "set", "Interface", p.name, f"ofport_request={p.number}")]
        kind = ["--", "set", "Bridge", switch.name, "datapath_type=dummy", "fail_mode=secure"]
        kind += ["protocols=OpenFlow10,OpenFlow13,OpenFlow14"]
        ovs.run("ovs-vsctl", "--timeout=20", "add-br", switch.name, *kind, *ports, *numbers)
    ovs.run("bash", "-e", given="\n".join(policies.open_vswitch_commands(compiled)))
    for switch in net.switches:
        dumped = ovs.run("ovs-ofctl", "-O", "OpenFlow13", "dump-flows", switch.name)
        cookies = {int(one, 16) for one in re.findall(r"cookie=0x([0-9a-f]+)", dumped)}
        assert cookies == {rule.cookie for rule in compiled.switches[switch.name].rules}
    queues = ovs.run("ovs-vsctl", "--timeout=20", "--bare", "--columns=other_config", "list", "Queue")
    assert queues.count("max-rate") == sum(
        len(queue.to_spec()["queues"]) for one in compiled.switches.values() for queue in one.queues.values()
    )
    if name == "basic-cbq":
        # A page from h1 to h4, at the leaf s3, comes in by the port upwards, and goes out to h4 in the class of HTTP.
        ways = "dl_src=00:00:00:00:00:01,dl_dst=00:00:00:00:00:04,nw_src=10.0.0.1,nw_dst=10.0.0.4"
        packet = f"in_port=1,tcp,{ways},tp_src=8080"
        traced = ovs.run("ovs-appctl", "-t", f"{ovs.folder}/ctl", "ofproto/trace", "s3", packet)
        assert "set_queue:1" in traced and "output:2" in traced
