"""The third body of a twin: what belongs to the model is told from what belongs to the machine."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from fluid_lab import FluidLab
from twinnet.cli import run as command_line
from twinnet.cli.twin_command import run_twin
from twinnet.errors import BadValue
from twinnet.study.bodies import of_models, with_programs
from twinnet.study.campaign import Campaign
from twinnet.study.plan import PlannedRun
from twinnet.study.resolution import Study, built_in_studies, load_study, read_study
from twinnet.study.runner import Progress
from twinnet.study.store import ResultStore
from twinnet.study.twin import Twin
from twinnet.yaml_source import parse_yaml

NEAR = "{tolerance: {throughput: 3 % or 100 kbit, egress: 3 %}}"


def tiny(tools: str) -> Study:
    text = built_in_studies()["tcp-udp-queues"].read_text(encoding="utf-8")
    text = f"{text[: text.index('twin:')]}twin: {NEAR}\n"
    return read_study(parse_yaml(text, "study.yaml"), {"repetitions": "4", "tools": tools}, "tiny", text)


class Bodies(FluidLab):
    """TCP is slower on the wall clock by the machine, and faster in models by the model."""

    def __init__(self, machine: float, model: float) -> None:
        super().__init__(before=self.note, share=self.of)
        self.machine, self.model, self.using = machine, model, ""

    def note(self, run: PlannedRun, _: Progress) -> None:
        self.using = run.specification.traffic[0].using

    def of(self, clock: str, protocol: str, _: float) -> float:
        if protocol != "tcp":
            return 1.0
        return self.machine if clock == "wall" else self.model if self.using == "apps" else 1.0


def made(folder: Path, machine: float, model: float) -> Twin:
    study, store = tiny("programs"), ResultStore(folder)
    campaign = Campaign(study, Bodies(machine, model), store.folder, models=of_models(study))
    assert run_twin(campaign, with_report=True, as_json=False) == 0
    return Twin(study, store)


@pytest.mark.parametrize(("machine", "model"), [(0.7, 1.0), (1.0, 1.3), (0.7, 1.3), (1.0, 1.0)])
def test_each_difference_is_told_of_whom_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], machine: float, model: float
) -> None:
    twin = made(tmp_path, machine, model)
    tcp = [one for one in twin.results if one.label == "tcp" and one.levels["queues"] == "separate"]
    assert tcp
    assert {one.verdict for one in tcp} == {"agrees" if machine == 1 else "differs"}
    assert {one.model_verdict for one in tcp} == {"agrees" if model == 1 else "differs"}
    assert all(len(one.models) == 4 for one in tcp)
    told = capsys.readouterr().out
    assert "belongs to the machine" in told and "belongs to the model" in told and "virtual - models" in told
    table = pl.read_parquet(tmp_path / "twin.parquet").filter(pl.col("label") == "tcp", pl.col("models_runs") == 4)
    assert set(table["model_verdict"]) <= {"agrees", "differs"}
    assert "virtual - models" in (tmp_path / "report" / "twin.html").read_text(encoding="utf-8").lower()


def test_without_programs_a_difference_may_be_of_either(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study, store = tiny("apps"), ResultStore(tmp_path)
    assert run_twin(Campaign(study, Bodies(1.0, 1.0), store.folder), with_report=False) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "what differs may belong to the model or to the machine" in told and "virtual - models" not in told
    assert run_twin(Campaign(study, Bodies(1.0, 1.0), store.folder), with_report=False, as_json=True) == 0
    assert json.loads(capsys.readouterr().out)["model_counts"] is None


def test_a_study_is_given_programs_and_models_by_the_parameter_that_chooses_them() -> None:
    study = with_programs(load_study("tcp-udp-queues"))
    assert {entry.using for entry in study.specification.traffic} == {"programs"}
    models = of_models(study)
    assert models is not None and models.specification.clock == "virtual"
    assert {entry.using for entry in models.specification.traffic} == {"apps"}
    assert of_models(load_study("tcp-udp-queues")) is None
    with pytest.raises(BadValue, match="no parameter that chooses between apps and programs"):
        with_programs(load_study("mtu-sweep"))


def test_models_are_refused_where_nothing_chooses_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line(["twin", "mtu-sweep", "--models", "--out", str(tmp_path)]) == 2
    assert "leave --models away" in capsys.readouterr().err
