from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from jumbo_bo.bench import bootstrap
from jumbo_bo.bench.bootstrap import Pair

SUITES = {"p": "one", "q": "two", "r": "two"}
PAIRS: list[Pair] = [("p", 0), ("p", 1), ("q", 0), ("r", 0), ("r", 1), ("r", 2)]


def test_weights_by_hand() -> None:
    by_suite = [1 / 4, 1 / 4, 1 / 4, 1 / 12, 1 / 12, 1 / 12]
    assert bootstrap.weights(PAIRS, SUITES) == pytest.approx(by_suite)
    by_problem = [1 / 6, 1 / 6, 1 / 3, 1 / 9, 1 / 9, 1 / 9]
    assert bootstrap.weights(PAIRS) == pytest.approx(by_problem)
    assert bootstrap.average({"p": 6.0, "q": 0.0, "r": 3.0}, SUITES) == pytest.approx((6 + 1.5) / 2)


def test_a_resample_keeps_the_weight_of_every_suite_and_of_every_draw() -> None:
    drawn = bootstrap.resampled(PAIRS, SUITES, 500)
    assert drawn[:, :2].sum(axis=1) == pytest.approx(np.full(500, 0.5))
    assert drawn[:, 2:].sum(axis=1) == pytest.approx(np.full(500, 0.5))
    times = drawn[:, 2] * 4  # q was drawn 0, 1 or 2 times of two, and r the others
    assert set(np.round(times, 9)) == {0.0, 1.0, 2.0}
    assert drawn[:, 3:].sum(axis=1) * 4 == pytest.approx(2 - times)
    assert drawn.mean(axis=0) == pytest.approx(bootstrap.weights(PAIRS, SUITES), abs=0.02)  # 4 sd of 500 draws


def test_the_interval_is_that_of_all_resamples_counted_out() -> None:
    """Two suites of three problems with one seed: 27 * 27 equally likely resamples."""
    suites = {"a": "x", "b": "x", "c": "x", "d": "y", "e": "y", "f": "y"}
    values = {"a": 1.0, "b": 4.0, "c": 0.0, "d": 10.0, "e": 2.0, "f": 3.0}
    every = [
        (np.mean([values[p] for p in x]) + np.mean([values[p] for p in y])) / 2
        for x in product("abc", repeat=3)
        for y in product("def", repeat=3)
    ]
    column = np.array(list(values.values()))
    mean, low, high = bootstrap.averages(column, [(p, 0) for p in values], suites)
    assert mean == pytest.approx((5 / 3 + 5) / 2)
    # 2000 resamples: the share below an end has a standard deviation of 0.35 %.
    assert np.percentile(every, 1) <= low <= np.percentile(every, 4)
    assert np.percentile(every, 96) <= high <= np.percentile(every, 99)


def test_the_spread_is_that_between_problems_and_within() -> None:
    """Closed form: of n problems with s seeds, variance of their means / n, plus mean variance within / (n * s)."""
    rng = np.random.default_rng(3)
    values = rng.normal(size=(4, 1)) + rng.normal(size=(4, 5))
    pairs = [(f"p{i}", seed) for i in range(4) for seed in range(5)]
    sample = bootstrap.resampled(pairs, resamples=20_000) @ values.ravel()
    expected = values.mean(axis=1).var() / 4 + values.var(axis=1).mean() / 20
    assert sample.var() == pytest.approx(expected, rel=0.05)  # 5 standard deviations of a variance of 20,000
    assert sample.mean() == pytest.approx(values.mean(), abs=5 * np.sqrt(expected / 20_000))


def test_one_problem_has_the_spread_of_its_seeds_and_one_pair_none() -> None:
    seeds = [("p", s) for s in range(10)]
    column = np.arange(10.0)
    sample = bootstrap.resampled(seeds, resamples=20_000) @ column
    assert sample.var() == pytest.approx(column.var() / 10, rel=0.05)
    both = [*seeds, ("q", 0)]
    assert np.isfinite(bootstrap.averages(np.arange(11.0), both)).all()  # two problems, one of them with one seed
    mean, low, high = bootstrap.averages(np.arange(11.0), both, {"p": "x", "q": "y"})
    assert mean == pytest.approx((4.5 + 10) / 2)
    assert np.isnan([low, high]).all()


def test_shapes_are_kept_and_the_same_numbers_come_again() -> None:
    values = np.random.default_rng(1).normal(size=(6, 2, 3))
    found = bootstrap.averages(values, PAIRS, SUITES)
    assert found.shape == (2, 3, 3)
    assert found[1, 2] == pytest.approx(bootstrap.averages(values[:, 1, 2], PAIRS, SUITES))
    np.testing.assert_array_equal(found, bootstrap.averages(values, PAIRS, SUITES))
