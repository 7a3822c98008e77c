"""What a lab process does with code of the user's that it is brought: it runs it, and makes it known to its apps."""

from __future__ import annotations

import importlib
from operator import attrgetter

from twinnet.errors import BadValue
from twinnet.traffic import application, estimator
from twinnet.traffic.own_code import OwnCode, know, run_source

__all__ = ["bring_here"]

_KINDS = {
    "application": (application.Application, application.hand_to_the_core, "tn.Application"),
    "estimator": (estimator.Estimator, estimator.hand_to_the_core, "tn.Estimator"),
}
"""By the words of the lab protocol: the class that it must be derived from, and what makes it known to the core."""


def bring_here(kind: str, name: str, called: str, of: str, file: str, source: str | None) -> None:
    """Make the class `of`, which is an ``application`` or an ``estimator``, known to this process as `name`.

    Parameters
    ----------
    kind
        What it is.
    name
        The name by which apps name it.
    called
        What messages call it.
    of
        Where it is: ``module:Class``.
    file, source
        The file of the module and its text, which is run; without a text the module is imported.
    """
    if kind not in _KINDS:
        raise BadValue(f"there is no code of the kind {kind!r}", f"there are {', '.join(_KINDS)}")
    base, hand, example = _KINDS[kind]
    module, _, attribute = of.partition(":")
    found = run_source(source, file) if source is not None else importlib.import_module(module)
    made = attrgetter(attribute)(found)
    if not (isinstance(made, type) and issubclass(made, base)):
        raise BadValue(f"{called} is no {kind}", f"write: class Mine({example})")
    application.Application.time_passes = True
    know(name, OwnCode(called, file, "", lambda: made, of, source))
    hand(name)
