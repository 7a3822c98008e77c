"""Hosts whose programs are limited in processor time and memory."""

from __future__ import annotations

from pathlib import Path

import twinnet as tn
from labs_here import needs_a_lab
from twinnet.errors import NotAvailable

pytestmark = needs_a_lab


def test_programs_run_in_the_control_groups_of_their_host_or_the_lab_is_refused() -> None:
    net = tn.Network()
    net.link(net.host("h1", processors=0.5, memory="64 MiB"), net.host("h2"))
    try:
        lab = net.emulate().open()
    except NotAvailable as refused:
        # An ordinary user, or a container whose control groups cannot be written.
        assert "the programs of h1 cannot be limited" in str(refused)
        return
    try:
        groups = [Path(one) for one in lab.layout.node("h1")["limits"]["groups"]]
        program = lab["h1"].popen("sleep 1000")
        within = lab["h1"].run("cat /proc/self/cgroup", check=True).stdout
        assert all(one.parent.name == "h1" and one.read_text().split() for one in groups)
        assert f"/{groups[0].parent.parent.name}/h1\n" in within
        assert groups[0].parent.parent.name not in lab["h2"].run("cat /proc/self/cgroup").stdout
        settings = ("cpu.cfs_quota_us", "memory.limit_in_bytes", "cpu.max", "memory.max")
        files = {group.parent / one for group in groups for one in settings}
        assert {one.read_text().split()[0] for one in files if one.exists()} == {"50000", str(64 << 20)}
        assert program.poll() is None
    finally:
        lab.stop()
    assert not any(one.parent.parent.exists() for one in groups)
