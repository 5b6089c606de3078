"""Parameters that exist only under a condition."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution, distribution_to_json

from jumbo_bo.errors import InputError
from jumbo_bo.space.formula import Absent, parse
from jumbo_bo.space.space import Space

BOOSTERS = {
    "booster": CategoricalDistribution(("gbtree", "gblinear", "dart")),
    "depth": IntDistribution(1, 4),
    "updater": CategoricalDistribution(("shotgun", "coord")),
    "deep": FloatDistribution(0, 1),
    "lambda": FloatDistribution(1e-3, 10, log=True),
    "rate": FloatDistribution(0, 1),
}
WHEN = {
    "deep": "depth > 2",
    "depth": "booster in ['gbtree', 'dart']",
    "updater": "booster == 'gblinear'",
    "rate": "booster == 'dart' and `lambda` < 1",
}
SPACE = Space(BOOSTERS, WHEN)
FINITE = Space({**BOOSTERS, **dict.fromkeys(("deep", "lambda", "rate"), IntDistribution(0, 2))}, WHEN)
points = st.lists(st.floats(0, 1), min_size=6, max_size=6)


def oracle(space: Space, params: dict[str, Any]) -> dict[str, Any]:
    """What is left when parameters that should not be there are taken out, one after the other."""
    while True:
        for name, text in space.conditions.items():
            try:
                gone = name in params and not parse(text, space.names).holds(params)
            except Absent:
                gone = True
            if gone:
                params = {other: value for other, value in params.items() if other != name}
                break
        else:
            return params


def everything(space: Space, u: list[float]) -> dict[str, Any]:
    return Space(space.distributions).decode(u)


@given(points)
def test_decode_leaves_out_what_does_not_exist(u: list[float]) -> None:
    found = SPACE.decode(u)
    assert found == oracle(SPACE, everything(SPACE, u))
    assert SPACE.active(found) == tuple(found)
    assert SPACE.active(everything(SPACE, u)) == tuple(found)


@given(points)
def test_encode_and_decode_give_back_each_other(u: list[float]) -> None:
    found = SPACE.decode(u)
    place = SPACE.encode(found)
    assert SPACE.decode(place) == found
    np.testing.assert_array_equal(SPACE.encode(everything(SPACE, u)), place)  # values of what is absent are ignored
    np.testing.assert_array_equal(SPACE.snap(place[None])[0], place)
    there = SPACE.there(place[None])[0]
    assert [name for name, here in zip(SPACE.names, there, strict=True) if here] == list(found)


@given(points, points)
def test_two_points_are_the_same_when_their_configurations_are(a: list[float], b: list[float]) -> None:
    for space in (SPACE, FINITE):
        mixed = [x if i in (0, 4) else y for i, (x, y) in enumerate(zip(a, b, strict=True))]  # the same booster, lambda
        u = np.array([a, b, mixed])
        t, snapped = space.transform(u), space.snap(u)
        for i, j in ((0, 1), (0, 2), (1, 2)):
            equal = space.decode(snapped[i]) == space.decode(snapped[j])
            assert (space.decode(u[i]) == space.decode(u[j])) == equal
            if equal:
                np.testing.assert_allclose(snapped[i], snapped[j], atol=1e-9)
                np.testing.assert_allclose(t[i], t[j], atol=1e-9)


def test_what_is_absent_has_fixed_columns() -> None:
    a, b = SPACE.transform(SPACE.snap(np.array([[0.5, 0.1, 0.1, 0.2, 0.3, 0.4], [0.5, 0.9, 0.1, 0.7, 0.3, 0.9]])))
    np.testing.assert_array_equal(a, b)
    tree = SPACE.transform(np.array([[0.1, 0.1, 0.1, 0.2, 0.3, 0.4]]))[0]
    np.testing.assert_array_equal(tree[[i for i, g in enumerate(SPACE.groups) if g == 2]], [0.5, 0.5])


def test_a_grid_has_every_configuration_once() -> None:
    grid = FINITE.grid()
    found = [json.dumps(FINITE.decode(u)) for u in grid]
    product = Space(FINITE.distributions).grid()
    assert len(set(found)) == len(found) == FINITE.cardinality
    assert set(found) == {json.dumps(oracle(FINITE, everything(FINITE, list(u)))) for u in product}
    np.testing.assert_array_equal(FINITE.snap(grid), grid)
    order = [tuple(u) for u in grid]
    assert order == sorted(order)


def test_a_grid_may_be_small_though_the_product_is_not() -> None:
    kinds = [f"k{i}" for i in range(10)]
    own = {f"{kind}_{j}": IntDistribution(0, 9) for kind in kinds for j in range(3)}
    when = {name: f"kind == '{name.split('_')[0]}'" for name in own}
    space = Space({"kind": CategoricalDistribution(kinds), **own}, when)
    assert space.cardinality == 10 * 1000
    assert len({tuple(u) for u in space.grid()}) == 10_000


def test_one_choice_may_decide_about_all_others() -> None:
    space = Space({"on": CategoricalDistribution((False, True)), "x": IntDistribution(1, 3)}, {"x": "on"})
    assert [space.decode(u) for u in space.grid()] == [
        {"on": False},
        {"on": True, "x": 1},
        {"on": True, "x": 2},
        {"on": True, "x": 3},
    ]


def test_the_fingerprint_without_conditions_is_what_it_was() -> None:
    text = json.dumps([(name, distribution_to_json(dist)) for name, dist in BOOSTERS.items()])
    plain = hashlib.sha256(text.encode()).hexdigest()
    assert Space(BOOSTERS).fingerprint == Space(BOOSTERS, conditions={}).fingerprint == plain
    assert SPACE.fingerprint != plain
    assert Space(BOOSTERS, dict(reversed(WHEN.items()))) == SPACE
    assert Space(BOOSTERS, conditions={**WHEN, "deep": "depth > 3"}) != SPACE


def test_whichever_part_of_a_condition_speaks_of_what_is_absent() -> None:
    kinds = {"kind": CategoricalDistribution(("a", "b")), "sub": CategoricalDistribution(("x", "y"))}
    for text in ("kind == 'a' or sub == 'x'", "sub == 'x' or kind == 'a'"):
        space = Space({**kinds, "z": FloatDistribution(0, 1)}, {"sub": "kind == 'b'", "z": text})
        assert space.active({"kind": "a"}) == ("kind", "z")
        assert space.active({"kind": "b", "sub": "x"}) == ("kind", "sub", "z")
        assert space.active({"kind": "b", "sub": "y"}) == ("kind", "sub")
    hidden = Space({**kinds, "z": FloatDistribution(0, 1)}, {"sub": "kind == 'b'", "z": "not sub == 'x'"})
    assert hidden.active({"kind": "a"}) == ("kind",)


@pytest.mark.parametrize(
    ("when", "words"),
    [
        ({"eta": "booster == 'dart'"}, "condition for 'eta', which is no parameter"),
        ({"depth": "boster == 'dart'"}, "the condition of 'depth'.*'boster', which is no parameter"),
        ({"depth": "depth > 2"}, "in a circle: 'depth' depends on 'depth'"),
        ({"depth": "deep > 0.5", "deep": "depth > 2"}, "in a circle: .* depends on .* depends on"),
        ({"depth": "booster in ['gbtree', 'drat']"}, "'drat' is none of \\['gbtree', 'gblinear', 'dart'\\]"),
        ({"depth": "booster > 2"}, "cannot be decided.*no order"),
        ({"rate": "depth > 4"}, "'rate' would never exist: its condition 'depth > 4' holds for no configuration"),
        ({"depth": "booster == 'dart'", "rate": "depth > 2 and booster == 'gbtree'"}, "'rate' would never exist"),
        ({"rate": "`lambda` > 10"}, "'rate' would never exist"),
        ({"depth": "booster +"}, "the condition of 'depth'.*cannot be read"),
    ],
)
def test_wrong_conditions_are_found_when_the_space_is_made(when: dict[str, str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Space(BOOSTERS, when)


def test_what_must_be_there() -> None:
    with pytest.raises(InputError, match=r"missing \['depth'\]"):
        SPACE.encode({"booster": "gbtree", "lambda": 1.0})
    with pytest.raises(InputError, match=r"missing \['booster'\]"):
        SPACE.encode({"lambda": 1.0, "depth": 2})
    with pytest.raises(InputError, match="'booster' is 'forest', expected one of"):
        SPACE.encode({"booster": "forest", "lambda": 1.0})
    with pytest.raises(InputError, match=r"unknown \['eta'\]"):
        SPACE.encode({"booster": "gblinear", "lambda": 1.0, "updater": "coord", "eta": 1})
    assert SPACE.present({"booster": "gblinear", "lambda": 1.0, "depth": None, "updater": "coord"}) == {
        "booster": "gblinear",
        "lambda": 1.0,
        "updater": "coord",
    }


def test_the_ends_of_a_range_may_decide() -> None:
    space = Space({"x": FloatDistribution(0, 1), "at_end": FloatDistribution(0, 1)}, {"at_end": "x >= 1"})
    assert space.active({"x": 1.0}) == ("x", "at_end")
    assert space.active({"x": 0.999}) == ("x",)
