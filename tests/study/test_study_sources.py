"""Traffic of study files that is told datagram by datagram or frame by frame."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from twinnet.study.network_of import network_of
from twinnet.study.plan import plan_study
from twinnet.study.resolution import Study, read_study
from twinnet.study.specification import Traffic
from twinnet.study.store import ResultStore
from twinnet.traffic.app import App, Flow
from twinnet.yaml_source import SourceError, parse_yaml

UDP: dict[str, Any] = {"name": "t", "app": "udp", "from": ["h1"], "to": "h2", "port": 5003, "duration": "1 s"}
RTP: dict[str, Any] = UDP | {"app": "rtp", "port": 5004}
TCP: dict[str, Any] = {"name": "t", "app": "tcp", "from": ["h1"], "to": "h2", "port": 5002}
PING: dict[str, Any] = {"name": "t", "app": "ping", "from": ["h1"], "to": "h2", "count": 3}


def sender_of(entry: dict[str, Any]) -> dict[str, Any]:
    flow = Traffic.model_validate(entry).between("h1", 10**12)
    assert isinstance(flow, Flow)
    return dict(flow.sender.fields)


def test_a_trace_is_repeated_for_the_duration() -> None:
    fields = sender_of(UDP | {"trace": [["2 ms", "100 B"], ["0 s", "1000 B"]], "exact": True})
    assert (fields["trace"], fields["repeat"]) == ([[2_000_000_000, 100], [0, 1000]], True)
    assert (fields["exact"], fields["duration_ps"]) == (True, 10**12)


def test_frame_sizes_take_the_place_of_the_model() -> None:
    fields = sender_of(RTP | {"frame_sizes": ["5 kB", "800 B"], "frames_per_second": 25})
    assert fields["frame_bytes"] == [5000, 800] and "model" not in fields


def test_presets_rates_of_packets_and_unpaced_sources_stand_in_a_study() -> None:
    assert sender_of(UDP | {"preset": "dns"})["gap_ps"]["distribution"] == "exponential"
    assert sender_of(UDP | {"preset": "game-client", "dscp": 34, "fragment": False})["fragment"] is False
    poisson = sender_of(UDP | {"packets_per_second": 250.5, "process": "poisson", "payload": "100 B"})
    assert (poisson["packets_per_second"], poisson["process"], poisson["payload_bytes"]) == (250.5, "poisson", 100)
    assert sender_of(UDP | {"unpaced": True, "payload": "64 B"})["unpaced"] is True
    once = sender_of(UDP | {"trace": [["2 ms", "100 B"]], "repeat": False})
    assert "repeat" not in once and once["duration_ps"] == 10**12


def test_the_model_of_video_takes_its_parameters() -> None:
    fields = sender_of(RTP | {"group_frames": 12, "b_frames": 0, "variation": 0})
    assert fields["model"] == {"rate_bps": 1_026_000, "group_frames": 12, "b_frames": 0, "variation": 0.0}


def test_streams_and_echo_requests_take_schedules() -> None:
    gap = {"distribution": "exponential", "mean": "10 ms"}
    size = {"distribution": "uniform", "low": "100 B", "high": "9 kB"}
    stream = sender_of(TCP | {"gap": gap, "size": size, "dscp": 10, "duration": "1 s"})
    assert (stream["gap_ps"]["mean"], stream["size_bytes"]["high"], stream["dscp"]) == (10**10, 9000, 10)
    even = sender_of(TCP | {"rate": "1 Mbit", "process": "poisson", "payload": "2 kB", "bytes": "1 MB"})
    assert (even["rate_bps"], even["process"], even["payload_bytes"]) == (10**6, "poisson", 2000)
    assert even["bytes"] == 10**6
    assert "rate_bps" not in sender_of(TCP | {"bytes": "1 MB"})
    echo = Traffic.model_validate(PING | {"gap": gap, "size": size, "dscp": 10}).between("h1", 10**12)
    assert isinstance(echo, App) and echo.fields["gap_ps"]["mean"] == 10**10


FILES = {
    "trace.csv": "# gap, payload\n2 ms, 100 B\n0 s, 1000 B\n",
    "frames.txt": "5 kB\n800 B\n",
}


def study_with(files: dict[str, str], **traffic: Any) -> Study:
    content = {
        "study": "s",
        "title": "t",
        "question": "q",
        "clock": "virtual",
        "parameters": {"played": "trace.csv"} if "${played}" in traffic.values() else {},
        "network": {"template": "single:2"},
        "traffic": [UDP | traffic],
        "measurements": {"loss": {"of": "loss"}},
    }
    text = json.dumps(content)
    return read_study(parse_yaml(text, "study.yaml"), text=text, read_beside=files.__getitem__)


def test_traces_and_frame_sizes_may_stand_in_files_beside_the_study(tmp_path: Path) -> None:
    study = study_with(FILES, trace="${played}")
    assert study.specification.traffic[0].sends["trace"] == ((2 * 10**9, 100), (0, 1000))
    assert study.at({}).traffic == study.specification.traffic
    video = study_with(FILES, app="rtp", frame_sizes="frames.txt")
    assert video.specification.traffic[0].sends["frame_sizes"] == (5000, 800)
    # What a file holds has an effect on a run, and results keep it.
    other = study_with(FILES | {"trace.csv": "1 ms, 100 B\n"}, trace="trace.csv")
    assert plan_study(other)[0].digest != plan_study(study)[0].digest
    store = ResultStore(tmp_path / "results")
    store.write_study(other)
    assert store.read_study().specification == other.specification


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("2 ms\n", "trace.csv, line 1: '2 ms' is no gap and payload"),
        ("2 ms, 100 B\n2, 100 B\n", "trace.csv, line 2: .*unit"),
        ("2 ms, 100 kB\n", "trace.csv, line 1: the payload '100 kB' is out of range"),
        ("2 h, 100 B\n", "trace.csv, line 1: the gap '2 h' is out of range"),
        ("# nothing\n", "trace.csv has no entries"),
        ("0 s, 100 B\n", "one of its gaps must be above zero"),
        ("1 ms, 4 B\n", "8 B to 65507 B"),
        (None, "there is no file 'trace.csv' beside the study's"),
    ],
)
def test_a_bad_file_is_one_message_with_its_place(content: str | None, told: str) -> None:
    with pytest.raises(SourceError, match=rf"study.yaml:\d+:\d+: traffic\[0\].*{told}") as caught:
        study_with({} if content is None else {"trace.csv": content}, trace="trace.csv")
    assert len(caught.value.problems) == 1


def test_files_elsewhere_are_refused() -> None:
    with pytest.raises(SourceError, match="is no name of a file beside the study's"):
        study_with(FILES, trace="../trace.csv")


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        (UDP, "either 'rate', 'gap' or 'trace'"),
        (UDP | {"rate": "1 Mbit", "trace": [["1 ms", "100 B"]]}, "leave 'rate' out"),
        (UDP | {"trace": [["0 s", "100 B"]]}, "one of its gaps must be above zero"),
        (UDP | {"trace": [["1 ms", "5 B"]]}, "8 B to 65507 B"),
        (UDP | {"trace": [["1 ms", "100 B"]], "payload": "100 B"}, "leave 'payload' out"),
        (UDP | {"rate": "1 Mbit", "using": "programs", "exact": True}, "write 'using: apps'"),
        (RTP | {"rate": "1 Mbit", "frame_sizes": ["1 kB"]}, "leave 'rate' out"),
        (UDP | {"preset": "dns", "rate": "1 Mbit"}, "leave 'rate' out"),
        (UDP | {"unpaced": True, "rate": "1 Mbit"}, "leave 'rate' out"),
        (UDP | {"rate": "1 Mbit", "repeat": True}, "'repeat' is for a trace"),
        (UDP | {"using": "programs", "packets_per_second": 10}, "write 'using: apps'"),
        (RTP | {"frame_sizes": ["1 kB"], "b_frames": 1}, "leave 'b_frames' out"),
        (TCP | {"bytes": "1 MB", "payload": "100 B"}, "'payload' belongs to a schedule"),
        (TCP | {"bytes": "1 MB", "rate": "1 Mbit", "packets_per_second": 5}, "one of them"),
        (
            TCP | {"bytes": "1 MB", "packets_per_second": 5, "size": {"distribution": "constant", "value": "5 B"}},
            "'bytes' end",
        ),
        (TCP | {"bytes": "1 MB", "dscp": 3, "using": "programs"}, "write 'using: apps'"),
        (PING | {"interval": "1 s", "gap": {"distribution": "constant", "value": "1 s"}}, "not both"),
        (RTP | {"trace": [["1 ms", "100 B"]]}, "'trace' has no meaning for rtp traffic"),
    ],
)
def test_contradictions_are_refused(entry: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        Traffic.model_validate(entry)


def study_over(files: dict[str, str], trace: object, **levels: object) -> Study:
    content = {
        "study": "s",
        "title": "t",
        "question": "q",
        "clock": "virtual",
        "parameters": {"cell": "home.down"} if trace == "${cell}" else {},
        "network": {
            "hosts": {"h1": None, "h2": None},
            "switches": {"s1": None},
            "links": [{"between": ["h1", "s1"]}, {"between": ["s1", "h2"], "a_to_b": {"delivery_trace": trace}}],
        },
        "factors": {"place": {"text": "p", "levels": levels}} if levels else {},
        "traffic": [UDP | {"rate": "1 Mbit"}],
        "measurements": {"loss": {"of": "loss"}},
    }
    text = json.dumps(content)
    return read_study(parse_yaml(text, "study.yaml"), text=text, read_beside=files.__getitem__)


CELLS = {"home.down": "1\n2\n2\n", "train.down": "5\n9\n"}


def test_a_link_follows_the_trace_in_a_file_beside_the_study(tmp_path: Path) -> None:
    study = study_over(CELLS, "${cell}", home={"set": {"cell": "home.down"}}, train={"set": {"cell": "train.down"}})

    def followed(level: str) -> object:
        network = network_of(study.at({"place": level}), {"place": level}, 1)
        return network.find_link("s1", "h2").ab["delivery_trace"]

    assert (followed("home"), followed("train")) == ([1, 2, 2], [5, 9])
    store = ResultStore(tmp_path / "results")
    store.write_study(study)
    assert (tmp_path / "results" / "train.down").read_text() == CELLS["train.down"]
    assert store.read_study().specification == study.specification


def test_a_level_may_change_the_trace_that_a_link_follows() -> None:
    study = study_over(CELLS, [3], train={"links": {"s1-h2": {"delivery_trace": "train.down"}}})
    network = network_of(study.at({"place": "train"}), {"place": "train"}, 1)
    assert network.find_link("s1", "h2").ab["delivery_trace"] == [5, 9]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("home.down", "home.down, line 2: 'x' is no moment"),
        ("none.down", "there is no file 'none.down' beside the study's"),
        ("../home.down", "is no name of a file beside the study's"),
    ],
)
def test_a_bad_file_of_a_trace_is_one_message_with_its_place(name: str, told: str) -> None:
    with pytest.raises(SourceError, match=rf"study.yaml:\d+:\d+: network.links\[1\].a_to_b.delivery_trace: .*{told}"):
        study_over({"home.down": "1\nx\n"}, name)
