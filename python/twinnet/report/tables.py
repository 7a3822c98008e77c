"""Tables as files: CSV with the unit in the column's name, and LaTeX for papers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from twinnet.report.distribution_section import distribution_frame
from twinnet.report.published_section import published_frame
from twinnet.report.reference_section import reference_frame
from twinnet.report.wording import common_scale, worded_mean, worded_phase
from twinnet.study.analysis import Analysis, PhaseMean
from twinnet.study.closeness import compare_with_reference
from twinnet.study.distributions import described
from twinnet.study.published_results import PublishedResult

__all__ = ["means_frame", "means_latex", "runs_frame", "series_frame", "write_tables"]


def means_frame(analysis: Analysis) -> pl.DataFrame:
    """Every mean with its interval and the values of the repetitions; in a study with published figures also the one
    that was published of it, by how much it differs, and the word for that."""
    beside = _published_means(analysis)
    rows = [
        {"measurement": one.measurement, **{f"factor_{name}": level for name, level in one.levels.items()}}
        | {"label": one.label}
        | {"phase_start_s": one.phase[0] if one.phase else None, "phase_end_s": one.phase[1] if one.phase else None}
        | {"statistic": analysis.specification.measurements[one.measurement].show, "unit": one.unit}
        | {"repetitions": len(one.samples), "mean": one.interval.estimate if one.samples else None}
        | {"low": one.interval.low, "high": one.interval.high, "confidence": one.interval.level}
        | {"missing": len(one.missing), "why_missing": "; ".join(dict.fromkeys(one.missing.values()))}
        | {"values": " ".join(f"{value:.9g}" for value in one.samples)}
        | (_published_columns(beside.get(_key(one.measurement, one.levels))) if analysis.published else _NOTHING)
        for one in analysis.means
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


_Columns = dict[str, str | float | int | None]
_NOTHING: _Columns = {}
_Key = tuple[str, tuple[tuple[str, str], ...]]


def _key(measurement: str, levels: Mapping[str, str]) -> _Key:
    return measurement, tuple(sorted(levels.items()))


def _published_means(analysis: Analysis) -> dict[_Key, PublishedResult]:
    """The first published figure of each mean of a whole run under one combination of levels."""
    found: dict[_Key, PublishedResult] = {}
    for one, sides in zip(analysis.published, analysis.study.published_sides(), strict=False):
        (first, *others) = sides.measured
        meant = first.aggregate
        if meant is None or others or sides.over or first.factor != 1:
            continue
        name, shown = meant.measurement, analysis.specification.measurements[meant.measurement].function
        alone = len(analysis.labels(name)) == len(analysis.phases_of(name)) == 1
        asked = (meant.function, meant.bound, meant.during_s, meant.filters)
        if alone and asked == (shown.name, shown.bound, None, ()):
            found.setdefault(_key(name, dict(meant.levels)), one)
    return found


def _published_columns(one: PublishedResult | None) -> _Columns:
    if one is None:
        return {"published": None, "published_sense": None, "difference": None, "word": None}
    apart = None if math.isnan(one.difference) else one.difference
    said = {"published_sense": "range" if one.is_range else one.published.sense}
    return {"published": one.value, **said, "difference": apart, "word": one.word}


def series_frame(analysis: Analysis) -> pl.DataFrame:
    """Every series over time with its band, in bit/s."""
    frames = [
        pl.DataFrame(
            {"start_s": one.band.start_s, "mean_bps": one.band.mean, "low_bps": one.band.low, "high_bps": one.band.high}
        ).select(
            pl.lit(one.measurement).alias("measurement"),
            *(pl.lit(level).alias(f"factor_{name}") for name, level in one.levels.items()),
            pl.lit(one.label).alias("label"),
            pl.lit(one.band.count).alias("repetitions"),
            pl.all(),
        )
        for one in analysis.series
    ]
    return pl.concat(frames) if frames else pl.DataFrame()


def runs_frame(analysis: Analysis) -> pl.DataFrame:
    """Every finished run with its fidelity, and what was forecast before it."""
    rows = [
        {"run": run.id, **{f"factor_{name}": level for name, level in run.levels.items()}}
        | {"repetition": run.repetition, "seed": run.record["seed"], "started": run.record["started"]}
        | {"elapsed_s": run.record["elapsed_s"], "fidelity": run.verdict}
        | {"reasons": "; ".join(run.record["fidelity"]["reasons"])}
        | {name: run.forecast.get(name) for name in ("needed_frames_per_second", "carried_frames_per_second")}
        | {"expected_to_exceed": run.forecast.get("exceeds")}
        for run in analysis.stored.values()
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "{": r"\{",
        "}": r"\}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "µ": r"\textmu{}",
        "<": r"\textless{}",
        "|": r"\textbar{}",
        ">": r"\textgreater{}",
    }
)


def _tex(text: str) -> str:
    return text.translate(_LATEX)


def means_latex(analysis: Analysis, measurement: str) -> str:
    """The means of one measurement as a LaTeX table (needs the package booktabs)."""
    means = [one for one in analysis.means if one.measurement == measurement]
    labels = list(dict.fromkeys(one.label for one in means))
    factors = list(analysis.specification.factors)
    scale = common_scale((one.interval.estimate for one in means), means[0].unit)
    rows: dict[tuple[str, ...], dict[str, PhaseMean]] = {}
    for one in means:
        rows.setdefault((*one.levels.values(), worded_phase(one.phase)), {})[one.label] = one
    percent = f"{analysis.specification.confidence * 100:g}"
    layer = analysis.specification.measurements[measurement].layer
    statistic = analysis.specification.measurements[measurement].show
    said = measurement if statistic == "mean" else f"{measurement} ({statistic})"
    said += f": mean [{percent} % confidence interval] in {scale[1]}"
    series = analysis.specification.measurements[measurement].is_series
    said += f", {layer} layer." if series else "."
    head = " & ".join(map(_tex, [*factors, "time", *labels]))
    lines = [
        r"\begin{table}",
        rf"\caption{{{_tex(said)}}}",
        rf"\begin{{tabular}}{{{'l' * (len(factors) + 1)}{'r' * len(labels)}}}",
        r"\toprule",
        rf"{head} \\",
        r"\midrule",
    ]
    for key, cells in rows.items():
        shown = [worded_mean(cells[label], scale, with_unit=False) if label in cells else "" for label in labels]
        lines.append(rf"{' & '.join(map(_tex, [*key, *shown]))} \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def write_tables(analysis: Analysis, folder: Path) -> list[Path]:
    """Write `means.csv`, `series.csv`, `runs.csv`, where there are any `distributions.csv`, `published.csv` and
    `beside_published.csv`, and a LaTeX table for each measurement."""
    written: list[Path] = []
    reference = compare_with_reference(analysis)
    for name, frame in (
        ("means", means_frame(analysis)),
        ("distributions", distribution_frame(described(analysis))),
        ("published", reference_frame(reference) if reference is not None else pl.DataFrame()),
        ("beside_published", published_frame(analysis)),
        ("series", series_frame(analysis)),
        ("runs", runs_frame(analysis)),
    ):
        if not frame.is_empty():
            frame.write_csv(folder / f"{name}.csv")
            written.append(folder / f"{name}.csv")
    for measurement in dict.fromkeys(one.measurement for one in analysis.means):
        path = folder / f"{measurement}.tex"
        path.write_text(means_latex(analysis, measurement), encoding="utf-8")
        written.append(path)
    return written
