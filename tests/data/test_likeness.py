"""How alike tasks are, on shared configurations and on close ones."""

import numpy as np
import pytest
from optuna.distributions import FloatDistribution
from scipy.stats import spearmanr

from jumbo_bo.data.history import History, Task
from jumbo_bo.data.likeness import spearman
from jumbo_bo.space.space import Space

SPACE = Space({"a": FloatDistribution(0, 1), "b": FloatDistribution(0, 1)})


def test_spearman_is_scipys(rng):
    a, b = rng.integers(0, 5, 30).astype(float), rng.random(30)
    assert spearman(a, b) == pytest.approx(spearmanr(a, b).statistic)
    assert np.isnan(spearman(a, np.ones(30)))
    assert np.isnan(spearman(a[:1], b[:1]))


def test_neighbours_tell_when_no_configuration_is_shared(rng):
    def task(name, f, n=200):
        u = rng.random((n, 2))
        return Task(name, u, f(u))

    alike, opposite = task("alike", lambda u: u[:, 0] + 0.1 * u[:, 1]), task("opposite", lambda u: -u[:, 0])
    other, few = task("other", lambda u: u[:, 1]), task("few", lambda u: u[:, 0], 5)
    history = History(SPACE, (task("a", lambda u: u[:, 0]), alike, few, opposite, other))
    names, rho = history.correlations()
    assert np.isnan(rho[np.triu_indices(5, 1)]).all()
    names, rho = history.correlations(neighbours=True)
    at = {name: i for i, name in enumerate(names)}
    assert rho[at["a"], at["alike"]] > 0.9
    assert rho[at["a"], at["opposite"]] < -0.9
    assert abs(rho[at["a"], at["other"]]) < 0.3
    assert np.isnan(rho[at["a"], at["few"]])
    np.testing.assert_array_equal(rho, rho.T)


def test_correlations_are_spearmans_on_shared_configurations(rng):
    u = rng.random((60, 2))
    a, b = rng.normal(size=60), rng.normal(size=60)
    b[:20] = np.round(b[:20])  # ties
    twice = Task("b", np.vstack([u[10:], u[10:]]), np.concatenate([b[10:] - 1, b[10:] + 1]))  # their mean counts
    target = Task("new", u[rng.permutation(60)][:0], np.empty(0))
    order = rng.permutation(60)
    tasks = (Task("a", u[order], a[order]), twice, Task("c", rng.random((60, 2)), a), Task("d", u, np.exp(-a)))
    names, rho = History(SPACE, tasks, target).correlations()
    assert names == ("new", "a", "b", "c", "d")
    expected = spearmanr(a[10:], b[10:]).statistic
    np.testing.assert_allclose(rho[1, 2], expected)
    np.testing.assert_allclose(rho[1, 4], -1.0)
    np.testing.assert_array_equal(rho, rho.T)
    np.testing.assert_array_equal(np.diag(rho), 1.0)
    assert np.isnan(rho[1, 3])  # nothing in common
    assert np.isnan(rho[0, 1:]).all()


def test_correlations_need_ten_shared_and_different_values(rng):
    u = rng.random((30, 2))
    y = np.arange(30.0)
    flat = np.r_[np.zeros(20), 1.0 + np.arange(10.0)]  # constant on the first twenty
    parts = {"all": Task("all", u, y), "flat": Task("flat", u[:21], flat[:21])}
    for shared, known in ((9, False), (10, True)):
        few = Task("few", np.vstack([u[:shared], rng.random((20, 2))]), np.r_[y[:shared], np.arange(20.0)])
        names, rho = History(SPACE, (parts["all"], few, parts["flat"])).correlations()
        assert names == ("all", "few", "flat")
        assert (rho[0, 1] == pytest.approx(1.0)) if known else np.isnan(rho[0, 1])
        assert np.isnan(rho[1, 2])


def test_correlations_of_many_tasks_and_of_none(rng):
    u = rng.random((12, 2))
    names, rho = History(SPACE, tuple(Task(f"{k:02}", u, rng.normal(size=12)) for k in range(45))).correlations()
    assert names == tuple(f"{k:02}" for k in range(40))
    assert np.isfinite(rho).all()
    names, rho = History.empty(SPACE).correlations()
    assert (names, rho.shape) == ((), (0, 0))


def test_correlations_of_large_tasks_are_estimated_from_a_sample(rng):
    u = rng.random((200_000, 2))
    a = u[:, 0]
    b = a + 0.3 * rng.normal(size=len(a))
    _, rho = History(SPACE, (Task("a", u, a), Task("b", u[::-1], b[::-1]))).correlations()
    assert rho[0, 1] == pytest.approx(spearmanr(a, b).statistic, abs=0.05)
