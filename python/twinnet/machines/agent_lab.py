"""The lab of one machine, asked through its agent: its part of a network, or the machine itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from twinnet.errors import LabClosed
from twinnet.lab_process.connection import AnswersAtOnce
from twinnet.lab_process.pending_reply import Json, JsonObject
from twinnet.lab_process.replies import AppReply, AppRow
from twinnet.machines.session import AgentSession

__all__ = ["MachineItself", "PartLab"]


class _AgentLab(AnswersAtOnce):
    def __init__(self, session: AgentSession) -> None:
        self._session = session

    @property
    def closed(self) -> bool:
        """True if the agent has gone."""
        return self._session.ended

    def wait_closed(self, timeout_s: float) -> bool:
        """Wait up to `timeout_s` seconds; return whether the agent has gone by then."""
        return self._session.wait_ended(timeout_s)

    def close(self) -> None:
        """End the agent."""
        self._session.end()


class PartLab(_AgentLab):
    """The part of a network on the machine of `session`.

    Parameters
    ----------
    session
        The agent.
    failure
        Returns why all parts were ended, when they were.
    """

    def __init__(self, session: AgentSession, failure: Callable[[], LabClosed | None]) -> None:
        super().__init__(session)
        self._failure = failure

    def answer(self, do: str, fields: JsonObject, descriptors: Sequence[int] = ()) -> Json:
        """Return the part's answer; descriptors do not travel."""
        try:
            return self._session.request("part.ask", request=do, fields=fields)
        except LabClosed:
            # All were ended because one had gone: that is the reason to tell.
            if (failure := self._failure()) is not None:
                raise failure from None
            raise


class MachineItself(_AgentLab):
    """The machine of an agent, with its own sockets and programs; its only host is itself."""

    def answer(self, do: str, fields: JsonObject, descriptors: Sequence[int] = ()) -> Json:
        """Return the machine's answer; descriptors do not travel."""
        if do.startswith("app."):
            return self._session.request(do, **fields)
        return self._session.request("program.ask", request=do, fields=fields)

    def app_start(self, *, host: str, app: JsonObject, at_ps: int | None = None, seed: int | None = None) -> AppReply:
        """Start an app on the machine."""
        return self._session.request("app.start", app=app, at_ps=at_ps, seed=seed)

    def app_report(self, *, app: int | None = None, apps: Sequence[int] | None = None) -> list[AppRow]:
        """Report what apps have counted; their host is the machine."""
        name = str(self._session.machine.name)
        return [{**row, "host": name} for row in super().app_report(app=app, apps=apps)]
