"""Known constraints in `Optimizer`: every suggestion meets them, and what breaks them is learned from all the same."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from optuna.distributions import FloatDistribution

from jumbo_bo.data.history import History
from jumbo_bo.errors import InputError
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.search.argmax import Cube, Pool, SpaceExhausted
from jumbo_bo.search.evolution import evolve
from jumbo_bo.space.space import Space

UNIT = {name: FloatDistribution(0, 1) for name in "abc"}
STEPS = {name: FloatDistribution(0, 1, step=0.25) for name in "abc"}
MIXTURE = Space(UNIT, constraints=["a + b + c == 1"])
LISTED = Space(STEPS, constraints=["a + b + c == 1"])


def value(p: Any) -> float:
    return (p["a"] - 0.6) ** 2 + (p["b"] - 0.5) ** 2 + (p["c"] - 0.1) ** 2


def told(optimizer: Optimizer, n: int) -> Optimizer:
    for _ in range(n):
        suggestion = optimizer.ask()
        assert optimizer.space.allows(suggestion.params)
        optimizer.tell(suggestion, value(suggestion.params))
    return optimizer


@pytest.mark.parametrize("method", ["gp-ucb", "jumbo-mixture", "jumbo", "random", "tpe", "cts"])
@pytest.mark.parametrize("space", [MIXTURE, LISTED], ids=["continuous", "listed"])
def test_every_suggestion_meets_the_constraints(space: Space, method: str) -> None:
    optimizer = told(Optimizer(space, method=method, n_trials=8), 5)
    optimizer.tell({"a": 1.0, "b": 1.0, "c": 1.0}, -5.0)  # far outside, and better than all
    for suggestion in optimizer.ask_many(3):
        assert space.allows(suggestion.params)
        assert math.fsum(suggestion.params.values()) == pytest.approx(1, abs=1e-9)


def test_the_best_of_a_mixture_is_found() -> None:
    """The optimum is the projection of the best point onto the mixture: 0.2 above the total, shared by three."""
    best = told(Optimizer(MIXTURE, method="gp-ucb", n_trials=15), 15).best
    assert best is not None
    assert best.value - 0.2**2 / 3 < 1e-3


def test_what_breaks_a_constraint_is_learned_from_and_never_the_best() -> None:
    optimizer = told(Optimizer(MIXTURE, method="gp-ucb", n_trials=20), 4)
    before = optimizer.predict([{"a": 0.6, "b": 0.4, "c": 0.0}])[0].mean
    optimizer.tell({"a": 0.7, "b": 0.4, "c": 0.0}, -3.0)
    assert optimizer.best is not None
    assert optimizer.best.value > 0
    assert optimizer.told[-1] == ({"a": 0.7, "b": 0.4, "c": 0.0}, -3.0)
    assert optimizer.predict([{"a": 0.6, "b": 0.4, "c": 0.0}])[0].mean < before
    alone = Optimizer(MIXTURE, method="gp-ucb")
    alone.tell({"a": 0.7, "b": 0.4, "c": 0.0}, -3.0)
    assert alone.best is None


def test_improvement_is_measured_from_what_may_be_tried() -> None:
    optimizer = told(Optimizer(MIXTURE, method="gp-ucb"), 3)
    optimizer.tell({"a": 0.7, "b": 0.4, "c": 0.0}, -3.0)
    view = optimizer.view()
    np.testing.assert_array_equal(view.rivals(view.u), view.u[:3])
    np.testing.assert_array_equal(view.rivals(view.u[3:]), view.u[3:])


def test_a_listed_mixture_is_used_up_by_what_may_be_tried() -> None:
    optimizer = told(Optimizer(LISTED, method="gp-ucb"), LISTED.cardinality or 0)
    assert optimizer.remaining() == 0.0
    with pytest.raises(SpaceExhausted, match="all 15 configurations"):
        optimizer.ask()


def test_a_region_of_few_points_in_a_continuous_space_is_used_up() -> None:
    space = Space({"x": FloatDistribution(0, 1), "n": FloatDistribution(0, 1, step=0.5)}, constraints=["x == 0.5 * n"])
    optimizer = Optimizer(space, method="random")
    found = [optimizer.ask().params for _ in range(3)]
    assert sorted(p["x"] for p in found) == [0.0, 0.25, 0.5]
    with pytest.raises(SpaceExhausted, match="meet the constraints"):
        optimizer.ask()


def test_what_remains_is_measured_where_the_constraints_hold() -> None:
    """Nothing is left to gain where the constraints hold, however much there is elsewhere."""
    space = Space({"a": FloatDistribution(0, 1), "b": FloatDistribution(0, 1)}, constraints=["a <= 0.2"])
    free = Optimizer(space.unconstrained, method="gp-ucb", n_trials=40)
    bound = Optimizer(space, method="gp-ucb", n_trials=40)
    rng = np.random.default_rng(0)
    for u in np.vstack([space.sample(rng, 25), [[0.0, 0.5], [0.2, 0.5]]]):
        params = space.decode(u)
        for optimizer in (free, bound):
            optimizer.tell(params, -params["a"] + (params["b"] - 0.5) ** 2)
    assert bound.remaining(0.02) < 0.2 < free.remaining(0.02)


def test_candidates_are_filtered() -> None:
    rows = [{"a": a, "b": b, "c": 1 - a} for a in (0.0, 0.5, 1.0) for b in (0.0, 0.5)]
    optimizer = Optimizer(MIXTURE, method="random", candidates=rows)
    assert optimizer.candidates == [row for row in rows if row["b"] == 0.0]
    with pytest.raises(InputError, match=r"none of the 1 candidates meets.*'a \+ b \+ c == 1'"):
        Optimizer(MIXTURE, candidates=[{"a": 1.0, "b": 1.0, "c": 1.0}])


def test_old_runs_that_break_a_constraint_are_used_and_counted() -> None:
    rng = np.random.default_rng(0)
    rows = [dict(zip("abc", rng.random(3), strict=True)) for _ in range(30)]
    frame = pl.DataFrame([row | {"y": value(row)} for row in [*rows, {"a": 0.5, "b": 0.5, "c": 0.0}]])
    bound = History.from_frame(frame, MIXTURE, objective="y")
    free = History.from_frame(frame, MIXTURE.unconstrained, objective="y")
    assert bound.n_forbidden == 30
    assert "30 of them do not meet the constraints; they are learned from" in bound.summary()
    assert "constraints" not in free.summary()
    assert bound.fingerprint == free.fingerprint
    assert bound.n_rows == 31
    asked = [Optimizer(MIXTURE, history, method="rgpe").ask().params for history in (bound, free)]
    assert asked[0] == asked[1]
    assert MIXTURE.allows(asked[0])


def test_a_resumed_study_suggests_the_same() -> None:
    first = told(Optimizer(MIXTURE, method="gp-ucb", n_trials=8, seed=3), 6)
    again = Optimizer(Space(UNIT, constraints=["a + b + c == 1"]), method="gp-ucb", n_trials=8, seed=3)
    for params, y in first.told:
        again.tell(params, y)
    assert again.ask().params == first.ask().params


def test_the_first_points_are_spread_over_the_mixture() -> None:
    """The first in the middle, the next ones near the corners."""
    first = Optimizer(MIXTURE, method="gp-ucb", seed=1)
    points = np.array([list(first.ask().params.values()) for _ in range(3)])
    assert np.abs(points[0] - 1 / 3).max() < 0.15
    assert points[1:].max(axis=1).min() > 0.75


def test_the_evolution_climbs_along_the_mixture() -> None:
    domain = Cube(MIXTURE, lambda u: {"x": u})
    pool = Pool(MIXTURE, lambda u: -np.sum((u - [0.8, 0.2, 0.0]) ** 2, axis=1))
    evolve(pool, MIXTURE.sample(np.random.default_rng(0), 1), np.random.default_rng(1))
    best = domain.best(pool, np.random.default_rng(0), np.zeros((0, 3)))
    np.testing.assert_allclose(best.u, [0.8, 0.2, 0.0], atol=2e-3)
