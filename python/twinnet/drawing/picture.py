"""The picture of a network: its nodes with their places, its links with what is to be said of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinnet.drawing.placing import Place, placed
from twinnet.drawing.summary import kind_of, summary_of_kinds
from twinnet.errors import BadValue, did_you_mean
from twinnet.network.link_settings import describe_direction
from twinnet.network.nodes import Host, Interface, Link, Node, Port, Router, Switch
from twinnet.qos.queue import optional_spec
from twinnet.units import format_size

if TYPE_CHECKING:
    from twinnet.network.network import Network

__all__ = [
    "FORMATS",
    "MOST_LIVE_NODES",
    "MOST_NODES",
    "DrawnController",
    "DrawnLink",
    "DrawnNode",
    "Line",
    "Picture",
    "arranged",
    "end_in_words",
    "line_in_words",
    "picture_of",
    "queue_in_words",
]

FORMATS = ("svg", "png", "pdf", "dot", "mermaid")
"""The formats in which a picture can be saved."""
MOST_NODES = 500
"""The most nodes of a picture: more could not be told apart."""
MOST_LIVE_NODES = 2_000
"""The most nodes of a page in the browser, where the reader looks closer."""
_MOST_LABELS = 40
_MOST_LED = 12
"""Of a controller with more switches no lines are drawn."""
_ABOVE, _APART = 1.1, 1.6
_SUFFIXES = {".svg": "svg", ".png": "png", ".pdf": "pdf", ".dot": "dot", ".gv": "dot", ".mmd": "mermaid"}


@dataclass(frozen=True)
class DrawnNode:
    """A node: its kind (``host``, ``router``, ``switch``, ``interface``, ``tunnel``), its place in cells, and a note
    such as its address."""

    name: str
    kind: str
    place: Place
    note: str


@dataclass(frozen=True)
class DrawnLink:
    """A link between two nodes; the label is empty where it is as most links are. `ends` is what stands at both of its
    ends: port numbers of switches, addresses of routers."""

    a: str
    b: str
    label: str
    up: bool
    ends: tuple[str, str] = ("", "")


@dataclass(frozen=True)
class DrawnController:
    """A controller above the network: its name and its note, its place in cells, and the switches that lines lead to,
    none where they would be too many to follow."""

    name: str
    note: str
    place: Place
    switches: tuple[str, ...]


@dataclass(frozen=True)
class Line:
    """A link that is to be drawn: its ends, its settings in words (empty where there are none), whether it is up, and
    what is to be said at its ends."""

    a: str
    b: str
    settings: str
    up: bool
    ends: tuple[str, str] = ("", "")


@dataclass(frozen=True)
class Picture:
    """A picture of a network; notebooks show it as it is.

    Attributes
    ----------
    title
        What the network consists of, in words.
    common
        What most links have in common, such as ``1 Gbit/s``; empty when nothing is.
    controllers
        The controllers of its switches.
    """

    title: str
    nodes: tuple[DrawnNode, ...]
    links: tuple[DrawnLink, ...]
    common: str
    controllers: tuple[DrawnController, ...] = ()

    @property
    def caption(self) -> str:
        """The parts of the network in words, and the settings of links that no label shows."""
        if not self.common:
            return f"{self.title}."
        others = "; others as written" if any(link.label for link in self.links) else ""
        return f"{self.title}. Links: {self.common}{others}."

    def svg(self) -> str:
        """The picture as SVG, for a page or a file."""
        from twinnet.drawing.svg import svg_of

        return svg_of(self)

    def dot(self) -> str:
        """The network in the language of Graphviz."""
        from twinnet.drawing.languages import dot_of

        return dot_of(self)

    def mermaid(self) -> str:
        """The network in the language of Mermaid, which Markdown pages show."""
        from twinnet.drawing.languages import mermaid_of

        return mermaid_of(self)

    def plot(self, axes: Any = None) -> Any:
        """Draw the picture on matplotlib's `axes` (new ones when none are given), and return them."""
        from twinnet.drawing.plotted import plot

        return plot(self, axes)

    def save(self, path: str | Path, form: str | None = None) -> Path:
        """Write the picture to `path`, in the form that its suffix names: .svg, .pdf, .png, .dot or .mmd.

        Raises
        ------
        BadValue
            The suffix names no form, or the file cannot be written.
        """
        where = Path(path)
        chosen = form or _SUFFIXES.get(where.suffix.lower())
        if chosen not in FORMATS:
            known = did_you_mean(form or where.suffix, FORMATS if form else _SUFFIXES)
            raise BadValue(f"a picture cannot be saved as {form or where.name!r}", known)
        try:
            if chosen in ("png", "pdf"):
                from twinnet.drawing.plotted import save_plot

                save_plot(self, where, chosen)
            else:
                text = {"svg": self.svg, "dot": self.dot, "mermaid": self.mermaid}[chosen]()
                where.write_text(text, encoding="utf-8")
        except OSError as error:
            raise BadValue(f"{where} cannot be written: {error.strerror}", "choose another file") from None
        return where

    def _repr_svg_(self) -> str:
        return self.svg()


def picture_of(network: Network, most: int = MOST_NODES, chosen: Mapping[str, Place] | None = None) -> Picture:
    """Return the picture of `network`, which has `most` nodes at most; those in `chosen` stand there.

    Raises
    ------
    BadValue
        It has no nodes, or so many that they could not be told apart.
    """
    nodes = {name: (kind_of(node), _note(node)) for name, node in network.nodes.items()}
    links = [
        Line(link.a.node, link.b.node, _words_beside(link), link.up, (_end(network, link.a), _end(network, link.b)))
        for link in network.links
    ]
    choice = network.controller_choice
    usual: tuple[str, ...] = ()
    if choice is not None:
        program = f"a program in {choice.host}" if choice.host else "a program"
        usual = (choice.target if choice.run is None else program,)
    switches = {node.name: node.controllers or usual for node in network.switches}
    return arranged(nodes, links, most, chosen, switches)


def arranged(
    parts: Mapping[str, tuple[str, str]],
    lines: Sequence[Line],
    most: int = MOST_NODES,
    chosen: Mapping[str, Place] | None = None,
    controllers: Mapping[str, Sequence[str]] | None = None,
) -> Picture:
    """Return the picture of nodes, by name with kind and note, and of the lines between them; nodes in `chosen` stand
    there, others where the shape of the network puts them. `controllers` are the targets of each switch."""
    if not 1 <= len(parts) <= most:
        raise BadValue(
            f"a network of {len(parts)} nodes cannot be drawn; allowed are 1 to {most}",
            "draw a smaller one of the same shape",
        )
    neighbours: dict[str, list[str]] = {name: [] for name in parts}
    for line in lines:
        neighbours[line.a].append(line.b)
        neighbours[line.b].append(line.a)
    places = placed(neighbours, [name for name, (kind, _) in parts.items() if kind not in ("switch", "router")])
    places |= chosen or {}
    nodes = tuple(DrawnNode(name, kind, places[name], note) for name, (kind, note) in parts.items())
    texts = [line.settings for line in lines]
    common, count = Counter(texts).most_common(1)[0] if texts else ("", 0)
    if 2 * count < len(texts) or len(texts) == 1:
        common = ""
    labels = ["" if one == common else one or "no limit" for one in texts]
    if sum(map(bool, labels)) > _MOST_LABELS:
        labels = [""] * len(labels)
    drawn = zip(lines, labels, strict=True)
    links = tuple(DrawnLink(line.a, line.b, label, line.up, line.ends) for line, label in drawn)
    title = summary_of_kinds([kind for kind, _ in parts.values()], len(lines))
    return Picture(title, nodes, links, common, _controllers(controllers or {}, places))


def _controllers(targets: Mapping[str, Sequence[str]], places: Mapping[str, Place]) -> tuple[DrawnController, ...]:
    """The controllers above the network, each over the middle of its switches where there is room."""
    led: dict[str, list[str]] = {}
    for switch, given in targets.items():
        for target in given:
            led.setdefault(target, []).append(switch)
    middles = {one: sum(places[switch][0] for switch in switches) / len(switches) for one, switches in led.items()}
    top = min((y for _, y in places.values()), default=0.0) - _ABOVE
    found: list[DrawnController] = []
    for target in sorted(led, key=middles.__getitem__):
        x = max([middles[target], *(one.place[0] + _APART for one in found)])
        kind, _, name = target.partition(":")
        name, note = (name, "controller") if kind == "app" else ("controller", target)
        many = len(led[target]) > _MOST_LED
        note += f" of {len(led[target])} switches" if many else ""
        found.append(DrawnController(name, note, (x, top), () if many else tuple(led[target])))
    return tuple(found)


def _note(node: Node) -> str:
    if isinstance(node, Host) and not isinstance(node, Router):
        return next((address for port in node.ports[:1] for address in port.addresses if "." in address), "")
    if isinstance(node, Switch):
        return "Open vSwitch" if node.datapath != "own" else ""
    return node.interface if isinstance(node, Interface) else ""


def _end(network: Network, port: Port) -> str:
    return end_in_words(isinstance(network.nodes[port.node], Router), port.to_spec())


def end_in_words(router: bool, port: Mapping[str, Any]) -> str:
    """Return what stands at the end of a link, the port `port` in the form of the lab protocol: the number at a switch,
    the address at a router, nothing elsewhere."""
    if router:
        addresses = [str(address).partition("/")[0] for address in port.get("addresses") or ()]
        return next((one for one in addresses if "." in one), next(iter(addresses), ""))
    return str(port.get("number") or "")


def queue_in_words(queue: Mapping[str, Any] | None) -> str:
    """Return a queue, in the form of the lab protocol, in words: its kind, and how much waits in it at most."""
    if queue is None:
        return ""
    if frames := queue.get("limit_frames"):
        return f"{queue['kind']} queue of {frames} {'frame' if frames == 1 else 'frames'}"
    size = queue.get("limit_bytes")
    return f"{queue['kind']} queue of {format_size(size)}" if size else f"{queue['kind']} queue"


def _words_beside(link: Link) -> str:
    queues = {port.name: queue_in_words(optional_spec(port.queue)) for port in (link.a, link.b)}
    settings = line_in_words(link.ab, link.ba, queues, "" if link.tunnel is None else str(link.tunnel))
    return ", ".join(one for one in (link.name, settings) if one)


def line_in_words(ab: Mapping[str, Any], ba: Mapping[str, Any], queued: Mapping[str, str], tunnel: str = "") -> str:
    """The settings of both directions and the queues by port, "" for none, in a few words; empty where there are
    none."""
    queues = [f"{queue} at {port}" for port, queue in queued.items() if queue]
    if len(queues) == 2 and len(set(queued.values())) == 1:
        queues = [next(iter(queued.values()))]
    there, back = describe_direction(ab), describe_direction(ba)
    both = there if there == back else f"→ {there}, ← {back}"
    said = [both.replace("unlimited", "").strip(", "), tunnel, *queues]
    return ", ".join(one for one in said if one)
