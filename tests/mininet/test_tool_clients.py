"""``tc`` and ``ovs-vsctl`` of a script's machine ask in Perl and in Python, and do the same."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from twinnet.mininet.tool_clients import TELL_NOTHING_OF_LOCALES, asked_words, client, reply_bytes

PERL = shutil.which("perl")
Answer = tuple[str, str, int]


@pytest.fixture(
    params=[
        pytest.param(PERL, marks=pytest.mark.skipif(PERL is None, reason="perl not installed"), id="Perl"),
        pytest.param(None, id="Python"),
    ]
)
def tools(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder with the programs, in one of the languages."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for name in ("tc", "ovs-vsctl", "ovs-ofctl"):
        (folder / name).write_text(client(request.param))
        (folder / name).chmod(0o755)
    return folder


@contextmanager
def script(folder: Path, name: str, answer: Callable[[list[str]], Answer]) -> Generator[list[list[str]]]:
    """A script's process that gives `answer`; the words that it was asked."""
    asked: list[list[str]] = []
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(folder / f"{name}.vsctl"))
        door.listen()

        def serve() -> None:
            while True:
                try:
                    sock = door.accept()[0]
                except OSError:
                    return
                with sock, sock.makefile("rwb") as stream:
                    asked.append(asked_words(stream.read()))
                    stream.write(reply_bytes(*answer(asked[-1])))

        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        yield asked
        door.shutdown(socket.SHUT_RDWR)
        serving.join()


def run(tools: Path, folder: Path, *words: str, given: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": f"{tools}:{os.defpath}", "OVS_RUNDIR": str(folder), **TELL_NOTHING_OF_LOCALES, **variables}
    return subprocess.run(
        [str(tools / words[0]), *words[1:]], input=given, env=environment, capture_output=True, text=True, cwd=folder
    )


def test_the_words_reach_the_script_and_its_answer_is_printed(tools: Path, tmp_path: Path) -> None:
    words = ["set", "port", "s1-eth1", 'qos="a b"', "", "zwei\nZeilen", "ü"]
    with script(tmp_path, "1", lambda asked: (f"{len(asked)} Wörter\n", "geht nicht: ß\n", 7)) as asked:
        done = run(tools, tmp_path, "ovs-vsctl", *words)
    assert asked == [["ovs-vsctl", *words]]
    assert (done.stdout, done.stderr, done.returncode) == ("8 Wörter\n", "geht nicht: ß\n", 7)


def test_an_answer_of_megabytes_arrives_whole(tools: Path, tmp_path: Path) -> None:
    with script(tmp_path, "1", lambda _: ("0123456789\n" * 200_000, "", 0)):
        assert run(tools, tmp_path, "ovs-vsctl", "list", "queue").stdout == "0123456789\n" * 200_000


def test_the_script_that_has_the_switch_answers(tools: Path, tmp_path: Path) -> None:
    def other(asked: list[str]) -> Answer:
        return ("s9\n", "", 0) if asked[1] == "list-br" else ("", "ovs-vsctl: no bridge named s1\n", 1)

    def ours(asked: list[str]) -> Answer:
        return ("s1\ns2\n" if asked[1] == "list-br" else "yes\n", "", 0)

    with script(tmp_path, "1", other) as asked, script(tmp_path, "2", ours):
        assert run(tools, tmp_path, "ovs-vsctl", "get", "bridge", "s1").stdout == "yes\n"
        assert run(tools, tmp_path, "ovs-vsctl", "list-br").stdout == "s9\ns1\ns2\n"
        assert len(asked) == 2


def test_without_a_script_it_says_so(tools: Path, tmp_path: Path) -> None:
    (tmp_path / "gone.vsctl").touch()
    for folder in (tmp_path, tmp_path / "none"):
        done = run(tools, tmp_path, "ovs-vsctl", "show", OVS_RUNDIR=str(folder))
        assert (done.stdout, done.stderr) == ("", "ovs-vsctl: no script in this machine has a switch\n")
        assert done.returncode == 1


def test_what_is_no_line_of_ours_is_done_by_the_kernels_tc(tools: Path, tmp_path: Path) -> None:
    kernel = tmp_path / "sbin" / "tc"
    kernel.parent.mkdir()
    kernel.write_text('#!/bin/sh\necho "kernel: $*"; exit 3\n')
    kernel.chmod(0o755)
    with script(tmp_path, "1", lambda _: ("", "", -1)):
        done = run(tools, tmp_path, "tc", "-s", "qdisc", "show", PATH=f"{tools}:{kernel.parent}")
        assert (done.stdout, done.returncode) == ("kernel: -s qdisc show\n", 3)
        lacks = run(tools, tmp_path, "tc", "qdisc", PATH=str(tools))
        assert (lacks.stderr, lacks.returncode) == ("tc: not installed\n", 127)


def test_flows_and_groups_are_read_from_a_file_or_the_standard_input(tools: Path, tmp_path: Path) -> None:
    flows = "# all\nactions=normal\n\n  \nin_port=1,actions=drop # not\n"
    (tmp_path / "flows.txt").write_text(flows)
    with script(tmp_path, "1", lambda _: ("", "", 0)) as asked:
        run(tools, tmp_path, "ovs-ofctl", "-O", "OpenFlow13", "add-flows", "s1", "flows.txt")
        for command in ("add-flow", "replace-flows", "add-group"):
            run(tools, tmp_path, "ovs-ofctl", command, "s1", "-", given=flows)
        run(tools, tmp_path, "ovs-ofctl", "add-flow", "s1", "actions=drop")
        run(tools, tmp_path, "ovs-ofctl", "replace-flows", "s1")
        lacks = run(tools, tmp_path, "ovs-ofctl", "add-flows", "s1", "none.txt")
    lines = ["actions=normal", "in_port=1,actions=drop "]
    assert asked == [
        ["ovs-ofctl", "-O", "OpenFlow13", "add-flows", "s1", "flows.txt", *lines],
        *(["ovs-ofctl", command, "s1", "-", *lines] for command in ("add-flows", "replace-flows", "add-groups")),
        ["ovs-ofctl", "add-flow", "s1", "actions=drop"],
        ["ovs-ofctl", "replace-flows", "s1"],
    ]
    assert lacks.returncode == 1 and lacks.stderr.startswith("ovs-ofctl: none.txt: ")


def test_at_a_terminal_ports_are_asked_for_by_their_names(tools: Path, tmp_path: Path) -> None:
    near, far = os.openpty()
    environment = {"PATH": os.defpath, "OVS_RUNDIR": str(tmp_path), **TELL_NOTHING_OF_LOCALES}
    with script(tmp_path, "1", lambda _: ("", "", 0)) as asked:
        for program in ("ovs-ofctl", "ovs-vsctl"):
            subprocess.run([str(tools / program), "show", "s1"], env=environment, stdout=far, check=True)
    os.close(near)
    os.close(far)
    assert asked == [["ovs-ofctl", "--names", "show", "s1"], ["ovs-vsctl", "show", "s1"]]


def test_a_locale_that_the_machine_lacks_is_no_matter(tools: Path, tmp_path: Path) -> None:
    with script(tmp_path, "1", lambda _: ("s1\n", "", 0)):
        done = run(tools, tmp_path, "ovs-vsctl", "list-br", LC_ALL="xx_XX.UTF-8")
    assert (done.stdout, done.stderr) == ("s1\n", "")


def test_the_interpreter_is_ours_where_there_is_no_perl() -> None:
    assert client(None).startswith(f"#!{sys.executable} -IS\n")
