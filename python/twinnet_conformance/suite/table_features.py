"""What the tables can do, and being reported what they shall do (7.3.5.5)."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from twinnet_conformance import openflow13 as of
from twinnet_conformance.bench import Bench, check
from twinnet_conformance.case import case
from twinnet_conformance.fields import FIELDS, oxm
from twinnet_conformance.frames import build

__all__: list[str] = []

READ = "Table features: read"
WRITTEN = "Table features: written"
MODIFIED = "Table-mod"

INSTRUCTIONS, NEXT_TABLES, WRITE_ACTIONS, APPLY_ACTIONS, MATCH, WILDCARDS = 0, 2, 4, 6, 8, 10
WRITE_SETFIELD, APPLY_SETFIELD = 12, 14


class Table:
    """One table of a reply."""

    def __init__(self, data: bytes) -> None:
        self.number: int = data[2]
        self.name = data[8:40].split(b"\0")[0].decode(errors="replace")
        self.metadata_match, self.metadata_write, _, self.entries = struct.unpack_from("!QQII", data, 40)
        self.head = data[:64]
        self.properties: dict[int, bytes] = {}
        at = 64
        while at < len(data):
            kind, length = struct.unpack_from("!HH", data, at)
            check(length >= 4, "a property without length")
            self.properties[kind] = data[at + 4 : at + length]
            at += (length + 7) // 8 * 8

    def written(self) -> bytes:
        """Return the table as a request has it."""
        body = self.head[2:] + b"".join(
            of.padded(struct.pack("!HH", kind, 4 + len(data)) + data) for kind, data in self.properties.items()
        )
        return (2 + len(body)).to_bytes(2) + body


def _tables(bench: Bench) -> list[Table]:
    found: list[Table] = []
    for body in bench.parts(of.multipart(of.MP_TABLE_FEATURES)):
        at = 0
        while at < len(body):
            length = int.from_bytes(body[at : at + 2])
            check(length >= 64, "a table without length")
            found.append(Table(body[at : at + length]))
            at += length
    return found


def _first(bench: Bench) -> Table:
    tables = _tables(bench)
    check(bool(tables), "no table is reported")
    return tables[0]


def _ids(data: bytes) -> Iterator[int]:
    """Yield the types of actions or instructions."""
    at = 0
    while at < len(data):
        kind, length = struct.unpack_from("!HH", data, at)
        check(length >= 4, "an identifier without length")
        yield kind
        at += length


def _fields(data: bytes) -> dict[int, int]:
    """Return the numbers of basic fields, each with its bit for masks."""
    found: dict[int, int] = {}
    at = 0
    while at < len(data):
        header = int.from_bytes(data[at : at + 4])
        if header >> 16 == 0x8000:
            found[header >> 9 & 0x7F] = header >> 8 & 1
        at += 8 if header >> 16 == 0xFFFF else 4
    return found


@case("7.3.5.5", READ, "every table is reported once, in its order")
def _(bench: Bench) -> None:
    tables = bench.ask(of.Message(of.FEATURES_REQUEST), of.FEATURES_REPLY).body[12]
    check([table.number for table in _tables(bench)] == list(range(tables)), "others")


@case("7.3.5.5", READ, "every table has the properties that it must have")
def _(bench: Bench) -> None:
    for table in _tables(bench):
        needed = {INSTRUCTIONS, WRITE_ACTIONS, APPLY_ACTIONS, MATCH, WILDCARDS, WRITE_SETFIELD, APPLY_SETFIELD}
        check(needed <= set(table.properties), f"table {table.number} has {sorted(table.properties)}")


@case("7.3.5.5", READ, "a table reports its size and its metadata")
def _(bench: Bench) -> None:
    table = _first(bench)
    check(table.entries > 0, "no entries")
    check(table.metadata_match == table.metadata_write == (1 << 64) - 1, "bits are missing")


for _kind, _name in enumerate(
    ("goto", "write-metadata", "write-actions", "apply-actions", "clear-actions", "meter"), 1
):

    @case("7.3.5.5", READ, f"the first table reports the instruction {_name}")
    def _(bench: Bench, kind: int = _kind) -> None:
        check(kind in _ids(_first(bench).properties[INSTRUCTIONS]), "it does not")


for _kind in (0, 11, 12, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27):

    @case("7.3.5.5", READ, f"the first table reports action {_kind}, applied and written")
    def _(bench: Bench, kind: int = _kind) -> None:
        table = _first(bench)
        check(kind in _ids(table.properties[APPLY_ACTIONS]), "not as applied")
        check(kind in _ids(table.properties[WRITE_ACTIONS]), "not as written")


for _one in FIELDS.values():

    @case("7.3.5.5", READ, f"the first table reports the field {_one.name}" + (", with masks" if _one.maskable else ""))
    def _(bench: Bench, number: int = _one.number, maskable: bool = _one.maskable) -> None:
        reported = _fields(_first(bench).properties[MATCH])
        check(number in reported, "it does not")
        check(bool(reported[number]) or not maskable, "without masks")


@case("7.3.5.5", READ, "the next tables of a table come after it, and the last one has none")
def _(bench: Bench) -> None:
    tables = _tables(bench)
    for table in tables:
        following = table.properties.get(NEXT_TABLES, b"")
        check(all(one > table.number for one in following), f"table {table.number} leads back")
    check(not tables[-1].properties.get(NEXT_TABLES), "the last one leads on")


def _write(bench: Bench, *tables: bytes) -> of.Refusal | None:
    return bench.refusal(of.multipart(of.MP_TABLE_FEATURES, b"".join(tables)))


@case("7.3.5.5", WRITTEN, "what was read can be written back")
def _(bench: Bench) -> None:
    table = _first(bench)
    refusal = _write(bench, table.written())
    check(refusal is None, f"{refusal}")


@case("7.3.5.5", WRITTEN, "a table's name is kept")
def _(bench: Bench) -> None:
    table = _first(bench)
    table.head = table.head[:8] + b"classifier".ljust(32, b"\0") + table.head[40:]
    refusal = _write(bench, table.written())
    check(refusal is None, f"{refusal}")
    check(_first(bench).name == "classifier", f"named {_first(bench).name}")


def _written(bench: Bench, table: Table) -> Table:
    """Write a table, and return what is reported of it then: it may be more than was asked for."""
    refusal = _write(bench, table.written())
    check(refusal is None, f"{refusal}")
    return _first(bench)


def _as_reported(bench: Bench, reported: bool, message: of.Message, kind: int, code: int) -> None:
    """Check that what is reported is obeyed, and what is not is refused."""
    if reported:
        bench.obeyed(message)
    else:
        bench.refused(message, kind, code)
    bench.forward({"in_port": bench.p1})
    bench.passes(build())


@case("7.3.5.5", WRITTEN, "a field is matched exactly when it is reported from then on: else OFPBMC_BAD_FIELD")
def _(bench: Bench) -> None:
    table = _first(bench)
    for kind in (MATCH, WILDCARDS):
        table.properties[kind] = oxm("in_port", 0)[:4]
    table.properties[APPLY_SETFIELD] = table.properties[WRITE_SETFIELD] = b""
    reported = FIELDS["eth_dst"].number in _fields(_written(bench, table).properties[MATCH])
    _as_reported(bench, reported, of.flow_mod({"eth_dst": 5}), of.BAD_MATCH, 6)


@case("7.3.5.5", WRITTEN, "an instruction is taken exactly when it is reported from then on: else OFPBIC_UNSUP_INST")
def _(bench: Bench) -> None:
    table = _first(bench)
    table.properties[INSTRUCTIONS] = struct.pack("!HHHH", 1, 4, 4, 4)
    reported = 3 in _ids(_written(bench, table).properties[INSTRUCTIONS])
    _as_reported(bench, reported, of.flow_mod({"eth_dst": 5}, of.write_actions()), of.BAD_INSTRUCTION, 1)


@case("7.3.5.5", WRITTEN, "an action is taken exactly when it is reported from then on: else OFPBAC_BAD_TYPE")
def _(bench: Bench) -> None:
    table = _first(bench)
    table.properties[APPLY_ACTIONS] = struct.pack("!HH", 0, 4)
    table.properties[APPLY_SETFIELD] = b""
    reported = 17 in _ids(_written(bench, table).properties[APPLY_ACTIONS])
    message = of.flow_mod({"eth_dst": 5}, of.apply_actions(of.push_vlan(0x8100)))
    _as_reported(bench, reported, message, of.BAD_ACTION, 0)


@case("7.3.5.5", WRITTEN, "a next table is led to exactly when it is reported from then on: else OFPBIC_BAD_TABLE_ID")
def _(bench: Bench) -> None:
    table = _first(bench)
    table.properties[NEXT_TABLES] = bytes([2])
    table.properties.pop(NEXT_TABLES + 1, None)
    reported = 1 in _written(bench, table).properties[NEXT_TABLES]
    _as_reported(bench, reported, of.flow_mod({"eth_dst": 5}, of.goto_table(1)), of.BAD_INSTRUCTION, 2)


@case("7.3.5.5", WRITTEN, "a table takes flows exactly when it is reported from then on: else OFPFMFC_BAD_TABLE_ID")
def _(bench: Bench) -> None:
    refusal = _write(bench, _first(bench).written())
    check(refusal is None, f"{refusal}")
    reported = any(table.number == 1 for table in _tables(bench))
    _as_reported(bench, reported, of.flow_mod({}, table=1), of.FLOW_MOD_FAILED, 2)


@case("7.3.5.5", WRITTEN, "a table that the switch does not have is OFPTFFC_BAD_TABLE")
def _(bench: Bench) -> None:
    table = _first(bench)
    table.head = table.head[:2] + bytes([255]) + table.head[3:]
    refusal = _write(bench, table.written())
    check(refusal == (of.TABLE_FEATURES_FAILED, 0), f"{refusal}")


@case("7.3.5.5", WRITTEN, "a property that does not exist is OFPTFFC_BAD_TYPE")
def _(bench: Bench) -> None:
    table = _first(bench)
    table.properties[0x77] = bytes(4)
    refusal = _write(bench, table.written())
    check(refusal == (of.TABLE_FEATURES_FAILED, 2), f"{refusal}")


@case("7.3.5.5", WRITTEN, "a property that reaches beyond its table is OFPTFFC_BAD_LEN")
def _(bench: Bench) -> None:
    table = _first(bench)
    table.properties = {INSTRUCTIONS: table.properties[INSTRUCTIONS]}
    data = table.written()
    refusal = _write(bench, data[:66] + (4000).to_bytes(2) + data[68:])
    check(refusal is not None and refusal in ((of.TABLE_FEATURES_FAILED, 3), (of.BAD_REQUEST, 6)), f"{refusal}")


@case("7.3.5.5", WRITTEN, "an action that the switch does not have is refused with OFPTFFC_BAD_ARGUMENT")
def _(bench: Bench) -> None:
    table = _first(bench)
    table.properties[APPLY_ACTIONS] = struct.pack("!HH", 99, 4)
    refusal = _write(bench, table.written())
    check(refusal == (of.TABLE_FEATURES_FAILED, 4), f"{refusal}")


@case("7.3.3", MODIFIED, "a table-mod is obeyed and without effect")
def _(bench: Bench) -> None:
    bench.obeyed(of.table_mod(0, 0), of.table_mod(of.ALL_TABLES, 0))


@case("7.3.3", MODIFIED, "a table that the switch does not have is OFPTMFC_BAD_TABLE")
def _(bench: Bench) -> None:
    tables = bench.ask(of.Message(of.FEATURES_REQUEST), of.FEATURES_REPLY).body[12]
    if tables == 255:
        return
    bench.refused(of.table_mod(tables, 0), of.TABLE_MOD_FAILED, 0)
