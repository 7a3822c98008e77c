"""The models of a study file after its parameters are put in: what a study is made of.

Every quantity is a text with a unit in the file and an integer in the smallest unit here. Unknown keys are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, model_validator

from twinnet.errors import BadValue, did_you_mean
from twinnet.network.topology_schema import DirectionModel, FlowText, NetworkModel
from twinnet.qos import Queue
from twinnet.ranges import LONGEST_RUN_PS
from twinnet.schema_texts import with_texts
from twinnet.study.capture_settings import CaptureSettings
from twinnet.study.fidelity_thresholds import FidelityThresholds
from twinnet.study.field_types import STRICT, Count, MomentPs, Name, ParameterName, Scalar
from twinnet.study.guest_settings import GuestSettings
from twinnet.study.measurement import Measurement, unknown_selection
from twinnet.study.mixes import without_empty_parts
from twinnet.study.policy_of import PolicySettings
from twinnet.study.reference_settings import Reference
from twinnet.study.traffic import Traffic
from twinnet.study.trim import Trim, trimmed

__all__ = [
    "USUAL_CONGESTION_CONTROL",
    "CaptureSettings",
    "Factor",
    "Level",
    "Measurement",
    "Parameter",
    "Preset",
    "Published",
    "Reference",
    "Statement",
    "StudySpecification",
    "Traffic",
    "Trim",
    "TwinSettings",
    "study_json_schema",
]

USUAL_CONGESTION_CONTROL = "cubic"
"""Of TCP that names none, on both clocks: kernels have defaults of their own, and two clocks are compared alike."""
CONTROL_SYSCTL = "net.ipv4.tcp_congestion_control"
REFERENCE_PATTERN = r"^[^$]*(\$\{[a-z][a-z0-9_]*\}[^$]*)+$"


class _Strict(BaseModel):
    model_config: ClassVar[ConfigDict] = STRICT


class Parameter(_Strict):
    """A named quantity; `--set NAME=VALUE` changes it.

    Attributes
    ----------
    default
        Its value where nothing else is said.
    text
        What it is, in words.
    one_of
        The words that are allowed; default: all.
    """

    default: Scalar
    text: str = ""
    one_of: list[str] | None = None


class Preset(_Strict):
    """A size of the study: values for parameters and for paths such as `repetitions`.

    Attributes
    ----------
    text
        What is kept of the full size and what is scaled.
    set
        The values, by names of parameters and by paths.
    """

    text: str = ""
    set: dict[str, Scalar]


class ChangedLink(DirectionModel):
    """What a level changes of a link: settings of both directions, and the queues at its ends.

    Attributes
    ----------
    queue
        The queue discipline at both ends; `null` for none.
    queue_a, queue_b
        The one at the first end, and at the second.
    """

    queue: Queue | None = None
    queue_a: Queue | None = None
    queue_b: Queue | None = None

    @model_validator(mode="after")
    def _names_each_queue_once(self) -> ChangedLink:
        if "queue" in self.model_fields_set and {"queue_a", "queue_b"} & self.model_fields_set:
            raise ValueError("'queue' is that of both ends; give it, or 'queue_a' and 'queue_b'")
        return self


QUEUES_OF_LINKS = ("queue", "queue_a", "queue_b")


class Level(_Strict):
    """One level of a factor: what it changes.

    Attributes
    ----------
    text
        Its words in reports; default: its name.
    needs
        Programs that runs with real programs need (`ITGSend`), on either clock, or `cgroups`, `open-vswitch` or
        `open-vswitch-kernel`. On a machine that lacks one, the level is left out, and the reason is told.
    set
        Values of parameters.
    queues
        Queue configurations by what sends: a port (`s1-eth2`), a direction (`s1 to s2`), or a link's queue
        (`trunk.queue` by the link's name, `links[0].queue_a`).
    flows
        Flow rules by switch, in `ovs-ofctl` syntax, added to those of the network.
    links
        Settings of links and queues at their ends, over those of the network: by the names of their ends, such as
        `h1-s1`, by their own name, or `links[0]`.
    network
        The name of one of the study's `networks`, which takes the place of `network`.
    """

    text: str = ""
    needs: list[str] = []
    network: Name | None = None
    set: dict[str, Scalar] = {}
    queues: dict[str, Queue | None] = {}
    flows: dict[str, list[FlowText]] = {}
    links: dict[str, ChangedLink] = {}


class Factor(_Strict):
    """A factor that is varied on purpose.

    Attributes
    ----------
    text
        Its words in reports; default: its name.
    levels
        Its levels by their names, in the order of the report.
    """

    text: str = ""
    levels: Annotated[dict[Name, Level], Field(min_length=1)]


class Statement(_Strict):
    """A claim, and the check that supports or refutes it.

    `check` compares measured quantities, such as
    `mean(throughput[protocol=udp], during=[5 s, 75 s], queues=shared) > 0.95 * link_rate`.

    Attributes
    ----------
    id
        Its name.
    text
        The claim in words.
    source
        Where it was claimed.
    check
        The comparison.
    why
        Why it may not hold here; the report shows it where the statement is not supported.
    """

    id: Name
    text: str
    source: str = ""
    check: str
    why: str = ""


class Published(_Strict):
    """A figure that was published, to stand beside the same quantity measured here.

    Attributes
    ----------
    text
        What it is, in words.
    source
        Where it was published.
    value
        The published value, with its unit.
    sense
        How it is meant: `exact`; `about`, a rounded number; or a bound: what was published is `below` or `above` it.
    to
        Of a published range its upper end; `value` is the lower one then.
    deviation
        The published standard deviation of the samples, with its unit.
    n
        How many samples it was of.
    measured
        The same quantity here, as in a check.
    over
        A quantity of the same kind: then `value` is the share by which `measured` is above it.
    table
        The published table that it stands in: figures of one table stand together.
    rows
        A CSV file beside the study: the entry stands for each of its rows, and `{column}` for what the row has there.
    where
        Columns of that file and the values that the rows are to have there.
    """

    text: str
    source: str
    value: str
    sense: Literal["exact", "about", "below", "above"] = "exact"
    to: str = ""
    deviation: str = ""
    n: int | None = Field(default=None, ge=2)
    measured: str
    over: str = ""
    table: str = ""
    rows: str = ""
    where: dict[str, str] = {}

    @model_validator(mode="after")
    def _has_one_meaning(self) -> Published:
        if self.sense != "exact":
            for key in ("to", "deviation", "n"):
                if getattr(self, key):
                    raise ValueError(f"'{key}' has no meaning for a value that is {self.sense} a number; leave it out")
        return self


class TwinSettings(_Strict):
    """The allowed difference of the clocks: `2 %`, `0.01 * link_rate`, `5 ms`, or the larger of both: `5 % or 1 Mbit`.

    Attributes
    ----------
    tolerance
        By measurement (`throughput`), or by measurement and protocol, flow or port (`throughput_udp`).
    default
        For what is not named; a share.
    """

    tolerance: dict[str, Scalar] = {}
    default: str = "5 %"


class StudySpecification(_Strict):
    """A study: network x factors x traffic x measurements x repetitions.

    Attributes
    ----------
    study
        Its name, which results carry.
    title, question
        Of the report.
    text
        More words for the report.
    sources
        The publications that it rests on.
    parameters
        Values that `${NAME}` stands for anywhere in the file, and that `--set NAME=VALUE` changes.
    presets
        Sizes of the study, for `--preset NAME`.
    network
        The network.
    networks
        Networks by name, one of which each level of a factor chooses.
    policy
        A quality-of-service policy that is compiled into queues and flows.
    factors
        What is varied, by name.
    traffic
        What is sent.
    mixes
        Parts of hosts that send different traffic, with their weights: `load: {low: 1, high: 1}`. Each run deals the
        hosts of a mix anew, by its seed.
    measurements
        What is measured, by name.
    repetitions
        How often each combination of levels is run.
    seed
        Of all random numbers.
    seeds
        `run`: each run draws numbers of its own; `repetition`: the same numbers meet all levels of a repetition.
    order
        Of the runs: as listed, or at random.
    clock
        `wall`: emulate with real hosts; `virtual`: simulate with models; `real`: physical machines.
    settle
        How long the network stands before the traffic.
    drain
        How long it stands after the traffic.
    time_limit
        A run that takes longer has failed.
    confidence
        Of intervals, 0.5 to 1.
    fidelity
        Beyond which figures a run on the wall clock is not valid.
    twin
        How far both clocks may be apart.
    statements
        Claims with their checks.
    contradictions
        Where the publication contradicts itself, each in its own words, for the report.
    published
        Published figures to stand beside those that are measured here.
    reference
        A file of published figures, compared by metric and level.
    answer
        One or two sentences that the report begins with; quantities in braces are measured, as in a check:
        `UDP takes {mean(throughput[protocol=udp])} of ${link_rate}.`
    congestion_control
        Of TCP, HTTP and video traffic that names none and whose sender pins none by its sysctls; CUBIC when left out.
        It is the same on both clocks, and every entry of `traffic` carries the one that it uses.
    wall_presets
        Presets from the largest to the smallest: on the wall clock, where no preset was asked for, the first that the
        machine carries is run.
    levels
        The levels of factors that are run, separated by blanks; all levels of a factor that is not named.
    vary_starts_ps
        By how much chance moves the start of each source at most, in picoseconds; 0: not at all.
    capture
        The captures that runs keep in the results.
    trim
        What measurements leave out of each run, at its beginning and at its end.
    guest
        Memory, date and patience of the programs of runs on the virtual clock; the usual ones when left out.
    claims
        `none` for a size that shows that the study works: statements are not judged, published figures not counted.
    """

    study: Name
    title: str
    question: str
    answer: Annotated[str, Field(max_length=2000)] = ""
    text: str = ""
    sources: list[str] = []
    parameters: dict[ParameterName, Scalar | Parameter] = {}
    presets: dict[Name, Preset] = {}
    wall_presets: list[Name] = []
    network: NetworkModel | None = None
    networks: dict[Name, NetworkModel] = {}
    policy: PolicySettings | None = None
    factors: dict[ParameterName, Factor] = {}
    levels: dict[ParameterName, str] = {}
    traffic: Annotated[list[Traffic], Field(min_length=1, max_length=1000)]
    mixes: dict[str, dict[str, Annotated[float, Field(ge=0, le=1e9)]]] = {}
    measurements: Annotated[dict[ParameterName, Measurement], Field(min_length=1)]
    repetitions: Count = 10
    seed: Annotated[int, Field(ge=0, le=2**63 - 1, strict=True)] = 1
    seeds: Literal["run", "repetition"] = "run"
    order: Literal["listed", "random"] = "listed"
    clock: Literal["wall", "virtual", "real"] = "wall"
    settle_ps: MomentPs = Field(default=500_000_000_000, alias="settle")
    vary_starts_ps: MomentPs = Field(default=0, alias="vary_starts")
    drain_ps: MomentPs = Field(default=1_000_000_000_000, alias="drain")
    time_limit_ps: MomentPs = Field(default=3_600_000_000_000_000, alias="time_limit")
    confidence: Annotated[float, Field(gt=0.5, lt=1.0)] = 0.95
    congestion_control: Annotated[str, Field(min_length=1, max_length=15)] | None = None
    claims: Literal["all", "none"] = "all"
    trim: Trim | None = None
    capture: CaptureSettings | None = None
    guest: GuestSettings = GuestSettings()
    fidelity: FidelityThresholds = FidelityThresholds()
    twin: TwinSettings = TwinSettings()
    statements: list[Statement] = []
    contradictions: list[str] = []
    published: list[Published] = []
    reference: Reference | None = None

    @model_validator(mode="after")
    def _names_its_congestion_control(self) -> StudySpecification:
        for index, entry in enumerate(self.traffic):
            if entry.takes_congestion_control and entry.congestion_control is None:
                usual = self._pinned_control(entry) or self.congestion_control or USUAL_CONGESTION_CONTROL
                self.traffic[index] = entry.with_congestion_control(usual)
        return self

    def _pinned_control(self, entry: Traffic) -> str | None:
        """Return the congestion control that the sysctls set on the hosts that send the bulk of `entry`: where a client
        asks, the server."""
        senders = [entry.to] if entry.kind.asked_for else entry.sources
        networks = [*self.networks.values(), *([self.network] if self.network is not None else [])]
        hosts = [network.hosts[name] for network in networks for name in senders if name in network.hosts]
        said = {
            str(host.sysctls[CONTROL_SYSCTL]) for host in hosts if host is not None and CONTROL_SYSCTL in host.sysctls
        }
        if len(said) > 1:
            raise ValueError(
                f"the hosts of the traffic {entry.name} pin {CONTROL_SYSCTL} to {' and '.join(sorted(said))}; give the "
                "traffic its 'congestion_control'"
            )
        return said.pop() if said else None

    @model_validator(mode="after")
    def _chooses_levels_that_are(self) -> StudySpecification:
        for factor, chosen in self.levels.items():
            if factor not in self.factors:
                raise ValueError(f"'levels' names the factor {factor!r}; {did_you_mean(factor, self.factors)}")
            known = self.factors[factor].levels
            for name in chosen.split():
                if name not in known:
                    raise ValueError(f"'levels' of {factor} names {name!r}; {did_you_mean(name, known)}")
            if not chosen.split():
                raise ValueError(f"'levels' of {factor} names none; leave it out to run all")
        return self

    def levels_run(self) -> dict[str, list[str]]:
        """The levels of each factor that are run, in the order of the file."""
        return {
            name: [level for level in factor.levels if name not in self.levels or level in self.levels[name].split()]
            for name, factor in self.factors.items()
        }

    @model_validator(mode="after")
    def _belongs_together(self) -> StudySpecification:
        for what, names in (
            ("traffic", [entry.name for entry in self.traffic]),
            ("statement", [entry.id for entry in self.statements]),
        ):
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ValueError(f"two entries of {what} are called {twice[0]!r}; names are unique")
        unknown = [name for name in self.wall_presets if name not in self.presets]
        if unknown:
            raise ValueError(f"'wall_presets' names {unknown[0]!r}; {did_you_mean(unknown[0], self.presets)}")
        whole_ps = self.settle_ps + self.time_limit_ps + self.drain_ps
        if whole_ps > LONGEST_RUN_PS:
            raise ValueError("'settle', 'time_limit' and 'drain' are more than 100 days together, the most of a run")
        traffic = {entry.name for entry in self.traffic}
        for name, measurement in self.measurements.items():
            unknown = sorted(set(measurement.only or ()) - traffic)
            if unknown:
                raise ValueError(unknown_selection(name, unknown[0], traffic))
            self._check_packets(name, measurement)
        self._check_choice_of_network()
        return self

    @model_validator(mode="after")
    def _leaves_out_parts_and_ends(self) -> StudySpecification:
        self.traffic[:] = without_empty_parts(self.mixes, self.traffic, self.measurements)
        if self.trim is not None:
            self.measurements.update(trimmed(self.trim, self.measurements, self.traffic))
        return self

    def _check_packets(self, name: str, measurement: Measurement) -> None:
        if measurement.minimum_after is None:
            return
        meant = [entry for entry in self.traffic if measurement.only is None or entry.name in measurement.only]
        silent = [entry.name for entry in meant if entry.record_packets is None]
        if silent:
            raise ValueError(
                f"the measurement {name} leaves packets out of its minimum, for which every packet is needed: give the "
                f"traffic {silent[0]} 'record_packets', such as 100000, or name traffic that has it with 'only'"
            )

    def _check_choice_of_network(self) -> None:
        choosing = [name for name, factor in self.factors.items() if any(one.network for one in factor.levels.values())]
        if len(choosing) > 1:
            raise ValueError(f"the factors {choosing[0]} and {choosing[1]} both choose the network; one may")
        for name in choosing:
            for level_name, level in self.factors[name].levels.items():
                if level.network is not None and level.network not in self.networks:
                    raise ValueError(
                        f"the level {level_name} of {name} chooses the network {level.network!r}, which 'networks' "
                        f"does not have; {did_you_mean(level.network, self.networks)}"
                    )
                if level.network is None and self.network is None:
                    raise ValueError(
                        f"the level {level_name} of {name} chooses no network and the study has no 'network'"
                    )
        if not choosing and self.network is None:
            raise ValueError(
                "the study has no network: write 'network', or 'networks' and let a factor's levels choose"
            )

    def network_at(self, levels: Mapping[str, str]) -> tuple[NetworkModel, tuple[str, ...]]:
        """The network under `levels`, and where it stands in the file."""
        for factor, level in levels.items():
            chosen = self.factors[factor].levels[level].network
            if chosen is not None:
                return self.networks[chosen], ("networks", chosen)
        if self.network is None:
            raise BadValue("the study has no network under these levels", "write 'network'")
        return self.network, ("network",)


def study_json_schema() -> dict[str, Any]:
    """The JSON schema of a study file; wherever a value stands, a reference such as `${link_rate}` may stand too."""
    schema = cast(dict[str, Any], _with_references(with_texts(StudySpecification.model_json_schema(by_alias=True))))
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "twinnet study"
    return schema


def _with_references(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_with_references(one) for one in cast(list[Any], schema)]
    if not isinstance(schema, dict):
        return schema
    entries = cast(dict[str, Any], schema)
    constrained = entries.get("type") in ("integer", "number", "boolean") or (
        entries.get("type") == "string" and ("pattern" in entries or "enum" in entries)
    )
    if constrained:
        said = {key: value for key, value in entries.items() if key in ("title", "description", "default")}
        bare = {key: value for key, value in entries.items() if key not in said}
        return said | {"anyOf": [bare, {"type": "string", "pattern": REFERENCE_PATTERN}]}
    # Property names are matched as they are written, and examples are no schemas.
    kept = ("propertyNames", "patternProperties", "examples", "default", "required")
    return {key: value if key in kept else _with_references(value) for key, value in entries.items()}
