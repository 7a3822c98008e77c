"""The levels of a study that this machine can run with real programs: those that need what it lacks are left out."""

from __future__ import annotations

from twinnet import _core
from twinnet.errors import NotAvailable
from twinnet.programs.processor_limit import why_no_limit
from twinnet.programs.transfer import installed
from twinnet.study.resolution import Study, with_changes

__all__ = ["with_levels_here"]


def with_levels_here(study: Study) -> tuple[Study, str]:
    """Return `study` without the levels that need what this machine lacks, and a sentence that says why.

    Raises
    ------
    NotAvailable
        No level of a factor is left.
    """
    run = study.specification.levels_run()
    lacking: dict[str, str] = {}
    changes: dict[str, str] = {}
    for factor, levels in run.items():
        known = study.specification.factors[factor].levels
        missing = {name: why for name in levels if (why := _why_not(known[name].needs)) is not None}
        if not missing:
            continue
        left = [name for name in levels if name not in missing]
        if not left:
            why = "; ".join(f"{name}: {reason}" for name, reason in missing.items())
            raise NotAvailable(f"no level of {factor} can be run here ({why})", "choose others with --set levels.…")
        changes[f"levels.{factor}"] = " ".join(left)
        lacking |= missing
    if not changes:
        return study, ""
    reasons = "; ".join(f"{name}: {why}" for name, why in lacking.items())
    return with_changes(study, changes), f"Levels left out ({reasons})."


def _why_not(needs: list[str]) -> str | None:
    """Return why a level with these `needs` cannot be run here; `None` if it can."""
    for one in needs:
        if one == "cgroups":
            if (why := why_no_limit()) is not None:
                return why
        elif one in ("open-vswitch", "open-vswitch-kernel"):
            if not installed("ovs-vswitchd"):
                return "Open vSwitch is not installed"
            if one == "open-vswitch-kernel" and not _core.kernel_has_open_vswitch():
                return "the kernel has no Open vSwitch datapath"
        elif not installed(one):
            return f"{one} is not installed"
    return None
