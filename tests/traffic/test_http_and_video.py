"""HTTP load and viewers of video, on both clocks by one body where real hosts are permitted."""

from __future__ import annotations

import pytest
import twinnet as tn
from labs_here import needs_a_lab
from twinnet.errors import BadValue
from twinnet.traffic import apps


def watch(lab: tn.Lab) -> None:
    """A viewer of three rates on a line of 2 Mbit/s, and a thinking client on another."""
    viewer = lab.start(apps.video("h1", "h3", rates=["250 kbit", "500 kbit", "1 Mbit"], duration="6 s", segment="1 s"))
    thinker = lab.start(
        apps.http_get("h2", "h3", size="1 kB", count=1000, connections=2, think="100 ms", duration="3 s")
    )
    lab.wait([viewer, thinker], until="12 s")
    seen, loaded = viewer.report(), thinker.report()
    assert seen.errors == () and loaded.errors == ()
    video = seen.viewing
    assert video is not None and video.startup_s is not None
    assert video.stalls == 0 and video.switches == 1
    assert list(video.played_at) == [250_000, 500_000, 1_000_000]
    # Six seconds less the first segment's time; only that one was of the lowest rate.
    assert video.played_s == pytest.approx(6 - video.startup_s, abs=0.05)
    assert video.played_at[250_000] == pytest.approx(1.0, abs=0.01)
    assert loaded.duration_s == pytest.approx(3, abs=0.05)
    # Two connections, an answer each 100 ms and a round trip of 4 ms would be 57; behind the viewer's segments, in the
    # queue of the server's line, an answer waits up to as long again.
    assert 28 <= (loaded.packets or 0) <= 58
    percentiles = loaded.latency_percentiles_ms
    assert list(percentiles) == [50, 66, 75, 80, 90, 95, 98, 99, 99.9]
    assert list(percentiles.values()) == sorted(percentiles.values())


def test_viewers_and_clients_that_think_on_the_virtual_clock() -> None:
    with tn.templates.single(3, rate="2 Mbit", delay="1 ms").simulate(seed=1) as lab:
        watch(lab)


@needs_a_lab
def test_viewers_and_clients_that_think_on_the_wall_clock() -> None:
    with tn.templates.single(3, rate="2 Mbit", delay="1 ms").emulate() as lab:
        watch(lab)


def test_a_video_above_the_line_stands_still_for_what_is_missing() -> None:
    with tn.templates.single(2, rate="1 Mbit").simulate(seed=1) as lab:
        viewer = lab.start(apps.video("h1", "h2", rates=["2 Mbit"], duration="60 s", segment="2 s"))
        lab.wait([viewer])
        video = viewer.report().viewing
    assert video is not None
    # The line carries 94.9 % of 1 Mbit/s of payload (1448 of 1526 bytes), so 0.474 s of the video in each second; what
    # has come of the last segment is not played, one segment's time of 4.2 s in 60.
    assert video.played_s == pytest.approx(60 * 0.474, abs=2.5)
    assert video.stalls >= 10
    assert video.played_s + video.stalled_s + (video.startup_s or 0) == pytest.approx(60, abs=0.01)


def test_sizes_are_drawn_and_the_same_for_a_seed() -> None:
    def loaded(seed: int) -> int:
        with tn.templates.single(2, rate="100 Mbit").simulate(seed=seed) as lab:
            sizes = {"distribution": "lognormal", "mean": "10 kB", "std": "20 kB"}
            client = lab.start(apps.http_get("h1", "h2", size=sizes, count=200, connections=5))
            lab.wait([client])
            return client.report().bytes or 0

    assert loaded(1) == loaded(1) != loaded(2)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"resolutions": ["4k"]}, "resolution '4k' is not known"),
        ({"rates": ["1 Mbit", "500 kbit"]}, "do not rise"),
        ({"rates": []}, "do not rise"),
    ],
)
def test_ladders_that_are_none_are_refused(settings: dict[str, list[str]], said: str) -> None:
    with pytest.raises(BadValue, match=said):
        apps.video("h1", "h2", duration="1 s", **settings)
