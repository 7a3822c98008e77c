"""Packs, manifests and records of others: whatever is in them, their check ends with a sentence and in bounds."""

from __future__ import annotations

import io
import json
import random
import resource
import stat
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from forged_packs import PLAIN, contents, written
from twinnet.cli import run as command_line
from twinnet.given_files import given_json
from twinnet.report.unpacked import unpack

STEERING = "\x1b[31mX\x07\r\u202e"


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    study = PLAIN.replace("repetitions: 10", "repetitions: 1").replace("duration: 1 s", "duration: 200 ms")
    (folder / "study.yaml").write_text(study)
    assert command_line(["run", str(folder / "study.yaml"), "--out", str(folder / "out"), "--no-report"]) == 0
    assert command_line(["pack", str(folder / "out" / "forged"), "--out", str(folder / "pack.zip")]) == 0
    return folder / "pack.zip"


@pytest.fixture
def hostile(pack: Path, tmp_path: Path) -> Callable[..., Path]:
    def make(files: dict[str, bytes] | None = None, manifest: bytes | None = None) -> Path:
        return written(tmp_path / "hostile.zip", contents(pack) | (files or {}), manifest)

    return make


def manifest_of(pack: Path, **changed: object) -> bytes:
    return json.dumps(json.loads(contents(pack)["MANIFEST.json"]) | changed).encode()


def record_name(pack: Path) -> str:
    return next(name for name in contents(pack) if name.endswith("run.json"))


def refusal(pack: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What the check of a pack says that is refused or differs; nothing in it steers a terminal."""
    capsys.readouterr()
    status = command_line(["check", str(pack), "--runs", "0"])
    out, err = capsys.readouterr()
    assert status in (1, 2), out
    assert err.strip()
    assert not any(sign in out + err for sign in STEERING if sign not in "[31mX")
    return err


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"files": ["study.yaml"]}, "its manifest is wrong at files"),
        ({"files": {"study.yaml": 1}}, "its manifest is wrong at files.study.yaml"),
        ({"files": {"study.yaml": "z" * 64}}, "its manifest is wrong at files.study.yaml"),
        ({"came_to": None}, "its manifest is wrong at came_to"),
        ({"came_to": []}, "its manifest is wrong at came_to"),
        ({"came_to": {}}, "its manifest is wrong at came_to.answer"),
        ({"study": 5}, "its manifest is wrong at study"),
        ({"study": "forged\nIt holds."}, "its manifest is wrong at study"),
        ({"twinnet": STEERING}, "its manifest is wrong at twinnet"),
        ({"format": "1"}, "it is of format '1', and this version reads format 1"),
        ({"format": True}, "it is of format True"),
        ({"format": 2}, "it is of format 2"),
        ({"more": 1}, "its manifest is wrong at more"),
    ],
)
def test_a_manifest_of_another_form_is_refused_with_its_place(
    pack: Path, hostile: Callable[..., Path], capsys: pytest.CaptureFixture[str], changed: dict[str, Any], said: str
) -> None:
    assert said in refusal(hostile(manifest=manifest_of(pack, **changed)), capsys)


@pytest.mark.parametrize(
    "manifest",
    [b"", b"\xff\xfe{}", b"[" * 200_000 + b"]" * 200_000, b"[]", b"null", b'{"format": NaN}', b"9" * 5000,
     b'{"a": 1e999}'],
)  # fmt: skip
def test_what_is_no_manifest_is_refused(
    hostile: Callable[..., Path], capsys: pytest.CaptureFixture[str], manifest: bytes
) -> None:
    assert "is no pack of results: " in refusal(hostile(manifest=manifest), capsys)


@pytest.mark.parametrize("values", [{"id": 1}, {"verdict": None}, {"numbers": "many"}, {"numbers": [1]}])
def test_a_statement_of_another_form_is_refused(
    pack: Path, hostile: Callable[..., Path], capsys: pytest.CaptureFixture[str], values: dict[str, Any]
) -> None:
    manifest = json.loads(contents(pack)["MANIFEST.json"])
    manifest["came_to"]["statements"][0] |= values
    assert "its manifest is wrong at came_to.statements.0" in refusal(
        hostile(manifest=json.dumps(manifest).encode()), capsys
    )


@pytest.mark.parametrize("content", [b"null", b"[]", b"{}", b"[" * 100_000, b'{"status": NaN}', b'"x"', b"", b"\xff"])
def test_a_record_that_is_none_is_told(
    pack: Path, hostile: Callable[..., Path], capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    said = refusal(hostile({record_name(pack): content}), capsys)
    assert "of its 1 runs 1 are missing" in said or "cannot be read: its status is None" in said


@pytest.mark.parametrize("value", [None, [], "x", {}, -1, 1e300, 10**400, [[[]]], {"a": {"b": None}}, True])
def test_no_value_of_a_record_ends_in_a_fault(
    pack: Path, hostile: Callable[..., Path], capsys: pytest.CaptureFixture[str], value: object
) -> None:
    name = record_name(pack)
    record = json.loads(contents(pack)[name])
    for key in record:
        other = hostile({name: json.dumps(record | {key: value}).encode()})
        assert command_line(["check", str(other), "--runs", "0"]) in (0, 1, 2)
    assert "Traceback" not in capsys.readouterr().err


def entries(pack: Path) -> Iterator[tuple[str, bytes]]:
    yield from contents(pack).items()


@pytest.mark.parametrize(
    "name",
    ["../evil.txt", "/tmp/evil", "..\\evil", "a/../../evil", "a//b", "./a", "a/", ".hidden", "a/b/c/d", "x\x1b[31m",
     "NUL.", "study.yaml ", "a" * 300],
)  # fmt: skip
def test_a_name_that_no_results_have_is_refused(
    pack: Path, hostile: Callable[..., Path], capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert "which no results have" in refusal(hostile({name: b"x"}), capsys)


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFDIR, stat.S_IFIFO, stat.S_IFCHR])
def test_links_folders_and_devices_are_refused(pack: Path, capsys: pytest.CaptureFixture[str], kind: int) -> None:
    other = pack.with_name("link.zip")
    with zipfile.ZipFile(other, "w") as archive:
        for name, content in entries(pack):
            archive.writestr(name, content)
        entry = zipfile.ZipInfo("link")
        entry.external_attr = (kind | 0o777) << 16
        archive.writestr(entry, "/etc/passwd")
    assert "'link' in it is no file" in refusal(other, capsys)


@pytest.mark.parametrize("name", ["study.yaml", "STUDY.YAML"])
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_comes_twice_is_refused_whatever_its_case(
    pack: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    other = pack.with_name("twice.zip")
    with zipfile.ZipFile(other, "w") as archive:
        for known, content in entries(pack):
            archive.writestr(known, content)
        archive.writestr(name, "another")
    assert f"it holds '{name}' twice" in refusal(other, capsys)


def test_a_pack_that_unpacks_to_much_more_than_it_is_needs_to_be_allowed(
    pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], hostile: Callable[..., Path]
) -> None:
    bomb = hostile({"zeros.txt": bytes(120_000_000)})
    assert bomb.stat().st_size < 1_000_000
    assert "times its size" in refusal(bomb, capsys)
    status = command_line(["check", str(bomb), "--runs", "0", "--most", "100 MB"])
    assert status == 2 and "unpacks to" in capsys.readouterr().err
    (tmp_path / "into").mkdir()
    assert unpack(bomb, tmp_path / "into", 200_000_000).study == "forged"


def test_a_table_of_billions_of_rows_takes_no_memory(
    pack: Path, hostile: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    name = record_name(pack).replace("run.json", "packets.parquet")
    row = pl.read_parquet(io.BytesIO(contents(pack)[name])).head(1)
    content = io.BytesIO()
    row.select(pl.all().repeat_by(3_000_000).explode()).write_parquet(content, compression="zstd")
    assert len(content.getvalue()) < 200_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("twinnet.study.store._MOST_CELLS", 1_000_000)
        assert "has more than 76923 rows" in refusal(hostile({name: content.getvalue()}), capsys)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + bytes(range(256)) * 8 + b"PAR1", b"x" * 5000])
def test_a_table_that_is_none_is_told(
    pack: Path, hostile: Callable[..., Path], capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    for table in ("flows", "packets"):
        name = record_name(pack).replace("run.json", f"{table}.parquet")
        assert f"{table}.parquet cannot be read" in refusal(hostile({name: content}), capsys)


def test_a_table_with_a_column_of_another_type_is_told(
    pack: Path, hostile: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    name = record_name(pack).replace("run.json", "flows.parquet")
    flows = pl.read_parquet(io.BytesIO(contents(pack)[name]))
    for changed, said in (
        (flows.with_columns(pl.col("packets").cast(pl.String)), "its column 'packets' is of the type String"),
        (flows.with_columns(more=1), "its column 'more' is of the type Int32, and not None"),
        (flows.with_columns(pl.col("name").map_elements(lambda _: [1], pl.List(pl.Int64))), "its column 'name'"),
    ):
        content = io.BytesIO()
        changed.write_parquet(content)
        assert said in refusal(hostile({name: content.getvalue()}), capsys)


def test_what_others_wrote_steers_no_terminal(
    pack: Path, hostile: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    name = record_name(pack)
    record = json.loads(contents(pack)[name])
    record["clock"] = STEERING
    said = refusal(hostile({name: json.dumps(record).encode()}), capsys)
    assert r"\x1b[31mX" in said


def mutated(content: bytes, chance: random.Random) -> bytes:
    """JSON with some of its values replaced, or bytes changed."""
    if chance.random() < 0.3:
        changed = bytearray(content)
        for _ in range(chance.randint(1, 4)):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
        return bytes(changed)
    value = json.loads(content)
    odd: list[Any] = [None, [], {}, "", STEERING, -1, 0, 2**63, 10**30, 1e308, True, ["x"], {"a": 1}, [[1]], -0.5]
    for _ in range(chance.randint(1, 3)):
        place: Any = value
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            if not keys:
                break
            key = chance.choice(keys)
            inner = place[key]
            if isinstance(inner, dict | list) and inner and chance.random() < 0.8:
                place = inner
                continue
            if chance.random() < 0.2:
                del place[key]
            else:
                place[key] = chance.choice(odd)
            break
    return json.dumps(value).encode()


@pytest.mark.parametrize("seed", range(4))
def test_changed_manifests_and_records_end_with_a_sentence(
    pack: Path, hostile: Callable[..., Path], capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    chance, files = random.Random(seed), contents(pack)
    name = record_name(pack)
    for _ in range(25):
        if chance.random() < 0.3:
            other = hostile(manifest=mutated(files["MANIFEST.json"], chance))
        else:
            other = hostile({name: mutated(files[name], chance)})
        assert command_line(["check", str(other), "--runs", "0"]) in (0, 1, 2)
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err and "\u202e" not in out + err


def test_changed_records_in_a_folder_of_results_end_every_command_with_a_sentence(
    pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    unpack(pack, folder)
    (run,) = [path.parent for path in folder.glob("*/run.json")]
    record, chance = (run / "run.json").read_bytes(), random.Random(9)
    for _ in range(6):
        (run / "run.json").write_bytes(mutated(record, chance))
        for command in (["figure", str(folder)], ["compare", str(folder), str(folder)], ["gather", str(folder)]):
            assert command_line([*command, *(["--out", str(tmp_path / "all")] if "gather" in command else [])]) in (
                0,
                1,
                2,
            )
        assert command_line(["pack", str(folder), "--out", str(tmp_path / "p")]) in (0, 1, 2)
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[" * 101 + "]" * 101, "it is nested more than 100 deep"),
        ("[" * 100_000, "it is nested more than 100 deep"),
        ('{"a": NaN}', "NaN is no number that is finite"),
        ("-Infinity", "-Infinity is no number that is finite"),
        ("[1e400]", "1e400 is no number that is finite"),
        ("9" * 41, "has more than 40 digits"),
        (b"\xff", "invalid start byte"),
        ("", "Expecting value"),
    ],
)
def test_json_of_others_has_bounds(text: str | bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        given_json(text)


def test_json_within_the_bounds_is_read_as_it_is() -> None:
    deep = json.loads("[" * 100 + "1" + "]" * 100)
    for value in (deep, {"a": [1, -2.5, None, True, "\x1b"]}, 10**39, "x", 0):
        assert given_json(json.dumps(value)) == value
