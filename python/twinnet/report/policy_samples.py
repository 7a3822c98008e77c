"""Samples of each run of a study of policies: of seconds at ports, and of clients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from twinnet.errors import BadValue
from twinnet.study.store import StoredRun, StoreError

__all__ = ["SAMPLED", "ProfileSamples", "jain", "profile_samples"]

SAMPLED: Mapping[str, str] = {
    "port_bandwidth": "kB/s, of each second, by the port that sends",
    "total_transferred": "kB, of each client by HTTP",
    "transfer_rate": "kB/s, of each client by HTTP",
    "request_time": "ms, the mean of each client's requests by HTTP",
    "video_rate": "kbit/s, of what each viewer played",
    "video_read": "kB, of each viewer",
    "video_read_rate": "kbit/s, of what each viewer read over the time that it watched",
    "stalled": "s, of each viewer",
    "round_trip": "ms, the mean of each client and server",
}
"""The sampled quantities, with their units."""


@dataclass
class ProfileSamples:
    """All samples of one combination of levels.

    Attributes
    ----------
    levels
        The level of each factor.
    policy, enforced_at
        What the runs tell of their policy.
    values
        Samples by quantity; of ports by ``port_bandwidth PORT``.
    runs
        How many repetitions there are.
    lost, sent
        Echo requests without a reply, and all.
    latencies
        HTTP latencies in milliseconds, the mean over clients of each percentile: 50, 95 and 99.
    misplaced
        What runs tell of traffic in other classes' queues.
    full_queues
        Frames dropped at each class's queue, by port and class, where there were any.
    """

    levels: Mapping[str, str]
    policy: str
    enforced_at: str
    values: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    runs: int = 0
    lost: int = 0
    sent: int = 0
    latencies: dict[int, list[float]] = field(default_factory=dict[int, list[float]])
    misplaced: list[str] = field(default_factory=list[str])
    full_queues: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])

    @property
    def label(self) -> str:
        """The levels in words."""
        return " ".join(self.levels.values()) or self.policy

    def add(self, name: str, values: Iterable[float]) -> None:
        """Add samples of the quantity `name`."""
        self.values.setdefault(name, []).extend(values)


def profile_samples(runs: Iterable[StoredRun]) -> list[ProfileSamples]:
    """Return the samples of all combinations of levels, repetitions together, in the order of the runs.

    Raises
    ------
    BadValue
        When the runs had no policy.
    """
    found: dict[str, ProfileSamples] = {}
    for run in runs:
        policy = _policy_of(run)
        fresh = ProfileSamples(run.levels, policy.name, policy.enforced_at)
        profile = found.setdefault(fresh.label, fresh)
        profile.runs += 1
        profile.misplaced += policy.misplaced
        _add_ports(profile, run.table("port_samples"))
        _add_flows(profile, run.table("flows"))
        for place, drops in policy.drops:
            profile.full_queues[place] = profile.full_queues.get(place, 0) + drops
    if not found:
        raise BadValue("there are no finished runs", "run the study first")
    return list(found.values())


@dataclass(frozen=True)
class _AppliedPolicy:
    """What the notes of a run say of its policy: drops are by port and class."""

    name: str
    enforced_at: str
    misplaced: list[str]
    drops: list[tuple[tuple[str, str], int]]


def _policy_of(run: StoredRun) -> _AppliedPolicy:
    remedy = "remove the run's folder and run the study again"
    try:
        policy = run.record["notes"].get("policy")
        if policy is None:
            raise BadValue(f"the run {run.id} had no policy", "give results of a study whose file names a 'policy'")
        drops: list[tuple[tuple[str, str], int]] = []
        for port, classes in policy["queues"].items():
            for one in classes:
                if dropped := sum(int(count) for count in one["drops"].values()):
                    number = str(one["class"])
                    drops.append(((str(port), str(policy["classes"].get(number, number))), dropped))
        misplaced = [str(one) for one in policy["misplaced"]]
        return _AppliedPolicy(str(policy["name"]), str(policy["enforced_at"]), misplaced, drops)
    except BadValue:
        raise
    except KeyError as error:
        raise StoreError(f"the notes of {run.folder / 'run.json'} have no {error.args[0]!r}", remedy) from None
    except (AttributeError, TypeError, ValueError) as error:
        raise StoreError(f"the notes of {run.folder / 'run.json'} cannot be read: {error}", remedy) from None


def _add_ports(profile: ProfileSamples, samples: pl.DataFrame) -> None:
    if samples.is_empty():
        return
    seconds = samples.filter(pl.col("start_s") >= 0).with_columns(second=pl.col("start_s").floor())
    summed = seconds.group_by("port", "second").agg(pl.col("link_bytes").sum()).sort("second")
    for port in summed["port"].unique().sort():
        rows = summed.filter(pl.col("port") == port)
        # The last second may not be whole.
        profile.add(f"port_bandwidth {port}", (rows["link_bytes"][:-1] / 1000).to_list())


def _add_flows(profile: ProfileSamples, flows: pl.DataFrame) -> None:
    clients = flows.filter((pl.col("role") == "client") & pl.col("end_s").is_not_null())
    viewers = clients.filter(pl.col("video_played_s").is_not_null())
    loads = clients.filter(pl.col("video_played_s").is_null())
    if not loads.is_empty():
        size, length = loads["payload_bytes"] / 1000, loads["end_s"] - loads["start_s"]
        profile.add("total_transferred", size.to_list())
        profile.add("transfer_rate", (size / length).to_list())
        profile.add("request_time", loads["rtt_mean_ms"].drop_nulls().to_list())
        for percentile, column in {50: "rtt_p50_ms", 95: "latency_p95_ms", 99: "rtt_p99_ms"}.items():
            profile.latencies.setdefault(percentile, []).extend(loads[column].drop_nulls().to_list())
    if not viewers.is_empty():
        profile.add("video_rate", (viewers["video_rate_bps"].fill_null(0.0) / 1000).to_list())
        profile.add("video_read", (viewers["payload_bytes"] / 1000).to_list())
        watched = (viewers["end_s"] - viewers["start_s"]).to_numpy()
        profile.add("video_read_rate", (viewers["payload_bytes"].to_numpy() * 0.008 / watched).tolist())
        profile.add("stalled", viewers["video_stalled_s"].to_list())
    pings = flows.filter((pl.col("protocol") == "icmp") & (pl.col("role") == "source"))
    if not pings.is_empty():
        profile.add("round_trip", pings["rtt_mean_ms"].drop_nulls().to_list())
        profile.lost += int(pings["lost_packets"].fill_null(0).sum())
        profile.sent += int(pings["packets"].fill_null(0).sum())


def jain(values: Sequence[float]) -> float:
    """Return Jain's fairness index (Jain, Chiu and Hawe 1984): 1 when all have as much, 1/n when one has all."""
    given = np.asarray(values, dtype=np.float64)
    squares = float((given**2).sum())
    return float(given.sum()) ** 2 / (given.size * squares) if squares > 0 else float("nan")
