"""Physical machines as hosts, reached by a real sshd: the same apps, one clock, and a reason when one cannot be had."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from ssh_machines import SshMachines, missing_for_machines
from twinnet.code_version import code_version
from twinnet.study.resolution import load_study
from twinnet.study.store import ResultStore
from twinnet.study.twin import Twin

_MISSING = missing_for_machines()
pytestmark = pytest.mark.skipif(_MISSING is not None, reason=_MISSING or "")

_NETWORK = """
import contextlib, json, os, sys, time
import twinnet as tn
net = tn.Network()
s1 = net.switch("s1")
def machine(number, **changed):
    given = {"ssh": f"m{number}", "interface": "lan", "address": f"10.8.0.{number}/24"} | changed
    return net.machine(f"h{number}", **given)
"""
_BOTH = _NETWORK + "for number in (1, 2): net.link(machine(number), s1)\n"
_AHEAD_S = 7200
_STUDY = """
study: two-machines
title: A stream, a download and echoes between two machines
question: Does everything arrive?
network:
  machines:
    h1: {ssh: m1, interface: lan, address: 10.8.0.1/24}
    h2: {ssh: m2, interface: lan, address: 10.8.0.2/24}
  switches: {s1: }
  links: [{between: [h1, s1], rate: 10 Gbit}, {between: [s1, h2], rate: 10 Gbit}]
traffic:
  - {name: stream, app: udp, from: [h1], to: h2, rate: 2 Mbit, payload: 500 B, duration: 1 s, port: 5003}
  - {name: download, app: tcp, from: [h2], to: h1, bytes: 1 MB, port: 5002}
  - {name: echoes, app: ping, from: [h1], to: h2, count: 5, interval: 100 ms}
measurements:
  bandwidth: {of: throughput, interval: 500 ms}
  lost: {of: loss}
  trip: {of: rtt}
repetitions: 1
settle: 100 ms
drain: 100 ms
time_limit: 20 s
"""


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshMachines]:
    """Two machines, the second of which started its clock two hours before the first."""
    with SshMachines(tmp_path_factory.mktemp("machines"), 2, apart={2: _AHEAD_S}) as made:
        yield made


def test_datagrams_go_from_one_machine_to_the_other_on_one_clock(machines: SshMachines):
    told = machines.python(
        _BOTH
        + """
with net.operate() as lab:
    flow = lab.start(tn.apps.udp("h1", "h2", rate="1 Mbit", payload="500 B", duration="1 s"))
    assert lab.wait([flow])
    sent, received = (one.flows[0].raw for one in flow.reports())
    print(json.dumps({"sent": sent, "received": received, "clocks": lab.started["clocks"],
                      "record": lab.fidelity().raw, "conditions": lab.conditions()}))
"""
    )
    sent, received = told["sent"], told["received"]
    # 1 Mbit/s of 500 bytes for a second, and no wire that loses.
    assert (sent["packets"], received["packets"], received["lost"]) == (250, 250, 0)
    clock = told["clocks"]["h2"]
    assert clock["way"] == "network" and not clock["same_clock"]
    # The offset is known here: that of the time namespaces.
    assert abs(clock["offset_ps"] + _AHEAD_S * 10**12) <= clock["bound_ps"] < 50 * 10**9
    # Both stand on the clock of the first machine: the first datagram arrives after it was sent, and soon.
    assert -clock["bound_ps"] <= received["start_ps"] - sent["start_ps"] < 10**12
    assert set(told["record"]["machines"]) == {"h1", "h2"}
    for one in told["conditions"].values():
        for moment in ("before", "after"):
            condition = one[moment]
            assert condition["interface"]["mtu"] == 1500 and "gro" in condition["interface"]["offloads"]
            assert {"load_1min", "governor", "cores"} <= set(condition["machine"])
    machines.wait_until_no_agent_runs()


def test_one_way_delay_is_told_only_where_the_clocks_permit_it(machines: SshMachines):
    told = machines.python(
        _NETWORK
        + """
for number in (1, 2): net.link(machine(number), s1)
with net.operate() as lab:
    flow = lab.start(tn.apps.udp("h1", "h2", rate="1 Mbit", payload="500 B", duration="200 ms", record_packets=50))
    assert lab.wait([flow])
    print(json.dumps(flow.report().raw))
"""
    )
    # Half of the shortest round trip is no tenth of a delay that is half of a round trip.
    assert "delay_ps" not in told and "one-way delay is not given" in told["errors"][0]
    assert told["jitter_rfc4689_ps"]["count"] > 0
    assert set(told["samples"]["sent_ps"]) == {None}


def test_a_study_gives_the_same_tables_as_on_the_other_clocks(machines: SshMachines, tmp_path: Path):
    import polars as pl

    study = tmp_path / "study.yaml"
    study.write_text(_STUDY)
    for clock in ("real", "virtual"):
        done = machines.run(
            *_TWINNET, "run", str(study), "--clock", clock, "--out", str(tmp_path), "--no-report", "--json"
        )
        assert done.returncode == 0, done.stderr
    records = {path.parent: json.loads(path.read_text()) for path in (tmp_path / "two-machines").glob("*/run.json")}
    folders = sorted(records, key=lambda folder: records[folder]["clock"])
    assert [records[folder]["clock"] for folder in folders] == ["real", "virtual"]
    record = records[folders[0]]
    assert record["fidelity"]["record"]["machines"]["h1"]["before"]["versions"]
    for name in ("flows", "intervals"):
        real, virtual = (pl.read_parquet(folder / f"{name}.parquet") for folder in folders)
        assert real.schema == virtual.schema
    flows = [pl.read_parquet(folder / "flows.parquet").sort("name", "role") for folder in folders]
    counted = [frame.select("name", "role", "packets", "lost_packets").rows() for frame in flows]
    assert [row for row in counted[0] if row[0] != "download"] == [row for row in counted[1] if row[0] != "download"]
    received = pl.read_parquet(folders[0] / "intervals.parquet").filter(pl.col("role") == "sink")
    # Whole, and at the times of the study: 2 Mbit/s for a second from its beginning, and the megabyte.
    assert received.group_by("name").agg(pl.col("payload_bytes").sum()).sort("name").rows() == [
        ("download", 1_000_000),
        ("stream", 250_000),
    ]
    stream = received.filter(pl.col("name") == "stream")["start_s"]
    assert stream.min() == 0.0 and stream.max() <= 1.0
    assert flows[0].filter(pl.col("role") == "source")["sender_processor"].drop_nulls().is_in(["own", "shared"]).all()
    compared = Twin(load_study(study), ResultStore(tmp_path / "two-machines"))
    lost = [one for one in compared.results if one.measurement == "lost"]
    assert lost and all((one.virtual, one.real) == ((0.0,), (0.0,)) for one in lost)


_TWINNET = (str(Path(sys.executable).parent / "twinnet"),)
_REFUSED = """
try:
    with net.operate() as lab:
        print(json.dumps({"name": None}))
except tn.errors.TwinnetError as error:
    print(json.dumps({"name": error.name, "message": error.message, "remedy": error.remedy}))
"""


def _refusal(machines: SshMachines, changed: dict[str, Any], link: str = "", ssh: str = "") -> dict[str, Any]:
    program = f"os.environ['TWINNET_SSH'] += {' ' + ssh!r}\n" if ssh else ""
    program += f"net.link(machine(1), s1)\nnet.link(machine(2, **{changed!r}), s1 {link})\n"
    told = machines.python(_NETWORK + program + _REFUSED)
    machines.wait_until_no_agent_runs()
    return told


@pytest.mark.parametrize(
    ("changed", "link", "name", "words", "remedy"),
    [
        ({"ssh": "nowhere.invalid"}, "", "NameUnknown", "does not resolve", "/etc/hosts"),
        ({"interface": "eth7"}, "", "NoSuchInterface", "no interface eth7", "ip link"),
        ({"address": "10.8.0.77/24"}, "", "NoSuchAddress", "10.8.0.2/24", "ip address add 10.8.0.77/24 dev lan"),
        ({}, ", mtu=4000", "OtherMtu", "an MTU of 1500 bytes", "ip link set lan mtu 4000"),
        ({}, ", rate='1 Gbit'", "OtherRate", "runs at 10000 Mbit/s", "rate: 10000 Mbit"),
        ({"command": "/nowhere/twinnet"}, "", "NoTwinnetThere", "/nowhere/twinnet", "pip install twinnet"),
        ({"command": "/bin/false"}, "", "AgentFailed", "ended with status 1", "doctor"),
        ({"ssh": "10.7.0.250"}, "", "HostKeyUnknown|Unreachable", "h2", "ssh 10.7.0.250"),
    ],
)
def test_a_machine_that_cannot_be_a_host_is_refused_with_the_remedy(
    machines: SshMachines, changed: dict[str, Any], link: str, name: str, words: str, remedy: str
):
    told = _refusal(machines, changed, link)
    assert told["name"] in name.split("|"), told
    assert words in told["message"] and remedy in told["remedy"], told


def test_an_interface_that_is_down_is_refused(machines: SshMachines):
    machines.machines[1].run("ip", "link", "set", "lan", "down")
    try:
        told = _refusal(machines, {})
    finally:
        machines.machines[1].run("ip", "link", "set", "lan", "up")
    assert told["name"] == "InterfaceDown" and "ip link set lan up" in told["remedy"]


def test_wrong_keys_are_told_from_host_keys_that_are_new_or_have_changed(machines: SshMachines):
    stranger = f"-o IdentityFile=none -i {machines.folder}/stranger -F {machines.folder}/strange"
    config = (machines.folder / "config").read_text().replace("/user\n", "/stranger\n")
    (machines.folder / "strange").write_text(config)
    told = _refusal(machines, {}, ssh=stranger)
    assert told["name"] == "LoginRefused" and "ssh-copy-id" in told["remedy"]
    told = _refusal(machines, {}, ssh="-o UserKnownHostsFile=/dev/null")
    assert told["name"] == "HostKeyUnknown" and "fingerprint" in told["remedy"]
    other = (machines.folder / "stranger.pub").read_text().rsplit(" ", 1)[0]
    (machines.folder / "changed").write_text(f"10.7.0.1 {other}\n10.7.0.2 {other}\n")
    told = _refusal(machines, {}, ssh=f"-o UserKnownHostsFile={machines.folder}/changed")
    assert told["name"] == "HostKeyChanged" and f"ssh-keygen -f {machines.folder}/changed -R 10.7.0." in told["remedy"]


def test_another_version_and_a_missing_python_are_told(machines: SshMachines):
    other = machines.folder / "other"
    other.write_text('#!/bin/sh\necho \'{"twinnet_agent":1,"version":"9.9.9","clock":"1"}\'\ncat\n')
    broken = machines.folder / "broken"
    broken.write_text("#!/nowhere/python3\n")
    for script in (other, broken):
        script.chmod(0o755)
    told = _refusal(machines, {"command": str(other)})
    assert told["name"] == "OtherVersion" and "has twinnet 9.9.9, this machine has " in told["message"]
    assert told["message"].endswith(code_version())
    assert _refusal(machines, {"command": str(broken)})["name"] == "NoTwinnetThere"


def test_words_of_a_login_shell_do_not_disturb(machines: SshMachines):
    noisy = machines.folder / "noisy"
    noisy.write_text("#!/bin/sh\necho 'Welcome! {not json}'\nexec twinnet \"$@\"\n")
    noisy.chmod(0o755)
    assert _refusal(machines, {"command": str(noisy)})["name"] is None


@pytest.mark.parametrize("which", [0, 1])
def test_when_one_machine_dies_the_run_tells_and_the_others_agents_end(machines: SshMachines, which: int):
    program = (
        _BOTH
        + """
with net.operate() as lab:
    flow = lab.start(tn.apps.udp("h1", "h2", rate="1 Mbit", payload="500 B", duration="60 s"))
    print("going", flush=True)
    try:
        lab.wait([flow])
    except tn.errors.LabError as error:
        print(json.dumps([error.name, error.message]))
"""
    )
    run = _start(machines, program)
    agents = machines.agents()
    assert len(agents) == 2
    os.kill(sorted(agents)[which], signal.SIGKILL)
    out, err = run.communicate(timeout=30)
    assert run.returncode == 0, err
    name, message = json.loads(out)
    assert name == "LabClosed" and "the agent on h" in message and "has gone" in message
    assert "was killed there" in message and "cannot be reached" not in message
    machines.wait_until_no_agent_runs()


def test_agents_end_when_the_one_who_started_them_is_killed(machines: SshMachines):
    run = _start(
        machines, _BOTH + "with net.operate() as lab:\n    print('going', flush=True)\n    lab.run_until('60 s')\n"
    )
    assert len(machines.agents()) == 2
    run.kill()
    run.communicate()
    machines.wait_until_no_agent_runs()


def _start(machines: SshMachines, program: str) -> subprocess.Popen[str]:
    run = machines.here.popen(
        sys.executable,
        "-c",
        program,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=machines.environment,
    )
    assert run.stdout is not None
    assert run.stdout.readline() == "going\n", run.communicate()[1]
    return run


@pytest.mark.quiet
def test_programs_run_on_machines_with_the_settings_of_apps(machines: SshMachines, tmp_path: Path):
    study = tmp_path / "programs.yaml"
    text = _STUDY.replace("app: ping,", "app: ping, using: programs,").replace(
        "payload: 500 B,", "payload: 500 B, using: programs,"
    )
    study.write_text(text)
    done = machines.run(*_TWINNET, "run", str(study), "--clock", "real", "--out", str(tmp_path / "out"))
    assert done.returncode == 0, (done.stdout, done.stderr)
    [flows] = (tmp_path / "out").rglob("flows.parquet")
    rows = {row["name"]: row for row in pl.read_parquet(flows).iter_rows(named=True) if row["role"] != "server"}
    # iperf sends 2 Mbit/s of 500 bytes for a second, give or take the datagram at either end.
    assert 480 <= rows["stream"]["packets"] <= 520 and rows["stream"]["lost_packets"] == 0
    assert rows["echoes"]["packets"] == 5
    machines.wait_until_no_agent_runs()


def test_a_program_on_a_machine_reads_writes_and_ends_with_the_agent(machines: SshMachines):
    told = machines.python(
        _BOTH
        + """
with net.operate() as lab:
    cat = lab["h2"].run("cat", input="x" * 100_000, timeout="20 s").stdout
    told = {"cat": len(cat), "name": lab["h2"].run("hostname").stdout.strip(),
            "status": lab["h1"].run(["sh", "-c", "exit 7"]).returncode}
    try:
        lab["h1"].run("no-such-program")
    except tn.errors.TwinnetError as error:
        told["missing"] = [error.name, str(error)]
    late = lab["h1"].popen("sleep 600", limit="100 ms").wait("20 s")
    told["late"] = [late.returncode, late.limit if hasattr(late, "limit") else None]
    told["left"] = lab["h1"].popen("sleep 600").pid
    print(json.dumps(told))
"""
    )
    assert (told["cat"], told["name"], told["status"]) == (100_000, "m2", 7)
    assert told["missing"][0] == "ProgramNotFound" and "h1: " in told["missing"][1]
    assert told["late"][0] == -signal.SIGKILL
    assert not Path(f"/proc/{told['left']}").exists()
    machines.wait_until_no_agent_runs()


def test_programs_that_need_files_here_are_refused_by_name(machines: SshMachines, tmp_path: Path):
    study = tmp_path / "video.yaml"
    asked = "{name: pages, app: http, from: [h1], to: h2, using: programs, bytes: 1 MB, count: 3, port: 8080}"
    study.write_text(_STUDY.replace("measurements:", f"  - {asked}\nmeasurements:"))
    done = machines.run(*_TWINNET, "run", str(study), "--clock", "real", "--out", str(tmp_path / "out"))
    assert done.returncode != 0
    assert "need files of this machine" in done.stderr and "pages" in done.stderr, (done.stdout, done.stderr)
