"""A study's own metrics: Python functions that are given the tables of a run, named in the study as ``module:name``.

The module is a file beside the study's, or one that is installed. Reading a study does not run it: that happens when a
value is asked for. Its source is kept with the results, and reports tell its hash.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import polars as pl

from twinnet.errors import BadValue, did_you_mean

__all__ = ["OWN_NAME", "OwnMetric", "RunData", "find_metric"]

Vector = npt.NDArray[np.float64]
OWN_NAME = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z_]\w*)")


@dataclass(frozen=True)
class RunData:
    """What a metric is given of one run.

    Attributes
    ----------
    flows, intervals, packets, tcp
        The tables, with the rows of the traffic that the measurement and its filters select.
    port_samples
        The table of ports; those that any measurement of the study names are in it.
    levels
        The level of each factor.
    window_s
        The window of time that the measurement or the statement asks for, in seconds from the start of traffic; `None`
        for the whole run. To keep to it is the metric's part.
    end_s
        When traffic of known duration ends.
    """

    flows: pl.DataFrame
    intervals: pl.DataFrame
    packets: pl.DataFrame
    tcp: pl.DataFrame
    port_samples: pl.DataFrame
    levels: Mapping[str, str]
    window_s: tuple[float, float] | None
    end_s: float


@dataclass(frozen=True)
class OwnMetric:
    """A metric's source.

    Attributes
    ----------
    name
        As the study names it: ``module:name``.
    file
        The file that it is in.
    source
        The text of that file.
    """

    name: str
    file: str
    source: str

    @property
    def sha256(self) -> str:
        """The hash of the source."""
        return hashlib.sha256(self.source.encode()).hexdigest()

    def values(self, data: RunData) -> Vector:
        """What the metric makes of `data`: one value, or many.

        Raises
        ------
        LookupError
            The metric raised it: nothing was measured.
        BadValue
            The metric failed, or what it gave is no number.
        """
        try:
            given: object = self._function()(data)
        except LookupError as error:
            if type(error) in (LookupError, KeyError, IndexError) and type(error) is not LookupError:
                raise self._failure(error) from None
            raise
        except Exception as error:
            raise self._failure(error) from None
        try:
            values = np.atleast_1d(np.asarray(given, dtype=np.float64))
        except (TypeError, ValueError):
            values = np.full(1, np.nan)
        if values.ndim != 1 or np.isnan(values).any():
            raise BadValue(
                f"the metric {self.name} gave {given!r:.100}",
                "return a number or a list of numbers; raise LookupError where nothing was measured",
            )
        return values

    def _function(self) -> Callable[[RunData], object]:
        module = _modules.get(self.sha256)
        if module is None:
            module = ModuleType(f"twinnet_own_{self.sha256[:12]}")
            module.__file__ = self.file
            # Classes with annotations look their module up.
            sys.modules[module.__name__] = module
            exec(compile(self.source, self.file, "exec"), module.__dict__)
            _modules[self.sha256] = module
        return cast("Callable[[RunData], object]", getattr(module, self.name.partition(":")[2]))

    def _failure(self, error: Exception) -> BadValue:
        lines = [one.lineno for one in traceback.extract_tb(error.__traceback__) if one.filename == self.file]
        where = f"{self.file}, line {lines[-1]}" if lines else self.file
        return BadValue(f"the metric {self.name} failed: {type(error).__name__}: {error} ({where})", "mend it")


_modules: dict[str, ModuleType] = {}
"""The modules that were run, by the hash of their source."""


def find_metric(name: str, beside: Mapping[str, str]) -> OwnMetric:
    """Find the source of the metric `name`, without running it.

    Parameters
    ----------
    name
        ``module:name``.
    beside
        The files beside the study's.

    Raises
    ------
    ValueError
        There is no such module, or it defines no such function; the message says where it was looked for.
    """
    found = OWN_NAME.fullmatch(name)
    if found is None:
        raise ValueError(f"{name!r} is no metric; write module:name, such as metrics:longest_gap")
    module, function = found.groups()
    file, source = _source(module, beside)
    try:
        tree = ast.parse(source, file)
    except SyntaxError as error:
        raise ValueError(f"{file}, line {error.lineno}: {error.msg}") from None
    known = [one.name for one in tree.body if isinstance(one, ast.FunctionDef | ast.ClassDef)]
    known += [
        target.id
        for one in tree.body
        if isinstance(one, ast.Assign)
        for target in one.targets
        if isinstance(target, ast.Name)
    ]
    if function not in known:
        raise ValueError(f"{file} defines no {function!r}; {did_you_mean(function, known, 'write a function')}")
    return OwnMetric(name, file, source)


def _source(module: str, beside: Mapping[str, str]) -> tuple[str, str]:
    missing = ""
    if "." not in module:
        try:
            return f"{module}.py", beside[f"{module}.py"]
        except ValueError as error:
            missing = f": {error}"
    try:
        spec: Any = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        spec = None
    if spec is None or not spec.origin or not str(spec.origin).endswith(".py"):
        raise ValueError(f"there is no module {module!r}, beside the study's file or installed{missing}")
    return str(spec.origin), Path(spec.origin).read_text(encoding="utf-8")
