"""Places of nodes that somebody chose: the file that keeps them, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from page_data import page_data
from starlette.testclient import TestClient
from twinnet.cli import run
from twinnet.drawing import picture_of
from twinnet.drawing.positions import keep_position, positions_beside, read_positions
from twinnet.errors import BadValue
from twinnet.live.feed import Feed
from twinnet.live.places import Places
from twinnet.live.routes import routes
from twinnet.network import templates


def test_a_place_is_kept_beside_those_that_are_there(tmp_path: Path) -> None:
    file = positions_beside(tmp_path / "net.yaml")
    assert file == tmp_path / "net.positions.json" and read_positions(file) == {}
    assert keep_position(file, "h1", 1, 2.00049) == (1, 2)
    keep_position(file, "h2", 0.5, 3)
    keep_position(file, "h1", 4, 0)
    assert read_positions(file) == {"h1": (4, 0), "h2": (0.5, 3)}
    assert [path.name for path in tmp_path.iterdir()] == ["net.positions.json"]


def test_nodes_stand_where_they_were_put_and_others_where_they_were() -> None:
    net = templates.single(3)
    before = {node.name: node.place for node in picture_of(net).nodes}
    after = {node.name: node.place for node in picture_of(net, chosen={"h2": (7.5, 0.5), "gone": (1, 1)}).nodes}
    assert after == before | {"h2": (7.5, 0.5)}


@pytest.mark.parametrize(
    "content", ["[]", "{", '{"h1": [1]}', '{"h1": [1, -1]}', '{"h1": ["1", 2]}', '{"h1": [NaN, 1]}']
)
def test_what_are_no_places_is_told_and_left_alone(tmp_path: Path, content: str) -> None:
    file = tmp_path / "net.positions.json"
    file.write_text(content)
    for act in (lambda: read_positions(file), lambda: keep_position(file, "h1", 1, 1)):
        with pytest.raises(BadValue, match="holds no places of nodes"):
            act()
    assert file.read_text() == content


class Asking:
    """What the page's server answers to a node that was dragged; its lab is not asked."""

    def __init__(self, file: Path | None) -> None:
        self.network: dict[str, Any] = {"nodes": [{"name": "h1", "x": 0, "y": 0}], "links": [], "control": True}
        places = Places(self.network, file) if file is not None else None
        acts: Any = type("NoActs", (), {"lab": None})()
        self.browser = TestClient(routes(self.network, Feed(), acts, places))

    def put(self, body: object) -> int:
        return self.browser.post("/place", json=body).status_code


def test_the_server_keeps_the_places_of_its_nodes_alone(tmp_path: Path) -> None:
    file = tmp_path / "net.positions.json"
    asking = Asking(file)
    assert asking.put({"node": "h1", "x": 2, "y": 1.5}) == 200
    # Who opens the page next sees it there.
    assert page_data(asking.browser.get("/").text, "network")["nodes"] == [{"name": "h1", "x": 2, "y": 1.5}]
    refused: list[object] = [
        {"node": "../h1", "x": 1, "y": 1},
        {"node": "h1", "x": -1, "y": 1},
        {"node": "h1", "x": 1e9, "y": 1},
        {"node": "h1", "x": "1", "y": 1},
        {"node": "h1", "x": True, "y": 1},
        {"node": "h1"},
        [],
    ]
    assert [asking.put(one) for one in refused] == [400] * len(refused)
    assert json.loads(file.read_text()) == {"h1": [2, 1.5]}


def test_without_a_file_that_was_named_nothing_is_written(tmp_path: Path) -> None:
    assert Asking(None).put({"node": "h1", "x": 2, "y": 1}) in (404, 405)
    assert list(tmp_path.iterdir()) == []


def test_a_campaign_has_no_positions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "study.json").write_text("{}")
    assert run(["live", str(tmp_path), "--positions", "net.positions.json"]) == 2
    assert "--positions is of the page of a lab" in capsys.readouterr().err
