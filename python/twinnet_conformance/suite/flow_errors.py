"""What is wrong in a flow-mod, and what it is called (6.4, 7.2.4, 7.2.5)."""

from __future__ import annotations

from twinnet_conformance import openflow13 as of
from twinnet_conformance.bench import Bench
from twinnet_conformance.case import case

__all__: list[str] = []

REFUSED = "Flow-mod: what is refused"


@case("7.3.4.1", REFUSED, "a command that does not exist is OFPFMFC_BAD_COMMAND")
def _(bench: Bench) -> None:
    bench.refused(of.flow_mod({}, command=9), of.FLOW_MOD_FAILED, 6)


@case("7.3.4.1", REFUSED, "flags that do not exist are OFPFMFC_BAD_FLAGS")
def _(bench: Bench) -> None:
    bench.refused(of.flow_mod({}, flags=0x8000), of.FLOW_MOD_FAILED, 7)


@case("7.2.4", REFUSED, "an instruction that does not exist is OFPBIC_UNKNOWN_INST")
def _(bench: Bench) -> None:
    bench.refused(of.flow_mod({}, of.instruction(77, bytes(4))), of.BAD_INSTRUCTION, 0)


@case("7.2.4", REFUSED, "an instruction of an unknown experimenter is OFPBIC_BAD_EXPERIMENTER")
def _(bench: Bench) -> None:
    bench.refused(of.flow_mod({}, of.instruction(0xFFFF, bytes([0, 0x55, 0x66, 0x77]))), of.BAD_INSTRUCTION, 5)


for _name, _wrong in {
    "goto": of.instruction(1, bytes(12)),
    "write-metadata": of.instruction(2, bytes(12)),
    "clear-actions": of.instruction(5, bytes(12)),
    "meter": of.instruction(6, bytes(12)),
    "apply-actions": of.instruction(4, b""),
}.items():

    @case("7.2.4", REFUSED, f"{_name} of another length is OFPBIC_BAD_LEN")
    def _(bench: Bench, wrong: bytes = _wrong) -> None:
        bench.refused(of.flow_mod({}, wrong), of.BAD_INSTRUCTION, 7)


@case("7.2.5", REFUSED, "an action that does not exist is OFPBAC_BAD_TYPE")
def _(bench: Bench) -> None:
    bench.refused(of.flow_mod({}, of.apply_actions(of.action(99, bytes(4)))), of.BAD_ACTION, 0)


@case("7.2.5", REFUSED, "an action of an unknown experimenter is OFPBAC_BAD_EXPERIMENTER")
def _(bench: Bench) -> None:
    wrong = of.action(0xFFFF, bytes([0, 0x55, 0x66, 0x77]))
    bench.refused(of.flow_mod({}, of.apply_actions(wrong)), of.BAD_ACTION, 2)


for _name, _kind in (
    ("output", 0),
    ("copy-TTL-out", 11),
    ("copy-TTL-in", 12),
    ("set-MPLS-TTL", 15),
    ("dec-MPLS-TTL", 16),
    ("push-VLAN", 17),
    ("pop-VLAN", 18),
    ("push-MPLS", 19),
    ("pop-MPLS", 20),
    ("set-queue", 21),
    ("group", 22),
    ("set-NW-TTL", 23),
    ("dec-NW-TTL", 24),
    ("push-PBB", 26),
    ("pop-PBB", 27),
):

    @case("7.2.5", REFUSED, f"{_name} of another length is OFPBAC_BAD_LEN")
    def _(bench: Bench, kind: int = _kind) -> None:
        bench.refused(
            of.flow_mod({}, of.apply_actions(of.action(kind, bytes(28)))), of.BAD_ACTION, 1, lacking=(of.BAD_ACTION, 0)
        )


@case("7.2.5", REFUSED, "an action that reaches beyond its instruction is OFPBAC_BAD_LEN")
def _(bench: Bench) -> None:
    wrong = of.output(2)[:2] + (64).to_bytes(2) + of.output(2)[4:]
    bench.refused(of.flow_mod({}, of.apply_actions(wrong)), of.BAD_ACTION, 1)


@case("7.2.5", REFUSED, "an action whose length is no multiple of eight is OFPBAC_BAD_LEN")
def _(bench: Bench) -> None:
    wrong = of.output(2)[:2] + (12).to_bytes(2) + of.output(2)[4:]
    bench.refused(of.flow_mod({}, of.apply_actions(wrong)), of.BAD_ACTION, 1)
