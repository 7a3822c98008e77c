"""Writes docs/examples.md, a page for each example and the pictures of their networks from the folder `examples`:
python docs/examples_page.py [NAME...]

Every example is run; its page shows what it printed. With names, only these examples are run and written.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import json
import os
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from pathlib import Path

from twinnet.network.network import Network

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
GALLERY = ROOT / "docs" / "examples.md"
PAGES = ROOT / "docs" / "examples"
PICTURES = ROOT / "docs" / "images" / "examples"

ORDER = {
    "bufferbloat": "Bufferbloat",
    "qos_queues": "QoS queues",
    "learning_tree": "An os-ken learning switch in a tree",
    "open_vswitch": "Open vSwitch",
    "router_triangle": "A router triangle with static routes",
    "routing_daemons": "Routing daemons: OSPF and BGP by FRR",
    "ipv6": "IPv6",
    "two_labs": "VXLAN between two labs",
    "real_interface": "A real interface",
    "video_judged": "Video, judged",
    "congestion_controls": "Congestion controls compared",
    "bbr_by_iperf3": "BBR beside CUBIC, by iperf3 in virtual time",
    "web_bufferbloat": "Bufferbloat with a real web server, in virtual time",
    "faucet_in_virtual_time": "Faucet that learns and forgets, in virtual time",
    "seed_of_a_bug": "A bug found by its seed",
    "capture_and_analyse": "Capture and analyse",
    "three_factors": "A study with three factors",
    "voice_beside_tcp": "A call beside TCP, with CoDel",
    "learned_congestion_control": "A learned congestion control",
    "learned_routing": "Learned routes",
}
"""The examples in the order of the gallery, with their titles."""
ARGUMENTS = {"qos_queues": (True,), "router_triangle": (False,), "bufferbloat": None, "open_vswitch": ("own",)}
ARGUMENTS |= {"web_bufferbloat": None}
ARGUMENTS |= {"video_judged": ("1.8 Mbit",), "congestion_controls": (15,), "bbr_by_iperf3": (15,), "two_labs": (1,)}
"""What an example's `network` takes for its picture; `None`: a queue."""
STUDIES = {
    "three_factors": "Two levels of each of three factors: eight combinations, each run twice.",
    "voice_beside_tcp": (
        "Does CoDel keep a call below 20 ms on a line that it shares with 1, 4 or 16 transfers of CUBIC or BBR? Beside "
        "one it does. Beside more, packets of the call wait too long or are dropped: CoDel does not part flows."
    ),
}
"""The examples that are studies, and what each shows."""


def network_of(name: str) -> Network:
    """The network of the example `name`, for its picture."""
    if name in STUDIES:
        from twinnet.cli.network_argument import described_network

        return described_network(str(file_of(name)), 1, {})
    import twinnet as tn

    found = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    given = ARGUMENTS.get(name, ()) if inspect.signature(module.network).parameters else ()
    return module.network(*((tn.qos.Codel(),) if given is None else given))


def output_of(name: str) -> str:
    """What the example prints, run in an empty folder; of a study the answer and the verdict."""
    with tempfile.TemporaryDirectory() as folder:
        if name in STUDIES:
            run = ["from twinnet.cli import main; main()", "run", str(file_of(name))]
            command = [sys.executable, "-c", *run, "--clock", "virtual", "--no-report", "--yes", "--json"]
        else:
            command = [sys.executable, str(EXAMPLES / f"{name}.py")]
        environment = {**os.environ, "COLUMNS": "100"}
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=300, env=environment)
    if done.returncode != 0:
        raise SystemExit(f"{name} failed: {done.stderr}")
    if name in STUDIES:
        told = json.loads(done.stdout)
        return "\n".join([*textwrap.wrap(told["in_words"], 100), told["answer"]])
    return "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())


def file_of(name: str) -> Path:
    """The file of the example `name`."""
    return EXAMPLES / f"{name}{'.yaml' if name in STUDIES else '.py'}"


def said_of(name: str) -> str:
    """What the example `name` shows, in a sentence or two."""
    if name in STUDIES:
        return STUDIES[name]
    return (ast.get_docstring(ast.parse(file_of(name).read_text(encoding="utf-8"))) or "").replace("\n", " ")


def page_of(name: str) -> str:
    """The page of the example `name`, its picture written beside it."""
    picture = network_of(name).draw(PICTURES / f"{name}.svg")
    file = file_of(name)
    language = "yaml" if file.suffix == ".yaml" else "python"
    run = f"twinnet run {file.name} --clock virtual" if language == "yaml" else f"python {file.name}"
    return "\n".join(
        [
            f"# {ORDER[name]}\n",
            f"{said_of(name)}\n",
            f"![{picture.caption}](../images/examples/{name}.svg)\n",
            f"```{{literalinclude}} ../../examples/{file.name}\n:language: {language}\n```\n",
            f"Download {{download}}`{file.name} <../../examples/{file.name}>` and run it with `{run}`. It prints:\n",
            f"```text\n{output_of(name)}\n```\n",
        ]
    )


def gallery() -> str:
    """The page that leads to all examples."""
    parts = [
        "# Examples\n",
        "Each example is complete: copy it, run it, change it. Its page shows the network, the program and what it "
        "prints; a test runs each one. The folder `examples` of the source has them all.\n",
    ]
    for name, title in ORDER.items():
        picture = f"```{{image}} images/examples/{name}.svg\n:width: 320px\n:alt: Network of the example {title}\n"
        parts.append(f"## [{title}](examples/{name}.md)\n\n{said_of(name)}\n\n{picture}```\n")
    parts.append("```{toctree}\n:hidden:\n\n" + "\n".join(f"examples/{name}" for name in ORDER) + "\n```\n")
    return "\n".join(parts)


def write(names: Sequence[str]) -> None:
    """Write the pages of `names` and the gallery."""
    for folder in (PICTURES, PAGES):
        folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (PAGES / f"{name}.md").write_text(page_of(name), encoding="utf-8")
    GALLERY.write_text(gallery(), encoding="utf-8")


if __name__ == "__main__":
    write(sys.argv[1:] or list(ORDER))
