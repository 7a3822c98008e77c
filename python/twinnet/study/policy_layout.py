"""The derived parts of a study with a policy, written beside its results: hosts and their switches, who asks whom, and
the queues of every enforcing port, as CSV and JSON, with a picture of the network."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinnet.drawing import picture_of
from twinnet.drawing.picture import MOST_NODES
from twinnet.policies import CompiledPolicy, Load
from twinnet.policies.paths import Paths
from twinnet.policies.schedulers import queue_numbers
from twinnet.policies.traffic_class import amount_bps
from twinnet.qos.queue import Queue
from twinnet.study.network_of import MOST_COMBINATIONS, network_of
from twinnet.study.policy_of import compiled_policy, load_of
from twinnet.study.store import StoreError

if TYPE_CHECKING:
    from twinnet.network import Network
    from twinnet.study.resolution import Study

__all__ = ["host_rows", "queue_rows", "write_policy_layouts"]

_Row = Mapping[str, str | int | None]


def write_policy_layouts(study: Study, folder: Path) -> list[Path]:
    """Write `hosts.csv`, `queues.csv`, `layout.json` and `network.svg` into a folder below `folder` for each
    combination of levels that is run; nothing for a study without a policy. Return what was written.

    Raises
    ------
    StoreError
        The folder cannot be written to.
    """
    factors = study.specification.levels_run()
    written: list[Path] = []
    for number, chosen in enumerate(product(*factors.values())):
        levels = dict(zip(factors, chosen, strict=True))
        specification = study.at(levels)
        if specification.policy is None or number >= MOST_COMBINATIONS:
            continue
        network = network_of(specification, levels, 1)
        compiled = compiled_policy(specification, network)
        if compiled is None:
            continue
        try:
            written += _write(folder / ("-".join(chosen) or "all"), network, load_of(specification), compiled)
        except OSError as error:
            raise StoreError(
                f"the layout cannot be written to {folder}: {error.strerror or error}", "choose --out"
            ) from error
    return written


def host_rows(network: Network, load: Load) -> list[dict[str, str | int | None]]:
    """Return a row for each host: its addresses, its switch and port, its part in the load, and the servers that it
    asks for each application (`http: v1; video: v2`)."""
    places = Paths(network).of_host
    clients, servers = set(load.clients), set(load.servers)
    asked: dict[str, list[str]] = {}
    for one in load.demands:
        asked.setdefault(one.client, []).append(f"{one.application}: {one.server}")
    rows: list[dict[str, str | int | None]] = []
    for host in network.hosts:
        place = places.get(host.name)
        roles = [role for role, names in (("client", clients), ("server", servers)) if host.name in names]
        rows.append(
            {
                "host": host.name,
                "role": " and ".join(roles),
                "ip": host.ip,
                "ip6": host.ip6,
                "mac": next((port.mac for port in host.ports if port.mac is not None), None),
                "switch": place.switch if place is not None else None,
                "switch_port": place.port if place is not None else None,
                "asks": "; ".join(asked.get(host.name, [])),
            }
        )
    return rows


def queue_rows(network: Network, compiled: CompiledPolicy) -> list[dict[str, str | int | None]]:
    """Return a row for each queue of each enforcing port: its class, and its least and greatest rate in bit/s."""
    peers = {end.name: far.node for link in network.links for end, far in ((link.a, link.b), (link.b, link.a))}
    rows: list[dict[str, str | int | None]] = []
    for one in compiled.ports:
        at = compiled.switches[one.switch]
        queue = at.queues.get(one.port.number or 0)
        for number in _numbers(queue, at.classes) if queue is not None else ():
            belongs = compiled.classes[number]
            low = None if belongs.minimum is None else amount_bps(belongs.minimum, one.rate_bps, "the minimum")
            high = None if belongs.maximum is None else amount_bps(belongs.maximum, one.rate_bps, "the maximum")
            rows.append(
                {
                    "port": one.port.name,
                    "switch": one.switch,
                    "to": peers.get(one.port.name),
                    "scheduler_bps": one.rate_bps,
                    "queue": number,
                    "class": belongs.name,
                    "minimum_bps": low,
                    "maximum_bps": high,
                    "priority": belongs.priority,
                    "dscp": belongs.dscp,
                }
            )
    return rows


def _numbers(queue: Queue, at_switch: frozenset[int]) -> list[int]:
    """The classes that have a queue in `queue`: those of the switch that it has a number for, or all of them."""
    numbers = queue_numbers(queue)
    return sorted(at_switch if numbers is None else at_switch & set(numbers))


def _write(folder: Path, network: Network, load: Load, compiled: CompiledPolicy) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    hosts, queues = host_rows(network, load), queue_rows(network, compiled)
    written = [_csv(folder / "hosts.csv", hosts), _csv(folder / "queues.csv", queues)]
    layout: dict[str, Any] = {
        "policy": compiled.policy.name,
        "enforced_at": compiled.enforcement.text,
        "rules": compiled.rule_count,
        "classes": {
            one.name: {
                "queue": number,
                "matches": [{key: value for key, value in vars(match).items() if value} for match in one.matches],
            }
            for number, one in compiled.classes.items()
        },
        "hosts": hosts,
        "queues": queues,
    }
    text = folder / "layout.json"
    text.write_text(json.dumps(layout, indent=1) + "\n", encoding="utf-8")
    written.append(text)
    if len(network.nodes) <= MOST_NODES:
        written.append(picture_of(network).save(folder / "network.svg"))
    return written


def _csv(path: Path, rows: Sequence[_Row]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]) if rows else [])
        writer.writeheader()
        writer.writerows(rows)
    return path
