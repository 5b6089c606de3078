from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from jumbo_bo.bench import stats
from jumbo_bo.space.space import Array


def flat(x: float, length: int = 10) -> Array:
    return np.full(length, x)


def test_mean_and_standard_error() -> None:
    assert stats.mean_error(np.array([1.0, 2.0, 3.0, 6.0])) == pytest.approx((3.0, np.sqrt(14 / 3) / 2))
    assert np.isnan(stats.mean_error(np.array([1.0]))[1])


def test_an_infinite_regret_makes_an_infinite_mean_without_error() -> None:
    mean, error = stats.band(np.array([[np.inf, 1.0], [2.0, 3.0]]))
    assert mean == pytest.approx([np.inf, 2.0])
    assert error == pytest.approx([np.nan, 1.0], nan_ok=True)


def test_curves_are_sorted_and_a_failed_trial_keeps_the_best_so_far() -> None:
    rows = [(2, None), (1, float("nan")), (3, 4.0), (4, float("nan")), (5, 2.0), (6, 3.0)]
    frame = pl.DataFrame([{"problem": "p", "method": "m", "seed": 3, "trial": t, "regret": r} for t, r in rows])
    np.testing.assert_array_equal(stats.curves_of(frame)["p", "m"][3], [np.inf, np.inf, 4.0, 4.0, 2.0, 2.0])


def test_log_area_counts_the_optimum_as_the_floor() -> None:
    curves = {("p", "a"): {0: np.array([1.0, 0.1, 0.0]), 1: np.array([0.01, 0.01, 0.01])}}
    assert stats.areas(curves, {"p": 0.01})["p", "a"] == pytest.approx({0: (2 + 1 + 0) / 3, 1: 0.0})


def test_an_infinite_regret_counts_as_the_worst_of_the_problem() -> None:
    curves = {
        ("p", "a"): {4: np.array([np.inf, 1.0])},
        ("p", "b"): {0: np.array([100.0, 10.0])},
        ("q", "a"): {0: np.array([np.inf, np.inf])},
    }
    areas = stats.areas(curves, {"p": 1.0, "q": 1.0})
    assert areas["p", "a"] == {4: pytest.approx((2 + 0) / 2)}
    assert areas["p", "b"] == {0: pytest.approx((2 + 1) / 2)}
    assert areas["q", "a"] == {0: np.inf}  # nothing finite to take


def test_where_every_finite_regret_is_zero_a_failed_trial_counts_as_the_floor() -> None:
    curves = {("p", "a"): {0: np.array([np.inf, 0.0])}, ("p", "b"): {0: np.array([np.inf, np.inf])}}
    assert stats.areas(curves, {"p": 1.0}) == {("p", "a"): {0: 0.0}, ("p", "b"): {0: 0.0}}


def test_marks_are_early_and_late() -> None:
    assert stats.marks_of(50) == [1, 5, 10, 25, 50]
    assert stats.marks_of(100)[-1] == 100
    assert stats.marks_of(60) == [1, 5, 10, 25, 50, 60]
    assert stats.marks_of(1) == [1]


def test_normalised_regret_is_one_for_a_guess() -> None:
    curves = {
        ("p", "random"): {0: np.array([1.0, 0.0]), 1: np.array([100.0, 1.0])},  # geometric mean 10
        ("p", "tpe"): {0: np.array([1000.0, np.inf])},  # over methods: 100, however many seeds each has
        ("p", "warm"): {0: np.array([10.0, 0.1])},
        ("q", "warm"): {0: np.array([50.0, 5.0])},  # no cold method: the worst of all is the guess
        ("r", "random"): {0: np.array([np.inf, np.inf])},  # nothing finite: says nothing
    }
    found = stats.normalised(curves, {"p": 0.1, "q": 1.0, "r": 1.0})
    assert found["p", "random"][0] == pytest.approx([-2, -3])
    assert found["p", "tpe"][0] == pytest.approx([1, 1])
    assert found["p", "warm"][0] == pytest.approx([-1, -3])
    assert found["q", "warm"][0] == pytest.approx([0, -1])
    assert ("r", "random") not in found


def test_trials_to_reach_the_references_last_regret() -> None:
    curves = {
        ("p", "ref"): {0: np.array([9.0, 3.0, 1.0]), 1: np.array([9.0, 5.0, 3.0])},  # ends at 2
        ("p", "fast"): {0: np.array([4.0, 1.0, 0.0]), 5: np.array([4.0, 3.0, 0.0])},
        ("p", "slow"): {0: np.array([9.0, 9.0, 9.0])},
        ("q", "ref"): {0: np.array([1.0, 1.0, 1.0])},
        ("q", "fast"): {0: np.array([1.0, 0.0, 0.0])},
        ("q", "slow"): {0: np.array([np.inf, 1.0, 1.0])},
        ("q", "part"): {0: np.array([1.0, 1.0, 1.0])},
        ("r", "fast"): {0: np.array([1.0, 1.0, 1.0])},  # no reference there
    }
    reached = stats.trials_to_reach(curves, "ref")
    first = {"p": {"ref": 3, "fast": 2, "slow": None}, "q": {"ref": 1, "fast": 1, "slow": 2, "part": 1}}
    assert reached.trial == {(p, m): t for p, row in first.items() for m, t in row.items()}
    assert reached.mean == {"ref": (2.0, 0), "fast": (1.5, 0), "slow": ((4 + 2) / 2, 1)}
    assert stats.trials_to_reach(curves, "nobody") == stats.Reached({}, {})


def test_the_mean_of_trials_to_reach_gives_every_suite_the_same_weight() -> None:
    curves = {(p, "ref"): {0: np.array([9.0, 9.0, 1.0])} for p in "pqr"}
    curves |= {(p, "m"): {0: np.array([1.0, 1.0, 1.0])} for p in "pq"} | {("r", "m"): {0: flat(9.0, 3)}}
    assert stats.trials_to_reach(curves, "ref").mean["m"] == (pytest.approx((1 + 1 + 4) / 3), 1)
    by_suite = stats.trials_to_reach(curves, "ref", {"p": "a", "q": "a", "r": "b"})
    assert by_suite.mean["m"] == (pytest.approx((1 + 4) / 2), 1)


def test_equal_means_over_different_numbers_of_seeds_count_as_reached() -> None:
    curves = {("p", "ref"): {s: flat(0.1) for s in range(2)}, ("p", "m"): {s: flat(0.1) for s in range(3)}}
    assert np.mean([0.1] * 3) > 0.1  # rounding
    assert stats.trials_to_reach(curves, "ref").trial["p", "m"] == 1


def test_paired_differences_cancel_what_the_seed_does_to_both() -> None:
    hard = {0: 10.0, 1: 100.0, 2: 1000.0}
    curves = {
        ("p", "ref"): {s: flat(x) for s, x in hard.items()},
        ("p", "m"): {s: flat(x / 10) for s, x in hard.items()} | {9: flat(5.0)},
        ("q", "ref"): {0: flat(10.0), 1: flat(10.0)},
        ("q", "m"): {0: flat(10.0), 1: flat(1000.0)},
    }
    found = stats.normalised_to(curves, {"p": 0.1, "q": 0.1}, "ref")
    assert found["ref"] == pytest.approx((0.0, 0.0, 5, 2))
    # p: -1 always; q: 0 and 2, so mean 1 and error sqrt(2) / sqrt(2) = 1. Mean of the two, error sqrt(0 + 1) / 2.
    assert found["m"] == pytest.approx((0.0, 0.5, 5, 2))


def test_compute_hours_add_up_all_that_is_known() -> None:
    frame = pl.DataFrame({"cpu_ask": [1800.0, 900.0], "cpu_tell": [100.0, 800.0]})
    assert stats.compute_hours(frame, [{"cpu_pretraining": 3600.0}, {}]) == pytest.approx(2.0)
    assert stats.compute_hours(frame.drop("cpu_tell"), []) == pytest.approx(0.75)
