"""The extension module beside its hand-kept stub, and what it binds besides labs."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
from lab_protocol import core


def test_the_stub_names_what_the_module_has() -> None:
    stub = ast.parse((Path(__file__).parents[2] / "python" / "twinnet" / "_core.pyi").read_text())
    named = {node.name for node in stub.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    named |= {
        node.target.id for node in stub.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    assert named == {name for name in vars(core) if not name.startswith("__")}


def test_quantities_are_exact_and_read_back() -> None:
    assert core.parse_duration("1.5 ms") == 1_500_000_000
    assert core.parse_rate("10 Mbit") == 10_000_000
    assert core.parse_size("64 KiB") == 65_536
    assert core.parse_rate(core.format_rate(512_000)) == 512_000
    assert core.format_duration(50_000_000) == "50 us"
    assert core.parse_size(core.format_size(1500)) == 1500


def test_a_number_without_unit_is_refused_with_the_units_that_exist() -> None:
    with pytest.raises(ValueError, match='"10" has no unit; write for example "10 Mbit"'):
        core.parse_rate("10")
    with pytest.raises(ValueError):
        core.format_rate(0)


def test_a_flow_is_checked_without_a_lab() -> None:
    assert core.check_flow("priority=65535,ip,nw_dst=10.0.0.4,tcp,tp_dst=5002,actions=enqueue:4:1") is None
    with pytest.raises(ValueError, match=r'column 16: "tp_dts" .* did you mean "tp_dst"'):
        core.check_flow("priority=5,tcp,tp_dts=80,actions=1")


def test_the_doctor_tells_of_each_ability_what_follows() -> None:
    findings = json.loads(core.doctor())
    assert {"user namespaces", "TAP interfaces", "real-time scheduling", "open files"} <= {
        finding["ability"] for finding in findings
    }
    for finding in findings:
        assert finding["found"] and finding["follows"]
        assert finding["ok"] is (finding["remedy"] == "")


def test_every_public_name_is_there_without_a_further_import() -> None:
    program = "import twinnet as tn; print(tn.lab.PIPE, [name for name in tn.__all__ if not hasattr(tn, name)])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "-1 []\n"
