"""Options of commands that no other test uses, each by what it does."""

from __future__ import annotations

import json
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import twinnet as tn
from fluid_lab import FluidLab
from labs_here import needs_a_lab
from twinnet.cli import run as command_line
from twinnet.cli.study_commands import run_study
from twinnet.study.campaign import Campaign
from twinnet.study.resolution import load_study

TWINNET = [sys.executable, "-c", "from twinnet.cli import main; main()"]


def called(*arguments: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*TWINNET, *arguments], capture_output=True, text=True, timeout=60, check=False, **settings)


def told(*arguments: str, **settings: Any) -> Any:
    """What a command prints with ``--json``, as one value."""
    done = called(*arguments, **settings)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_certificates_last_for_the_days_that_are_asked_for(tmp_path: Path) -> None:
    found = told("cluster", "new", str(tmp_path / "keys"), "--days", "3", "--json")
    assert found == {"folder": str(tmp_path / "keys"), "days": 3}
    import ssl

    known = ssl._ssl._test_decode_cert(str(tmp_path / "keys" / "certificate.pem"))  # type: ignore[attr-defined]
    lasts_s = ssl.cert_time_to_seconds(known["notAfter"]) - ssl.cert_time_to_seconds(known["notBefore"])
    # A certificate may begin a little before it was made, for clocks that are late.
    assert 3 * 86_400 <= lasts_s < 4.1 * 86_400


def test_a_worker_takes_no_open_port_of_another_machine() -> None:
    without = called("worker", "--at", "tcp://127.0.0.1:9", "--json")
    assert without.returncode == 2 and "--without-tls" in without.stderr
    elsewhere = called("worker", "--at", "tcp://192.0.2.1:9", "--without-tls", "--json")
    assert elsewhere.returncode == 2 and "not on loopback" in elsewhere.stderr


def test_a_new_study_is_written_to_the_file_that_is_named(tmp_path: Path) -> None:
    file = tmp_path / "here.yaml"
    assert told("new", "mine", "--out", str(file), "--json") == {"file": str(file)}
    assert file.read_text().startswith("study: mine") or "study: mine" in file.read_text()
    assert not (tmp_path / "mine").exists()


def test_a_new_policy_and_its_test_are_in_the_folder_that_is_named(tmp_path: Path) -> None:
    found = told("policy", "new", "mine", "--in", str(tmp_path), "--json")
    assert sorted(found) == [str(tmp_path / "mine.py"), str(tmp_path / "test_mine.py")]
    assert all(Path(one).read_text() for one in found)


def test_a_completion_is_one_value_with_its_shell() -> None:
    found = told("completion", "bash", "--json")
    assert found["shell"] == "bash" and "_TWINNET_COMPLETE=bash_complete" in found["script"]


@pytest.mark.parametrize("threads", ["0", "65", "some"])
def test_a_number_of_threads_that_no_lab_has_is_refused_by_each_command(
    threads: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["run", "tcp-udp-queues"], ["lab", "single:2"]):
        assert command_line([*command, "--fabric-threads", threads]) == 2
        assert "'auto' and whole numbers from 1 to 64" in capsys.readouterr().err


def test_a_twin_has_jobs_within_bounds_and_real_machines_only_where_they_can_count(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert command_line(["twin", "tcp-udp-queues", "--preset", "tiny", "--jobs", "257"]) == 2
    assert "1<=x<=256" in capsys.readouterr().err
    assert command_line(["twin", "tcp-udp-queues", "--preset", "tiny", "--real", "--jobs", "2"]) != 0
    assert "ports of real switches are not counted" in capsys.readouterr().err


@needs_a_lab
def test_a_lab_of_models_has_the_seed_the_jitter_and_the_threads_that_are_asked_for() -> None:
    done = called(
        "lab", "single:2", "--model", "--jitter", "1 ms", "--seed", "3", "--fabric-threads", "1", "--json",
        "-c", "links", "-c", "h1 true",
    )  # fmt: skip
    links, program = (json.loads(line) for line in done.stdout.splitlines())
    jitter = links["result"][0]["ab"]["config"]["jitter"]
    assert jitter == {"distribution": "uniform", "scale_ps": 10**9}
    assert program["error"]["message"] == "h1 is a model and runs no programs"
    refused = called("lab", "single:2", "--seed", "-1")
    assert refused.returncode == 2 and "x>=0" in refused.stderr


@needs_a_lab
def test_a_controller_is_started_with_the_lab_at_the_port_that_it_is_given(tmp_path: Path) -> None:
    # It notes the port of the connection that it takes, says hello in OpenFlow 1.3, and asks the switch who it is.
    controller = tmp_path / "controller.py"
    controller.write_text(
        "import pathlib, socket, sys, time\n"
        "listener = socket.create_server(('127.0.0.1', int(sys.argv[1])))\n"
        "connection, _ = listener.accept()\n"
        "pathlib.Path(sys.argv[2]).write_text(str(connection.getsockname()[1]))\n"
        "connection.sendall(bytes([4, 0, 0, 8, 0, 0, 0, 1, 4, 5, 0, 8, 0, 0, 0, 2]))\n"
        "time.sleep(60)\n"
    )
    note = tmp_path / "port"
    command = f"{sys.executable} {controller} {{port}} {note}"
    done = called("lab", "single:2", "--controller-run", command, "--wait", "50 s", "-c", "h1 true")
    assert done.returncode == 0, done.stderr
    assert int(note.read_text()) > 0


def written(path: Path) -> list[tuple[int, int]]:
    """The stored and the whole length of each frame of a capture."""
    data, place, found = path.read_bytes(), 0, list[tuple[int, int]]()
    while place + 12 <= len(data):
        kind, length = struct.unpack_from("<II", data, place)
        if kind == 6:
            found.append(struct.unpack_from("<II", data, place + 20))
        place += length
    return found


@needs_a_lab
def test_a_capture_keeps_one_direction_a_part_of_each_frame_and_no_more_than_its_limit(tmp_path: Path) -> None:
    def captured(name: str, *options: str) -> Any:
        process = subprocess.Popen(
            [*TWINNET, "capture", lab.name, "s1-eth2", str(tmp_path / name), "--duration", "3 s", *options, "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        return process

    running: list[subprocess.Popen[str]] = []
    with tn.templates.single(2).emulate() as lab:
        captured("out.pcapng", "--direction", "out", "--snap", "60 B")
        captured("in.pcapng", "--direction", "in")
        captured("little.pcapng", "--direction", "out", "--limit", "5 kB")
        captured("ring.pcapng", "--ring", "2", "5 kB", "--direction", "out")
        # It goes on until all captures have had their three seconds of it.
        flow = lab.start(tn.apps.udp("h1", "h2", packets_per_second=20, duration="5 min", payload="1000 B"))
        ends = [process.communicate(timeout=60) for process in running]
        flow.stop()
    assert all(process.returncode == 0 for process in running), ends
    cut = [one for one in written(tmp_path / "out.pcapng") if one[1] == 1042]
    assert len(cut) >= 10 and {stored for stored, _ in cut} == {60}
    # h2 answers no datagram.
    assert not [one for one in written(tmp_path / "in.pcapng") if one[1] == 1042]
    assert (tmp_path / "little.pcapng").stat().st_size <= 5_000 + 1_200
    kept = [path for path in tmp_path.iterdir() if path.name.startswith("ring")]
    assert 1 <= len(kept) <= 2 and all(path.stat().st_size <= 5_000 + 1_500 for path in kept)


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """Twenty datagrams of 1000 B, at h1 and at h2."""
    with tn.templates.single(2, rate="10 Mbit").simulate(seed=1) as lab:
        captures = [lab.capture(port, str(tmp_path / f"{port}.pcapng")) for port in ("h1-eth0", "h2-eth0")]
        lab.wait([lab.start(tn.apps.udp("h1", "h2", packets_per_second=100, packets=20, payload="1000 B"))])
        for one in captures:
            one.stop()
    return tmp_path


def test_rates_of_an_analysis_count_the_bytes_of_the_layer_that_is_asked_for(capture: Path) -> None:
    def bits(layer: str) -> float:
        (found,) = told("analyze", str(capture / "h2-eth0.pcapng"), "--layer", layer, "--json")
        (one,) = found["throughput"]
        return one["throughput_bps"]

    rates = {layer: bits(layer) for layer in ("payload", "network", "link", "wire")}
    assert rates["payload"] < rates["network"] < rates["link"] < rates["wire"]
    assert rates["payload"] % 8000 == 0


def test_an_option_of_the_estimate_is_seen_in_it() -> None:
    place = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with place:
        place.bind(("127.0.0.1", 0))
        port = str(place.getsockname()[1])
        options = ["--port", port, "--duration", "300 ms", "--seed", "3", "--mtu", "1000", "--layer", "network"]
        done = called("abw", "127.0.0.1", *options, "-4", "--budget", "50 kB", "--json")
        greeting = place.recv(2000)
    # It spoke to the port that was named, and nobody answered.
    assert greeting and done.returncode == 1
    for wrong in (["--mtu", "91"], ["--port", "0"], ["--seed", "-1"], ["--budget", "little"], ["--layer", "air"]):
        assert called("abw", "127.0.0.1", *wrong).returncode == 2


def test_what_counters_say_beforehand_belongs_to_hybrid_and_hangs_together() -> None:
    alone = called("abw", "127.0.0.1", "--prior-std", "1 Mbit")
    assert alone.returncode == 2 and "prior_std tells of prior, which is not given" in alone.stderr
    window = called("abw", "127.0.0.1", "--prior", "5 Mbit", "--prior-window", "1 s")
    assert window.returncode == 2 and "prior_window tells of prior_std, which is not given" in window.stderr
    other = called("abw", "127.0.0.1", "--method", "pathload", "--prior", "5 Mbit")
    assert other.returncode == 2 and "pathload does not use a prior" in other.stderr
    unused = called("abw", "127.0.0.1", "--capacity", "10 Mbit", "--method", "ptr")
    assert unused.returncode == 2 and "ptr does not use a capacity" in unused.stderr
    assert called("abw", "127.0.0.1", "--method", "spruce", "--capacity", "none").returncode == 2
    own = called("abw", "127.0.0.1", "--preset", "published")
    assert own.returncode == 2 and "hybrid is twinnet's own: it was not published" in own.stderr


def test_packets_are_matched_by_as_many_bytes_as_are_asked_for(capture: Path) -> None:
    both = [str(capture / f"{port}.pcapng") for port in ("h1-eth0", "h2-eth0")]
    (one,) = told("analyze", *both, "--match", "--match-bytes", "16", "--json")["segments"]
    assert one["matched"] == one["sent"] == one["received"] > 0 and one["lost"] == 0
    assert called("analyze", *both, "--match", "--match-bytes", "65536").returncode == 2


def test_two_results_are_compared_by_their_invalid_runs_where_that_is_asked_for(tmp_path: Path) -> None:
    for verdict in ("valid", "invalid"):
        study = load_study("tcp-udp-queues", {}, preset="demo")
        assert run_study(Campaign(study, FluidLab(verdict), tmp_path / verdict), with_report=False) == 0
    first, second = (str(tmp_path / verdict) for verdict in ("valid", "invalid"))
    assert called("compare", first, second, "--json").returncode == 1
    both = told("compare", first, second, "--with-invalid", "--json")
    assert both["compared"] and both["only_first"] == both["only_second"] == 0


def test_the_scheduler_tells_where_it_listens_as_a_value() -> None:
    command = [*TWINNET, "scheduler", "--at", "tcp://127.0.0.1:0", "--without-tls", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as scheduler:
        assert scheduler.stdout is not None
        line = scheduler.stdout.readline()
        scheduler.terminate()
        said = scheduler.communicate(timeout=30)
    assert "tcp://127.0.0.1:" in json.dumps(json.loads(line)), (line, said)


def test_the_table_of_cases_is_written_into_the_page_that_is_named(tmp_path: Path) -> None:
    page = tmp_path / "openflow.md"
    before = (Path(__file__).parents[2] / "docs" / "reference" / "openflow.md").read_text()
    page.write_text(before)
    done = called("conformance", "twinnet", "--only", "barrier", "--write", str(page))
    assert done.returncode == 0, done.stderr
    # Of the few cases it has another table; the words around it stay.
    assert page.read_text() != before
    assert page.read_text().splitlines()[:3] == before.splitlines()[:3]


def test_of_a_name_with_both_families_probes_use_the_one_that_is_asked_for(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 both\n::1 both\n")
    script = 'mount --bind "$1" /etc/hosts && ip link set lo up && shift && exec "$@"'
    for family, place in (("-4", "127.0.0.1:5010"), ("-6", "[::1]:5010")):
        probe = [*TWINNET, "abw", "both", family, "--duration", "300 ms", "--json"]
        command = ["unshare", "--user", "--map-root-user", "--net", "--mount", "sh", "-c", script, "sh", str(hosts)]
        done = subprocess.run([*command, *probe], capture_output=True, text=True, timeout=60, check=False)
        if "unshare failed" in done.stderr:
            pytest.skip(f"user namespaces are refused here: {done.stderr.strip()}")
        assert done.returncode == 1 and place in done.stdout + done.stderr, (done.stdout, done.stderr)
