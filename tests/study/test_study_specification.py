"""Study files: what is right is read, and every mistake is told once with file, line and key."""

import textwrap

import pytest
from twinnet.errors import BadValue
from twinnet.study.answer_text import parse_answer
from twinnet.study.plan import plan_study
from twinnet.study.quantity import parse_quantity
from twinnet.study.resolution import built_in_studies, load_study, read_study
from twinnet.traffic.app import Flow
from twinnet.yaml_source import SourceError, parse_yaml

RIGHT = """\
study: small
title: A small study
question: Does it work?
parameters:
  rate: 10 Mbit
  length: {default: 4 s, text: how long}
  port: 5001
presets:
  short: {set: {length: 2 s, repetitions: 2}}
network:
  template: single:2
  link_defaults: {rate: "${rate}"}
factors:
  speed:
    levels:
      slow: {}
      fast: {set: {rate: 20 Mbit}}
traffic:
  - {name: bulk, app: tcp, from: [h1], to: h2, port: "${port}", duration: "${length}"}
measurements:
  throughput: {of: throughput, interval: 500 ms}
repetitions: 3
statements:
  - id: fills
    text: TCP fills the link
    check: mean(throughput[protocol=tcp], during=[1 s, length], speed=slow) > 0.9 * rate
"""


def read(text, **more):
    return read_study(parse_yaml(textwrap.dedent(text), "study.yaml"), **more)


def test_parameters_are_put_in_with_their_units():
    study = read(RIGHT)
    assert study.specification.traffic[0].duration_ps == 4 * 10**12
    assert study.specification.traffic[0].port == 5001
    assert study.specification.network.link_defaults.rate == "10 Mbit"


def test_a_level_may_set_a_parameter():
    study = read(RIGHT)
    assert study.at({"speed": "fast"}).network.link_defaults.rate == "20 Mbit"
    assert study.at({"speed": "slow"}).network.link_defaults.rate == "10 Mbit"


def test_settings_go_before_the_preset_and_the_preset_before_the_file():
    study = read(RIGHT, preset="short", settings={"repetitions": "7"})
    assert study.specification.repetitions == 7
    assert study.parameters["length"].text == "2 s"


def test_a_setting_reaches_an_entry_by_its_name():
    assert (
        read(RIGHT, settings={"traffic.bulk.to": "h2", "traffic.bulk.start": "1 s"}).specification.traffic[0].start_ps
    )


MISTAKES = [
    ("repetitions: 3", "repetitons: 3", "22:1: repetitons: unknown key; did you mean 'repetitions'?"),
    ("rate: 10 Mbit", "rate: 10 Mbt", "5:9: parameters.rate: '10 Mbt' has an unknown unit; known are"),
    ("rate: 10 Mbit", "rate: -10 Mbit", '5:9: parameters.rate: the value "-10 Mbit" is negative'),
    ("length: {default: 4 s,", "length: {", "6:3: parameters.length: needs 'default'"),
    (
        'rate: "${rate}"',
        'rate: "${rat}"',
        "12:25: network.link_defaults.rate: unknown parameter ${rat}; did you mean 'rate'?",
    ),
    (
        'port: "${port}"',
        "port: 70000",
        "19:54: traffic[0].port: port is 70000; allowed are whole numbers from 1 to 65535",
    ),
    ("app: tcp", "app: tpc", "19:23: traffic[0].app: 'tpc' is not allowed; did you mean 'tcp'?"),
    ('duration: "${length}"', "duration: 4", "traffic[0].duration: the duration 4 has no unit"),
    (', duration: "${length}"', "", "traffic[0]: a TCP source has either 'duration' or 'bytes'"),
    ("app: tcp", "app: tcp, codec: G.711", "traffic[0]: 'codec' has no meaning for tcp traffic"),
    ("to: h2", "to: h1", "traffic[0]: 'h1' would send to itself"),
    (", interval: 500 ms", "", "measurements.throughput: throughput needs 'interval'"),
    ("repetitions: 3", "repetitions: 0", "22:14: repetitions: must be at least 1"),
    ("repetitions: 3", "repetitions: 2.5", "22:14: repetitions: must be a whole number"),
    (
        "fast: {set: {rate: 20 Mbit}}",
        "fast: {set: {speed: 1 s}}",
        "17:20: factors.speed.levels.fast.set.speed: unknown",
    ),
    (
        "fast: {set: {rate: 20 Mbit}}",
        "fast: {set: {rate: 1 s}}",
        "rate is a rate such as '10 Mbit'; '1 s' is a duration",
    ),
    ("speed=slow", "speed=slw", "26:12: statements[0].check: column 60 of"),
    ("mean(", "meen(", "unknown function 'meen'; did you mean 'mean'?"),
    ("0.9 * rate", "0.9 * rte", "unknown parameter 'rte'; did you mean 'rate'?"),
    ("[1 s, length]", "[5 s, length]", "from 5 s to 4 s is no window of time"),
    ("> 0.9 * rate", "", "expected a comparison: <, >, <= or >=, or = with 'within', found the end"),
    ("template: single:2", "template: singel:2", "11:13: network.template: 'singel:2': there is no topology template"),
    ("from: [h1]", "from: [h9]", "traffic[0].from[0]: the network has no host 'h9'"),
    (
        "slow: {}",
        "slow: {queues: {s1-eth9: {kind: fifo}}}",
        "16:23: factors.speed.levels.slow.queues.s1-eth9: the network",
    ),
    ("slow: {}", "slow: {queues: {s1-eth1: {kind: fifi}}}", "factors.speed.levels.slow.queues.s1-eth1"),
    (
        "slow: {}",
        "slow: {flows: {h1: [actions=drop]}}",
        "16:22: factors.speed.levels.slow.flows.h1: the network has no switch",
    ),
    ("slow: {}", "slow: {links: {h1-h2: {delay: 1 ms}}}", "slow.links.h1-h2: h1 and h2 are not linked"),
    (", interval: 500 ms", ", interval: 500 ms, only: [bulky]", "names the traffic 'bulky'; did you mean 'bulk'?"),
    ("study: small", "study: Small Study", "1:8: study: "),
    ("title: A small study\n", "", "title: is missing; it must be given"),
    ("question: Does it work?", "question: costs 5 $", "a dollar sign begins a reference"),
]


@pytest.mark.parametrize(("right", "wrong", "message"), MISTAKES)
def test_a_mistake_is_told_with_file_line_and_key(right, wrong, message):
    assert right in RIGHT
    with pytest.raises(SourceError) as caught:
        read(RIGHT.replace(right, wrong, 1))
    assert message in str(caught.value)
    assert str(caught.value).startswith("study.yaml:")
    assert len(caught.value.problems) == 1


def test_wrong_values_and_wrong_names_are_told_in_one_round():
    text = RIGHT
    for right, wrong in (
        ('rate: "${rate}"', 'rate: "${rat}"'),
        ("set: {rate: 20 Mbit}", "set: {rte: 20 Mbit}"),
        ('to: h2, port: "${port}"', "to: h9, port: 70000"),
        ("repetitions: 3", "repetitons: 3"),
        ("> 0.9 * rate", "> 3 ms"),
    ):
        assert right in text
        text = text.replace(right, wrong, 1)
    with pytest.raises(SourceError) as caught:
        read(text)
    assert [(one.line, one.key) for one in caught.value.problems] == [
        (12, "network.link_defaults.rate"),
        (17, "factors.speed.levels.fast.set.rte"),
        (19, "traffic[0].to"),
        (19, "traffic[0].port"),
        (22, "repetitons"),
        (26, "statements[0].check"),
    ]


@pytest.mark.parametrize("name", built_in_studies())
def test_every_built_in_study_answers_with_what_it_measured(name):
    study = load_study(name)
    parts = parse_answer(study.specification.answer, study.names())
    assert sum(part.side is not None for part in parts) >= 2
    assert study.specification.answer.endswith(".")


def test_ranges_of_hosts_are_no_mistake_beside_one():
    wrong = RIGHT.replace("from: [h1]", 'from: ["h{1..1}"]').replace("app: tcp", "app: tpc")
    with pytest.raises(SourceError) as caught:
        read(wrong)
    assert len(caught.value.problems) == 1, caught.value
    wrong = RIGHT.replace("from: [h1]", 'from: ["h{3..4}"]').replace("app: tcp", "app: tpc")
    with pytest.raises(SourceError, match="the network has no host 'h3'"):
        read(wrong)


def test_wrong_defaults_of_parameters_hide_no_other_mistake_and_cause_none():
    text = RIGHT
    for right, wrong in (
        ("rate: 10 Mbit", "rate: 10 Mbitt"),
        ('to: h2, port: "${port}"', "to: h9, port: 70000"),
        ("repetitions: 3", "repetitons: 3"),
        ("set: {rate: 20 Mbit}", "set: {rate: 20 Mbit, rte: 1 Mbit}"),
    ):
        assert right in text
        text = text.replace(right, wrong, 1)
    with pytest.raises(SourceError) as caught:
        read(text, settings={"rate": "10 Mbit"})
    assert [one.key for one in caught.value.problems] == [
        "parameters.rate",
        "factors.speed.levels.fast.set.rte",
        "traffic[0].to",
        "traffic[0].port",
        "repetitons",
    ]


def test_a_check_without_quotes_that_ends_at_its_comma_is_one_mistake():
    text = RIGHT[: RIGHT.index("  - id: fills")] + (
        "  - {id: fills, text: TCP fills the link, check: mean(throughput, during=1 s) > 3 Mbit}\n"
    )
    with pytest.raises(SourceError) as caught:
        read(text)
    (problem,) = caught.value.problems
    assert (problem.line, problem.key) == (24, "statements[0].check")
    assert 'put the whole check in quotes: check: "mean(throughput, ..."' in problem.message
    with pytest.raises(SourceError, match="needs quotes there"):
        read(text.replace("during=1 s", "during=[1 s, 2 s], speed=slow"))


def test_names_in_levels_and_selections_are_told_beside_wrong_values():
    text = RIGHT
    for right, wrong in (
        ("slow: {}", "slow: {queues: {s1-eth9: {kind: fifo}}, flows: {s2: [actions=normal]}, links: {h1-s9: {}}}"),
        ("interval: 500 ms}", "interval: 500 ms, only: [bulky]}"),
        ('port: "${port}"', "port: 70000"),
    ):
        assert right in text
        text = text.replace(right, wrong, 1)
    with pytest.raises(SourceError) as caught:
        read(text)
    assert [(one.line, one.key) for one in caught.value.problems] == [
        (16, "factors.speed.levels.slow.queues.s1-eth9"),
        (16, "factors.speed.levels.slow.flows.s2"),
        (16, "factors.speed.levels.slow.links.h1-s9"),
        (19, "traffic[0].port"),
        (21, "measurements.throughput.only[0]"),
    ]
    assert "did you mean 'bulk'?" in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rat": "1 Mbit"}, "there is no parameter and no setting 'rat' (did you mean 'rate'?)"),
        ({"length": "1 Mbit"}, "length is a duration such as '4 s'; '1 Mbit' is a rate"),
        ({"length": "1"}, "length is a duration such as '4 s'; '1' is a number"),
        ({"traffic.web.port": "80"}, "the study has nothing at 'web'"),
    ],
)
def test_a_wrong_setting_is_refused(settings, message):
    with pytest.raises(BadValue) as caught:
        read(RIGHT, settings=settings)
    assert message in str(caught.value)


def test_a_setting_changes_the_levels_that_do_not_set_it_themselves():
    study = read(RIGHT, settings={"rate": "30 Mbit"})
    rates = {level: study.at({"speed": level}).network.link_defaults.rate for level in ("slow", "fast")}
    assert rates == {"slow": "30 Mbit", "fast": "20 Mbit"}
    assert "slow: {}" in RIGHT
    with pytest.raises(BadValue, match="the levels of the factor speed set this parameter"):
        read(RIGHT.replace("slow: {}", "slow: {set: {rate: 10 Mbit}}"), settings={"rate": "30 Mbit"})


def test_an_unknown_study_tells_what_there_is():
    with pytest.raises(BadValue, match="did you mean 'tcp-udp-queues'"):
        load_study("tcp-udp-queue")


@pytest.mark.parametrize("given", [None, True, [], {}, "", "5 parsecs", "1 2", "-", "a b", "9" * 400, "1e999", "ms 5"])
def test_what_is_no_value_of_a_parameter_is_refused(given):
    with pytest.raises(ValueError):
        parse_quantity(given)


@pytest.mark.parametrize("name", built_in_studies())
def test_every_built_in_study_and_each_of_its_presets_is_right(name):
    study = load_study(name)
    assert study.name == name
    for preset in study.specification.presets:
        assert load_study(name, preset=preset).checks()


def test_the_first_study_says_what_the_original_did():
    study = load_study("tcp-udp-queues").specification
    durations = {entry.name: entry.duration_ps for entry in study.traffic}
    assert durations == {"tcp": 120 * 10**12, "udp": 80 * 10**12, "http": None}
    assert [entry.sends.get("bytes") for entry in study.traffic] == [None, None, 400_000_000]
    assert (study.repetitions, study.measurements["throughput"].interval_ps) == (10, 4 * 10**12)


def test_a_prior_is_for_the_methods_that_use_one() -> None:
    given = {"traffic.probes.prior": "6 Mbit", "traffic.probes.prior_std": "1 Mbit", "levels.row": "c10-x4"}
    found = {
        run.levels["estimator"]: run.specification.traffic[1].between("h1", 10**12)
        for run in plan_study(load_study("available-bandwidth", given | {"levels.estimator": "hybrid spruce yaz"}))
    }
    methods = {name: one.sender.fields["method"] for name, one in found.items() if isinstance(one, Flow)}
    assert (methods["hybrid"]["prior_bps"], methods["hybrid"]["prior_std_bps"]) == (6e6, 1e6)
    assert all("prior_bps" not in methods[name] for name in ("spruce", "yaz"))
