"""What Python says of a description and what the core makes of it are one: fields, units, defaults and ranges.

The core is asked: it reads a configuration, checks it as a lab does, and writes it back with every default.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import pytest
from twinnet import _core, qos
from twinnet.settings import Described, Flag, OneOf, Quantity, Setting, Share, ShareSetting, Whole, settings_of

Spec = dict[str, Any]
Wrap = Callable[[Spec], Spec]


def alone(spec: Spec) -> Spec:
    return spec


def in_drr(spec: Spec) -> Spec:
    return {"kind": "drr", "classes": [spec]}


def in_htb(spec: Spec) -> Spec:
    return {"kind": "htb", "rate_bps": 10**15, "queues": {"0": spec}}


def in_cbq(spec: Spec) -> Spec:
    return {"kind": "cbq", "rate_bps": 10**15, "classes": {"1": spec}}


def in_classify(spec: Spec) -> Spec:
    return {"kind": "classify", "rules": [spec], "queue": {"kind": "codel"}}


def in_rule(spec: Spec) -> Spec:
    return in_classify({"number": 1, "header": [spec]})


# Each class, how its spec stands in a whole configuration, and an example with nothing that may be left out.
QUEUES: list[tuple[type[Described], Wrap, Described]] = [
    (qos.Fifo, alone, qos.Fifo()),
    (qos.Priority, alone, qos.Priority([qos.Fifo()])),
    (qos.Drr, alone, qos.Drr([qos.DrrClass("1 kB")])),
    (qos.DrrClass, in_drr, qos.DrrClass("1 kB")),
    (qos.Tbf, alone, qos.Tbf("1 Mbit", "2 kB")),
    (qos.Htb, alone, qos.Htb("1 Mbit")),
    (qos.HtbQueue, in_htb, qos.HtbQueue()),
    (qos.Sfq, alone, qos.Sfq()),
    (qos.Red, alone, qos.Red("1 kB")),
    (qos.Codel, alone, qos.Codel()),
    (qos.FqCodel, alone, qos.FqCodel()),
    (qos.Pie, alone, qos.Pie()),
    (qos.Cbq, alone, qos.Cbq("1 Mbit", {0: qos.CbqClass("1 kbit")})),
    (qos.CbqClass, in_cbq, qos.CbqClass("1 kbit")),
    (qos.Own, alone, qos.Own(qos.Discipline)),
    (qos.Classify, alone, qos.Classify([], queue=qos.Fifo())),
    (qos.ClassifyRule, in_classify, qos.ClassifyRule(1)),
    (qos.HeaderMatch, in_rule, qos.HeaderMatch(0, 0, 0)),
    (qos.Delay, alone, qos.Delay()),
]
NARROWER = {(qos.Fifo, "limit"), (qos.Fifo, "limit_frames"), (qos.Tbf, "burst"), (qos.HtbQueue, "burst")}
"""Where Python stops before the core: at 10^12 bytes or 10^8 frames, more than any machine could hold."""
DERIVED = {(qos.Red, "max"), (qos.Red, "limit"), (qos.CbqClass, "parent")}
"""Settings whose bounds depend on the others: their own tests are those of contradictions."""
OWN = {(qos.Own, "of"), (qos.Own, "settings")}
"""A class of one's own, and what it takes."""


def accepted(spec: Spec) -> bool:
    try:
        _core.check_queue(json.dumps(spec))
    except ValueError:
        return False
    return True


def written_out(wrap: Wrap, spec: Spec) -> Spec:
    """What the core makes of `spec`, where it stands in the whole."""
    whole = json.loads(_core.check_queue(json.dumps(wrap(spec))))
    if wrap in (in_classify, in_rule):
        (rule,) = whole["rules"]
        return rule if wrap is in_classify else rule["header"][0]
    if wrap is in_drr:
        return whole["classes"][0]
    return whole["queues"]["0"] if wrap is in_htb else whole["classes"]["1"] if wrap is in_cbq else whole


def test_every_discipline_is_compared() -> None:
    core_kinds = {one.discipline for kind, _, one in QUEUES if isinstance(one, qos.Queue) and kind}
    assert core_kinds == {vars(one)["kind"] for one in qos.Queue.disciplines}
    try:
        _core.check_queue('{"kind": "none of them"}')
    except ValueError as error:
        listed = str(error)
    assert all(f"`{kind}`" in listed for kind in core_kinds)
    assert listed.count("`") == 2 * (len(core_kinds) + 1), "the core has a discipline that Python lacks"


@pytest.mark.parametrize(("kind", "wrap", "example"), QUEUES, ids=lambda one: getattr(one, "__name__", None))
def test_python_and_the_core_have_the_same_fields_units_and_defaults(
    kind: type[Described], wrap: Wrap, example: Any
) -> None:
    told = example.to_spec()
    left_out = {
        one.name + (setting.suffix if (setting := settings_of(kind).get(one.name)) else "")
        for one in dataclasses.fields(kind)  # type: ignore[arg-type]
        if one.default is not dataclasses.MISSING and one.name != "kind"
    }
    # A FIFO is given one limit; the class gives it when nothing is said.
    required = told if kind is qos.Fifo else {name: value for name, value in told.items() if name not in left_out}
    completed = written_out(wrap, required)
    assert completed.keys() == told.keys()
    for name, value in completed.items():
        # What the core leaves open until it is built, Python may tell already.
        if value is not None and name not in ("queues", "classes", "bands"):
            assert value == told[name], name


SETTINGS = [
    pytest.param(kind, wrap, example, name, setting, id=f"{kind.__name__}.{name}")
    for kind, wrap, example in QUEUES
    for name, setting in settings_of(kind).items()
    if (kind, name) not in DERIVED | OWN
]


@pytest.mark.parametrize(("kind", "wrap", "example", "name", "setting"), SETTINGS)
def test_python_and_the_core_allow_the_same_values(
    kind: type[Described], wrap: Wrap, example: Any, name: str, setting: Setting
) -> None:
    def allowed(value: object) -> bool:
        spec = example.to_spec() | {name + setting.suffix: value}
        if kind is qos.Red:
            # The others follow from `min`, so that it alone is asked for.
            spec |= {"max_bytes": None, "limit_bytes": None} if name != "min" else {"max_bytes": (1 << 31) - 1}
            spec["limit_bytes"] = (1 << 31) - 1
        if kind is qos.HtbQueue and name == "max_rate":
            spec["min_rate_bps"] = None
        if kind is qos.Cbq and name == "rate":
            spec["classes"] = {"0": {"rate_bps": 1}}
        if kind is qos.Htb and name == "rate":
            spec["queues"] = {"0": {}}
        return accepted(wrap(spec))

    match setting:
        case Quantity() | Whole():
            assert allowed(setting.least)
            assert setting.least == 0 or not allowed(setting.least - 1) or _zero(setting, allowed)
            # `min` of a RED ends below `max`.
            assert allowed(setting.most - 1 if (kind, name) == (qos.Red, "min") else setting.most)
            if (kind, name) not in NARROWER:
                assert not allowed(setting.most + 1)
        case Share():
            assert allowed(1)
            assert allowed(1e-9)
            assert not allowed(0)
            assert not allowed(1.001)
        case ShareSetting():
            assert allowed(0)
            assert allowed(1)
            assert not allowed(1.001)
            assert not allowed(-0.001)
        case Flag():
            assert allowed(True)
            assert allowed(False)
            assert not allowed(1)
        case OneOf():
            assert all(allowed(word) for word in setting.words)
            assert not allowed("none of them")
        case _:
            raise AssertionError(f"no check for {setting}")


def _zero(setting: Setting, allowed: Callable[[object], bool]) -> bool:
    """Whether zero is the only value below the least, as the setting says."""
    return isinstance(setting, Quantity) and setting.or_zero and allowed(0) and not allowed(1)


def test_the_core_refuses_a_field_that_is_none() -> None:
    assert accepted({"kind": "codel"})
    assert not accepted({"kind": "codel", "taget_ps": 1})
