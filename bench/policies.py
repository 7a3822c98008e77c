"""QoS policies: how soon one is in the switches, what its study takes, and what many pings cost."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from twinnet import policies
from twinnet.network import Network, templates
from twinnet.policies import Enforcement, Match, Policy, TrafficClass, compile_policy
from twinnet.policies.load import Load
from twinnet.traffic import apps

from bench.figure import Figure
from bench.idle import busy_percent, seconds_until_calm
from bench.machine import descendants
from bench.quiet import Quiet

TITLE = "QoS policies"
MEASURES = (
    "bench/policies.py",
    "crates/fabric",
    "crates/switch",
    "python/twinnet/policies",
    "python/twinnet/report",
    "python/twinnet/study",
)

CLASSES = 10_000
CLIENTS, LAYERS = 2000, 9
"""Clients and layers of a tree with more than 1000 switches."""
RULES_TARGET_S = 5.0
PING_CLIENTS, PING_SERVERS = 70, 6
PING_TARGET_PERCENT = 5.0
_LEAD_S = 2.0
STUDY_SETTINGS = {"duration": "3 s", "seconds": "3", "repetitions": "1"}
PUBLISHED_S = 300


class _Pairs(Policy):
    """A class for each of many pairs of hosts and ports."""

    name = "pairs"
    title = "A class for each pair"
    promise = "100 kbit/s each"

    def classes(self, network: Network, load: Load) -> Sequence[TrafficClass]:
        """Return the classes."""
        del network
        clients = load.clients
        return [
            TrafficClass(
                f"c{n}",
                [Match("tcp", [f"v{n % 6 + 1}"], [clients[n % CLIENTS]], source_port=1000 + n // CLIENTS)],
                minimum="100 kbit",
            )
            for n in range(CLASSES)
        ]


def measure(quick: bool, quiet: Quiet) -> Iterator[Figure]:
    """Yield the figures."""
    repetitions = 1 if quick else 3
    yield from _rules(repetitions, quiet)
    yield from _study(quiet)
    yield _pings(repetitions, 3.0 if quick else 10.0, quiet)


def _rules(repetitions: int, quiet: Quiet) -> Iterator[Figure]:
    compiling: list[float] = []
    running: list[float] = []
    rules = switches = 0
    for _ in range(repetitions):
        quiet.wait()
        network = templates.client_tree(CLIENTS, LAYERS, 6, rate="10 Gbit")
        load = Load([policies.Demand(f"h{n}", "v1", "x", "tcp", 80) for n in range(1, CLIENTS + 1)])
        begin = time.perf_counter()
        compiled = compile_policy(network, _Pairs(), Enforcement("leaf"), load)
        compiling.append(time.perf_counter() - begin)
        controller = compiled.deploy(network)
        rules, switches = compiled.rule_count, len(compiled.switches)
        begin = time.perf_counter()
        with network.simulate(seed=1) as lab:
            lab.wait_for_controllers("10 s")
            running.append(time.perf_counter() - begin)
            if controller.installed != set(compiled.switches):
                raise OSError(f"{len(controller.installed)} of {switches} switches have their rules")
    both = [a + b for a, b in zip(compiling, running, strict=True)]
    note = f"{switches} switches, {CLASSES} classes, {rules} rules"
    yield Figure("from a policy to rules", "s", compiling, note=note)
    yield Figure("from rules to a lab whose switches run them, virtual clock", "s", running)
    yield Figure(
        "from a policy to running rules",
        "s",
        both,
        target=f"below {RULES_TARGET_S:g}",
        met=max(both) < RULES_TARGET_S,
        strain=max(both) / RULES_TARGET_S,
        note="the two before; making switches and hosts included",
    )


def _study(quiet: Quiet) -> Iterator[Figure]:
    from twinnet.report.progress import SilentObserver
    from twinnet.report.write import write_report
    from twinnet.study.analysis import Analysis
    from twinnet.study.execute import LabExecutor
    from twinnet.study.plan import plan_study
    from twinnet.study.resolution import load_study
    from twinnet.study.runner import run_plan
    from twinnet.study.store import ResultStore

    quiet.wait()
    study = load_study("qos-class-profiles", STUDY_SETTINGS, "tenth")
    with tempfile.TemporaryDirectory() as folder:
        store = ResultStore(Path(folder))
        store.write_study(study)
        begin = time.process_time()
        outcome = run_plan(plan_study(study), store, LabExecutor(), SilentObserver(), 1)
        simulating_s = time.process_time() - begin
        if outcome.failed:
            raise OSError(f"{outcome.failed} runs of qos-class-profiles failed")
        events = sum(int(run.record.get("events", 0)) for run in store.all_runs())
        begin = time.process_time()
        write_report(Analysis(study, store), Path(folder) / "report")
        report_s = time.process_time() - begin
    seconds = float(STUDY_SETTINGS["seconds"])
    note = f"a tenth of the rates, {seconds:g} s of each of eight profiles; {events / 1e6:.1f} million events"
    yield Figure("qos-class-profiles: simulation", "s", [simulating_s], note=f"processor time; {note}")
    yield Figure("qos-class-profiles: report", "s", [report_s], note="processor time; page, figures and tables")
    yield Figure(
        "qos-class-profiles: events of the simulation",
        "1/s",
        [events / simulating_s],
        note="per second of processor time",
    )
    expected = simulating_s / seconds * PUBLISHED_S / 2 / 60
    yield Figure(
        "qos-class-profiles: five minutes at a tenth of the rates, two processors",
        "min",
        [expected],
        note="scaled from the simulation above by time",
    ).below(30)


def _pings(repetitions: int, seconds: float, quiet: Quiet) -> Figure:
    network = templates.client_tree(PING_CLIENTS, 3, PING_SERVERS, rate="10 Gbit", delay="5 us")
    with network.emulate() as lab:
        seconds_until_calm(lab)
        quiet.wait()
        idle = busy_percent(descendants(), seconds)
        count = round(seconds * (repetitions + 3))
        # All begin at one moment, as those of a study do.
        together = f"{lab.now() + _LEAD_S:.3f} s"
        pings = [
            lab.start(apps.ping(f"h{client}", f"v{server}", count=count, interval="1 s"), at=together)
            for client in range(1, PING_CLIENTS + 1)
            for server in range(1, PING_SERVERS + 1)
        ]
        time.sleep(_LEAD_S + 2.0)
        ours = [busy_percent(descendants(), seconds) for _ in range(repetitions)]
        answered = sum(one.report().rtt.count for one in pings)
    return Figure(
        f"{PING_CLIENTS} x {PING_SERVERS} pairs that ping each second, wall clock",
        "% of one core",
        ours,
        note=f"all threads of the lab process; {idle:.1f} % without pings; {answered} round trips",
        summary="worst",
    ).below(PING_TARGET_PERCENT)
