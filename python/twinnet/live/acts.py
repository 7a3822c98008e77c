"""What the page changes in its lab: checked as the prompt's lines are, kept in a record, and undone when asked."""

from __future__ import annotations

import re
import secrets
import shlex
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from twinnet.errors import BadValue
from twinnet.lab.flow_ports import missing_parts
from twinnet.lab.network_now import network_now, without_counters
from twinnet.live.captures import LIMIT, Captures
from twinnet.live.done import Done
from twinnet.live.faults import chosen_fault
from twinnet.live.fine import FineCurves
from twinnet.live.link_acts import LinkActs
from twinnet.live.seal import Seal
from twinnet.live.traffic_acts import TrafficActs
from twinnet.qos.queue_text import as_python, queue_from_text
from twinnet.units import PS_PER_SECOND, duration_ps, format_duration

if TYPE_CHECKING:
    from twinnet.lab.lab import Lab

__all__ = ["DOOR", "MOST_ACTS", "Act", "Acts"]

MOST_ACTS = 1000
DOOR = "the live page"
"""What the lab's record calls the page."""
_MOST_FLOW = 2000
_FIRST_PORT = 40_000
_SPEEDS = (0.01, 100)
_FORM = "see what the page itself sends"
_COOKIE = re.compile(r"(^|[,\s])cookie\s*=")


@dataclass(frozen=True)
class Act:
    """A change.

    Attributes
    ----------
    number
        Its number, from 1.
    at_s
        The lab's time after it, in seconds.
    lines
        What does the same at the prompt; none where the prompt has no words for it.
    python
        What does the same in Python.
    note
        What is to be known of its effect.
    undoes
        The number of the act that it has undone; ``None`` for a change of its own.
    kept
        Whether the lab's own record has it, if it has changed the lab.
    """

    number: int
    at_s: float
    lines: Sequence[str]
    python: Sequence[str]
    note: str
    undoes: int | None
    kept: bool = True


class Acts:
    """The changes that the page of `lab` makes. Any thread may use it.

    Attributes
    ----------
    lab
        The lab.
    captures
        What it captures.
    fine
        What it samples while curves are open.
    seal
        Whether something is broken that the page does not tell.
    """

    def __init__(self, lab: Lab) -> None:
        self.lab: Lab = lab
        self.captures: Captures = Captures(lab)
        self.fine: FineCurves = FineCurves(lab)
        self.seal: Seal = Seal(lab)
        self._links = LinkActs(lab, self.seal)
        self._traffic = TrafficActs(lab)
        self._lock = threading.Lock()
        self._acts: list[Act] = []
        self._undoing: dict[int, Callable[[], Done]] = {}
        self._going: tuple[int, float] | None = None
        # By its cookie an act finds the flow that it has added, and no other page has the same.
        self._first_cookie = secrets.randbits(20) << 12

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._acts)

    def record(self) -> list[dict[str, Any]]:
        """Return all acts, the first first: the fields of `Act`, ``commands`` for a terminal, and ``can_undo``."""
        return [
            asdict(act)
            | {
                "commands": [f"twinnet do {self.lab.name} {shlex.quote(line)}" for line in act.lines],
                "can_undo": act.number in self._undoing,
            }
            for act in list(self._acts)
        ]

    def do(self, asked: Mapping[str, Any]) -> Act:
        """Do what `asked` says, and return it.

        Parameters
        ----------
        asked
            ``act`` and what it needs: ``link`` (number), ``direction`` and ``set`` of a ``link``; ``port`` and
            ``queue`` of a ``queue``; ``switch`` and ``flow`` of ``add flow``; ``switch`` and ``match`` of ``delete
            flows``; ``what`` (``udp`` or ``tcp``), ``from``, ``to``, ``duration`` and, of UDP, ``rate`` of ``send``;
            ``app`` (number) of ``stop app`` and ``job`` (number) of ``stop program``, whoever started them;
            ``seed`` of ``seal`` (a fault that the seed chooses, and that ``answer`` names); ``duration`` and ``speed``
            of ``go on`` (the virtual clock, until ``stand still``; ``next event`` needs nothing); ``port`` of
            ``capture``, and ``capture`` (number) of ``stop capture`` and ``discard capture``; ``number`` of ``undo``.
            Values are text as at the prompt, but numbers and speeds.

        Raises
        ------
        BadValue, UnknownNode, LabError
            It cannot be done, and nothing has changed.
        """
        with self._lock:
            self.refuse_if_full()
            with self.lab.by_hand.through(DOOR) as telling:
                telling.what = f"half of {asked}, which failed"
                done, undoes = self._done(asked)
                act = Act(len(self._acts) + 1, self.lab.now(), done.lines, done.python, done.note, undoes)
                telling.is_told = asked["act"] in ("answer", "stop program")
                telling.at_s = act.at_s
                before = act.note if asked["act"] == "answer" else "" if undoes is None else f"change {undoes} undone"
                telling.what = ": ".join(filter(None, [before, "; ".join(act.lines or act.python)])) or act.note
            act = replace(act, kept=telling.is_kept)
            self._acts.append(act)
            if undoes is not None:
                del self._undoing[undoes]
            if done.undo is not None:
                self._undoing[act.number] = done.undo
            return act

    def note(self, text: str) -> None:
        """Put into the record what the page does in the lab and `do` does not: `text` says it."""
        with self._lock:
            self._acts.append(Act(len(self._acts) + 1, self.lab.now(), [], [], text, None))

    def refuse_if_full(self) -> None:
        """Raise `BadValue` when the record has all the acts that it may have."""
        if len(self._acts) >= MOST_ACTS:
            raise BadValue(f"this page has done {MOST_ACTS} acts", "save the network, and open another page")

    def go_on(self, elapsed_s: float) -> None:
        """Let the virtual clock go on for who has asked for it, by `elapsed_s` times the speed that was asked for."""
        going = self._going
        if going is None:
            return
        now_ps = self.lab.now_ps()
        next_ps = min(going[0], now_ps + round(elapsed_s * going[1] * PS_PER_SECOND))
        if next_ps > now_ps:
            self.lab.run_until(f"{next_ps} ps")
        if next_ps >= going[0] and self._going is going:
            self._going = None

    def settings(self, number: int) -> dict[str, Any]:
        """Return what link `number` is set to now, as :meth:`~twinnet.live.link_acts.LinkActs.settings` does."""
        told = self._links.settings(number)
        self.seal.refuse()
        return told

    def network_now(self) -> dict[str, Any]:
        """Return the network in the form of the lab protocol with its links, queues and flows as they are now. Flows
        that controllers have given are theirs to give again."""
        told = network_now(self.lab)
        self.seal.refuse()
        return told

    def _done(self, asked: Mapping[str, Any]) -> tuple[Done, int | None]:
        match asked:
            case {
                "act": "link",
                "link": int(number),
                "direction": "both" | "ab" | "ba" as direction,
                "set": dict(),
            }:
                return self._links.set_link(number, direction, dict(asked["set"])), None
            case {"act": "queue", "port": str(port), "queue": str(text)}:
                return self._links.set_queue(port, queue_from_text(text, f"queue {port} ")), None
            case {"act": "add flow", "switch": str(switch), "flow": str(flow)}:
                return self._add_flow(switch, flow), None
            case {"act": "delete flows", "switch": str(switch), "match": str(matching)}:
                return self._delete_flows(switch, matching), None
            case {"act": "send", "what": "udp" | "tcp" as what, "from": str(source), "to": str(sink), **rest}:
                return self._traffic.send(what, source, sink, rest, _FIRST_PORT + self.count), None
            case {"act": "stop app", "app": int(number)}:
                return self._traffic.stop_app(number), None
            case {"act": "stop program", "job": int(number)}:
                return self._traffic.stop_program(number), None
            case {"act": "go on", "duration": str(duration), "speed": int() | float() as speed}:
                return self._let_go_on(duration, speed), None
            case {"act": "next event"}:
                return self._next_event(), None
            case {"act": "stand still"}:
                self._going = None
                return Done([], [], None, "the clock stands"), None
            case {"act": "capture", "port": str(port)}:
                return self._capture(port), None
            case {"act": "stop capture", "capture": int(number)}:
                return Done([], ["capture.stop()"], None, f"the capture at {self.captures.stop(number)} ends"), None
            case {"act": "discard capture", "capture": int(number)}:
                return Done([], [], None, f"a capture at {self.captures.discard(number)} was discarded"), None
            case {"act": "seal", "seed": int(seed)}:
                return self._seal(seed), None
            case {"act": "answer"}:
                return self.seal.take_off()._replace(note="this was broken"), None
            case {"act": "undo", "number": int(number)}:
                if number not in self._undoing:
                    raise BadValue(f"act {number} cannot be undone", "it was undone already, or nothing was changed")
                return self._undoing[number](), number
            case _:
                raise BadValue("what is to be done is not understood", _FORM)

    def _capture(self, port: str) -> Done:
        self.captures.start(port)
        python = f'capture = lab.capture("{port}", "{port}.pcapng", limit="{LIMIT}")'
        return Done([f"capture {port} {port}.pcapng"], [python], None)

    def _add_flow(self, switch: str, flow: str) -> Done:
        flow = flow.strip()
        if not flow or "\n" in flow or len(flow) > _MOST_FLOW:
            raise BadValue("no flow was given", "write one line, for example: priority=10,ip,actions=flood")
        if _COOKIE.search(flow.partition("actions=")[0]):
            raise BadValue("the flow has a cookie", "leave it away: by its own the page finds the flow again")
        cookie = f"{self._first_cookie + len(self._acts):#x}"
        line = f"cookie={cookie},{flow}"
        on = self.lab.switch(switch)
        before = on.dump_flows()
        on.add_flow(line)
        replaced = _gone(before, on.dump_flows())
        note = missing_parts(self.lab, switch, flow)
        undo = partial(self._restore, switch, f"cookie={cookie}/-1", replaced)
        return Done([_flow_line(switch, "add", line)], [_flow_python(switch, "add_flow", line)], undo, note)

    def _delete_flows(self, switch: str, matching: str) -> Done:
        if "\n" in matching or len(matching) > _MOST_FLOW:
            raise BadValue("the match is not one line", "write for example: ip,nw_dst=10.0.0.4")
        matching = matching.strip()
        on = self.lab.switch(switch)
        before = on.dump_flows()
        deleted = on.delete_flows(matching)
        gone = _gone(before, on.dump_flows())
        undo = partial(self._restore, switch, None, gone) if gone else None
        note = f"{deleted} deleted"
        return Done([_flow_line(switch, "del", matching)], [_flow_python(switch, "delete_flows", matching)], undo, note)

    def _restore(self, switch: str, matching: str | None, flows: Sequence[str]) -> Done:
        """Delete what `matching` covers, and add `flows`, whose counters begin anew."""
        on = self.lab.switch(switch)
        lines: list[str] = []
        python: list[str] = []
        if matching is not None:
            on.delete_flows(matching)
            lines.append(_flow_line(switch, "del", matching))
            python.append(_flow_python(switch, "delete_flows", matching))
        if flows:
            on.add_flows(flows)
            lines += [_flow_line(switch, "add", flow) for flow in flows]
            python += [_flow_python(switch, "add_flow", flow) for flow in flows]
        note = "the counters of the flows that are back begin anew" if flows else ""
        return Done(lines, python, None, note)

    def _let_go_on(self, duration: str, speed: float) -> Done:
        if self.lab.clock != "virtual":
            raise BadValue("the wall clock goes on by itself", "pause what you see")
        if not _SPEEDS[0] <= speed <= _SPEEDS[1]:
            raise BadValue(f"the speed is {speed}; allowed are {_SPEEDS[0]} to {_SPEEDS[1]} times real time")
        until_ps = self.lab.now_ps() + duration_ps(duration, "duration")
        self._going = (until_ps, speed)
        self.fine.is_paused = False
        return Done([f"sleep {duration}"], [f'lab.run_until("{format_duration(until_ps)}")'], None)

    def _next_event(self) -> Done:
        """Let the virtual clock go on to the moment at which something happens next, and do all that does then."""
        if self.lab.clock != "virtual":
            raise BadValue("the wall clock goes on by itself", "pause what you see")
        self._going = None
        # Its moments would be events.
        self.fine.is_paused = True
        self.fine.end()
        before_ps = self.lab.now_ps()
        while (next_ps := self.lab.connection.events_next()["next_ps"]) is not None:
            # Also at this very moment something may be left to happen.
            self.lab.connection.advance(until_ps=next_ps)
            if not self.fine.was_left(next_ps):
                break
        if next_ps is None:
            return Done([], [], None, "nothing will happen by itself: start traffic")
        note = f"{format_duration(next_ps - before_ps)} later"
        return Done([], [f'lab.run_until("{format_duration(next_ps)}")'], None, note)

    def _seal(self, seed: int) -> Done:
        """Do a fault that nobody hears of."""
        self.seal.put_on(lambda: self._done(chosen_fault(self.lab, seed))[0])
        return Done([], [], None, f"seed {seed}: something is broken now; find it by looking")


def _gone(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """The flows that are in `before` and no longer in `after`, in their order."""
    left = Counter(map(without_counters, after))
    gone: list[str] = []
    for flow in map(without_counters, before):
        if left[flow]:
            left[flow] -= 1
        else:
            gone.append(flow)
    return gone


def _flow_line(switch: str, what: str, flow: str) -> str:
    try:
        plain = " ".join(shlex.split(flow)) == flow
    except ValueError:
        plain = False
    return f"flow {switch} {what} {flow if plain else shlex.quote(flow)}".rstrip()


def _flow_python(switch: str, method: str, flow: str) -> str:
    return f'lab.switch("{switch}").{method}({as_python(flow) if flow else ""})'
