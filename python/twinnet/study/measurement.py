"""The measurements that a study makes in every run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from twinnet.errors import did_you_mean
from twinnet.study.field_types import STRICT, IntervalPs

__all__ = ["Measurement", "unknown_selection"]

_UNITS = {
    "throughput": "bit/s",
    "port_throughput": "bit/s",
    "rtp_bandwidth": "bit/s",
    "loss": "1",
    "frame_loss": "1",
    "reordering": "1",
    "duplicates": "1",
    "packet_rate": "1/s",
    "loss_burst": "packets",
    "video_rate": "bit/s",
    "psnr": "dB",
    "ssim": "SSIM",
    "available_bandwidth": "bit/s",
    "available_bandwidth_error": "1",
    "probe_bytes": "B",
    "rate_error": "1",
    "processor_time": "1",
    "context_switches": "1/s",
    "together": "1",
    "fairness": "1",
}
"""Of measurements that are no times."""
_OF_PACKETS = ("delay", "gap", "jitter_rfc4689", "jitter_rfc3550", "rtp_bandwidth")
"""Quantities that every packet has."""


def unknown_selection(measurement: str, given: str, traffic: Iterable[str]) -> str:
    """Return what is wrong with `given`, by which `measurement` selects traffic that the study does not have."""
    return f"the measurement {measurement} names the traffic {given!r}; {did_you_mean(given, traffic)}"


class _Strict(BaseModel):
    model_config: ClassVar[ConfigDict] = STRICT


class Measurement(_Strict):
    """A quantity that is measured in every run.

    Attributes
    ----------
    of
        `throughput`: what receivers got, over the stated interval, at the stated layer. `port_throughput`: what a port
        sent. `loss`: the share of datagrams that did not arrive. `rtt`: round-trip times seen by ping or TCP.
        `transfer_time`: how long a transfer took. `delay`: one-way delay. `gap`: time between arrivals.
        `jitter_rfc4689`: of UDP and RTP. `jitter_rfc3550`: of RTP, after each packet, as Wireshark shows it.
        `rtp_bandwidth`: bits of IP in the second that ends with each packet of RTP, as Wireshark shows it.
        `frame_loss`: the share of video frames that did not arrive whole. `packet_rate`: packets a second at the
        receiver, from the first to the last. `reordering`, `duplicates`: the share of arrivals that were out of order,
        or of packets that had arrived. `delay_variation`: RFC 3393, with its sign. `loss_burst`: losses in a
        row, in packets. `psnr`, `ssim`: of a video that a program received. `video_rate`: the rate that each viewer
        of video in segments played. `stall_time`: how long each viewer's video stalled. `available_bandwidth`: the
        estimator's result, at the wire. `available_bandwidth_error`: the estimate over the true value minus 1; the true
        value is what the fabric counted at `ports` over the estimate's window. `probe_bytes`: bytes that it sent.
        `rate_error`: packets a second that a source achieved over those requested, minus 1. `gap_error`: 99 % of its
        gaps are wrong by no more. Of generators: `together`, the share of their gaps that are none; `processor_time`
        over time; `context_switches` a second. `fairness`: Jain's index of the packet rates of flows.
    title
        Its name in figures and tables; default: its key in words.
    layer
        `payload`: bytes that the application reads (goodput); `network`: packets with the headers of IP; `link`: frames
        with the Ethernet header; `wire`: also padding, preamble, FCS and inter-frame gap.
    bounds
        For throughput: the bounds of intervals for the minimum and maximum. `clock`: the clock's bounds. `arrivals`:
        from the last arrival of one interval to that of the next, so that no interval exceeds the line's rate.
    only
        Names of traffic; default: all traffic.
    minimum_after
        Number of first packets that the minimum leaves out, while a sum over the last second still builds up.
    describe
        Whether the report also gives deviation, variance and normality, and shows the values over time.
    """

    of: Literal[
        "throughput",
        "port_throughput",
        "loss",
        "rtt",
        "transfer_time",
        "delay",
        "gap",
        "jitter_rfc4689",
        "jitter_rfc3550",
        "rtp_bandwidth",
        "frame_loss",
        "packet_rate",
        "reordering",
        "duplicates",
        "delay_variation",
        "loss_burst",
        "psnr",
        "ssim",
        "available_bandwidth",
        "available_bandwidth_error",
        "probe_bytes",
        "rate_error",
        "gap_error",
        "processor_time",
        "context_switches",
        "together",
        "fairness",
        "video_rate",
        "stall_time",
    ]
    title: Annotated[str, Field(max_length=100)] = ""
    text: str = ""
    per: Literal["protocol", "flow"] = "protocol"
    layer: Literal["payload", "network", "link", "wire"] = "payload"
    interval_ps: IntervalPs | None = Field(default=None, alias="interval")
    bounds: Literal["clock", "arrivals"] = "clock"
    ports: list[str] | None = None
    only: Annotated[list[str], Field(min_length=1)] | None = None
    minimum_after: Annotated[int, Field(ge=1, le=100_000, strict=True)] | None = None
    describe: Annotated[bool, Field(strict=True)] = False

    @property
    def unit(self) -> str:
        """The unit of its values: `bit/s`, `s`, `1`, `1/s`, `packets`, `dB` or `SSIM`."""
        return _UNITS.get(self.of, "s")

    @property
    def is_series(self) -> bool:
        """True if it is a throughput, counted in intervals of the lab's clock."""
        return self.of in ("throughput", "port_throughput")

    @property
    def is_of_packets(self) -> bool:
        """True if every packet has a value of it."""
        return self.of in _OF_PACKETS

    @model_validator(mode="after")
    def _belongs_together(self) -> Measurement:
        if self.of == "port_throughput" and self.only is not None:
            raise ValueError("'only' selects traffic by name; port_throughput counts all that the port sends")
        if self.is_series and not self.interval_ps:
            raise ValueError(f"{self.of} needs 'interval', the time over which bytes are counted, such as '1 s'")
        if not self.is_series and self.interval_ps is not None:
            raise ValueError(f"'interval' has no meaning for {self.of}")
        if self.bounds == "arrivals" and self.of != "throughput":
            raise ValueError(f"'bounds' has no meaning for {self.of}; only throughput is counted between arrivals")
        if self.minimum_after is not None and not self.is_of_packets:
            raise ValueError(f"'minimum_after' has no meaning for {self.of}: it has no value of every packet")
        if self.describe and not (self.is_series or self.is_of_packets):
            raise ValueError(f"'describe' has no meaning for {self.of}: a run has one value of it")
        if (self.of in ("port_throughput", "available_bandwidth_error")) != (self.ports is not None):
            raise ValueError("port_throughput and available_bandwidth_error need 'ports', and nothing else takes it")
        if self.of == "port_throughput" and self.layer in ("payload", "network"):
            raise ValueError("port_throughput is counted at layer 'link' or 'wire'; a port does not know packets")
        return self
