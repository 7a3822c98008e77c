"""What somebody changes by hand in a running lab is in its record, whoever did it, and its verdict tells it."""

from __future__ import annotations

import os
import socket
import threading

import pytest
import twinnet as tn
from labs_here import needs_a_lab
from twinnet.cli import run
from twinnet.cli.prompt.session import Session
from twinnet.lab.by_hand import ByHand
from twinnet.lab.lab import Lab
from twinnet.live.acts import Acts
from twinnet.results.changes_by_hand import ChangeByHand, ChangesByHand
from twinnet.results.fidelity import FidelityRecord
from twinnet.study.fidelity_thresholds import FidelityThresholds
from twinnet.study.judgement import judged_record


def told(lab: Lab) -> list[tuple[str, str, bool]]:
    return [(one.door, one.what, one.is_traffic) for one in lab.fidelity().by_hand.first]


@pytest.fixture(params=["virtual", pytest.param("wall", marks=needs_a_lab)])
def lab(request: pytest.FixtureRequest) -> object:
    net = tn.templates.single(2, rate="10 Mbit")
    with net.emulate() if request.param == "wall" else net.simulate(name="") as lab:
        yield lab


def test_acts_of_the_page_are_in_the_lab_s_record_without_a_file(lab: Lab) -> None:
    with tn.lab.attach(lab.name) as seen:
        acts = Acts(seen)
        acts.do({"act": "link", "link": 0, "direction": "both", "set": {"rate": "5 Mbit"}})
        acts.do({"act": "undo", "number": 1})
        acts.do({"act": "queue", "port": "s1-eth1", "queue": "codel"})
        acts.do({"act": "send", "what": "udp", "from": "h1", "to": "h2", "rate": "1 Mbit", "duration": "1 s"})
        # Nothing is changed by what is refused, and by an act that only looks.
        with pytest.raises(tn.errors.TwinnetError):
            acts.do({"act": "link", "link": 0, "direction": "both", "set": {"rate": "fast"}})
        assert all(act["kept"] for act in acts.record())
        flow = 'lab.start(tn.apps.udp("h1", "h2", rate="1 Mbit", duration="1 s", port=40003))'
        page = "the live page"
        assert told(lab) == [
            (page, "link h1 s1 rate 5 Mbit", False),
            (page, "change 1 undone: link h1 s1 rate 10 Mbit/s", False),
            (page, "queue s1-eth1 codel", False),
            (page, f"py {flow}", True),
        ]
        # Both sides of the door judge the same, and the page is gone then.
        assert seen.fidelity().verdict().by_hand == lab.fidelity().verdict().by_hand
    verdict = lab.fidelity(reset=True).verdict()
    assert verdict.by_hand.startswith("changed by hand 3 times, first at ")
    assert verdict.by_hand.endswith("by the live page: link h1 s1 rate 5 Mbit")
    assert verdict.by_hand in str(verdict)
    assert lab.fidelity().by_hand.changes == 3


def test_a_sealed_fault_is_in_the_record_by_its_seed_until_its_answer(lab: Lab) -> None:
    with tn.lab.attach(lab.name) as seen:
        acts = Acts(seen)
        acts.do({"act": "seal", "seed": 3})
        assert [what for _, what, _ in told(lab)] == ["seed 3: something is broken now; find it by looking"]
        answer = acts.do({"act": "answer"})
        assert told(lab)[-1][1] == f"this was broken: {'; '.join(answer.lines or answer.python)}"
    assert lab.fidelity().by_hand.changes == 1


def test_other_doors_are_in_it_too_and_the_owner_s_own_program_is_not(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    lab.link("h1", "s1").set(delay="1 ms")
    lab.switch("s1").add_flow("priority=1,actions=flood")
    assert told(lab) == [] and lab.fidelity().verdict().by_hand == ""
    assert Session(lab).execute("link h1 s1 delay 2ms loss 1%")
    assert run(["do", lab.name, "queue s1-eth1 codel", "switch s1 start"]) == 0
    with tn.lab.attach(lab.name) as seen:
        seen.switch("s1").add_flow("priority=2,actions=flood")
    assert told(lab) == [
        ("the prompt", "link h1 s1 delay 2ms loss 1%", False),
        ("twinnet do", "queue s1-eth1 codel", False),
        ("twinnet do", "switch s1 start", False),
        ("another program", 'flows.add {"switch": "s1", "flows": ["priority=2,actions=flood"]}', False),
    ]
    Session(lab).execute("fidelity")
    assert "changed by hand 4 times, first at" in capsys.readouterr().out


@needs_a_lab
def test_programs_of_others_are_in_it_and_change_nothing_of_the_network() -> None:
    with tn.templates.single(2).emulate() as lab:
        assert run(["exec", "--json", lab.name, "h1", "--", "echo", "a b"]) == 0
        assert told(lab) == [("twinnet exec", "h1 echo 'a b'", True)]
        assert lab.fidelity().verdict().by_hand == ""
        judged = judged_record(lab.fidelity().raw, FidelityThresholds())
        assert judged.verdict == "invalid"


def test_a_run_of_a_study_that_was_changed_by_hand_is_invalid() -> None:
    raw = {"clock": "virtual", "elapsed_ps": 10**12, "events": 5}
    assert judged_record(raw, FidelityThresholds()).verdict == "valid"
    first = {"at_s": 1.25, "door": "twinnet do", "what": "link s1 h1 down", "is_traffic": False}
    judged = judged_record({**raw, "by_hand": {"changes": 2, "traffic": 0, "first": [first]}}, FidelityThresholds())
    assert judged.verdict == "invalid"
    assert judged.reasons[0] == (
        "changed by hand 2 times, first at 1.250 s by twinnet do: link s1 h1 down: not the run that was planned"
    )
    assert FidelityRecord.from_spec(judged.record).by_hand == ChangesByHand(
        2, 0, (ChangeByHand(1.25, "twinnet do", "link s1 h1 down"),)
    )


def test_the_record_is_bounded_and_goes_on_counting() -> None:
    record = ByHand(is_owner=True)
    for number in range(2000):
        record.note(ChangeByHand(float(number), "a door", "x\n" * 5000, number % 2 == 0))
    kept = record.record()
    assert kept is not None and (kept["changes"], kept["traffic"], len(kept["first"])) == (1000, 1000, 100)
    assert max(len(one["what"]) for one in kept["first"]) < 210
    assert "\n" not in kept["first"][0]["what"]


def test_nonsense_at_its_address_does_no_harm_and_a_stranger_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    owner, other = ByHand(is_owner=True), ByHand(is_owner=False)
    name = f"test-{os.getpid()}-{threading.get_ident()}"
    owner.open(name)
    other.open(name)
    for packet in (b"", b"nonsense", b"[]", b'{"note": 3}', b'{"note": {"at_s": "x"}}', b'{"note": {}}', b"\xff" * 999):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
            sock.connect(f"\0twinnet-by-hand/{os.geteuid()}/{name}")
            sock.send(packet)
    assert other.note(ChangeByHand(1.0, "a door", "\ud800 a change"))
    assert other.record() == {
        "changes": 1,
        "traffic": 0,
        "first": [{"at_s": 1.0, "door": "a door", "what": "? a change", "is_traffic": False}],
    }
    monkeypatch.setattr("twinnet.lab.by_hand._user_of", lambda _: os.geteuid() + 1)
    assert not other.note(ChangeByHand(2.0, "a door", "a change")) and other.record() is None
    owner.close()
    monkeypatch.undo()
    # Where nobody keeps the record, that is told.
    assert not other.note(ChangeByHand(2.0, "a door", "a change"))
    assert owner.record() is not None
