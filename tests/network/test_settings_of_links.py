"""A link's settings are the same ones for the Python API, in files and where nothing is said."""

from __future__ import annotations

import pytest
import twinnet as tn
from twinnet.network.link_options import DirectionSettings, LineChange, LinkOptions
from twinnet.network.link_settings import DEFAULT_DIRECTION, SETTINGS, direction_spec
from twinnet.network.topology_schema import DirectionModel, LinkModel


def test_keywords_files_and_readers_have_the_same_settings() -> None:
    keywords = set(DirectionSettings.__annotations__)
    assert keywords == set(DirectionModel.model_fields) == set(SETTINGS) - {"up"}
    assert set(LineChange.__annotations__) - keywords == {"up"}
    assert set(LinkOptions.__annotations__) | {"between"} == set(LinkModel.model_fields)


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
