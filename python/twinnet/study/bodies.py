"""The three bodies of a study whose traffic programs or built-in apps make: model hosts on the virtual clock, and real
hosts on the virtual clock and on the wall clock.

Real hosts run the same programs over Linux on both clocks, so what differs between the clocks belongs to the machine.
What differs between models and real hosts on the virtual clock belongs to the model: no machine has a part in it.
"""

from __future__ import annotations

from twinnet.errors import BadValue
from twinnet.study.resolution import Study, with_changes
from twinnet.study.specification import Parameter
from twinnet.study.virtual_hosts import has_programs

__all__ = ["of_models", "with_programs"]

_CHOICE = {"apps", "programs"}


def with_programs(study: Study) -> Study:
    """Return `study` with programs for its traffic.

    Raises
    ------
    BadValue
        It has none, and no parameter by which they are chosen.
    """
    if has_programs(study.specification):
        return study
    chosen = dict.fromkeys(_choosers(study), "programs")
    if not chosen:
        raise BadValue(
            f"the study {study.name} has no parameter that chooses between apps and programs",
            "leave --models away; or declare one in the study: tools: {default: apps, one_of: [apps, programs]}",
        )
    return with_changes(study, chosen)


def of_models(study: Study) -> Study | None:
    """Return `study`, which has programs, with built-in apps in model hosts on the virtual clock; ``None`` when it has
    no programs, or such that apps cannot stand for."""
    if not has_programs(study.specification):
        return None
    chosen = {name: "apps" for name in _choosers(study) if study.parameters[name].base == "programs"}
    models = with_changes(study, {**chosen, "clock": "virtual"})
    return None if has_programs(models.specification) else models


def _choosers(study: Study) -> list[str]:
    parameters = study.specification.parameters.items()
    return [name for name, one in parameters if isinstance(one, Parameter) and set(one.one_of or ()) == _CHOICE]
