"""A viewer by ffmpeg or VLC, and ApacheBench, served by Python's own HTTP server, or over RTSP by VLC's."""

from __future__ import annotations

import shutil
import time
from typing import Literal

import pytest
from labs_here import a_lab_can_run
from pydantic import ValidationError
from twinnet import programs
from twinnet.errors import BadValue
from twinnet.network import templates
from twinnet.programs.file_server import object_of, served_folder
from twinnet.programs.viewer import viewing_of
from twinnet.programs.vlc_viewer import played_at_the_end
from twinnet.study.program_traffic import ProgramTraffic, program_transfer
from twinnet.study.traffic import Traffic
from twinnet.units import BitsPerSecond, Picoseconds

SECOND = 10**12
RATE = BitsPerSecond(400_000)

needs_lab = pytest.mark.skipif(not a_lab_can_run(), reason="no lab can run on this machine; see `twinnet doctor`")
needs_vlc = pytest.mark.skipif(shutil.which("vlc") is None, reason="VLC is not installed")
needs_ffmpeg = pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed")


def test_pictures_that_stand_still_for_half_a_second_are_stalls_and_shorter_waits_are_none() -> None:
    smooth = viewing_of([(0.0, 0.0), (0.5, 0.25), (1.0, 0.5), (1.5, 1.25)], 1.5, 100, 1000)
    assert (smooth.startup_s, smooth.stalls, smooth.stalled_s, smooth.played_s) == (0.5, 0, 0.0, 1.25)
    torn = viewing_of([(0.5, 0.5), (2.5, 1.0), (3.0, 1.5)], 5.0, 300, 1000)
    # 2 s for half a second of media, and 2 s of nothing at the end.
    assert (torn.stalls, torn.stalled_s, torn.played_at) == (2, 3.5, {1000: 1.5})
    assert torn.rate_bps == 1600
    assert viewing_of([(0.5, 0.0)], 5.0, 0, 1000).rate_bps is None


def test_vlc_has_played_to_the_end_what_it_had_not_told_yet() -> None:
    told = [(0.0, 0.0), (3.3, 3.1), (3.55, 3.4), (3.8, 3.4)]
    assert played_at_the_end(told, 4.05) == pytest.approx(3.9)
    assert played_at_the_end(told, 9.0) == pytest.approx(4.0), "but not what it stood still for"
    assert (played_at_the_end([], 1.0), played_at_the_end([(0.5, 0.0)], 1.0)) == (0.0, 0.0)


def test_a_served_object_has_its_size() -> None:
    assert (served_folder() / object_of("20 kB")).stat().st_size == 20_000


@needs_ffmpeg
@needs_lab
@pytest.mark.parametrize("by", ["ffmpeg", pytest.param("vlc", marks=needs_vlc)])
@pytest.mark.parametrize(("line", "smooth"), [("20 Mbit", True), ("200 kbit", False)])
def test_a_viewer_sees_a_clip_whole_where_the_line_carries_it_and_stalls_where_not(
    line: str, smooth: bool, by: Literal["ffmpeg", "vlc"]
) -> None:
    clip = programs.clip_to_watch(Picoseconds(4 * SECOND), RATE)
    with templates.single(2, rate=line).emulate() as lab:
        session = programs.watch("h1", "h2", clip, duration=Picoseconds(8 * SECOND), rate=RATE, by=by)
        (report,) = programs.start(lab, session).wait("60 s")
    seen = report.viewing
    assert seen is not None
    if smooth:
        # The last picture is shown a twenty-fifth of a second before the end; a busy machine starts late, not less.
        assert seen.played_s == pytest.approx(4.0, abs=0.3) and seen.stalls <= 1
        assert (report.bytes or 0) > 100_000
        # The encoder keeps its mean within a fifth; a transport stream adds a tenth and more of its own.
        assert seen.rate_bps == pytest.approx(RATE, rel=0.35)
    else:
        # Half of the rate at most: 8 s hold less than 4 s of media, a transport stream and HTTP another fifth less.
        assert seen.played_s < 3.7


@needs_vlc
@needs_ffmpeg
@needs_lab
def test_two_viewers_over_rtsp_have_a_stream_each_from_one_server_of_vlc() -> None:
    second = Picoseconds(SECOND)
    entry = {"app": "video", "using": "programs", "over": "rtsp", "port": 8554, "to": "h3", "duration": "4 s"}
    entry |= {"from": ["h1", "h2"], "apart": "500 ms", "ladder": ["400 kbit"], "name": "film"}
    with templates.single(3, rate="20 Mbit").emulate() as lab:
        started = ProgramTraffic(lab, [Traffic.model_validate(entry)], second)
        started.serve()
        started.start(lab.now_ps(), lambda moment_ps: time.sleep(max(0.0, (moment_ps - lab.now_ps()) / 1e12)))
        flows = started.flows()
    assert [flow.source for flow in flows] == ["h1", "h2"] and {flow.protocol for flow in flows} == {"rtp"}
    for flow in flows:
        (report,) = flow.reports
        assert report.viewing is not None and report.viewing.rate_bps is not None
        # Each begins at the first picture. How late it is there is the machine's: VLC and ffmpeg start first.
        assert 0 < report.viewing.played_s <= 4.1
        assert report.viewing.rate_bps == pytest.approx(RATE, rel=0.5)


@needs_lab
@pytest.mark.skipif(shutil.which("ab") is None, reason="ab is not installed")
def test_apache_bench_fetches_all_from_pythons_server() -> None:
    with templates.single(2, rate="100 Mbit").emulate() as lab:
        asked = programs.apache_bench(
            "h1", "h2", size="20 kB", count=40, connections=4, server_by="python", congestion_control="reno"
        )
        (report,) = programs.start(lab, asked).wait("60 s")
    assert (report.packets, report.lost, report.bytes) == (40, 0, 800_000)


def test_what_the_programs_cannot_do_is_refused() -> None:
    entry = {"name": "film", "app": "video", "using": "programs", "from": ["h1"], "to": "h2", "port": 8081}
    entry |= {"duration": "2 s"}
    with pytest.raises(ValidationError, match="watches one quality: give a 'ladder' of one rate"):
        Traffic.model_validate(entry | {"ladder": ["100 kbit", "200 kbit"]})
    with pytest.raises(ValidationError, match="for 'buffer' write 'using: apps'"):
        Traffic.model_validate(entry | {"ladder": ["100 kbit"], "buffer": "8 s"})
    with pytest.raises(ValidationError, match="vlc watches one quality"):
        Traffic.model_validate(entry | {"ladder": ["100 kbit", "200 kbit"], "viewer": "vlc"})
    with pytest.raises(ValidationError, match="'viewer' has no meaning for http traffic; it is for video"):
        Traffic.model_validate(
            {"name": "load", "app": "http", "from": ["h1"], "to": "h2", "port": 80, "bytes": "1 kB", "viewer": "vlc"}
        )
    with pytest.raises(ValidationError, match="the built-in viewer watches over http"):
        Traffic.model_validate(entry | {"using": "apps", "ladder": ["100 kbit"], "over": "rtsp"})
    with pytest.raises(ValidationError, match="viewers watch over http or rtsp"):
        Traffic.model_validate(entry | {"ladder": ["100 kbit"], "over": "rtp"})
    clip = programs.Clip(served_folder() / object_of("1 kB"), "", 1)
    with pytest.raises(BadValue, match="the viewer 'mpv' is not known; allowed are ffmpeg, vlc"):
        programs.watch("h1", "h2", clip, duration=Picoseconds(SECOND), rate=RATE, by="mpv")  # type: ignore[arg-type]
    with pytest.raises(BadValue, match="video is not watched over 'rtp' here; allowed are http, rtsp"):
        programs.watch("h1", "h2", clip, duration=Picoseconds(SECOND), rate=RATE, over="rtp")  # type: ignore[arg-type]
    with pytest.raises(BadValue, match="has no congestion control"):
        programs.watch(
            "h1", "h2", clip, duration=Picoseconds(SECOND), rate=RATE, over="rtsp", congestion_control="reno"
        )
    with pytest.raises(BadValue, match="allowed are 'twinnet' and 'python'"):
        programs.apache_bench("h1", "h2", size="1 kB", count=1, server_by="apache")  # type: ignore[arg-type]


def test_what_comes_over_rtsp_is_rtp_and_takes_no_congestion_control() -> None:
    entry = {"name": "film", "app": "video", "using": "programs", "from": ["h1"], "to": "h2", "port": 8554}
    entry |= {"duration": "2 s", "ladder": ["100 kbit"]}
    fetched, sent = (Traffic.model_validate(entry | {"over": over}) for over in ("http", "rtsp"))
    assert (fetched.protocol, fetched.takes_congestion_control) == ("http", True)
    assert (sent.protocol, sent.takes_congestion_control) == ("rtp", False)
    assert program_transfer(sent, "h1", 1, SECOND).needs == ("vlc",)


def test_a_study_that_uses_programs_has_them_at_both_ends() -> None:
    entry = {"name": "load", "app": "http", "using": "programs", "from": ["h1"], "to": "h2", "port": 8080}
    asked = Traffic.model_validate(entry | {"bytes": "1 kB", "count": 10, "connections": 2})
    transfer = program_transfer(asked, "h1", 1, SECOND)
    assert transfer.server_argv is not None and transfer.server_app is None
    controlled = Traffic.model_validate(
        entry | {"bytes": "1 kB", "count": 10, "connections": 2, "congestion_control": "cubic"}
    )
    assert (program_transfer(controlled, "h1", 1, SECOND).server_argv or ())[-1] == "cubic"
