"""What a user believes, as a weight of every configuration."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo.errors import InputError
from jumbo_bo.space.beliefs import WRONG, Beliefs, about
from jumbo_bo.space.space import Space

SPACE = Space(
    {
        "lr": FloatDistribution(1e-5, 1e-1, log=True),
        "width": IntDistribution(16, 1024, log=True),
        "depth": IntDistribution(1, 9, step=2),
        "batch": CategoricalDistribution([256, 32, 64]),
        "optimizer": CategoricalDistribution(["adam", "sgd", "lion"]),
        "dropout": FloatDistribution(0.0, 0.5),
    }
)
POINT = {"lr": 1e-3, "width": 128, "depth": 5, "batch": 64, "optimizer": "sgd", "dropout": 0.1}


def log_pi(beliefs, **changes):
    return float(Beliefs(SPACE, beliefs).log_pi(SPACE.encode(POINT | changes)[None]).sum())


def bell(z):
    return math.log((1 - WRONG) * math.exp(-0.5 * z**2) + WRONG)


def test_the_weight_of_a_value_by_hand():
    factor = {"lr": about(1e-3, factor=5)}
    assert log_pi(factor) == pytest.approx(0.0)
    assert log_pi(factor, lr=5e-3) == pytest.approx(bell(1))
    assert log_pi(factor, lr=4e-5) == pytest.approx(bell(2))
    assert log_pi({"width": about(128, factor=2)}, width=32) == pytest.approx(bell(2))
    assert log_pi({"depth": about(5, within=2)}, depth=9) == pytest.approx(bell(2))
    assert log_pi({"batch": about(64, factor=2)}, batch=256) == pytest.approx(bell(2))
    assert log_pi({"dropout": about(0.1, within=0.1)}, dropout=0.4) == pytest.approx(bell(3))
    assert log_pi({"optimizer": about("adam", odds=10)}) == pytest.approx(-math.log(10))
    both = {"lr": about(1e-2, factor=10), "optimizer": about("sgd")}
    assert log_pi(both) == pytest.approx(bell(1))


def test_what_is_meant_when_nothing_else_is_said():
    assert log_pi({"lr": 1e-3}, lr=3e-3) == pytest.approx(bell(1))
    assert log_pi({"dropout": 0.1}, dropout=0.15) == pytest.approx(bell(1))
    assert log_pi({"optimizer": "adam"}) == pytest.approx(-math.log(4))
    assert Beliefs(SPACE, {"dropout": "0.1", "lr": about(1e-3)}).of == {
        "lr": about(1e-3, factor=3.0),
        "dropout": about(0.1, within=0.05),
    }


@given(st.lists(st.floats(0, 1), min_size=6, max_size=6))
def test_a_belief_that_is_far_off_costs_no_more_than_its_share(u):
    beliefs = Beliefs(SPACE, {"lr": 1e-5, "width": about(16, factor=1.1), "dropout": about(0.5, within=1e-9)})
    found = beliefs.log_pi(SPACE.snap(np.array([u])))
    assert found.shape == (1, 3)
    assert np.all((math.log(WRONG) - 1e-9 <= found) & (found <= 1e-12))


def test_a_point_with_the_values_that_are_believed_to_be_best():
    beliefs = Beliefs(SPACE, {"lr": about(1e-3, factor=3), "optimizer": about("lion", odds=8), "depth": 7})
    u = np.random.default_rng(0).random(SPACE.d)
    before, after = SPACE.decode(u), SPACE.decode(beliefs.placed(u))
    assert after == before | {"lr": 1e-3, "optimizer": "lion", "depth": 7}


@pytest.mark.parametrize(
    ("beliefs", "words"),
    [
        ({"rate": 1e-3}, r"beliefs name 'rate'; the parameters are \['lr', "),
        ({"lr": 3.0}, r"the belief about 'lr' is 3.0, expected a number in \[1e-05, 0.1\]"),
        ({"lr": about("high")}, "the belief about 'lr' is 'high', expected a number"),
        ({"lr": about(1e-3, factor=0.5)}, "'lr' has factor 0.5, expected a number above 1"),
        ({"dropout": about(0.1, within=0)}, "'dropout' has within 0, expected a number above 0"),
        ({"dropout": about(0.1, within="wide")}, "'dropout' has within 'wide', expected a number above 0"),
        ({"dropout": about(0.1, factor=2)}, "'dropout' has a factor, but the range is not above 0; use within"),
        ({"lr": about(1e-3, factor=2, within=1)}, "'lr' has factor and within, expected factor or within, or none"),
        ({"lr": about(1e-3, odds=2)}, "'lr' has odds, expected factor or within"),
        ({"optimizer": about("adam", factor=2)}, "'optimizer' has factor, expected odds"),
        ({"optimizer": "adamw"}, r"the belief about 'optimizer' is 'adamw', expected one of \['adam'"),
    ],
)
def test_beliefs_that_make_no_sense(beliefs, words):
    with pytest.raises(InputError, match=words):
        Beliefs(SPACE, beliefs)
