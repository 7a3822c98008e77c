"""`twinnet policy`: list, show, new, compare."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from twinnet import policies


def run(*words: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from twinnet.cli import main; main()", *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)


def test_list_tells_every_policy() -> None:
    told = json.loads(run("policy", "list", "--json").stdout)
    assert [one["policy"] for one in told] == list(policies.known_policies())
    assert all(one["promise"] for one in told)


def test_show_tells_classes_places_rules_and_commands() -> None:
    words = ("--network", "tree:2,2", "--at", "leaf", "--rate", "100 Mbit", "--rules", "--json")
    told = json.loads(run("policy", "show", "basic-cbq", *words).stdout)
    assert [one["class"] for one in told["classes"]] == ["rest", "http", "video"]
    assert sum(told["rules"].values()) == len([line for line in told["commands"] if line.startswith("cookie=")])
    assert len(told["ports"]) == 6
    assert any("max-rate=33000000" in line for line in told["commands"])


GRAPHML = """<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="undirected">
<node id="0"/><node id="1"/><node id="2"/><edge source="0" target="1"/><edge source="1" target="2"/>
{more}</graph></graphml>"""


def test_policies_are_tried_on_topologies_of_others(tmp_path: Path) -> None:
    (tmp_path / "row.graphml").write_text(GRAPHML.format(more=""))
    (tmp_path / "loop.graphml").write_text(GRAPHML.format(more='<edge source="2" target="2"/>'))
    shown = run("policy", "show", "basic-cbq", "--network", "row.graphml", "--at", "all", folder=tmp_path)
    assert "7 ports of 3 switches" in shown.stdout, shown.stderr
    drawn = run("graph", "row.graphml", "--rate", "1 Gbit", "--format", "dot", folder=tmp_path)
    assert drawn.returncode == 0 and "s3" in drawn.stdout, drawn.stderr
    for words, message in {
        ("graph", "row.graphml"): "the edge between 0 and 1 has no capacity",
        ("policy", "show", "basic-cbq", "--network", "loop.graphml"): "the graph has an edge from '2' to itself",
        ("lab", "none.graphml"): "none.graphml cannot be read: No such file",
    }.items():
        refused = run(*words, folder=tmp_path)
        assert refused.returncode == 2 and message in refused.stderr, refused.stderr


def test_parallel_edges_of_others_are_merged_or_kept(tmp_path: Path) -> None:
    (tmp_path / "twice.graphml").write_text(GRAPHML.format(more='<edge source="1" target="0"/>'))
    shown = ("policy", "show", "basic-cbq", "--network", "twice.graphml", "--at", "all")
    assert "7 ports of 3 switches" in run(*shown, "--parallel-edges", "merge", folder=tmp_path).stdout
    assert "9 ports of 3 switches" in run(*shown, "--parallel-edges", "keep", folder=tmp_path).stdout
    for command in ("graph", "lab"):
        refused = run(command, "twice.graphml", "--rate", "1 Gbit", folder=tmp_path)
        assert refused.returncode == 2 and "--parallel-edges merge" in refused.stderr, refused.stderr
        of_template = run(command, "single:2", "--parallel-edges", "keep", folder=tmp_path)
        assert of_template.returncode == 2 and "--parallel-edges is for GraphML" in of_template.stderr
    words = ("twice.graphml", "--rate", "1 Gbit", "--parallel-edges", "keep")
    assert run("graph", *words, "--format", "dot", folder=tmp_path).stdout.count('"s1" -- "s2"') == 2
    lab = run("lab", *words, "--clock", "virtual", "-c", "links", folder=tmp_path)
    assert lab.returncode == 0 and lab.stdout.count("s1-eth") == 3, lab.stdout


SLOW = """<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="rate"/><graph edgedefault="undirected">
<node id="0"/><node id="1"/><node id="2"/><edge source="0" target="1"><data key="rate">1e7</data></edge>
<edge source="1" target="2"><data key="rate">2e6</data></edge></graph></graphml>"""


def test_schedulers_have_the_rates_of_their_lines_unless_one_is_given(tmp_path: Path) -> None:
    (tmp_path / "slow.graphml").write_text(SLOW)
    words = ("policy", "show", "basic-cbq", "--network", "slow.graphml", "--at", "all")
    commands = json.loads(run(*words, "--rules", "--json", folder=tmp_path).stdout)["commands"]
    # A third of 10 and of 2 Mbit/s.
    assert any("max-rate=3300000" in line for line in commands) and any("max-rate=660000" in line for line in commands)
    refused = run(*words, "--rate", "1 Gbit", folder=tmp_path)
    assert refused.returncode == 2 and "above its line's 10 Mbit/s" in refused.stderr


def test_show_tells_how_the_rules_are_installed_and_takes_settings() -> None:
    assert "installed: proactively" in run("policy", "show", "basic-cbq").stdout
    words = ("--set", "installation=reactive", "--set", "ip_versions=[4, 6]")
    shown = run("policy", "show", "basic-cbq", *words, "--rules").stdout
    assert "installed: reactively" in shown and "tcp6,tp_src=80" in shown
    assert "only twinnet's controller waits for them" in shown
    wrong = run("policy", "show", "basic-cbq", "--set", "installation")
    assert wrong.returncode == 2 and "'installation' is not NAME=VALUE" in wrong.stderr
    wrong = run("policy", "show", "basic-cbq", "--set", "instalation=reactive")
    assert wrong.returncode == 2 and "did you mean 'installation'" in wrong.stderr


def test_an_unknown_policy_is_wrong_usage_with_the_nearest_name() -> None:
    done = run("policy", "show", "basic-qbc")
    assert done.returncode == 2
    assert "did you mean 'basic-cbq'" in done.stderr


def test_new_writes_a_policy_that_passes_its_own_test(tmp_path: Path) -> None:
    assert run("policy", "new", "my-own", folder=tmp_path).returncode == 0
    tried = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_my_own.py"]
    done = subprocess.run(tried, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout
    assert "HTTP has at least half" in run("policy", "show", "my_own:MyOwn", folder=tmp_path).stdout
    again = run("policy", "new", "my-own", folder=tmp_path)
    assert again.returncode == 2 and "is there already" in again.stderr


@pytest.mark.long
def test_compare_writes_tables_and_a_figure_and_refuses_studies_without_policies(tmp_path: Path) -> None:
    words = ("--preset", "tiny", "--no-report", "--out", str(tmp_path))
    of = ("basic", "source", "destination", "source-destination")
    profiles = [f"{name}-{at}" for name in of for at in ("leaf", "core")]
    assert run("run", "qos-class-profiles", *words, "--set", f"levels.profile={' '.join(profiles)}").returncode == 0
    results = tmp_path / "qos-class-profiles"
    told = json.loads(run("policy", "compare", str(results), "--json").stdout)
    assert {row["policy"] for row in told["ranking"]} == {
        "basic-cbq",
        "source-cbq",
        "destination-cbq",
        "source-destination-cbq",
    }
    assert told["misplaced"] == []
    ranks = [row["mean_rank"] for row in told["ranking"]]
    assert ranks == sorted(ranks)
    basic = {row["enforced_at"]: row for row in told["ranking"] if row["policy"] == "basic-cbq"}
    assert basic["leaf"]["http_mbps"] > basic["core"]["http_mbps"]
    adjusted = [row for row in told["leaf-and-core"] if row["quantity"] == "transfer_rate"]
    assert len(adjusted) == 4 and all(row["welch_p_holm"] >= row["welch_p"] for row in adjusted)
    for row in told["leaf-and-core"]:
        assert row["word"] == ("comparable" if row["student_p"] > 0.05 else "differs")
    printed = run("policy", "compare", str(results)).stdout
    assert " word " in printed and " differs " in printed
    figure = (results / "policies" / "ranking.svg").read_text()
    assert "basic-leaf" in figure or figure.startswith("<?xml")
    assert run("run", "mtu-sweep", *words).returncode == 0
    refused = run("policy", "compare", str(tmp_path / "mtu-sweep"))
    assert refused.returncode == 2 and "had no policy" in refused.stderr
