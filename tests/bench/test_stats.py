from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.stats import rankdata

from jumbo_bo.bench import stats
from jumbo_bo.bench.stats import Curves
from jumbo_bo.space.space import Array


def flat(x: float, length: int = 10) -> Array:
    return np.full(length, x)


def random_curves(rng: np.random.Generator, problems: int = 3, methods: str = "abc", seeds: int = 6) -> Curves:
    return {
        (f"p{p}", m): {s: np.minimum.accumulate(rng.integers(0, 30, size=50).astype(float)) for s in range(seeds + p)}
        for p in range(problems)
        for m in methods
    }


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
    regret = np.array([[1.0, 0.1, 0.0], [0.01, 0.01, 0.01]])
    assert stats.log_area(regret, 0.01) == pytest.approx([(2 + 1 + 0) / 3, 0.0])


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


def test_rank_shares_ties_and_uses_common_seeds_only() -> None:
    curves = {
        ("p", "a"): {0: flat(1.0), 1: flat(0.0), 7: flat(9.0)},
        ("p", "b"): {0: flat(2.0), 1: flat(0.0)},
    }
    ranks = stats.ranks(curves, ["a", "b"])
    assert [ranks.table[m][-1].mean for m in "ab"] == [1.25, 1.75]
    assert (ranks.marks, ranks.pairs, ranks.left_out) == ([10], 2, {})


def test_infinite_regrets_share_the_last_rank() -> None:
    curves = {("p", m): {0: flat(x)} for m, x in (("a", np.inf), ("b", np.inf), ("c", 1.0))}
    assert {m: row[0].mean for m, row in stats.ranks(curves, ["a", "b", "c"]).table.items()} == {
        "a": 2.5,
        "b": 2.5,
        "c": 1.0,
    }


def test_ranks_at_each_mark_against_a_plain_loop(rng: np.random.Generator) -> None:
    curves = random_curves(rng)
    ranks = stats.ranks(curves, list("abc"))
    for k, mark in enumerate((10, 25, 50)):
        by_problem = [
            np.mean([rankdata([curves[p, m][s][mark - 1] for m in "abc"]) for s in curves[p, "a"]], axis=0)
            for p in ("p0", "p1", "p2")
        ]
        assert [ranks.table[m][k].mean for m in "abc"] == pytest.approx(np.mean(by_problem, axis=0))
    for row in ranks.table.values():
        assert row[-1].mean == pytest.approx(np.mean([cell.mean for cell in row[:-1]]))
    assert ranks.pairs == 6 + 7 + 8
    assert stats.ranks(curves, list("abc")) == ranks  # seeded


def test_rank_intervals_are_as_wide_as_the_central_limit_says() -> None:
    """Two methods that win by a coin: the mean rank's interval over n pairs is that of a binomial share."""
    rng = np.random.default_rng(5)
    wins = rng.integers(0, 2, size=(2, 400)).astype(float)
    curves: dict[tuple[str, str], dict[int, Array]] = {}
    for p, row in enumerate(wins):
        curves[f"p{p}", "a"] = {s: flat(win) for s, win in enumerate(row)}
        curves[f"p{p}", "b"] = {s: flat(0.5) for s in range(400)}
    cell = stats.ranks(curves, ["a", "b"]).table["a"][-1]
    half = 1.96 * np.sqrt(np.sum(wins.var(axis=1) / 400)) / 2
    assert cell.mean == pytest.approx(1 + wins.mean())
    assert cell.high - cell.mean == pytest.approx(half, rel=0.1)
    assert cell.mean - cell.low == pytest.approx(half, rel=0.1)


def test_the_bootstrap_keeps_each_problems_share() -> None:
    """A method always first on one problem and always last on the other has no spread at all."""
    curves = {(p, m): {s: flat(x) for s in range(3)} for p, m, x in (("p", "a", 0), ("q", "a", 2))}
    curves |= {(p, "b"): {s: flat(1) for s in range(3)} for p in "pq"}
    assert stats.ranks(curves, ["a", "b"]).table["a"][-1] == pytest.approx((1.5, 1.5, 1.5))


def test_one_seed_of_a_problem_gives_no_interval() -> None:
    curves = {("p", m): {0: flat(i)} for i, m in enumerate("ab")}
    mean, low, high = stats.ranks(curves, ["a", "b"]).table["a"][-1]
    assert mean == 1.0
    assert np.isnan([low, high]).all()


def test_methods_with_few_runs_are_left_out_of_the_rank_and_named(rng: np.random.Generator) -> None:
    curves = dict(random_curves(rng, problems=2, methods="abcde", seeds=10))  # 10 + 11 pairs
    for p, n in (("p0", 6), ("p1", 5)):
        curves[p, "c"] = {s: curves[p, "c"][s] for s in range(n)}  # 11 of 21: just enough
        curves[p, "d"] = {s: curves[p, "d"][s] for s in range(5)}  # 10 of 21: not
    del curves["p1", "e"]
    ranks = stats.ranks(curves, list("edcba"))
    assert list(ranks.table) == ["c", "b", "a"]  # as asked
    assert ranks.pairs == 11
    assert ranks.left_out == {"d": "10 of 21 pairs", "e": "on 1 of 2 problems"}
    assert stats.ranks(curves, ["e"]).pairs == 10  # alone, its problems are the problems
    assert stats.ranks({}, ["e"]).table == {}


def test_methods_whose_seeds_do_not_meet_are_not_ranked_together() -> None:
    curves = {("p", "a"): {s: flat(0) for s in range(4)}, ("p", "b"): {s: flat(1) for s in range(10, 13)}}
    ranks = stats.ranks(curves, ["b", "a"])
    assert (list(ranks.table), ranks.left_out) == (["a"], {"b": "0 of 4 pairs"})


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
