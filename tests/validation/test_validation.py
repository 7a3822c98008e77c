"""Theory on the virtual clock: every law in its short form, the page, and that a wrong law is found out."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from statistics import NormalDist

import pytest
import twinnet as tn
from click.testing import CliRunner
from twinnet import _core
from twinnet.cli.group import cli
from twinnet_validation import (
    active_queues,
    confidence,
    fair_queues,
    finite_queue,
    jitter,
    scheduler_shares,
    single_server,
    tcp_paths,
)
from twinnet_validation.figures import CUBIC_FIGURE, WAIT_FIGURE
from twinnet_validation.law import Law
from twinnet_validation.laws import LAWS, measured
from twinnet_validation.page import INTRODUCTION, page
from twinnet_validation.port import Record, Source, constant, exponential, run_port
from twinnet_validation.token_bucket import largest_burst_bytes

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_the_law_holds(law: Law) -> None:
    rows = law.measure(True)
    assert rows
    assert [row for row in rows if not row.passed] == []


def test_a_mean_wait_that_is_a_tenth_too_large_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    right = single_server.expected_wait_s
    monkeypatch.setattr(single_server, "expected_wait_s", lambda sizes, load: 1.1 * right(sizes, load))
    # At half load the interval of 60,000 waits is 8 % wide each way for M/M/1 and 5 % for M/D/1.
    failed = [row.setting for row in single_server.LAW.measure(True) if not row.passed]
    assert any(setting.startswith("M/D/1, load 0.5") for setting in failed)
    result = CliRunner().invoke(cli, ["validate", "--quick", "--only", "single-server"], standalone_mode=False)
    assert result.return_value == 1
    assert "FAILS" in result.output


def test_laws_on_several_processors_come_to_what_they_come_to_alone() -> None:
    some = [law for law in LAWS if law.name in ("deterministic-queue", "loss", "jitter", "token-bucket")]
    assert len(some) == 4
    assert measured(some, True) == [(law, list(law.measure(True))) for law in some]


@pytest.mark.parametrize("name", list(jitter.LAWS_OF_JITTER))
def test_jitter_of_another_law_is_found_out(name: str) -> None:
    limit = confidence.distance_limit(5000)
    for other, (_, cumulative) in jitter.LAWS_OF_JITTER.items():
        if other != name:
            assert jitter.measured_distance(jitter.LAWS_OF_JITTER[name][0], cumulative, 5000) > limit, other


def test_a_service_law_of_another_spread_is_found_out() -> None:
    sizes = single_server.exponential_sizes()
    found = single_server.measured_wait(sizes, 0.5, True)
    mean_bytes = round(single_server.size_moments(sizes)[0])
    of_constant_sizes = single_server.expected_wait_s(constant(mean_bytes), 0.5)
    assert not found.low_s <= of_constant_sizes <= found.high_s


def test_a_bucket_that_is_a_frame_too_deep_is_found_out() -> None:
    def worst(burst_bytes: int) -> float:
        run = run_port(
            [Source(500, constant(10**8), constant(1000))],
            {"kind": "tbf", "rate_bps": 10**7, "burst_bytes": burst_bytes},
            rate_bps=None,
            records=True,
        )
        return largest_burst_bytes(run.records, 10**7)

    assert worst(20_000) <= 20_000 < worst(21_000)
    # 1000 bytes at once, and 1000 more after the half of what the rate needs for them.
    two = [Record(0, 1000, 0, 0), Record(0, 1000, 0, 4 * 10**8)]
    assert largest_burst_bytes(two, 10**7) == 1500


def test_the_moments_of_exponential_sizes_are_those_of_the_truncated_law() -> None:
    law = exponential(10.0, 8, 20)
    draws = random.Random(1)
    sizes = [min(20, max(8, math.ceil(draws.expovariate(0.1)))) for _ in range(200_000)]
    first, second = single_server.size_moments(law)
    # The standard deviation is 4.7: four errors of the mean of 200,000 are 0.042; of the squares, 0.0052 of 190.
    assert first == pytest.approx(sum(sizes) / len(sizes), abs=0.042)
    assert second == pytest.approx(sum(size * size for size in sizes) / len(sizes), rel=0.0075)


def test_the_law_of_codels_drops_is_found_out_when_it_is_another() -> None:
    rows = active_queues.CODEL.measure(True)
    times = active_queues.codel_drop_times_s(0.0, 10, 0.1)
    assert times[1:3] == pytest.approx([0.1, 0.1 + 0.1 / math.sqrt(2)])
    # With the cube root instead, the tenth drop would come 0.1 s later: a hundred times the tolerance.
    assert 0.1 * sum(n ** (-1 / 3) for n in range(1, 10)) - times[9] > 0.1
    assert all(row.passed for row in rows)


def test_a_frame_is_dropped_when_the_one_before_it_has_left() -> None:
    records = [Record(0, 10, 0, 5 * 10**12), Record(0, 10, 1, None), Record(0, 10, 2, 7 * 10**12)]
    assert active_queues.moments_of_drops_s(records) == [5.0]


def test_the_queue_of_red_is_between_its_thresholds_and_grows_with_the_load() -> None:
    queue = [active_queues.red_average_bytes(load, 20_000, 60_000, 0.1) for load in (1.0, 1.05, 1.1)]
    assert queue == pytest.approx([20_000, 29_756, 39_048], abs=1)


def test_flows_in_one_queue_do_not_share_as_flows_in_queues_of_their_own_do() -> None:
    # A FIFO gives shares in proportion to what is sent, and the sparse flow waits behind the whole queue.
    found = fair_queues.flow_shares(tn.qos.Fifo(), (9.0, 6.0, 4.0, 0.5), 3)
    assert found.mbit[0] > 4.0
    assert found.mbit[3] < 0.4
    assert found.sparse_wait_ms > 100


def test_a_finite_queue_of_one_place_is_the_formula_of_erlang() -> None:
    lost, waited = finite_queue.expected(0.5, 1)
    assert lost == pytest.approx(0.5 / 1.5)
    assert waited == pytest.approx(0.0, abs=1e-12)


def test_batch_means_cover_the_mean_of_correlated_samples_and_single_samples_do_not() -> None:
    def covered(batch: int) -> int:
        count = 0
        for seed in range(100):
            draws = random.Random(seed)
            value, values = 0.0, []
            for _ in range(6000):
                value = 0.9 * value + draws.gauss(0, 1)
                values.append(value)
            means = [sum(values[at : at + batch]) / batch for at in range(0, len(values), batch)]
            _, low, high = confidence.batch_interval(means)
            count += low <= 0 <= high
        return count

    # Of 100 intervals of 99.9 % none is expected outside; single samples make them 1/sqrt(19) as wide as is right.
    assert covered(200) >= 98
    assert covered(1) < 75


def test_the_distance_from_a_law_minds_jumps() -> None:
    assert confidence.distance_from_law([0.25, 0.75], lambda x: min(1.0, max(0.0, x))) == pytest.approx(0.25)
    coin = [0.0] * 50 + [1.0] * 50
    assert confidence.distance_from_law(coin, lambda x: 0.0 if x < 0 else 0.5 if x < 1 else 1.0) == 0.0
    assert confidence.distance_from_law(coin, NormalDist().cdf) == pytest.approx(0.5)


def test_the_spare_rate_goes_by_weight_to_those_who_want_it() -> None:
    assert scheduler_shares.shared_out(60, [90, 90, 90], [1, 2, 3]) == pytest.approx([10, 20, 30])
    assert scheduler_shares.shared_out(60, [5, 90, 0], [1, 1, 4]) == pytest.approx([5, 55, 0])
    assert scheduler_shares.shared_out(100, [10, 20, 30], [1, 1, 1]) == pytest.approx([10, 20, 30])


def test_jains_index_runs_from_one_of_n_to_one() -> None:
    assert tcp_paths.jain_index([3, 3, 3]) == pytest.approx(1)
    assert tcp_paths.jain_index([1, 0, 0, 0]) == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"sources": []}, "sources: got 0; allowed is 1 to 1024"),
        ({"batches": 0}, "batches: got 0"),
        ({"direction": {"rate_bps": 0}}, "experiment: "),
        ({"surprise": 1}, "unknown field `surprise`"),
    ],
)
def test_an_experiment_that_cannot_be_made_is_refused(change: dict[str, object], told: str) -> None:
    good = {
        "seed": 1,
        "direction": {"rate_bps": 1000},
        "queue": {"kind": "fifo", "limit_frames": 1},
        "sources": [{"frames": 1, "gap_ps": constant(1), "size_bytes": constant(8)}],
        "batches": 1,
    }
    assert json.loads(_core.port_experiment(json.dumps(good)))["sources"][0]["delivered"] == 1
    with pytest.raises(ValueError, match=told):
        _core.port_experiment(json.dumps(good | change))


@pytest.mark.long
def test_the_page_is_what_the_command_writes() -> None:
    written = (DOCS / "explanation/validation.md").read_text()
    assert written.startswith(INTRODUCTION)
    # Laws of up to three seconds are made anew in their long form, and their sections are to be there letter by letter;
    # `make validate-check` does so with all.
    slow = ("single-server", "finite-queue", "htb", "loss", "jitter", "loss-limited", "rivals", "statements", "values")
    fast = [law for law in LAWS if law.name not in slow]
    assert len(fast) == 15
    for law in fast:
        section = page([(law, law.measure(False))]).split("\n## ", 1)[1]
        assert f"\n## {section}" in written
    for law in LAWS:
        head = f"## {law.title}\n\n{law.physics}\n\nSource: {law.source}."
        assert head in written
    headings = [line[3:] for line in written.splitlines() if line.startswith("## ")]
    assert headings == [law.title for law in LAWS]
    verdicts = [line.rsplit("|", 2)[1].strip() for line in written.splitlines() if line.startswith("| ")]
    held = [verdict for verdict in verdicts if verdict not in ("verdict", "---")]
    assert set(held) == {"holds"}
    assert f"**{len(held)} of {len(held)} rows hold.**" in written
    for figure in (WAIT_FIGURE, CUBIC_FIGURE):
        assert f"../images/{figure}" in written
        assert (DOCS / "images" / figure).stat().st_size < 100_000


def test_the_command_tells_its_rows_as_json_and_writes_a_page(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        cli, ["validate", "--quick", "--only", "priority", "--only", "drr", "--json"], standalone_mode=False
    )
    assert result.return_value == 0
    rows = json.loads(result.output)
    assert {row["law"] for row in rows} == {"priority", "drr"}
    assert all(row["passed"] for row in rows)


def test_an_unknown_law_is_refused_with_the_nearest_name() -> None:
    result = CliRunner().invoke(cli, ["validate", "--only", "priorty"])
    assert result.exit_code == 2
    assert "priority" in result.output
    result = CliRunner().invoke(cli, ["validate", "--only", "drr", "--markdown", "page.md"])
    assert result.exit_code == 2
    assert not Path("page.md").exists()
