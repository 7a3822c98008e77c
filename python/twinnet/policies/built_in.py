"""The policies that come with twinnet, by name; those of other packages; and those that a user names."""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Mapping
from typing import Any, cast

from twinnet.errors import BadPolicy, TwinnetError, did_you_mean
from twinnet.own_modules import brought_by_packages, load_own
from twinnet.policies.policy import FunctionPolicy, Policy, PolicyFunction

__all__ = ["ENTRY_POINTS", "built_in_policies", "find_policy", "known_policies"]

ENTRY_POINTS = "twinnet.policies"
"""The group of entry points under which other packages offer policies."""
_HOMES = {
    "basic-cbq": "class_based:BasicCbq",
    "source-cbq": "class_based:SourceCbq",
    "destination-cbq": "class_based:DestinationCbq",
    "source-destination-cbq": "class_based:SourceDestinationCbq",
    "strict-priority": "strict_priority:StrictPriority",
    "fair-queueing": "fair_queueing:FairQueueing",
    "diffserv": "differentiated_services:DifferentiatedServices",
    "rate-limit": "rate_limit:RateLimit",
    "qosflow": "chosen_disciplines:ChosenDisciplines",
    "openqos": "spare_capacity:SpareCapacity",
    "constrained-paths": "constrained_paths:ConstrainedPaths",
    "measuring": "measuring:Measuring",
    "best-effort": "best_effort:BestEffort",
}
_OF_ALL = ("installation", "ip_versions")
"""The settings that every policy takes."""
_FORM = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*\Z")


def built_in_policies() -> dict[str, type[Policy]]:
    """Return the classes of the policies that come with twinnet, by name."""
    return {name: _load(name, f"twinnet.policies.{home}") for name, home in _HOMES.items()}


def known_policies() -> dict[str, str]:
    """Return where each policy is that has a name: the built-in ones, and those of entry points."""
    offered = {point.name: point.value for point in brought_by_packages(ENTRY_POINTS)}
    return {name: f"twinnet.policies.{home}" for name, home in _HOMES.items()} | {
        name: value for name, value in offered.items() if name not in _HOMES
    }


def find_policy(text: str, settings: Mapping[str, Any] | None = None) -> Policy:
    """Return the policy that `text` names: a built-in one, one of another package, or ``module:function`` (or class).

    Python code is loaded only where `text` names a module or an installed package offers the name.

    Parameters
    ----------
    text
        Such as ``basic-cbq`` or ``my_policies:fair_web``.
    settings
        What the policy is made with, by keyword. Every policy takes ``installation`` (``proactive``, ``reactive``) and
        ``ip_versions`` (``[4]``, ``[6]`` or ``[4, 6]``): see :class:`twinnet.policies.Policy`.

    Raises
    ------
    BadPolicy
        When there is no such policy, or it does not take these settings.

    Examples
    --------
    >>> find_policy("basic-cbq").name
    'basic-cbq'
    """
    known = known_policies()
    if text in known:
        found = _load(text, known[text])
    elif _FORM.match(text):
        found = _load(text, text)
    else:
        raise BadPolicy(f"there is no policy {text!r}", did_you_mean(text, known, "name your own as module:function"))
    return _made(text, found, settings or {})


def _load(name: str, place: str) -> Any:
    try:
        return load_own(place)
    except (ImportError, AttributeError) as error:
        raise BadPolicy(
            f"the policy {name} cannot be loaded from {place}: {error}", "mend the name or the module"
        ) from None


def _made(text: str, found: Any, settings: Mapping[str, Any]) -> Policy:
    own = {key: value for key, value in settings.items() if key not in _OF_ALL}
    policy = _policy(text, found, own)
    if len(own) < len(settings):
        # A policy that a module has made is that module's, and is not changed.
        policy = copy.copy(policy)
        for key in settings.keys() & set(_OF_ALL):
            setattr(policy, key, settings[key])
    return policy


def _policy(text: str, found: Any, settings: Mapping[str, Any]) -> Policy:
    if isinstance(found, type) and issubclass(found, Policy):
        accepted = [p for p in inspect.signature(found).parameters if p != "self"]
        unknown = next((key for key in settings if key not in accepted), None)
        if unknown is not None:
            raise BadPolicy(
                f"the policy {text} has no setting {unknown!r}", did_you_mean(unknown, [*accepted, *_OF_ALL])
            )
        try:
            policy = found(**settings)
        except TwinnetError:
            raise
        except Exception as error:
            given = ", ".join(f"{key}={value!r}" for key, value in settings.items()) or "no settings"
            raise BadPolicy(
                f"the policy {text} cannot be made with {given} ({type(error).__name__}: {error})",
                f"`twinnet policy list` and its page say what it takes: {', '.join(accepted) or 'no settings'}",
            ) from error
        policy.name = policy.name or text
        return policy
    if settings:
        raise BadPolicy(f"the policy {text} takes no settings of its own", f"only {' and '.join(_OF_ALL)}")
    if isinstance(found, Policy):
        return found
    if callable(cast("object", found)):
        return FunctionPolicy(cast("PolicyFunction", found))
    raise BadPolicy(
        f"{text} is {found!r}, which is no policy", "name a Policy class, or a function of network and load"
    )
