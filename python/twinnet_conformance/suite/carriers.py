"""How a value of a field is brought before a flow table."""

from __future__ import annotations

from collections.abc import Callable

from twinnet_conformance import openflow13 as of
from twinnet_conformance.bench import Bench
from twinnet_conformance.fields import PRESENT, Field
from twinnet_conformance.frames import build

__all__ = ["carrier", "install_for", "unlike_bit"]


def carrier(about: Field, value: int, **more: int) -> bytes:
    """Return a frame that has `value` in the field, and all that the field needs."""
    fields = {name: need for name, need in about.needs.items() if name != "vlan_vid"}
    if about.name == "vlan_vid":
        if value & PRESENT:
            fields["vlan_vid"] = value & 0xFFF
        return build(**fields, **more)
    if "vlan_vid" in about.needs:
        fields["vlan_vid"] = about.needs["vlan_vid"] & 0xFFF
    return build(**{**fields, about.name: value, **more})


def unlike_bit(about: Field, bit: int) -> int:
    """Return the first value with one bit changed."""
    return about.first ^ 1 << bit


def install_for(bench: Bench, about: Field, value: int, mask: int | None = None) -> Callable[[int], bool]:
    """Add a flow with this condition; return what sends a frame with a value and says whether the flow took it.

    What is in no frame (the port, metadata, a tunnel's number) is brought about before a second table.
    """
    condition = {**about.needs, about.name: value if mask is None else (value, mask)}
    if about.name == "in_port":
        ports = {1: bench.p1, 3: bench.p3}
        bench.forward({"in_port": ports.get(value, value)})
        return lambda port: bench.frame(build(), ports[port]) != []
    if about.in_frame:
        bench.forward(condition)
        return lambda sent: bench.frame(carrier(about, sent)) != []
    bench.forward(condition, table=1)

    def send(sent: int) -> bool:
        before = (
            (of.write_metadata(sent),)
            if about.name == "metadata"
            else (of.apply_actions(of.set_field(about.name, sent)),)
        )
        bench.flow({}, *before, of.goto_table(1), priority=1)
        return bench.frame(build()) != []

    return send
