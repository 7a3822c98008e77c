"""The image and the limits of a host: what is described, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
import twinnet as tn
from twinnet.network.topology_file import parse_network


def test_a_file_describes_the_image_of_a_host_and_what_belongs_to_it() -> None:
    net = parse_network(
        "hosts: {h1: {image: i.tar, volumes: ['a:/a:ro', '~/b:/b'], environment: {N: 1}, command: sleep 9}}"
    )
    assert net.to_spec()["nodes"][0]["image"] == {
        "name": "i.tar",
        "root": None,
        "folder": None,
        "variables": {},
        "environment": {"N": "1"},
        "volumes": [
            {"source": "a", "target": "/a", "read_only": True},
            {"source": "~/b", "target": "/b", "read_only": False},
        ],
        "command": ["sleep", "9"],
    }


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"image": ""}, "the image is ''"),
        ({"image": "i.tar", "model": True}, "a model runs no programs"),
        ({"image": "i.tar", "volumes": ["/a"]}, "the volume '/a' is not SOURCE:TARGET"),
        ({"image": "i.tar", "volumes": ["a:a"]}, "the volume 'a:a' is not SOURCE:TARGET"),
        ({"image": "i.tar", "volumes": ["a:/a:rx"]}, "the volume 'a:/a:rx' is not SOURCE:TARGET"),
        ({"image": "i.tar", "volumes": "a:/a"}, "the volumes are 'a:/a'"),
        ({"image": "i.tar", "environment": {"A=B": 1}}, "'A=B' is no name of a variable"),
        ({"image": "i.tar", "command": "sh -c 'x"}, "cannot be split into words"),
        ({"volumes": ["a:/a"]}, "volumes is given to a host without an image"),
        ({"command": "sleep 9"}, "command is given to a host without an image"),
        ({"processors": 0}, "processors is 0; allowed are numbers from 0.01 to 1024"),
        ({"memory": "1 B"}, "memory"),
        ({"processors": 1, "model": True}, "a model runs no programs to be limited"),
    ],
)
def test_what_an_image_and_limits_cannot_have_is_refused(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(tn.errors.BadValue, match=told):
        tn.Network().host("h1", **settings)


def test_limits_are_described() -> None:
    net = parse_network("hosts: {h1: {processors: 0.5, memory: 64 MiB}, h2: {memory: 1 GB}}")
    assert [node["limits"] for node in net.to_spec()["nodes"]] == [
        {"processors": 0.5, "memory_bytes": 64 << 20, "groups": []},
        {"processors": None, "memory_bytes": 10**9, "groups": []},
    ]


def test_programs_on_the_virtual_clock_have_no_image() -> None:
    net = tn.Network()
    net.link(net.host("h1", image="i.tar"), net.switch("s1"))
    with pytest.raises(tn.errors.NotAvailable, match="h1 has the files of an image, which hosts on the virtual clock"):
        net.simulate(hosts="programs").open()
    with net.simulate() as lab:
        assert lab.started["hosts"] == 1
