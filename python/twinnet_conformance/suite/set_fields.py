"""The action set-field, for each field that can be set (5.12)."""

from __future__ import annotations

from twinnet_conformance import openflow13 as of
from twinnet_conformance.bench import Bench, check
from twinnet_conformance.case import case
from twinnet_conformance.fields import BASIC, FIELDS, PRESENT, Field, oxm
from twinnet_conformance.frames import build
from twinnet_conformance.suite.carriers import carrier

__all__: list[str] = []

APPLIED = "Set-field: applied"
WRITTEN = "Set-field: in the action set"
BUCKETS = "Set-field: in a bucket"
SENT = "Set-field: in a packet-out"
MATCHED = "Set-field: matched by the next table"
REFUSED = "Set-field: what is refused"


def _needs(about: Field) -> of.Conditions:
    """Return the conditions that promise the field; a tag's identifier is promised by a tag alone."""
    return {"vlan_vid": (PRESENT, PRESENT)} if about.name == "vlan_vid" else about.needs


def _in_frames(about: Field) -> None:
    action = of.set_field(about.name, about.second)
    before, after = carrier(about, about.first), carrier(about, about.second)

    @case("5.12", APPLIED, f"{about.name} is rewritten, checksums too")
    def _(bench: Bench) -> None:
        bench.forward(_needs(about), action)
        bench.passes(before, after)

    @case("5.12", WRITTEN, f"{about.name} is rewritten, checksums too")
    def _(bench: Bench) -> None:
        bench.flow(_needs(about), of.write_actions(action, of.output(bench.p2)))
        bench.passes(before, after)

    @case("5.12", BUCKETS, f"{about.name} is rewritten, checksums too")
    def _(bench: Bench) -> None:
        bench.obeyed(of.group_mod(1, of.GROUP_INDIRECT, of.bucket(action, of.output(bench.p2))))
        bench.flow(_needs(about), of.apply_actions(of.group(1)))
        bench.passes(before, after)

    @case("7.3.7", SENT, f"{about.name} is rewritten, checksums too")
    def _(bench: Bench) -> None:
        bench.obeyed(of.packet_out(before, action, of.output(bench.p2)))
        came = bench.target.arrived()
        check(came == [(bench.p2, after)], f"came {came}")


def _settable(about: Field) -> None:
    @case("5.3", MATCHED, f"{about.name} that was set")
    def _(bench: Bench) -> None:
        bench.flow(_needs(about), of.apply_actions(of.set_field(about.name, about.second)), of.goto_table(1))
        # The field itself may be what others need: then its condition is the new value alone.
        bench.forward({**about.needs, about.name: about.second}, table=1)
        frame = carrier(about, about.first) if about.in_frame else build()
        check(len(bench.frame(frame)) == 1, "the next table did not match it")

    @case("5.12", REFUSED, f"{about.name} with a mask is refused")
    def _(bench: Bench) -> None:
        length = about.bytes * 2
        header = (BASIC << 16 | about.number << 9 | 1 << 8 | length).to_bytes(4)
        value, mask = about.second.to_bytes(about.bytes), about.maximum.to_bytes(about.bytes)
        wrong = of.action(25, header + value + mask)
        # Which code is not said.
        check(bench.refusal(of.flow_mod(_needs(about), of.apply_actions(wrong))) is not None, "obeyed")

    @case("5.12", REFUSED, f"{about.name} of another length is OFPBAC_BAD_SET_LEN")
    def _(bench: Bench) -> None:
        header = (BASIC << 16 | about.number << 9 | (about.bytes + 1)).to_bytes(4)
        wrong = of.action(25, header + about.second.to_bytes(about.bytes) + b"\0")
        # A length that the field cannot have may be taken for another field's.
        bench.refused(of.flow_mod(_needs(about), of.apply_actions(wrong)), of.BAD_ACTION, 13, 14)

    if about.bits % 8:

        @case("5.12", REFUSED, f"{about.name} beyond its {about.bits} bits is OFPBAC_BAD_SET_ARGUMENT")
        def _(bench: Bench) -> None:
            wrong = of.action(25, oxm(about.name, about.maximum + 1 | about.second))
            bench.refused(of.flow_mod(_needs(about), of.apply_actions(wrong)), of.BAD_ACTION, 15)

    if about.needs:

        @case("5.12", REFUSED, f"{about.name} under a match that does not promise it is OFPBAC_MATCH_INCONSISTENT")
        def _(bench: Bench) -> None:
            action = of.set_field(about.name, about.second)
            bench.refused(of.flow_mod({}, of.apply_actions(action)), of.BAD_ACTION, 10)


def _read_only(about: Field) -> None:
    @case("5.12", REFUSED, f"{about.name}, which cannot be set, is OFPBAC_BAD_SET_TYPE")
    def _(bench: Bench) -> None:
        action = of.set_field(about.name, about.second)
        bench.refused(of.flow_mod(_needs(about), of.apply_actions(action)), of.BAD_ACTION, 13)


for _one in FIELDS.values():
    if not _one.settable:
        _read_only(_one)
        continue
    _settable(_one)
    if _one.in_frame:
        _in_frames(_one)


@case("5.12", REFUSED, "a field that does not exist is OFPBAC_BAD_SET_TYPE")
def _(bench: Bench) -> None:
    wrong = of.action(25, (BASIC << 16 | 99 << 9 | 4).to_bytes(4) + bytes(4))
    bench.refused(of.flow_mod({}, of.apply_actions(wrong)), of.BAD_ACTION, 13)


@case("5.12", REFUSED, "vlan_vid under a match without a tag is OFPBAC_MATCH_INCONSISTENT")
def _(bench: Bench) -> None:
    action = of.set_field("vlan_vid", 0x1000 | 5)
    bench.refused(of.flow_mod({"vlan_vid": 0}, of.apply_actions(action)), of.BAD_ACTION, 10)


@case("5.12", REFUSED, "a field of another protocol than the match's is OFPBAC_MATCH_INCONSISTENT")
def _(bench: Bench) -> None:
    action = of.set_field("tcp_dst", 5)
    bench.refused(of.flow_mod({"eth_type": 0x0800, "ip_proto": 17}, of.apply_actions(action)), of.BAD_ACTION, 10)


@case("5.12", REFUSED, "a field of a header that an earlier action has pushed is no mistake")
def _(bench: Bench) -> None:
    bench.forward({}, of.push_vlan(0x8100), of.set_field("vlan_vid", 0x1000 | 5))
    bench.passes(build(), build(vlan_vid=5))
