"""OpenFlow in captures: messages by type and sender, and how long answers took."""

from __future__ import annotations

import gzip
import json
import struct
from pathlib import Path

import pytest
from capture_files import Stamped, frame, write_pcap
from twinnet import _core
from twinnet.cli import run as command_line
from twinnet.errors import BadFile
from twinnet.results.openflow_capture import analyze_openflow

CONTROLLER, SWITCH = ("10.0.0.9", 6653), ("10.0.0.1", 40_000)
MS = 1_000_000
START_NS = 1_700_000_000 * 10**9


class Talk:
    """Two ends that talk over TCP, and the frames of it."""

    def __init__(self, controller: tuple[str, int] = CONTROLLER, switch: tuple[str, int] = SWITCH) -> None:
        self.controller, self.switch = controller, switch
        self.frames: list[Stamped] = []
        # Sequence numbers wrap.
        self.next = {controller: 2**32 - 5, switch: 1000}
        self.segment(0, switch, b"", flags=2)
        self.segment(0, controller, b"", flags=0x12)

    def segment(
        self, at_ms: float, source: tuple[str, int], payload: bytes, *, flags: int = 0x18, back: int = 0
    ) -> None:
        """Send; `back` bytes of it were sent before."""
        target = self.switch if source == self.controller else self.controller
        sequence = (self.next[source] - back) % 2**32
        head = struct.pack("!HHIIBBHHH", source[1], target[1], sequence, 0, 5 << 4, flags, 65535, 0, 0)
        self.frames.append((START_NS + round(at_ms * MS), frame(source[0], target[0], 6, head + payload)))
        self.next[source] = (sequence + len(payload) + bool(flags & 2)) % 2**32


def message(kind: int, xid: int, body: bytes = b"", version: int = 4) -> bytes:
    return struct.pack("!BBHI", version, kind, 8 + len(body), xid) + body


def packet_in(xid: int, data: bytes, buffer: int = 0xFFFFFFFF) -> bytes:
    match = struct.pack("!HHI", 1, 4, 0)
    return message(10, xid, struct.pack("!IHBBQ", buffer, len(data), 0, 0, 0) + match + bytes(2) + data)


def rows(talk: Talk, path: Path) -> tuple[list[dict[str, object]], list[dict[str, object]], tuple[str, ...]]:
    found = analyze_openflow(write_pcap(path / "control.pcap", talk.frames))
    return found.messages.to_dicts(), found.round_trips.to_dicts(), found.notes


def test_messages_and_round_trips_of_a_connection(tmp_path: Path) -> None:
    talk = Talk()
    talk.segment(1, talk.switch, _core.OpenFlow13().request("hello", 1))
    talk.segment(2, talk.controller, _core.OpenFlow13().request("hello", 2) + _core.OpenFlow13().request("features", 3))
    talk.segment(5, talk.switch, message(6, 3, bytes(24)))
    # An answer in two segments, of which the second comes first; and one that is sent again.
    talk.segment(10, talk.controller, _core.OpenFlow13().request("barrier", 4))
    reply = message(21, 4)
    talk.next[talk.switch] += 3
    talk.segment(11, talk.switch, reply[3:])
    talk.next[talk.switch] -= 8
    talk.segment(14, talk.switch, reply[:3])
    talk.next[talk.switch] += 5
    talk.segment(15, talk.switch, reply, back=8)
    # A request without an answer.
    talk.segment(20, talk.controller, message(2, 5, b"alive"))
    messages, trips, notes = rows(talk, tmp_path)
    assert {(one["sender"], one["type"]): (one["messages"], one["bytes"]) for one in messages} == {
        ("switch", "hello"): (1, len(_core.OpenFlow13().request("hello", 1))),
        ("controller", "hello"): (1, len(_core.OpenFlow13().request("hello", 1))),
        ("controller", "features_request"): (1, 8),
        ("switch", "features_reply"): (1, 32),
        ("controller", "barrier_request"): (1, 8),
        ("switch", "barrier_reply"): (1, 8),
        ("controller", "echo_request"): (1, 13),
    }
    assert {(one["connection"], one["version"]) for one in messages} == {("10.0.0.9:6653 - 10.0.0.1:40000", "1.3")}
    assert {one["request"]: (one["answer"], one["asked"], one["answered"]) for one in trips} == {
        "features_request": ("features_reply", 1, 1),
        "barrier_request": ("barrier_reply", 1, 1),
        "echo_request": ("", 1, 0),
    }
    assert {one["request"]: one["mean_ms"] for one in trips} == {
        "features_request": pytest.approx(3.0),
        "barrier_request": pytest.approx(4.0),
        "echo_request": None,
    }
    assert not notes


def test_a_packet_in_is_answered_by_its_buffer_or_its_frame(tmp_path: Path) -> None:
    talk = Talk()
    for number in range(3):
        talk.segment(10 * number, talk.switch, packet_in(0, bytes([number]) * 60))
    talk.segment(30, talk.switch, packet_in(0, b"", buffer=77))
    talk.segment(32, talk.controller, _core.OpenFlow13().packet_out(1, "output:2", bytes([1]) * 60, 0xFFFFFFFF, 9))
    talk.segment(36, talk.controller, _core.OpenFlow13().flow("add", "actions=output:2", False, 77, 10))
    _, trips, _ = rows(talk, tmp_path)
    assert {one["answer"]: (one["asked"], one["answered"], one["max_ms"]) for one in trips} == {
        "packet_out": (4, 1, pytest.approx(22.0)),
        "flow_mod": (4, 1, pytest.approx(6.0)),
    }


def test_other_ports_and_versions_are_known_by_their_hello_and_tls_is_left_out(tmp_path: Path) -> None:
    talk = Talk(("10.0.0.9", 7777), SWITCH)
    talk.segment(1, talk.controller, message(0, 1, version=1))
    talk.segment(2, talk.controller, message(16, 2, bytes(4), version=1))
    talk.segment(3, talk.switch, message(17, 2, bytes(4), version=1))
    hidden = Talk(CONTROLLER, ("10.0.0.2", 40_001))
    hidden.segment(1, hidden.switch, b"\x16\x03\x01\x00\x20" + bytes(40))
    web = Talk(("10.0.0.9", 80), ("10.0.0.2", 40_002))
    web.segment(1, web.switch, b"GET / HTTP/1.1\r\n\r\n")
    talk.frames = sorted([*talk.frames, *hidden.frames, *web.frames], key=lambda one: one[0])
    messages, trips, _ = rows(talk, tmp_path)
    assert {(one["connection"], one["version"], one["type"]) for one in messages} == {
        ("10.0.0.9:7777 - 10.0.0.1:40000", "1.0", kind) for kind in ("hello", "stats_request", "stats_reply")
    }
    assert [(one["request"], one["answer"]) for one in trips] == [("stats_request", "stats_reply")]


def test_what_a_capture_lost_is_told(tmp_path: Path) -> None:
    talk = Talk()
    talk.segment(1, talk.controller, message(2, 1))
    talk.next[talk.controller] += 100
    for number in range(300):
        talk.segment(2 + number, talk.controller, message(2, 2 + number))
    messages, _, notes = rows(talk, tmp_path)
    assert messages[0]["messages"] == 301
    assert notes == ("OpenFlow was cut 1 times by segments that the capture lost",)


def test_a_capture_without_openflow_is_told_and_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    assert rows(Talk(), tmp_path)[2] == ("there is no OpenFlow in it",)
    (tmp_path / "text.pcap").write_text("no capture")
    with pytest.raises(BadFile, match="neither pcap nor pcapng"):
        analyze_openflow(tmp_path / "text.pcap")
    with pytest.raises(BadFile, match="No such file"):
        analyze_openflow(tmp_path / "missing.pcap")


@pytest.mark.parametrize("form", ["pcap", "pcapng", "gzip", "cut off"])
def test_the_command_tells_openflow_beside_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    talk = Talk()
    talk.segment(1, talk.controller, message(5, 1))
    talk.segment(1.5, talk.switch, message(6, 1, bytes(24)))
    path = write_pcap(tmp_path / "control.pcap", talk.frames)
    if form == "pcapng":
        path.write_bytes(as_pcapng(talk.frames))
    elif form == "gzip":
        path.write_bytes(gzip.compress(path.read_bytes()))
    elif form == "cut off":
        path.write_bytes(path.read_bytes() + bytes(7))
    assert command_line(["analyze", str(path), "--openflow", "--csv", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "OpenFlow round trips" in shown and "features_reply" in shown
    assert "features_request" in (tmp_path / "control-openflow_round_trips.csv").read_text()
    assert command_line(["analyze", str(path), "--openflow", "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    (trip,) = told["openflow_round_trips"]
    assert (trip["request"], trip["mean_ms"]) == ("features_request", pytest.approx(0.5))
    assert command_line(["analyze", str(path), str(path), "--openflow", "--match"]) == 2
    assert "--openflow decodes captures in files" in capsys.readouterr().err


def as_pcapng(packets: list[Stamped]) -> bytes:
    """A capture with one interface, of nanoseconds."""

    def block(kind: int, body: bytes) -> bytes:
        length = 12 + len(body)
        return struct.pack("<II", kind, length) + body + struct.pack("<I", length)

    parts = [block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    parts.append(block(1, struct.pack("<HHI", 1, 0, 0) + struct.pack("<HHB3x", 9, 1, 9) + bytes(4)))
    for time_ns, packet in packets:
        head = struct.pack("<IIIII", 0, time_ns >> 32, time_ns & 0xFFFFFFFF, len(packet), len(packet))
        parts.append(block(6, head + packet + bytes(-len(packet) % 4)))
    return b"".join(parts)
