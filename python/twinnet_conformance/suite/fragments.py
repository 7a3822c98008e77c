"""How fragments of IP are handled (7.3.2)."""

from __future__ import annotations

from twinnet_conformance import openflow13 as of
from twinnet_conformance.bench import Bench, check
from twinnet_conformance.case import case
from twinnet_conformance.frames import build

__all__: list[str] = []

FRAGMENTS = "Fragments"
UDP = {"eth_type": 0x0800, "ip_proto": 17}
FIRST, LATER = 0x2000, 0x2000 | 8
NORMAL, DROP, REASSEMBLE = range(3)


def _flags(bench: Bench) -> int:
    return int.from_bytes(bench.ask(of.Message(of.GET_CONFIG_REQUEST), of.GET_CONFIG_REPLY).body[:2])


@case("7.3.2", FRAGMENTS, "they are not treated in a special way at the beginning")
def _(bench: Bench) -> None:
    check(_flags(bench) == NORMAL, f"flags {_flags(bench)}")


for _name, _bits in (("the first", FIRST), ("a later", LATER)):

    @case("7.3.2", FRAGMENTS, f"{_name} one passes by its addresses")
    def _(bench: Bench, bits: int = _bits) -> None:
        bench.forward({"eth_type": 0x0800, "ipv4_dst": 0x0A000002})
        bench.passes(build(**UDP, ip_fragment=bits))

    @case("7.3.2", FRAGMENTS, f"OFPC_FRAG_DROP drops {_name} one, and nothing else")
    def _(bench: Bench, bits: int = _bits) -> None:
        bench.forward({})
        bench.obeyed(of.set_config(DROP, 128))
        check(_flags(bench) == DROP, f"flags {_flags(bench)}")
        bench.drops(build(**UDP, ip_fragment=bits))
        bench.passes(build(**UDP))
        bench.passes(build(**UDP, ip_fragment=0x4000))

    @case("7.3.2", FRAGMENTS, f"ip_proto of {_name} one is met")
    def _(bench: Bench, bits: int = _bits) -> None:
        bench.forward(UDP)
        bench.passes(build(**UDP, ip_fragment=bits))


@case("7.3.2", FRAGMENTS, "ports of the first one are met")
def _(bench: Bench) -> None:
    bench.forward({**UDP, "udp_dst": 7})
    bench.passes(build(**UDP, udp_dst=7, ip_fragment=FIRST))


@case("7.3.2", FRAGMENTS, "what stands in a later one where ports would be is not taken for them")
def _(bench: Bench) -> None:
    bench.forward({**UDP, "udp_dst": 7})
    bench.drops(build(**UDP, udp_dst=7, ip_fragment=LATER))


@case("7.3.2", FRAGMENTS, "OFPC_FRAG_DROP drops fragments of IPv6")
def _(bench: Bench) -> None:
    bench.forward({})
    bench.obeyed(of.set_config(DROP, 128))
    frame = build(eth_type=0x86DD, ip_proto=17, ipv6_exthdr=16)
    # An offset of 8, more to come.
    at = frame.index(bytes([17, 0, 0, 0, 0, 0, 0, 9]))
    bench.drops(frame[: at + 2] + b"\0\x09" + frame[at + 4 :])


@case("7.3.2", FRAGMENTS, "OFPC_FRAG_NORMAL lets them pass again")
def _(bench: Bench) -> None:
    bench.forward({})
    bench.obeyed(of.set_config(DROP, 128), of.set_config(NORMAL, 128))
    bench.passes(build(**UDP, ip_fragment=FIRST))


@case("7.3.2", FRAGMENTS, "OFPC_FRAG_REASM is obeyed, or refused with OFPSCFC_BAD_FLAGS when the switch cannot")
def _(bench: Bench) -> None:
    capabilities = int.from_bytes(bench.ask(of.Message(of.FEATURES_REQUEST), of.FEATURES_REPLY).body[16:20])
    if capabilities & 32:
        bench.obeyed(of.set_config(REASSEMBLE, 128))
        check(_flags(bench) == REASSEMBLE, f"flags {_flags(bench)}")
    else:
        bench.refused(of.set_config(REASSEMBLE, 128), of.SWITCH_CONFIG_FAILED, 0)


@case("7.3.2", FRAGMENTS, "flags that do not exist are OFPSCFC_BAD_FLAGS")
def _(bench: Bench) -> None:
    bench.refused(of.set_config(3, 128), of.SWITCH_CONFIG_FAILED, 0)
