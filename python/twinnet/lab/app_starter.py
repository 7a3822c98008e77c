"""The apps that one client of a lab starts: their flow numbers, their seeds, and the receivers that they share."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from typing import TYPE_CHECKING, Any

from twinnet.errors import BadValue
from twinnet.lab.brought_along import bring_along
from twinnet.traffic.app import App

if TYPE_CHECKING:
    from twinnet.lab.lab import Lab

__all__ = ["AppStarter"]


class AppStarter:
    """Starts the apps of one lab, of which this process is the `owner` or one of several clients."""

    def __init__(self, owner: bool) -> None:
        self._owner = owner
        self._flows = 0
        self._receivers: dict[tuple[str, str, int], tuple[App, int]] = {}
        self._equals: Counter[str] = Counter()
        self._brought: set[str] = set()

    def flow_number(self, app: App) -> int | None:
        """Return the number that reports give the flow of `app`: its own, or the next; ``None``: it has none."""
        if "flow" not in app.fields:
            return None
        given = app.fields["flow"]
        if given is not None:
            return int(given)
        self._flows += 1
        # Several clients of one lab choose numbers at once: the process number keeps them apart.
        return (os.getpid() & 0xFFFF) << 16 | self._flows if not self._owner else self._flows

    def start(self, lab: Lab, app: App, flow: int | None, at_ps: int | None, name: str | None = None) -> int:
        """Start `app` and return its number; its randomness follows from `name`, or without one from what it is."""
        lab.layout.node(app.host, "host")
        fields = dict(app.fields)
        if "to" in fields:
            fields["to"] = lab.layout.address(str(fields["to"]))
        if "flow" in fields:
            fields["flow"] = flow
        bring_along(fields, lab.connection, lab.clock, lab.clock == "virtual" and self._owner, self._brought)
        wanted = {"kind": app.kind, **fields}
        seed = self._seed_of(lab.layout.spec.get("seed", 0), app, flow, name)
        return lab.connection.app_start(host=app.host, app=wanted, at_ps=at_ps, seed=seed)["app"]

    def start_receiver(self, lab: Lab, app: App) -> int:
        """Start the sink or server `app` unless an equal one runs, and return its number."""
        key = (app.host, app.kind, int(app.fields["port"]))
        known = self._receivers.get(key)
        if known is not None:
            if (known[0].kind, known[0].fields) != (app.kind, app.fields):
                raise BadValue(
                    f"{app.host} has a {app.kind} on port {key[2]} already, with other settings", "choose another port"
                )
            return known[1]
        number = self.start(lab, app, None, None)
        self._receivers[key] = (app, number)
        return number

    def _seed_of(self, seed: int, app: App, flow: int | None, name: str | None) -> int:
        """Return the seed of `app` in a network of this `seed`: another in one of another seed, so that repetitions
        differ; the same whatever other apps there are."""
        stable: list[Any] = [app.kind, name] if name is not None else [
            app.host, app.kind, app.fields.get("to"), app.fields.get("port")
        ]  # fmt: skip
        if not self._owner:
            # Other clients of the lab may have started equal ones, and their numbers are apart.
            stable.append(flow)
        key = json.dumps(stable)
        equal = self._equals[key]
        self._equals[key] += 1
        text = json.dumps([seed, *stable, equal])
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
