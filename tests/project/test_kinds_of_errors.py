"""Refusals of labs are of kinds that programs can catch."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest
from twinnet import _core, errors
from twinnet.errors import LabClosed, LabError, PartEnded, UnknownInLab

ROOT = Path(__file__).parents[2]


def test_every_refusal_of_the_core_and_of_python_has_a_kind() -> None:
    names = set(_core.error_names())
    in_python = re.compile(r'LabError\([^()]*?(?:\([^()]*\)[^()]*?)*,\s*"([A-Z][a-z]\w+)",?\s*\)')
    for path in ROOT.glob("python/twinnet/**/*.py"):
        names |= set(in_python.findall(path.read_text()))
    without = sorted(name for name in names if type(LabError("", "", name)) is LabError and name != "LabError")
    assert len(names) > 70
    assert not without, "name its kind in errors.py"


def test_a_refusal_is_caught_by_its_kind_and_keeps_its_name() -> None:
    with pytest.raises(UnknownInLab) as caught:
        raise LabError("there is no host h9", "see nodes", "UnknownHost")
    assert (caught.value.name, str(caught.value)) == ("UnknownHost", "there is no host h9 (see nodes)")


def test_an_unknown_name_is_a_refusal_without_a_kind() -> None:
    assert type(LabError("odd", "", "NeverHeardOf")) is LabError


def test_a_lab_that_has_ended_is_no_part_that_has() -> None:
    assert not isinstance(LabClosed("over"), PartEnded)


def test_a_refusal_travels_between_processes_with_its_kind() -> None:
    back = pickle.loads(pickle.dumps(LabError("busy", "wait", "HostBusy")))
    assert (type(back), back.name, back.remedy) == (errors.LimitReached, "HostBusy", "wait")
    # The same by the cluster's library for tracebacks, which makes most errors without calling their class.
    tblib = pytest.importorskip("tblib.pickling_support", reason="distributed is not installed")
    again, given, *_ = tblib.pickle_exception(LabError("busy", "wait", "HostBusy"))
    back = again(*given)
    assert (type(back), back.name, back.remedy) == (errors.LimitReached, "HostBusy", "wait")
