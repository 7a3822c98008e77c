"""Networks of studies in tests: the block ``network`` of a study file, to be put in the place of NETWORK."""

from __future__ import annotations

__all__ = ["TWO_RATES", "one_switch", "two_senders"]

TWO_RATES = """\
network:
  hosts: {h1: , h2: }
  links: [{between: [h1, h2], rate: "${rate}"}]
parameters:
  rate: {default: 1 Mbit}
factors:
  line:
    levels:
      l1: {set: {rate: 1 Mbit}}
      l2: {set: {rate: 2 Mbit}}
"""
"""A line from h1 to h2, and the factor `line`, whose levels l1 and l2 give it 1 and 2 Mbit/s."""


def one_switch(first: str, second: str) -> str:
    """The hosts h1 and h2 at the switch s1; `first` and `second` are the settings of their links."""
    return f"""\
network:
  switches: {{s1: }}
  hosts: {{h1: , h2: }}
  links:
    - {{between: [h1, s1], {first}}}
    - {{between: [s1, h2], {second}}}
"""


def two_senders(line: str) -> str:
    """The hosts h1 and h2, at 100 Mbit/s, and h3 at the switch s1; `line` are the settings of h3's link."""
    return f"""\
network:
  switches: {{s1: }}
  hosts: {{h1: , h2: , h3: }}
  links:
    - {{between: [h1, s1], rate: 100 Mbit}}
    - {{between: [h2, s1], rate: 100 Mbit}}
    - {{between: [h3, s1], {line}}}
"""
