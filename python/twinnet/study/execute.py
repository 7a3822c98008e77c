"""Makes one run in a lab: builds the network, starts traffic at one moment, waits, and collects what was measured."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from twinnet.deliveries import Capacity, capacity_of
from twinnet.errors import BadValue, NotAvailable, TwinnetError
from twinnet.lab.port_sampler import PortSampler
from twinnet.network.named_ports import port_named
from twinnet.results.fidelity import FidelityRecord
from twinnet.results.port_samples import PortSamples
from twinnet.results.tables import table
from twinnet.study.collect import PathCounts, PlannedFlow, check_own_code, collect
from twinnet.study.consent import asked_for
from twinnet.study.expected_time import PASSAGE_S, passages
from twinnet.study.fidelity_samples import FidelitySamples
from twinnet.study.guest_settings import Asked
from twinnet.study.judgement import judged_record
from twinnet.study.kept_captures import RunCaptures
from twinnet.study.network_of import network_of
from twinnet.study.path_mtu import PathMtus
from twinnet.study.plan import PlannedRun
from twinnet.study.policy_of import compiled_policy, policy_unless_own
from twinnet.study.policy_record import policy_record
from twinnet.study.program_traffic import ProgramTraffic, check_programs
from twinnet.study.real_machines import check_machines
from twinnet.study.runner import Interrupted, Progress
from twinnet.study.specification import StudySpecification, Traffic
from twinnet.study.store import Measured
from twinnet.study.virtual_hosts import check_virtual, choose_bodies, has_programs
from twinnet.study.ways import kept_ways
from twinnet.units import Picoseconds

if TYPE_CHECKING:
    from twinnet.lab.lab import Lab
    from twinnet.machines.machine_lab import MachineLab
    from twinnet.network.network import Network
    from twinnet.policies import CompiledPolicy

__all__ = ["LabExecutor"]

_PS_PER_SECOND = 1_000_000_000_000
_SLICE_PS = _PS_PER_SECOND // 4
_START_ALLOWANCE_S = 1.5
_FINEST_SAMPLE_PS = 50_000_000_000
_HANDING_OVER_PS = 3_000_000_000
"""What handing an app to the lab takes at most: 560 of them took more than 0.6 s on a busy machine."""
_PATH_SAMPLE = "5 ms"
"""The interval at which the path of an estimate is counted: 1,048,576 intervals are kept, of all its ports together."""
_JOIN_PATIENCE = "30 s"
_PROGRAM_COST = 80.0
"""How many times as long a frame takes that a program sends in a guest as one of a model: one TCP flow of 100 Mbit/s
over three lines, 380,000 passages, took 12 s on a busy machine."""
_RUN_ALLOWANCE_S = 0.08
"""What a run on the virtual clock takes beside its frames and its time: to build a small lab, and to keep the tables.
36 runs of three hosts for 3 s took 3.2 s on a quiet machine, of which 0.4 s were expected of their frames."""
_IDLE_PACE = 0.002
"""A guess at the real time that a second of virtual time takes beside its frames; what runs took corrects both."""


@dataclass(frozen=True)
class LabExecutor:
    """Makes runs in labs on the clock that the study asks for.

    Attributes
    ----------
    interface
        `tap`, `veth` or `auto`, as ``net.emulate()`` takes it; `auto` on the virtual clock.
    fabric_threads
        How many threads move the network on the wall clock, as ``net.emulate()`` takes it; ``None``: what the network
        says.
    traces
        The folder into which each run on the virtual clock writes its trace, as ``RUN.trace``; ``None``: none.
    """

    interface: str = "auto"
    fabric_threads: int | Literal["auto"] | None = None
    traces: Path | None = None

    def check(self, specification: StudySpecification) -> None:
        """Raise `BadValue`, `NotAvailable` or `ProgramMissing` when runs of this study cannot be made here."""
        if self.traces is not None and specification.clock != "virtual":
            raise BadValue("only runs on the virtual clock have traces", "leave --traces away, or use --clock virtual")
        if specification.clock == "virtual":
            check_virtual(specification, self.interface)
        elif specification.clock == "real":
            check_machines(specification)
        else:
            check_programs(specification.traffic)

    def expected_s(self, run: PlannedRun, until_s: float = math.inf) -> float:
        """About how long `run` takes, in seconds, if its traffic ends after `until_s` seconds of the lab's time."""
        specification = run.specification
        around = (specification.settle_ps + specification.drain_ps) / _PS_PER_SECOND
        clock_s = around + min(_known_end_ps(specification) / _PS_PER_SECOND, until_s)
        if specification.clock != "virtual":
            return _START_ALLOWANCE_S + clock_s + _apps(specification) * _HANDING_OVER_PS / _PS_PER_SECOND
        return (
            _RUN_ALLOWANCE_S
            + clock_s * _IDLE_PACE
            + _passages_s(run, until_s) * (_PROGRAM_COST if has_programs(specification) else 1)
        )

    def __call__(self, run: PlannedRun, progress: Progress) -> Measured:
        """Make `run`, with the Python that its study brings; raises `Interrupted` when it is to stop, and what the lab
        raises when it fails."""
        with asked_for():
            return self._begun(run, progress)

    def _begun(self, run: PlannedRun, progress: Progress) -> Measured:
        progress.doing = "building the network"
        network = network_of(run.specification, run.levels, run.seed)
        policy = compiled_policy(run.specification, network)
        if policy is not None:
            policy.deploy(network)
        ports = _port_names(run.specification, network)
        with RunCaptures(run, network) as captures:
            return self._made(run, progress, network, ports, policy, captures)

    def _made(
        self,
        run: PlannedRun,
        progress: Progress,
        network: Network,
        ports: Mapping[str, str],
        policy: CompiledPolicy | None,
        captures: RunCaptures,
    ) -> Measured:
        if run.specification.clock == "virtual":
            real = has_programs(run.specification)
            if real:
                choose_bodies(run.specification, network)
            if self.traces is not None:
                self.traces.mkdir(parents=True, exist_ok=True)
            trace = self.traces / f"{run.id}.trace" if self.traces is not None else None
            hosts: Literal["models", "programs"] = "programs" if real else "models"
            asked = run.specification.guest.asked() if real else Asked()
            with network.simulate(hosts=hosts, trace=trace, **asked) as lab:
                return _VirtualRun(lab, run, progress, ports, captures, policy).make()
        if run.specification.clock == "real":
            progress.doing = "reaching the machines"
            with network.operate() as lab:
                return _RealRun(lab, run, progress, ports, captures).make()
        with network.emulate(interface=self.interface, fabric_threads=self.fabric_threads) as lab:
            return _Run(lab, run, progress, ports, captures, policy).make()


class _Run:
    """A run on the wall clock: time passes by itself."""

    handing_over_ps = _HANDING_OVER_PS
    """The time to allow for handing one app to the lab."""

    def __init__(
        self,
        lab: Lab,
        run: PlannedRun,
        progress: Progress,
        port_names: Mapping[str, str],
        captures: RunCaptures,
        policy: CompiledPolicy | None = None,
    ) -> None:
        self.policy, self.port_names, self.captures = policy, port_names, captures
        self.lab, self.run, self.progress = lab, run, progress
        self.specification = run.specification
        self.sample_ps = sample_interval_ps(run.specification)
        self.flows: list[PlannedFlow] = []
        self.looks = FidelitySamples(max(_SLICE_PS, self.sample_ps), 0)
        self.ways: list[dict[str, Any]] | None = None

    def make(self) -> Measured:
        of_ports = [one for one in self.specification.measurements.values() if one.is_of_ports]
        ports = sorted({self.port_names[port] for one in of_ports for port in one.ports or ()})
        self._join_controllers()
        self.captures.begin(self.lab)
        sampler = self.lab.sample(ports, Picoseconds(self.sample_ps)) if ports else None
        counted = self._path_sampler()
        programs = ProgramTraffic(self.lab, self.specification.traffic, self.sample_ps)
        programs.serve()
        zero_ps = self._zero_ps()
        for entry in self.specification.traffic:
            if entry.using == "apps":
                self._start_app(entry, zero_ps)
        self._until(zero_ps)
        self.lab.fidelity(reset=True)
        self.looks.last_ps = zero_ps
        programs.start(zero_ps, self._until)
        self._watch(zero_ps, programs)
        self._drain()
        self.captures.end()
        # A run whose switches went on by their fail mode answers another question.
        self.lab.check_controllers()
        record = self._last_record(zero_ps)
        self.flows += programs.flows()
        reports = self.lab.reports()
        check_own_code(reports, self.specification.traffic)
        tables = collect(
            reports,
            self.flows,
            samples_of(sampler) if sampler is not None else None,
            zero_ps,
            _known_end_ps(self.specification),
            self._processors(record),
            self._path_counts(counted),
        )
        return Measured(
            tables.flows,
            tables.intervals,
            tables.port_samples,
            judged_record(record, self.specification.fidelity),
            {
                "lab": dict(self.lab.started),
                "zero_ps": zero_ps,
                "sample_interval_ps": self.sample_ps,
                "ports": dict(self.port_names),
                **({"captures": self.captures.notes} if self.captures.notes else {}),
                **({"ways": self.ways} if self.ways else {}),
                **policy_record(self.lab, self.policy),
            },
            table("fidelity", self.looks.rows),
            tables.packets,
            tables.tcp,
            captures=self.captures.files,
        )

    def _path_sampler(self) -> PortSampler | None:
        """Counts the path of an estimate, finely, so that its window can be cut out."""
        ports = sorted({self.port_names[port] for port in _path_ports(self.specification)})
        return self.lab.sample(ports, _PATH_SAMPLE) if ports else None

    def _path_counts(self, sampler: PortSampler | None) -> PathCounts | None:
        if sampler is None:
            return None
        samples = samples_of(sampler)
        capacities: dict[str, Capacity] = {}
        for port in samples.ports:
            node, place = self.lab.layout.port(port)
            for link in self.lab.layout.links:
                for near, way in (("a", "ab"), ("b", "ba")):
                    if (link[near]["node"], link[near]["port"]) == (node, place):
                        queue = self.lab.layout.node(node)["ports"][place].get("queue")
                        if (capacity := capacity_of(link[way], queue)) is not None:
                            capacities[port] = capacity
            if port not in capacities:
                raise NotAvailable(f"the link of {port} has no rate", "give it one: it has no capacity otherwise")
        return PathCounts(samples, capacities)

    def _join_controllers(self) -> None:
        if any(node.get("controllers") for node in self.lab.describe()["nodes"]):
            self.progress.doing = "waiting for controllers"
            self.lab.wait_for_controllers(_JOIN_PATIENCE)

    def _processors(self, record: Mapping[str, Any]) -> dict[str, str]:
        """Return, for each real host, whether the thread that sends for it had its own processor; empty on the
        virtual clock."""
        processor = FidelityRecord.from_spec(record).agent_processor
        nodes = self.lab.describe()["nodes"] if processor is not None else ()
        return {node["name"]: processor for node in nodes if processor is not None and not node.get("model")}

    def _last_record(self, zero_ps: int) -> dict[str, Any]:
        record = self.lab.fidelity()
        self.looks.take(record, self.lab.now_ps(), zero_ps)
        return dict(record.raw)

    def _zero_ps(self) -> int:
        """The moment at which traffic begins: a bound between intervals, so that no interval mixes before and after.
        All apps have been handed to the lab by then."""
        handing_over_ps = _apps(self.specification) * self.handing_over_ps
        earliest_ps = self.lab.now_ps() + self.specification.settle_ps + handing_over_ps
        return -(-earliest_ps // self.sample_ps) * self.sample_ps

    def _start_app(self, entry: Traffic, zero_ps: int) -> None:
        paths = PathMtus(self.lab.layout.links)
        counted = min(paths.to_receiver(self.specification.traffic, entry.to), default=None)
        for source, start_ps in entry.starts_ps.items():
            traffic = entry.between(source, self.sample_ps, counted, state_interval_ps(self.specification, entry))
            # Named by what it is and not by its number: another flow does not change this one's random numbers.
            handle = self.lab.start(traffic, Picoseconds(zero_ps + start_ps), f"{entry.name}/{source}")
            address = self.lab.layout.address(source)
            mtu = paths.between(source, entry.to)
            self.flows.append(PlannedFlow(entry, source, handle.flow, address, handle, path_mtu=mtu))

    def _watch(self, zero_ps: int, programs: ProgramTraffic) -> None:
        """Wait until all traffic has ended, at most until the study's time limit; end what goes on after that."""
        limit_ps = zero_ps + self.specification.time_limit_ps
        expected_ps = max(1, _known_end_ps(self.specification))
        handles = [flow.handle for flow in self.flows]
        self.progress.doing = "traffic"
        while True:
            now_ps = self.lab.now_ps()
            self.progress.fraction = min(0.97, max(0.0, (now_ps - zero_ps) / expected_ps))
            if self.looks.due(now_ps):
                self.looks.take(self.lab.fidelity(), now_ps, zero_ps)
            if now_ps >= self._middle_ps(zero_ps):
                self._keep_ways(zero_ps)
            until_ps = min(now_ps + _SLICE_PS, limit_ps)
            apps_ended = not handles or self.lab.wait(handles, until=Picoseconds(until_ps))
            if apps_ended and programs.ended():
                self._keep_ways(zero_ps)
                return
            if now_ps >= limit_ps:
                for handle in handles:
                    handle.stop()
                programs.stop()
                return
            # The lab's wait has passed the time already, unless there are only programs to wait for.
            self._check_stop(0.0 if self.lab.now_ps() >= until_ps else _SLICE_PS / _PS_PER_SECOND)

    def _middle_ps(self, zero_ps: int) -> int:
        """A moment at which there is much on the way, as far as anybody knows before."""
        return zero_ps + (_known_end_ps(self.specification) // 2 or _SLICE_PS)

    def _keep_ways(self, zero_ps: int) -> None:
        """Note the ways of the flows, once, where the run is to be a page of its own: where ports are sampled."""
        if self.ways is None and self.port_names and self.specification.clock != "real":
            self.ways = kept_ways(self.lab, self.specification.traffic, zero_ps)

    def _drain(self) -> None:
        """Let what is on its way arrive."""
        self.progress.doing = "draining"
        self._until(self.lab.now_ps() + self.specification.drain_ps)
        self.progress.fraction = 0.99

    def _until(self, moment_ps: int) -> None:
        while (left_ps := moment_ps - self.lab.now_ps()) > 0:
            self._check_stop(min(left_ps, _SLICE_PS) / _PS_PER_SECOND)

    def _check_stop(self, wait_s: float) -> None:
        if self.progress.stop.wait(wait_s):
            raise Interrupted
        # The rest of the run would count for nothing.
        if self.lab.controller_is_gone:
            self.lab.check_controllers()


class _RealRun(_Run):
    """A run on physical machines: their clocks were set to one, and time passes by itself."""

    def __init__(
        self,
        lab: MachineLab,
        run: PlannedRun,
        progress: Progress,
        port_names: Mapping[str, str],
        captures: RunCaptures,
    ) -> None:
        super().__init__(lab, run, progress, port_names, captures)
        self.machines = lab

    def _processors(self, record: Mapping[str, Any]) -> dict[str, str]:
        return {name: str(one["processor"]) for name, one in record["machines"].items()}

    def _last_record(self, zero_ps: int) -> dict[str, Any]:
        record = super()._last_record(zero_ps)
        conditions = self.machines.conditions()
        for name, one in record["machines"].items():
            one.update(conditions[name])
        return record


class _VirtualRun(_Run):
    """A run on the virtual clock: time passes in the lab's own waits, which look up to tell how far they are and to
    learn whether they are to stop."""

    handing_over_ps = 0

    def _watch(self, zero_ps: int, programs: ProgramTraffic) -> None:
        limit_ps = zero_ps + self.specification.time_limit_ps
        expected_ps = max(1, _known_end_ps(self.specification))
        handles = [flow.handle for flow in self.flows]
        self.progress.doing = "traffic"

        def look_up(now_ps: int) -> bool:
            self.progress.fraction = min(0.97, max(0.0, (now_ps - zero_ps) / expected_ps))
            return self.progress.passed((now_ps - zero_ps) / _PS_PER_SECOND) or self._is_over()

        look_up(zero_ps)
        self.lab.while_time_passes(look_up)
        if handles:
            self.lab.wait(handles, until=Picoseconds(min(self._middle_ps(zero_ps), limit_ps)))
            self._check_stop(0.0)
            self._keep_ways(zero_ps)
        ended = self.lab.wait(handles, until=Picoseconds(limit_ps))
        self._check_stop(0.0)
        if not ended:
            for handle in handles:
                handle.stop()
        while not programs.ended():
            now_ps = self.lab.now_ps()
            if now_ps >= self._middle_ps(zero_ps):
                self._keep_ways(zero_ps)
            if now_ps >= limit_ps:
                programs.stop()
                return
            self.lab.run_until(Picoseconds(min(now_ps + _SLICE_PS, limit_ps)))
            self._check_stop(0.0)

    def _last_record(self, zero_ps: int) -> dict[str, Any]:
        return dict(self.lab.fidelity().raw)

    def _until(self, moment_ps: int) -> None:
        self.lab.while_time_passes(lambda _: self._is_over())
        self.lab.run_until(Picoseconds(moment_ps))
        self._check_stop(0.0)

    def _is_over(self) -> bool:
        """Whether the run is to stop: it was interrupted, or has lost a controller, which none replaces."""
        return self.progress.stop.is_set() or bool(self.lab.lost_controllers)

    def _check_stop(self, wait_s: float) -> None:
        super()._check_stop(wait_s)
        self.lab.check_controllers()


def samples_of(sampler: PortSampler) -> PortSamples:
    """Return the counts of `sampler` in a run; raises `NotAvailable` when it could not keep all."""
    samples = sampler.stop()
    if samples.full:
        end_s = len(samples) * samples.interval_s
        raise NotAvailable(
            f"the ports' counters were kept for the first {end_s:g} s only: there are too many intervals",
            "measure at fewer ports, or give longer intervals",
        )
    return samples


def _port_names(specification: StudySpecification, network: Network) -> dict[str, str]:
    """The ports by the ways in which measurements name them, such as `s1 to s2`."""
    named = sorted({port for one in specification.measurements.values() for port in one.ports or ()})
    return {name: port_named(network, name).name for name in named}


def _path_ports(specification: StudySpecification) -> list[str]:
    measured = specification.measurements.values()
    return sorted({port for one in measured if not one.is_of_ports for port in one.ports or ()})


def sample_interval_ps(specification: StudySpecification) -> int:
    """Return the interval of byte counts in picoseconds: a quarter of the shortest interval, so that statements can
    look closer."""
    intervals = [one.interval_ps for one in specification.measurements.values() if one.interval_ps]
    shortest = min(intervals, default=_PS_PER_SECOND)
    return shortest // 4 if shortest // 4 >= _FINEST_SAMPLE_PS else shortest


def state_interval_ps(specification: StudySpecification, entry: Traffic) -> int | None:
    """Return how often senders of `entry` are to tell the state of their TCP: as often as the study measures it, or
    `None`."""
    asked = [
        one.interval_ps
        for one in specification.measurements.values()
        if one.quantity.table == "tcp" and (one.only is None or entry.name in one.only)
    ]
    return min((interval for interval in asked if interval is not None), default=None)


def _apps(specification: StudySpecification) -> int:
    """The built-in apps that send."""
    return sum(len(entry.sources) for entry in specification.traffic if entry.using == "apps")


def _known_end_ps(specification: StudySpecification) -> int:
    return max((entry.last_start_ps + (entry.duration_ps or 0) for entry in specification.traffic), default=0)


_PASSAGES: dict[tuple[str, ...], tuple[StudySpecification, float]] = {}
"""What was found by levels and by the end of traffic, for one specification each: repetitions share it."""


def _passages_s(run: PlannedRun, until_s: float = math.inf) -> float:
    """About the real time that the frames of `run` take on the virtual clock, those that are sent in the first
    `until_s` seconds; 0 where its network cannot be built: the run will tell."""
    key = (*run.levels.values(), str(until_s))
    found = _PASSAGES.get(key)
    if found is None or found[0] is not run.specification:
        count = 0.0
        with suppress(TwinnetError):
            network = network_of(run.specification, run.levels, run.seed)
            policy = policy_unless_own(run.specification, network)
            if policy is not None:
                policy.deploy(network)
            count = passages(network, run.specification.traffic, until_s)
        found = _PASSAGES[key] = run.specification, count * PASSAGE_S
    return found[1]
