"""Refused commands: which are noted, and how they are told."""

from __future__ import annotations

import pytest
from twinnet.mininet.refused_commands import RefusedCommands


@pytest.mark.parametrize(
    ("line", "noted"),
    [
        ("tc qdisc add dev s1-eth1 root cake", True),
        ("tc class change dev s1-eth1 parent 1: classid 1:1 htb", True),
        ("tc filter replace dev s1-eth1 fw", True),
        ("tc qdisc del dev s1-eth1 root", False),
        ("tc -s qdisc show dev s1-eth1 typo", False),
        ("tc qdisc dev s1-eth1 typo", False),
        ("ovs-vsctl set port s1-eth1 bond_mode=x", True),
        ("ovs-vsctl list-br -- add-bond s1 b0 s1-eth1 s1-eth2", True),
        ("ovs-vsctl --if-exists del-br s9 -- --columns=name list bridge s9", False),
        ("ovs-vsctl br-exists s9", False),
        ("ovs-ofctl mod-port s1 9 no-flood", True),
        ("ovs-ofctl meter-mod s1 meter=1", True),
        ("ovs-ofctl -O OpenFlow13 dump-flows s9", False),
        ("ovs-ofctl -O OpenFlow10 mod-port s1 9 no-flood", True),
        ("ovs-appctl fdb/show s9", False),
        ("ovs-appctl ofproto/trace s1 in_port=1", True),
    ],
)
def test_what_would_have_changed_the_network_is_noted_and_what_is_not_there(line: str, noted: bool) -> None:
    refused = RefusedCommands()
    program, *words = line.split()
    refused.note(program, words, f"{program}: no\nUsage: many lines\n")
    assert bool(refused) == noted
    if noted:
        assert refused.told() == f"a command was refused, and the script went on without:\n    {line}: {program}: no"


def test_many_are_counted_and_one_that_comes_again_is_told_once() -> None:
    refused = RefusedCommands()
    for number in (*range(12), 0, 0):
        refused.note("tc", ["qdisc", "add", f"{number}"], "no")
    lines = refused.told().splitlines()
    assert (lines[0], lines[1]) == (
        "12 commands were refused, and the script went on without:",
        "    tc qdisc add 0: no (3 times)",
    )
    assert (len(lines), lines[-1]) == (12, "    and 2 others")


def test_a_long_command_is_told_in_short() -> None:
    refused = RefusedCommands()
    refused.note("ovs-ofctl", ["add-group", "s1", "bucket=output:1," * 5000], "no " * 1000)
    assert all(len(line) < 700 for line in refused.told().splitlines())
