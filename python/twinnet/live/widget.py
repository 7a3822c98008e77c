"""A running lab in the cell of a notebook: the live page, which hears of the lab from the notebook's own kernel.

So it needs no address: it works where the notebook's server is on another machine, too. What needs requests of its own
(flow tables, following a packet, changes) has the page of :meth:`twinnet.Lab.live` alone.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any

import traitlets
from anywidget import AnyWidget

from twinnet.errors import LabClosed, TwinnetError
from twinnet.lab.running_labs import attach
from twinnet.live.page_text import page_with, put, read_page_file, script_of
from twinnet.live.watch import PATIENCE_S, LabWatch, network_record
from twinnet.shown_text import shown_json

__all__ = ["lab_widget"]

_LOOK_S = 0.25


def lab_widget(lab: str, height: int) -> AnyWidget:
    """Return the page. It looks at the lab from when it is displayed first until the lab ends or the widget is closed.

    Parameters
    ----------
    lab
        The name of a running lab of this user.
    height
        In pixels of the screen.

    Raises
    ------
    BadValue
        The network has so many nodes that they could not be told apart.
    """
    return _LabWidget(lab, height)


class _LabWidget(AnyWidget):
    _esm = read_page_file("widget.js")
    page = traitlets.Unicode().tag(sync=True)
    height = traitlets.Int().tag(sync=True)

    def __init__(self, lab: str, height: int) -> None:
        # A connection of its own: the notebook goes on to use the one that it has.
        self._lab = attach(lab, PATIENCE_S)
        network = network_record(self._lab) | {"control": False, "clock": self._lab.clock}
        page = page_with("network", shown_json(network), f'<script type="module">\n{script_of("fed")}</script>')
        page = put(
            page,
            ('<link rel="icon" href="icon.svg">', ""),
            ('<link rel="stylesheet" href="page.css">', f"<style>\n{read_page_file('page.css')}</style>"),
        )
        self._closed = threading.Event()
        self._looking: threading.Thread | None = None
        super().__init__(page=page, height=height)
        self.on_msg(self._displayed)  # pyright: ignore[reportUnknownMemberType]

    def _displayed(self, _widget: AnyWidget, message: Mapping[str, Any], _buffers: object) -> None:
        """A frame is ready to be told. All frames are told the same."""
        if message.get("ready") and self._looking is None:
            self._looking = threading.Thread(target=self._look, name="twinnet-widget", daemon=True)
            self._looking.start()

    def _look(self) -> None:
        watch = LabWatch(self._lab)
        try:
            while not self._closed.wait(_LOOK_S) and self._lab.running:
                try:
                    tick = watch.look()
                except TimeoutError:
                    watch.rest()
                    self._tell({"news": "The lab does not answer: what you see is from before."})
                    continue
                if tick is not None:
                    self._tell({"tick": tick})
                elif watch.stands:
                    self._tell({"stands": True})
        except LabClosed:
            pass
        except TwinnetError as error:
            self._tell({"news": str(error)})
            return
        if not self._closed.is_set():
            self._tell({"news": "The lab has ended: what you see is its last moment."})

    def _tell(self, message: Mapping[str, Any]) -> None:
        self.send(json.loads(shown_json(message)))  # pyright: ignore[reportUnknownMemberType]

    def close(self) -> None:
        """Close it; the lab goes on."""
        self._closed.set()
        super().close()
