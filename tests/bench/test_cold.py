"""The functions of the suite without old runs: known values, known optima, nothing to learn from."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import rosen

from jumbo_bo.bench import cold
from jumbo_bo.bench.suites import SUITES
from jumbo_bo.bench.synthetic import Function, maximum
from jumbo_bo.errors import InputError
from jumbo_bo.space.space import Array


def at(f: Function, x: Array, low: float, high: float) -> float:
    """The value at a point of the usual domain, as a loss."""
    return -float(f((np.asarray(x)[None] - low) / (high - low))[0])


def test_values_at_known_points() -> None:
    x = np.array([-1.2, 1.0, 0.5, 3.0, -4.0])
    assert at(cold.rosenbrock, x, -5, 10) == pytest.approx(rosen(x), rel=1e-12)
    assert at(cold.ackley, np.ones(7), -32.768, 32.768) == pytest.approx(20 - 20 * math.exp(-0.2), rel=1e-12)
    # w = (0, 2): sin^2(0) + 1 (1 + 10 sin^2 1) + 1 (1 + sin^2 4 pi)
    assert at(cold.levy, np.array([-3.0, 5.0]), -10, 10) == pytest.approx(2 + 10 * math.sin(1) ** 2, rel=1e-12)
    # w = (1.5, 1, 1.25): 1 + 0.25 (1 + 10 cos^2 1) + 0.0625 (1 + 1)
    expected = 1.375 + 2.5 * math.cos(1) ** 2
    assert at(cold.levy, np.array([3.0, 1.0, 2.0]), -10, 10) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("f", "best"), [(cold.levy, 1.0), (cold.ackley, 0.0), (cold.rosenbrock, 1.0)], ids=["levy", "ackley", "rosenbrock"]
)
@pytest.mark.parametrize("d", [2, 20])
def test_optima(f: Function, best: float, d: int) -> None:
    low, high = {cold.levy: (-10, 10), cold.ackley: (-32.768, 32.768), cold.rosenbrock: (-5, 10)}[f]
    assert at(f, np.full(d, best), low, high) == pytest.approx(0, abs=1e-12)
    around = best + 0.01 * np.random.default_rng(0).normal(size=(50, d))
    assert min(at(f, x, low, high) for x in around) > 0


@pytest.mark.parametrize(("name", "starts"), [("branin", 500), ("hartmann6", 2000)])
def test_the_known_maximum_is_the_largest_value(name: str, starts: int) -> None:
    case = cold.CASES[name]
    found = maximum(case.f, np.random.default_rng(0).uniform(size=(starts, case.d)))
    assert found == pytest.approx(case.best, abs=1e-9)


@pytest.mark.parametrize("name", cold.CASES)
def test_regret_is_the_distance_to_the_optimum(name: str) -> None:
    problem = SUITES["cold"](name, None, 3)
    assert problem.history.n_rows == 0
    assert problem.space.d == cold.CASES[name].d
    rng = np.random.default_rng(0)
    params = [problem.space.decode(u) for u in problem.space.sample(rng, 20)]
    shown = np.array([problem.objective(p, rng) for p in params])
    assert np.allclose(shown - [problem.regret(p) for p in params], -cold.CASES[name].best)
    assert 0 < problem.floor < 1e-4 * np.std(shown)


@pytest.mark.parametrize(("name", "usual"), [("levy-4", 0.55), ("ackley-4", 0.5)])
def test_seeds_move_an_optimum_that_is_near_the_centre(name: str, usual: float) -> None:
    found = []
    for seed in range(5):
        problem = cold.problem(name, seed)
        found.append(problem.regret(problem.space.decode(np.full(4, usual))))
    assert min(found) > 0.1
    assert len(set(found)) == 5
    assert cold.problem(name, 4).regret(problem.space.decode(np.full(4, usual))) == found[4]


def test_idle_parameters_do_nothing_and_the_seed_draws_them() -> None:
    used = set()
    for seed in range(3):
        problem = cold.problem("hartmann6-50", seed)
        start = problem.space.sample(np.random.default_rng(seed), 1)[0]
        moved = np.array([np.where(np.arange(50) == i, 1 - start, start) for i in range(50)])
        regret = np.array([problem.regret(problem.space.decode(u)) for u in moved])
        changed = np.flatnonzero(regret != problem.regret(problem.space.decode(start)))
        assert len(changed) == 6
        used.add(tuple(changed))
    assert len(used) == 3


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(InputError, match="choose one of"):
        cold.problem("levy-5", 0)
