"""An environment whose episodes are lives of a lab."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal, TypeVar

import gymnasium

from twinnet.errors import BadValue
from twinnet.lab import Lab
from twinnet.network import Network
from twinnet.units import Duration, duration_ps, format_duration

__all__ = ["LabEnv"]

Observation = TypeVar("Observation")
Action = TypeVar("Action")


class LabEnv(gymnasium.Env[Observation, Action], ABC):
    """A Gymnasium environment over a lab; write a subclass of it.

    Set `observation_space` and `action_space` in your ``__init__``, after that of this class, and write
    :meth:`network`, :meth:`begin`, :meth:`act` and :meth:`observe`. Each :meth:`reset` builds a new lab with a seed
    drawn from `np_random`, so that a seed given to :meth:`reset` repeats an episode; on the virtual clock exactly, on
    the wall clock as far as real hosts repeat themselves. Draw all that differs between episodes from `np_random`.

    Parameters
    ----------
    step
        How long the lab goes on after each action.
    duration
        After which time of steps an episode is truncated; at least `step`.
    warm_up
        How long the lab goes on before the first observation.
    clock
        ``virtual`` or ``wall``.

    Raises
    ------
    BadValue
        When the times or the clock are not allowed.

    Attributes
    ----------
    lab
        The lab of this episode; ``None`` before the first :meth:`reset` and after :meth:`close`.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - as Gymnasium declares it
    clocks: ClassVar[tuple[str, ...]] = ("virtual", "wall")

    def __init__(
        self,
        step: Duration = "100 ms",
        duration: Duration = "20 s",
        warm_up: Duration = "0 s",
        clock: Literal["virtual", "wall"] = "virtual",
    ) -> None:
        if clock not in self.clocks:
            raise BadValue(f"the clock is {clock!r}", f"write {' or '.join(map(repr, self.clocks))}")
        self.clock: Literal["virtual", "wall"] = clock
        self.step_ps: int = duration_ps(step, "step")
        self._duration_ps = duration_ps(duration, "duration")
        self._warm_up_ps = duration_ps(warm_up, "warm_up")
        if not 0 < self.step_ps <= self._duration_ps:
            raise BadValue(
                f"the step is {format_duration(self.step_ps)} in an episode of {format_duration(self._duration_ps)}",
                "give a step that is longer than none and not longer than the episode",
            )
        self.lab: Lab | None = None
        self._next_ps = self._end_ps = 0

    @abstractmethod
    def network(self) -> Network:
        """Return the network of a new episode."""

    @abstractmethod
    def begin(self, lab: Lab) -> None:
        """Start the traffic and the meters of a new episode in `lab`, whose time is 0."""

    @abstractmethod
    def act(self, lab: Lab, action: Action) -> None:
        """Do `action` in `lab`; no time passes meanwhile on the virtual clock."""

    @abstractmethod
    def observe(self, lab: Lab) -> tuple[Observation, float]:
        """Return the observation and the reward of the step that is over; at :meth:`reset` the reward is left out."""

    def ended(self, lab: Lab) -> bool:
        """Return true when the episode came to its natural end (`terminated`); without a definition of yours it never
        does."""
        return False

    def info(self, lab: Lab) -> dict[str, Any]:
        """Return what else there is to tell: ``time_s``, the lab's time in seconds, on the virtual clock."""
        return {"time_s": self._next_ps / 1e12} if self.clock == "virtual" else {"time_s": lab.now()}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """End the lab and begin an episode in a new one.

        Parameters
        ----------
        seed
            Of `np_random`, and so of the lab; ``None``: go on drawing.
        options
            Not used here; a subclass may.

        Returns
        -------
        tuple
            The first observation, and what :meth:`info` returns.
        """
        super().reset(seed=seed, options=options)
        self.close()
        net = self.network()
        lab_seed = int(self.np_random.integers(2**32))
        lab = net.simulate(seed=lab_seed) if self.clock == "virtual" else net.emulate()
        self.lab = lab.open()
        try:
            self.begin(lab)
            self._next_ps = lab.now_ps() if self.clock == "wall" else 0
            self._let_pass(lab, self._warm_up_ps)
            self._end_ps = self._next_ps + self._duration_ps
            observation, _ = self.observe(lab)
        except BaseException:
            self.close()
            raise
        return observation, self.info(lab)

    def step(self, action: Action) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Do `action`, let the lab go on for a step, and observe.

        Returns
        -------
        tuple
            Observation, reward, `terminated` (:meth:`ended`), `truncated` (the duration is over), and :meth:`info`.

        Raises
        ------
        BadValue
            When the episode has not begun or is over, or when `action` is not in `action_space`.
        """
        lab = self.lab
        if lab is None or self._next_ps >= self._end_ps:
            raise BadValue("no episode is going on", "call reset() first, and after terminated or truncated")
        if not self.action_space.contains(action):
            raise BadValue(f"the action {action!r} is not in {self.action_space}", "see action_space.sample()")
        self.act(lab, action)
        self._let_pass(lab, self.step_ps)
        observation, reward = self.observe(lab)
        terminated, truncated = self.ended(lab), self._next_ps >= self._end_ps
        if terminated:
            self._end_ps = self._next_ps
        return observation, float(reward), terminated, truncated, self.info(lab)

    def close(self) -> None:
        """End the lab."""
        lab, self.lab = self.lab, None
        if lab is not None:
            lab.stop()

    def _let_pass(self, lab: Lab, length_ps: int) -> None:
        self._next_ps += length_ps
        lab.run_until(format_duration(self._next_ps))
