"""Each kind of traffic is one thing in Python and in the core: fields, units, defaults and ranges.

The core is asked: it reads an app's description, checks it as a lab does, and writes it back with every default.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from twinnet import _core
from twinnet.settings import Flag, Number, OneOf, Quantity, Setting, Whole, settings_of
from twinnet.traffic import apps, bandwidth
from twinnet.traffic.app import App, Flow
from twinnet.traffic.application import Application, OwnSink, OwnSource
from twinnet.traffic.distributions import constant
from twinnet.traffic.kinds import FLOWS
from twinnet.traffic.own_tcp import OwnTcpSink, OwnTcpSource
from twinnet.traffic.traffic_settings import TrafficSettings

Fields = dict[str, Any]
GAP, SIZE = constant("1 ms"), constant("500 B")

# The class whose settings are compared, and ways to make an app of it: together they use every setting.
SENDERS: list[tuple[type[TrafficSettings], list[Callable[[], App]]]] = [
    (
        apps.udp_source,
        [
            lambda: apps.udp_source("h", "10.0.0.2", rate="1 Mbit", duration="1 s", dscp=1, exact=True, fragment=False),
            lambda: apps.udp_source("h", "10.0.0.2", packets_per_second=5, size=SIZE, packets=1, process="poisson"),
            lambda: apps.udp_source(
                "h", "10.0.0.2", gap=GAP, payload="8 B", packets=1, on_off={"on": GAP_OF, "off": GAP_OF}
            ),
            lambda: apps.udp_source("h", "10.0.0.2", trace=[("1 ms", "8 B")], repeat=True, packets=3),
            lambda: apps.udp_source("h", "10.0.0.2", unpaced=True, packets=3),
        ],
    ),
    (apps.udp_sink, [lambda: apps.udp_sink("h", record_packets=1, path_mtu=1500)]),
    (
        apps.rtp_source,
        [
            lambda: apps.rtp_source("h", "10.0.0.2", duration="1 s", dscp=1, shaping="1 ms"),
            lambda: apps.rtp_source("h", "10.0.0.2", frames=3, paced=True, frame_sizes=["1 kB"]),
        ],
    ),
    (apps.rtp_sink, [lambda: apps.rtp_sink("h", record_packets=1, path_mtu=1500, clock_hz=8000)]),
    (
        apps.tcp_source,
        [
            lambda: apps.tcp_source(
                "h", "10.0.0.2", duration="1 s", congestion_control="cubic", info_interval="1 s", dscp=3
            ),
            lambda: apps.tcp_source("h", "10.0.0.2", bytes="1 GB"),
            lambda: apps.tcp_source("h", "10.0.0.2", rate="1 Mbit", writes=3, payload="16 B"),
            lambda: apps.tcp_source("h", "10.0.0.2", packets_per_second=2, size=SIZE, writes=3),
            lambda: apps.tcp_source("h", "10.0.0.2", gap=GAP, writes=3, on_off={"on": GAP_OF, "off": GAP_OF}),
        ],
    ),
    (apps.tcp_sink, [lambda: apps.tcp_sink("h")]),
    (apps.http_server, [lambda: apps.http_server("h", congestion_control="cubic")]),
    (
        apps.http_get,
        [
            lambda: apps.http_get("h", "10.0.0.2", bytes="1 kB", duration="1 s", think="1 s").sender,
            lambda: apps.http_get("h", "10.0.0.2", size=SIZE).sender,
        ],
    ),
    (apps.video, [lambda: apps.video("h", "10.0.0.2", duration="60 s").sender]),
    (
        apps.ping,
        [
            lambda: apps.ping("h", "10.0.0.2", count=3, interval="1 s", payload="1 B", dscp=3),
            lambda: apps.ping("h", "10.0.0.2", count=3, gap=GAP, size=SIZE),
        ],
    ),
    (
        OwnSource,
        [lambda: OwnSource("h", "10.0.0.2", of=Application, settings={"rate": 3}, dscp=1, duration="1 s")],
    ),
    (OwnSink, [lambda: OwnSink("h", of=Application, record_packets=1, path_mtu=1500)]),
    (
        OwnTcpSource,
        [lambda: OwnTcpSource("h", "10.0.0.2", of=Application, dscp=1, duration="1 s", congestion_control="cubic")],
    ),
    (OwnTcpSink, [lambda: OwnTcpSink("h", of=Application, settings={"rate": 3}, congestion_control="cubic")]),
    (
        bandwidth.bandwidth_prober,
        [lambda: bandwidth.bandwidth_prober("h", "10.0.0.2", "pathload", budget="1 MB", record=True)],
    ),
    (bandwidth.bandwidth_listener, [lambda: bandwidth.bandwidth_listener("h", allow=["10.0.0.1"])]),
]
GAP_OF = {"distribution": "exponential", "mean": "1 s"}
SET_BY_THE_LAB = {"to", "flow", "clock_offset_ps", "kind"}
"""What no person says of an app."""
NOT_THERE = {"preset", "voice", "silence_suppression", "congestion_control of http_client", "mtu"}
"""What stands for other fields, or belongs to the app at the other end."""
INSIDE = {"model", "method", "most_payload", "frame_bytes"}
"""Fields that Python writes from several settings."""
NARROWER = {
    "duration_ps",
    "bytes",
    "packets",
    "writes",
    "count",
    "shaping_ps",
    "timeout_ps",
    "needed_ps",
    "budget_bytes",
}
"""Where Python stops before the core: no run lasts over 100 days or carries over 10^15 bytes or packets; or where other
settings bound this one further, which has tests of its own."""


def spec_of(app: App) -> Fields:
    return {"kind": app.kind, **app.fields} | ({"flow": 1} if "flow" in app.fields else {})


def accepted(spec: Fields) -> bool:
    try:
        _core.check_app(json.dumps(spec))
    except ValueError:
        return False
    return True


IDS = [kind.__name__ for kind, _ in SENDERS]


@pytest.mark.parametrize(("kind", "makes"), SENDERS, ids=IDS)
def test_what_python_writes_the_core_takes_and_both_have_the_same_fields(
    kind: type[TrafficSettings], makes: list[Callable[[], App]]
) -> None:
    written: set[str] = set()
    known: set[str] = set()
    for make in makes:
        spec = spec_of(make())
        whole = json.loads(_core.check_app(json.dumps(spec)))
        written |= spec.keys()
        known |= whole.keys()
        for name, value in spec.items():
            assert whole[name] == pytest.approx(value) if isinstance(value, float) else name in whole, name
    assert known - SET_BY_THE_LAB - written == set(), "the core has fields that no setting of Python writes"
    told = {setting.key(name) for name, setting in settings_of(kind).items() if name not in NOT_THERE}
    inside = {"rate_bps", "group_frames", "b_frames", "variation"} if "model" in written else set()
    inside |= {"frame_sizes", "capacity_bps", "prior_bps", "prior_std_bps", "prior_window_ps", "settings"}
    inside |= {"congestion_control"}
    assert told - written - inside == set(), "a setting of Python reaches no field of the core"


SETTINGS = [
    pytest.param(make, setting.key(name), setting, id=f"{kind.__name__}.{name}-{place}")
    for kind, makes in SENDERS
    for place, make in enumerate(makes)
    for name, setting in settings_of(kind).items()
    if setting.key(name) in make().fields and setting.key(name) not in INSIDE | {"allow"}
]


@pytest.mark.parametrize(("make", "field", "setting"), SETTINGS)
def test_python_and_the_core_allow_the_same_values(make: Callable[[], App], field: str, setting: Setting) -> None:
    spec = spec_of(make())

    def allowed(value: object) -> bool:
        changed = spec | {field: value}
        if field == "segment_ps":
            changed |= {"buffer_ps": 3600 * 10**12}
        if field == "buffer_ps":
            changed |= {"segment_ps": 10**11, "needed_ps": 1}
        if field == "needed_ps":
            changed |= {"buffer_ps": 3600 * 10**12}
        if field == "paced":
            changed.pop("shaping_ps", None)
        if field in ("interval_ps", "timeout_ps") and spec["kind"] == "ping" and "interval_ps" in spec:
            changed |= {"timeout_ps": 1} if field == "interval_ps" else {"interval_ps": 3600 * 10**12}
        return accepted(changed)

    match setting:
        case Quantity() | Whole() | Number():
            step = 1 if not isinstance(setting, Number) else max(abs(setting.least), 1.0) * 1e-6
            assert field == "buffer_ps" or allowed(setting.least)
            assert setting.least == 0 or not allowed(setting.least - step)
            assert allowed(setting.most)
            if field not in NARROWER:
                assert not allowed(setting.most * 1.000001 if isinstance(setting, Number) else setting.most + 1)
        case Flag():
            assert allowed(True)
            assert not allowed(1)
        case OneOf():
            for word in setting.words:
                assert allowed(word)
            assert not allowed("none of them")
        case _:
            # A distribution, a trace or a list: its own reader checks it, and the core has taken it above.
            # Names are bounded, and the settings of an own application are a text.
            named = {"congestion_control": "more than fifteen letters", "code": "more than fifteen letters"}
            assert not allowed(3 if field == "settings" else named.get(field, "text"))


def test_every_kind_of_a_study_is_made_of_apps_that_are_compared() -> None:
    compared = {make().kind for _, makes in SENDERS for make in makes}
    made: set[str] = set()
    examples: dict[str, Fields] = {
        "udp": {"rate": "1 Mbit", "duration": "1 s"},
        "tcp": {"duration": "1 s"},
        "http": {"bytes": "1 kB"},
        "ping": {},
        "rtp": {},
        "voice": {"duration": "1 s"},
        "video": {"duration": "60 s"},
        "bandwidth": {},
        "own": {"of": Application},
        "own_tcp": {"of": Application},
    }
    for name, kind in FLOWS.items():
        flow = kind("h1", "h2", **examples[name])
        made |= {flow.sender.kind, flow.receiver.kind} if isinstance(flow, Flow) else {flow.kind}
    assert made <= compared
    try:
        _core.check_app('{"kind": "none of them"}')
    except ValueError as error:
        listed = {part for part in str(error).split("`") if part.replace("_", "").isalpha()}
    # Clocks are compared by the machine's own apps, of which nobody describes one.
    assert listed - {"clock_client", "clock_server"} == compared, "the core has an app that Python lacks"
