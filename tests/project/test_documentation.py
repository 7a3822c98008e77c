"""What README and the documentation say is done: commands and snippets are run, files checked, outputs compared.

Blocks of one page run in order in one scratch folder, with the commands of this installation first on the path: ``sh``
by bash, ``console`` command by command with the outputs compared, ``python`` as a script; ``yaml`` is checked as a
network or a study. What cannot be so is checked in the way that a note before the block states:

========================= ==========================================================================================
``needs PROGRAM``         left out where the program is not installed; ``guest-kernel`` is the kernel for programs on
                          the virtual clock, ``gymnasium`` the Python package
``with A for B``          run with the text A in the place of B (smaller sizes)
``status N``              the last command ends with this status
``background``            a lab that stands until the page ends
``output``                what the python block before it prints
``goes on``               a python block that goes on from those before it on the page, which are run again
``make``                  the Makefile has these targets
``options``               the command line takes these commands; they are not run
``syntax``                bash can read it; it would change the machine
``link``, ``queue``, ``study`` a part of a file: settings of a link, a queue, keys of a study (or ``study NAME``)
========================= ==========================================================================================

The lab name ``classroom`` is made unique, so that several of these tests can run at once.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from kernels_here import a_kernel_is_here
from labs_here import can_run_labs
from markdown_blocks import Block, blocks_of, matches, steps_of
from twinnet.cli.registry import COMMANDS
from twinnet.network.topology_file import parse_network
from twinnet.study.resolution import built_in_studies, load_study, read_study, reader_in
from twinnet.yaml_source import parse_yaml

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    # The pages of examples are made of what they print, which their own test compares.
    *(
        page
        for page in sorted(DOCS.rglob("*.md"))
        if page.stem not in ("examples", "changelog") and page.parent != DOCS / "examples"
    ),
    *sorted(ROOT.glob("python/twinnet/studies/*/*.md")),
]
RUN = ("sh", "console", "python")
KNOWN = (*RUN, "yaml", "json", "text")
LIMIT_S = 60


LABS = can_run_labs()


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Scratch]:
    """A folder in which the blocks of a page run, and what they leave running."""
    one = Scratch(tmp_path)
    yield one
    one.end()


class Scratch:
    """Runs blocks in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.background: list[subprocess.Popen[str]] = []
        self.script = ""
        self.lab_name = f"classroom-{os.getpid()}"
        commands = folder / ".bin"
        commands.mkdir()
        package = ROOT / "python"
        entry = "import sys; from twinnet.cli import main; main()"
        path = f"PYTHONPATH={shlex.quote(str(package))}:$PYTHONPATH"
        for name, program in (("twinnet", f"-c {shlex.quote(entry)}"), ("python", ""), ("python3", "")):
            script = commands / name
            script.write_text(f'#!/bin/sh\n{path} exec {shlex.quote(sys.executable)} {program} "$@"\n')
            script.chmod(0o755)
        paths = f"{commands}{os.pathsep}{os.environ['PATH']}"
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            self.port = int(listener.getsockname()[1])
        self.environment = {**os.environ, "PATH": paths, "LC_ALL": "C.UTF-8", "COLUMNS": "120"}

    def run(self, block: Block) -> str:
        """Run `block` and return what it printed; fails when its commands fail or print something else."""
        if block.note("background") is not None:
            return self.begin(block)
        if block.language == "python":
            self.script = (self.script if block.note("goes on") is not None else "") + self.adapted(block, block.text)
            return self.call(block, [str(self.folder / ".bin/python"), "-c", self.script])
        if block.language == "sh":
            return self.call(block, ["bash", "-euo", "pipefail", "-c", self.adapted(block, block.text)])
        return self.converse(block)

    def adapted(self, block: Block, text: str) -> str:
        text = text.replace("classroom", self.lab_name).replace("127.0.0.1:28786", f"127.0.0.1:{self.port}")
        for note in block.notes:
            if found := re.fullmatch(r"with (.*) for (.*?)", note):
                assert found.group(2) in text, f"{block.place}: {found.group(2)!r} is not in the block"
                text = text.replace(found.group(2), found.group(1))
        return text

    def call(self, block: Block, argv: list[str], wanted: int | None = 0) -> str:
        running = subprocess.Popen(
            argv,
            cwd=self.folder,
            env=self.environment,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            printed, _ = running.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            # With all that it started: what stays would answer to the next page.
            os.killpg(running.pid, signal.SIGKILL)
            printed, _ = running.communicate()
            raise AssertionError(f"{block.place}: not done after {LIMIT_S} s\n{printed}") from None
        assert wanted in (None, running.returncode), f"{block.place}: status {running.returncode}\n{printed}"
        return printed

    def converse(self, block: Block) -> str:
        """Run a ``console`` block in one shell, and compare what each command prints."""
        steps = steps_of(block)
        mark = "-- end of step --"
        script = "set -o pipefail\n"
        for step in steps:
            script += self.adapted_step(block, step.command, step.typed)
            script += f"\nstatus=$?; echo; echo '{mark}' $status; (exit $status)\n"
        output = self.call(block, ["bash", "-c", script], wanted=None)
        pieces = re.split(rf"\n{mark} (\d+)\n", output)
        for number, step in enumerate(steps):
            printed, status = pieces[2 * number], int(pieces[2 * number + 1])
            printed = printed.replace(self.lab_name, "classroom")
            asked = number + 1 < len(steps) and steps[number + 1].command == "echo $?"
            wanted = int(block.note("status") or 0) if number == len(steps) - 1 else 0
            assert asked or status == wanted, f"{block.place}: {step.command}: status {status}\n{printed}"
            expected = "\n".join(step.expected)
            if expected:
                assert matches(expected, printed), f"{block.place}: {step.command} printed\n{printed}\nnot\n{expected}"
        return output

    def adapted_step(self, block: Block, command: str, typed: tuple[str, ...]) -> str:
        notes = [note for note in block.notes if not note.startswith("with ") or note.split(" for ")[-1] in command]
        command = self.adapted(Block(block.page, block.line, block.language, command, tuple(notes)), command)
        if not typed:
            return command
        lines = "\n".join(self.adapted(Block(block.page, block.line, "", line, ()), line) for line in typed)
        return f"{command} <<'TYPED'\n{lines}\nTYPED"

    def begin(self, block: Block) -> str:
        """Start a lab that stands until the page ends, and wait until other terminals find it."""
        (step,) = steps_of(block)
        argv = shlex.split(self.adapted(block, step.command))
        self.background.append(
            subprocess.Popen(
                argv, cwd=self.folder, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        )
        lab = self.background[-1]
        assert lab.stdin is not None and lab.stdout is not None
        # Once it answers a line, it stands.
        lab.stdin.write("nodes\n")
        lab.stdin.flush()
        assert lab.stdout.readline().startswith("available nodes"), f"{block.place}: the lab did not start"
        return ""

    def end(self) -> None:
        for process in self.background:
            process.communicate(timeout=LIMIT_S)


def is_here(needed: str) -> bool:
    """Whether this machine has what a block needs."""
    if needed == "gymnasium":
        return importlib.util.find_spec(needed) is not None
    return a_kernel_is_here() if needed == "guest-kernel" else shutil.which(needed) is not None


def needs_lab(block: Block) -> bool:
    if block.language == "python":
        return bool(re.search(r"\.emulate\(|attach\(|tn\.labs\(", block.text))
    return bool(re.search(r"twinnet (lab|live|run|twin|exec|flows)\b(?!.*--clock virtual)", block.text))


@pytest.mark.long
@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_block_of_the_page_does_what_it_says(page: Path, scratch: Scratch) -> None:
    left_out: list[str] = []
    printed = ""
    for block in blocks_of(page):
        assert block.language in KNOWN or block.language.startswith("{"), f"{block.place}: a block of no known language"
        if block.file_name and block.language in ("yaml", "python"):
            (scratch.folder / block.file_name).write_text(block.text)
        if block.note("output") is not None:
            if not left_out:
                assert matches(block.text, printed), f"{block.place}: printed\n{printed}\nnot\n{block.text}"
        elif block.language == "yaml":
            check_yaml(block, scratch.folder)
        elif block.language == "json":
            json.loads(block.text)
        elif any(block.note(name) is not None for name in CHECKS):
            for name, check in CHECKS.items():
                if block.note(name) is not None:
                    check(block)
        elif block.language in RUN:
            missing = [name for name in (block.note("needs") or "").split() if not is_here(name)]
            if missing:
                no_kernel = "there is no kernel for programs on the virtual clock"
                left_out.append(no_kernel if "guest-kernel" in missing else f"{', '.join(missing)} not installed")
            elif not LABS and (left_out or needs_lab(block)):
                # What follows a lab's block may need what the lab left behind.
                left_out.append("this machine permits no labs: see twinnet doctor")
            else:
                printed = scratch.run(block)
    if left_out:
        pytest.skip("blocks left out: " + "; ".join(sorted(set(left_out))))


def check_make(block: Block) -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    for line in commands_in(block):
        program, *wanted = shlex.split(line, comments=True)
        assert program == "make", f"{block.place}: {line}"
        assert set(wanted) <= targets, f"{block.place}: the Makefile has no {set(wanted) - targets}"


def check_options(block: Block) -> None:
    for line in commands_in(block):
        program, name, *arguments = shlex.split(line, comments=True)
        assert program == "twinnet", f"{block.place}: {line}"
        parse_command(name, arguments)


def check_syntax(block: Block) -> None:
    done = subprocess.run(
        ["bash", "-n", "-c", "\n".join(commands_in(block))], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{block.place}: {done.stderr}"


CHECKS = {"make": check_make, "options": check_options, "syntax": check_syntax}


def commands_in(block: Block) -> list[str]:
    if block.language == "console":
        return [step.command for step in steps_of(block)]
    lines = block.text.replace("\\\n", " ").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


def parse_command(name: str, arguments: list[str]) -> None:
    """Parse a command line without running it; raises what the command line would tell."""
    from twinnet.cli.group import cli

    command = cli.get_command(click.Context(cli), name)
    assert command is not None, f"there is no command {name}"
    command.make_context(name, arguments)


def check_yaml(block: Block, folder: Path) -> None:
    """Check a file, with those in `folder` beside it, or a part of one in its place in a small whole one."""
    try:
        if block.note("link") is not None:
            link = {"between": ["h1", "s1"], **yaml.safe_load(block.text)}
            parse_network(json.dumps({"hosts": {"h1": None}, "switches": {"s1": None}, "links": [link]}), block.place)
        elif block.note("queue") is not None:
            link = {"between": ["h1", "s1"], "queue_b": yaml.safe_load(block.text)}
            parse_network(json.dumps({"hosts": {"h1": None}, "switches": {"s1": None}, "links": [link]}), block.place)
        elif block.note("study") is not None:
            path = built_in_studies()[block.note("study") or "tcp-udp-queues"]
            whole: dict[str, Any] = yaml.safe_load(path.read_text())
            whole |= yaml.safe_load(block.text)
            # What the page replaces may be all that used a parameter of the study.
            used = set(re.findall(r"\w+", json.dumps({key: it for key, it in whole.items() if key != "parameters"})))
            whole["parameters"] = {name: it for name, it in whole.get("parameters", {}).items() if name in used}
            read_study(parse_yaml(json.dumps(whole), block.place), read_beside=reader_in(path.parent))
        elif block.text.lstrip().startswith("study:") or "\nstudy:" in block.text:
            read_study(parse_yaml(block.text, block.place), read_beside=reader_in(folder))
        else:
            parse_network(block.text, block.place)
    except ValueError as error:
        pytest.fail(f"{block.place}: {error}")


def test_a_study_in_the_documentation_can_be_loaded_by_its_path(tmp_path: Path) -> None:
    for page in PAGES:
        named = {block.file_name: block for block in blocks_of(page) if block.file_name}
        for name, block in named.items():
            # What stands beside it on the page stands beside it in the folder.
            (tmp_path / name).write_text(block.text)
        for name, block in named.items():
            path = tmp_path / name
            if block.language == "yaml" and "\nstudy:" in block.text:
                assert load_study(path).name == re.findall(r"^study: (\S+)", block.text, re.MULTILINE)[0]


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_commands_that_are_named_in_the_text_exist(page: Path) -> None:
    text = re.sub(r"^`{3,}.*?^`{3,}", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for name in re.findall(r"`twinnet ([a-z]+)\b", text):
        assert name in COMMANDS, f"{page.name}: twinnet {name}"
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for name in re.findall(r"`make ([a-z]+)`", text):
        assert name in targets, f"{page.name}: make {name}"


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_lead_to_files(page: Path) -> None:
    text = re.sub(r"^`{3,}.*?^`{3,}", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:src|srcset)="([^"]+)"', text):
        if not re.match(r"[a-z]+:|#", target):
            assert (page.parent / target.partition("#")[0]).exists(), f"{page.name}: {target}"


def test_the_table_of_requests_is_what_their_types_say() -> None:
    sys.path.insert(0, str(DOCS))
    try:
        import lab_protocol_page
    finally:
        sys.path.pop(0)
    written = lab_protocol_page.PAGE.read_text()
    assert lab_protocol_page.page(written) == written, "write it anew: python docs/lab_protocol_page.py"


def test_the_page_of_built_in_policies_is_what_they_say_of_themselves() -> None:
    sys.path.insert(0, str(DOCS))
    try:
        import built_in_policies_page
    finally:
        sys.path.pop(0)
    written = built_in_policies_page.PAGE.read_text()
    assert built_in_policies_page.page() == written, "write it anew: python docs/built_in_policies_page.py"


def test_the_command_line_reference_is_what_the_commands_say() -> None:
    from twinnet.cli.group import cli

    sys.path.insert(0, str(DOCS))
    try:
        import command_line_page
    finally:
        sys.path.pop(0)
    written = (DOCS / "reference/command-line.md").read_text()
    assert command_line_page.page() == written, "write it anew: python docs/command_line_page.py"
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        for parameter in command.params:
            for option in (*parameter.opts, *parameter.secondary_opts):
                assert not option.startswith("-") or re.search(rf"[` ]{option}\b", written), f"{name} {option}"


def test_the_schema_of_network_files_is_the_one_that_is_used() -> None:
    from twinnet.network.topology_file import json_schema

    written = json.loads((DOCS / "reference/network.schema.json").read_text())
    assert written == json_schema(), "write it anew: twinnet schema network > docs/reference/network.schema.json"


def test_every_error_has_its_remedy_in_the_how_to() -> None:
    from twinnet import _core, errors

    page = (DOCS / "how-to/troubleshooting.md").read_text()
    names = {*errors.__all__, *_core.error_names()} - {"LabError"}
    missing = sorted(name for name in names if f"`{name}`" not in page)
    assert not missing


def test_the_flow_reference_names_every_field_and_action() -> None:
    page = (DOCS / "reference/flow-syntax.md").read_text()
    switch = ROOT / "crates/switch/src"
    fields = re.findall(r'^    field\("(\w+)"', (switch / "field.rs").read_text(), re.MULTILINE)
    shorthands = re.findall(r'^    \("(\w+)", 0x', (switch / "field.rs").read_text(), re.MULTILINE)
    listed = re.search(r'ACTION_NAMES: &str = "(.*?)";', (switch / "action.rs").read_text(), re.DOTALL)
    assert listed is not None and len(fields) > 40 and len(shorthands) > 10
    actions = re.findall(r"[a-z_]{3,}", re.sub(r"[:(].*?(?=,|$)", "", listed.group(1)))
    missing = [name for name in (*fields, *shorthands, *actions) if not re.search(rf"`{name}\b", page)]
    assert not missing


def test_every_dependency_has_its_reason() -> None:
    import tomllib

    page = (DOCS / "explanation/dependencies.md").read_text()
    python = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*python["dependencies"], *python["optional-dependencies"]["dev"]]
    names = {re.split(r"[<>=]", one)[0] for one in wanted} | {"maturin", "pyo3"}
    names |= set(tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["dependencies"])
    missing = sorted(name for name in names if not name.startswith("twinnet-") and f"`{name}`" not in page)
    assert not missing


def test_every_column_of_the_results_is_explained() -> None:
    from twinnet.results import tables

    page = (DOCS / "reference/results.md").read_text()
    # One row explains the columns of a distribution together.
    for stem, listed in re.findall(r"`(\w+)_\{([\w,]+)\}_ms`", page):
        page += " ".join(f"`{stem}_{one}_ms`" for one in listed.split(","))
    columns = {column for schema in tables.TABLES.values() for column in schema}
    assert not sorted(column for column in columns if f"`{column}`" not in page)


@pytest.mark.long
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("sphinx", reason="sphinx is not installed: pip install .[dev]")
    for theme in ("furo", "sphinx_copybutton"):
        pytest.importorskip(theme, reason="sphinx is not installed: pip install .[dev]")
    # It describes what is derived from its classes.
    pytest.importorskip("gymnasium", reason="gymnasium is not installed: pip install .[dev]")
    argv = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "-n",
        "-q",
        "-b",
        "html",
        "-d",
        str(tmp_path / "doctrees"),
        str(DOCS),
        str(tmp_path / "site"),
    ]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, textwrap.shorten(done.stderr, 4000)
    assert (tmp_path / "site/index.html").exists()
