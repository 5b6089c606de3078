"""Conditions that are learned from configurations."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo.space.space import Space
from jumbo_bo.space.structure import Seen, learned_space

DISTS: dict[str, BaseDistribution] = {
    "booster": CategoricalDistribution(("gbtree", "gblinear", "dart")),
    "lambda": FloatDistribution(0, 1),
    "layers": IntDistribution(1, 4),
    "momentum": CategoricalDistribution((False, True)),
    **{f"units {i}": IntDistribution(1, 9) for i in range(1, 4)},
    "eta": FloatDistribution(0, 1),
    "rate": FloatDistribution(0, 1),
    "both": FloatDistribution(0, 1),
}
TRUE = Space(
    DISTS,
    {
        **{f"units {i}": f"layers > {i}" for i in range(1, 4)},
        "eta": "booster != 'gblinear'",
        "rate": "booster == 'dart'",
        "both": "booster == 'dart' and momentum",
    },
)


def seen(space: Space, seed: int, n: int) -> list[Seen]:
    found = [space.decode(u) for u in space.sample(np.random.default_rng(seed), n)]
    return [Seen(params, {name: space.distributions[name] for name in params}) for params in found]


def test_many_trials_tell_the_whole_structure() -> None:
    space = learned_space([seen(TRUE, 0, 300)])
    assert space is not None
    assert dict(space.conditions) == {
        "both": "booster == 'dart' and momentum == True",
        "eta": "booster in ['gbtree', 'dart']",
        "rate": "booster == 'dart'",
        **{f"units {i}": f"layers > {i}" for i in range(1, 4)},
    }
    assert list(space.distributions)[:4] == ["booster", "lambda", "layers", "momentum"]


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 40))
def test_it_is_true_of_every_trial_it_was_learned_from(seed: int, n: int) -> None:
    tried = seen(TRUE, seed, n)
    space = learned_space([tried])
    assert space is not None
    for trial in tried:
        known = {name: value for name, value in trial.params.items() if name in space.distributions}
        assert set(space.active(known)) == set(known)
        assert space.decode(space.encode(known)).keys() == known.keys()


def test_a_value_that_no_trial_had_may_have_the_parameter() -> None:
    tried = [row("gblinear"), row("dart", rate=0.5)]
    space = learned_space([tried])
    assert space is not None
    assert space.conditions == {"rate": "booster in ['gbtree', 'dart']"}


def row(booster: str, **more: Any) -> Seen:
    params = {"booster": booster, "lambda": 0.5, **more}
    return Seen(params, {name: DISTS[name] for name in params})


def test_without_conditions_it_is_what_all_trials_share() -> None:
    tried = [row("dart", rate=0.1), row("gbtree", rate=0.3)]
    space = learned_space([tried])
    assert space is not None
    assert not space.conditions
    assert list(space.distributions) == ["booster", "lambda", "rate"]


def test_a_range_that_changes_is_left_out() -> None:
    other = Seen({"booster": "dart", "lambda": 2.0}, {"booster": DISTS["booster"], "lambda": FloatDistribution(0, 3)})
    space = learned_space([[row("dart"), other]])
    assert space is not None
    assert list(space.distributions) == ["booster"]


def test_a_parameter_that_comes_and_goes_is_left_out() -> None:
    tried = [row("dart", rate=0.1), row("dart"), row("gbtree", rate=0.1), row("gbtree")]
    space = learned_space([tried])
    assert space is not None
    assert list(space.distributions) == ["booster", "lambda"]


def test_a_study_that_lacks_a_parameter_may_object() -> None:
    new = [row("dart", rate=0.1), row("gbtree")]
    fits = learned_space([new, [row("gbtree"), row("gblinear")]])
    assert fits is not None
    assert fits.conditions == {"rate": "booster == 'dart'"}
    for other in ([row("dart"), row("dart")], []):
        objects = learned_space([[row("dart", rate=0.1)], other, [row("gbtree")]])  # no study has it now and then
        assert objects is not None
        assert "rate" not in objects.conditions
    objects = learned_space([new, [row("dart"), row("dart")]])
    assert objects is not None
    assert "rate" not in objects.distributions


def test_few_trials_do_not_make_a_condition_of_a_number() -> None:
    tried = [row("dart", rate=0.1), row("dart")]
    for i, seen_one in enumerate(tried):
        seen_one.params["lambda"] = 0.1 + 0.5 * i
    space = learned_space([tried])
    assert space is not None
    assert "rate" not in space.distributions


def test_nothing_is_learned_from_nothing() -> None:
    assert learned_space([[]]) is None
    assert learned_space([[Seen({}, {})]]) is None
