"""Verdicts by what a value can be: bounds of its range, infinite values, runs that have none."""

import math
from types import SimpleNamespace
from typing import ClassVar

from twinnet.stats import t_interval
from twinnet.study.measurement import Measurement
from twinnet.study.predicate import Names, parse_check
from twinnet.study.specification import Statement
from twinnet.study.verdict import judge


class Lossy:
    """A run that has lost this share, or has no value."""

    is_drawn = True
    measurements: ClassVar = {"loss": Measurement(of="loss"), "delay": Measurement(of="delay")}

    def __init__(self, value, place, levels=None):
        self.drawn = value
        self.run = SimpleNamespace(levels=levels or {}, record={"clock": "virtual", "seed": None}, repetition=place)
        self.fingerprint = (place,)

    def flow_of(self, aggregate):
        return ""

    def grain(self, aggregate):
        return 0.01

    def value(self, aggregate):
        if self.drawn is None:
            raise LookupError("nothing arrived")
        return self.drawn


def of_losses(check, *values):
    names = Names({}, {"loss": "1", "delay": "s"}, {"radio": ["good", "bad"]})
    runs = [Lossy(value, place) for place, value in enumerate(values, 1)]
    return judge(Statement(id="x", text="x", check=check), parse_check(check, names), runs, 0.95).comparisons[0]


def test_what_a_quantity_cannot_be_leaves_no_verdict_open():
    for values in ((0.2, 0.9, 0.4), (0.5,), (0.99, 1.0)):
        found = of_losses("mean(loss) <= 100 %", *values)
        assert (found.verdict, found.how) == ("supported", "by what it can be, whatever is measured")
        assert of_losses("mean(loss) > 100 %", *values).verdict == "not supported"
        assert of_losses("mean(loss) >= 0", *values).verdict == "supported"
    # Student's interval begins below zero, where no loss is.
    assert t_interval((0.0, 0.01, 0.005), 0.9).low < 0
    assert of_losses("mean(loss) = 20 % within 0.2", 0.0, 0.01, 0.005).verdict == "supported"


def test_what_no_repetition_can_support_is_not_left_to_more_repetitions():
    found = of_losses("mean(loss) <= 0 %", 0.0, 0.0, 0.0)
    assert (found.verdict, "no number of repetitions supports this" in found.why) == ("undecided", True)
    assert "more repetitions may decide" in of_losses("mean(loss) < 0.1 %", 0.0, 0.0, 0.0).why


def test_a_bound_that_the_finite_runs_keep_holds_whatever_an_infinite_one_is():
    times = (5.0, 5.1, 4.9, 5.0)
    assert of_losses("mean(delay) >= 1 s", *times, math.inf).verdict == "supported"
    assert of_losses("mean(delay) < 1 s", *times, math.inf).verdict == "not supported"
    for check in ("mean(delay) < 10 s", "mean(delay) > 10 s"):
        found = of_losses(check, *times, math.inf)
        assert (found.verdict, "its other end is not known" in found.why) == ("undecided", True)
    assert of_losses("max(delay) > 1 s", *times, math.inf).verdict == "supported"
    assert of_losses("mean(delay) >= 1 s", 5.0, math.inf).verdict == "undecided"


def test_one_run_that_contradicts_refutes_beside_one_without_a_value():
    found = of_losses("max(loss) < 1 %", 0.0, 0.2, None)
    assert (found.verdict, found.why) == ("not supported", "one run that contradicts it is enough")
    assert found.left.estimate == 0.2
    undecided = of_losses("max(loss) < 30 %", 0.0, 0.2, None)
    assert (undecided.verdict, undecided.why) == ("undecided", "1 of 3 runs have no value: nothing arrived")
    assert of_losses("min(loss) > 1 %", 0.0, 0.2, None).verdict == "not supported"
    # Some run that has more may be the one without a value; a mean rests on all of them.
    assert of_losses("max(loss) > 30 %", 0.0, 0.2, None).verdict == "undecided"
    assert of_losses("mean(loss) < 90 %", 0.0, 0.2, None).verdict == "undecided"


def test_a_loss_near_all_is_skewed_downward():
    near = (0.99, 0.995, 0.97, 0.999, 0.9985, 0.9965)
    assert t_interval(near).low > 0.973
    assert of_losses("mean(loss) > 97.3 %", *near).verdict == "undecided"
    assert of_losses("min(loss) > 96 %", *near).verdict == "undecided"
    assert "skewed" in of_losses("min(loss) > 96 %", *near).how + of_losses("min(loss) > 96 %", *near).why


def test_the_worst_says_that_its_interval_is_of_a_mean_and_what_is_told_is_of_the_deciding_combination():
    names = Names({}, {"loss": "1"}, {"radio": ["good", "bad"]})
    runs = [
        Lossy(value, place, {"radio": radio})
        for radio, values in (("good", (0.0, 0.0, 0.0)), ("bad", (0.2, 0.21, 0.19)))
        for place, value in enumerate(values)
    ]
    check = "max(loss) < 50 %"
    (found,) = judge(Statement(id="x", text="x", check=check), parse_check(check, names), runs, 0.95).comparisons
    assert found.verdict == "supported"
    assert "judged by the mean over the runs of the worst combination" in found.how
    assert "gave the same value" not in found.how
    check = "min(loss) >= 0"
    (least,) = judge(Statement(id="x", text="x", check=check), parse_check(check, names), runs, 0.95).comparisons
    assert least.verdict == "supported"


def test_the_greatest_number_of_packets_that_a_run_needs_is_told():
    class Kept(Lossy):
        def value(self, aggregate):
            needed = int(self.drawn)
            raise LookupError(f"give the traffic voice 'record_packets: {needed}'", needed)

    names = Names({}, {"loss": "1"}, {})
    check = "share(loss < 1 %) > 1 %"
    runs = [Kept(needed, place) for place, needed in enumerate((120, 240, 180))]
    (found,) = judge(Statement(id="x", text="x", check=check), parse_check(check, names), runs, 0.95).comparisons
    assert "record_packets: 240" in found.why
