"""The settings of sources as keyword arguments, so that editors complete them and type checkers know them.

:mod:`twinnet.traffic.apps` says what each means.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

from twinnet.traffic.distributions import Distribution, OnOff

__all__ = ["FlowSettings", "PresetSettings", "RtpSettings", "TcpSettings", "TransferSettings", "UdpSettings"]


class UdpSettings(TypedDict, total=False):
    """What :func:`twinnet.traffic.apps.udp_source` takes besides hosts and port."""

    rate: str | None
    """Rate of UDP payload, such as ``"10 Mbit"``."""
    packets_per_second: float | None
    """Datagrams a second, above 0."""
    gap: Distribution | Mapping[str, object] | None
    """The distribution of gaps between datagrams."""
    payload: str | None
    """UDP payload of each datagram, 16 B to 65507 B."""
    size: Distribution | Mapping[str, object] | None
    """The distribution of payloads."""
    process: Literal["constant", "poisson"] | None
    """With a rate: how gaps are drawn."""
    on_off: OnOff | Mapping[str, Mapping[str, object]] | None
    """Periods of talk and of silence."""
    trace: Sequence[tuple[str, str]] | str | os.PathLike[str] | None
    """A gap and a payload for each datagram, or the path of a file of them."""
    repeat: bool
    """Whether the trace begins anew after its end."""
    unpaced: bool
    """As many as the host takes."""
    exact: bool
    """Whether each datagram leaves at its own moment on real sockets, too."""
    fragment: bool
    """Whether datagrams above the MTU may be fragmented."""
    dscp: int | None
    """Differentiated services code point, 0 to 63."""
    duration: str | None
    """How long to send, such as ``"10 s"``."""
    packets: int | None
    """How many datagrams to send."""
    flow: int | None
    """The flow's number in reports."""


class FlowSettings(UdpSettings, total=False):
    """What :func:`twinnet.traffic.apps.udp` takes besides hosts and port."""

    interval: str
    """The interval in which bytes and packets are counted, 1 ms to 1 h."""
    record_packets: int | None
    """Packets that the receiver keeps one by one, at most 1,000,000."""
    path_mtu: int | None
    """The path's MTU in bytes, with which the receiver counts what carried the datagrams."""


class PresetSettings(FlowSettings, total=False):
    """What :func:`twinnet.traffic.apps.preset` takes besides hosts and preset."""

    port: int
    """The destination port, 1 to 65535."""


class RtpSettings(TypedDict, total=False):
    """What :func:`twinnet.traffic.apps.rtp_source` takes besides hosts and port."""

    rate: str
    """Mean rate of the coded video."""
    frames_per_second: float
    """The frame rate."""
    group_frames: int
    """Frames from one I frame to the next."""
    b_frames: int
    """B frames between two others."""
    variation: float
    """The deviation of a frame's size over the mean of its type."""
    frame_sizes: Sequence[str] | str | os.PathLike[str] | None
    """The size of each frame, or the path of a file with one on each line."""
    paced: bool
    """Whether the packets of a frame are spread over its interval."""
    shaping: str | None
    """Windows over which the stream is spread evenly, such as ``"200 ms"``."""
    dscp: int | None
    """Differentiated services code point, 0 to 63."""
    duration: str | None
    """How long to send, such as ``"50 s"``."""
    frames: int | None
    """How many frames to send."""
    flow: int | None
    """The flow's number in reports."""


class TransferSettings(TypedDict, total=False):
    """What :func:`twinnet.traffic.apps.tcp_bulk` takes besides hosts and port."""

    duration: str | None
    """How long to send, such as ``"10 s"``."""
    size: str | Distribution | Mapping[str, object] | None
    """How much to send, such as ``"1 GB"``; or, by a schedule, the distribution of writes."""
    writes: int | None
    """How many writes to send, by a schedule."""
    dscp: int | None
    """Differentiated services code point, 0 to 63."""
    flow: int | None
    """The flow's number in reports."""
    congestion_control: str | None
    """Its name, such as ``"cubic"``."""
    info_interval: str | None
    """How often the connection's state is recorded, 1 ms to 1 h."""


class TcpSettings(TransferSettings, total=False):
    """What :func:`twinnet.traffic.apps.tcp` takes besides hosts and port: a schedule of writes."""

    rate: str | None
    """Rate of payload, such as ``"10 Mbit"``."""
    packets_per_second: float | None
    """Writes a second, above 0."""
    gap: Distribution | Mapping[str, object] | None
    """The distribution of gaps between writes."""
    payload: str | None
    """Bytes of each write, 16 B to 1 GiB."""
    process: Literal["constant", "poisson"] | None
    """With a rate: how gaps are drawn."""
    on_off: OnOff | Mapping[str, Mapping[str, object]] | None
    """Periods of talk and of silence."""
