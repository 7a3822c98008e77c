"""Pictures of networks: every node has a place of its own, and names cannot become markup."""

from __future__ import annotations

import itertools
import math
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import pytest
import twinnet as tn
from twinnet.cli import run as command_line
from twinnet.drawing import picture_of
from twinnet.drawing.picture import MOST_LIVE_NODES
from twinnet.drawing.placing import placed
from twinnet.drawing.running import picture_of_running
from twinnet.errors import BadValue
from twinnet.network import templates

SHAPES = ["single:30", "linear:5,2", "linear:4,0", "tree:3,2", "tree:1,3", "dumbbell:3,2", "fat-tree:4", "mesh:5,2"]


@pytest.mark.parametrize("shape", SHAPES)
def test_no_two_nodes_of_a_template_stand_in_the_same_place(shape: str) -> None:
    picture = picture_of(templates.from_text(shape))
    # A host's box is 38 of the 84 units of a cell wide and 26 high: half a cell apart, two never touch.
    for one, other in itertools.combinations(picture.nodes, 2):
        assert math.dist(one.place, other.place) > 0.5, (one, other)


def test_a_tree_stands_under_its_root_and_a_dumbbell_between_its_hosts() -> None:
    tree = {node.name: node.place for node in templates.tree(2, 2).draw().nodes}
    assert tree["s1"][1] < tree["s2"][1] == tree["s3"][1] < tree["h1"][1]
    assert tree["s2"][0] < tree["s1"][0] < tree["s3"][0]
    bell = {node.name: node.place for node in templates.dumbbell(2).draw().nodes}
    assert bell["h1"][0] < bell["s1"][0] < bell["s2"][0] < bell["h3"][0]


def test_a_leaf_spine_stands_in_levels_with_its_hosts_below() -> None:
    nodes = templates.leaf_spine(4, 2, 2).draw().nodes
    places = {node.name: node.place for node in nodes}
    rows = [sorted(name for name in places if places[name][1] == y) for y in sorted({y for _, y in places.values()})]
    assert rows == [["s1", "s2"], ["s3", "s4", "s5", "s6"], [f"h{number}" for number in range(1, 9)]]
    # Each leaf stands above the middle of its hosts, and the spines in the middle of the leaves.
    for leaf in range(1, 5):
        hosts = [places[f"h{2 * leaf - 1}"][0], places[f"h{2 * leaf}"][0]]
        assert places[f"s{leaf + 2}"][0] == pytest.approx(sum(hosts) / 2)
    middle = sum(places[f"s{leaf}"][0] for leaf in range(3, 7)) / 4
    assert (places["s1"][0] + places["s2"][0]) / 2 == pytest.approx(middle)


def test_a_ring_stands_in_a_circle_with_its_hosts_outside() -> None:
    places = {node.name: node.place for node in templates.ring(6, 2).draw().nodes}
    switches = [places[f"s{number}"] for number in range(1, 7)]
    middle = (sum(x for x, _ in switches) / 6, sum(y for _, y in switches) / 6)
    radii = [math.dist(middle, place) for place in switches]
    assert radii == pytest.approx([radii[0]] * 6) and radii[0] > 1
    # In the order of the ring: neighbours are equally far from each other.
    apart = [math.dist(one, other) for one, other in itertools.pairwise([*switches, switches[0]])]
    assert apart == pytest.approx([apart[0]] * 6)
    assert all(math.dist(middle, places[f"h{number}"]) > radii[0] + 1 for number in range(1, 13))


def test_a_long_chain_and_parts_that_are_not_joined_are_placed() -> None:
    chain = {f"s{n}": [f"s{other}" for other in (n - 1, n + 1) if 0 <= other < 5000] for n in range(5000)}
    assert len(placed(chain)) == 5000
    assert len(set(placed({"a": ["b"], "b": ["a"], "c": []}).values())) == 3


def test_links_tell_what_most_of_them_do_not_have() -> None:
    net = tn.Network()
    s1, s2 = net.switch("s1"), net.switch("s2")
    for n, switch in enumerate((s1, s1, s2, s2), 1):
        net.link(net.host(f"h{n}"), switch, rate="100 Mbit")
    net.link(s1, s2, rate="10 Mbit", delay="5 ms", queue=tn.qos.Fifo(limit_frames=20))
    picture = net.draw()
    assert [link.label for link in picture.links] == ["", "", "", "", "10 Mbit/s delay 5 ms, fifo queue of 20 frames"]
    assert picture.caption == "4 hosts, 2 switches and 5 links. Links: 100 Mbit/s; others as written."
    assert repr(net) == "<Network of 4 hosts, 2 switches and 5 links>"


def test_the_svg_is_well_formed_and_holds_every_name() -> None:
    net = templates.single(3, rate="1 Gbit")
    root = ElementTree.fromstring(net.draw().svg())
    words = {text for text in root.itertext() if text.strip()}
    assert {"s1", "h1", "h2", "h3", "10.0.0.1/8"} <= words
    assert "<svg" in net._repr_html_() and "1 Gbit/s" in net._repr_html_()


def test_every_form_is_written_and_the_same_picture_gives_the_same_bytes(tmp_path: Path) -> None:
    net = templates.linear(3)
    for suffix, begin in ((".svg", b"<svg"), (".pdf", b"%PDF-"), (".png", b"\x89PNG"), (".dot", b"graph network {")):
        first, second = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
        net.draw(first)
        net.draw(second)
        assert first.read_bytes().startswith(begin)
        assert first.read_bytes() == second.read_bytes()
    with pytest.raises(BadValue, match="cannot be saved as 'a"):
        net.draw(tmp_path / "a.gif")


def test_mermaid_names_are_no_keywords() -> None:
    net = tn.Network()
    net.link(net.host("end"), net.switch("graph"))
    assert '  n_end["end"]\n' in net.draw().mermaid()


def test_a_network_too_large_for_a_picture_is_told_in_words() -> None:
    net = templates.single(600)
    with pytest.raises(BadValue, match="a network of 601 nodes cannot be drawn; allowed are 1 to 500"):
        net.draw()
    assert net._repr_html_() == "<p>Network of 600 hosts, 1 switch and 600 links</p>"


def test_the_command_draws_templates_files_and_studies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line(["graph", "tree:2", "--rate", "1 Gbit"]) == 0
    assert ElementTree.fromstring(capsys.readouterr().out).tag.endswith("svg")
    assert command_line(["graph", "tcp-udp-queues", "--format", "dot"]) == 0
    assert '"h4" -- "s1"' in capsys.readouterr().out
    assert command_line(["graph", "single:2", "--out", str(tmp_path / "n.pdf")]) == 0
    assert command_line(["graph", "single:2", "--format", "png"]) == 2
    assert "--out network.png" in capsys.readouterr().err


def triangle() -> tn.Network:
    net = tn.Network()
    routers = [net.router(f"r{number}") for number in (1, 2, 3)]
    for number, (one, other, delay) in enumerate(((0, 1, "20 ms"), (0, 2, "2 ms"), (1, 2, "2 ms")), 1):
        addresses = {"address_a": f"10.{number}.0.1/24", "address_b": f"10.{number}.0.2/24"}
        net.link(routers[one], routers[other], delay=delay, rate=f"{number} Mbit", **addresses)
    return net


def bottleneck() -> tn.Network:
    slow = {"rate": "10 Mbit", "delay": "20 ms", "queue": tn.qos.Fifo(limit_frames=9)}
    return templates.dumbbell(2, bottleneck=slow, rate="100 Mbit")


def star() -> tn.Network:
    net = tn.Network()
    s1 = net.switch("s1")
    for number in range(1, 5):
        net.link(net.host(f"h{number}"), s1, rate="100 Mbit" if number < 4 else "10 Mbit", delay="7 ms")
    return net


@pytest.mark.parametrize("network", [triangle, bottleneck, star])
def test_no_label_stands_on_a_line_or_a_node(network: Callable[[], tn.Network]) -> None:
    root = ElementTree.fromstring(network().draw().svg())
    name = "{http://www.w3.org/2000/svg}"
    lines = [[float(one.get(key, "")) for key in ("x1", "y1", "x2", "y2")] for one in root.iter(f"{name}line")]
    boxes = [[float(one.get(key, "")) for key in ("x", "y", "width", "height")] for one in root.iter(f"{name}rect")]
    texts = [one for one in root.iter(f"{name}text") if one.get("class") == "label"]
    assert texts
    for text in texts:
        begin = {"end": -1.0, "middle": -0.5, "start": 0.0}[text.get("style", "").split()[-1]]
        for row in text.iter(f"{name}tspan"):
            # A font of size 10: letters of 5 on average, 8 above their base and 2 below.
            wide = 5.0 * len(row.text or "")
            left, base = float(row.get("x", "")) + begin * wide, float(row.get("y", ""))
            for x, y, width, height in boxes:
                assert left + wide <= x or x + width <= left or base + 2 <= y or y + height <= base - 8, row.text
            for x1, y1, x2, y2 in lines:
                for share in range(101):
                    x, y = x1 + (x2 - x1) * share / 100, y1 + (y2 - y1) * share / 100
                    assert not (left < x < left + wide and base - 8 < y < base + 2), row.text


def routed() -> tn.Network:
    net = tn.Network()
    s1, s2, r1, r2 = net.switch("s1"), net.switch("s2"), net.router("r1"), net.router("r2")
    for number, switch in enumerate((s1, s1, s2, s2), 1):
        net.link(net.host(f"h{number}"), switch, rate="100 Mbit")
    net.link(s1, r1, address_b="10.0.1.254/24", rate="100 Mbit")
    slow = {"rate": "10 Mbit", "queue": tn.qos.Fifo(limit="30 kB")}
    net.link(r1, r2, address_a="192.168.100.1/30", address_b="192.168.100.2/30", **slow)
    net.link(r2, s2, address_a="10.0.2.254/24", rate="100 Mbit")
    return net


SVG = "{http://www.w3.org/2000/svg}"


def rooms(root: ElementTree.Element, kind: str) -> list[tuple[str, float, float, float, float]]:
    """Each line of the texts of a class, with its left, right, top and bottom: letters of 5, figures of 4.5."""
    found: list[tuple[str, float, float, float, float]] = []
    for text in (one for one in root.iter(f"{SVG}text") if one.get("class") == kind):
        begin = {"end": -1.0, "middle": -0.5, "start": 0.0}[(text.get("style") or "middle").split()[-1]]
        for row in list(text) or [text]:
            wide, high = (5.0, 8.0) if kind == "label" else (4.5, 6.0)
            wide *= len(row.text or "")
            left, base = float(row.get("x", "")) + begin * wide, float(row.get("y", ""))
            found.append((row.text or "", left, left + wide, base - high, base))
    return found


@pytest.mark.parametrize("network", [triangle, bottleneck, star, routed, lambda: templates.from_text("fat-tree:4")])
def test_ports_and_addresses_stand_at_the_ends_of_their_links_and_on_nothing(network: Callable[[], tn.Network]) -> None:
    net = network()
    picture = net.draw()
    root = ElementTree.fromstring(picture.svg())
    ends, others = rooms(root, "end"), rooms(root, "label") + rooms(root, "note")
    for rect in root.iter(f"{SVG}rect"):
        x, y, width, height = (float(rect.get(key, "")) for key in ("x", "y", "width", "height"))
        others.append(("a node", x, x + width, y, y + height))
    # Each port of a switch has its number there, and each of a router its address.
    assert sorted(end[0] for end in ends) == sorted(text for link in picture.links for text in link.ends if text)
    left, _, width, _ = map(float, root.get("viewBox", "").split())
    assert all(left <= end[1] and end[2] <= left + width for end in ends)
    for one, other in itertools.combinations([*ends, *others], 2):
        if one in ends:
            apart = one[2] <= other[1] or other[2] <= one[1] or one[4] <= other[3] or other[4] <= one[3]
            assert apart, (one, other)
    lines = [[float(one.get(key, "")) for key in ("x1", "y1", "x2", "y2")] for one in root.iter(f"{SVG}line")]
    for text, left, right, top, bottom in ends:
        for x1, y1, x2, y2 in lines if "." in text else ():
            for share in range(101):
                x, y = x1 + (x2 - x1) * share / 100, y1 + (y2 - y1) * share / 100
                assert not (left < x < right and top < y < bottom), text


def test_ends_of_links_are_told_in_all_forms_and_all_of_a_node_or_none(tmp_path: Path) -> None:
    picture = routed().draw()
    assert [link.ends for link in picture.links] == [
        *(("", "1"), ("", "2"), ("", "1"), ("", "2")),
        ("3", "10.0.1.254"),
        ("192.168.100.1", "192.168.100.2"),
        ("10.0.2.254", "3"),
    ]
    assert '"s1" -- "r1" [taillabel="3", headlabel="10.0.1.254"];' in picture.dot()
    axes = picture.plot()
    assert {"192.168.100.1", "192.168.100.2", "3"} <= {text.get_text() for text in axes.texts}
    # Thirty links leave one switch: some numbers would have room, and would look like all.
    crowded = ElementTree.fromstring(templates.single(30).draw().svg())
    assert rooms(crowded, "end") == []
    titles = [title.text for title in crowded.iter(f"{SVG}title")]
    assert titles[1] == "s1: " + ", ".join(f"{number} to h{number}" for number in range(1, 31))
    with routed().simulate() as lab:
        running = picture_of_running(lab.layout.nodes, lab.layout.links, lab.links())
    assert [link.ends for link in running.links] == [link.ends for link in picture.links]
    assert running.links[5].label == picture.links[5].label == "10 Mbit/s, fifo queue of 30 kB"


def test_controllers_stand_above_the_network_with_a_line_to_each_of_their_switches() -> None:
    net = templates.linear(3)
    net.controller(tn.control.LearningSwitch)
    net.node("s3").controllers = ("tcp:10.0.0.9:6653",)
    picture = net.draw()
    assert [(one.name, one.note, one.switches) for one in picture.controllers] == [
        ("LearningSwitch", "controller", ("s1", "s2")),
        ("controller", "tcp:10.0.0.9:6653", ("s3",)),
    ]
    root = ElementTree.fromstring(picture.svg())
    rects = [one for one in root.iter(f"{SVG}rect") if one.get("class") == "controller"]
    switches = [one for one in root.iter(f"{SVG}rect") if one.get("class") == "switch"]
    assert max(float(one.get("y", "")) + 26 for one in rects) < min(float(one.get("y", "")) for one in switches)
    _, top, _, _ = map(float, root.get("viewBox", "").split())
    assert all(top < box[3] for box in rooms(root, "note"))
    assert [one.get("class") for one in root.iter(f"{SVG}line")].count("control") == 3
    assert {"LearningSwitch", "tcp:10.0.0.9:6653"} <= {text.get_text() for text in picture.plot().texts}
    assert '"controller 0" -- "s2" [style=dotted];' in picture.dot()
    assert "controller_1 -.- n_s3" in picture.mermaid()
    many = templates.from_text("fat-tree:4")
    many.controller("tcp:127.0.0.1:6653")
    [one] = many.draw().controllers
    assert (one.note, one.switches) == ("tcp:127.0.0.1:6653 of 20 switches", ())
    net.node("s3").controllers = ()
    with net.simulate() as lab:
        running = picture_of_running(lab.layout.nodes, lab.layout.links, lab.links())
    assert [one.switches for one in running.controllers] == [("s1", "s2", "s3")]


def test_a_running_lab_shows_itself_in_a_notebook() -> None:
    with tn.templates.single(2, rate="10 Mbit").simulate() as lab:
        lab.run_until("1.5 s")
        lab.link("h1", "s1").set(up=False)
        shown = lab._repr_html_()
        assert "1.500 s, valid" in shown and "<svg" in shown and "2 hosts" in shown
        assert "stroke-dasharray" in shown, "the link that is down is dashed"
    assert "not running" in lab._repr_html_() and "<svg" not in lab._repr_html_()


def test_a_running_lab_that_is_too_large_to_draw_says_so() -> None:
    with tn.templates.single(600).simulate() as lab:
        shown = lab._repr_html_()
    assert "<svg" not in shown and "601 nodes cannot be drawn" in shown


def test_a_wide_tree_is_packed_and_no_two_of_its_nodes_meet() -> None:
    net = tn.Network()
    top = net.switch("s0")
    for number in range(1, 41):
        below = net.switch(f"s{number}")
        net.link(top, below)
        for place in range(25):
            net.link(net.host(f"h{number}-{place}"), below)
    with pytest.raises(BadValue, match="1041 nodes cannot be drawn; allowed are 1 to 500"):
        picture_of(net)
    places = [node.place for node in picture_of(net, MOST_LIVE_NODES).nodes]
    wide, high = (max(axis) for axis in zip(*places, strict=True))
    assert 1 < wide / high < 3 and wide < 60
    assert min(math.dist(one, other) for one, other in itertools.combinations(places, 2)) >= 1


def test_a_core_without_a_shape_is_placed_by_force_each_time_alike() -> None:
    net = tn.Network()
    switches = [net.switch(f"s{number}") for number in range(8)]
    for one, other in ((0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (4, 5), (5, 6), (6, 7), (7, 4), (2, 6)):
        net.link(switches[one], switches[other])
    for number, switch in enumerate(switches):
        net.link(net.host(f"h{number}"), switch)
    nodes = picture_of(net).nodes
    assert nodes == picture_of(net).nodes
    for one, other in itertools.combinations(nodes, 2):
        assert math.dist(one.place, other.place) > 0.5, (one, other)
    # What is linked stands nearer together than what is not.
    places = {node.name: node.place for node in nodes}
    assert math.dist(places["s0"], places["s1"]) < math.dist(places["s1"], places["s7"])
