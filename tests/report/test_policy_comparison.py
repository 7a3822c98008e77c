"""The leaves against the core: deviations, p-values and the word that the original study would have said."""

from __future__ import annotations

import pytest
from twinnet.report.policy_comparison import places_compared
from twinnet.report.policy_samples import ProfileSamples


def profile(place: str, *values: float) -> ProfileSamples:
    return ProfileSamples({"profile": place}, "basic-cbq", place, {"transfer_rate": list(values)})


@pytest.mark.parametrize(
    ("core", "p", "word"),
    [
        # Means 10 and 11, both of deviation 1: t = -1.2247 with 4 degrees of freedom.
        ((10.0, 11.0, 12.0), 0.2879, "comparable"),
        # Means 10 and 13: t = -3.674.
        ((12.0, 13.0, 14.0), 0.0213, "differs"),
    ],
)
def test_a_test_of_leaf_and_core_has_the_word_of_its_p_value(core: tuple[float, ...], p: float, word: str) -> None:
    (row,) = places_compared([profile("leaf", 9.0, 10.0, 11.0), profile("core", *core)]).to_dicts()
    assert (row["student_p"], row["word"]) == (pytest.approx(p, abs=1e-4), word)
    assert (row["leaf_std"], row["core_std"]) == (1.0, 1.0)


def test_profiles_of_one_policy_are_compared_in_their_order_and_none_takes_the_place_of_another() -> None:
    first = [profile("leaf", 9.0, 10.0, 11.0), profile("core", 12.0, 13.0, 14.0)]
    later = [profile("leaf", 1.0, 2.0, 3.0), profile("core", 2.0, 3.0, 4.0)]
    for one in later:
        one.levels = {"profile": f"deeper-{one.enforced_at}"}
    rows = places_compared([*first, *later]).to_dicts()
    assert [(row["profiles"], row["leaf_mean"], row["core_mean"]) for row in rows] == [
        ("deeper-leaf, deeper-core", 2.0, 3.0),
        ("leaf, core", 10.0, 13.0),
    ]
