"""Running cases against a target."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from twinnet_conformance.bench import Bench, Failure
from twinnet_conformance.case import Case
from twinnet_conformance.target import NotPossible, Target

__all__ = ["Named", "Outcome", "run_case", "run_cases"]

VERSIONS = {"1.0": 1, "1.3": 4}


class Named(Protocol):
    """What an outcome is about: a case of ours, or a test of another suite."""

    @property
    def version(self) -> str:
        """Version of OpenFlow."""
        ...

    @property
    def section(self) -> str:
        """Section of the specification."""
        ...

    @property
    def feature(self) -> str:
        """The row of the table that it counts for."""
        ...

    @property
    def name(self) -> str:
        """What is tried."""
        ...

    @property
    def identifier(self) -> str:
        """Its name in reports."""
        ...


@dataclass(frozen=True)
class Outcome:
    """What came of a case."""

    case: Named
    passed: bool | None
    """`None`: the switch could not be brought into the situation, so nothing is known."""
    why: str = ""


def run_case(case: Case, target: Target) -> Outcome:
    """Run one case on a switch in its first state."""
    target.reset()
    bench: Bench | None = None
    try:
        bench = Bench(target, VERSIONS[case.version])
        case.body(bench)
    except NotPossible as reason:
        return Outcome(case, None, str(reason))
    except Failure as failure:
        return Outcome(case, False, str(failure))
    except (IndexError, KeyError, ValueError, struct.error, OSError) as error:
        return Outcome(case, False, f"an answer that cannot be read: {type(error).__name__}: {error}")
    finally:
        if bench is not None:
            bench.close()
    return Outcome(case, True)


def run_cases(cases: Iterable[Case], target: Target) -> Iterator[Outcome]:
    """Run cases one after the other."""
    for case in cases:
        yield run_case(case, target)
