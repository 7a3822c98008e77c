"""A parameter that nothing names is refused: to set it would change nothing."""

from __future__ import annotations

import pytest
from twinnet.errors import UsageError
from twinnet.study.resolution import built_in_studies, load_study, read_study
from twinnet.yaml_source import parse_yaml

STUDY = """
study: unused
title: Unused
question: Is it?
answer: "{{mean(throughput)}}"
parameters: {{rate: 1 Mbit, {more}}}
network:
  hosts: {{h1: , h2: }}
  links: [{{between: [h1, h2], rate: 10 Mbit}}]
traffic:
  - {{name: one, app: udp, from: [h1], to: h2, port: 5002, duration: 1 s, rate: "${{rate}}"}}
measurements: {{throughput: {{of: throughput, interval: 100 ms}}}}
statements:
  - {{id: fast, text: Fast, check: "mean(throughput) > {bound}"}}
"""


def read(more: str = "", bound: str = "1 bit") -> None:
    text = STUDY.format(more=more, bound=bound)
    read_study(parse_yaml(text, "unused.yaml"), text=text)


def test_a_parameter_that_nothing_names_is_refused() -> None:
    with pytest.raises(UsageError, match=r"parameters.limit: nothing uses the parameter limit; write \$\{limit\}"):
        read("limit: 5 Mbit")


def test_a_check_uses_a_parameter_by_its_bare_name() -> None:
    read("limit: 5 Mbit", "limit")
    read()


@pytest.mark.parametrize("name", sorted(built_in_studies()))
def test_built_in_studies_use_all_of_theirs(name: str) -> None:
    assert load_study(name).name == name
