"""Intervals and the paired test, against scipy and closed forms."""

import pytest
from scipy import stats

from idarts.fitting import mcnemar, verdict


@pytest.mark.parametrize(("first", "second"), [(0, 0), (1, 9), (9, 1), (5, 5), (0, 6), (40, 61), (700, 760)])
def test_mcnemar_is_the_binomial_test_of_the_images_on_which_two_networks_differ(first, second):
    expected = stats.binomtest(first, first + second).pvalue if first + second else 1.0
    assert mcnemar(first, second) == pytest.approx(expected, abs=1e-12)


def test_six_images_are_the_fewest_that_decide():
    assert mcnemar(0, 5) == 2 / 2**5
    assert verdict([True] * 5, [False] * 5).winner == "undecided"
    assert verdict([True] * 6, [False] * 6).winner == "found"
    assert verdict([False] * 6, [True] * 6).winner == "fixed"


def test_images_that_both_get_right_or_wrong_say_nothing():
    few = verdict([True, False, True], [True, False, False])
    many = verdict([True] * 1000 + [False] * 1000 + [True], [True] * 1000 + [False] * 1000 + [False])
    assert (few.p, few.only_found, few.only_fixed) == (many.p, many.only_found, many.only_fixed) == (1.0, 1, 0)


def test_networks_with_other_test_images_cannot_be_compared():
    with pytest.raises(ValueError, match="longer"):
        verdict([True], [True, False])
