"""The names of measurements and traffic in figures and tables: those that the study gives, or plain words."""

from __future__ import annotations

import re

from twinnet.study.measurement import Measurement
from twinnet.study.specification import StudySpecification
from twinnet.study.window import WARM_UP

__all__ = ["label_names", "measurement_title", "traffic_name"]

_WRITTEN = {
    "udp": "UDP",
    "tcp": "TCP",
    "http": "HTTP",
    "icmp": "ping",
    "rtp": "RTP",
    "rtt": "round-trip time",
    "psnr": "PSNR",
    "ssim": "SSIM",
    "ip": "IP",
    "qos": "QoS",
    "dns": "DNS",
    "voip": "VoIP",
}


def measurement_title(name: str, measurement: Measurement) -> str:
    """The title of the measurement called `name`: its own, or its name in words; with what is shown of it, if that is
    not the mean.

    Examples
    --------
    >>> measurement_title("http_time", Measurement(of="transfer_time"))
    'HTTP time'
    >>> measurement_title("rtt", Measurement(of="rtt"))
    'Round-trip time'
    >>> measurement_title("delay", Measurement(of="delay", show="p99"))
    'Delay (p99)'
    """
    said = [measurement.function.text] if measurement.show != "mean" else []
    said += ["after the warm-up"] if measurement.window == WARM_UP else []
    shown = f" ({', '.join(said)})" if said else ""
    if measurement.title:
        return measurement.title + shown
    words = [_WRITTEN.get(word, word) for word in re.split(r"[_-]+", name)]
    return words[0][:1].upper() + " ".join(words)[1:] + shown


def traffic_name(name: str) -> str:
    """Return the display name of a kind of traffic or of a protocol: ``UDP`` for ``udp``, and others as they are."""
    return _WRITTEN.get(name, name)


def label_names(specification: StudySpecification, measurement: Measurement) -> dict[str, str]:
    """Return the display names of the labels of `measurement`; labels that are missing are shown as they are.

    The protocol stands for all traffic that uses it. Where that is one kind, its name says more.
    """
    if measurement.is_of_ports or measurement.per == "flow":
        return {}
    meant = [entry for entry in specification.traffic if measurement.only is None or entry.name in measurement.only]
    names: dict[str, str] = {}
    for protocol in dict.fromkeys(entry.protocol for entry in meant):
        users = [entry.name for entry in meant if entry.protocol == protocol]
        alone = users[0] if len(users) == 1 else protocol
        names[protocol] = traffic_name(alone)
    return names
