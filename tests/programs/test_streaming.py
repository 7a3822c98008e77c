"""Video streamed by real programs: clips, how received video is judged, and streams through a lab."""

from __future__ import annotations

import math
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import twinnet as tn
from labs_here import a_lab_can_run
from pydantic import ValidationError
from twinnet import programs
from twinnet.errors import BadValue, ProgramFailed
from twinnet.programs.clip import run_ffmpeg
from twinnet.results.flow_report import FlowReport
from twinnet.study.program_traffic import ProgramTraffic
from twinnet.study.specification import Traffic

pytestmark = pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed")

in_a_lab = pytest.mark.skipif(not a_lab_can_run(), reason="no lab can run on this machine; see `twinnet doctor`")
SECONDS, RATE = 2, 30


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> programs.Clip:
    path = tmp_path_factory.mktemp("clip") / "clip.ts"
    return programs.make_clip(path, duration=f"{SECONDS} s", size="320x240", frames_per_second=RATE, rate="300 kbit")


@pytest.fixture
def lossy() -> Iterator[tn.Network]:
    network = tn.Network()
    switch = network.switch("s1")
    network.link(network.host("h1"), switch, rate="10 Mbit")
    network.link(network.host("h2"), switch, rate="10 Mbit", loss="8 %")
    yield network


def streamed(network: tn.Network, clip: programs.Clip, **settings: str) -> FlowReport:
    with network.emulate() as lab:
        (report,) = programs.start(lab, programs.stream("h1", "h2", clip, **settings)).wait("60 s")
    return report


def plain() -> tn.Network:
    network = tn.Network()
    switch = network.switch("s1")
    for name in ("h1", "h2"):
        network.link(network.host(name), switch, rate="10 Mbit")
    return network


def test_a_clip_is_the_same_however_many_processors_there_are(clip: programs.Clip, tmp_path: Path) -> None:
    all_of_them = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(all_of_them)})
    try:
        on_one = programs.make_clip(
            tmp_path / "clip.ts", duration=f"{SECONDS} s", size="320x240", frames_per_second=RATE, rate="300 kbit"
        )
    finally:
        os.sched_setaffinity(0, all_of_them)
    assert on_one.path.read_bytes() == clip.path.read_bytes()


def test_a_clip_has_the_frames_that_were_asked_for_and_is_equal_to_itself(clip: programs.Clip) -> None:
    assert clip.frames == SECONDS * RATE
    seen = programs.judge_video(clip.path, clip.path)
    assert (seen.frames_sent, seen.frames_complete, seen.frames_damaged, seen.frames_lost) == (60, 60, 0, 0)
    assert seen.psnr_db == math.inf
    assert seen.ssim == 1.0


def test_lost_frames_are_counted_and_judged_by_what_was_shown_in_their_place(
    clip: programs.Clip, tmp_path: Path
) -> None:
    # The second half begins with a frame that refers to none: without the first half it is as it was.
    for name, part in (("second", ["-ss", "1"]), ("first", ["-t", "1"])):
        half = tmp_path / f"{name}.ts"
        run_ffmpeg([*part, "-i", str(clip.path), "-c", "copy", "-copyts", str(half)], "cut the clip")
        seen = programs.judge_video(clip.path, half)
        assert (seen.frames_complete, seen.frames_damaged, seen.frames_lost) == (30, 0, 30), name
        assert seen.psnr_db is not None and seen.ssim is not None
        # In the place of the second half the last frame of the first stood still; before the first there was nothing.
        assert (5 < seen.psnr_db < 40 and seen.ssim < 1) if name == "first" else seen.psnr_db == math.inf


def test_damaged_frames_are_told_from_whole_ones(clip: programs.Clip, tmp_path: Path) -> None:
    content = bytearray(clip.path.read_bytes())
    # Null packets in the place of three packets of the transport stream, past the first second.
    for place in range(3):
        begin = (len(content) // 188 * 7 // 10 + place) * 188
        content[begin + 1 : begin + 4] = bytes([0x1F, 0xFF, 0x10])
    (tmp_path / "torn.ts").write_bytes(content)
    seen = programs.judge_video(clip.path, tmp_path / "torn.ts")
    assert seen.frames_damaged + seen.frames_lost > 0
    assert seen.frames_complete >= 30
    assert seen.frames_complete + seen.frames_damaged + seen.frames_lost == 60


def test_nothing_received_is_no_error(clip: programs.Clip, tmp_path: Path) -> None:
    for content in (b"", b"no video at all"):
        (tmp_path / "nothing.ts").write_bytes(content)
        seen = programs.judge_video(clip.path, tmp_path / "nothing.ts")
        assert (seen.frames_lost, seen.psnr_db, seen.ssim) == (60, None, None)


def test_what_cannot_be_made_or_streamed_is_refused(clip: programs.Clip, tmp_path: Path) -> None:
    for settings in ({"size": "321x240"}, {"picture": "cat"}, {"frames_per_second": 0}, {"duration": "0 s"}):
        with pytest.raises(BadValue):
            programs.make_clip(tmp_path / "no.ts", **settings)
    with pytest.raises(ProgramFailed, match="ffmpeg could not make the clip"):
        programs.make_clip(tmp_path / "missing" / "no.ts", duration="100 ms")
    for settings in (
        {"by": "mplayer"},
        {"over": "ftp"},
        {"received_by": "mplayer"},
        {"received_by": "vlc", "over": "http"},
    ):
        with pytest.raises(BadValue):
            programs.stream("h1", "h2", clip, **settings)
    with pytest.raises(BadValue, match="there is no clip"):
        programs.stream("h1", "h2", tmp_path / "none.ts")


@in_a_lab
@pytest.mark.quiet
def test_ffmpeg_streams_over_rtp_and_loss_is_seen_in_packets_and_pictures(
    clip: programs.Clip, lossy: tn.Network
) -> None:
    whole = streamed(plain(), clip)
    assert whole.packets and whole.lost == 0 and whole.bytes == whole.packets * 1328
    # 1394 bytes on the wire at 10 Mbit/s take 1115 us, and a line that was late catches up with 40 us at most.
    assert whole.gap is not None and whole.gap.min >= 1_075_000_000
    # A transport stream tells the end of a frame by the next one: the last ones are still awaited at the end.
    assert whole.video is not None and whole.video.frames_complete >= 55 and whole.video.frames_damaged == 0
    torn = streamed(lossy, clip)
    assert torn.lost and torn.video is not None
    assert torn.video.frames_complete < whole.video.frames_complete
    assert torn.video.ssim is not None and whole.video.ssim is not None and torn.video.ssim < whole.video.ssim


@in_a_lab
@pytest.mark.quiet
def test_http_loses_no_frame_where_packets_are_lost(clip: programs.Clip, lossy: tn.Network) -> None:
    report = streamed(lossy, clip, over="http")
    assert report.role == "client"
    assert report.video is not None
    assert (report.video.frames_complete, report.video.frames_lost) == (60, 0)


@in_a_lab
@pytest.mark.quiet
def test_rtsp_announces_and_sends(clip: programs.Clip) -> None:
    report = streamed(plain(), clip, over="rtsp")
    assert report.packets and report.video is not None
    assert report.video.frames_complete >= 55


@in_a_lab
@pytest.mark.quiet
@pytest.mark.skipif(shutil.which("vlc") is None, reason="VLC is not installed")
def test_vlc_streams_though_all_in_a_lab_are_root(clip: programs.Clip) -> None:
    report = streamed(plain(), clip, by="vlc")
    # VLC drops what its multiplexer holds at the end: less than half a second.
    assert report.packets and report.lost == 0 and report.video is not None
    assert report.video.frames_complete >= 40


@in_a_lab
@pytest.mark.quiet
@pytest.mark.skipif(shutil.which("vlc") is None, reason="VLC is not installed")
def test_vlc_receives_what_vlc_streams(clip: programs.Clip) -> None:
    report = streamed(plain(), clip, by="vlc", received_by="vlc")
    assert report.packets and report.lost == 0 and report.video is not None
    # The last half second stays with the sender's multiplexer, and VLC cannot decode what comes before it knows the
    # stream.
    assert report.video.frames_complete > 0 and report.video.frames_lost <= 40


@in_a_lab
@pytest.mark.quiet
@pytest.mark.skipif(shutil.which("vlc") is None, reason="VLC is not installed")
@pytest.mark.parametrize("over", ["rtsp", "http"])
def test_vlc_streams_to_a_receiver_that_asks(clip: programs.Clip, over: str) -> None:
    report = streamed(plain(), clip, by="vlc", over=over)
    assert report.video is not None and report.bytes
    assert report.video.frames_complete >= 40
    assert (report.role, report.lost) == (("client", None) if over == "http" else ("sink", 0))


@in_a_lab
@pytest.mark.quiet
@pytest.mark.skipif(shutil.which("vlc") is None, reason="VLC is not installed")
def test_a_study_streams_over_what_it_says() -> None:
    ways = [("ffmpeg", "http", 8080), ("ffmpeg", "rtsp", 8554), ("vlc", "http", 8081), ("vlc", "rtsp", 8555)]
    traffic = [
        Traffic.model_validate(
            {"name": f"{by}-{over}", "app": "rtp", "using": "programs", "streamer": by, "over": over, "port": port}
            | {"from": ["h1"], "to": "h2", "duration": "2 s", "rate": "300 kbit", "frames_per_second": 30}
            | {"start": f"{500 * place} ms"}
        )
        for place, (by, over, port) in enumerate(ways)
    ]
    with plain().emulate() as lab:
        started = ProgramTraffic(lab, traffic, 10**12)
        started.serve()
        started.start(lab.now_ps() + 10**12, lambda moment_ps: time.sleep(max(0.0, (moment_ps - lab.now_ps()) / 1e12)))
        while not started.ended():
            time.sleep(0.1)
        seen = {flow.entry.name: flow.reports[0].video for flow in started.flows()}
    shown = {name: video.frames_sent - video.frames_lost for name, video in seen.items() if video is not None}
    assert shown.keys() == {f"{by}-{over}" for by, over, _ in ways}
    # Of 60: what VLC's multiplexer holds at the end is dropped, up to half a second.
    assert min(shown.values()) >= 40, shown


def test_a_study_refuses_what_a_source_cannot_stream_over() -> None:
    entry = {"name": "film", "app": "rtp", "from": ["h1"], "to": "h2", "port": 5004, "duration": "2 s"}
    with pytest.raises(ValidationError, match="the built-in source sends over rtp"):
        Traffic.model_validate(entry | {"over": "http"})
    assert Traffic.model_validate(entry | {"over": "rtp"}).over == "rtp"
