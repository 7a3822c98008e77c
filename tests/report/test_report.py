"""The report of a study whose runs a fluid model made: the answer, the page, figures and tables."""

import csv
import json
import re
from html.parser import HTMLParser
from io import StringIO
from types import SimpleNamespace

import pytest
from fluid_lab import FluidLab
from rich.console import Console
from twinnet.cli.study_commands import run_study
from twinnet.errors import TwinnetError
from twinnet.report import method
from twinnet.report import page as report_page
from twinnet.report.pages import script_json
from twinnet.report.summary import answer, failure_sentences, merged_reasons, print_summary, summary_record
from twinnet.report.write import write_report
from twinnet.study.analysis import analyse
from twinnet.study.campaign import Campaign
from twinnet.study.comparison import compare_results
from twinnet.study.measured_quantity import MeasuredQuantity
from twinnet.study.resolution import load_study
from twinnet.study.store import ResultStore, StoreError


def results(folder, preset="demo", verdict="valid", **settings):
    study = load_study("tcp-udp-queues", settings, preset=preset)
    status = run_study(Campaign(study, FluidLab(verdict), folder), with_report=False)
    assert status == 0
    return ResultStore(folder)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return results(tmp_path_factory.mktemp("results") / "tcp-udp-queues")


@pytest.fixture(scope="module")
def page(store):
    return write_report(analyse(store), store.folder / "report")


def summary(analysis):
    console = Console(file=StringIO(), width=120)
    print_summary(analysis, console)
    return console.file.getvalue()


def test_the_text_holds_the_answer_the_numbers_and_the_trust(store):
    text = summary(analyse(store))
    assert "Of 7 statements: 7 supported." in text
    assert re.search(r"✓ supported +In the shared queue TCP starves and gets less than 1 %", text)
    assert "In the shared queue UDP takes 47" in text and "of 50 Mbit/s while it sends" in text
    assert re.search(r"queues: separate +0 to 6 s +23\.\d \[", text)
    assert "Fidelity of 6 runs: 6 valid." in text


def test_verdicts_scale_with_the_parameters(tmp_path):
    found = analyse(results(tmp_path / "r", link_rate="200 Mbit", queue_rate="102.4 Mbit", udp_rate="102.4 Mbit"))
    assert answer(found) == "Of 7 statements: 7 supported."


def test_invalid_runs_are_left_out_and_that_is_said(tmp_path):
    store = results(tmp_path / "r", verdict="invalid")
    text = summary(analyse(store))
    assert "No run kept its schedule, so there is no result." in text
    assert "6 invalid runs are left out" in text
    assert "Of 7 statements: 7 supported." in summary(analyse(store, with_invalid=True))


def test_doubtful_runs_count_and_their_reason_is_told(tmp_path):
    text = summary(analyse(results(tmp_path / "r", verdict="doubtful")))
    assert "6 doubtful" in text
    assert "One frame in 1000 was late by more than 2 ms (doubtful above 1 ms, invalid above 10 ms) (6 runs)." in text


def test_a_single_repetition_gives_numbers_without_intervals(tmp_path):
    found = analyse(results(tmp_path / "r", preset="tiny"))
    assert answer(found).startswith("This size shows that the study works and claims nothing")
    assert summary_record(found)["statements"] == [] and summary_record(found)["in_words"] == ""
    assert all(one["low"] is None for one in summary_record(found)["means"])


def test_why_a_statement_may_not_hold_is_told_where_it_does_not(tmp_path):
    refuted, supported = "tcp-starves-in-the-shared-queue", "tcp-takes-the-link-after-udp"
    check = "mean(throughput[protocol=tcp], during=[2 s, 5 s], queues=shared) < 0.0001 * link_rate"
    whys = {f"statements.{refuted}.why": "Segments are long.", f"statements.{supported}.why": "Nobody knows."}
    store = results(tmp_path / "r", **whys, **{f"statements.{refuted}.check": check})
    text = summary(analyse(store))
    page = write_report(analyse(store), tmp_path / "out").read_text(encoding="utf-8")
    for told in (text, page):
        assert "Why: Segments are long." in told
        assert "Nobody knows." not in told
    record = {one["id"]: one for one in summary_record(analyse(store))["statements"]}
    assert (record[refuted]["verdict"], record[refuted]["why"]) == ("not supported", "Segments are long.")


class Seen(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.outside, self.open = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in ("meta", "br", "link", "img"):
            self.open.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "srcset", "data") and re.match(r"(https?:)?//", value or ""):
                self.outside.append(value)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_well_formed_and_asks_nothing_of_any_network(page):
    seen = Seen()
    seen.feed(page.read_text(encoding="utf-8"))
    assert seen.open == []
    assert seen.outside == []
    assert "link" not in seen.tags and "img" not in seen.tags and "iframe" not in seen.tags
    assert seen.tags.count("h1") == 1


def test_the_page_says_what_the_text_says(page):
    text = page.read_text(encoding="utf-8")
    assert "Of 7 statements: 7 supported." in text
    assert text.count('class="verdict supported"') == 7
    assert "In the shared queue UDP takes" in text
    for heading in (
        "The network and the answer in one look",
        "Egress over time",
        "Level by level",
        "Published figures beside these",
        "Method",
        "Runs",
        "Machine and software",
    ):
        assert heading in text


def test_the_page_says_where_the_publication_contradicts_itself(page):
    text = page.read_text(encoding="utf-8")
    told = load_study("tcp-udp-queues").specification.contradictions
    assert len(told) == 5 and text.count("<h2>Where the publication contradicts itself</h2>") == 1
    assert "<li>HTTP in 3 s. 400 MB in 3 s are 1067 Mbit/s, more than the line." in text


def test_the_page_is_small_enough_to_be_sent(page):
    # Of it 1.2 MB are plotly.js (its basic bundle), once; the whole of plotly.js would be 4.8 MB.
    assert page.stat().st_size < 1_500_000


def test_the_page_shows_the_network(page):
    text = page.read_text(encoding="utf-8")
    assert text.count('<svg xmlns="http://www.w3.org/2000/svg" class="network"') == 1
    assert "4 hosts, 1 switch and 4 links. Links: 50 Mbit/s" in text


def test_one_repetition_judges_nothing_and_says_it_once(tmp_path):
    found = analyse(results(tmp_path / "r", repetitions="1"))
    assert answer(found) == "One repetition judges none of the 7 statements; repeat at least twice (--repeat 2)."


def test_reasons_that_differ_in_a_number_are_one():
    reasons = [f"the schedule slipped by {share} % of the time (limit 0.1 / 1)" for share in (0.3, 0.16, 0.59)]
    assert merged_reasons([*reasons, "a frame was lost"]) == [
        "The schedule slipped by 0.16 to 0.59 % of the time (limit 0.1 / 1) (3 runs)",
        "A frame was lost",
    ]


def test_runs_that_failed_for_the_same_reason_are_told_once():
    failures = {f"a-0{n}": f"the controller x.py {40000 + n} has ended with status 1" for n in (1, 2)} | {
        "b-01": "no room"
    }
    assert failure_sentences(failures) == [
        "2 runs failed for the same reason. The first is a-01: the controller x.py 40001 has ended with status 1",
        "The run b-01 failed: no room",
    ]


def test_merged_reasons_keep_their_names_and_the_numbers_that_are_the_same():
    lines = [f"the line of s1-eth4 slipped by {share} % of its worst second (limit 1 / 5)" for share in (1.97, 1.2)]
    timers = [f"one timer in 100 was late by more than {late} ms (limit 1 / 10)" for late in ("9.5", "10.1")]
    assert merged_reasons([*lines, *timers]) == [
        "The line of s1-eth4 slipped by 1.2 to 1.97 % of its worst second (limit 1 / 5) (2 runs)",
        "One timer in 100 was late by more than 9.5 to 10.1 ms (limit 1 / 10) (2 runs)",
    ]


def test_figures_and_tables_stand_beside_the_page(page):
    names = {path.name for path in page.parent.iterdir()}
    assert {f"throughput.{form}" for form in ("svg", "pdf", "png", "tex")} <= names
    assert {f"levels-throughput.{form}" for form in ("svg", "pdf", "png")} <= names
    assert {f"published-table-{number}.svg" for number in (1, 2, 3)} <= names
    assert (page.parent / "throughput.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert (page.parent / "throughput.pdf").read_bytes()[:5] == b"%PDF-"
    assert not [name for name in names if name.startswith(".")]


def test_the_series_in_csv_is_what_the_model_sends(page):
    with (page.parent / "series.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    early = [
        float(row["mean_bps"])
        for row in rows
        if (row["measurement"], row["factor_queues"], row["label"]) == ("throughput", "shared", "udp")
        and float(row["start_s"]) < 6
    ]
    assert len(early) == 12
    # 0.995 of 50 Mbit/s on the wire, 1470 of 1536 bytes payload; noise of 0.3 % over 24 draws.
    assert sum(early) / len(early) == pytest.approx(0.995 * 50e6 * 1470 / 1536, rel=0.002)


def test_means_have_what_was_published_of_them_beside_them(page):
    with (page.parent / "means.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    beside = {
        (row["measurement"], row["factor_queues"]): (row["published"], row["word"]) for row in rows if row["published"]
    }
    # 3 s of 120 in the demo's 10; the model's transfer is said to last as long as TCP.
    assert beside == {("http_time", level): ("0.25", "differs") for level in ("shared", "separate")}
    assert {float(row["difference"]) for row in rows if row["published"]} == {(10 - 0.25) / 0.25}


def test_latex_tables_escape_what_latex_would_read(page):
    text = (page.parent / "http_time.tex").read_text()
    assert r"http\_time" in text and r"95 \%" in text
    assert text.count(r"\begin{") == text.count(r"\end{")


def test_what_a_study_says_cannot_become_markup(tmp_path):
    hostile = "</script><script>alert(1)</script>"
    store = results(tmp_path / "r", preset="tiny", title=hostile)
    text = write_report(analyse(store), tmp_path / "out").read_text(encoding="utf-8")
    assert hostile not in text
    assert json.loads(script_json({"a": hostile})) == {"a": hostile}
    assert "<" not in script_json({"a": hostile})


def test_there_is_no_report_of_nothing(tmp_path):
    store = ResultStore(tmp_path / "r")
    store.write_study(load_study("tcp-udp-queues"))
    with pytest.raises(StoreError, match="no finished run"):
        write_report(analyse(store), tmp_path / "out")


def test_results_compared_with_themselves_do_not_differ_and_with_others_do(store, tmp_path):
    same = compare_results(analyse(store), analyse(store))
    assert same.only_first == same.only_second == 0
    assert all(one.difference.estimate == 0 for one in same.compared)
    other = results(tmp_path / "r", link_rate="45 Mbit", udp_rate="23.04 Mbit", queue_rate="23.04 Mbit")
    changed = {
        (one.first.levels["queues"], one.first.label, one.first.phase): one
        for one in compare_results(analyse(store), analyse(other)).compared
        if one.first.measurement == "throughput"
    }
    udp = changed["shared", "udp", (0.0, 6.0)]
    assert udp.difference.estimate == pytest.approx(-0.1 * 47.6e6, rel=0.01)
    assert udp.adjusted_p is not None and udp.adjusted_p < 0.01


def _alterations(record, place=()):
    """The places of a record down to the third level, but for what is shown as it is."""
    for key, value in record.items():
        yield (*place, key)
        if isinstance(value, dict) and len(place) < 2 and key not in ("specification", "versions", "sysctls"):
            yield from _alterations(value, (*place, key))


def test_a_record_that_was_altered_is_told_and_ends_in_no_other_error(tmp_path):
    store = results(tmp_path / "r", preset="tiny")
    path = next(store.folder.glob("*/run.json"))
    sound = path.read_text(encoding="utf-8")
    refused = 0
    for place in _alterations(json.loads(sound)):
        for other in ("absent", "x", None):
            record = json.loads(sound)
            within = record
            for key in place[:-1]:
                within = within[key]
            if other == "absent":
                del within[place[-1]]
            else:
                within[place[-1]] = other
            path.write_text(json.dumps(record), encoding="utf-8")
            try:
                analysis = analyse(store)
                assert report_page._runs(analysis) and report_page._machine(analysis)
            except TwinnetError as error:
                refused += 1
                assert "\n" not in str(error)
    assert refused > 30
    path.write_text(sound, encoding="utf-8")
    write_report(analyse(store), tmp_path / "out")


def test_a_new_measurement_is_described_by_its_own_meaning():
    new = MeasuredQuantity("s", "Time until the first byte (RFC 1).", lambda rows, function: 0.0)
    asked = SimpleNamespace(of="first_byte", quantity=new, text="", per="flow", minimum_after=None, interval_ps=None)
    assert method._measured("wait", asked, {}) == "wait: time until the first byte (RFC 1), per flow."
