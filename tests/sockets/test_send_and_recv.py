"""``twinnet send`` and ``twinnet recv`` on the loopback of a namespace of their own: counts, seeds, reports, errors.

How exactly they keep their schedule is measured by ``make bench``: a busy machine is no defect.
"""

from __future__ import annotations

import contextlib
import csv
import json
import socket
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from twinnet.errors import BadFile, BadValue
from twinnet.sockets.clocks import ToldFlow, compare_clocks, tell_flows
from twinnet.sockets.flow_plan import planned_flow, read_flows
from twinnet.sockets.machine import Machine
from twinnet.sockets.receiving import receive
from twinnet.traffic.distributions import Distribution
from twinnet.traffic.files import read_trace
from twinnet.units import duration_ps, size_bytes

PAIR = Path(__file__).parents[1] / "support" / "socket_pair.py"
NAMESPACES = ["unshare", "--user", "--map-root-user", "--net"]


def pair(*sends: Sequence[str], recv: Sequence[str] | None = (), **settings: Any) -> dict[str, Any]:
    """Run one receiver and these senders in new namespaces."""
    wanted = {
        "recv": None if recv is None else [*recv, "--json"],
        "sends": [[*one, "--json"] for one in sends],
        **settings,
    }
    command = [*NAMESPACES, sys.executable, str(PAIR), json.dumps(wanted)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if "unshare failed" in done.stderr:
        pytest.skip(f"user namespaces are refused here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def heard(found: dict[str, Any]) -> list[dict[str, Any]]:
    assert found["recv"]["status"] == 0, found["recv"]["err"]
    return json.loads(found["recv"]["out"])["flows"]


def sent(found: dict[str, Any], place: int = 0) -> list[dict[str, Any]]:
    return json.loads(found["sends"][place]["out"])["flows"]


@pytest.mark.quiet
def test_every_datagram_of_many_flows_is_counted_over_both_families(tmp_path: Path) -> None:
    table = tmp_path / "intervals.parquet"
    flow = ["--pps", "500", "--packets", "200", "--parallel", "3"]
    found = pair(
        ["127.0.0.1", *flow, "--payload", "100 B"],
        ["::1", *flow, "--payload", "65000 B", "--dscp", "46"],
        recv=["--table", str(table), "--interval", "100 ms"],
    )
    flows = heard(found)
    assert sorted((flow["flow"], flow["from"].startswith("[")) for flow in flows) == [
        (number, v6) for number in (1, 2, 3) for v6 in (False, True)
    ]
    assert {(flow["packets"], flow["lost"], flow["duplicates"]) for flow in flows} == {(200, 0, 0)}
    assert all(flow["delay_known"] and flow["clock"]["same_clock"] for flow in flows)
    assert {flow["bytes"] for flow in flows} == {200 * 100, 200 * 65_000}
    assert [one["packets"] for one in sent(found)] == [200, 200, 200]
    rows = pl.read_parquet(table)
    assert rows["packets"].sum() == 1200
    assert rows.filter(pl.col("packets") > 0)["delay_mean_ms"].null_count() == 0


def test_the_sender_tells_its_schedule_and_its_processor() -> None:
    found = pair(["127.0.0.1", "--pps", "1000", "--packets", "300"])
    told = json.loads(found["sends"][0]["out"])
    pacing = told["flows"][0]["pacing"]
    assert pacing["requested_packets_per_second"] == pytest.approx(1000)
    assert pacing["gap_error_ps"]["count"] == 299
    assert {"p50", "p99", "max"} <= set(pacing["gap_error_ps"])
    assert told["processor"]["shared"] in (True, False)
    assert found["sends"][0]["status"] == (1 if told["failed"] else 0)


def test_a_seed_repeats_gaps_and_sizes_and_another_does_not() -> None:
    flow = ["127.0.0.1", "--gap", "exponential(1 ms)", "--size", "uniform(64 B, 1400 B)", "--packets", "100"]
    found = pair(*([*flow, "--seed", seed] for seed in ("5", "5", "6")), recv=["--record-packets", "100"])
    sizes = [tuple(one["samples"]["bytes"]) for one in heard(found)]
    assert sizes[0] == sizes[1] != sizes[2]


def test_all_protocols_arrive() -> None:
    found = pair(
        ["127.0.0.1", "--protocol", "tcp", "--bytes", "3 MB"],
        ["127.0.0.1", "--protocol", "rtp", "--duration", "500 ms"],
        ["127.0.0.1", "--protocol", "icmp", "--packets", "3", "--interval", "20 ms"],
        ["127.0.0.1", "--voice", "G.729", "--packets", "10"],
        recv=["--tcp", "5002", "--rtp", "5004", "--udp", "5006"],
    )
    by_protocol = {flow["protocol"]: flow for flow in heard(found)}
    assert by_protocol["tcp"]["bytes"] == 3_000_000
    assert by_protocol["rtp"]["lost"] == 0 and by_protocol["rtp"]["packets"] > 0
    assert (by_protocol["udp"]["packets"], by_protocol["udp"]["bytes"]) == (10, 10 * 32)
    echo = sent(found, 2)[0]
    assert (echo["packets"], echo["lost"]) == (3, 0)


def test_flows_of_a_file_start_when_it_says(tmp_path: Path) -> None:
    script = tmp_path / "flows.yaml"
    script.write_text(
        "defaults: {to: 127.0.0.1, payload: 100 B}\n"
        "flows:\n"
        "  - {packets_per_second: 1000, packets: 50}\n"
        "  - {gap: {distribution: exponential, mean: 1 ms}, packets: 20, start: 300 ms}\n"
        "  - {preset: game-client, packets: 3, payload: null}\n".replace(", payload: null", "")
    )
    # The preset has sizes of its own, which a payload contradicts.
    with pytest.raises(BadFile, match=r"flows.yaml, flow 3: .*payload or a distribution"):
        read_flows(script)
    script.write_text("\n".join(script.read_text().splitlines()[:-1]))
    found = pair(["--flows", str(script)])
    flows = {flow["flow"]: flow for flow in heard(found)}
    assert (flows[1]["packets"], flows[2]["packets"]) == (50, 20)
    starts = {flow["flow"]: flow["start_ps"] for flow in sent(found)}
    assert starts[2] - starts[1] == 300_000_000_000


def test_a_trace_is_sent_line_by_line(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("# gap, payload\n0 s, 100 B\n2 ms, 1000 B\n\n7 us, 50 B\n")
    found = pair(["127.0.0.1", "--trace", str(trace)], recv=["--record-packets", "10"])
    assert heard(found)[0]["samples"]["bytes"] == [100, 1000, 50]
    trace.write_text("0 s, 100 B\n2 parsecs, 5 B\n")
    with pytest.raises(BadFile, match="line 2"):
        read_trace(trace)


def test_delays_between_two_clocks_rest_on_their_comparison_or_are_refused() -> None:
    another_clock = ["unshare", "--time", "--monotonic", "1000", "--fork", "--kill-child"]
    flow = ["127.0.0.1", "--pps", "200", "--packets", "40"]
    found = pair(flow, recv=["--idle", "1 s"], prefix=another_clock)
    if found["recv"]["status"] != 0 and "unshare" in found["recv"]["err"]:
        pytest.skip(f"time namespaces are refused here: {found['recv']['err']}")
    flow_heard = heard(found)[0]
    clock = flow_heard["clock"]
    assert not clock["same_clock"] and flow_heard["delay_known"]
    assert abs(clock["offset_ps"] - 1000 * 10**12) <= clock["bound_ps"]
    assert flow_heard["delay_ps"]["count"] == 40
    # On one machine nothing takes a second; without the offset it would be a thousand.
    assert flow_heard["delay_ps"]["max"] < 10**12
    unknown = heard(pair([*flow, "--no-clock"], recv=["--idle", "1 s", "--interval", "100 ms"], prefix=another_clock))[
        0
    ]
    assert not unknown["delay_known"] and "delay_ps" not in unknown
    assert "jitter_rfc4689_ps" in unknown
    assert not any(name.startswith("delay") for name in unknown["intervals"]["times_ps"])


def test_a_comparison_of_clocks_holds_for_the_flows_that_it_was_made_for() -> None:
    flow = ["127.0.0.1", "--pps", "200", "--packets", "40"]
    first, second = heard(pair(flow, [*flow, "--no-clock"]))
    assert first["delay_known"] and first["sent_packets"] == 40
    # The same number from the same address, but nobody said by which clock its datagrams were stamped.
    assert first["flow"] == second["flow"]
    assert not second["delay_known"] and "delay_ps" not in second and second["clock"] is None
    assert second["sent_packets"] is None


@pytest.mark.quiet
def test_a_comparison_holds_while_the_flow_lasts() -> None:
    flow = ["127.0.0.1", "--pps", "200", "--duration", "1500 ms"]
    (found,) = heard(pair(flow, recv=["--duration", "1 s"]))
    assert found["delay_known"] and found["sent_packets"] is None


@pytest.mark.alone
def test_what_is_lost_after_the_last_arrival_is_known_where_the_sender_tells() -> None:
    def send_what_partly_arrives() -> None:
        with Machine() as machine, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            assert compare_clocks(machine, "127.0.0.1", clock_port) is not None
            for sequence in range(5):
                sender.sendto(struct.pack(">IIQ", sequence, 1, machine.now_ps() // 1000), ("127.0.0.1", port))
            from_port = sender.getsockname()[1]
            told = [
                ToldFlow(1, from_port, port, 12),
                ToldFlow(2, from_port, port, 3),
                ToldFlow(3, from_port, port, None),
            ]
            tell_flows(machine, "127.0.0.1", told, clock_port)

    port, clock_port = free_ports(2)
    settings: dict[str, Any] = {"udp": [port], "tcp": (), "rtp": (), "clock_port": clock_port, "duration": "300 ms"}
    received = receive(**settings, ready=send_what_partly_arrives)
    told = [(flow.report.packets, flow.report.lost, flow.sent) for flow in received.flows]
    assert told == [(5, 7, 12), (0, 3, 3)]
    assert received.flows[1].report.errors == ("nothing of this flow arrived",)
    assert all(flow.delay_known for flow in received.flows)


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as held:
        found = [held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(count)]
        for one in found:
            one.bind(("0.0.0.0", 0))
        return [one.getsockname()[1] for one in found]


@pytest.mark.quiet
def test_a_receiver_that_starts_late_says_how_much_it_missed() -> None:
    found = pair(["127.0.0.1", "--pps", "100", "--packets", "600"], late=30)
    (flow,) = heard(found)
    missed = flow["first_number"]
    assert missed >= 30 and flow["lost"] == missed == 600 - flow["packets"]
    assert f"the first {missed} datagrams were lost or sent before this receiver listened" in flow["errors"][0]


def test_what_the_receiving_machine_had_no_room_for_is_counted() -> None:
    found = pair(["127.0.0.1", "--unpaced", "--payload", "64 B", "--duration", "300 ms"])
    told = json.loads(found["recv"]["out"])
    dropped = sum(int(text.rpartition("(")[2].split()[0]) for text in told["errors"] if "times)" in text)
    assert told["flows"][0]["packets"] + dropped == sent(found)[0]["packets"]


def test_a_datagram_above_the_mtu_is_refused_where_fragments_are_forbidden() -> None:
    flow = ["--payload", "3000 B", "--pps", "100", "--packets", "5"]
    found = pair(
        ["127.0.0.1", *flow, "--no-fragment"], ["::1", *flow, "--no-fragment"], ["127.0.0.1", *flow], ["::1", *flow]
    )
    for place in (0, 1):
        assert found["sends"][place]["status"] == 1
        assert "3000 bytes of payload exceeds the MTU" in sent(found, place)[0]["errors"][0]
    assert [flow["packets"] for flow in heard(found)] == [5, 5]


def test_a_receiver_that_is_not_there_is_told() -> None:
    found = pair(["127.0.0.1", "--pps", "200", "--packets", "20", "--no-clock"], recv=None)
    errors = sent(found)[0]["errors"]
    assert "nobody listened at 127.0.0.1:5003" in errors[0] and "came back between" in errors[-1]
    assert found["sends"][0]["status"] == 1 and sent(found)[0]["failed"]
    # What comes back of the last datagram is looked for before the socket is closed.
    one = pair(["::1", "--packets", "1"], recv=None)
    assert one["sends"][0]["status"] == 1 and "nobody listened at [::1]:5003" in sent(one)[0]["errors"][0]
    video = pair(["127.0.0.1", "--protocol", "rtp", "--duration", "200 ms"], recv=None)
    assert video["sends"][0]["status"] == 1 and "nobody listened at 127.0.0.1:5004" in sent(video)[0]["errors"][0]
    refused = pair(["127.0.0.1", "--protocol", "tcp", "--bytes", "1 MB"], recv=None)["sends"][0]
    assert refused["status"] == 1 and "connection refused" in refused["out"]


def beside_another(address: str, *command: str) -> subprocess.CompletedProcess[str]:
    """Run `command` of twinnet where another program has UDP port 5003 of `address`."""
    code = (
        "import subprocess, sys, socket\n"
        "subprocess.run(['ip', 'link', 'set', 'lo', 'up'], check=True)\n"
        f"other = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); other.bind(({address!r}, 5003))\n"
        "from twinnet.cli import run\n"
        f"sys.exit(run({list(command)}))\n"
    )
    done = subprocess.run([*NAMESPACES, sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if "unshare failed" in done.stderr:
        pytest.skip("user namespaces are refused here")
    return done


def test_a_receiver_that_is_no_twinnet_may_hear_and_the_sender_says_that_it_cannot_know() -> None:
    done = beside_another("127.0.0.1", "send", "127.0.0.1", "--packets", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    said = " ".join(done.stdout.split())
    assert "no `twinnet recv` answered there; UDP itself does not show whether anybody receives" in said


def test_a_port_in_use_is_named_with_the_remedy() -> None:
    done = beside_another("0.0.0.0", "recv", "--udp", "5003")
    assert done.returncode == 1
    assert "UDP port 5003 cannot be used: address 0.0.0.0:5003 is in use" in done.stderr
    assert "ss -lnp" in done.stderr


def test_what_was_sent_is_a_table_with_a_row_for_each_flow(tmp_path: Path) -> None:
    table = tmp_path / "sent.parquet"
    flow = ["--pps", "500", "--packets", "100", "--payload", "200 B", "--parallel", "2"]
    pair(["127.0.0.1", *flow, "--table", str(table)], recv=["--udp", "5003"])
    rows = pl.read_parquet(table)
    assert rows["flow"].to_list() == [1, 2]
    assert rows["payload_bytes"].to_list() == [20_000, 20_000]
    assert rows["requested_packets_per_second"].to_list() == pytest.approx([500, 500])
    assert set(rows["processor"]) <= {"own", "shared"}
    assert (rows["gap_error_p50_us"] <= rows["gap_error_max_us"]).all()


def test_a_table_of_another_form_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    table = str(tmp_path / "sent.txt")
    done = subprocess.run(
        [str(Path(sys.executable).parent / "twinnet"), "send", "127.0.0.1", "--table", table],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "is neither .csv nor .parquet" in done.stderr


def test_streams_and_echo_requests_follow_processes() -> None:
    found = pair(
        [
            "127.0.0.1",
            *["--protocol", "tcp", "--dscp", "10", "--packets", "100"],
            "--gap",
            "gamma(2, 1 ms)",
            "--size",
            "uniform(16 B, 9 kB)",
        ],
        ["127.0.0.1", *["--protocol", "tcp", "--rate"], "2 Mbit", "--payload", "1000 B", "--duration", "500 ms"],
        [
            "127.0.0.1",
            *["--protocol", "icmp", "--packets", "50"],
            "--gap",
            "exponential(5 ms)",
            "--size",
            "normal(500 B, 100 B)",
        ],
        recv=["--tcp", "5002"],
    )
    drawn, even, echo = (sent(found, place)[0] for place in range(3))
    assert sorted(flow["bytes"] for flow in heard(found)) == sorted([drawn["bytes"], even["bytes"]])
    # Writes fall due until half a second after the connection: 125 of 4 ms each.
    assert even["bytes"] == 125_000
    assert drawn["pacing"]["gap_error_ps"]["count"] == 99
    assert (echo["packets"], echo["lost"], echo["pacing"]["gap_error_ps"]["count"]) == (50, 0, 49)


def test_files_of_frames_and_of_datagrams_may_stand_beside_the_flows(tmp_path: Path) -> None:
    (tmp_path / "trace.csv").write_text("0 s, 100 B\n2 ms, 200 B\n")
    (tmp_path / "frames.txt").write_text("# I, P\n5 kB\n\n800 B\n")
    flows = tmp_path / "flows.yaml"
    flows.write_text(
        "defaults: {to: 127.0.0.1}\nflows:\n  - {trace: trace.csv}\n"
        "  - {protocol: rtp, frame_sizes: frames.txt, duration: 1 s}\n"
    )
    datagrams, video = (one.app.fields for one in read_flows(flows))
    assert datagrams["trace"] == [[0, 100], [2_000_000_000, 200]]
    assert video["frame_bytes"] == [5000, 800] and "model" not in video
    (tmp_path / "frames.txt").write_text("5 kB\n800\n")
    with pytest.raises(BadFile, match=r"flows.yaml, flow 2: .*frames.txt, line 2: .*unit"):
        read_flows(flows)
    (tmp_path / "frames.txt").write_text("# none\n")
    with pytest.raises(BadFile, match=r"frames.txt has no entries"):
        read_flows(flows)
    (tmp_path / "trace.csv").unlink()
    with pytest.raises(BadFile, match=r"flows.yaml, flow 1: .*trace.csv cannot be read"):
        read_flows(flows)


def test_video_of_given_frames_is_sent_and_shaped(tmp_path: Path) -> None:
    frames = tmp_path / "frames.txt"
    frames.write_text("5 kB\n1 kB\n1 kB\n")
    how = ["--frame-sizes", str(frames), "--fps", "30", "--shaping", "200 ms", "--duration", "1 s"]
    found = pair(["127.0.0.1", "--protocol", "rtp", *how], recv=["--rtp", "5004"])
    (flow,) = heard(found)
    # Thirty frames, 70 kB of them, in packets of 1316 bytes that transport-stream headers fill by a 46th.
    assert flow["lost"] == 0 and 54 <= flow["packets"] <= 58


def test_nothing_received_is_no_failure(tmp_path: Path) -> None:
    table = tmp_path / "intervals.csv"
    found = pair(recv=["--udp", "5003", "--duration", "200 ms", "--table", str(table)])
    assert heard(found) == []
    with table.open() as file:
        assert next(iter(csv.reader(file)))[:2] == ["flow", "protocol"]


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, "needs a receiver"),
        ({"to": "127.0.0.1", "protocol": "sctp"}, "'sctp' is not known; allowed are udp, tcp, rtp, icmp"),
        ({"to": "127.0.0.1", "rate": "1 Mbit", "durration": "1 s"}, "no setting 'durration'.*duration"),
        ({"to": "127.0.0.1", "unpaced": True, "rate": "1 Mbit", "duration": "1 s"}, "unpaced source has no schedule"),
        ({"to": "127.0.0.1", "preset": "dns", "voice": "G.711"}, "preset or voice"),
        ({"to": "127.0.0.1", "preset": "quake", "duration": "1 s"}, "'quake' is not known"),
        ({"to": "127.0.0.1", "rate": "10", "duration": "1 s"}, "unit"),
        ({"to": "127.0.0.1", "rate": "1 Mbit", "duration": "1 s", "dscp": 64}, "0 to 63"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(BadValue, match=told):
        planned_flow(settings, 1)


def test_distributions_are_read_from_text() -> None:
    found = Distribution.parse("normal(500 B, 100 B, most=1200 B)", "size")
    assert found.to_spec("size", size_bytes) == {"distribution": "normal", "mean": 500.0, "std": 100.0, "most": 1200.0}
    assert Distribution.parse("pareto(1.5, scale=2 ms)", "gap").to_spec("gap", duration_ps)["shape"] == 1.5
    for text, told in (
        ("10 ms", "no distribution"),
        ("expo(10 ms)", "'expo' is not known"),
        ("exponential()", "exponential takes mean"),
        ("exponential(1 ms, 2 ms)", "takes mean"),
    ):
        with pytest.raises(BadValue, match=told):
            Distribution.parse(text, "gap")


@pytest.mark.quiet
def test_a_trace_is_repeated_and_silences_send_nothing(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    trace.write_text("1 ms, 100 B\n2 ms, 200 B\n")
    clocks = ["--clock-port", "5019"]
    found = pair(
        ["127.0.0.1", "--trace", str(trace), "--repeat", "--duration", "200 ms", *clocks],
        ["127.0.0.1", "--pps", "200", "--payload", "100 B", "--on", "constant(100 ms)", "--off", "constant(100 ms)",
         "--duration", "600 ms", *clocks],
        ["127.0.0.1", "--pps", "20000", "--packets", "2000", "--payload", "100 B", "--gather", *clocks],
        ["127.0.0.1", "--protocol", "tcp", "--bytes", "1 MB", "--congestion-control", "reno", *clocks],
        recv=clocks,
    )  # fmt: skip
    repeated, talking, gathered, stream = heard(found)
    # Two datagrams in 3 ms, and the mean of both sizes.
    assert 130 <= repeated["packets"] <= 134 and repeated["bytes"] / repeated["packets"] == pytest.approx(150, abs=2)
    # Half of 600 ms is silence.
    assert talking["packets"] == pytest.approx(60, abs=2)
    assert (gathered["packets"] + gathered["lost"], stream["bytes"]) == (2000, 1_000_000)
    # Both ends used the port that was named: clocks were compared.
    assert all(one["clock"]["same_clock"] for one in (repeated, talking, gathered))


@pytest.mark.quiet
def test_a_voice_with_silences_sends_less() -> None:
    call = ["127.0.0.1", "--voice", "G.711", "--duration", "2 s", "--seed", "3"]
    whole, suppressed = heard(pair(call, [*call, "--silence-suppression"]))
    assert suppressed["packets"] < 0.8 * whole["packets"] and suppressed["packets"] > 0


@pytest.mark.parametrize(("family", "starts"), [("-4", "127.0.0.1:"), ("-6", "[::1]:")])
def test_of_a_name_with_both_families_the_one_that_is_asked_for_is_used(
    tmp_path: Path, family: str, starts: str
) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 both\n::1 both\n")
    wanted = {"recv": ["--json"], "sends": [["both", family, "--pps", "500", "--packets", "20", "--json"]]}
    script = 'mount --bind "$1" /etc/hosts && exec "$2" "$3" "$4"'
    command = [
        *NAMESPACES,
        "--mount",
        "sh",
        "-c",
        script,
        "sh",
        str(hosts),
        sys.executable,
        str(PAIR),
        json.dumps(wanted),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if "unshare failed" in done.stderr:
        pytest.skip(f"user namespaces are refused here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    (flow,) = heard(json.loads(done.stdout))
    assert flow["from"].startswith(starts) and flow["packets"] == 20
