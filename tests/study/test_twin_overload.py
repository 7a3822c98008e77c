"""Where the emulation is asked for more than this machine can do, the twin shows it and does not blame the model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import twinnet as tn
from labs_here import can_run_labs

SOURCE = str(Path(tn.__file__).parent.parent)
ENVIRONMENT = {**os.environ, "PYTHONPATH": SOURCE, "LC_ALL": "C"}
TWIN = [sys.executable, "-c", "from twinnet.cli import main; main()", "twin"]
SOURCES = 8
# 72 Gbit/s: more than the machine's threads can copy, see the test of overload.
STUDY = {
    "study": "overload",
    "title": "More than the machine can do",
    "question": "What is seen of an overloaded emulation?",
    "network": {
        "switches": {f"s{number}": None for number in range(1, 5)},
        "hosts": {f"{side}{number}": None for side in "ab" for number in range(1, SOURCES + 1)},
        "links": [
            *({"between": [f"s{number}", f"s{number + 1}"], "rate": "100 Gbit"} for number in range(1, 4)),
            *({"between": [f"a{number}", "s1"], "rate": "10 Gbit"} for number in range(1, SOURCES + 1)),
            *({"between": [f"b{number}", "s4"], "rate": "10 Gbit"} for number in range(1, SOURCES + 1)),
        ],
    },
    "traffic": [
        {"name": f"load{number}", "app": "udp", "from": [f"a{number}"], "to": f"b{number}", "port": 5003}
        | {"rate": "9 Gbit", "payload": "1472 B", "duration": "500 ms"}
        for number in range(1, SOURCES + 1)
    ],
    "measurements": {
        "throughput": {"of": "throughput", "interval": "250 ms"},
        "lost": {"of": "loss"},
    },
    "repetitions": 2,
    "settle": "200 ms",
    "drain": "200 ms",
    "twin": {"tolerance": {"throughput": "1 %"}},
}

pytestmark = [
    pytest.mark.quiet,
    pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor"),
]


def test_an_overloaded_emulation_is_shown_and_no_model_is_blamed(tmp_path: Path) -> None:
    (tmp_path / "overload.yaml").write_text(json.dumps(STUDY))
    done = subprocess.run(
        [*TWIN, "overload.yaml", "--no-report", "--json"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert record["runs"]["virtual"] == {"valid": 2, "doubtful": 0, "invalid": 0}
    # As each run was stored, and not only as it is compared.
    assert record["runs"]["wall"]["valid"] == 0
    throughput = next(one for one in record["comparisons"] if one["measurement"] == "throughput")
    # The model has what was asked for; the emulation does not, says so, and nothing is said against the model.
    assert throughput["virtual_mean"] == pytest.approx(SOURCES * 9e9, rel=0.01)
    assert throughput["emulation"] in ("doubtful", "invalid")
    assert throughput["verdict"] != "differs"
    assert record["counts"]["differs"] == 0
    assert throughput["apart_worst_s"] is not None
    assert throughput["slipped_ms"] is not None
    assert (tmp_path / "results/overload/twin.parquet").exists()
