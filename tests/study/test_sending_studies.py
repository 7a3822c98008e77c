"""The studies of generators: their smallest sizes on real hosts, and what a machine lacks."""

from __future__ import annotations

from pathlib import Path

import pytest
import twinnet as tn
from labs_here import needs_a_lab
from twinnet import studies
from twinnet.errors import NotAvailable
from twinnet.study import levels_here
from twinnet.study.campaign import Campaign
from twinnet.study.execute import LabExecutor
from twinnet.study.levels_here import with_levels_here
from twinnet.study.plan import plan_study
from twinnet.study.program_traffic import program_transfer
from twinnet.study.quantities import QUANTITIES
from twinnet.study.resolution import load_study, read_study
from twinnet.yaml_source import SourceError, parse_yaml

ONLY_OURS = {"levels.generator": "twinnet"}


@needs_a_lab
@pytest.mark.judged
@pytest.mark.quiet
def test_the_smallest_size_of_sending_accuracy_measures_pace_and_toll(tmp_path: Path) -> None:
    results = studies.run(
        "sending-accuracy", preset="tiny", settings=ONLY_OURS, out=tmp_path, progress=False, with_invalid=True
    )
    flows = results.table("flows")
    sources = flows.filter(flows["role"] == "source")
    assert len(sources) == 2
    assert set(sources["requested_packets_per_second"]) == {1000.0}
    # What is due is sent however late; only a machine that stands still for long gives some up.
    assert min(sources["achieved_packets_per_second"]) > 500
    assert min(sources["send_processors"]) > 0
    assert min(sources["send_switches_per_second"]) > 0
    assert sources["send_gap_error_p99_ms"].null_count() == 0


@needs_a_lab
@pytest.mark.judged
@pytest.mark.quiet
def test_the_smallest_size_of_sending_fairness_tells_three_senders_apart(tmp_path: Path) -> None:
    results = studies.run("sending-fairness", preset="tiny", out=tmp_path, progress=False, with_invalid=True)
    flows = results.table("flows")
    sinks = flows.filter(flows["role"] == "sink")
    assert sorted(sinks["from_host"]) == ["h1", "h2", "h3"]
    assert min(sinks["packets"]) > 300


def test_levels_that_need_what_is_missing_are_left_out_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels_here, "installed", lambda program: program != "mgen")
    monkeypatch.setattr(levels_here, "why_no_limit", lambda: "no control groups")
    study, told = with_levels_here(load_study("sending-accuracy"))
    assert {run.levels["generator"] for run in plan_study(study)} == {"twinnet", "ditg", "ditg-poll", "iperf3"}
    assert {run.levels["place"] for run in plan_study(study)} == {"native", "switch", "ovs"}
    assert "mgen: mgen is not installed" in told and "container: no control groups" in told


def test_levels_whose_program_is_missing_are_left_out_on_the_virtual_clock_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Half of the runs failed, each for the same reason."""
    monkeypatch.setattr(levels_here, "installed", lambda program: program != "mgen")
    monkeypatch.setattr(LabExecutor, "check", lambda self, specification: None)
    told: list[str] = []
    plan = Campaign.read(
        "sending-accuracy", out=tmp_path, preset="tiny", settings={"clock": "virtual"}, tell=told.append
    ).plan
    assert {run.levels["generator"] for run in plan} == {"twinnet"}
    assert told == ["Levels left out (mgen: mgen is not installed)."]


def test_a_factor_without_any_level_left_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels_here, "installed", lambda program: False)
    study = load_study("sending-accuracy", {"levels.generator": "mgen ditg"})
    with pytest.raises(NotAvailable, match="no level of generator"):
        with_levels_here(study)


def test_chosen_levels_change_no_run_that_is_made() -> None:
    whole = {run.id: run.digest for run in plan_study(load_study("sending-accuracy"))}
    part = plan_study(load_study("sending-accuracy", {"levels.place": "native switch", "levels.load": "slow"}))
    assert len(part) == 6 * 2 * 2 * 10
    assert all(whole[run.id] == run.digest for run in part)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("levels.generator", "twinet", "did you mean 'twinnet'"),
        ("levels.tool", "twinnet", "names the factor 'tool'"),
        ("levels.generator", " ", "names none"),
        ("traffic.datagrams.port", "5004", "generators send to port 5003"),
        ("duration", "500 ms", "whole seconds"),
        ("traffic.datagrams.using", "apps", "'using: programs'"),
        ("traffic.datagrams.dscp", "10", "a generator takes"),
    ],
)
def test_mistakes_are_told(key: str, value: str, said: str) -> None:
    with pytest.raises(SourceError, match=said):
        load_study("sending-accuracy", {key: value})


def test_a_level_that_needs_the_datapath_of_the_kernel_is_left_out_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels_here, "installed", lambda program: True)
    monkeypatch.setattr(levels_here, "why_no_limit", lambda: None)
    monkeypatch.setattr(levels_here._core, "kernel_has_open_vswitch", lambda: False)
    study, told = with_levels_here(load_study("sending-accuracy", {"levels.place": "ovs ovs-container ovs-host"}))
    assert {run.levels["place"] for run in plan_study(study)} == {"ovs", "ovs-container"}
    assert "ovs-host: the kernel has no Open vSwitch datapath" in told


def test_a_generator_may_be_asked_for_a_rate_of_payload() -> None:
    asked = {"cross_by": "programs", "cross_generator": "ditg", "levels.row": "c10-x4", "levels.estimator": "hybrid"}
    (cross, _) = plan_study(load_study("available-bandwidth", asked))[0].specification.traffic
    size, rate = cross.generated_rate
    assert (size, rate) == (1470, pytest.approx(3_828_349 / 8 / 1470))
    transfer = program_transfer(cross, "x1", 1, 10**12)
    assert "ITGSend" in transfer.argv and str(round(rate or 0)) in transfer.argv
    plain = plan_study(load_study("available-bandwidth"))[0].specification.traffic[0]
    assert plain.generator is None


def test_processors_limit_generators_only() -> None:
    path = tn.__path__[0]
    text = Path(path, "studies", "sending-accuracy", "study.yaml").read_text(encoding="utf-8")
    text = (
        text.replace('generator: "${generator}", from', "from")
        .replace('payload: "${payload}", ', "")
        .replace("default: h1", "default: h2")
    )
    with pytest.raises(SourceError, match="'processors' limits a generator"):
        read_study(parse_yaml(text, "study.yaml"), {}, None, text)


def test_the_index_of_fairness_is_that_of_its_definition() -> None:
    import polars as pl

    def index(*rates: int) -> float:
        rows = [{"role": "sink", "packets": rate + 1, "start_s": 0.0, "end_s": 1.0} for rate in rates]
        return QUANTITIES["fairness"].value(pl.DataFrame(rows), "mean")

    assert index(5, 5, 5) == pytest.approx(1)
    assert index(9000, 1, 1) == pytest.approx(1 / 3, rel=1e-3)
    assert index(1, 2, 3) == pytest.approx(36 / (3 * 14))
