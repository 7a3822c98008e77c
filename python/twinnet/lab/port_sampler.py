"""Samplers of ports: what a running lab counts for you."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinnet.results.port_samples import PortSamples

if TYPE_CHECKING:
    from twinnet.lab.lab import Lab

__all__ = ["PortSampler"]


class PortSampler:
    """A sampler of ports in a lab, made by :meth:`twinnet.Lab.sample`. Leaving a ``with`` block stops it."""

    def __init__(self, lab: Lab, number: int) -> None:
        self._lab = lab
        self._last: PortSamples | None = None
        self.number = number

    def __repr__(self) -> str:
        return f"<PortSampler {self.number}, {'running' if self._last is None else self._last}>"

    def read(self) -> PortSamples:
        """Return what was counted so far, or until it was stopped."""
        if self._last is not None:
            return self._last
        return PortSamples.from_spec(self._lab.connection.samples_read(sampler=self.number))

    def stop(self) -> PortSamples:
        """Count no more, and return what was counted; the lab's memory of it is given back."""
        if self._last is None:
            self._last = PortSamples.from_spec(self._lab.connection.samples_stop(sampler=self.number))
        return self._last

    def __enter__(self) -> PortSampler:
        """Return the sampler."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it."""
        if self._lab.running:
            self.stop()
