"""The record of a run's QoS policy: its place, its rules, and whether classes kept to their queues."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from twinnet.policies import misplaced_traffic

if TYPE_CHECKING:
    from twinnet.lab import Lab
    from twinnet.policies import CompiledPolicy

__all__ = ["policy_record"]


def policy_record(lab: Lab, policy: CompiledPolicy | None) -> dict[str, Any]:
    """Return the record of `policy` for the run, empty without one; a warning is logged when a queue held other traffic
    than its class's."""
    if policy is None:
        return {}
    misplaced = misplaced_traffic(lab, policy)
    for one in misplaced:
        logging.getLogger("twinnet.policies").warning("%s", one)
    ports: dict[str, Any] = {}
    enforcing = {one.port.name for one in policy.ports}
    for port in lab.ports():
        if port["port"] in enforcing:
            ports[port["port"]] = port.get("classes", [])
    return {
        "policy": {
            "name": policy.policy.name,
            "enforced_at": policy.enforcement.text,
            "rules": policy.rule_count,
            "classes": {str(number): one.name for number, one in policy.classes.items()},
            "misplaced": [str(one) for one in misplaced],
            "queues": ports,
        }
    }
