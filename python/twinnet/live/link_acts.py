"""Links and queues that the page changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from twinnet.errors import BadValue
from twinnet.live.done import Done
from twinnet.network.link_settings import direction_spec
from twinnet.network.written_link import written_settings
from twinnet.qos import Fifo
from twinnet.qos.queue_text import as_python, queue_from_spec, queue_text

if TYPE_CHECKING:
    from twinnet.lab.lab import Lab
    from twinnet.live.seal import Seal
    from twinnet.network.moment import Side
    from twinnet.qos import Queue

__all__ = ["LinkActs"]

Row = Mapping[str, Any]


class LinkActs:
    """Changes links and queues of `lab`, unless a `seal` forbids it. One thread at a time changes something; any may
    read."""

    def __init__(self, lab: Lab, seal: Seal) -> None:
        self._lab = lab
        self._seal = seal

    def settings(self, number: int) -> dict[str, Any]:
        """Return what link `number` is set to now, as people write it: ``up``, ``ab`` and ``ba``, and ``queues`` of
        its ports that a page may change."""
        self._ends(number)
        row = self._row(number)
        queues: dict[str, str | None] = {}
        for way in ("ab", "ba"):
            node, _ = self._lab.layout.port(row[way]["port"])
            if self._lab.layout.nodes[node]["kind"] == "switch":
                queues[row[way]["port"]] = queue_text(self._queue_of(row[way]["port"]))
        return {
            "up": bool(row["ab"]["up"] and row["ba"]["up"]),
            "ab": written_settings(_config(row["ab"])),
            "ba": written_settings(_config(row["ba"])),
            "queues": queues,
        }

    def set_link(self, number: int, direction: Side, settings: Mapping[str, Any]) -> Done:
        """Change `settings` of the link `number`, one way or both."""
        self._seal.refuse_change()
        a, b = self._ends(number)
        if "delivery_trace" in settings:
            raise BadValue("the page sets no delivery trace", "use Python")
        keys = direction_spec(settings).keys()
        row = self._row(number)
        before = {
            way: written_settings({key: _config(row[way]).get(key) for key in keys if key != "up"})
            | ({"up": bool(row[way]["up"])} if "up" in keys else {})
            for way in ("ab", "ba")
        }
        self._lab.link(a, b).set(direction, **{name: settings[name] for name in settings})
        if direction == "both" and before["ab"] == before["ba"]:
            undo = partial(self.set_link, number, "both", before["ab"])
        elif direction == "both":
            undo = partial(self._set_both_ways, number, before)
        else:
            undo = partial(self.set_link, number, direction, before[direction])
        words = [a, b, *([] if direction == "both" else ["direction", direction])]
        line = _line("link", words, settings)
        keywords = ", ".join(f"{name}={as_python(value)}" for name, value in settings.items())
        one_way = "" if direction == "both" else f'"{direction}", '
        return Done(line, [f'lab.link("{a}", "{b}").set({one_way}{keywords})'], undo)

    def set_queue(self, port: str, queue: Queue) -> Done:
        """Replace the queue of `port`, one of a switch."""
        self._seal.refuse_change()
        node, _ = self._lab.layout.port(port)
        if self._lab.layout.nodes[node]["kind"] != "switch":
            raise BadValue(f"{port} is no port of a switch", "the queue of a host is its own: use tc there")
        before = self._queue_of(port)
        self._lab.switch(node).set_queue(port, queue)
        text = queue_text(queue)
        python = f'lab.switch("{node}").set_queue("{port}", {as_python(queue)})'
        return Done([f"queue {port} {text}"] if text else [], [python], partial(self.set_queue, port, before))

    def _ends(self, number: int) -> tuple[str, str]:
        """The names by which `Lab.link` finds the link: its nodes, or where those have several links its ports."""
        layout = self._lab.layout
        if not 0 <= number < len(layout.links):
            raise BadValue(f"there is no link {number}", f"the links are 0 to {len(layout.links) - 1}")
        ends = [layout.links[number][end] for end in "ab"]
        a, b = (str(end["node"]) for end in ends)
        if layout.link(a, b)[0] == number:
            return a, b
        a, b = (str(layout.nodes[end["node"]]["ports"][end["port"]]["name"]) for end in ends)
        return a, b

    def _row(self, number: int) -> Row:
        """A link as it is now, in the form of the lab protocol."""
        rows: Sequence[Row] = self._lab.links()
        return rows[number]

    def _set_both_ways(self, number: int, settings: Mapping[str, Mapping[str, Any]]) -> Done:
        there, back = self.set_link(number, "ab", settings["ab"]), self.set_link(number, "ba", settings["ba"])
        again = partial(self._one_after_the_other, [one.undo for one in (back, there) if one.undo is not None])
        return Done([*there.lines, *back.lines], [*there.python, *back.python], again)

    def _one_after_the_other(self, works: Sequence[Callable[[], Done]]) -> Done:
        done = [work() for work in works]
        undo = partial(self._one_after_the_other, [one.undo for one in reversed(done) if one.undo is not None])
        return Done([line for one in done for line in one.lines], [line for one in done for line in one.python], undo)

    def _queue_of(self, port: str) -> Queue:
        """What waits at `port`: what this process or the description of the network gave it."""
        if port in self._lab.queues_given:
            return self._lab.queues_given[port]
        node, index = self._lab.layout.port(port)
        spec = self._lab.layout.nodes[node]["ports"][index].get("queue")
        return queue_from_spec(spec) if spec else Fifo()


def _config(way: Row) -> Row:
    """The settings of a direction."""
    return way["config"] or {}


def _line(command: str, words: Sequence[str], settings: Mapping[str, Any]) -> list[str]:
    """The line of the prompt with `settings`; none where it has no words for one of them."""
    parts = [*words]
    for name, value in settings.items():
        if name == "up":
            parts.append("up" if value else "down")
        elif isinstance(value, bool):
            parts += [name, "on" if value else "off"]
        elif isinstance(value, (list, dict)):
            return []
        else:
            parts += [name, "none" if value is None else str(value)]
    return [" ".join([command, *parts])]
