"""Parameters that are held, together with conditions, constraints and lists of candidates; what is saved of them."""

from __future__ import annotations

import numpy as np
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo import Optimizer, Space
from jumbo_bo.errors import InputError
from jumbo_bo.search.candidates import holding
from jumbo_bo.space.beliefs import about

TREE = Space(
    {
        "booster": CategoricalDistribution(["tree", "linear"]),
        "depth": IntDistribution(1, 6),
        "lr": FloatDistribution(0.0, 1.0),
    },
    conditions={"depth": "booster == 'tree'"},
)
STEPS = Space(
    {"booster": CategoricalDistribution(["tree", "linear"]), "depth": IntDistribution(1, 6)},
    conditions={"depth": "booster == 'tree'"},
)
MIX = Space(
    {"a": FloatDistribution(0, 1), "b": FloatDistribution(0, 1), "c": FloatDistribution(0, 1)},
    constraints=["a + b + c == 1"],
)
PAIRS = Space({"a": IntDistribution(0, 4), "b": IntDistribution(0, 4)}, constraints=["a + b <= 5"])


@pytest.mark.parametrize("space", [TREE, STEPS])
@pytest.mark.parametrize("fixed", [{"booster": "linear"}, {"depth": 3}, {"booster": "tree", "depth": 3}])
def test_held_where_parameters_do_not_always_exist(space, fixed):
    params = Optimizer(space, method="gp-ucb").ask(fixed=fixed).params
    assert set(params) == set(space.active(params))
    assert all(params[name] == value for name, value in fixed.items() if name in params)


def test_held_where_constraints_hold():
    optimizer = Optimizer(MIX, method="gp-ucb")
    for i in range(6):
        suggestion = optimizer.ask(fixed={"a": 0.4})
        assert suggestion.params["a"] == 0.4
        assert MIX.allows(suggestion.params)
        optimizer.tell(suggestion, float(i))
    with pytest.raises(InputError, match="cannot be completed"):
        Optimizer(Space(MIX.distributions, constraints=["a + b >= 1.5"])).ask(fixed={"a": 0.1})


@pytest.mark.parametrize(
    ("space", "fixed"),
    [
        (STEPS, {"booster": "tree"}),
        (STEPS, {"depth": 2}),
        (STEPS, {"booster": "linear", "depth": 2}),
        (TREE, {"lr": 0.25}),
        (TREE, {"lr": 0.25, "depth": 2}),
        (PAIRS, {"a": 3}),
    ],
)
def test_as_many_configurations_are_counted_as_there_are(space, fixed):
    found = holding(space, fixed, np.random.default_rng(0))
    assert space.count(fixed) == len({space.encode(params).tobytes() for params in found})


def test_what_cannot_be_counted():
    assert TREE.count({"depth": 2}) is None
    assert MIX.count({"a": 0.4}) is None
    assert TREE.cardinality is None
    assert STEPS.count({}) == STEPS.cardinality == 7


def test_a_belief_about_a_parameter_counts_where_that_exists():
    beliefs = Optimizer(TREE, method="gp-ucb", beliefs={"depth": about(5, within=1)}).beliefs
    u = np.array(
        [TREE.encode(p) for p in ({"booster": "linear", "lr": 0.5}, {"booster": "tree", "lr": 0.5, "depth": 5})]
    )
    far = TREE.encode({"booster": "tree", "lr": 0.5, "depth": 1})
    np.testing.assert_allclose(beliefs.log_pi(u), 0.0)
    assert beliefs.log_pi(far[None])[0, 0] < -3


@pytest.mark.parametrize("space", [TREE, PAIRS])
def test_beliefs_conditions_and_constraints_are_saved(space, tmp_path):
    name = "lr" if space is TREE else "b"
    optimizer = Optimizer(space, method="gp-ucb", beliefs={name: about(1, within=0.1)})
    for i in range(3):
        optimizer.tell(optimizer.ask(), float(i))
    optimizer.save(tmp_path / "study.jumbo")
    again = Optimizer.load(tmp_path / "study.jumbo")
    assert again.space == space
    assert again.beliefs.of == optimizer.beliefs.of
    assert again.ask().params == optimizer.ask().params


def test_a_constraint_that_is_a_function_cannot_be_saved(tmp_path):
    space = Space(PAIRS.distributions, constraints=[lambda params: params["a"] + params["b"] < 3])
    with pytest.raises(InputError, match="a constraint that is a function"):
        Optimizer(space).save(tmp_path / "study.jumbo")
