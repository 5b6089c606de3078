"""The regression of final values against scipy, and what it promises: calibrated chances, misleading curves ignored."""

import numpy as np
import pytest
from scipy.stats import multivariate_t

from jumbo_bo.data.curves import units
from jumbo_bo.models.endings import NOTHING, Ending, ending, so_far


def rows(rng, n, weights=(-0.3, 0.6, 0.5, 0.0), noise=0.2):
    x = np.column_stack([np.ones(n), rng.normal(-1, 1, n), rng.normal(0, 0.5, n), rng.exponential(0.2, n)])
    return x, x @ np.array(weights) + noise * rng.standard_normal(n)


def marginal(line, x):
    """The Student distribution of the values at x, by the textbook."""
    shape = line.b / line.a * (np.eye(len(x)) + x @ np.linalg.solve(line.P, x.T))
    return multivariate_t(loc=x @ line.m, shape=shape, df=2 * line.a)


def test_the_evidence_and_the_prediction_are_those_of_scipy(rng):
    x, y = rows(rng, 7)
    other = NOTHING.told(*rows(rng, 30), np.full(30, 0.3))
    lines = [NOTHING, other]
    after = [line.told(x, y, np.ones(7)) for line in lines]
    expected = [marginal(line, x).logpdf(y) for line in lines]
    found = [line.evidence(then) for line, then in zip(lines, after, strict=True)]
    assert found[1] - found[0] == pytest.approx(expected[1] - expected[0])
    new = rows(rng, 1)[0]
    mean, scale, freedom = after[1].student(new[0])
    density = marginal(after[1], new)
    assert (mean, scale**2, freedom) == pytest.approx((density.loc[0], density.shape[0, 0], density.df))


def test_rows_told_one_by_one_or_together_are_the_same(rng):
    x, y = rows(rng, 6)
    w = rng.uniform(0.1, 1, 6)
    line = NOTHING
    for i in range(6):
        line = line.told(x[i : i + 1], y[i : i + 1], w[i : i + 1])
    for one, all_ in zip(line, NOTHING.told(x, y, w), strict=True):
        assert one == pytest.approx(all_)


def test_a_quantile_is_where_the_chance_says(rng):
    x, y = rows(rng, 12)
    found = ending(x[0], x[1:], y[1:], [rows(rng, 40)])
    for share in (0.05, 0.5, 0.95):
        assert found.above(found.quantile(share)) == pytest.approx(1 - share, abs=1e-6)


def test_old_curves_that_agree_sharpen_the_prediction_and_others_lose_their_weight(rng):
    x, y = rows(rng, 10)
    alike, opposite = [rows(rng, 80) for _ in range(3)], [rows(rng, 80, weights=(3, -1, 0, 0)) for _ in range(3)]
    new = rows(rng, 1)[0][0]
    alone, helped, misled = (ending(new, x, y, old) for old in ((), alike, opposite))
    width = [e.quantile(0.95) - e.quantile(0.05) for e in (alone, helped, misled)]
    assert width[1] < 0.9 * width[0]
    assert helped.trust > 0.9
    assert misled.trust < 0.1
    assert misled.quantile(0.5) == pytest.approx(alone.quantile(0.5), abs=0.1)
    assert alone.trust == 0


def test_without_any_curve_it_knows_next_to_nothing():
    found = ending(np.array([1.0, -1.0, 0.0, 0.0]), np.empty((0, 4)), np.empty(0))
    assert found.quantile(0.5) == pytest.approx(-1.0)
    assert 0.02 < found.above(0.0) < 0.5


def test_values_that_are_all_the_same_do_no_harm():
    x = np.tile([1.0, 0.0, 0.0, 0.0], (50, 1))
    found = ending(x[0], x, np.zeros(50), [(x, np.zeros(50))])
    assert np.isfinite([found.quantile(0.05), found.quantile(0.95), found.above(0.0)]).all()


def test_what_is_seen_of_a_curve():
    at, values = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]), np.array([0.0, 2.0, 5.0, 4.0, 3.0, 9.0])
    assert so_far(at, values, 0.4) == pytest.approx([1.0, 4.5, 2.5, 0.5])  # 9.0 comes later
    assert so_far(at, values, 0.1) == pytest.approx([1.0, 0.0, 0.0, 0.0])
    assert so_far(at, values, 0.05) == pytest.approx([1.0, 0.0, 0.0, 0.0])


def curves(rng, n, level, speed):  # -> (n, 20) that approach their ends from below, and these
    end = level + rng.normal(-1, 0.6, n)
    steps, start = np.arange(1, 21), end - rng.uniform(0.5, 3.0, n)
    values = end[:, None] - (end - start)[:, None] * np.exp(-speed * steps)
    return values + 0.05 * rng.standard_normal((n, 20)), end


@pytest.mark.parametrize("n_old", [0, 4])
def test_the_chances_come_true(n_old):
    """Problems drawn at random, judged as the pruner does: 9 of 10 intervals hold, and so many become the best."""
    rng, at = np.random.default_rng(7), np.arange(1, 21) / 20
    inside, chances, came = [], [], []
    for _ in range(150):
        problems = [curves(rng, 30, rng.normal(0, 0.3), rng.uniform(0.1, 0.3)) for _ in range(n_old)]
        values, end = curves(rng, 18, rng.normal(0, 0.3), rng.uniform(0.1, 0.3))
        warps = [units(e) for _, e in problems]
        warp, first = units(end[:10], warps), slice(0, 10)
        for until in (0.1, 0.4):
            old = [
                (np.array([so_far(at, curve, until) for curve in w(v)]), w(e))
                for w, (v, e) in zip(warps, problems, strict=True)
            ]
            rows = np.array([so_far(at, curve, until) for curve in warp(values)])
            for i in range(10, 18):
                found = ending(rows[i], rows[first], warp(end)[first], old)
                inside.append(found.quantile(0.05) <= warp(end)[i] <= found.quantile(0.95))
                chances.append(found.above(0.0))
                came.append(warp(end)[i] > 0.0)
    chances, came = np.array(chances), np.array(came)
    assert 0.85 < np.mean(inside) < 0.98
    for low, high, off in ((0, 0.01, 0.01), (0.01, 0.05, 0.03), (0, 0.1, 0.02)):  # where a pruner decides
        some = (low <= chances) & (chances < high)
        assert some.sum() > 300
        assert abs(chances[some].mean() - came[some].mean()) < off
    parts = [came[(low <= chances) & (chances < high)].mean() for low, high in ((0, 0.05), (0.05, 0.3), (0.3, 1.01))]
    assert parts == sorted(parts)


def test_an_average_is_between_its_parts():
    both = Ending(np.array([0.5, 0.5]), np.array([0.0, 4.0]), np.ones(2), np.full(2, 50.0))
    assert both.above(2.0) == pytest.approx(0.5)
    assert both.trust == 0.5
