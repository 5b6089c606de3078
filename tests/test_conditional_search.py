"""The optimizer where some parameters exist only under a condition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo.data.history import History
from jumbo_bo.held import holding
from jumbo_bo.methods import METHODS
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.search.argmax import SpaceExhausted
from jumbo_bo.space.space import Space

FINITE = Space(
    {"kind": CategoricalDistribution(("a", "b")), "n": IntDistribution(1, 3), "m": IntDistribution(1, 2)},
    {"n": "kind == 'a'", "m": "n > 2"},
)
MIXED = Space(
    {
        "booster": CategoricalDistribution(("tree", "linear")),
        "depth": IntDistribution(1, 9),
        "eta": FloatDistribution(0.01, 1, log=True),
        "alpha": FloatDistribution(0, 1),
    },
    {"depth": "booster == 'tree'", "eta": "booster == 'tree'", "alpha": "booster == 'linear'"},
)


def loss(params: dict[str, Any]) -> float:
    if "alpha" in params:
        return 1 + (params["alpha"] - 0.5) ** 2
    return (params["depth"] - 5) ** 2 / 10 + abs(np.log10(params["eta"]) + 1)


def old_runs() -> History:
    rows = [MIXED.decode(u) for u in MIXED.sample(np.random.default_rng(0), 80)]
    empty = dict.fromkeys(MIXED.names)
    import polars as pl

    table = pl.DataFrame(
        [{**empty, **params, "loss": loss(params) + k * 0.1, "task": f"old {k}"} for k in (0, 1) for params in rows],
        infer_schema_length=None,
    )
    return History.from_frame(table, MIXED, objective="loss", task="task")


@pytest.mark.parametrize("method", [m for m in ("random", "gp-ucb", "jumbo-mixture", "jumbo", "tpe") if m in METHODS])
def test_every_configuration_is_suggested_once(method: str) -> None:
    optimizer = Optimizer(FINITE, method=method)
    found = []
    for i in range(5):
        suggestion = optimizer.ask()
        found.append(suggestion.params)
        optimizer.tell(suggestion, float(i))
    assert sorted(map(str, found)) == sorted(str(FINITE.decode(u)) for u in FINITE.grid())
    with pytest.raises(SpaceExhausted):
        optimizer.ask()


@pytest.mark.parametrize("method", [m for m in ("rgpe", "gp-ucb") if m in METHODS])
def test_suggestions_have_what_exists_and_nothing_else(method: str) -> None:
    optimizer = Optimizer(MIXED, old_runs(), n_trials=8, method=method, cache=None)
    for suggestion in optimizer.ask_many(2):
        optimizer.tell(suggestion, loss(suggestion.params))
    for _ in range(4):
        suggestion = optimizer.ask()
        assert MIXED.active(suggestion.params) == tuple(suggestion.params)
        for run in suggestion.explanation.nearest:
            assert MIXED.active(run.params) == tuple(run.params)
        optimizer.tell(suggestion, loss(suggestion.params))
    if method == "gp-ucb":
        assert 0 <= optimizer.remaining() <= 1
    assert optimizer.predict([{"booster": "linear", "alpha": 0.2}])[0].mean > 0


def test_what_is_told_of_parameters_that_do_not_exist_is_ignored() -> None:
    one, other = (Optimizer(MIXED, method="gp-ucb", seed=1) for _ in range(2))
    for alpha in (0.1, 0.7, 0.4, 0.2):
        one.tell({"booster": "linear", "alpha": alpha}, alpha)
        other.tell({"booster": "linear", "alpha": alpha, "depth": 99, "eta": None}, alpha)
    assert one.told == other.told
    assert one.ask() == other.ask()
    other.forget([{"booster": "linear", "alpha": 0.1, "depth": 3}])
    assert len(other.told) == 3


def test_candidates_may_have_empty_cells() -> None:
    candidates = [
        {"kind": "a", "n": 1, "m": None},
        {"kind": "b", "n": None, "m": 1},
        {"kind": "b", "n": 3, "m": None},  # the same one
    ]
    optimizer = Optimizer(FINITE, method="random", candidates=candidates)
    found = [optimizer.ask().params for _ in range(2)]
    assert sorted(map(str, found)) == ["{'kind': 'a', 'n': 1}", "{'kind': 'b'}"]
    with pytest.raises(SpaceExhausted):
        optimizer.ask()


def test_a_fixed_value_holds_where_it_exists() -> None:
    for space, fixed in ((FINITE, {"n": 3}), (MIXED, {"depth": 7})):
        held = holding(Optimizer(space, method="random"), fixed, 0)
        assert held.candidates is not None
        (name,) = fixed
        kinds = {params[space.names[0]] for params in held.candidates}
        assert len(kinds) == 2
        assert all(params.get(name, fixed[name]) == fixed[name] for params in held.candidates)
    trees = holding(Optimizer(MIXED, method="random"), {"booster": "tree"}, 0)
    assert trees.candidates is not None
    assert len({params["depth"] for params in trees.candidates}) == 9
    assert len({params["eta"] for params in trees.candidates}) > 1000
