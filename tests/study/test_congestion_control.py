"""A study's TCP uses the same congestion control on both clocks, and one that the machine has."""

from __future__ import annotations

import pytest
from twinnet.errors import NotAvailable, UsageError
from twinnet.study.congestion_control import controls_in_words, controls_of, for_this_machine
from twinnet.study.plan import plan_study
from twinnet.study.resolution import Study, read_study
from twinnet.study.twin import study_on
from twinnet.yaml_source import parse_yaml

STUDY = """
study: two-flows
title: Two flows
question: Which one is faster?
network:
  hosts: {{h1: {host}, h2: {{}}}}
  links: [{{between: [h1, h2], rate: 10 Mbit}}]
{study}
traffic:
  - {{name: bulk, app: tcp, from: [h1], to: h2, port: 5001, duration: 1 s{traffic}}}
  - {{name: page, app: http, from: [h2], to: h1, port: 80, bytes: 10 kB}}
  - {{name: datagrams, app: udp, from: [h1], to: h2, port: 5002, duration: 1 s, rate: 1 Mbit}}
measurements:
  throughput: {{of: throughput, interval: 100 ms}}
"""


def written(study: str = "", traffic: str = "", host: str = "{}") -> Study:
    text = STUDY.format(study=study, traffic=traffic, host=host)
    return read_study(parse_yaml(text, "study.yaml"), text=text)


def controls(study: Study) -> list[str | None]:
    return [one.congestion_control for one in study.specification.traffic]


def test_traffic_that_names_none_uses_cubic_on_both_clocks() -> None:
    for clock in ("wall", "virtual"):
        run = plan_study(study_on(written(), clock))[0]
        assert [one.congestion_control for one in run.specification.traffic] == ["cubic", "cubic", None]


def test_the_study_the_host_and_the_traffic_can_name_another() -> None:
    assert controls(written("congestion_control: bbr")) == ["bbr", "bbr", None]
    pinned = "{sysctls: {net.ipv4.tcp_congestion_control: reno}}"
    assert controls(written(host=pinned)) == ["reno", "reno", None]
    assert controls(written("congestion_control: bbr", ", congestion_control: reno")) == ["reno", "bbr", None]


def test_a_kernel_without_cubic_changes_both_clocks_and_says_so() -> None:
    study, told = for_this_machine(written(), ["reno"])
    assert controls(study) == ["reno", "reno", None]
    assert controls(study_on(study, "virtual")) == ["reno", "reno", None]
    assert "no TCP congestion control 'cubic'" in told and "uses reno on both clocks" in told


def test_a_kernel_with_cubic_changes_nothing() -> None:
    study = written()
    assert for_this_machine(study, ["reno", "cubic"]) == (study, "")


def test_a_named_congestion_control_that_the_kernel_lacks_is_an_error() -> None:
    for study in (written(traffic=", congestion_control: bbr"), written("congestion_control: bbr")):
        with pytest.raises(NotAvailable, match="no TCP congestion control 'bbr'; it has reno, cubic"):
            for_this_machine(study, ["reno", "cubic"])


def test_a_pinned_congestion_control_that_the_kernel_lacks_is_an_error() -> None:
    with pytest.raises(NotAvailable, match="sysctls of hosts pin the TCP congestion control 'cubic'"):
        for_this_machine(written(host="{sysctls: {net.ipv4.tcp_congestion_control: cubic}}"), ["reno"])


def test_hosts_that_pin_different_ones_for_the_same_traffic_are_refused() -> None:
    text = STUDY.format(study="", traffic="", host="{sysctls: {net.ipv4.tcp_congestion_control: reno}}")
    text = text.replace("h2: {}", "h3: {sysctls: {net.ipv4.tcp_congestion_control: cubic}}, h2: {}")
    text = text.replace("from: [h1], to: h2, port: 5001", "from: [h1, h3], to: h2, port: 5001")
    with pytest.raises(UsageError, match="to cubic and reno; give the traffic its 'congestion_control'"):
        read_study(parse_yaml(text, "study.yaml"), text=text)


def test_the_report_tells_it() -> None:
    assert controls_in_words(written()) == "TCP congestion control: cubic; the same on both clocks."
    both = written("congestion_control: bbr", ", congestion_control: reno")
    assert controls_in_words(both) == "TCP congestion control: reno for bulk, bbr for page; the same on both clocks."
    assert controls_of(both) == ["reno", "bbr"]


def test_video_is_http_over_tcp_and_gets_one_too() -> None:
    text = STUDY.format(study="", traffic="", host="{}").replace(
        "  - {name: page",
        "  - {name: film, app: video, from: [h2], to: h1, port: 8081, duration: 1 s, ladder: [235 kbit, 560 kbit]}\n"
        "  - {name: page",
    )
    study = read_study(parse_yaml(text, "study.yaml"), text=text)
    assert controls(study) == ["cubic", "cubic", "cubic", None]
    # The server sends the film: its sysctls count.
    pinned = text.replace("h1: {}", "h1: {sysctls: {net.ipv4.tcp_congestion_control: reno}}")
    assert controls(read_study(parse_yaml(pinned, "study.yaml"), text=pinned))[1] == "reno"


LEVELS = """
parameters: {control: {default: cubic, one_of: [cubic, bbr]}}
factors:
  way: {levels: {old: {}, new: {set: {control: bbr}}}}
"""


def test_levels_that_choose_another_are_told_and_asked_of_the_kernel() -> None:
    study = written(LEVELS, ', congestion_control: "${control}"')
    assert controls_in_words(study) == (
        "TCP congestion control: cubic for bulk (way=old), bbr for bulk (way=new), cubic for page; the same on both "
        "clocks."
    )
    with pytest.raises(NotAvailable, match="no TCP congestion control 'bbr'"):
        for_this_machine(study, ["cubic", "reno"])
