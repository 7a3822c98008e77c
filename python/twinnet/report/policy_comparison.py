"""Policies compared: tables of each profile, the leaves against the core, and a ranking as one table and one figure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from twinnet import stats
from twinnet.report.policy_samples import ProfileSamples, jain
from twinnet.study.published_results import COMPARABLE, DIFFERS, LEVEL_OF_TESTS

__all__ = ["Ranked", "places_compared", "profile_table", "ranking", "ranking_figure"]

_LEAST_SAMPLES = 3


def profile_table(profiles: Sequence[ProfileSamples]) -> pl.DataFrame:
    """Return a row for each profile and quantity: count, mean, standard deviation, least and greatest, as published
    tables have them."""
    rows: list[Mapping[str, object]] = []
    for profile in profiles:
        for name, values in profile.values.items():
            if not values:
                continue
            found = stats.describe(values)
            rows.append(
                {**profile.levels, "policy": profile.policy, "enforced_at": profile.enforced_at, "quantity": name}
                | {"samples": len(values), "mean": found.mean, "std": found.std, "min": found.min, "max": found.max}
            )
    return pl.DataFrame(rows, infer_schema_length=None)


def places_compared(profiles: Sequence[ProfileSamples]) -> pl.DataFrame:
    """Return the leaves against the core for each policy and quantity; profiles of one policy in their order.

    Differences are leaf minus core. Student's t is what was published, and so is its word: ``comparable`` where its
    p-value is above 0.05, else ``differs``. Welch's t and Mann and Whitney's U assume less;
    Holm's correction is over all of Welch's p-values. Samples are seconds of one port and clients of one run: those of
    one second or server resemble each other, so that p-values are smaller than they would be for independent ones.
    """
    by_place: dict[tuple[str, str], list[ProfileSamples]] = {}
    for one in profiles:
        by_place.setdefault((one.policy, one.enforced_at), []).append(one)
    rows: list[Mapping[str, object]] = []
    for leaf, core in (
        pair
        for policy in dict.fromkeys(one.policy for one in profiles)
        for pair in zip(by_place.get((policy, "leaf"), []), by_place.get((policy, "core"), []), strict=False)
    ):
        for name in leaf.values.keys() & core.values.keys():
            a, b = leaf.values[name], core.values[name]
            if min(len(a), len(b)) < _LEAST_SAMPLES or (len(set(a)) == 1 and len(set(b)) == 1):
                continue
            tests = {"student_p": stats.student_t_test(a, b), "welch_p": stats.welch_t_test(a, b)}
            tests["mann_whitney_p"] = stats.mann_whitney_u(a, b)
            effect = stats.hedges_g(a, b)
            rows.append(
                {"policy": leaf.policy, "profiles": f"{leaf.label}, {core.label}", "quantity": name}
                | {"leaf_mean": _mean(a), "core_mean": _mean(b)}
                | {"leaf_std": stats.describe(a).std, "core_std": stats.describe(b).std}
                | {"difference": _mean(a) - _mean(b), **{key: test.p_value for key, test in tests.items()}}
                | {"word": COMPARABLE if tests["student_p"].p_value > LEVEL_OF_TESTS else DIFFERS}
                | {"effect_g": effect.value, "magnitude": effect.magnitude}
            )
    rows.sort(key=lambda row: (str(row["policy"]), str(row["profiles"]), str(row["quantity"])))
    adjusted = stats.holm([float(str(row["welch_p"])) for row in rows]) if rows else []
    frame = pl.DataFrame(rows, infer_schema_length=None)
    return frame.with_columns(welch_p_holm=pl.Series(adjusted, dtype=pl.Float64)) if rows else frame


@dataclass(frozen=True)
class Ranked:
    """A quantity of the ranking.

    Parameters
    ----------
    title
        What the column says, with its unit.
    higher
        Whether more is better.
    """

    title: str
    higher: bool


RANKED: Mapping[str, Ranked] = {
    "http_mbps": Ranked("HTTP, all clients (Mbit/s)", True),
    "http_fairness": Ranked("HTTP, Jain's index", True),
    "http_p50_ms": Ranked("request, 50 % (ms)", False),
    "http_p95_ms": Ranked("request, 95 % (ms)", False),
    "http_p99_ms": Ranked("request, 99 % (ms)", False),
    "video_kbps": Ranked("video played (kbit/s)", True),
    "stalled_s": Ranked("video stalled (s a viewer)", False),
    "round_trip_ms": Ranked("round trip (ms)", False),
    "lost_percent": Ranked("echoes lost (%)", False),
}
"""The quantities of the ranking, by the column of its table."""


def ranking(profiles: Sequence[ProfileSamples]) -> pl.DataFrame:
    """Return one row for each profile with the quantities of :data:`RANKED` and the mean of its ranks, best first.

    Equal values share the mean of their ranks; values within 1 % of each other count as equal.
    """
    rows = [
        {"profile": one.label, "policy": one.policy, "enforced_at": one.enforced_at, **_ranked(one)} for one in profiles
    ]
    frame = pl.DataFrame(rows, infer_schema_length=None)
    known = [name for name in RANKED if frame[name].is_not_null().all()]
    ranks = [_ranks(frame[name].to_list(), RANKED[name].higher) for name in known]
    means = [sum(column[row] for column in ranks) / len(ranks) for row in range(len(rows))] if ranks else []
    return frame.with_columns(mean_rank=pl.Series(means, dtype=pl.Float64)).sort("mean_rank", maintain_order=True)


def _ranked(one: ProfileSamples) -> dict[str, float | None]:
    rates = one.values.get("transfer_rate", [])
    fairness = jain(rates) if rates else math.nan
    return {
        "http_mbps": sum(rates) * 8 / 1000 / max(1, one.runs) if rates else None,
        "http_fairness": fairness if not math.isnan(fairness) else None,
        **{
            f"http_p{share}_ms": _mean(one.latencies[share]) if one.latencies.get(share) else None
            for share in (50, 95, 99)
        },
        "video_kbps": _mean(one.values["video_rate"]) if one.values.get("video_rate") else None,
        "stalled_s": _mean(one.values["stalled"]) if one.values.get("stalled") else None,
        "round_trip_ms": _mean(one.values["round_trip"]) if one.values.get("round_trip") else None,
        "lost_percent": 100 * one.lost / one.sent if one.sent else None,
    }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _ranks(values: Sequence[float], higher: bool) -> list[float]:
    """Ranks from 1 for the best; those within 1 % of the best of their group share the mean of their places."""
    order = sorted(range(len(values)), key=lambda place: -values[place] if higher else values[place])
    ranks = [0.0] * len(values)
    begin = 0
    while begin < len(order):
        end = begin + 1
        first = values[order[begin]]
        while end < len(order) and abs(values[order[end]] - first) <= 0.01 * max(abs(first), 1e-12):
            end += 1
        for place in order[begin:end]:
            ranks[place] = (begin + 1 + end) / 2
        begin = end
    return ranks


def ranking_figure(table: pl.DataFrame, path: Path) -> None:
    """Write the ranking as a picture: a row for each profile, best first, a column for each quantity, shaded by
    rank."""
    from matplotlib.figure import Figure

    known = [name for name in RANKED if table[name].is_not_null().all()]
    ranks = [_ranks(table[name].to_list(), RANKED[name].higher) for name in known]
    count = len(table)
    figure: Any = Figure(figsize=(1.6 + 1.25 * len(known), 1.4 + 0.38 * count), layout="constrained")
    axes = figure.subplots()
    shades = [[column[row] for column in ranks] for row in range(count)]
    # Light is good and dark is bad; the same in print and with impaired colour vision.
    axes.imshow(shades, cmap="cividis_r", aspect="auto", vmin=1, vmax=max(2, count), alpha=0.85)
    for row in range(count):
        for column, name in enumerate(known):
            dark = ranks[column][row] > 0.55 * count
            colour = "white" if dark else "black"
            shown = _three_digits(table[name][row])
            axes.text(column, row, shown, ha="center", va="center", color=colour, fontsize=8)
    axes.set_xticks(range(len(known)), [RANKED[name].title.replace(" (", "\n(") for name in known], fontsize=8)
    axes.set_yticks(
        range(count), [f"{row + 1}. {name}" for row, name in enumerate(table["profile"])], fontsize=8, parse_math=False
    )
    axes.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xlabel(
        "each column ranked by itself: light is best, dark is worst; rows by the mean of their ranks", fontsize=8
    )
    figure.savefig(path)


def _three_digits(value: float) -> str:
    """Return `value` with three significant digits and without a power of ten."""
    return f"{float(f'{value:.3g}'):,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
