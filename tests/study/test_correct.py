"""Corrections of a guess, typed by a person."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo.errors import UserError
from jumbo_bo.study.correct import Wishes, corrected
from jumbo_bo.study.guess import Guess
from jumbo_bo.study.study_file import span
from jumbo_bo.study.table import Table

RNG = np.random.default_rng(2)
N = 60
FRAME = pl.DataFrame(
    {
        "lr": 10 ** RNG.uniform(-4, -1, N),
        "size": RNG.choice([16, 32, 128], N),
        "a = b": RNG.integers(0, 90, N),
        "solvent": RNG.choice(["DMF", "THF"], N),
        "gpu": RNG.choice(["A100", "V100"], N),
        "dataset": RNG.choice(["a", "b", "c"], N),
        "loss": RNG.normal(size=N),
        "score": RNG.normal(size=N),
    }
)
TABLE = Table(FRAME, N)
FIRST = Wishes(objective="loss")


def after(*texts: str) -> Guess:
    wishes = FIRST
    for text in texts:
        wishes = corrected(wishes, FRAME, wishes.guess(TABLE), text)
    return wishes.guess(TABLE)


@pytest.mark.parametrize(
    ("text", "column", "expected"),
    [
        ("lr = 1e-5 to 1 (log)", "lr", FloatDistribution(1e-5, 1, log=True)),
        ("lr=0.1 to 0.5 step 0.1", "lr", FloatDistribution(0.1, 0.5, step=0.1)),
        ("lr = 0 to 1", "lr", FloatDistribution(0, 1)),
        ("size = 16 to 512 (integer, log)", "size", IntDistribution(16, 512, log=True)),
        ("size = 16 to 512, step 16", "size", IntDistribution(16, 512, step=16)),
        ("size = 16 to 512 (float)", "size", FloatDistribution(16, 512)),
        ("size = 16.0 to 512", "size", FloatDistribution(16, 512)),
        ("size = 64 | 16 | 32", "size", CategoricalDistribution((16, 32, 64))),
        ("a = b = 0 to 50", "a = b", IntDistribution(0, 50)),
        ("solvent = 'DMF' | Water", "solvent", CategoricalDistribution(("DMF", "Water"))),
        ("gpu = parameter", "gpu", CategoricalDistribution(("A100", "V100"))),
        ("score = 0 to 1", "score", FloatDistribution(0, 1)),
        ("dataset = yes", "dataset", CategoricalDistribution(("a", "b", "c"))),
    ],
)
def test_a_parameter(text: str, column: str, expected: BaseDistribution) -> None:
    assert after(text).space.distributions[column] == expected


def test_roles() -> None:
    assert (after().task, after().direction) == ("dataset", "minimize")
    assert "lr" not in after("lr = no").space.names
    assert "lr" in after("lr = no", "lr = parameter").space.names
    assert after("dataset = no").task is None
    assert after("gpu = task").task == "gpu"
    assert "solvent" not in after("gpu = task", "solvent = task").space.names
    other = after("score = objective")
    assert (other.objective, other.direction) == ("score", "maximize")
    assert "loss" not in other.space.names
    assert after("score = minimize").direction == "minimize"
    assert after("loss = maximize").direction == "maximize"
    assert after("loss = maximize", "loss = objective").direction == "maximize"
    assert after("lr = objective, maximize", "loss = 0 to 1").space.distributions["loss"] == FloatDistribution(0, 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lr", "write COLUMN = WHAT"),
        ("lr =", "write COLUMN = WHAT"),
        ("lrr = no", "no column 'lrr'; did you mean 'lr'?"),
        ("loss = no", "first say which column is it instead"),
        ("lr = big", "'big' is not understood; write no, parameter"),
        ("lr = 1 to", "is not understood"),
        ("lr = low to high", "'low' is not a number"),
        ("lr = 1 to nan", "'nan' is not a number"),
        ("lr = 1 to 2 cubic", "'cubic' is not understood; after a range"),
        ("lr = 2 to 1", "no room between 2 and 1"),
        ("lr = 0 to 1 (log)", "a log scale starts above 0"),
        ("lr = 1 to 2 (log, step 0.1)", "and has no step"),
        ("size = 1 to 2 (integer, step 0.5)", "not whole"),
        ("lr = 0 to 1 step -1", "cannot be used"),
        ("lr = 0 to 1, when gpu == 'A100'", "leave out 'when ...'"),
        ("solvent = DMG | THF", "never 'DMG'; did you mean 'DMF'?"),
        ("size = 1 | 1", "cannot be used"),
        ("gpu = 1 to 2", ""),
    ],
)
def test_what_is_not_understood_is_said(text: str, expected: str) -> None:
    if not expected:
        assert after(text).space.distributions["gpu"] == FloatDistribution(1, 2), "whoever insists"
        return
    with pytest.raises(UserError) as caught:
        after(text)
    assert expected in str(caught.value)


RANGES = st.tuples(st.integers(1, 50), st.integers(1, 50), st.booleans()).flatmap(
    lambda t: st.sampled_from(
        [
            IntDistribution(t[0], t[0] + t[1], log=t[2]),
            IntDistribution(t[0], t[0] + 3 * (t[1] + 1), step=t[1] + 1),
            FloatDistribution(t[0] / 7, t[0] / 7 + t[1], log=t[2]),
            FloatDistribution(0.5, 0.5 + t[1] / 4, step=0.25),
            CategoricalDistribution(tuple(range(t[0], t[0] + 2 + t[1] % 4))),
            CategoricalDistribution(("DMF", "THF")),
        ]
    )
)


@given(RANGES)
def test_typed_as_it_is_shown(dist: BaseDistribution) -> None:
    column = "solvent" if isinstance(dist, CategoricalDistribution) and "DMF" in dist.choices else "size"
    assert after(f"{column} = {span(dist)}").space.distributions[column] == dist
