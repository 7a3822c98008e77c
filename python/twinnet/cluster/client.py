"""The places of a cluster for one study, by the address that a user names."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from twinnet.cluster.address import Address, parse_address
from twinnet.cluster.certificates import Certificates, read_certificates
from twinnet.cluster.engine import distributed
from twinnet.cluster.places import ClusterPlaces
from twinnet.errors import BadValue
from twinnet.study.machine import machine_of
from twinnet.study.plan import plan_study
from twinnet.study.resolution import Study
from twinnet.study.store import ResultStore

__all__ = ["door", "places_for"]


def door(
    at: str, keys: Path | None = None, without_tls: bool = False, listening: bool = False
) -> tuple[Address, Certificates | None]:
    """Return the address `at` and the certificates for it; ``None`` without TLS.

    Raises
    ------
    BadValue
        Certificates are given for an address without TLS.
    """
    address = parse_address(at, without_tls, listening)
    distributed()
    if not address.encrypted:
        if keys is not None:
            raise BadValue("--keys is given with --without-tls, which uses none", "leave out one of them")
        return address, None
    return address, read_certificates(keys)


def places_for(
    on: str,
    keys: Path | None,
    without_tls: bool,
    study: Study,
    store: ResultStore,
    interface: str = "auto",
    fabric_threads: int | Literal["auto"] | None = None,
) -> ClusterPlaces:
    """Return the slots of the workers at the scheduler `on`, for the runs of `study` that `store` lacks. On the wall
    clock the repetitions that are begun stay on the machine that has made the first of their runs."""
    address, certificates = door(on, keys, without_tls)
    placed: dict[int, str] = {}
    if study.specification.clock == "wall":
        for run in plan_study(study):
            stored = store.find(run)
            if stored is not None:
                placed.setdefault(run.repetition, machine_of(stored.record))
    return ClusterPlaces(address, certificates, study, interface, fabric_threads, placed)
