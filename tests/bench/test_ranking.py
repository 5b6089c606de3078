from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import rankdata

from jumbo_bo.bench import ranking
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


def test_rank_shares_ties_and_uses_common_seeds_only() -> None:
    curves = {
        ("p", "a"): {0: flat(1.0), 1: flat(0.0), 7: flat(9.0)},
        ("p", "b"): {0: flat(2.0), 1: flat(0.0)},
    }
    ranks = ranking.ranks(curves, ["a", "b"])
    assert [ranks.table[m][-1].mean for m in "ab"] == [1.25, 1.75]
    assert (ranks.marks, ranks.pairs, ranks.left_out) == ([1, 5, 10], 2, {})


def test_infinite_regrets_share_the_last_rank() -> None:
    curves = {("p", m): {0: flat(x)} for m, x in (("a", np.inf), ("b", np.inf), ("c", 1.0))}
    assert {m: row[0].mean for m, row in ranking.ranks(curves, ["a", "b", "c"]).table.items()} == {
        "a": 2.5,
        "b": 2.5,
        "c": 1.0,
    }


def test_ranks_at_each_mark_against_a_plain_loop(rng: np.random.Generator) -> None:
    curves = random_curves(rng)
    ranks = ranking.ranks(curves, list("abc"))
    for k, mark in enumerate((1, 5, 10, 25, 50)):
        by_problem = [
            np.mean([rankdata([curves[p, m][s][mark - 1] for m in "abc"]) for s in curves[p, "a"]], axis=0)
            for p in ("p0", "p1", "p2")
        ]
        assert [ranks.table[m][k].mean for m in "abc"] == pytest.approx(np.mean(by_problem, axis=0))
    for row in ranks.table.values():
        assert row[-1].mean == pytest.approx(np.mean([cell.mean for cell in row[:-1]]))
    assert ranks.pairs == 6 + 7 + 8
    assert ranking.ranks(curves, list("abc")) == ranks  # seeded


def test_one_seed_has_an_interval_over_problems_and_one_pair_has_none() -> None:
    curves = {("p", m): {0: flat(i)} for i, m in enumerate("ab")}
    mean, low, high = ranking.ranks(curves, ["a", "b"]).table["a"][-1]
    assert mean == 1.0
    assert np.isnan([low, high]).all()
    curves |= {("q", m): {0: flat(-i)} for i, m in enumerate("ab")}
    assert ranking.ranks(curves, ["a", "b"]).table["a"][-1] == pytest.approx((1.5, 1.0, 2.0))


def test_every_suite_has_the_same_weight() -> None:
    """a wins on the five problems of the one suite, b on the one of the other, and there by more: by problem a would be
    first, by suite b is."""
    suites = {"p0": "small"} | {f"p{i}": "large" for i in range(1, 6)}
    curves = {(p, m): {s: flat(x) for s in range(2)} for p in suites for m, x in (("b", 1), ("c", 2))}
    curves |= {(p, "a"): {s: flat(3 if p == "p0" else 0) for s in range(2)} for p in suites}
    by_problem = {m: cells[-1].mean for m, cells in ranking.ranks(curves, list("abc")).table.items()}
    by_suite = ranking.ranks(curves, list("abc"), suites=suites)
    assert by_problem == pytest.approx({"a": (3 + 5 * 1) / 6, "b": (1 + 5 * 2) / 6, "c": (2 + 5 * 3) / 6})
    means = {m: cells[-1].mean for m, cells in by_suite.table.items()}
    assert means == pytest.approx({"a": (3 + 1) / 2, "b": (1 + 2) / 2, "c": (2 + 3) / 2})
    assert min(by_problem, key=lambda m: by_problem[m]) == "a"
    assert min(means, key=lambda m: means[m]) == "b"
    assert {suite: table["a"][0].mean for suite, table in by_suite.by_suite.items()} == {"small": 3.0, "large": 1.0}


def test_the_rank_over_suites_is_the_mean_of_the_suites(rng: np.random.Generator) -> None:
    ranks = ranking.ranks(random_curves(rng), list("abc"), suites={"p0": "x", "p1": "y", "p2": "y"})
    for method, cells in ranks.table.items():
        parts = [[cell.mean for cell in table[method]] for table in ranks.by_suite.values()]
        assert [cell.mean for cell in cells] == pytest.approx(np.mean(parts, axis=0))
        assert all(cell.low <= cell.mean <= cell.high for cell in cells)


def test_methods_with_few_runs_are_left_out_of_the_rank_and_named(rng: np.random.Generator) -> None:
    curves = dict(random_curves(rng, problems=2, methods="abcde", seeds=10))  # 10 + 11 pairs
    for p, n in (("p0", 6), ("p1", 5)):
        curves[p, "c"] = {s: curves[p, "c"][s] for s in range(n)}  # 11 of 21: just enough
        curves[p, "d"] = {s: curves[p, "d"][s] for s in range(5)}  # 10 of 21: not
    del curves["p1", "e"]
    ranks = ranking.ranks(curves, list("edcba"))
    assert list(ranks.table) == ["c", "b", "a"]  # as asked
    assert ranks.pairs == 11
    assert ranks.left_out == {"d": "10 of 21 pairs", "e": "on 1 of 2 problems"}
    assert ranking.ranks(curves, ["e"]).pairs == 10  # alone, its problems are the problems
    assert ranking.ranks({}, ["e"]).table == {}


def test_methods_whose_seeds_do_not_meet_are_not_ranked_together() -> None:
    curves = {("p", "a"): {s: flat(0) for s in range(4)}, ("p", "b"): {s: flat(1) for s in range(10, 13)}}
    ranks = ranking.ranks(curves, ["b", "a"])
    assert (list(ranks.table), ranks.left_out) == (["a"], {"b": "0 of 4 pairs"})
