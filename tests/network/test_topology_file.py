"""Network files: good ones become networks, bad ones give one precise message for each mistake."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import twinnet as tn
from twinnet.errors import BadValue
from twinnet.network.topology_file import json_schema, parse_network
from twinnet.yaml_source import SourceError, parse_yaml

GOOD = """\
seed: 3
link_defaults: {rate: 1 Gbit, delay: 50 us}
switches:
  s1: {flows: ["priority=1,actions=flood"]}
hosts:
  h1:
  h2: {ip: 10.0.0.20/8, sysctls: {net.ipv4.tcp_congestion_control: cubic}}
links:
  - between: [h1, s1]
  - between: [s1, h2]
    rate: 10 Mbit
    loss: 1 %
    b_to_a: {rate: 1 Mbit}
    queue_a:
      kind: htb
      rate: 10 Mbit
      queues: {1: {min_rate: 5 Mbit, max_rate: 5 Mbit}}
schedule:
  - {at: 2 s, link: [h1, s1], set: {up: false}}
"""


def test_a_file_is_the_network_that_it_says(tmp_path: Path) -> None:
    path = tmp_path / "lab.yaml"
    path.write_text(GOOD)
    net = tn.load_network(path)
    assert net.seed == 3
    first, second = net.links
    assert (first.ab["rate_bps"], first.ab["delay_ps"]) == (10**9, 50_000_000)
    assert (second.ab["rate_bps"], second.ba["rate_bps"], second.ba["delay_ps"]) == (10**7, 10**6, 50_000_000)
    queue = second.a.to_spec()["queue"]
    assert queue["queues"]["1"]["max_rate_bps"] == 5_000_000
    assert net["h2"].ip == "10.0.0.20"
    assert net.to_spec()["schedule"][0]["set"] == {"link": 0, "direction": "both", "set": {"up": False}}


def test_a_template_can_be_added_to() -> None:
    net = parse_network("template: single:3\nhosts: {extra: }\nlinks: [{between: [extra, s1]}]\n")
    assert net["extra"].ip == "10.0.0.4"
    assert net.links[3].b.name == "s1-eth4"


def test_how_long_a_model_takes_is_the_hosts_and_its_jitter_that_of_links() -> None:
    net = parse_network(
        "hosts: {h1: {processing: 40 us, processing_jitter: 20 us normal}, h2: {processing_jitter: 1 ms}, h3: }\n"
        "routers: {r1: {processing: 1 ms}}\n"
    )
    told = {node["name"]: node["processing"] for node in net.to_spec()["nodes"]}
    jitter = {"distribution": "normal", "scale_ps": 20_000_000}
    assert told == {
        "h1": {"delay_ps": 40_000_000, "jitter": jitter},
        "h2": {"delay_ps": 0, "jitter": {"distribution": "uniform", "scale_ps": 1_000_000_000}},
        "h3": None,
        "r1": {"delay_ps": 1_000_000_000, "jitter": None},
    }
    for given, said in (("processing: -1 us", "-1 us"), ("processing_jitter: 5 fishes", "5 fishes")):
        with pytest.raises(SourceError, match=said):
            parse_network(f"hosts: {{h1: {{{given}}}}}\n")


def test_interrupt_coalescing_is_read_and_what_contradicts_itself_is_refused() -> None:
    net = parse_network(
        "hosts: {h1: {interrupt_delay: 50 us, interrupt_frames: 32}, h2: {interrupt_delay: 16 us}, h3: }\n"
        "routers: {r1: {interrupt_delay: 1 ms}}\n"
    )
    told = {node["name"]: node["coalescing"] for node in net.to_spec()["nodes"]}
    assert told == {
        "h1": {"delay_ps": 50_000_000, "frames": 32},
        "h2": {"delay_ps": 16_000_000, "frames": None},
        "h3": None,
        "r1": {"delay_ps": 1_000_000_000, "frames": None},
    }
    for given, said in (("interrupt_delay: -1 us", "-1 us"), ("interrupt_frames: 8", "without a delay")):
        with pytest.raises(SourceError, match=said):
            parse_network(f"hosts: {{h1: {{{given}}}}}\n")


def test_the_schema_takes_the_good_file_and_refuses_bad_ones() -> None:
    schema = json_schema()
    assert schema["title"] == "twinnet network"
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads(json.dumps(parse_yaml(GOOD).data)), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"links": [{"between": ["h1", "s1"], "rate": 10}]}, schema)


HEAD = "switches: {s1: }\nhosts: {h1: , h2: }\nlinks:\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + "- {between: [h1, s1], rate: 10}\n", "4:29: links[0].rate: the rate 10 has no unit"),
        (HEAD + "- {between: [h1, s1], rate: '10'}\n", '4:29: links[0].rate: the rate "10" has no unit'),
        (HEAD + "- {between: [h1, s1], rate: 10 Mbyte}\n",
         "4:29: links[0].rate: the rate \"10 Mbyte\" has the unknown unit"),
        (HEAD + "- {between: [h1, s1], delay: -5ms}\n", '4:30: links[0].delay: the delay "-5ms" is negative'),
        (HEAD + "- {between: [h1, s1], loss: 120 %}\n", "4:29: links[0].loss: the loss '120 %' is outside 0 to 1"),
        (HEAD + "- {between: [h1, s1], losss: 1 %}\n", "4:23: links[0].losss: unknown key; did you mean 'loss'?"),
        (HEAD + "- {between: [h1, s1], a: h1}\n", "4:23: links[0].a: unknown key; did you mean 'between'?"),
        (HEAD + "- {between: [h1, s2]}\n", "4:3: links[0]: the network has no node 's2' (did you mean 's1'?)"),
        (HEAD + "- {between: [h1, s1]}\n- {between: [s1, h1]}\n", "5:3: links[1]: s1 and h1 are linked already"),
        (HEAD + "- {between: [h1]}\n", "4:13: links[0].between: "),
        (HEAD + "- {between: h1}\n", "4:13: links[0].between: must be a list: write [h1]"),
        (HEAD + "- {between: h2-s1}\n", "4:13: links[0].between: must be a list: write [h2, s1]"),
        ("hosts: {h1:, h2: }\n", "1:11: not YAML: a blank is missing after ':'"),
        (HEAD + "- {rate: 1 Gbit}\n", "4:3: links[0].between: is missing"),
        (HEAD + "- {between: [h1, s1], mtu: 9000000}\n", "4:28: links[0].mtu: "),
        (HEAD + "- {between: [h1, s1], queue: {kind: green}}\n", "4:30: links[0].queue: "),
        (
            HEAD + "- {between: [h1, s1], queue: {kind: htb, rate: 1 Mbit, queues: {1: {min_rate: 9}}}}\n",
            "links[0].queue.queues.1.min_rate: the rate 9 has no unit",
        ),
        (HEAD + "- {between: [h1, s1], queue: {kind: tbf, rate: 1 Mbit, burst: 0 B}}\n", "would never let one through"),
        (HEAD + "- {between: [h1, s1], a_to_b: {dely: 1 s}}\n",
         "links[0].a_to_b.dely: unknown key; did you mean 'delay'?"),
        ("hosts: {h1: }\nhosts: {h2: }\n", "2:1: hosts: the key is given twice; first in line 1"),
        ("hosts: {h1: , h1: }\n", "1:15: hosts.h1: the key is given twice"),
        ("hosts: {h1: }\nswitches: {h1: }\n", "2:12: switches.h1: the network has a node 'h1' already"),
        ("hosts: {a-very-long-name: }\n", "Linux allows 15"),
        ("hosts: {h1: {ip: 10.0.0.900}}\n", "hosts.h1: '10.0.0.900' is not an IP address"),
        ("hosts: [h1]\n", "1:8: hosts: must be a mapping and not a list: write {h1: }"),
        ("host: {h1: }\n", "1:1: host: unknown key; did you mean 'hosts'?"),
        ("seed: -1\nhosts: {h1: }\n", "1:7: seed: "),
        ("{}\n", "the network has no nodes"),
        ("template: singel:3\n", "there is no topology template 'singel' (did you mean 'single'?)"),
        ("template: single:99999999\n", "at most 20000"),
        ("- a\n- b\n", "lab.yaml:1:1: "),
        ("just text\n", "lab.yaml:1:1: "),
        ("a: &a [x]\nb: [*a, *a]\n", "1:4: the anchor &a is not allowed"),
        (HEAD + "- {between: [h1, s1]}\nschedule: [{at: 5, link: [h1, s1], set: {up: false}}]\n",
         "schedule[0].at: the time 5 has"),
        (HEAD + "- {between: [h1, s1]}\nschedule: [{at: 5 s, link: [h1, h2], set: {up: false}}]\n",
         "h1 and h2 are not linked"),
        (HEAD + "- {between: [h1, s1]}\nschedule: [{at: 5 s, link: [h1, s1], set: {rat: 1}}]\n", "did you mean 'rate'"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_at_its_place(text: str, message: str) -> None:
    with pytest.raises(SourceError) as caught:
        parse_network(text, "lab.yaml")
    assert message in str(caught.value)
    assert str(caught.value).startswith("lab.yaml:")


def test_ten_megabytes_of_junk_are_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "junk.yaml"
    path.write_bytes(b"\x00\x01junk: [" * 1_250_000)
    with pytest.raises(SourceError, match="larger than 1 MB"):
        tn.load_network(path)


def test_all_mistakes_are_told_in_one_go() -> None:
    with pytest.raises(SourceError) as caught:
        parse_network(
            HEAD + "- {between: [h1, s1], rate: 10, delay: -1 s}\n- {between: [h2, s1], loss: 2}\n", "lab.yaml"
        )
    assert [(p.line, p.key) for p in caught.value.problems] == [
        (4, "links[0].rate"),
        (4, "links[0].delay"),
        (5, "links[1].loss"),
    ]


def test_mistakes_between_parts_are_told_beside_those_within_them() -> None:
    with pytest.raises(SourceError) as caught:
        parse_network(
            "switches: {s1: }\n"
            "hosts: {h1: {ipp: 10.0.0.1/8}, h2: }\n"
            "links:\n"
            "  - {between: [h1, s1], bw: 10 Mbit}\n"
            "  - {between: [h2, s2]}\n"
            "  - {between: [h9, s1], delay: 5}\n"
            "  - 7\n"
            "  - {between: [h2, s3]}\n",
            "lab.yaml",
        )
    assert [(p.line, p.key) for p in caught.value.problems] == [
        (2, "hosts.h1.ipp"),
        (4, "links[0].bw"),
        (5, "links[1]"),
        (6, "links[2]"),
        (6, "links[2].delay"),
        (7, "links[3]"),
        (8, "links[4]"),
    ]


@pytest.mark.parametrize("threads", ["auto", 1, 64])
def test_a_file_says_how_many_threads_move_the_network(threads: int | str) -> None:
    net = parse_network(f"fabric_threads: {threads}\ntemplate: single:2\n")
    assert net.fabric_threads == threads
    assert parse_network("template: single:2\n").fabric_threads == "auto"


@pytest.mark.parametrize("threads", [0, 65, 1.5, "many", "true"])
def test_a_file_with_another_number_of_threads_is_refused(threads: object) -> None:
    with pytest.raises(SourceError, match=r"1:17: fabric_threads: .*allowed are 'auto' and whole numbers from 1 to 64"):
        parse_network(f"fabric_threads: {threads}\ntemplate: single:2\n")
    with pytest.raises(BadValue, match="allowed are 'auto' and whole numbers from 1 to 64"):
        tn.Network(fabric_threads=threads)  # type: ignore[arg-type]


def test_an_end_of_a_tunnel_takes_the_settings_of_a_link() -> None:
    net = parse_network(
        "switches: {s1: }\ntunnels:\n"
        "- {at: s1, through: {gre: {remote: 10.0.0.9}}, rate: 1 Mbit, port_a: 7,"
        " queue_a: {kind: fifo, limit_frames: 9}}\n"
    )
    (link,) = net.to_spec()["links"]
    assert link["ab"]["rate_bps"] == 10**6
    assert net.switches[0].ports[0].number == 7
    assert net.switches[0].ports[0].queue == tn.qos.Fifo(limit_frames=9)


TRACED = "hosts: {h1: , h2: }\nlinks:\n- {between: [h1, h2], a_to_b: {delivery_trace: cell.down}}\n"


def test_a_link_follows_the_trace_in_a_file_beside_the_networks(tmp_path: Path) -> None:
    (tmp_path / "cell.down").write_text("1\n2\n2\n5\n")
    (tmp_path / "net.yaml").write_text(TRACED)
    link = tn.load_network(tmp_path / "net.yaml").find_link("h1", "h2")
    assert (link.ab["delivery_trace"], link.ba["delivery_trace"]) == ([1, 2, 2, 5], None)
    (tmp_path / "cell.down").write_text("1\n2.5\n")
    with pytest.raises(SourceError, match=r"net.yaml:3:\d+: links\[0\].a_to_b.delivery_trace: .*line 2: '2.5' is no"):
        tn.load_network(tmp_path / "net.yaml")
    with pytest.raises(SourceError, match="a text has no files beside it"):
        parse_network(TRACED)
