"""Wrong files on the command line: one message that names file, line and key, exit status 2, and nothing built."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from twinnet.cli import run
from twinnet.errors import UsageError
from twinnet.lab_process.process import LabProcess
from twinnet.network.topology_file import parse_network
from twinnet.study.resolution import built_in_studies, read_study
from twinnet.yaml_source import parse_yaml

NETWORK = """\
seed: 3
link_defaults: {rate: 1 Gbit, delay: 50 us}
switches:
  s1: {flows: ["priority=1,tcp,tp_dst=80,actions=output:1", "actions=normal"]}
hosts: {h1: , h2: {ip: 10.0.0.20/8}}
links:
  - {between: [h1, s1], loss: 1 %}
  - {between: [s1, h2], queue_a: {kind: fifo, limit_frames: 50}}
schedule:
  - {at: 2 s, link: [h1, s1], set: {up: false}}
"""
STUDY = built_in_studies()["tcp-udp-queues"].read_text(encoding="utf-8")
BOMB = "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"
NOISE = random.Random(1).randbytes(10_000_000)

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Command:
    """The command line in an empty folder; a lab process must not be started."""

    def never(*_: object, **__: object) -> None:
        raise AssertionError("a lab process was started")

    monkeypatch.setattr(LabProcess, "__init__", never)
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        before = sorted(tmp_path.iterdir())
        status = run(arguments)
        assert sorted(tmp_path.iterdir()) == before, "something was written"
        told = capfd.readouterr()
        return status, told.out, told.err

    return call


def refused(answer: tuple[int, str, str], message: str) -> None:
    status, out, err = answer
    assert (status, out) == (2, ""), err
    assert message in err
    assert len(err.splitlines()) == 1, err
    assert len(err) < 1000, "a message fits on a few lines of a terminal"


NETWORK_MISTAKES = [
    ("rate: 1 Gbit", "rate: 10", "2:23: link_defaults.rate: the rate 10 has no unit"),
    ("rate: 1 Gbit", "rate: 1 Gfurlong", "2:23: link_defaults.rate: the rate \"1 Gfurlong\" has the unknown unit"),
    ("rate: 1 Gbit", "rate: [1 Gbit]", "2:23: link_defaults.rate: "),
    ("rate: 1 Gbit", "rate: 0 bit", "2:23: link_defaults.rate: "),
    ("rate: 1 Gbit", "rate: .inf", "2:23: link_defaults.rate: "),
    ("rate: 1 Gbit", "rate: 1e400 Gbit", "2:23: link_defaults.rate: "),
    ("delay: 50 us", "delay: -5ms", '2:38: link_defaults.delay: the delay "-5ms" is negative'),
    ("delay: 50 us", "dealy: 50 us", "2:31: link_defaults.dealy: unknown key; did you mean 'delay'?"),
    ("delay: 50 us", "delay: 9999999999 h", "2:38: link_defaults.delay: "),
    ("loss: 1 %", "loss: 120 %", "7:31: links[0].loss: the loss '120 %' is outside 0 to 1"),
    ("loss: 1 %", "loss: 1", "7:31: links[0].loss: the loss 1 has no unit (write \"1 %\" or \"100 %\")"),
    ("loss: 1 %", "loss: 0.5", "7:31: links[0].loss: the loss 0.5 has no unit (write \"0.5 %\" or \"50 %\")"),
    ("loss: 1 %", "duplicate: 0.01", "7:36: links[0].duplicate: the duplicate 0.01 has no unit"),
    ("loss: 1 %", "loss: .nan", "7:31: links[0].loss: "),
    ("[h1, s1], loss", "[h1, s3], loss", "7:5: links[0]: the network has no node 's3'"),
    ("[s1, h2]", "[s1, h1]", "8:5: links[1]: s1 and h1 are linked already"),
    ("[s1, h2]", "[h2, h2]", "8:5: links[1]: a link joins h2 to itself"),
    ("tp_dst=80", "tp_dts=80",
     "4:16: switches.s1.flows[0]: the flow 'priority=1,tcp,tp_dts=80,actions=output:1' cannot be read: column 16: "
     "\"tp_dts\""),
    ('"actions=normal"', '"actions=nromal"',
     "4:61: switches.s1.flows[1]: the flow 'actions=nromal' cannot be read: column 9: \"nromal\" is no action"),
    ('"actions=normal"', "7", "4:61: switches.s1.flows[1]: "),
    ("limit_frames: 50", "limit_frames: -1", "links[1].queue_a"),
    ("limit_frames: 50", "max_rate: 5 Mbit", "links[1].queue_a.max_rate: unknown key; known: kind, limit"),
    ("kind: fifo", "kind: fofi", "8:"),
    ("hosts: {h1: , h2", "hosts: {h1: , h1: , h2", "5:15: hosts.h1: the key is given twice"),
    ("hosts: {h1: ,", "hosts: {h1: 5,", "5:13: hosts.h1: "),
    ("ip: 10.0.0.20/8", "ip: 10.0.0.256/8", "5:15: hosts.h2: "),
    ("seed: 3", "seed: three", "1:7: seed: "),
    ("seed: 3", "seed: [", "1:"),
    ("seed: 3", "\tseed: 3", "1:1: not YAML"),
    ("schedule:", "shedule:", "9:1: shedule: unknown key; did you mean 'schedule'?"),
    ("seed: 3", "template: singel:3",
     "1:11: template: 'singel:3': there is no topology template 'singel' (did you mean 'single'?)"),
    ("set: {up: false}", "set: {up: perhaps}", "10:"),
]  # fmt: skip


@pytest.mark.parametrize(("right", "wrong", "message"), NETWORK_MISTAKES)
def test_a_mistake_in_a_network_file_is_told_and_nothing_is_built(
    command: Command, tmp_path: Path, right: str, wrong: str, message: str
) -> None:
    assert right in NETWORK
    (tmp_path / "net.yaml").write_text(NETWORK.replace(right, wrong, 1))
    answer = command("lab", "net.yaml", "-c", "nodes")
    refused(answer, message)
    assert answer[2].startswith("twinnet: net.yaml:")


STUDY_MISTAKES = [
    ("repetitions: 10", "repetitons: 10", "repetitons: unknown key; did you mean 'repetitions'?"),
    ("{default: 1 Gbit,", "{default: 10,", "parameters.link_rate.default: the rate 10 has no unit"),
    ("{default: 120 s,", "{default: -120 s,", 'parameters.tcp_duration.default: the value "-120 s" is negative'),
    ("between: [h1, s1]", "between: [h1, s7]", "network.links[0]: the network has no node 's7'"),
    ("between: [h2, s1]", "between: [h1, s1]", "network.links[1]: h1 and s1 are linked already"),
    ("between: [h1, s1]", "between: [h1, s1]\n      loss: 120 %",
     "network.links[0].loss: the loss '120 %' is outside 0 to 1"),
    ("between: [h1, s1]", "between: [h1, s1]\n      rate: 10", "network.links[0].rate: the rate 10 has no unit"),
    ("nw_dst=10.0.0.4,tcp,tp_dst=5002", "nw_dst=10.0.0.4,tcp,tp_dts=5002",
     'factors.queues.levels.separate.flows.s1[0]: the flow'),
    ("actions=enqueue:4:2", "actions=enqueue:4", '"4" names no queue; write enqueue:PORT:QUEUE'),
    ("switches: {s1: }", "switches: {s1: {flows: [actions=fly]}}",
     'network.switches.s1.flows[0]: the flow \'actions=fly\' cannot be read: column 9: "fly" is no action'),
    ("from: [h1, h3]", "from: [h1, h9]", "traffic[0].from[1]: the network has no host 'h9'"),
    ("port: 5002,", "port: fivethousand,", "traffic[0].port: "),
    ("  egress:", "  egress: &x", "the anchor &x is not allowed"),
    ("seed: 1\n", "seed: 1\nseed: 2\n", "seed: the key is given twice"),
    ("seed: 1\n", "seed: !!python/object/apply:os.system [id]\n",
     "the tag tag:yaml.org,2002:python/object/apply:os.system is not allowed"),
]  # fmt: skip


@pytest.mark.parametrize(("right", "wrong", "message"), STUDY_MISTAKES)
def test_a_mistake_in_a_study_file_is_told_and_nothing_is_built(
    command: Command, tmp_path: Path, right: str, wrong: str, message: str
) -> None:
    assert right in STUDY
    text = STUDY.replace(right, wrong, 1)
    (tmp_path / "study.yaml").write_text(text)
    answer = command("run", "./study.yaml", "--yes")
    refused(answer, message)
    place = answer[2].removeprefix("twinnet: ").split(":")
    assert place[0] == "study.yaml"
    pairs = zip(text.splitlines(), STUDY.splitlines(), strict=False)
    changed = next(number for number, (new, old) in enumerate(pairs, 1) if new != old)
    assert abs(int(place[1]) - changed) <= 1, "the line is the one with the mistake"


JUNK: list[tuple[bytes, str]] = [
    (b"", "net.yaml:1:1: the file is empty"),
    (b"# nothing\n", "net.yaml:1:1: the file is empty"),
    (BOMB.encode(), "net.yaml:1:4: the anchor &a is not allowed"),
    (b"[" * 1000, "nested deeper than 64 levels"),
    (NOISE, "net.yaml:1:1: the file is larger than 1 MB"),
    (b"hosts: {h\xff1: }\n", "net.yaml:1:10: the file is not text in UTF-8"),
    (b"hosts: {h1: \x00}\n", "net.yaml:1:13: not YAML: a character that YAML forbids"),
    (NOISE[:1000], "net.yaml:1:"),
    (b"[1, 2, 3]\n", "net.yaml:1:1: "),
    (b"just words\n", "net.yaml:1:1: "),
    (b"a: b: c\n", "net.yaml:1:5: not YAML"),
    (b"- " * 400_000, "nested deeper than 64 levels"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "message"), JUNK, ids=[message[:60] for _, message in JUNK])
@pytest.mark.parametrize("arguments", [("lab", "./net.yaml"), ("run", "./net.yaml")], ids=["lab", "run"])
def test_junk_is_told_in_one_message(
    command: Command, tmp_path: Path, content: bytes, message: str, arguments: tuple[str, ...]
) -> None:
    (tmp_path / "net.yaml").write_bytes(content)
    refused(command(*arguments), message)


def test_what_is_no_file_is_told(command: Command, tmp_path: Path) -> None:
    (tmp_path / "folder.yaml").mkdir()
    refused(command("lab", "absent.yaml"), "absent.yaml:1:1: cannot be read: No such file or directory")
    refused(command("lab", "./folder.yaml"), "folder.yaml:1:1: cannot be read: it is a folder, and not a regular file")
    refused(command("run", "absent.yaml"), "'absent.yaml' is neither a built-in study nor a study file")
    refused(command("run", "./folder.yaml"), "neither a built-in study nor a study file")


def test_wrong_options_are_told(command: Command, tmp_path: Path) -> None:
    (tmp_path / "net.yaml").write_text(NETWORK)
    refused(command("lab", "single:2", "--rate", "10"), 'the rate "10" has no unit')
    refused(command("lab", "single:2", "--delay", "-5ms"), 'the delay "-5ms" is negative')
    refused(command("lab", "single:2", "--loss", "120 %"), "the loss '120 %' is outside 0 to 1")
    refused(command("lab", "singel:2"), "did you mean 'single'?")
    refused(command("lab", "net.yaml", "--rate", "1 Gbit"), "--rate is for templates")
    refused(command("run", "tcp-udp-queues", "--set", "link_rate"), "is not NAME=VALUE")
    refused(command("run", "tcp-udp-queues", "--preset", "tin"), "did you mean 'tiny'?")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("lab --topo tree,2", "name the network itself: twinnet lab tree:2,3; see twinnet lab --help"),
        ("lab single:2 --link tc,bw=10", "write --rate '10 Mbit'"),
        ("lab single:2 --rate 10 Mbit", "put a value with a blank in quotes: --rate '10 Mbit'"),
        ("lab single:2 --controller remote,host=a", "write remote,ip=127.0.0.1,port=6653"),
        ("lab single:2 --controller 127.0.0.1:6633", "write tcp:127.0.0.1:6633"),
        ("lab single:2 --switch ovsk", "did you mean 'ovs'?"),
        ("lab first_lab.py", "first_lab.py is a Python program, not a network (run it with: python first_lab.py)"),
        ("run tcp-udp-queues --clock virtuel", "did you mean 'virtual'?"),
        ("send 127.0.0.1 --protocol tpc", "did you mean 'tcp'?"),
        ("schema newtork", "did you mean 'network'?"),
        ("new Wrong", "'Wrong' is no name of a study"),
        ("send host.invalid --rate 1Mbit", "the receiver 'host.invalid' is not known: "),
    ],
)
def test_what_was_meant_is_told_with_the_mistake(command: Command, arguments: str, message: str) -> None:
    answer = command(*arguments.split())
    refused(answer, message)
    assert "Errno" not in answer[2]


def test_without_a_command_the_help_is_shown_as_it_is(command: Command) -> None:
    status, out, err = command()
    assert (status, out) == (2, "")
    assert err.startswith("Usage: twinnet") and "twinnet:" not in err


def test_a_list_in_the_place_of_a_mapping_is_answered_with_what_to_write(command: Command, tmp_path: Path) -> None:
    (tmp_path / "net.yaml").write_text("hosts: [h1, h2]\n")
    refused(command("lab", "./net.yaml"), "net.yaml:1:8: hosts: must be a mapping and not a list: write {h1: , h2: }")
    (tmp_path / "net.yaml").write_text("hosts: {h1: , h2: }\nlinks: [[h1, h2]]\n")
    refused(command("lab", "./net.yaml"), "links[0]: must be a mapping and not a list: write {between: [h1, h2]}")


TOKENS = [
    "", "10", "-5ms", "[", "}", ": ", "- ", "null", "1e999", "\"", "&a", "*a", "!!x", "${x}",
    "a" * 300, "é", "~", "{}", "[]", "0x", ".nan"
]  # fmt: skip


@pytest.mark.parametrize("seed", range(8))
def test_no_changed_file_raises_anything_but_a_usage_error(seed: int) -> None:
    def read_a_study(text: str) -> None:
        read_study(parse_yaml(text, "study.yaml"))

    draw = random.Random(seed)
    for text, read in [(NETWORK, parse_network), (STUDY, read_a_study)]:
        wrong = 0
        for _ in range(25):
            changed = text
            for _ in range(draw.randint(1, 3)):
                start = draw.randrange(len(changed))
                end = start + draw.choice([0, 1, 3, 10])
                changed = changed[:start] + draw.choice(TOKENS) + changed[end:]
            try:
                read(changed)
            except UsageError as error:
                wrong += 1
                assert str(error), changed
        assert wrong > 5, "changes that are no mistakes prove nothing"


WRONG_ALL_OVER = """\
study: Wrong Name
title: Wrong
question: How many mistakes are told at once?
network:
  hosts: {h1: {}, h2: {}}
  links:
    - {between: [h1, h2], bw: 10 Mbit, queue: {kind: codell}}
traffic:
  - {name: a, app: tpc, from: [h1], to: h2, port: 5001, duration: 1 s}
measurements:
  t: {of: throughputt, interval: 100 ms}
statements:
  - {id: s, text: S, check: mean(tt) > 3}
"""


def test_all_mistakes_of_a_study_are_told_at_once_each_at_its_line(command: Command, tmp_path: Path) -> None:
    (tmp_path / "wrong.yaml").write_text(WRONG_ALL_OVER)
    status, _, err = command("run", "./wrong.yaml", "--yes")
    assert status == 2
    told = [line.removeprefix("twinnet: wrong.yaml:") for line in err.splitlines()]
    assert [line.split(":")[0] for line in told] == ["1", "7", "7", "9", "11", "13"], err
    for message, line in zip(
        [
            "lower-case letters, digits",
            "network.links[0].bw: unknown key; did you mean 'rate'?",
            "there is no kind 'codell'; did you mean 'codel'?",
            "'tpc' is not allowed; did you mean 'tcp'?",
            "did you mean 'throughput'?",
            "unknown measurement 'tt'; did you mean 't'?",
        ],
        told,
        strict=True,
    ):
        assert message in line
    # No jargon of the validator, and no regular expression.
    assert not [word for word in ("Input", "pattern", "^", "discriminator") if word in err]


def test_mistakes_that_show_when_the_parts_are_put_together_are_told_at_once(command: Command, tmp_path: Path) -> None:
    text = STUDY.replace("to: h4, port: 5002", "to: h5, port: 5002", 1).replace("> 0.85 * link_rate", "> 0.85 s", 1)
    (tmp_path / "study.yaml").write_text(text)
    status, _, err = command("run", "./study.yaml", "--yes")
    assert status == 2 and len(err.splitlines()) == 2, err
    assert "the network has no host 'h5'" in err and "0.85 s is a time" in err


@pytest.mark.parametrize(
    ("name", "text", "arguments", "message"),
    [
        ("net.yaml", "hosts:\n\th1: {}\n", ["lab", "./net.yaml"], "net.yaml:2:1: not YAML: a tab stands here; indent"),
        ("net.yaml", "hosts: {h1: }\nlinks: []\n", ["run", "./net.yaml"], "this is a network, not a study; start it"),
        ("s.yaml", "study: x\n", ["lab", "./s.yaml"], "./s.yaml is a study, not a network"),
    ],
)
def test_a_file_of_another_kind_is_answered_with_what_it_is_for(
    command: Command, tmp_path: Path, name: str, text: str, arguments: list[str], message: str
) -> None:
    (tmp_path / name).write_text(text)
    refused(command(*arguments), message)


def test_a_built_in_study_given_to_lab_is_answered_with_what_runs_it(command: Command) -> None:
    refused(command("lab", "tcp-udp-queues"), "make its runs with: twinnet run tcp-udp-queues")


def test_all_mistakes_of_a_study_are_told_at_once(command: Command, tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(
        STUDY.replace("app: udp", "app: udpp", 1)
        .replace("repetitions: ", "repetitions: -")
        .replace("title: ", "titel: "),
        encoding="utf-8",
    )
    status, _, told = command("run", "study.yaml")
    assert status == 2
    assert all(one in told for one in ("did you mean 'udp'", "repetitions: must be at least 1", "did you mean 'title'"))
