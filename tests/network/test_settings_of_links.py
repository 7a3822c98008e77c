"""A link's settings are one for the core, the Python API, files, and where nothing is said."""

from __future__ import annotations

import json
from typing import Any

import pytest
import twinnet as tn
from twinnet import _core
from twinnet.deliveries import DeliveryTraceSetting
from twinnet.errors import BadProbability
from twinnet.network.impairments import DISTRIBUTIONS
from twinnet.network.link_settings import (
    DEFAULT_DIRECTION,
    LINK_DEFAULTS,
    MAY_BE_NONE,
    SETTINGS,
    DirectionSettings,
    LineOptions,
    LinkOptions,
    OwnLinkOptions,
    direction_spec,
    read_setting,
)
from twinnet.network.topology_schema import DirectionModel, FarTunnelModel, LineChangeModel, LinkModel
from twinnet.settings import Flag, OneOf, Quantity, Whole, settings_of

CORE: dict[str, dict[str, Any]] = json.loads(_core.vocabulary())["link"]
DRAWN = {"jitter", "loss"}
"""Settings that are a choice among models."""


def test_a_link_has_in_python_the_settings_that_it_has_in_the_core() -> None:
    told = {setting.key(name) for name, setting in settings_of(DirectionSettings).items()}
    assert told == CORE["direction"].keys()
    # What stands at the ends of a link, or is told for both directions at once.
    assert CORE["link"].keys() == {"a", "b", "ab", "ba", "mtu", "up", "tunnel"}
    assert {"mtu", "up", "tunnel"} <= LinkOptions.__annotations__.keys()


@pytest.mark.parametrize("name", [*settings_of(DirectionSettings), "mtu", "up"])
def test_a_setting_has_the_unit_default_and_range_that_the_core_tells(name: str) -> None:
    setting = settings_of(LinkOptions)[name]
    core = (CORE["direction"] | CORE["link"])[setting.key(name)]
    assert not core["required"]
    assert core.get("default") == read_setting(name, LINK_DEFAULTS.get(name))
    assert core.get("nullable", False) == (name in MAY_BE_NONE - {"duplicate", "corrupt"})
    match setting:
        case Quantity():
            assert core["unit"] == {"ps": "ps", "bps": "bit/s", "bytes": "B"}[setting.unit]
            # Python stops before the core, which has no maximum but its clock's.
            assert core["minimum"] == setting.least
            assert setting.most <= core.get("maximum", (1 << 63) - 1)
        case Whole():
            assert (core["minimum"], core["maximum"]) == (setting.least, setting.most)
        case Flag():
            assert core["type"] == "boolean"
        case OneOf():
            assert tuple(core["values"]) == setting.words
        case DeliveryTraceSetting():
            assert (core["type"], core["items"]["type"]) == ("array", "integer")
            most = next(one["maxItems"] for one in setting.json_schema()["anyOf"] if one["type"] == "array")
            assert (core["least_items"], core["most_items"]) == (1, most)
        case _ if name in DRAWN:
            assert core["of"] == name
        case _:
            assert (core["minimum"], core["maximum"]) == (0, 1)
            for allowed, refused in ((0, "-0.1 %"), ("100 %", "100.1 %")):
                assert setting.read(allowed, name) == (1 if allowed else 0)
                with pytest.raises(BadProbability):
                    setting.read(refused, name)


@pytest.mark.parametrize("kind", ["normal", "pareto", "pareto_normal", "uniform"])
def test_each_jitter_of_the_core_is_one_of_python(kind: str) -> None:
    told = tn.Jitter("1 ms", kind).to_spec()
    core = json.loads(_core.vocabulary())["jitter"]
    assert core.keys() == {*DISTRIBUTIONS, "table"}
    assert told.keys() - {"distribution"} == core[kind].keys()
    assert core["table"].keys() == tn.JitterTable(["0 s"]).to_spec().keys() - {"distribution"}


def test_each_loss_of_the_core_is_one_of_python_with_the_same_defaults() -> None:
    core = json.loads(_core.vocabulary())["loss"]
    bursts = tn.GilbertElliott(0.1, 0.2).to_spec()
    assert bursts.pop("model") == "gilbert_elliott"
    assert core.keys() == {"gilbert_elliott", "bernoulli"}
    assert bursts.keys() == core["gilbert_elliott"].keys()
    defaults = {name: one["default"] for name, one in core["gilbert_elliott"].items() if not one["required"]}
    assert defaults == {"loss_good": bursts["loss_good"], "loss_bad": bursts["loss_bad"]}
    assert core["bernoulli"].keys() == direction_spec({"loss": "50 %"})["loss"].keys() - {"model"}


def test_files_have_the_settings_of_the_keywords() -> None:
    assert set(DirectionModel.model_fields) == set(DirectionSettings.__annotations__) == set(SETTINGS) - {"up"}
    assert set(LinkModel.model_fields) == set(OwnLinkOptions.__annotations__) | {"between"}
    assert set(FarTunnelModel.model_fields) == set(LineOptions.__annotations__) | {"at", "through", "name"}
    assert set(LineChangeModel.model_fields) == set(SETTINGS)


def test_a_file_that_says_nothing_has_the_settings_of_a_link_that_says_nothing() -> None:
    assert direction_spec(DirectionModel().model_dump()) == DEFAULT_DIRECTION
    network = tn.Network()
    network.link(network.host("h1"), network.host("h2"))
    (link,) = network.to_spec()["links"]
    assert {name: link["ab"][name] for name in DEFAULT_DIRECTION} == DEFAULT_DIRECTION
    # What a file leaves out of a link is what the call leaves out.
    said = LinkModel(between=["h1", "h2"])
    assert (said.mtu, said.up, said.parallel) == (link["mtu"], True, False)


@pytest.mark.parametrize("value", ["5 ms", tn.units.Picoseconds(5 * 10**9)])
def test_a_delay_is_text_or_an_exact_number(value: tn.units.Duration) -> None:
    assert direction_spec({"delay": value}) == {"delay_ps": 5 * 10**9}
