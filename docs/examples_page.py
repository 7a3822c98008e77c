"""Writes docs/examples.md and the pictures of its networks from the folder `examples`: python docs/examples_page.py

Every example is run; the page shows what it printed.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from twinnet.network.network import Network

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
PAGE = ROOT / "docs" / "examples.md"
PICTURES = ROOT / "docs" / "images" / "examples"

ORDER = {
    "bufferbloat": "Bufferbloat",
    "qos_queues": "QoS queues",
    "learning_tree": "An os-ken learning switch in a tree",
    "open_vswitch": "Open vSwitch",
    "router_triangle": "A router triangle with static routes",
    "ipv6": "IPv6",
    "video_judged": "Video, judged",
    "congestion_controls": "Congestion controls compared",
    "capture_and_analyse": "Capture and analyse",
    "three_factors": "A study with three factors",
}
"""The examples in the order of the page, with their titles."""
ARGUMENTS = {"qos_queues": (True,), "router_triangle": (False,), "bufferbloat": None, "open_vswitch": ("own",)}
ARGUMENTS |= {"video_judged": ("1.8 Mbit",), "congestion_controls": (15,)}
"""What an example's `network` takes for its picture; `None`: a queue."""


def network_of(name: str) -> Network:
    """The network of the example `name`, for its picture."""
    if name == "three_factors":
        from twinnet.cli.network_argument import described_network

        return described_network(str(EXAMPLES / "three_factors.yaml"), 1, {})
    import twinnet as tn

    found = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    given = ARGUMENTS.get(name, ()) if inspect.signature(module.network).parameters else ()
    return module.network(*((tn.qos.Codel(),) if given is None else given))


def output_of(name: str) -> str:
    """What the example prints, run in an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        if name == "three_factors":
            run = ["from twinnet.cli import main; main()", "run", str(EXAMPLES / "three_factors.yaml")]
            command = [sys.executable, "-c", *run, "--clock", "virtual", "--no-report", "--yes"]
        else:
            command = [sys.executable, str(EXAMPLES / f"{name}.py")]
        environment = {**os.environ, "COLUMNS": "100"}
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=300, env=environment)
    if done.returncode != 0:
        raise SystemExit(f"{name} failed: {done.stderr}")
    lines = [line.rstrip() for line in done.stdout.strip().splitlines()]
    # Of a study, the answer and the verdict; the numbers are in its report.
    return "\n".join(
        [line for line in lines if line.startswith(("With a", "Of 1"))] if name == "three_factors" else lines
    )


def page() -> str:
    """The page, with pictures written beside it."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    parts = [
        "# Examples\n",
        "Each example is complete: copy it, run it, change it. The folder `examples` of the source has them all. The "
        "results below are what the examples print; a test runs each one.\n",
    ]
    for name, title in ORDER.items():
        picture = network_of(name).draw(PICTURES / f"{name}.svg")
        file = f"{name}.yaml" if name == "three_factors" else f"{name}.py"
        text = (EXAMPLES / file).read_text(encoding="utf-8")
        is_study = file.endswith("yaml")
        said = "Two levels of each of three factors: eight combinations, each run twice."
        if not is_study:
            said = (ast.get_docstring(ast.parse(text)) or "").replace("\n", " ")
        parts += [
            f"## {title}\n",
            f"{said}\n",
            f"![{picture.caption}](images/examples/{name}.svg)\n",
            f"{{download}}`{file} <../examples/{file}>`\n",
            f"```{{literalinclude}} ../examples/{file}\n:language: {'yaml' if is_study else 'python'}\n```\n",
            "It prints:\n",
            f"```text\n{output_of(name)}\n```\n",
        ]
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
