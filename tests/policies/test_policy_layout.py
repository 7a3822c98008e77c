"""What a study with a policy writes about hosts and queues beside its results."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from twinnet.study.policy_layout import write_policy_layouts
from twinnet.study.resolution import load_study

PUBLISHED = {
    "levels.profile": " ".join(
        f"{policy}-{place}"
        for policy in ("basic", "source", "destination", "source-destination")
        for place in ("leaf", "core")
    )
}
"""The published profiles."""


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_each_profile_has_its_hosts_queues_and_picture(tmp_path: Path) -> None:
    written = write_policy_layouts(load_study("qos-class-profiles", PUBLISHED, "tiny"), tmp_path)
    assert len(list(tmp_path.iterdir())) == 8 and len(written) == 8 * 4
    hosts = {row["host"]: row for row in rows_of(tmp_path / "basic-core" / "hosts.csv")}
    assert len(hosts) == 12
    assert (hosts["v6"]["ip"], hosts["v6"]["switch"], hosts["v6"]["role"]) == ("10.0.1.106", "edge", "server")
    first = hosts["h1"]
    assert (first["ip"], first["switch"], first["role"]) == ("10.0.0.1", "l1s1", "client")
    assert first["asks"].startswith("http: v1; video: v2; ping: v1")
    assert "<svg" in (tmp_path / "basic-core" / "network.svg").read_text(encoding="utf-8")


def test_the_queues_are_those_of_every_enforcing_port(tmp_path: Path) -> None:
    write_policy_layouts(load_study("qos-class-profiles", PUBLISHED, "tiny"), tmp_path)
    core = rows_of(tmp_path / "basic-core" / "queues.csv")
    # The core has a port to the servers and two to the clients, each with three queues of a third of 10 Mbit/s.
    assert [(row["port"], row["to"], row["queue"], row["class"]) for row in core[:3]] == [
        ("core-eth1", "edge", "0", "rest"),
        ("core-eth1", "edge", "1", "http"),
        ("core-eth1", "edge", "2", "video"),
    ]
    assert len(core) == 9
    assert {(row["minimum_bps"], row["maximum_bps"]) for row in core} == {("3300000", "3300000")}
    layout = json.loads((tmp_path / "source-leaf" / "layout.json").read_text(encoding="utf-8"))
    assert layout["enforced_at"] == "leaf" and {row["switch"] for row in layout["queues"]} == {"l1s1", "l1s2"}
    # Groups of sources are of clients, as published (section 3.1).
    assert layout["classes"]["clients-1"]["matches"] == [{"source": ["h1", "h2"]}]


def test_a_study_without_a_policy_writes_nothing(tmp_path: Path) -> None:
    assert write_policy_layouts(load_study("tcp-udp-queues", {}, None), tmp_path) == []
    assert list(tmp_path.iterdir()) == []
