"""What a lab asks of the kernel's scheduler, as the kernel tells it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import twinnet as tn
from labs_here import can_run_labs
from twinnet.lab.lab import Lab

pytestmark = pytest.mark.skipif(not can_run_labs(), reason="this machine permits no namespaces: see twinnet doctor")


def session_niceness(lab: Lab) -> int | None:
    """Of the lab's session among the others; ``None`` where the kernel does not group programs by session."""
    told = Path(f"/proc/{lab.pid}/autogroup")
    words = told.read_text().split() if told.exists() else []
    return int(words[-1]) if words else None


def thread(lab: Lab, name: str) -> Path:
    threads = Path(f"/proc/{lab.pid}/task").iterdir()
    return next(one for one in threads if (one / "comm").read_text().strip() == name)


def priority(lab: Lab, name: str) -> int:
    """The real-time priority of a thread; 0 if it has none."""
    return os.sched_getparam(int(thread(lab, name).name)).sched_priority


def niceness(lab: Lab, name: str) -> int:
    """Of a thread; proc(5): the 17th field behind the name."""
    return int((thread(lab, name) / "stat").read_text().rpartition(")")[2].split()[16])


def test_a_lab_with_moments_to_keep_goes_before_other_sessions_and_its_apps_before_its_programs() -> None:
    with tn.templates.single(2, rate="10 Mbit").emulate() as lab:
        # Who may not have real-time scheduling may not have this either.
        granted = lab.started["realtime"] and Path(f"/proc/{lab.pid}").stat().st_uid == 0
        assert session_niceness(lab) in ((-10, None) if granted else (0, None))
        assert niceness(lab, "agent") == (-10 if granted else 0)


def test_the_apps_are_real_time_behind_the_fabric_where_there_are_several_processors() -> None:
    with tn.templates.single(2, rate="10 Mbit").emulate() as lab:
        granted = lab.started["realtime"] and Path(f"/proc/{lab.pid}").stat().st_uid == 0
        several = len(os.sched_getaffinity(0)) > 1
        assert priority(lab, "fabric") == (2 if granted else 0)
        assert priority(lab, "agent") == (1 if granted and several else 0)


def test_a_lab_without_real_time_scheduling_is_a_session_like_others() -> None:
    with tn.templates.single(2, rate="10 Mbit").emulate(realtime="off") as lab:
        assert session_niceness(lab) in (0, None)
        assert niceness(lab, "agent") == 0
        assert priority(lab, "fabric") == priority(lab, "agent") == 0
