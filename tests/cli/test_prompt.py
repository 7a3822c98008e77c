"""What is typed at the prompt, against a lab that plays a script."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from fake_lab import FakeLab, Refusal
from lab_protocol import eventually
from twinnet.cli.prompt.changing import link_settings
from twinnet.cli.prompt.completing import candidates
from twinnet.cli.prompt.loop import run_lines
from twinnet.cli.prompt.session import COMMANDS, Session
from twinnet.errors import BadValue, LabClosed, LabError
from twinnet.network.topology_file import load_network


def typed(fake: FakeLab, line: str, capfd: pytest.CaptureFixture[str]) -> tuple[bool, str, str]:
    done = Session(fake.lab).execute(line)
    shown = capfd.readouterr()
    return done, shown.out, shown.err


def test_nodes_net_and_dump_show_the_network(fake: FakeLab, capfd: pytest.CaptureFixture[str]) -> None:
    assert typed(fake, "nodes", capfd)[1].splitlines()[1] == "s1 h1 h2 h3 h4"
    assert "h2 h2-eth0:s1-eth2" in typed(fake, "net", capfd)[1].splitlines()
    dump = typed(fake, "dump", capfd)[1].splitlines()
    assert dump[0].startswith("s1: switch dpid 0000000000000001, standalone; 1:s1-eth1")
    assert dump[1] == "h1: host; h1-eth0 10.0.0.1/8 fd00::1/64 00:00:00:00:00:01"


def test_links_show_rate_and_state(fake: FakeLab, capfd: pytest.CaptureFixture[str]) -> None:
    def links(_: object) -> list[dict[str, Any]]:
        way = fake.spec["links"][0]["ab"]
        return [{way_name: {"up": index > 0, "config": way} for way_name in ("ab", "ba")} for index in range(4)]

    fake.answers["links"] = links
    lines = typed(fake, "links", capfd)[1].splitlines()
    assert lines[:2] == ["h1-eth0<->s1-eth1 DOWN: 1 Gbit/s", "h2-eth0<->s1-eth2 up: 1 Gbit/s"]


def test_ports_show_the_drops_that_happened(fake: FakeLab, capfd: pytest.CaptureFixture[str]) -> None:
    counters = {"frames": 5, "link_bytes": 500, "lost": 0, "dropped_overlimit": 0}
    fake.answers["ports"] = lambda _: [
        {"port": "h1-eth0", "counters": counters},
        {"port": "s1-eth1", "counters": counters | {"dropped_overlimit": 7}},
    ]
    assert typed(fake, "ports", capfd)[1].splitlines() == [
        "port     frames  link_bytes  dropped_overlimit",
        "h1-eth0       5         500                  0",
        "s1-eth1       5         500                  7",
    ]
    assert len(typed(fake, "ports s1", capfd)[1].splitlines()) == 2


def test_a_program_writes_to_the_user_and_its_status_counts(fake: FakeLab, capfd: pytest.CaptureFixture[str]) -> None:
    assert typed(fake, "h1 echo a | tr a b", capfd) == (True, "b\n", "")
    assert typed(fake, "h1 exit 3", capfd)[0] is False


def test_a_program_in_the_background_is_a_job(fake: FakeLab, capfd: pytest.CaptureFixture[str]) -> None:
    done, out, _ = typed(fake, "h1 sleep 30 &", capfd)
    assert done
    assert out.startswith("[1] ")
    assert fake.asked("spawn")[0]["argv"] == ["/bin/sh", "-c", "sleep 30"]
    fake.answers["jobs"] = lambda _: [
        {"job": 1, "host": "h1", "argv": ["sleep", "30"], "pid": 9, "state": "running"},
        {"job": 2, "host": "h1", "argv": ["true"], "pid": 10, "state": "ended"},
    ]
    assert typed(fake, "jobs", capfd)[1] == "[1] h1 sleep 30 (pid 9)\n"


def test_kill_ends_the_job_of_a_number_that_counts_from_one(fake: FakeLab, capfd: pytest.CaptureFixture[str]) -> None:
    rows = [{"job": job, "host": "h1", "argv": ["sleep", str(job)], "pid": job, "state": "running"} for job in (0, 7)]
    fake.answers["jobs"] = lambda _: rows
    session = Session(fake.lab)
    session.execute("h1 sleep 30 &")
    rows.append({"job": 1, "host": "h1", "argv": ["sleep", "30"], "pid": 3, "state": "running"})
    session.execute("jobs")
    capfd.readouterr()
    assert session.execute("kill 1 INT")
    assert capfd.readouterr().out == "[1] h1 sleep 30: SIGINT\n"
    assert fake.asked("signal")[0] == {"job": 1, "signal": 2}
    assert not session.execute("kill 9")
    assert "there is no job 9 (running: 1, 2, 3)" in capfd.readouterr().err
    for line in ("kill", "kill x", "kill 1 NONSENSE", "x", "x s1 ls"):
        assert not session.execute(line)
        assert "write" in capfd.readouterr().err


def test_links_change_by_the_words_of_the_line(fake: FakeLab, capfd: pytest.CaptureFixture[str]) -> None:
    fake.answers["link.set"] = lambda _: {}
    assert typed(fake, "link s1 h1 delay 10ms rate 5 Mbit loss 1 %", capfd) == (True, "", "")
    assert typed(fake, "link h1 s1 down", capfd)[0]
    assert [one["set"] for one in fake.asked("link.set")] == [
        {"delay_ps": 10**10, "rate_bps": 5_000_000, "loss": {"model": "bernoulli", "probability": 0.01}},
        {"up": False},
    ]


def test_the_queue_of_a_port_changes_by_one_word(fake: FakeLab, capfd: pytest.CaptureFixture[str]) -> None:
    fake.answers["queues.set"] = lambda _: {}
    assert typed(fake, "queue s1-eth1 codel,target=7ms", capfd) == (True, "", "")
    [asked] = fake.asked("queues.set")
    assert (asked["node"], asked["port"], asked["queue"]["target_ps"]) == ("s1", 0, 7 * 10**9)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["dely", "1ms"], "did you mean 'delay'"),
        (["delay"], "delay has no value"),
        (["delay", "rate", "1 Mbit"], "no value"),
    ],
)
def test_link_settings_refuse(words: list[str], message: str) -> None:
    with pytest.raises(BadValue, match=message):
        link_settings(words)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("h9 ls", "did you mean 'h"),
        ("pingal", "did you mean 'pingall'"),
        ("h1", "no program was given"),
        ("link h1", "link needs two nodes"),
        ("link h1 h2 up", "h1 and h2 are not linked"),
        ("flow s1 ad x", "is not understood"),
        ("queue s1-eth1", "queue needs an interface and a queue"),
        ("queue s1-eth1 codel,targt=5ms", "did you mean 'target'"),
        ("queue s1-eth1 codel,target", "write for example: queue s1-eth1 fifo,limit_frames=100"),
        ("queue h1-eth0 codel", "no switch 'h1'"),
        ("capture s1-eth1", "needs an interface and a file"),
        ("capture stop s1-eth1", "is not captured"),
        ("iperf h1", "needs two hosts"),
        ("iperfudp h1 h2", "iperfudp needs a rate"),
        ("iperfudp 10X h1 h2", 'the unknown unit "X"'),
        ("iperfudp h1 h9 10M", "did you mean 'h"),
        ("watch 1", "the interval 1 has no unit (write for example 1s, or 1ms)"),
        ("flows 's1", "cannot be split"),
        ("py 1/0", "ZeroDivisionError"),
        ("py h1.IP()", "did you mean 'ip'?"),
        ("ping h1 h2", "a program comes after its host (write: h1 ping h2)"),
        ("iperf h1 h1", "h1 would send to itself"),
        (
            "links > links.txt",
            "links takes nothing after it, and '> links.txt' was given (write: links | tee links.txt)",
        ),
        ("nodes h1", "nodes takes nothing after it"),
        ("fidelity please", "fidelity takes nothing but reset"),
        ("help lnik", "did you mean 'link'?"),
        ("source nothere.txt", "nothere.txt cannot be read: No such file or directory (give"),
        ("py h1.cmd('ls')", "write run("),
        ("py lba.now()", "did you mean 'lab'?"),
        ("py lab.nwo()", "did you mean 'now'?"),
        ("sleep 5", "has no unit"),
    ],
)
def test_mistakes_are_one_line_and_count(
    fake: FakeLab, line: str, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    done, out, err = typed(fake, line, capfd)
    assert (done, out) == (False, "")
    assert message in err
    assert len(err.splitlines()) == 1


def test_the_labs_refusals_are_told(fake: FakeLab, capfd: pytest.CaptureFixture[str]) -> None:
    def refuse(_: object) -> None:
        raise Refusal("BadFlow", "unknown action 'flod' at 19", "did you mean flood?")

    fake.answers["flows.add"] = refuse
    assert (
        typed(fake, "flow s1 add actions=flod", capfd)[2] == "*** unknown action 'flod' at 19 (did you mean flood?)\n"
    )


@pytest.mark.parametrize(
    ("actions", "missing"),
    [
        ("output:77", "77"),
        ("1,88,output:77", "77, 88"),
        ("enqueue:9:1", "9"),
        ("set_queue:9,output:1", ""),
        ("resubmit(,9)", ""),
        ("group:9", ""),
        ("normal", ""),
    ],
)
def test_a_flow_to_a_port_that_is_not_there_is_told(
    fake: FakeLab, actions: str, missing: str, capfd: pytest.CaptureFixture[str]
) -> None:
    fake.answers["flows.add"] = lambda _: {}
    fake.answers["ports"] = lambda _: []
    fake.answers["groups"] = lambda _: {"groups": [{"group": 9}], "meters": []}
    for line in (f"flow s1 add priority=5,ip,actions={actions}", f"dpctl add-flow actions={actions}"):
        done, out, _ = typed(fake, line, capfd)
        assert done
        assert (f"s1 has no port {missing} (its ports: 1, " in out) == bool(missing)


def test_a_flow_from_a_port_or_to_a_queue_that_is_not_there_is_told(
    fake: FakeLab, capfd: pytest.CaptureFixture[str]
) -> None:
    fake.answers["flows.add"] = lambda _: {}
    fake.answers["ports"] = lambda _: [{"port": "s1-eth1", "classes": [{"class": 0}, {"class": 1}]}]
    told = typed(fake, "flow s1 add in_port=9,ip,actions=set_queue:7,1", capfd)[1]
    assert told == (
        "s1 has no port 9 (its ports: 1, 2, 3, 4): no frame comes from there; "
        "no port of s1 has queue 7 (queues: 0, 1): such frames wait in queue 0\n"
    )
    assert typed(fake, "flow s1 add in_port=4,actions=enqueue:1:1,set_queue:0,2", capfd)[1] == ""


def test_a_flow_to_a_group_or_meter_that_is_not_there_is_told(fake: FakeLab, capfd: pytest.CaptureFixture[str]) -> None:
    fake.answers["flows.add"] = lambda _: {}
    fake.answers["groups"] = lambda _: {"groups": [{"group": 1}], "meters": []}
    told = typed(fake, "flow s1 add ip,actions=meter:2,group:7", capfd)[1]
    assert told == (
        "s1 has no group 7 (its groups: 1): such frames are dropped; "
        "s1 has no meter 2 (its meters: none): such frames are not metered\n"
    )
    assert typed(fake, "flow s1 add ip,actions=group:1", capfd)[1] == ""


def test_python_sees_the_lab_and_its_hosts(fake: FakeLab, capfd: pytest.CaptureFixture[str]) -> None:
    session = Session(fake.lab)
    assert run_lines(session, ["py x = h2.ip", "py x, len(lab.hosts)"])
    assert capfd.readouterr().out == "('10.0.0.2', 4)\n"


@pytest.mark.parametrize("line", ["iperfudp 10Mbit h1 h2", "iperfudp 10M h1 h2", "iperfudp h1 h2 10M"])
def test_iperfudp_takes_mininets_rates_before_and_after_the_hosts(line: str, fake: FakeLab) -> None:
    def refuse(_: object) -> None:
        raise Refusal("Seen", "that is enough", "")

    fake.answers["app.start"] = refuse
    with pytest.raises(LabError):
        Session(fake.lab).answer(line)
    assert "10000000" in str(fake.asked("app.start"))


def test_pingall_shows_who_answers(fake: FakeLab, capfd: pytest.CaptureFixture[str]) -> None:
    started: dict[int, dict[str, Any]] = {}

    def start(request: dict[str, Any]) -> dict[str, int]:
        started[len(started) + 1] = request
        return {"app": len(started)}

    def report(request: dict[str, Any]) -> list[dict[str, Any]]:
        answers: list[dict[str, Any]] = []
        for number in request["apps"]:
            app = started[number]["app"]
            lost = "10.0.0.3" in (app["to"], f"10.0.0.{started[number]['host'][1:]}")
            rtt = None if lost else {"count": 1, "mean": 5e7, "min": 5e7, "max": 5e7}
            flow = {"flow": app["flow"], "protocol": "icmp", "role": "client", "rtt_ps": rtt}
            answers.append({"app": number, "host": "", "kind": "ping", "finished": True, "report": {"flows": [flow]}})
        return answers

    fake.answers |= {"app.start": start, "app.report": report, "app.wait": lambda _: {"finished": True}}
    done, out, _ = typed(fake, "pingall h1 h2 h3", capfd)
    assert not done
    assert out.splitlines()[1:] == [
        "h1 -> h2 X",
        "h2 -> h1 X",
        "h3 -> X X",
        "*** Results: 67% dropped (2/6 received)",
    ]
    full = typed(fake, "pingallfull h1 h2 h3", capfd)[1].splitlines()
    assert full[1:3] == [" h1->h2: 1/1, rtt 0.050 ms", " h1->h3: 1/0"]
    assert full[-1] == "*** Results: 67% dropped (2/6 received)"


def test_interfaces_of_every_node_are_listed_as_mininet_does(fake: FakeLab, capfd: pytest.CaptureFixture[str]) -> None:
    lines = typed(fake, "intfs", capfd)[1].splitlines()
    assert lines[:2] == ["s1: s1-eth1,s1-eth2,s1-eth3,s1-eth4", "h1: h1-eth0"]


def test_a_line_is_timed_and_its_answer_shown(fake: FakeLab, capfd: pytest.CaptureFixture[str]) -> None:
    done, out, _ = typed(fake, "time nodes", capfd)
    assert done and out.splitlines()[1] == "s1 h1 h2 h3 h4"
    assert re.fullmatch(r"\*\*\* Elapsed time: \d+\.\d{6} secs", out.splitlines()[-1])
    assert "write for example: time pingall" in typed(fake, "time", capfd)[2]


def test_windows_open_for_each_host_that_is_named(
    fake: FakeLab, capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = tmp_path / "opened"
    window = tmp_path / "x-terminal-emulator"
    window.write_text(f'#!/bin/sh\necho "$*" >>{opened}\n')
    window.chmod(0o755)
    monkeypatch.delenv("TMUX", raising=False)
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    done, _, err = typed(fake, "xterm h1 h9", capfd)
    assert not done and "h9" in err and not opened.exists(), "none opens when a name is wrong"
    session = Session(fake.lab, as_json=True)
    assert session.execute("xterm h1 h2")
    assert len(json.loads(capfd.readouterr().out)["result"]) == 2
    assert eventually(lambda: opened.exists() and opened.read_text().count("\n") == 2)
    hosts = sorted(line.split(" exec ")[1].split()[2] for line in opened.read_text().splitlines())
    assert hosts == ["h1", "h2"]


def test_captures_are_stopped_at_the_end(fake: FakeLab, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    told = {"frames": 3, "dropped": 0, "write_failed": False, "failure": None, "files": []}
    fake.answers |= {"capture.start": lambda _: {"capture": 5}, "capture.stop": lambda _: told}
    session = Session(fake.lab)
    path = tmp_path / "out.pcapng"
    assert session.execute(f"capture s1-eth1 {path}")
    session.end()
    assert capfd.readouterr().out == f"s1-eth1: 3 frames in {path}\n"


def test_json_answers_are_one_line_each(fake: FakeLab, capfd: pytest.CaptureFixture[str]) -> None:
    session = Session(fake.lab, as_json=True)
    assert not run_lines(session, ["# a comment", "", "h1 echo x", "wrong", "exit", "nodes"])
    answers = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [answer["command"] for answer in answers] == ["h1 echo x", "wrong", "exit"]
    assert answers[0]["result"]["stdout"] == "x\n"
    assert answers[1]["error"]["name"] == "BadValue"


def test_a_lab_that_has_ended_ends_the_session(fake: FakeLab) -> None:
    session = Session(fake.lab)
    fake.far.shutdown(2)
    with pytest.raises(LabClosed):
        session.execute("links")


def test_help_names_every_command(fake: FakeLab, capfd: pytest.CaptureFixture[str]) -> None:
    out = typed(fake, "help", capfd)[1]
    assert all(command.usage in out for command in COMMANDS.values())


def test_help_that_is_longer_than_the_terminal_is_shown_page_by_page_to_a_person(
    fake: FakeLab, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    paged: list[str] = []
    monkeypatch.setattr("click.echo_via_pager", paged.append)
    monkeypatch.setenv("LINES", "10")
    Session(fake.lab, paged=True).execute("help")
    Session(fake.lab, paged=True).execute("help links")
    Session(fake.lab, paged=True).execute("nodes")
    assert len(paged) == 1 and "pingall" in paged[0]
    assert "pingall" not in capfd.readouterr().out
    monkeypatch.setenv("LINES", "200")
    Session(fake.lab, paged=True).execute("help")
    assert "pingall" in capfd.readouterr().out


def test_a_pipe_after_a_command_filters_its_answer(fake: FakeLab, capfd: pytest.CaptureFixture[str]) -> None:
    assert typed(fake, "net | grep -c h2", capfd) == (True, "2\n", "")
    assert typed(fake, "net|grep -c h2", capfd) == (True, "2\n", "")
    done, out, _ = typed(fake, "net | grpe h2", capfd)
    assert not done and out == "", "a filter that is not there is a failure"
    done, _, told = typed(fake, "net |", capfd)
    assert not done and "no command follows the |" in told


def test_a_program_in_a_switch_is_answered_with_where_programs_run(
    fake: FakeLab, capfd: pytest.CaptureFixture[str]
) -> None:
    done, _, told = typed(fake, "s1 ls", capfd)
    assert not done
    assert "s1 is a switch: programs run in hosts; write for example: h1 ls" in told.replace(" (", "; ").replace(
        ")", ""
    )


def test_python_without_py_is_answered_with_the_command_that_takes_it(
    fake: FakeLab, capfd: pytest.CaptureFixture[str]
) -> None:
    done, _, told = typed(fake, "h1.IP()", capfd)
    assert not done and "py h1.ip" in told


def test_source_does_the_lines_of_a_file_and_refuses_a_circle(
    fake: FakeLab, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text("# a comment\nh1 echo one\nh2 echo two\n")
    assert typed(fake, f"source {lines}", capfd) == (True, "one\ntwo\n", "")
    lines.write_text(f"source {lines}\n")
    done, _, told = typed(fake, f"source {lines}", capfd)
    assert not done and "files name each other more than 10 deep" in told
    assert not typed(fake, f"source {tmp_path / 'none'}", capfd)[0]


def test_link_changes_the_queues_before_a_line(fake: FakeLab, capfd: pytest.CaptureFixture[str]) -> None:
    fake.answers["queues.set"] = fake.answers["link.set"] = lambda _: {}
    assert typed(fake, "link h1 s1 rate 5Mbit queue fifo,limit_frames=20", capfd)[0]
    places = [(one["node"], one["port"], one["queue"]["limit_frames"]) for one in fake.asked("queues.set")]
    assert places == [("h1", 0, 20), ("s1", 0, 20)]
    assert [one["set"] for one in fake.asked("link.set")] == [{"rate_bps": 5_000_000}]
    assert typed(fake, "link s1 h1 queue codel direction ab", capfd)[0]
    assert [one["node"] for one in fake.asked("queues.set")[2:]] == ["s1"]
    assert "did you mean 'codel'" in typed(fake, "link h1 s1 queue code", capfd)[2]
    assert len(fake.asked("link.set")) == 1


def test_switch_stop_takes_all_its_links_down(fake: FakeLab, capfd: pytest.CaptureFixture[str]) -> None:
    fake.answers["link.set"] = lambda _: {}
    done, out, _ = typed(fake, "switch s1 stop", capfd)
    assert done and out == "the links of s1 to h1, h2, h3, h4 are down\n"
    assert [(one["link"], one["set"]) for one in fake.asked("link.set")] == [(n, {"up": False}) for n in range(4)]
    assert typed(fake, "switch s1 start", capfd)[0]
    assert fake.asked("link.set")[-1]["set"] == {"up": True}
    assert "write: switch s1 stop" in typed(fake, "switch s1", capfd)[2]


def test_dpctl_speaks_to_all_switches(fake: FakeLab, capfd: pytest.CaptureFixture[str]) -> None:
    fake.answers["flows.dump"] = lambda _: ["priority=1,actions=normal"]
    fake.answers["flows.add"] = lambda _: {}
    assert typed(fake, "dpctl dump-flows", capfd)[1] == "*** s1\n priority=1,actions=normal\n"
    assert "did you mean 'dump-flows'" in typed(fake, "dpctl dump-flow", capfd)[2]


def test_ovs_ofctl_speaks_to_one_switch_by_its_name(fake: FakeLab, capfd: pytest.CaptureFixture[str]) -> None:
    fake.answers["flows.dump"] = lambda _: [" cookie=0x0, priority=1 actions=NORMAL"]
    fake.answers["flows.add"] = lambda _: {}
    fake.answers["flows.delete"] = lambda _: {"deleted": 2}
    assert typed(fake, "ovs-ofctl -O OpenFlow13 dump-flows s1", capfd)[1] == " cookie=0x0, priority=1 actions=NORMAL\n"
    assert typed(fake, "ovs-ofctl add-flow s1 priority=5,ip,actions=output:1", capfd)[0]
    assert fake.asked("flows.add") == [{"switch": "s1", "flows": ["priority=5,ip,actions=output:1"]}]
    assert typed(fake, "ovs-ofctl del-flows s1 ip", capfd)[1] == "2 deleted\n"
    assert fake.asked("flows.delete") == [{"switch": "s1", "match": "ip"}]
    assert "did you mean 'dump-flows'" in typed(fake, "ovs-ofctl dump-flow s1", capfd)[2]
    assert "ovs-ofctl dump-flows s1" in typed(fake, "ovs-ofctl dump-flows", capfd)[2]
    assert candidates(fake.lab, "ovs-ofctl d") == ["del-flows", "dump-flows"]
    assert candidates(fake.lab, "ovs-ofctl dump-flows ") == ["s1"]


def test_ovs_appctl_shows_what_a_switch_has_learnt(fake: FakeLab, capfd: pytest.CaptureFixture[str]) -> None:
    row = {"port": 2, "vlan": 0, "mac": "00:00:00:00:00:02", "age_ps": 7 * 10**12}
    fake.answers["learnt"] = lambda asked: [row] if asked["switch"] == "s1" else []
    assert typed(fake, "ovs-appctl fdb/show s1", capfd)[1].splitlines() == [
        " port  VLAN  MAC                Age",
        "    2     0  00:00:00:00:00:02    7",
    ]
    fake.answers["learnt.forget"] = lambda asked: {"deleted": 1 if asked["switch"] == "s1" else 0}
    assert typed(fake, "ovs-appctl fdb/flush s1", capfd)[1] == "1 forgotten\n"
    assert "write: ovs-appctl fdb/show s1" in typed(fake, "ovs-appctl fdb/add s1", capfd)[2]


def test_follow_wants_two_ends_a_protocol_and_a_port(fake: FakeLab, capfd: pytest.CaptureFixture[str]) -> None:
    for line in ("follow", "follow h1", "follow h1 h2 udp port", "follow h1 h2 udp 1 2"):
        assert "write: follow h1 h2 tcp 80" in typed(fake, line, capfd)[2]
    assert "no packet of 'sctp'" in typed(fake, "follow h1 h2 sctp", capfd)[2]
    assert candidates(fake.lab, "follow h")[:2] == ["h1", "h2"]


CONTROLLER = "tcp:127.0.0.1:6653"


@pytest.fixture
def controlled(fake: FakeLab) -> FakeLab:
    """A lab whose switch has a controller that has not joined."""
    node = next(node for node in fake.spec["nodes"] if node["kind"] == "switch")
    node["controllers"] = [CONTROLLER]
    fake.answers["controllers"] = lambda _: []
    return fake


def test_an_answer_without_the_controller_says_so(controlled: FakeLab, capfd: pytest.CaptureFixture[str]) -> None:
    done, out, told = typed(controlled, "h1 echo hello", capfd)
    assert (done, out) == (True, "hello\n")
    assert told == f"*** s1 has no controller ({CONTROLLER}); meanwhile it forwards as a learning switch\n"
    assert "s1 has no controller" in typed(controlled, "controllers", capfd)[1]
    assert "  no controller (tcp:" in typed(controlled, "dump", capfd)[1]


def test_an_answer_with_the_controller_is_left_alone(controlled: FakeLab, capfd: pytest.CaptureFixture[str]) -> None:
    row = {"switch": "s1", "connection": 1, "target": CONTROLLER, "peer": "controller", "version": "1.3"}
    controlled.answers["controllers"] = lambda _: [row | {"role": "equal", "messages": 3, "packet_ins": 1, "errors": 0}]
    assert typed(controlled, "h1 echo hello", capfd) == (True, "hello\n", "")
    assert typed(controlled, "controllers", capfd) == (True, f"s1: {CONTROLLER}, OpenFlow 1.3\n", "")


def test_the_network_is_exported_as_it_is_now(fake: FakeLab, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    line = fake.spec["links"][0]["ab"] | {"rate_bps": 5_000_000}
    rows = [{way: {"up": True, "config": line} for way in ("ab", "ba")} for _ in fake.spec["links"]]
    fake.answers |= {"links": lambda _: rows, "queues.set": lambda _: {}}
    fake.answers["flows.dump"] = lambda _: [" cookie=0x0, duration=1.5s, table=0, n_packets=3, priority=1 actions=drop"]
    session = Session(fake.lab)
    file = tmp_path / "now.yaml"
    assert session.execute("queue s1-eth1 codel,target=7ms")
    assert session.execute(f"export {file}")
    assert not session.execute(f"export {tmp_path}/no/now.yaml")
    assert not session.execute("export")
    shown = capfd.readouterr()
    assert shown.out == f"wrote {file}\n"
    assert "no/now.yaml cannot be written: No such file or directory" in shown.err
    assert "write for example: export network.yaml" in shown.err
    spec = load_network(file).to_spec()
    [switch] = [node for node in spec["nodes"] if node["kind"] == "switch"]
    assert switch["flows"] == ["priority=1,actions=drop"]
    assert [port["queue"] and port["queue"]["kind"] for port in switch["ports"]] == ["codel", None, None, None]
    assert {link["ab"]["rate_bps"] for link in spec["links"]} == {5_000_000}
