"""Files that somebody gave: no device or pipe is waited for, every reader has a bound, and the time is linear."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from twinnet.cluster import certificates
from twinnet.control.tls import Tls
from twinnet.deliveries import DeliveryTrace
from twinnet.errors import TwinnetError
from twinnet.given_files import open_given, read_given, read_given_text
from twinnet.mininet import miniedit
from twinnet.network import graphs, topology_file
from twinnet.results import captures
from twinnet.sockets import flow_plan
from twinnet.study import resolution
from twinnet.study.store import ResultStore
from twinnet.traffic import files
from twinnet.yaml_source import load_yaml, parse_yaml

READERS: dict[str, Callable[[Path], object]] = {
    "YAML": load_yaml,
    "study": lambda path: resolution.load_study(path),
    "network": lambda path: topology_file.load_network(path),
    "GraphML": lambda path: graphs.from_graphml(path),
    "trace": files.read_trace,
    "frame sizes": files.read_frame_sizes,
    "Mahimahi": DeliveryTrace.read,
    "flows": flow_plan.read_flows,
    "capture": lambda path: captures.analyze_capture([path]),
    "captures": lambda path: captures.match_captures([path, path]),
    "MiniEdit": miniedit.read,
    "TLS": lambda path: Tls(path, path).accepting(),
}
"""What reads files that users name."""


@pytest.fixture
def odd_files(tmp_path: Path) -> dict[str, Path]:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(tmp_path / "socket"))
    return {"a pipe": tmp_path / "pipe", "a device": Path("/dev/zero"), "socket": tmp_path / "socket"}


@pytest.mark.parametrize("reader", READERS)
def test_no_reader_waits_for_a_pipe_or_reads_a_device(reader: str, odd_files: dict[str, Path]) -> None:
    for path in odd_files.values():
        with pytest.raises(TwinnetError) as refusal:
            READERS[reader](path)
        assert str(path) in str(refusal.value)


def test_records_of_a_study_are_not_read_from_pipes(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    folder.mkdir()
    os.mkfifo(folder / "study.yaml")
    with pytest.raises(TwinnetError, match="a pipe"):
        ResultStore(folder).read_study()
    os.mkfifo(folder / "study.json")
    assert not ResultStore(folder).holds_twin


def test_keys_of_a_cluster_are_not_read_from_pipes(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "ca.pem")
    with pytest.raises(TwinnetError, match="a pipe"):
        certificates.read_certificates(tmp_path)


def test_the_kind_of_what_is_refused_is_told(odd_files: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(OSError, match="it is a pipe, and not a regular file"):
        open_given(odd_files["a pipe"])
    with pytest.raises(OSError, match="it is a device"):
        open_given(odd_files["a device"])
    with pytest.raises(IsADirectoryError):
        open_given(tmp_path)


def test_a_file_is_read_up_to_its_bound_and_no_further(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\xef\xbb\xbfa\r\nb")
    assert read_given(path, 7) == b"\xef\xbb\xbfa\r\nb"
    assert read_given_text(path, 7) == "a\nb"
    with pytest.raises(OSError, match="larger than 6 bytes"):
        read_given(path, 6)


def test_a_sparse_file_of_any_size_is_refused_without_being_read(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    limited = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30));"
        "from test_reading_files import READERS; from pathlib import Path; from twinnet.errors import TwinnetError\n"
        "for reader in READERS.values():\n"
        "    try: reader(Path(sys.argv[1]))\n"
        "    except TwinnetError: continue\n"
        "    sys.exit(1)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", limited, str(path)], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


def repeated(piece: str, size: int) -> str:
    return piece * (size // len(piece))


def numbered(piece: str, size: int) -> str:
    return "".join(piece.format(number) for number in range(size // len(piece.format(size))))


HEAD = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="undirected">'
TAIL = "</graph></graphml>"
SHAPES: dict[str, tuple[Callable[[str], object], Callable[[int], str]]] = {
    "GraphML, begun": (lambda text: _graphml(text), lambda size: HEAD + repeated("<node id", size)),
    "GraphML, in a comment": (
        lambda text: _graphml(text),
        lambda size: HEAD + "<!--" + repeated("<node id", size) + "-->" + TAIL,
    ),
    "GraphML, in one value": (
        lambda text: _graphml(text),
        lambda size: HEAD + "<node id='" + repeated(" id=", size) + "'/>" + TAIL,
    ),
    "GraphML, attributes": (
        lambda text: _graphml(text),
        lambda size: HEAD + "<node id='1'" + numbered(" a{}='1'", size) + "/>" + TAIL,
    ),
    "GraphML, edges": (
        lambda text: _graphml(text),
        lambda size: HEAD + '<node id="0"/>' + repeated('<edge source="0" target="0"/>', size) + TAIL,
    ),
    "GraphML, depth": (lambda text: _graphml(text), lambda size: HEAD + repeated("<graph>", size)),
    "YAML, list": (lambda text: _yaml(text), lambda size: repeated("- 1\n", size)),
    "YAML, keys": (lambda text: _yaml(text), lambda size: numbered("k{}: 1\n", size)),
    "YAML, depth": (lambda text: _yaml(text), lambda size: repeated("[", size)),
    "YAML, quotation": (lambda text: _yaml(text), lambda size: '"' + repeated("\\", size)),
    "YAML, spaces": (lambda text: _yaml(text), lambda size: "a:" + repeated(" ", size) + "b"),
    "Mahimahi": (lambda text: DeliveryTrace.parse(text), lambda size: repeated("5\n", size)),
    "trace": (lambda text: files.parse_trace(text, "trace"), lambda size: repeated("2 ms, 1000 B\n", size)),
    "trace, spaces": (lambda text: files.parse_trace(text, "trace"), lambda size: repeated(" ", size) + "x"),
    "frame sizes": (lambda text: files.parse_frame_sizes(text, "sizes"), lambda size: repeated("5 kB\n", size)),
}
"""Shapes of content, each of any size: what a reader with a loop in a loop takes longest for."""


def _graphml(text: str) -> None:
    # The name of a file is not what this is about.
    graphs.read_graphml(text, "<text>")


def _yaml(text: str) -> None:
    parse_yaml(text)


def processor_time_s(work: Callable[[], object]) -> float:
    """The least of three, so that what else the machine does counts little."""
    took: list[float] = []
    for _ in range(3):
        begun = time.process_time()
        with contextlib.suppress(TwinnetError):
            work()
        took.append(time.process_time() - begun)
    return min(took)


@pytest.mark.parametrize("shape", SHAPES)
def test_readers_take_time_that_grows_as_the_size(shape: str) -> None:
    read, made = SHAPES[shape]
    small, factor = 8_000, 20
    few, many = made(small), made(small * factor)
    # Linear work is 20 times as much, quadratic 400 times. A millisecond is added for what is as long for any size.
    assert processor_time_s(lambda: read(many)) < 5 * factor * (processor_time_s(lambda: read(few)) + 0.001)


def test_flows_with_aliases_that_grow_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "flows.yaml"
    lines = ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40)), "flows: [*a39]"]
    path.write_text("\n".join(lines))
    with pytest.raises(TwinnetError, match="anchor"):
        flow_plan.read_flows(path)
