"""What a lab's calls ask for and return, against a lab that plays a script and runs programs on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import twinnet as tn
from fake_lab import FakeLab
from fidelity_sources import SOURCES
from twinnet import errors
from twinnet.lab.lab import PIPE
from twinnet.lab_process.job import command_argv
from twinnet.results.fidelity import Limit, Thresholds
from twinnet.results.flow_report import FlowReport


def test_run_returns_what_the_program_wrote_and_gave(fake: FakeLab) -> None:
    done = fake.lab["h1"].run("sh -c 'echo out; echo err >&2; exit 3'")
    assert (done.stdout, done.stderr, done.returncode, done.host) == ("out\n", "err\n", 3, "h1")
    assert fake.asked("spawn")[0]["host"] == "h1"


def test_run_carries_more_than_a_pipe_holds_both_ways(fake: FakeLab) -> None:
    text = "0123456789abcdef" * 40_000
    assert fake.lab["h1"].run("cat", input=text).stdout == text


def test_run_does_not_wait_for_what_a_program_leaves_behind(fake: FakeLab) -> None:
    assert fake.lab["h1"].run("sleep 60 & echo started", shell=True).stdout == "started\n"


def test_a_program_that_ignores_its_input_is_no_error(fake: FakeLab) -> None:
    assert fake.lab["h1"].run("true", input="x" * 1_000_000).returncode == 0


def test_check_raises_with_the_programs_last_word(fake: FakeLab) -> None:
    with pytest.raises(errors.ProgramFailed, match="in h1 gave status 2: no luck"):
        fake.lab["h1"].run("echo no luck >&2; exit 2", shell=True, check=True)


def test_the_time_limit_keeps_what_was_written(fake: FakeLab) -> None:
    with pytest.raises(errors.TimeLimit, match="did not end within 300 ms") as caught:
        fake.lab["h1"].run("echo begun; exec sleep 60", shell=True, timeout="300 ms")
    assert caught.value.completed is not None
    assert caught.value.completed.stdout == "begun\n"


def test_a_missing_program_is_the_labs_refusal(fake: FakeLab) -> None:
    with pytest.raises(errors.LabError) as caught:
        fake.lab["h1"].run("no-such-program")
    assert caught.value.name == "ProgramMissing"


def test_popen_streams_and_signals(fake: FakeLab) -> None:
    job = fake.lab["h1"].popen("cat", stdin=PIPE)
    assert job.stdin is not None
    assert job.stdout is not None
    job.stdin.write(b"line\n")
    assert job.stdout.read(5) == b"line\n"
    assert job.poll() is None
    job.terminate()
    ended = job.wait("10 s")
    assert (ended.returncode, ended.shell_status) == (-15, 143)
    job.close_streams()


@pytest.mark.parametrize(
    ("command", "message"),
    [("ls | wc", "has '|'"), ("a; b", "has ';'"), ("", "empty"), ("echo 'x", "cannot be split"), ("a > b", "has '>'")],
)
def test_commands_that_need_a_shell_say_so(command: str, message: str) -> None:
    with pytest.raises(errors.BadValue, match="command") as caught:
        command_argv(command)
    assert message in str(caught.value)


def test_operators_inside_quotations_are_text() -> None:
    assert command_argv("echo 'a | b' \"c;d\" e\\&f") == ["echo", "a | b", "c;d", "e&f"]


def test_unknown_nodes_are_named(fake: FakeLab) -> None:
    with pytest.raises(errors.UnknownNode, match="no host 's1'"):
        fake.lab["s1"]
    with pytest.raises(errors.UnknownNode, match="no switch 's2'"):
        fake.lab.switch("s2")
    with pytest.raises(errors.BadTopology, match="h1 and h2 are not linked"):
        fake.lab.link("h1", "h2")
    with pytest.raises(errors.UnknownNode, match="did you mean 's1-eth4'"):
        fake.lab.capture("s1-eth", "never.pcapng")


def test_flows_are_added_deleted_and_dumped(fake: FakeLab) -> None:
    fake.answers |= {
        "flows.add": lambda _: {},
        "flows.delete": lambda _: {"deleted": 2},
        "flows.dump": lambda _: ["priority=1 actions=flood"],
    }
    s1 = fake.lab.switch("s1")
    s1.add_flow("priority=1,actions=flood")
    assert s1.delete_flows("ip") == 2
    assert s1.dump_flows() == ["priority=1 actions=flood"]
    assert fake.asked("flows.add") == [{"switch": "s1", "flows": ["priority=1,actions=flood"]}]


def test_links_change_now_and_later_seen_from_either_end(fake: FakeLab) -> None:
    fake.answers |= {"link.set": lambda _: {}, "schedule": lambda _: {}}
    fake.lab.link("s1", "h2").set(direction="ab", rate="1 Mbit", loss="1 %")
    fake.lab.at("2 s").link("h1", "s1").set(up=False)
    assert fake.asked("link.set") == [
        {
            "link": 1,
            "direction": "ba",
            "set": {"rate_bps": 10**6, "loss": {"model": "bernoulli", "probability": 0.01}},
        }
    ]
    assert fake.asked("schedule") == [
        {"at_ps": 2 * 10**12, "set": {"link": 0, "direction": "both", "set": {"up": False}}}
    ]
    with pytest.raises(errors.BadQuantity, match="has no unit"):
        fake.lab.link("h1", "s1").set(rate=10)


def flow_report(app: int, host: str, kind: str, role: str, flow: int) -> dict[str, Any]:
    one = {"flow": flow, "protocol": "tcp", "role": role, "start_ps": 0, "end_ps": 2 * 10**12, "bytes": 2_500_000}
    return {"app": app, "host": host, "kind": kind, "finished": True, "report": {"flows": [one]}}


def test_flows_share_a_receiver_and_report_as_it_saw_them(fake: FakeLab) -> None:
    numbers = iter(range(1, 10))
    fake.answers |= {
        "app.start": lambda _: {"app": next(numbers)},
        "app.wait": lambda _: {"finished": True},
        "app.report": lambda _: [flow_report(1, "h4", "tcp_sink", "sink", 2)],
    }
    first = fake.lab.start(tn.apps.tcp_bulk("h1", "h4", duration="2 s"))
    second = fake.lab.start(tn.apps.tcp_bulk("h3", "h4", duration="2 s"), at="2 s")
    asked = fake.asked("app.start")
    assert [(one["host"], one["app"]["kind"]) for one in asked] == [
        ("h4", "tcp_sink"),
        ("h1", "tcp_source"),
        ("h3", "tcp_source"),
    ]
    assert asked[2]["app"]["to"] == "10.0.0.4"
    assert len({one["seed"] for one in asked}) == 3
    assert (asked[2]["app"]["flow"] - asked[1]["app"]["flow"], asked[2]["at_ps"]) == (1, 2 * 10**12)
    assert fake.lab.wait([first, second], until="5 s")
    assert fake.asked("app.wait") == [{"apps": [2, 3], "until_ps": 5 * 10**12}]
    second.flow = 2
    assert second.report().throughput_bps == 10_000_000


def test_an_app_draws_anew_in_a_network_of_another_seed() -> None:
    seeds: list[int] = []
    for seed in (1, 1, 2):
        fake = FakeLab(tn.templates.single(2, seed=seed))
        fake.answers["app.start"] = lambda _: {"app": 1}
        fake.lab.start(tn.apps.udp_source("h1", "h2", rate="1 Mbit", duration="1 s", process="poisson", flow=7))
        seeds.append(fake.asked("app.start")[0]["seed"])
        fake.close()
    assert seeds[0] == seeds[1] != seeds[2]


def test_the_same_port_with_other_settings_is_refused(fake: FakeLab) -> None:
    fake.answers["app.start"] = lambda _: {"app": 1}
    fake.lab.start(tn.apps.udp("h1", "h4", rate="1 Mbit", duration="1 s"))
    with pytest.raises(errors.BadValue, match="h4 has a udp_sink on port 5003 already"):
        fake.lab.start(tn.apps.udp("h2", "h4", rate="1 Mbit", duration="1 s", interval="2 s"))


def test_a_capture_hands_its_file_over(fake: FakeLab, tmp_path: Path) -> None:
    told = {"frames": 3, "dropped": 1, "write_failed": False, "failure": None, "files": []}
    fake.answers |= {"capture.start": lambda _: {"capture": 5}, "capture.stop": lambda _: told}
    with fake.lab.capture("s1-eth1", str(tmp_path / "out.pcapng"), snap="96 B") as capture:
        pass
    assert (capture.frames, capture.dropped) == (3, 1)
    settings = {"snap": 96, "direction": "both"}
    assert fake.asked("capture.start") == [{"port": "s1-eth1", "file": "out.pcapng", **settings}]
    with pytest.raises(errors.BadValue, match="cannot be written"):
        fake.lab.capture("s1-eth1", str(tmp_path / "absent" / "out.pcapng"))


def test_run_until_returns_when_the_clock_has_come(fake: FakeLab) -> None:
    clock = iter([900_000_000_000, 1_000_000_000_000])
    fake.answers["now"] = lambda _: {"now_ps": next(clock)}
    fake.lab.run_until("1 s")
    assert len(fake.asked("now")) == 2


def fidelity(**changed: Any) -> tn.FidelityRecord:
    good = {"elapsed_ps": 10**13, "handed_over": 10**6, "lateness_ns": {"p999": 50_000, "histogram": [[1000, 5]]}}
    return tn.FidelityRecord.from_spec(good | {"cores": 2, "sources": SOURCES} | changed)


def agent(**changed: Any) -> dict[str, Any]:
    return {"timers": 5, "lateness_ns": {}, "waited_s": 0.0} | changed


def line(**changed: Any) -> dict[str, Any]:
    return {"port": "s1-eth1", **changed}


def few(count: int, late: int, tail: int = 0, **more: int) -> dict[str, int]:
    return {"count": count, "late": late, "tail": tail, **more}


def took(name: str, worst_second_s: float) -> dict[str, Any]:
    return {name: {"total_s": worst_second_s, "worst_second_s": worst_second_s, "program": "iperf3"}}


@pytest.mark.parametrize(
    ("changed", "state", "reason"),
    [
        ({}, "valid", ""),
        ({"lateness_ns": {"p999": 2_000_000}}, "doubtful", "late by more than 2 ms"),
        ({"lateness_ns": {"p999": 20_000_000}}, "invalid", "late by more than 20 ms"),
        ({"slipped_ps": 2 * 10**11}, "invalid", "slipped by 2 %"),
        ({"longest_slip_ps": 20 * 10**9}, "doubtful", "stood still for 20 ms"),
        ({"overload_drops": 1}, "doubtful", "lost by overload"),
        ({"handed_over": 2500, "interface_drops": 1}, "doubtful", "lost by overload"),
        ({"ingress_drops": 6000}, "invalid", "lost by overload"),
        (
            {"interface_drops": 3, "interface_drops_by_port": {"h1-eth0": 3}},
            "doubtful",
            "3 that were not read in time on links with a rate: h1-eth0 3",
        ),
        ({"agent": agent(overflowed_datagrams=7)}, "doubtful", "7 that arrived and that the sockets of sinks"),
        ({"steal_s": 1.0}, "doubtful", "took 5 % of the CPU"),
        # What was regained is not missing.
        ({"slipped_ps": 2 * 10**11, "regained_ps": 2 * 10**11}, "valid", ""),
        ({"lines": [line(missing_in_worst_second_ps=2 * 10**10)]}, "doubtful", "s1-eth1 slipped by 2 % of its worst"),
        ({"lines": [line(missing_in_worst_second_ps=10**11)]}, "invalid", "s1-eth1 slipped by 10 % of its worst"),
        (
            {"lines": [line(handed_over=1000, lateness_ns={"p999": 2_000_000})]},
            "doubtful",
            "on the line of s1-eth1 was late by more than 2 ms",
        ),
        # Few frames are judged by what they are, and told with their count.
        (
            {"worst_lines": {"late_frames": line(lateness_ns=few(900, late=900, tail=9_000_000, max=9_000_000))}},
            "doubtful",
            "of 900 frames on the line of s1-eth1 900 were late by more than 1 ms, all but the latest by up to 9 ms",
        ),
        (
            {"worst_lines": {"late_frames": line(lateness_ns=few(30, late=1, tail=2_000_000, max=2_000_000))}},
            "doubtful",
            "of 30 frames on the line of s1-eth1 1 were late by more than 1 ms, the latest by up to 2 ms",
        ),
        ({"lateness_ns": few(30, late=3, tail=12_000_000, max=12_000_000)}, "invalid", "of 30 frames 3 were late"),
        ({"worst_lines": {"late_frames": line(lateness_ns=few(900, late=1, max=9_000_000))}}, "valid", ""),
        ({"lateness_ns": few(900, late=1, max=11_000_000)}, "doubtful", "one frame was late by 11 ms"),
        # The worst of all lines counts, listed or not.
        (
            {"worst_lines": {"worst_second": line(missing_in_worst_second_ps=5 * 10**11)}},
            "invalid",
            "s1-eth1 slipped by 50 % of its worst second",
        ),
        ({"missing_in_worst_second_ps": 5 * 10**11}, "invalid", "slipped by 50 % of its worst second"),
        ({"worst_lines": {"missing": line(lost_ps=2 * 10**11)}}, "invalid", "s1-eth1 slipped by 2 % of the time"),
        ({"worst_lines": {"latest": line(latest_ps=2 * 10**10)}}, "doubtful", "stood still for 20 ms"),
        # A share of a whole second says little of a fifth of one.
        (
            {"elapsed_ps": 2 * 10**11, "traffic": {"moving_ps": 2 * 10**11, "paused_share": 0.03}},
            "doubtful",
            "stood still for 3 % of the 0.2 s in which frames moved",
        ),
        (
            {"elapsed_ps": 2 * 10**12, "traffic": {"moving_ps": 2 * 10**11}, "slipped_ps": 10**9},
            "doubtful",
            "slipped by 0.5 % of the time",
        ),
        (
            {"traffic": {"paused_beyond_share": 0.004}, "busiest_line": {"port": "s1-eth3", "share": 0.8}},
            "doubtful",
            "frames left late for up to 2 % of the worst",
        ),
        ({"pauses": {"longest_ps": 3 * 10**11}}, "invalid", "stood still for 300 ms"),
        ({"pauses": {"worst_second_ps": 5 * 10**10}}, "doubtful", "stood still for 5 % of the worst second"),
        # 1.5 ms is nothing to an idle line, and at 96 % of its time busy 38 ms of late frames.
        ({"pauses": {"worst_second_beyond_ps": 15 * 10**8}}, "valid", ""),
        (
            {
                "pauses": {"worst_second_beyond_ps": 15 * 10**8},
                "busiest_line": {"port": "s1-eth3", "share": 0.96},
            },
            "doubtful",
            "s1-eth3 (busy for 96 % without TCP), so frames left late for up to 3.75 % of the worst",
        ),
        # A pause of the fabric holds up other frames on each of three long lines.
        (
            {
                "pauses": {"worst_second_beyond_ps": 4 * 10**9},
                "busiest_line": {"port": "s1-eth3", "share": 0.2},
                "long_lines": 3,
            },
            "doubtful",
            "frames left late for up to 1.5 % of the worst second",
        ),
        (
            {"agent": agent(timers=1000, lateness_ns={"p99": 4_000_000})},
            "doubtful",
            "timer in 100 of the built-in apps",
        ),
        ({"agent": agent(timers=1000, lateness_ns={"p99": 15_000_000})}, "invalid", "late by more than 15 ms"),
        (
            {"agent": agent(timers=30, lateness_ns={"p99": 4_000_000})},
            "doubtful",
            "of 30 timers of the built-in apps the latest was late by 4 ms",
        ),
        ({"agent": agent(pauses={"longest_ps": 12 * 10**9})}, "doubtful", "the built-in apps stood still for 12 ms"),
        # What the apps held up is a burst, which an idle line carries at once and a busy one does not.
        ({"agent": agent(pauses={"worst_second_ps": 5 * 10**11, "worst_second_beyond_ps": 4 * 10**11})}, "valid", ""),
        (
            {
                "agent": agent(pauses={"worst_second_over_ps": [[10**9, 10**10], [125 * 10**7, 975 * 10**7]]}),
                "busiest_line": {"port": "s1-eth3", "share": 0.8},
            },
            "doubtful",
            "s1-eth3 (busy for 80 % without TCP), so frames left late for up to 4.88 % of the worst",
        ),
        # Of half a second of traffic the same burst is twice the share.
        (
            {
                "traffic": {"moving_ps": 5 * 10**11},
                "agent": agent(pauses={"worst_second_over_ps": [[10**9, 10**10], [125 * 10**7, 975 * 10**7]]}),
                "busiest_line": {"port": "s1-eth3", "share": 0.8},
            },
            "doubtful",
            "frames left late for up to 9.75 % of the worst",
        ),
        # A line whose queue only grows makes up for nothing: what it was idle for is late to the end.
        (
            {
                "traffic": {"moving_ps": 5 * 10**11},
                "agent": agent(pauses={"worst_second_over_ps": [[10**9, 4 * 10**9]]}),
                "busiest_line": {"port": "s1-eth3", "share": 1.0},
            },
            "doubtful",
            "s1-eth3 (busy for 100 % without TCP), so frames left late for up to 40 % of the worst",
        ),
        ({"machine": took("fabric_waited", 0.2)}, "doubtful", "the fabric waited for a processor for 20 %"),
        ({"machine": took("agent_waited", 0.6)}, "doubtful", "the agent, which runs the built-in apps, waited"),
        ({"machine": took("programs_waited", 0.3)}, "doubtful", "a host's program (iperf3) waited for a processor"),
        ({"machine": took("throttled", 0.04)}, "doubtful", "a quota stopped the lab's control group for 4 %"),
        ({"machine": took("throttled", 0.2)}, "invalid", "a quota stopped the lab's control group for 20 %"),
        ({"machine": took("memory_pressure", 0.05)}, "doubtful", "waited for memory for 5 % of the worst second"),
        # 8 ms in each tenth of a second are little of a second, and late answers.
        (
            {"machine": {"programs_waited": {"worst_window": {"share": 0.16, "window_s": 0.05, "program": "echo"}}}},
            "doubtful",
            "a host's program (echo) waited for a processor for 16 % of 0.05 s",
        ),
        (
            {"programs": {"stops": {"count": 1, "longest_ps": 2 * 10**10, "program": "iperf3"}}},
            "doubtful",
            "a signal stopped a host's program (iperf3) for 20 ms",
        ),
        (
            {"programs": {"dropped_datagrams": {"h2": 40}, "read_datagrams": {"h2": 960}}},
            "doubtful",
            "sockets of a host with programs had no room for 4 % of the datagrams that came to it (h2 40)",
        ),
        # A record of before the read datagrams were counted.
        (
            {"handed_over": 600, "programs": {"dropped_datagrams": {"h2": 400}}},
            "invalid",
            "sockets of a host with programs had no room for 40 % of the datagrams that came to it (h2 400)",
        ),
        ({"controllers": {"longest_pause_ps": 9 * 10**10}}, "doubtful", "lab's owner stood still for 90 ms"),
        ({"controllers": {"longest_pause_ps": 45 * 10**10}}, "invalid", "lab's owner stood still for 450 ms"),
        # Nothing counted is no evidence where nothing can be counted.
        ({"sources": SOURCES | {"steal": False}}, "doubtful", "does not report what the hypervisor takes"),
        ({"sources": SOURCES | {"programs": False}}, "doubtful", "all threads of hosts' programs wait for a processor"),
        ({"sources": {}}, "doubtful", "schedstat), nor for how long programs wait for memory"),
        ({"sources": None}, "doubtful", "does not say what this machine could count"),
        ({"elapsed_ps": 0}, "doubtful", "covers no time"),
        # Others' waiting alone tells nothing about the lab.
        ({"machine": took("processor_pressure", 0.9)}, "valid", ""),
    ],
)
def test_the_verdict_follows_the_thresholds(changed: dict[str, Any], state: str, reason: str) -> None:
    verdict = fidelity(**changed).verdict()
    assert verdict.state == state
    assert reason in str(verdict)


def test_an_empty_record_is_no_evidence() -> None:
    verdict = tn.FidelityRecord.from_spec({}).verdict()
    assert verdict.state == "doubtful"
    assert verdict.reasons == ("the record covers no time", "the record does not say what this machine could count")


def test_thresholds_can_be_set() -> None:
    strict = Thresholds.from_mapping({"lateness_p999_ns": [1000, 2000]})
    assert fidelity().verdict(strict).state == "invalid"
    with pytest.raises(errors.BadValue, match="no threshold 'lateness'"):
        Thresholds.from_mapping({"lateness": [1, 2]})
    with pytest.raises(errors.BadValue, match="not in order"):
        Limit(2, 1)


def test_a_network_that_is_not_started_has_no_lab() -> None:
    lab = tn.Network().emulate()
    with pytest.raises(errors.LabClosed, match="not running yet"):
        lab.now()
    with pytest.raises(errors.BadValue, match="'tun'"):
        tn.Network().emulate(interface="tun")


def test_the_state_of_a_senders_tcp_is_read_from_its_report() -> None:
    series = {
        "interval_ps": 10**10,
        "at_ps": [10**10, 2 * 10**10],
        "cwnd_segments": [10, 20],
        "ssthresh_segments": [None, 14],
    }
    flow = {
        "flow": 1,
        "protocol": "tcp",
        "role": "source",
        "tcp_info": series | {"srtt_ps": [0, 5], "retransmits": [0, 3]},
    }
    info = FlowReport.from_spec(flow).tcp_info
    assert info is not None
    assert (info.at_s, info.congestion_windows, info.slow_start_thresholds) == ((0.01, 0.02), (10, 20), (None, 14))
    assert (info.smoothed_rtts_ps, info.retransmits) == ((0, 5), (0, 3))
    assert FlowReport.from_spec({"flow": 1}).tcp_info is None
    bulk = tn.apps.tcp_bulk("h1", "h2", duration="1 s", info_interval="10 ms")
    assert bulk.sender.fields["info_interval_ps"] == 10**10
    assert "info_interval_ps" not in tn.apps.tcp_bulk("h1", "h2", duration="1 s").sender.fields
