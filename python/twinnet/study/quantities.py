"""The quantities that a study measures: name, unit, meaning, and the value in a run from the table of its flows.

A measurement is one entry here: study files, their JSON schema, checks and reports follow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from twinnet.study.estimates import NO_ESTIMATE, NOT_ESTIMATED, of_answers
from twinnet.study.measured_quantity import (
    ABOVE_ZERO,
    SHARE,
    SHARE_LESS_ONE,
    WITH_SIGN,
    DistributionColumn,
    MeasuredQuantity,
)
from twinnet.study.sampled_quantities import SAMPLED
from twinnet.study.transfers import completion_times, transfer_times
from twinnet.study.value_functions import value_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import polars as pl

    Vector = npt.NDArray[np.float64]

__all__ = ["QUANTITIES"]

_DATAGRAMS = ("udp", "rtp")


def _series(unit: str, meaning: str, table: Literal["flows", "port_samples"] = "flows") -> MeasuredQuantity:
    def value(rows: pl.DataFrame, function: str) -> float:
        raise LookupError("a throughput is counted in intervals")

    return MeasuredQuantity(unit, meaning, value, is_series=True, window="series", table=table)


def _of_intervals(rows: pl.DataFrame, function: str) -> float:
    raise LookupError("it is counted in intervals")


def _distribution(
    unit: str,
    meaning: str,
    column: DistributionColumn,
    protocols: tuple[str, ...] = _DATAGRAMS,
    ends: tuple[float, float] = ABOVE_ZERO,
) -> MeasuredQuantity:
    window = "packets" if column.every_packet else "intervals" if column.name == "rtt" else ""
    return MeasuredQuantity(unit, meaning, column.value, column, protocols=protocols, window=window, ends=ends)


def _of_flows(
    unit: str,
    meaning: str,
    values: Callable[[pl.DataFrame], Vector],
    window: Literal["", "intervals", "flows"] = "",
    ends: tuple[float, float] = ABOVE_ZERO,
) -> MeasuredQuantity:
    """A quantity with one value of each flow."""

    def value(rows: pl.DataFrame, function: str) -> float:
        return value_of(function, None, values(rows))

    return MeasuredQuantity(unit, meaning, value, each=values, window=window, ends=ends)


def _numbers(
    column: str, not_counted: str, nothing: str, size: float = 1.0, less: float = 0.0
) -> Callable[[pl.DataFrame], Vector]:
    """Return what reads one column of the table `flows`, times `size` and less `less`; older tables may lack it."""

    def values(rows: pl.DataFrame) -> Vector:
        if column not in rows.columns:
            raise LookupError(not_counted)
        found = rows[column].drop_nulls().to_numpy().astype(float)
        if found.size == 0:
            raise LookupError(nothing)
        return found * size - less

    return values


def _loss(rows: pl.DataFrame, function: str) -> float:
    import polars as pl

    counted = rows.filter(pl.col("lost_packets").is_not_null() & pl.col("packets").is_not_null())
    # Who sends and hears the answer counts what it sent; who receives, what arrived.
    sent_there = pl.col("packets") + pl.when(pl.col("role") == "source").then(0).otherwise(pl.col("lost_packets"))
    lost, sent = int(counted["lost_packets"].sum()), int(counted.select(sent_there.sum()).item())
    if sent == 0:
        raise LookupError("no datagram was counted")
    return lost / sent


def _frame_loss(rows: pl.DataFrame, function: str) -> float:
    """The share of video frames that did not arrive whole, of those that receivers know of."""
    import polars as pl

    counted = rows.filter(pl.col("frames_complete").is_not_null())
    whole, broken = (int(counted["frames_complete"].sum()), 0)
    broken += int(counted["frames_damaged"].sum()) + int(counted["frames_lost"].sum())
    if whole + broken == 0:
        raise LookupError("no video frame was counted")
    return broken / (whole + broken)


def _packet_rates(rows: pl.DataFrame) -> Vector:
    """Packets a second of each flow at its receiver, from the first arrival to the last: one less than arrived. None of
    a flow of which one packet or none arrived: it is starved, and not left out."""
    import polars as pl

    from twinnet.results.series import receivers

    seen = receivers(rows).filter(pl.col("packets").is_not_null())
    if seen.is_empty():
        raise LookupError("no receiver counted packets")
    rate = (pl.col("packets") - 1) / (pl.col("end_s") - pl.col("start_s"))
    counts = (pl.col("packets") > 1) & (pl.col("end_s") > pl.col("start_s"))
    return seen.select(pl.when(counts).then(rate).otherwise(0.0)).to_series().to_numpy()


def _read_rates(rows: pl.DataFrame) -> Vector:
    import polars as pl

    if "video_played_s" not in rows.columns:
        raise LookupError(_NOT_VIEWED)
    watched = rows.filter(pl.col("video_played_s").is_not_null() & (pl.col("end_s") > pl.col("start_s")))
    if watched.is_empty():
        raise LookupError(_NO_VIEWER)
    return (8 * watched["payload_bytes"] / (watched["end_s"] - watched["start_s"])).to_numpy()


def _video_rates(rows: pl.DataFrame) -> Vector:
    """What each viewer played: nothing, where it got no segment to play."""
    import polars as pl

    if "video_rate_bps" not in rows.columns:
        raise LookupError(_NOT_VIEWED)
    viewers = rows.filter(pl.col("video_played_s").is_not_null())
    if viewers.is_empty():
        raise LookupError(_NO_VIEWER)
    return viewers["video_rate_bps"].fill_null(0.0).to_numpy().astype(float)


def _received_rates(rows: pl.DataFrame) -> Vector:
    """The payload of each receiver over the length of its flow."""
    import polars as pl

    from twinnet.results.series import receivers

    counted = receivers(rows).filter(pl.col("payload_bytes").is_not_null() & (pl.col("end_s") > pl.col("start_s")))
    if counted.is_empty():
        raise LookupError("no receiver counted payload over a time")
    return (8 * counted["payload_bytes"] / (counted["end_s"] - counted["start_s"])).to_numpy()


def _bandwidth_errors(rows: pl.DataFrame) -> Vector:
    shares = (rows["available_bandwidth_bps"] / rows["available_bandwidth_true_bps"] - 1).drop_nulls().to_numpy()
    if shares.size == 0:
        raise LookupError(NO_ESTIMATE)
    return shares


def _bandwidths_covered(rows: pl.DataFrame) -> Vector:
    """1 for each estimate whose interval, or range, contains the truth; 0 for the others."""
    import polars as pl

    names = [f"available_bandwidth_{name}_bps" for name in ("true", "low", "high")]
    known = rows.filter(pl.all_horizontal(pl.col(name).is_not_null() for name in names))
    if known.is_empty():
        raise LookupError("no estimator of available bandwidth gave an interval")
    return known.select(pl.col(names[0]).is_between(names[1], names[2]).cast(pl.Float64)).to_series().to_numpy()


def _probe_disturbances(rows: pl.DataFrame) -> Vector:
    import polars as pl

    if "probe_trains" not in rows.columns:
        raise LookupError(NOT_ESTIMATED)
    probed = rows.filter(pl.col("probe_trains") > 0)
    if probed.is_empty():
        raise LookupError(NO_ESTIMATE)
    disturbed = (probed["probe_interruptions"] + probed["probe_batched_trains"]) / probed["probe_trains"]
    return disturbed.to_numpy()


def _share_of_arrivals(column: str, of_all: bool) -> Callable[[pl.DataFrame, str], float]:
    """Return what computes the share of packets that `column` counts; `of_all`: of arrivals with these."""

    def value(rows: pl.DataFrame, function: str) -> float:
        import polars as pl

        from twinnet.results.series import receivers

        counted = receivers(rows).filter(pl.col(column).is_not_null() & pl.col("packets").is_not_null())
        found = int(counted[column].sum())
        arrivals = int(counted["packets"].sum()) + (found if of_all else 0)
        if arrivals == 0:
            raise LookupError("no datagram was counted")
        return found / arrivals

    return value


def _loss_burst(rows: pl.DataFrame, function: str) -> float:
    """The mean over all bursts of loss, or the longest."""
    import polars as pl

    if "loss_burst_count" not in rows.columns:
        raise LookupError("bursts of loss were not counted when this run was made")
    seen = rows.filter(pl.col("loss_burst_count") > 0)
    if seen.is_empty():
        raise LookupError("no packet was lost")
    counts, means = seen["loss_burst_count"].to_numpy(), seen["loss_burst_mean"].to_numpy()
    if function == "mean":
        return float((counts * means).sum() / counts.sum())
    if function == "max":
        return float(seen["loss_burst_max"].to_numpy().max())
    raise LookupError(f"of bursts of loss mean and max are known, not {function}")


def _of_senders(column: str, size: float = 1.0, of_requested: bool = False) -> Callable[[pl.DataFrame], Vector]:
    """Return what reads one column of senders; `of_requested`: what they achieved over it, minus 1."""

    def values(rows: pl.DataFrame) -> Vector:
        import polars as pl

        if column not in rows.columns:
            raise LookupError(f"no {column} was counted when this run was made")
        seen = rows.filter(pl.col("role").is_in(["source", "client"]) & pl.col(column).is_not_null())
        if of_requested:
            seen = seen.filter(pl.col("achieved_packets_per_second").is_not_null())
            found = (seen["achieved_packets_per_second"] / seen[column] - 1).to_numpy()
        else:
            found = seen[column].to_numpy() * size
        if found.size == 0:
            raise LookupError(
                f"no sender reported its {column}; errors of rates and gaps need a rate, the rest a 'generator'"
            )
        return found

    return values


def _fairness(rows: pl.DataFrame, function: str) -> float:
    """The index of Jain, Chiu and Hawe (DEC-TR-301, 1984): 1 when all rates are equal, 1 over their number when one has
    all."""
    rates = _packet_rates(rows)
    if not rates.any():
        raise LookupError("nothing arrived")
    return float(rates.sum() ** 2 / (rates.size * (rates**2).sum()))


_NO_HARM = (
    "no other UDP traffic had a whole interval within the estimate's window and one outside; measure a throughput in "
    "shorter intervals"
)
_NOT_VIEWED = "viewers of video were not counted when this run was made"
_NO_VIEWER = "nobody watched video in segments; give traffic with 'app: video'"
_NOT_JUDGED = "no video was judged; let programs stream it ('using: programs')"

QUANTITIES: Mapping[str, MeasuredQuantity] = {
    "throughput": _series("bit/s", "The rate that receivers got, over the stated interval, at the stated layer."),
    "port_throughput": _series("bit/s", "The rate that a port sent.", "port_samples"),
    "loss": MeasuredQuantity(
        "1", "The share of datagrams that were sent and did not arrive (RFC 7680).", _loss, window="packets", ends=SHARE
    ),
    "rtt": _distribution(
        "s",
        "Round-trip times seen by ping or TCP.",
        DistributionColumn("rtt", every_packet=False, nothing="no round trip was measured"),
        (),
    ),
    "mean_rtt": _of_flows(
        "s",
        "The mean round trip of each flow, as each ping prints it: flows count alike, however many replies they had.",
        _numbers("rtt_mean_ms", "round trips were not counted", "no round trip was measured", 1e-3),
    ),
    "received_rate": _of_flows(
        "bit/s",
        "The payload that each receiver got over the time from the start to the end of its flow, as ApacheBench prints "
        "it for a client.",
        _received_rates,
    ),
    "transfer_time": _of_flows(
        "s", "The duration of a transfer; infinite for one that has not ended.", transfer_times, "flows"
    ),
    "delay": _distribution("s", "One-way delay (RFC 7679).", DistributionColumn("delay", lost_counts=True)),
    "gap": _distribution("s", "Time between arrivals.", DistributionColumn("gap")),
    "jitter_rfc4689": _distribution(
        "s",
        "Absolute difference of the delays of packets of UDP and RTP received one after the other (RFC 4689).",
        DistributionColumn("jitter_rfc4689"),
    ),
    "jitter_rfc3550": _distribution(
        "s",
        "Smoothed jitter after each packet of RTP (RFC 3550), as Wireshark shows it.",
        DistributionColumn("rtp_jitter", has_quantiles=False),
        ("rtp",),
    ),
    "rtp_bandwidth": _distribution(
        "bit/s",
        "Bits of IP in the second that ends with each packet of RTP, as Wireshark shows it.",
        DistributionColumn("rtp_bandwidth", "bps", 1.0, has_quantiles=False),
        ("rtp",),
    ),
    "frame_loss": MeasuredQuantity(
        "1", "The share of video frames that did not arrive whole.", _frame_loss, ends=SHARE
    ),
    "packet_rate": _of_flows(
        "1/s", "Packets a second at the receiver, from the first to the last.", _packet_rates, "intervals"
    ),
    "reordering": MeasuredQuantity(
        "1",
        "The share of arrivals that were out of order (RFC 4737).",
        _share_of_arrivals("reordered_packets", of_all=False),
        ends=SHARE,
    ),
    "duplicates": MeasuredQuantity(
        "1",
        "The share of arrivals that had arrived before.",
        _share_of_arrivals("duplicate_packets", of_all=True),
        ends=SHARE,
    ),
    "delay_variation": _distribution(
        "s",
        "Differences of the delays of packets sent one after the other (RFC 3393), with their sign.",
        DistributionColumn("delay_variation", every_packet=False, has_quantiles=False),
        ends=WITH_SIGN,
    ),
    "loss_burst": MeasuredQuantity("packets", "Losses in a row.", _loss_burst),
    "psnr": _of_flows(
        "dB",
        "Peak signal-to-noise ratio of a video that a program received.",
        _numbers("psnr_db", _NOT_JUDGED, _NOT_JUDGED),
    ),
    "ssim": _of_flows(
        "SSIM",
        "Structural similarity of a video that a program received.",
        _numbers("ssim", _NOT_JUDGED, _NOT_JUDGED),
        ends=(-1.0, 1.0),
    ),
    "available_bandwidth": _of_flows(
        "bit/s",
        "The estimator's result, at the wire.",
        of_answers(_numbers("available_bandwidth_bps", NOT_ESTIMATED, NO_ESTIMATE)),
    ),
    "available_bandwidth_error": _of_flows(
        "1",
        "The estimate over the true value minus 1; the true value is what the fabric counted at `ports` over the "
        "estimate's window.",
        of_answers(_bandwidth_errors),
        ends=SHARE_LESS_ONE,
    ),
    "probe_bytes": _of_flows(
        "B",
        "Bytes that the estimator sent.",
        of_answers(_numbers("probe_bytes", NOT_ESTIMATED, NO_ESTIMATE), silent_too=True),
    ),
    "available_bandwidth_covered": _of_flows(
        "1",
        "1 if the estimate's interval, or range, contains the true value, as of `available_bandwidth_error`; 0 if not.",
        of_answers(_bandwidths_covered),
        ends=SHARE,
    ),
    "probe_time": _of_flows(
        "s",
        "The length of the estimate's window.",
        of_answers(_numbers("probe_window_s", NOT_ESTIMATED, NO_ESTIMATE), silent_too=True),
    ),
    "probe_rate_error": _of_flows(
        "1",
        "Rates at which trains of probes were sent over those that the method asked for, minus 1.",
        _numbers("probe_generated_share", NOT_ESTIMATED, NO_ESTIMATE, less=1.0),
        ends=SHARE_LESS_ONE,
    ),
    "probe_disturbances": _of_flows(
        "1",
        "How often a sender of probes lost its processor, or a train arrived in batches, for each train.",
        _probe_disturbances,
    ),
    "probe_delay": _of_flows(
        "s",
        "What probes add to the delay of other UDP traffic: the median of its intervals' mean delays within the "
        "estimate's window, minus that outside.",
        _numbers("probe_added_delay_ms", NOT_ESTIMATED, _NO_HARM, 1e-3),
        ends=WITH_SIGN,
    ),
    "probe_loss": _of_flows(
        "1",
        "What probes add to the loss of other UDP traffic: its share of lost datagrams within the estimate's window, "
        "minus that outside.",
        _numbers("probe_added_loss", NOT_ESTIMATED, _NO_HARM),
        ends=(-1.0, 1.0),
    ),
    "video_rate": _of_flows(
        "bit/s",
        "The rate that each viewer of video in segments played; none for one that had nothing to play.",
        _video_rates,
    ),
    "video_read_rate": _of_flows(
        "bit/s",
        "The rate at which each viewer of video read its film, over the time that it watched: for programs what VLC "
        "calls the demultiplexed bitrate.",
        _read_rates,
    ),
    "stall_time": _of_flows(
        "s", "The time that each viewer's video stalled.", _numbers("video_stalled_s", _NOT_VIEWED, _NO_VIEWER)
    ),
    "rate_error": _of_flows(
        "1",
        "Packets a second that a sender achieved over those requested, minus 1.",
        _of_senders("requested_packets_per_second", of_requested=True),
        ends=SHARE_LESS_ONE,
    ),
    "gap_error": _of_flows(
        "s", "The error of gaps that 99 % of a sender's gaps keep.", _of_senders("send_gap_error_p99_ms", 1e-3)
    ),
    "together": _of_flows(
        "1", "The share of a generator's gaps that are none.", _of_senders("send_together_share"), ends=SHARE
    ),
    "processor_time": _of_flows("1", "Processor time of a generator, over time.", _of_senders("send_processors")),
    "context_switches": _of_flows(
        "1/s", "Context switches of a generator in a second.", _of_senders("send_switches_per_second")
    ),
    **SAMPLED,
    "completion_time": replace(
        _of_flows(
            "s",
            "The time from the start of a transfer to the arrival of its last byte; infinite for one that has not "
            "ended.",
            completion_times,
            "flows",
        ),
        protocols=("tcp", "http"),
    ),
    "throughput_fairness": MeasuredQuantity(
        "1",
        "Jain's index of the payload that the receivers of flows got.",
        _of_intervals,
        window="intervals",
        ends=SHARE,
    ),
    "fairness": MeasuredQuantity(
        "1", "Jain's index of the packet rates of flows.", _fairness, window="intervals", ends=SHARE
    ),
}
"""All measurements by the names that studies give them."""
