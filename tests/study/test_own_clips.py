"""An own video clip that a study names: found, kept by its hash, and streamed."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pytest
from labs_here import needs_a_lab
from refused_studies import refusal
from study_networks import one_switch
from twinnet import programs
from twinnet.cli import run as command_line
from twinnet.errors import BadValue
from twinnet.study.own_clip import clip_file
from twinnet.study.plan import plan_study
from twinnet.study.program_traffic import check_programs
from twinnet.study.resolution import load_study
from twinnet.units import BitsPerSecond, Picoseconds

needs_ffmpeg = pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed")
STUDY = """\
study: film
title: An own clip
question: Does the film arrive?
NETWORK
traffic:
  - {name: video, app: rtp, using: programs, clip: film.mp4, from: [h1], to: h2, port: 5004, duration: 2 s,
     rate: 300 kbit, frames_per_second: 25}
measurements:
  quality: {of: ssim}
repetitions: 1
clock: wall
""".replace("NETWORK\n", one_switch("rate: 10 Mbit", "rate: 10 Mbit"))


@pytest.fixture
def study(tmp_path: Path) -> Path:
    (tmp_path / "film.mp4").write_bytes(b"a film")
    path = tmp_path / "film.yaml"
    path.write_text(STUDY)
    return path


def test_a_clip_is_known_by_its_content(study: Path, tmp_path: Path) -> None:
    before = plan_study(load_study(study))[0]
    known = before.specification.traffic[0].clip
    assert known is not None and known.startswith("film.mp4@")
    (tmp_path / "film.mp4").write_bytes(b"another film")
    after = plan_study(load_study(study))[0]
    assert after.digest != before.digest
    with pytest.raises(BadValue, match="is not the one that the study was read with"):
        clip_file(known)
    (tmp_path / "film.mp4").unlink()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "film.mp4").write_bytes(b"a film")
    named = {"traffic.video.clip": str(tmp_path / "other" / "film.mp4")}
    assert plan_study(load_study(study, named))[0].digest == before.digest
    study.write_text(STUDY.replace(" clip: film.mp4,", ""))
    without = plan_study(load_study(study))[0]
    assert without.digest not in (before.digest, after.digest) and without.specification.traffic[0].clip is None


@needs_ffmpeg
def test_a_clip_that_is_gone_is_told_before_the_run(study: Path, tmp_path: Path) -> None:
    traffic = load_study(study).specification.traffic
    check_programs(traffic)
    (tmp_path / "film.mp4").unlink()
    with pytest.raises(BadValue, match=r"the clip film\.mp4 cannot be read"):
        check_programs(traffic)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("clip: film.mp4", "clip: film.doc", "'film.doc' is no name of a clip"),
        ("clip: film.mp4", "clip: gone.mp4", "cannot be read: No such file or directory; put it beside the study file"),
        ("using: programs, ", "", "a clip is streamed or watched by programs"),
    ],
)
def test_clips_that_cannot_be_streamed_are_refused(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, message: str
) -> None:
    assert message in refusal(STUDY.replace(old, new), tmp_path, capsys)


@needs_ffmpeg
@needs_a_lab
def test_an_own_clip_is_streamed_and_results_keep_its_hash(study: Path, tmp_path: Path) -> None:
    # One second of 30 frames, which is shorter than the stream, and so is seen twice.
    programs.make_clip(tmp_path / "film.ts", duration="1 s", size="320x240", frames_per_second=30, picture="life")
    study.write_text(STUDY.replace("film.mp4", "film.ts"))
    assert command_line(["run", str(study), "--with-invalid", "--out", str(tmp_path / "out")]) == 0
    results = tmp_path / "out" / "film"
    (flows,) = [pl.read_parquet(path) for path in results.glob("*/flows.parquet")]
    seen = flows.select("frames_complete", "frames_damaged", "frames_lost").drop_nulls()
    assert [sum(row) for row in seen.rows()] == [50]
    kept = (results / "film.ts").read_text()
    assert kept.startswith("twinnet clip\nsha256 ") and str(tmp_path / "film.ts") in kept
    # Results are read without the clip.
    (tmp_path / "film.ts").unlink()
    assert command_line(["report", str(results)]) == 0


@needs_ffmpeg
@needs_a_lab
def test_an_own_clip_is_watched(study: Path, tmp_path: Path) -> None:
    programs.make_clip(tmp_path / "film.ts", duration="1 s", size="320x240", frames_per_second=30, picture="life")
    watched = STUDY.replace("film.mp4", "film.ts").replace("app: rtp", "app: video").replace("port: 5004", "port: 8081")
    watched = watched.replace("rate: 300 kbit, frames_per_second: 25", "ladder: [300 kbit]")
    study.write_text(watched.replace("of: ssim", "of: video_rate"))
    known = plan_study(load_study(study))[0].specification.traffic[0].clip
    assert known is not None and known.startswith("film.ts@")
    assert command_line(["run", str(study), "--with-invalid", "--no-report", "--out", str(tmp_path / "out")]) == 0
    (flows,) = [pl.read_parquet(path) for path in (tmp_path / "out" / "film").glob("*/flows.parquet")]
    # What is served is the film's pictures at the ladder's rate, and not those that ffmpeg draws.
    assert sum(flows["video_played_s"].drop_nulls()) > 0
    first, second = (
        programs.clip_to_watch(Picoseconds(10**12), BitsPerSecond(300_000), one) for one in (clip_file(known), None)
    )
    assert first.path != second.path and first.path.read_bytes() != second.path.read_bytes()
