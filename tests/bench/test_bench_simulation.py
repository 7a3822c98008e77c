"""The pure parts of the benchmarks of the virtual clock: who sends to whom, and what is made of the outcomes."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path

import pytest

from bench.ns3_peer import source_digest
from bench.outcome import Outcome, growth, jain_index
from bench.scale import Size, bend_of, virtual_seconds
from bench.scenarios import (
    aggregation_flows,
    core_flows,
    dumbbell,
    edge_flows,
    fat_tree,
    fat_tree_hosts,
    line_share,
    mixed,
    partner_of,
    tree,
    udp_dumbbell_delay_s,
)
from bench.simulation import apart

OUTCOME = Outcome(300, 100, 0.005, 0.1, 2.5, 2.0, 10, 20, 25, 30, 900, [4e6, 6e6])


def test_an_outcome_is_read_from_the_last_line_that_a_simulator_prints() -> None:
    told = json.dumps(asdict(OUTCOME))
    assert Outcome.from_text(f"a word before\n{told}\n") == OUTCOME
    assert OUTCOME.hops_per_second == 150
    assert OUTCOME.goodput_bps == 10e6


@pytest.mark.parametrize("told", ["", "nothing of use", '{"packet_hops": 1}', "[1]"])
def test_a_simulator_that_tells_no_outcome_is_an_error_with_its_words(told: str) -> None:
    with pytest.raises(OSError, match="told no outcome"):
        Outcome.from_text(told)


def test_jains_index_is_one_for_equal_shares_and_one_nth_when_one_has_all() -> None:
    assert jain_index([3, 3, 3]) == pytest.approx(1)
    assert jain_index([5, 0, 0, 0]) == pytest.approx(0.25)
    assert jain_index([0, 0]) == 1


def test_splitmix64_gives_the_numbers_that_its_authors_do() -> None:
    # The first outputs of the generator seeded with 0: its state grows by the golden ratio before each.
    golden = 0x9E3779B97F4A7C15
    assert mixed(0) == 0xE220A8397B1DCDAF
    assert mixed(golden) == 0x6E789E6AA1B965F4


@pytest.mark.parametrize("hosts", [2, 3, 128, 1000])
def test_nobody_is_its_own_partner(hosts: int) -> None:
    partners = [partner_of(host, hosts) for host in range(hosts)]
    assert all(0 <= partner < hosts and partner != host for host, partner in enumerate(partners))


def test_the_datagrams_of_the_dumbbell_fill_nine_tenths_of_it_and_do_not_meet() -> None:
    scenario = dumbbell("udp", 1)
    starts = [planned.at_ps for planned in scenario.traffic]
    gaps = {later - earlier for earlier, later in pairwise(starts)}
    on_the_wire_ps = (1000 + 42 + 24) * 8 * 10_000
    assert min(gaps) > on_the_wire_ps
    assert on_the_wire_ps * 10 * 1055 / 1e12 == pytest.approx(0.9, rel=1e-3)
    assert udp_dumbbell_delay_s() == pytest.approx(0.005_101_184, rel=1e-9)


def test_a_full_line_is_shared_in_whole_whatever_its_framing_costs() -> None:
    assert line_share(100e6 * 1448 / 1538, 38) == pytest.approx(1)
    assert line_share(100e6 * 1448 / 1502, 2) == pytest.approx(1)


def test_the_fat_tree_has_the_links_and_the_hosts_of_its_size() -> None:
    scenario = fat_tree(4, 1)
    assert len(scenario.network.hosts) == len(scenario.traffic) == fat_tree_hosts(4) == 16
    assert len(scenario.network.switches) == 20
    assert len(scenario.network.links) == 3 * 16


def test_every_destination_of_the_fat_tree_has_one_core_and_every_core_as_many() -> None:
    k, half = 8, 4
    cores: Counter[tuple[int, int]] = Counter()
    for edge in range(half):
        for place in range(half):
            # From another pod an edge switch goes up by the place, an aggregation switch by the edge.
            up = [flow for flow in edge_flows(k, 0, 0) if f"nw_dst=0.0.0.{place}/0.0.0.3" in flow]
            over = [flow for flow in aggregation_flows(k, 0) if f"nw_dst=0.0.{edge}.0/0.0.3.0" in flow]
            assert (len(up), len(over)) == (1, 1)
            cores[int(up[0].rpartition(":")[2]), int(over[0].rpartition(":")[2])] += 1
    assert len(cores) == half * half
    assert set(cores.values()) == {1}
    assert core_flows(k)[7] == "ip,nw_dst=10.7.0.0/16,actions=output:8"


def test_the_tree_has_all_hosts_and_a_route_to_each_subnet() -> None:
    net = tree(450, 1, 1).network
    assert sum(host.name.startswith("h") for host in net.hosts) == 450
    assert [host.name for host in net.hosts if host.forwarding] == ["root", "m0", "r0", "r1", "r2", "r3", "r4"]
    assert ("10.0.2.0/24", "172.16.0.10") in net["m0"].routes
    assert net["r2"].ports[0].addresses == ("172.16.0.10/30",)


def test_growth_and_the_share_of_a_tolerance() -> None:
    assert growth(100, 1000, 10, 100) == 10
    assert apart(1.01, 1.0, 0.02) == pytest.approx(0.5)
    assert apart(0.97, 1.0, 0.02) == pytest.approx(1.5)


def test_a_program_is_built_anew_when_a_source_or_the_library_changes(tmp_path: Path) -> None:
    (tmp_path / "one.cc").write_text("int main() {}")
    (tmp_path / "shared.h").write_text("")
    first = source_digest(tmp_path, "one", "3.37")
    assert first == source_digest(tmp_path, "one", "3.37")
    assert first != source_digest(tmp_path, "one", "3.38")
    (tmp_path / "shared.h").write_text("#pragma once")
    assert first != source_digest(tmp_path, "one", "3.37")


def sized(hosts: int, hop_ns: float) -> Size:
    """A size whose packet-hop costs `hop_ns`."""
    return Size(hosts, replace(OUTCOME, processor_s=hop_ns * OUTCOME.packet_hops / 1e9))


def test_a_cost_bends_where_it_is_half_as_much_again_as_at_the_size_before() -> None:
    level = [sized(10, 100), sized(100, 140), sized(1000, 120)]
    assert bend_of(level) == "it bends nowhere"
    assert bend_of([*level, sized(10_000, 200)]) == "it bends between 1,000 and 10,000 hosts: 120 to 200 ns"


def test_small_networks_run_for_longer_and_no_network_for_ever() -> None:
    assert virtual_seconds(1) == 2000
    assert virtual_seconds(1000) == pytest.approx(500_000 / (1000 * 4 * 5.5))
    assert virtual_seconds(100_000) == 1


def test_what_one_more_host_takes_leaves_out_what_a_network_of_none_would() -> None:
    small = Size(10, replace(OUTCOME, ended_bytes=30_000_000))
    large = Size(110, replace(OUTCOME, ended_bytes=34_000_000))
    assert large.host_kb_since(small) == pytest.approx(40)
