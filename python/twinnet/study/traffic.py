"""The entries of a study's traffic: who sends to whom, and the settings of the kind of traffic that it is.

What a kind takes is said by its class in :mod:`twinnet.traffic`; here stands what a study adds to all of them.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    ModelWrapValidatorHandler,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError

from twinnet.errors import UsageError, did_you_mean
from twinnet.programs.estimated import checked_pattern
from twinnet.programs.generators import GENERATORS
from twinnet.schema_texts import docstring_texts
from twinnet.settings import Setting, settings_of
from twinnet.study.field_types import STRICT, MomentPs, Name, SizeBytes
from twinnet.study.host_ranges import expand_hosts
from twinnet.traffic.app import App, Flow
from twinnet.traffic.kinds import FLOWS, FlowKind
from twinnet.units import Picoseconds, rate_bps

__all__ = ["EstimatingTool", "Traffic"]

if TYPE_CHECKING:
    AppName = str
    GeneratorName = str
else:
    AppName = Literal[tuple(FLOWS)]
    GeneratorName = Literal[("none", *GENERATORS)]

_COMMON = (
    "name",
    "app",
    "using",
    "text",
    "from",
    "sources",
    "to",
    "start",
    "start_ps",
    "apart",
    "apart_ps",
    "part",
    "streamer",
    "receiver",
    "over",
    "viewer",
    "clip",
    "tool",
    "generator",
    "processors",
)
_GENERATED_PAYLOAD = 1470
"""Of a generator's datagrams, in bytes, where none is given."""
_KEPT = "sends"
_INNER = (_KEPT, "moved_ps")
"""What no file gives."""


class EstimatingTool(BaseModel):
    """A program that estimates available bandwidth.

    Attributes
    ----------
    command
        What runs in the source, without a shell; `{to}` and `{from}` stand for addresses, `{port}` for the port.
    server
        What runs in the other host before it.
    listens
        The protocol of the port at which the server listens when it is ready.
    reads
        A regular expression for what it prints; its group is the estimate, its two groups are the ends of a range.
    unit
        What 1 stands for there.
    """

    model_config: ClassVar[ConfigDict] = STRICT

    command: Annotated[str, Field(min_length=1, max_length=1000)]
    server: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    listens: Literal["tcp", "udp"] = "tcp"
    reads: Annotated[str, Field(max_length=1000)]
    unit: str = "1 Mbit"

    @model_validator(mode="after")
    def _readable(self) -> EstimatingTool:
        checked_pattern(self.reads)
        rate_bps(self.unit, "unit")
        return self


class Traffic(BaseModel):
    """One kind of traffic; every host in `from` is the source of one flow.

    Attributes
    ----------
    name
        The name by which measurements and statements select it.
    app
        The kind of traffic.
    using
        ``apps``: the built-in ones; ``programs``: real programs; on the virtual clock in a guest kernel.
    text
        What it is, in words, for the report.
    sources
        The hosts that send or ask; ranges such as ``h{1..9}`` are allowed.
    to
        The host that receives or answers.
    start_ps
        When it begins, in picoseconds after the network has settled.
    apart_ps
        How long after the source before it each source begins, in picoseconds; ``None``: all at one moment.
    part
        The part of a mix whose hosts of `from` send it, such as `load.low`; ``None``: all do.
    streamer
        The program that sends video with ``using: programs``.
    receiver
        The program that receives video over RTP with ``using: programs``; ``None``: ffmpeg.
    over
        The protocol that carries video with ``using: programs``; ``None``: `rtp` for `rtp`, and `http` for `video`.
    viewer
        The program that watches video with ``using: programs``; ``None``: ffmpeg.
    clip
        The clip that a streamer sends or a viewer watches by programs, a file beside the study's or a path; ``None``:
        one that ffmpeg draws.
    tool
        The program that estimates available bandwidth with ``using: programs``; its method is then its own.
    generator
        The program that sends datagrams, observed where they arrive; ``None``, or `none` in files: the usual one.
    processors
        The processor time that the generator may take, in processors, as in a container; 0 and ``None``: no limit.
    generated_payload
        The payload of a generator's datagrams in bytes; our own need 8.
    sends
        The settings of its kind that are given, by their names in the kind's class, as exact numbers.
    moved_ps
        By how much chance moves the start of each source in one run, in picoseconds.
    """

    model_config: ClassVar[ConfigDict] = STRICT

    name: Name
    app: AppName
    using: Literal["apps", "programs"] = "apps"
    text: str = ""
    sources: Annotated[list[str], BeforeValidator(expand_hosts), Field(alias="from", min_length=1, max_length=10_000)]
    to: str
    start_ps: MomentPs = Field(default=0, alias="start")
    apart_ps: MomentPs | None = Field(default=None, alias="apart")
    part: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*$")] | None = None
    streamer: Literal["ffmpeg", "vlc"] | None = None
    receiver: Literal["ffmpeg", "vlc"] | None = None
    over: Literal["rtp", "rtsp", "http"] | None = None
    viewer: Literal["ffmpeg", "vlc"] | None = None
    clip: Annotated[str, Field(max_length=1000)] | None = None
    tool: EstimatingTool | None = None
    generator: GeneratorName | None = None
    processors: Annotated[float, Field(ge=0, le=1024)] | None = None
    generated_payload: SizeBytes | None = Field(default=None, alias="payload", exclude=True)
    sends: dict[str, Any] = Field(default={}, exclude=True)
    moved_ps: dict[str, int] = Field(default={}, exclude=True)

    @model_validator(mode="wrap")
    @classmethod
    def _by_kind(cls, data: Any, handler: ModelWrapValidatorHandler[Traffic]) -> Traffic:
        """Read what is common to all kinds, and the rest as the kind's class says; tell all mistakes at once."""
        if not isinstance(data, Mapping):
            return handler(data)
        entry = dict(cast("Mapping[str, Any]", data))
        if entry.get("generator") == "none":
            del entry["generator"]
        kind = FLOWS.get(str(entry.get("app")))
        mistakes: list[InitErrorDetails] = []
        own = {"payload"} if entry.get("generator") is not None else set[str]()
        settings = {key: value for key, value in entry.items() if key not in own}
        sends = _read_settings(kind, str(entry["app"]), settings, mistakes) if kind is not None else {}
        try:
            found = handler({key: entry[key] for key in (*_COMMON, *own) if key in entry} | {_KEPT: sends})
        except ValidationError as error:
            mistakes += [
                InitErrorDetails(type=one["type"], loc=one["loc"], input=one["input"], ctx=one.get("ctx", {}))
                if one["type"] != "value_error"
                else _mistake(one["msg"].removeprefix("Value error, "), *one["loc"])
                for one in error.errors(include_url=False)
            ]
            raise ValidationError.from_exception_data("Traffic", mistakes) from None
        if mistakes:
            raise ValidationError.from_exception_data("Traffic", mistakes)
        try:
            found._check()
        except (UsageError, ValueError) as error:
            raise ValidationError.from_exception_data("Traffic", [_mistake(str(error))]) from None
        return found

    @model_serializer(mode="wrap")
    def _flat(self, handler: SerializerFunctionWrapHandler, info: SerializationInfo) -> dict[str, Any]:
        """The settings beside what is common, in the units of the protocol; by the names of files where aliases are
        asked for."""
        settings = settings_of(self.kind)
        written = {
            (name if info.by_alias else settings[name].key(name)): settings[name].read(value, name)
            for name, value in self.sends.items()
        }
        if self.generated_payload is not None:
            written["payload"] = self.generated_payload
        return {**handler(self), **written}

    @property
    def kind(self) -> FlowKind:
        """The class of its kind of traffic."""
        return FLOWS[self.app]

    @property
    def starts_ps(self) -> dict[str, int]:
        """The moment at which each source begins, in picoseconds from the start of the traffic."""
        apart_ps = self.apart_ps or 0
        return {
            source: self.start_ps + place * apart_ps + self.moved_ps.get(source, 0)
            for place, source in enumerate(self.sources)
        }

    @property
    def last_start_ps(self) -> int:
        """The moment at which the last source begins, in picoseconds from the start of the traffic."""
        return max(self.starts_ps.values())

    @property
    def protocol(self) -> str:
        """The protocol, as tables of results name it: `udp`, `tcp`, `http`, `icmp`, `rtp` or
        `bandwidth`."""
        return "rtp" if self.app == "video" and self.over == "rtsp" else self.kind.protocol

    @property
    def port(self) -> int | None:
        """The destination port, where one is given."""
        return self.sends.get("port")

    @property
    def duration_ps(self) -> int | None:
        """The duration in picoseconds, if one is given."""
        return self.sends.get("duration")

    @property
    def transfer(self) -> tuple[int | None, int | None]:
        """What is to be transferred: bytes of TCP, or the number of requests of HTTP; `None` where a time ends it."""
        if self.app == "tcp":
            return self.sends.get("bytes"), None
        if self.app == "http" and self.duration_ps is None:
            return None, self.sends.get("count") or 1
        return None, None

    @property
    def rate_bps(self) -> int | None:
        """The rate of payload, where one is given."""
        return self.sends.get("rate")

    @property
    def generated_rate(self) -> tuple[int, float | None]:
        """What a generator is asked for: the payload of each datagram in bytes, and datagrams a second (`None`: as many
        as go)."""
        size = self.generated_payload or _GENERATED_PAYLOAD
        if self.rate_bps is not None:
            return size, self.rate_bps / (8 * size)
        return size, self.sends.get("packets_per_second")

    @property
    def congestion_control(self) -> str | None:
        """The congestion control that it uses."""
        return self.sends.get("congestion_control")

    @property
    def takes_congestion_control(self) -> bool:
        """True if TCP carries it, whose congestion control can be chosen."""
        return "congestion_control" in settings_of(self.kind) and self.protocol != "rtp"

    @property
    def record_packets(self) -> int | None:
        """The number of packets of each flow that are kept."""
        return self.sends.get("record_packets")

    def with_starts_moved(self, at_most_ps: int, seed: int) -> Traffic:
        """Return the same traffic with the start of each source moved by 0 to `at_most_ps`, drawn by `seed`."""
        draw = random.Random(f"{seed}/starts/{self.name}")
        moved = {one: self.moved_ps.get(one, 0) + draw.randrange(at_most_ps + 1) for one in self.sources}
        return self.model_copy(update={"moved_ps": moved})

    def with_sources(self, chosen: list[str]) -> Traffic:
        """Return the same traffic from the `chosen` of its sources, each of which begins when it did."""
        before = self.starts_ps
        fewer = self.model_copy(update={"sources": chosen, "moved_ps": {}})
        moved = {one: before[one] - start_ps for one, start_ps in fewer.starts_ps.items()}
        return fewer.model_copy(update={"moved_ps": moved})

    def with_congestion_control(self, name: str) -> Traffic:
        """Return the same traffic with the congestion control `name`."""
        return self.model_copy(update={_KEPT: self.sends | {"congestion_control": name}})

    def between(
        self, source: str, interval_ps: int, path_mtu: int | None = None, state_interval_ps: int | None = None
    ) -> App | Flow:
        """Return the apps of the flow from `source`.

        Parameters
        ----------
        source
            One of the sources.
        interval_ps
            The interval of counting.
        path_mtu
            Of the path, in bytes: receivers of datagrams then count what carries them.
        state_interval_ps
            How often a sender of TCP tells its state; not at all without it.
        """
        settings: dict[str, Any] = dict(self.kind.in_study(self.sends))
        if self.kind.counted_by is not None:
            settings |= {self.kind.counted_by: Picoseconds(interval_ps)}
        if path_mtu is not None and "path_mtu" in settings_of(self.kind):
            settings |= {"path_mtu": path_mtu}
        if state_interval_ps is not None and "info_interval" in settings_of(self.kind):
            settings |= {"info_interval": Picoseconds(state_interval_ps)}
        return self.kind(source, self.to, **settings)

    def _check(self) -> None:
        for name in self.kind.needed_in_studies:
            if self.sends.get(name) is None:
                raise ValueError(f"{self.app} traffic needs {_in_file(self.kind, name)!r}")
        if self.generator is None and self.to in self.sources:
            raise ValueError(f"{self.to!r} would send to itself; 'to' and 'from' name different hosts")
        of_rtp = [name for name in ("streamer", "receiver") if getattr(self, name) is not None]
        if self.app != "rtp" and of_rtp:
            raise ValueError(f"{of_rtp[0]!r} has no meaning for {self.app} traffic; it is for rtp")
        if self.over is not None and self.app not in ("rtp", "video"):
            raise ValueError(f"'over' has no meaning for {self.app} traffic; it is for rtp and video")
        if self.app == "video" and self.over == "rtp":
            raise ValueError("viewers watch over http or rtsp, not over rtp")
        if self.receiver == "vlc" and (self.over or "rtp") != "rtp":
            raise ValueError(f"VLC receives over rtp, not over {self.over}; leave 'receiver' out")
        if self.viewer is not None and self.app != "video":
            raise ValueError(f"'viewer' has no meaning for {self.app} traffic; it is for video")
        if self.clip is not None and (self.app not in ("rtp", "video") or self.using != "programs"):
            raise ValueError(
                "a clip is streamed or watched by programs: write 'using: programs' and 'app: rtp' or 'app: video', or"
                " leave it out"
            )
        if self.tool is not None and self.app != "bandwidth":
            raise ValueError(f"'tool' has no meaning for {self.app} traffic; it is for bandwidth")
        if self.generator is not None:
            self._check_generator()
        elif self.processors is not None:
            raise ValueError("'processors' limits a generator; name it with 'generator'")
        elif self.using == "programs":
            self._check_programs()
        elif self.over not in (None, "http" if self.app == "video" else "rtp"):
            built_in = "viewer watches over http" if self.app == "video" else "source sends over rtp"
            raise ValueError(f"the built-in {built_in}; for 'over: {self.over}' write 'using: programs'")
        self.between(self.sources[0], 10**12)

    def _check_generator(self) -> None:
        if self.app != "udp" or self.using != "programs":
            raise ValueError("'generator' is for datagrams by programs: write 'app: udp' and 'using: programs'")
        known = {"port", "duration", "packets_per_second", "process", "rate", "unpaced"}
        beside = sorted(name for name, value in self.sends.items() if name not in known and value is not False)
        if beside:
            raise ValueError(f"a generator takes payload, {', '.join(sorted(known))}; not {', '.join(beside)}")
        if not {"packets_per_second", "rate", "unpaced"} & self.sends.keys():
            raise ValueError("a generator needs 'packets_per_second', 'rate' or 'unpaced'")
        if self.duration_ps is None or self.duration_ps < 10**12 or self.duration_ps % 10**12:
            raise ValueError("generators send for whole seconds; give 'duration', such as 10 s")
        if self.port != GENERATORS[self.generator or ""].port:
            raise ValueError(f"generators send to port {GENERATORS[self.generator or ''].port}; give it as 'port'")
        if self.generator == "iperf3" and len(self.sources) > 1:
            raise ValueError("a server of iperf3 takes one client; give each an entry of its own")

    def _check_programs(self) -> None:
        """Programs send as they do; what shapes the built-in sources has no meaning for them."""
        if self.tool is not None:
            return
        if self.app == "bandwidth":
            raise ValueError("name the program that estimates with 'tool', or write 'using: apps'")
        if self.kind.only_apps is None:
            raise ValueError(f"no program makes {self.app} traffic; write 'using: apps'")
        if self.app == "video" and len(self.sends["rates"]) != 1:
            raise ValueError(
                f"{self.viewer or 'ffmpeg'} watches one quality: give a 'ladder' of one rate, or write 'using: apps'"
            )
        # A shaping over 0 s is none.
        given = [name for name, value in self.sends.items() if value is not False and (name, value) != ("shaping", 0)]
        beside = sorted(self.kind.only_apps & set(given))
        if beside:
            keys = ", ".join(repr(name) for name in beside)
            raise ValueError(f"programs send as they do; for {keys} write 'using: apps'")
        if self.app == "rtp":
            if {"paced", "shaping", "dscp"} & set(given):
                raise ValueError("streamers pace themselves: for 'paced', 'shaping' and 'dscp' write 'using: apps'")
            if {"frame_sizes", "group_frames", "b_frames", "variation"} & set(given):
                raise ValueError("streamers send a clip of ffmpeg's: for the model of video write 'using: apps'")
            frames = float(self.sends.get("frames_per_second", 60))
            if not frames.is_integer():
                raise ValueError(f"clips have whole frames a second, not {frames:g}; write for example 60")

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """One schema for each kind, told apart by `app`."""
        common = handler.resolve_ref_schema(handler(schema))
        texts = docstring_texts(cls)
        names = {one.alias or name: name.removesuffix("_ps") for name, one in cls.model_fields.items()}
        properties: dict[str, Any] = {
            key: {"description": texts[names[key]]} | one
            for key, one in common["properties"].items()
            if key not in _INNER
        }
        kinds: list[dict[str, Any]] = []
        for app, kind in FLOWS.items():
            own = {
                _in_file(kind, name): setting.json_schema() | {"description": docstring_texts(kind)[name]}
                for name, setting in _settings_in_studies(kind).items()
            }
            kinds.append(
                {
                    "title": f"{app} traffic",
                    "type": "object",
                    "properties": {**properties, "app": {"const": app, "description": _summary(kind)}, **own},
                    "required": ["app", "name", "from", "to", *(_in_file(kind, one) for one in kind.needed_in_studies)],
                    "additionalProperties": False,
                }
            )
        common.clear()
        common.update({"title": "Traffic", "description": _summary(cls), "anyOf": kinds})
        return common


def _summary(kind: type) -> str:
    return (kind.__doc__ or "").partition("\n")[0]


def _mistake(message: str, *loc: str | int) -> InitErrorDetails:
    # Braces in a message would be read as places of a template.
    error = PydanticCustomError("value_error", "{message}", {"message": message})
    return InitErrorDetails(type=error, loc=loc, input=None)


def _in_file(kind: FlowKind, name: str) -> str:
    """Return the name that studies use for the setting `name`."""
    return next((other for other, own in kind.other_names.items() if own == name), name)


def _settings_in_studies(kind: FlowKind) -> dict[str, Setting]:
    """The settings of `kind` that a study may give, by their names in the class."""
    return {name: one for name, one in settings_of(kind).items() if name not in kind.left_out_of_studies}


def _read_settings(
    kind: FlowKind, app: str, entry: Mapping[str, Any], mistakes: list[InitErrorDetails]
) -> dict[str, Any]:
    allowed = _settings_in_studies(kind)
    sends: dict[str, Any] = {}
    for key, value in entry.items():
        name = kind.other_names.get(key, key)
        if key in _COMMON:
            continue
        if name not in allowed:
            keys = sorted([*_COMMON_KEYS, *(_in_file(kind, one) for one in allowed)])
            if any(key in settings_of(other) or key in other.other_names for other in FLOWS.values()):
                mistakes.append(_mistake(f"{key!r} has no meaning for {app} traffic; it takes {', '.join(keys)}"))
            else:
                mistakes.append(_mistake(f"unknown key; {did_you_mean(key, keys)}", key))
        elif value is not None:
            try:
                sends[name] = allowed[name].kept(value, key)
            except UsageError as error:
                mistakes.append(_mistake(str(error), key))
    return sends


_COMMON_KEYS = ("name", "app", "using", "text", "from", "to", "start", "apart", "part")
