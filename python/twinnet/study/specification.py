"""The models of a study file after its parameters are put in: what a study is made of.

Every quantity is a text with a unit in the file and an integer in the smallest unit here. Unknown keys are refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from twinnet.errors import BadValue, UsageError, did_you_mean
from twinnet.network.topology_schema import DirectionModel, FlowText, NetworkModel
from twinnet.qos import Queue
from twinnet.ranges import LONGEST_RUN_PS
from twinnet.study.field_types import (
    STRICT,
    Count,
    DurationPs,
    IntervalPs,
    MomentPs,
    Name,
    ParameterName,
    Port,
    RateBps,
    RunTimePs,
    Scalar,
    SizeBytes,
    TransferBytes,
)
from twinnet.study.host_ranges import expand_hosts
from twinnet.study.measurement import Measurement
from twinnet.study.policy_of import PolicySettings
from twinnet.study.reference_settings import Reference
from twinnet.traffic.bandwidth import METHODS
from twinnet.traffic.distributions import Distribution, OnOff

__all__ = [
    "USUAL_CONGESTION_CONTROL",
    "Factor",
    "FidelityThresholds",
    "Level",
    "Measurement",
    "Parameter",
    "Preset",
    "Published",
    "Reference",
    "Statement",
    "StudySpecification",
    "Traffic",
    "TwinSettings",
    "study_json_schema",
]

USUAL_CONGESTION_CONTROL = "cubic"
"""Of TCP that names none, on both clocks: kernels have defaults of their own, and two clocks are compared alike."""
CONTROL_SYSCTL = "net.ipv4.tcp_congestion_control"
_LEAST_TCP_BYTES = 12
_MOST_ENTRIES = 100_000
REFERENCE_PATTERN = r"^[^$]*(\$\{[a-z][a-z0-9_]*\}[^$]*)+$"


class _Strict(BaseModel):
    model_config: ClassVar[ConfigDict] = STRICT


class Parameter(_Strict):
    """A named quantity with a default; `--set NAME=VALUE` changes it."""

    default: Scalar
    text: str = ""
    one_of: list[str] | None = None


class Preset(_Strict):
    """A size of the study: values for parameters and for paths such as `repetitions`."""

    text: str = ""
    set: dict[str, Scalar]


class Level(_Strict):
    """One level of a factor: what it changes.

    Attributes
    ----------
    set
        Values of parameters.
    queues
        Queue configurations by the name of the port that sends, as in topology files.
    flows
        Flow rules by switch, in `ovs-ofctl` syntax, added to those of the network.
    links
        Settings of links by the names of their ends, such as `h1-s1`, over those of the network.
    network
        The name of one of the study's `networks`, which takes the place of `network`.
    """

    text: str = ""
    network: Name | None = None
    set: dict[str, Scalar] = {}
    queues: dict[str, Queue | None] = {}
    flows: dict[str, list[FlowText]] = {}
    links: dict[str, DirectionModel] = {}


class Factor(_Strict):
    """What is varied on purpose, with its levels in the order of the report."""

    text: str = ""
    levels: Annotated[dict[Name, Level], Field(min_length=1)]


def _or_file(entry: dict[str, Any]) -> WithJsonSchema:
    """The schema of a list that may stand in a file of its own."""
    return WithJsonSchema(
        {
            "anyOf": [
                {"type": "array", "minItems": 1, "maxItems": _MOST_ENTRIES, "items": entry},
                {"type": "string", "description": "the name of a file beside the study's, ending in .csv or .txt"},
            ]
        }
    )


Frames = Annotated[list[SizeBytes], Field(min_length=1, max_length=_MOST_ENTRIES), _or_file({"type": "string"})]
Trace = Annotated[
    list[tuple[DurationPs, SizeBytes]],
    Field(min_length=1, max_length=_MOST_ENTRIES),
    _or_file({"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "string"}}),
]


class Traffic(_Strict):
    """One kind of traffic; every host in `from` is the source of one flow."""

    name: Name
    app: Literal["udp", "tcp", "http", "ping", "rtp", "voice", "video", "bandwidth"]
    using: Literal["apps", "programs"] = "apps"
    text: str = ""
    sources: Annotated[list[str], BeforeValidator(expand_hosts), Field(alias="from", min_length=1, max_length=10_000)]
    to: str
    port: Port | None = None
    start_ps: MomentPs = Field(default=0, alias="start")
    duration_ps: RunTimePs | None = Field(default=None, alias="duration")
    rate_bps: RateBps | None = Field(default=None, alias="rate")
    payload_bytes: SizeBytes | None = Field(default=None, alias="payload")
    process: Literal["constant", "poisson"] = "constant"
    bytes: TransferBytes | None = Field(default=None, alias="bytes")
    count: Count | None = None
    connections: Count | None = None
    interval_ps: IntervalPs | None = Field(default=None, alias="interval")
    congestion_control: str | None = None
    gap: dict[str, Scalar] | None = None
    size: dict[str, Scalar] | None = None
    on_off: dict[str, dict[str, Scalar]] | None = None
    dscp: Annotated[int, Field(ge=0, le=63, strict=True)] | None = None
    codec: Literal["G.711", "G.723.1", "G.729"] | None = None
    silence_suppression: bool | None = None
    frames_per_second: Annotated[float, Field(ge=0.001, le=100_000)] | None = None
    paced: bool | None = None
    frame_sizes: Frames | None = None
    trace: Trace | None = None
    exact: bool | None = None
    preset: Literal["dns", "telnet", "game-client", "game-server"] | None = None
    packets_per_second: Annotated[float, Field(ge=0.001, le=100_000_000)] | None = None
    unpaced: bool | None = None
    fragment: bool | None = None
    repeat: bool | None = None
    group_frames: Annotated[int, Field(ge=1, le=10_000, strict=True)] | None = None
    b_frames: Annotated[int, Field(ge=0, le=16, strict=True)] | None = None
    variation: Annotated[float, Field(ge=0, le=10)] | None = None
    shaping_ps: MomentPs | None = Field(default=None, alias="shaping")
    streamer: Literal["ffmpeg", "vlc"] | None = None
    over: Literal["rtp", "rtsp", "http"] | None = None
    record_packets: Annotated[int, Field(ge=1, le=1_000_000, strict=True)] | None = None
    method: str | None = None
    capacity_bps: RateBps | None = Field(default=None, alias="capacity")
    most_rate_bps: RateBps | None = Field(default=None, alias="most_rate")
    budget_bytes: TransferBytes | None = Field(default=None, alias="budget")
    settings: dict[str, int | float | bool] | None = None

    think: dict[str, Scalar] | None = None
    ladder_bps: Annotated[list[RateBps], Field(min_length=1, max_length=32)] | None = Field(
        default=None, alias="ladder"
    )
    segment_ps: RunTimePs | None = Field(default=None, alias="segment")
    buffer_ps: RunTimePs | None = Field(default=None, alias="buffer")
    needed_ps: RunTimePs | None = Field(default=None, alias="needed")

    @property
    def protocol(self) -> str:
        """The protocol, as tables of results name it: `udp`, `tcp`, `http`, `icmp`, `rtp` or
        `bandwidth`."""
        return {"ping": "icmp", "voice": "udp", "video": "http"}.get(self.app, self.app)

    _ALLOWED = {
        "udp": {"port", "duration_ps", "rate_bps", "payload_bytes", "process", "gap", "size", "on_off", "dscp"}
        | {"trace", "exact", "record_packets", "preset", "packets_per_second", "unpaced", "fragment", "repeat"},
        "rtp": {"port", "duration_ps", "rate_bps", "dscp", "frames_per_second", "paced", "frame_sizes", "shaping_ps"}
        | {"record_packets", "streamer", "over", "group_frames", "b_frames", "variation"},
        "voice": {"port", "duration_ps", "codec", "silence_suppression", "dscp", "record_packets"},
        "tcp": {"port", "duration_ps", "bytes", "congestion_control", "rate_bps", "packets_per_second", "gap"}
        | {"payload_bytes", "size", "process", "on_off", "dscp"},
        "http": {"port", "bytes", "count", "connections", "congestion_control", "size", "think", "duration_ps"},
        "video": {"port", "duration_ps", "ladder_bps", "segment_ps", "buffer_ps", "needed_ps", "congestion_control"},
        "ping": {"count", "interval_ps", "payload_bytes", "gap", "size", "dscp"},
        "bandwidth": {"port", "duration_ps", "method", "capacity_bps", "most_rate_bps", "budget_bytes", "settings"},
    }
    _NEEDED = {
        "udp": {"port", "duration_ps"},
        "rtp": {"port", "duration_ps"},
        "voice": {"port", "duration_ps"},
        "tcp": {"port"},
        "http": {"port"},
        "video": {"port", "duration_ps", "ladder_bps"},
        "ping": {"count"},
        "bandwidth": {"method"},
    }

    @model_validator(mode="after")
    def _belongs_together(self) -> Traffic:
        common = {"name", "app", "using", "text", "sources", "to", "start_ps"}
        allowed = common | self._ALLOWED[self.app]
        for field in sorted(self.model_fields_set - allowed):
            keys = sorted(_key(name) for name in allowed)
            raise ValueError(f"{_key(field)!r} has no meaning for {self.app} traffic; it takes {', '.join(keys)}")
        for field in sorted(self._NEEDED[self.app]):
            if getattr(self, field) is None:
                raise ValueError(f"{self.app} traffic needs {_key(field)!r}")
        if self.app == "tcp" and (self.duration_ps is None) == (self.bytes is None):
            raise ValueError("tcp traffic needs either 'duration' or 'bytes'")
        if self.using == "programs" and self.app in ("voice", "video"):
            raise ValueError(f"no program makes {self.app} traffic; write 'using: apps'")
        if self.app == "http":
            self._check_fetches()
        if self.app == "rtp":
            self._check_streamer()
        if self.app == "udp":
            self._check_datagrams()
        if self.app == "tcp":
            self._check_writes()
        if self.app == "ping":
            self._check_requests()
        if self.app == "bandwidth":
            self._check_estimate()
        self._check_distributions()
        if self.frame_sizes is not None and self.rate_bps is not None:
            raise ValueError("'frame_sizes' tell the rate: leave 'rate' out")
        if self.frame_sizes is not None and {"group_frames", "b_frames", "variation"} & self.model_fields_set:
            raise ValueError("'frame_sizes' take the model's place: leave 'group_frames', 'b_frames', 'variation' out")
        if self.congestion_control is not None and not 1 <= len(self.congestion_control) <= 15:
            raise ValueError(f"{self.congestion_control!r} is no congestion control; a name such as cubic is allowed")
        if self.app == "tcp" and self.bytes is not None and self.bytes < _LEAST_TCP_BYTES:
            raise ValueError(f"a transfer of {self.bytes} B is out of range: at least {_LEAST_TCP_BYTES} B")
        if self.to in self.sources:
            raise ValueError(f"{self.to!r} would send to itself; 'to' and 'from' name different hosts")
        least, most = {"tcp": (16, 1 << 30), "ping": (0, 65_499)}.get(self.app, (16, 65_507))
        if self.payload_bytes is not None and not least <= self.payload_bytes <= most:
            raise ValueError(f"a payload of {self.payload_bytes} B is out of range: {least} B to {most} B")
        return self

    def _check_streamer(self) -> None:
        """Programs send a clip as they do; what shapes the built-in source has no meaning for them."""
        if self.shaping_ps and self.paced:
            raise ValueError("a stream is paced or shaped, not both; leave 'paced' or 'shaping' out")
        if self.using == "programs" and (self.paced or self.shaping_ps or self.dscp is not None):
            raise ValueError("streamers pace themselves: for 'paced', 'shaping' and 'dscp' write 'using: apps'")
        if self.using == "programs" and (self.frame_sizes or self.group_frames or self.b_frames is not None):
            raise ValueError("streamers send a clip of ffmpeg's: for the model of video write 'using: apps'")
        if self.using == "apps" and (self.over or "rtp") != "rtp":
            raise ValueError(f"the built-in source sends over rtp; for 'over: {self.over}' write 'using: programs'")
        if self.using == "programs" and not float(self.frames_per_second or 60).is_integer():
            raise ValueError(f"clips have whole frames a second, not {self.frames_per_second:g}; write for example 60")

    def _check_datagrams(self) -> None:
        """Refuse what no source could send."""
        ways = {"rate_bps", "packets_per_second", "gap", "trace", "preset", "unpaced"}
        given = [name for name in sorted(ways) if getattr(self, name) not in (None, False)]
        if len(given) != 1:
            raise ValueError(
                "udp traffic needs either 'rate', 'gap' or 'trace', or 'packets_per_second', 'preset' or 'unpaced'"
            )
        self._check_programs(
            {"gap", "size", "on_off", "trace", "exact", "dscp", "packets_per_second", "preset", "unpaced", "fragment"}
        )
        if self.trace is not None:
            self._check_trace(self.trace)
        elif self.repeat is not None:
            raise ValueError("'repeat' is for a trace; leave it out")
        if self.preset is not None:
            self._check_beside("preset", {"payload_bytes", "size", "process", "on_off"})
        if self.unpaced:
            self._check_beside("unpaced", {"process", "on_off", "exact"})

    def _check_writes(self) -> None:
        """A schedule of writes, or none and nothing that belongs to one."""
        ways = [self.rate_bps, self.packets_per_second, self.gap]
        if ways.count(None) < 2:
            raise ValueError("tcp traffic by a schedule has 'rate', 'packets_per_second' or 'gap', one of them")
        if ways.count(None) == 3:
            beside = {"payload_bytes", "size", "process", "on_off"} & self.model_fields_set
            if beside:
                keys = ", ".join(sorted(repr(_key(name)) for name in beside))
                raise ValueError(f"{keys}: tcp traffic takes that beside 'rate', 'packets_per_second' or 'gap'")
        if self.bytes is not None and self.size is not None:
            raise ValueError("'bytes' end traffic whose writes have one 'payload'; beside 'size' give 'duration'")
        self._check_programs({"rate_bps", "packets_per_second", "gap", "dscp"})

    def _check_fetches(self) -> None:
        if (self.bytes is None) == (self.size is None):
            raise ValueError("http traffic needs 'bytes' or a distribution of them, 'size', one of both")
        self._check_programs({"size", "think", "duration_ps"})

    def _check_requests(self) -> None:
        if self.gap is not None and self.interval_ps is not None:
            raise ValueError("ping traffic has an 'interval' or a 'gap', not both")
        self._check_programs({"gap", "size", "dscp"})

    def _check_estimate(self) -> None:
        if self.using == "programs":
            raise ValueError("no program estimates available bandwidth here; write 'using: apps'")
        if self.method not in METHODS:
            raise ValueError(f"the method {self.method!r} is not known; allowed are {', '.join(METHODS)}")
        if self.method == "spruce" and self.capacity_bps is None:
            raise ValueError("spruce needs 'capacity', that of the tight link")

    def _check_programs(self, only_apps: set[str]) -> None:
        if self.using == "programs" and any(getattr(self, name) is not None for name in only_apps):
            keys = ", ".join(repr(_key(name)) for name in sorted(only_apps))
            raise ValueError(f"programs send as they do; for {keys} write 'using: apps'")

    def _check_beside(self, key: str, others: set[str]) -> None:
        beside = others & self.model_fields_set
        if beside:
            keys = ", ".join(sorted(repr(_key(name)) for name in beside))
            raise ValueError(f"{key!r} tells that itself: leave {keys} out")

    def _check_distributions(self) -> None:
        """Apps are asked, so that both say the same."""
        if self.gap is not None and "process" in self.model_fields_set:
            raise ValueError("'gap' is a process itself: leave 'process' out")
        if self.size is not None and (self.rate_bps is not None or self.payload_bytes is not None):
            raise ValueError("'size' takes the place of 'payload', beside 'gap' and not 'rate'")
        try:
            if self.gap is not None:
                Distribution.of(self.gap, "gap").gap_spec()
            if self.size is not None:
                Distribution.of(self.size, "size").size_spec()
            if self.think is not None:
                Distribution.of(self.think, "think").gap_spec()
            if self.on_off is not None:
                OnOff.of(self.on_off).to_spec()
        except UsageError as error:
            raise ValueError(str(error)) from error

    def _check_trace(self, trace: Sequence[tuple[int, int]]) -> None:
        beside = {"payload_bytes", "process", "size", "on_off"} & self.model_fields_set
        if beside:
            keys = ", ".join(sorted(repr(_key(name)) for name in beside))
            raise ValueError(f"a trace tells gaps and payloads itself: leave {keys} out")
        if self.repeat is not False and sum(gap for gap, _ in trace) == 0:
            raise ValueError("a trace is sent over and over for the duration: one of its gaps must be above zero")
        for _, size in trace:
            if not 16 <= size <= 65_507:
                raise ValueError(f"a payload of {size} B is out of range: 16 B to 65507 B")


def _key(field: str) -> str:
    return Traffic.model_fields[field].alias or field


class Statement(_Strict):
    """A claim, and the check that supports or refutes it.

    `check` compares measured quantities, such as
    `mean(throughput[protocol=udp], during=[5 s, 75 s], queues=shared) > 0.95 * link_rate`.
    """

    id: Name
    text: str
    source: str = ""
    check: str


class Published(_Strict):
    """A figure that was published, to stand beside the same quantity measured here."""

    text: str
    source: str
    value: str
    measured: str


class DurationLimit(_Strict):
    """Above `doubtful` a run is doubtful, above `invalid` it is invalid."""

    doubtful_ps: DurationPs = Field(alias="doubtful")
    invalid_ps: DurationPs = Field(alias="invalid")

    @model_validator(mode="after")
    def _in_order(self) -> DurationLimit:
        if self.doubtful_ps > self.invalid_ps:
            raise ValueError("'doubtful' is above 'invalid'; doubtful comes first")
        return self


class ShareLimit(_Strict):
    """Above `doubtful` a run is doubtful, above `invalid` it is invalid; shares from 0 to 1."""

    doubtful: Annotated[float, Field(ge=0, le=1)]
    invalid: Annotated[float, Field(ge=0, le=1)]

    @model_validator(mode="after")
    def _in_order(self) -> ShareLimit:
        if self.doubtful > self.invalid:
            raise ValueError("'doubtful' is above 'invalid'; doubtful comes first")
        return self


class FidelityThresholds(_Strict):
    """Beyond which figures a run is doubtful or invalid; those left out keep their defaults."""

    lateness_p999: DurationLimit | None = None
    longest_slip: DurationLimit | None = None
    agent_lateness_p99: DurationLimit | None = None
    slipped_share: ShareLimit | None = None
    worst_second_share: ShareLimit | None = None
    paused_share: ShareLimit | None = None
    overload_drop_share: ShareLimit | None = None
    waiting_share: ShareLimit | None = None
    throttled_share: ShareLimit | None = None
    memory_pressure_share: ShareLimit | None = None
    steal_share: ShareLimit | None = None


class TwinSettings(_Strict):
    """How far the two clocks may be apart: `2 %`, `0.01 * link_rate`, `5 ms`, or the larger of both: `5 % or 1 Mbit`.

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
    answer
        One or two sentences that the report begins with; quantities in braces are measured, as in a check:
        `UDP takes {mean(throughput[protocol=udp])} of ${link_rate}.`
    congestion_control
        Of TCP and HTTP traffic that names none and whose sender pins none by its sysctls; CUBIC when left out. It is
        the same on both clocks, and every entry of `traffic` carries the one that it uses.
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
    network: NetworkModel | None = None
    networks: dict[Name, NetworkModel] = {}
    policy: PolicySettings | None = None
    factors: dict[ParameterName, Factor] = {}
    traffic: Annotated[list[Traffic], Field(min_length=1, max_length=1000)]
    measurements: Annotated[dict[ParameterName, Measurement], Field(min_length=1)]
    repetitions: Count = 10
    seed: Annotated[int, Field(ge=0, le=2**63 - 1, strict=True)] = 1
    seeds: Literal["run", "repetition"] = "run"
    order: Literal["listed", "random"] = "listed"
    clock: Literal["wall", "virtual"] = "wall"
    settle_ps: MomentPs = Field(default=500_000_000_000, alias="settle")
    drain_ps: MomentPs = Field(default=1_000_000_000_000, alias="drain")
    time_limit_ps: MomentPs = Field(default=3_600_000_000_000_000, alias="time_limit")
    confidence: Annotated[float, Field(gt=0.5, lt=1.0)] = 0.95
    congestion_control: Annotated[str, Field(min_length=1, max_length=15)] | None = None
    claims: Literal["all", "none"] = "all"
    fidelity: FidelityThresholds = FidelityThresholds()
    twin: TwinSettings = TwinSettings()
    statements: list[Statement] = []
    published: list[Published] = []
    reference: Reference | None = None

    @model_validator(mode="after")
    def _names_its_congestion_control(self) -> StudySpecification:
        for index, entry in enumerate(self.traffic):
            if entry.app in ("tcp", "http") and entry.congestion_control is None:
                usual = self._pinned_control(entry) or self.congestion_control or USUAL_CONGESTION_CONTROL
                self.traffic[index] = entry.model_copy(update={"congestion_control": usual})
        return self

    def _pinned_control(self, entry: Traffic) -> str | None:
        """What the sysctls of the hosts say that send the bulk of `entry`: the server, of HTTP."""
        senders = [entry.to] if entry.app == "http" else entry.sources
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
    def _belongs_together(self) -> StudySpecification:
        for what, names in (
            ("traffic", [entry.name for entry in self.traffic]),
            ("statement", [entry.id for entry in self.statements]),
        ):
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ValueError(f"two entries of {what} are called {twice[0]!r}; names are unique")
        whole_ps = self.settle_ps + self.time_limit_ps + self.drain_ps
        if whole_ps > LONGEST_RUN_PS:
            raise ValueError("'settle', 'time_limit' and 'drain' are more than 100 days together, the most of a run")
        traffic = {entry.name for entry in self.traffic}
        for name, measurement in self.measurements.items():
            unknown = sorted(set(measurement.only or ()) - traffic)
            if unknown:
                raise ValueError(
                    f"the measurement {name} names the traffic {unknown[0]!r}; {did_you_mean(unknown[0], traffic)}"
                )
            self._check_packets(name, measurement)
        self._check_choice_of_network()
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
    schema = cast(dict[str, Any], _with_references(StudySpecification.model_json_schema(by_alias=True)))
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
        return {"anyOf": [entries, {"type": "string", "pattern": REFERENCE_PATTERN}]}
    # Property names are matched as they are written, and examples are no schemas.
    kept = ("propertyNames", "patternProperties", "examples", "default", "required")
    return {key: value if key in kept else _with_references(value) for key, value in entries.items()}
