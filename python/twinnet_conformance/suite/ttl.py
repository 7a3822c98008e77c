"""Times to live: decremented, set, copied, and what happens when they end (5.12)."""

from __future__ import annotations

from twinnet_conformance import openflow13 as of
from twinnet_conformance.bench import Bench, check
from twinnet_conformance.case import case
from twinnet_conformance.frames import ETH_DST, ETH_SRC, build, ethernet, mpls

__all__: list[str] = []

NETWORK = "TTL: IP"
LABELS = "TTL: MPLS"
COPIES = "TTL: copies"
ENDED = "TTL: invalid"

IP, IP6, LABELLED = {"eth_type": 0x0800}, {"eth_type": 0x86DD}, {"eth_type": 0x8847}


def _labelled(*entries: tuple[int, int], ip_ttl: int = 64) -> bytes:
    """Return a frame with (label, TTL) entries, the first outermost."""
    rest = build(ip_ttl=ip_ttl)[14:]
    for at, (label, ttl) in reversed(list(enumerate(entries))):
        rest = mpls(label, 0, int(at == len(entries) - 1), ttl, rest)
    return ethernet(ETH_DST, ETH_SRC, 0x8847, rest)


for _name, _match in (("IPv4", IP), ("IPv6", IP6)):
    for _protocol in (6, 17, 132, 253):

        @case("5.12", NETWORK, f"dec-NW-TTL of {_name} before protocol {_protocol}")
        def _(bench: Bench, match: dict[str, int] = _match, protocol: int = _protocol) -> None:
            bench.forward(match, of.dec_nw_ttl())
            frame = {**match, "ip_proto": protocol}
            bench.passes(build(**frame, ip_ttl=9), build(**frame, ip_ttl=8))

    for _ttl in (1, 64, 255):

        @case("5.12", NETWORK, f"set-NW-TTL of {_name} to {_ttl}")
        def _(bench: Bench, match: dict[str, int] = _match, ttl: int = _ttl) -> None:
            bench.forward(match, of.set_nw_ttl(ttl))
            bench.passes(build(**match, ip_ttl=9), build(**match, ip_ttl=ttl))

    @case("5.12", NETWORK, f"dec-NW-TTL twice, {_name}")
    def _(bench: Bench, match: dict[str, int] = _match) -> None:
        bench.forward(match, of.dec_nw_ttl(), of.dec_nw_ttl())
        bench.passes(build(**match, ip_ttl=9), build(**match, ip_ttl=7))

    @case("5.12", NETWORK, f"dec-NW-TTL of {_name} behind a tag")
    def _(bench: Bench, match: dict[str, int] = _match) -> None:
        bench.forward(match, of.dec_nw_ttl())
        bench.passes(build(**match, vlan_vid=5, ip_ttl=9), build(**match, vlan_vid=5, ip_ttl=8))

    for _ttl in (0, 1):

        @case("5.12", ENDED, f"dec-NW-TTL of {_name} from {_ttl} drops the frame")
        def _(bench: Bench, match: dict[str, int] = _match, ttl: int = _ttl) -> None:
            bench.forward(match, of.dec_nw_ttl())
            bench.drops(build(**match, ip_ttl=ttl))

        @case("7.4.1", ENDED, f"dec-NW-TTL of {_name} from {_ttl} tells a controller that asked: OFPR_INVALID_TTL")
        def _(bench: Bench, match: dict[str, int] = _match, ttl: int = _ttl) -> None:
            bench.obeyed(of.set_async((7, 7), (7, 7), (15, 15)))
            bench.forward(match, of.dec_nw_ttl())
            bench.drops(build(**match, ip_ttl=ttl))
            check(bench.packet_in().reason == 2, "the reason is another")

    @case("5.12", ENDED, f"an invalid TTL of {_name} ends the list where it stands: outputs before it have been made")
    def _(bench: Bench, match: dict[str, int] = _match) -> None:
        bench.flow(match, of.apply_actions(of.output(bench.p2), of.dec_nw_ttl(), of.output(bench.p3)))
        bench.passes(build(**match, ip_ttl=1))


@case("7.4.1", ENDED, "a controller that has not asked is not told")
def _(bench: Bench) -> None:
    bench.obeyed(of.set_async((3, 3), (7, 7), (15, 15)))
    bench.forward(IP, of.dec_nw_ttl())
    bench.drops(build(ip_ttl=1))
    check(not bench.packet_ins(), "a packet-in came")


@case("5.12", NETWORK, "a forwarded frame's TTL is not changed unasked, even 0 or 1")
def _(bench: Bench) -> None:
    bench.forward(IP)
    bench.passes(build(ip_ttl=0))
    bench.passes(build(ip_ttl=1))


for _name, _action in (("dec-NW-TTL", of.dec_nw_ttl()), ("set-NW-TTL", of.set_nw_ttl(5))):

    @case("5.12", NETWORK, f"{_name} under a match without IP is OFPBAC_MATCH_INCONSISTENT")
    def _(bench: Bench, action: bytes = _action) -> None:
        bench.refused(of.flow_mod({"eth_type": 0x0806}, of.apply_actions(action)), of.BAD_ACTION, 10)


@case("5.12", LABELS, "dec-MPLS-TTL")
def _(bench: Bench) -> None:
    bench.forward(LABELLED, of.dec_mpls_ttl())
    bench.passes(_labelled((5, 9)), _labelled((5, 8)))


@case("5.12", LABELS, "dec-MPLS-TTL is for the outermost label")
def _(bench: Bench) -> None:
    bench.forward(LABELLED, of.dec_mpls_ttl())
    bench.passes(_labelled((5, 9), (6, 7)), _labelled((5, 8), (6, 7)))


for _ttl in (1, 255):

    @case("5.12", LABELS, f"set-MPLS-TTL to {_ttl}")
    def _(bench: Bench, ttl: int = _ttl) -> None:
        bench.forward(LABELLED, of.set_mpls_ttl(ttl))
        bench.passes(_labelled((5, 9), (6, 7)), _labelled((5, ttl), (6, 7)))


for _ttl in (0, 1):

    @case("5.12", ENDED, f"dec-MPLS-TTL from {_ttl} drops the frame")
    def _(bench: Bench, ttl: int = _ttl) -> None:
        bench.forward(LABELLED, of.dec_mpls_ttl())
        bench.drops(_labelled((5, ttl)))


@case("7.4.1", ENDED, "dec-MPLS-TTL from 1 tells a controller that asked: OFPR_INVALID_TTL")
def _(bench: Bench) -> None:
    bench.obeyed(of.set_async((7, 7), (7, 7), (15, 15)))
    bench.forward(LABELLED, of.dec_mpls_ttl())
    bench.drops(_labelled((5, 1)))
    check(bench.packet_in().reason == 2, "the reason is another")


for _name, _action in (("dec-MPLS-TTL", of.dec_mpls_ttl()), ("set-MPLS-TTL", of.set_mpls_ttl(5))):

    @case("5.12", LABELS, f"{_name} under a match without labels is OFPBAC_MATCH_INCONSISTENT")
    def _(bench: Bench, action: bytes = _action) -> None:
        bench.refused(of.flow_mod(IP, of.apply_actions(action)), of.BAD_ACTION, 10)


@case("5.12", COPIES, "copy-TTL-out from IP to the label")
def _(bench: Bench) -> None:
    bench.forward(LABELLED, of.copy_ttl_out())
    bench.passes(_labelled((5, 9), ip_ttl=33), _labelled((5, 33), ip_ttl=33))


@case("5.12", COPIES, "copy-TTL-out from label to label")
def _(bench: Bench) -> None:
    bench.forward(LABELLED, of.copy_ttl_out())
    bench.passes(_labelled((5, 9), (6, 22), ip_ttl=33), _labelled((5, 22), (6, 22), ip_ttl=33))


@case("5.12", COPIES, "copy-TTL-in from the label to IP, its checksum too")
def _(bench: Bench) -> None:
    bench.forward(LABELLED, of.copy_ttl_in())
    bench.passes(_labelled((5, 9), ip_ttl=33), _labelled((5, 9), ip_ttl=9))


@case("5.12", COPIES, "copy-TTL-in from label to label")
def _(bench: Bench) -> None:
    bench.forward(LABELLED, of.copy_ttl_in())
    bench.passes(_labelled((5, 9), (6, 22), ip_ttl=33), _labelled((5, 9), (6, 9), ip_ttl=33))


@case("5.12", COPIES, "copy-TTL-in, then pop-MPLS: IP leaves with the label's TTL")
def _(bench: Bench) -> None:
    bench.forward(LABELLED, of.dec_mpls_ttl(), of.copy_ttl_in(), of.pop_mpls(0x0800))
    bench.passes(_labelled((5, 9), ip_ttl=33), build(ip_ttl=8))


@case("5.12", COPIES, "push-MPLS, then copy-TTL-out")
def _(bench: Bench) -> None:
    bench.forward(IP, of.push_mpls(0x8847), of.set_mpls_ttl(3), of.copy_ttl_out())
    bench.passes(build(ip_ttl=33), _labelled((0, 33), ip_ttl=33))


for _name, _action in (("copy-TTL-out", of.copy_ttl_out()), ("copy-TTL-in", of.copy_ttl_in())):

    @case("5.12", COPIES, f"{_name} of a label before IPv6")
    def _(bench: Bench, name: str = _name, action: bytes = _action) -> None:
        bench.forward(LABELLED, action)
        packets = {ttl: build(eth_type=0x86DD, ip_ttl=ttl)[14:] for ttl in (33, 9)}
        before = ethernet(ETH_DST, ETH_SRC, 0x8847, mpls(5, 0, 1, 9, packets[33]))
        outside, inside = (33, 33) if name == "copy-TTL-out" else (9, 9)
        bench.passes(before, ethernet(ETH_DST, ETH_SRC, 0x8847, mpls(5, 0, 1, outside, packets[inside])))
