"""Tests of the files that are wrong themselves, each with the reason."""

from __future__ import annotations

import re

from twinnet_conformance.os_ken.files import SwitchTest

__all__ = ["why_wrong"]

_SCTP = (
    "os-ken's SCTP checksum is not the CRC32c of RFC 9260, so that the frame that is due has a wrong one; "
    "a switch that rewrites a port computes the right one"
)
_PROTOCOL = (
    "the frame that is due has TCP's header behind UDP's protocol number, its checksum at TCP's place computed anew: "
    "to a switch that has set the number those bytes are payload of UDP"
)
_PADDING = (
    "the frame that is due has padding to 60 bytes, and one of 56 is left when 4 are popped: the line pads it, "
    "and no switch's pipeline"
)
_WRONG = (
    (r"action/25_SET_FIELD/1[78]_SCTP_(SRC|DST)_IPv[46] ", _SCTP),
    (r"action/25_SET_FIELD/10_IP_PROTO_IPv[46] ", _PROTOCOL),
    (r"action/25_SET_FIELD/(19_ICMPV4_TYPE|20_ICMPV4_CODE) ethernet/mpls/", _PADDING),
    (r"match/19_ICMPV4_TYPE ethernet/mpls/ipv4/icmp\(type=8\)", _PADDING),
    (r"match/20_ICMPV4_CODE ethernet/mpls/ipv4/icmp\(code=0\)", _PADDING),
)
"""By the beginnings of names, of OpenFlow 1.3."""


def why_wrong(test: SwitchTest) -> str | None:
    """Return why no switch that keeps to its specification passes a test; `None`: it is right."""
    if test.version != "1.3":
        return None
    return next((reason for beginning, reason in _WRONG if re.match(beginning, test.name)), None)
