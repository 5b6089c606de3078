"""Values as users and files give them: what a space understands, what it refuses, and how it says so."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo.space.space import GRID_LIMIT, Space


def test_text_from_files_is_understood() -> None:
    space = Space(
        {
            "n": IntDistribution(1, 64),
            "x": FloatDistribution(0, 1),
            "c": CategoricalDistribution([8, 16, 32]),
            "k": CategoricalDistribution([None, True, 0.5, 2, "sqrt"]),
        }
    )
    typed = space.encode({"n": 32, "x": 0.25, "c": 32, "k": True})
    for n, x, c, k in [("32", "0.25", "32", "True"), ("32.0", " 2.5e-1", "32.0", "true")]:
        np.testing.assert_array_equal(space.encode({"n": n, "x": x, "c": c, "k": k}), typed)
    *_, k_axis = space.axes
    texts = k_axis.encode(["None", "0.50", "2.0", "sqrt", np.float64(2), np.int64(2), np.str_("sqrt")])
    np.testing.assert_array_equal(texts, k_axis.encode([None, 0.5, 2, "sqrt", 2, 2, "sqrt"]))


def test_a_choice_matches_its_own_type_first() -> None:
    axis = Space({"x": CategoricalDistribution([1, True, "1", "True"])}).axes[0]
    np.testing.assert_array_equal(axis.encode([1, True, "1", "True"]), [1 / 8, 3 / 8, 5 / 8, 7 / 8])


@pytest.mark.parametrize(
    ("dist", "below", "above", "off"),
    [
        (FloatDistribution(0, 1), -0.1, 1.1, "auto"),
        (FloatDistribution(1e-5, 1e-1, log=True), 0, math.inf, None),
        (FloatDistribution(0, 1, step=0.1), -math.inf, 1e308, 0.15),
        (FloatDistribution(0.5, 0.5), 0.5 - 1e-9, 0.5 + 1e-9, math.nan),
        (IntDistribution(1, 9), 0, 10.2, 2.5),
        (IntDistribution(1, 10**12), 0, 10**12 + 1, 10**9 + 0.5),
        (IntDistribution(1, 9, step=4), -3, 13, 3),
        (IntDistribution(1, 9, log=True), 0.4, 1e99, [1, 2]),
        (CategoricalDistribution([1, 10, 100]), 0, 101, 11),
    ],
)
def test_values_that_cannot_be_placed(dist: BaseDistribution, below: Any, above: Any, off: Any) -> None:
    space = Space({"x": dist})
    (axis,) = space.axes
    assert axis.encode([below])[0] == -math.inf
    assert axis.encode([above])[0] == math.inf
    for bad in (off, math.nan, None, "many", [3], [[1, 2]], 10**400):
        assert not np.isfinite(axis.encode([bad])[0])
        with pytest.raises(ValueError, match=r"^'x' is .*, expected (a number|an integer|one of) "):
            space.encode({"x": bad})


def test_nominal_refuses_what_it_does_not_know() -> None:
    space = Space({"opt": CategoricalDistribution(["adam", "sgd", None])})
    for bad in ("Adam", ["adam"], {}, 3, math.nan):
        with pytest.raises(ValueError, match=r"'opt' is .*, expected one of \['adam', 'sgd', None\]"):
            space.encode({"opt": bad})


def test_step_rounding_errors_are_forgiven() -> None:
    axis = Space({"x": FloatDistribution(0.1, 0.5, step=0.1)}).axes[0]
    values = [0.1 + i * 0.1 for i in range(5)]  # 0.30000000000000004 among them
    assert [axis.decode(u) for u in axis.encode(values)] == [0.1, 0.2, 0.3, 0.4, 0.5]


@pytest.mark.parametrize(
    "dist",
    [
        FloatDistribution(1e-300, 1e300, log=True),
        FloatDistribution(1e-300, 1e-299, log=True),
        FloatDistribution(1000, 1000 * (1 + 1e-12), log=True),
        FloatDistribution(5, 5 + 1e-9),
        FloatDistribution(1e6, 1e6 + 1e-9),
        FloatDistribution(-1e-300, 1e-300),
        FloatDistribution(-1e300, 1e300),
        FloatDistribution(0, 1e-12, step=1e-15),
        FloatDistribution(-1e-20, -1e-20),
        IntDistribution(-(10**12), 10**12),
        IntDistribution(1, 10**12, log=True),
        IntDistribution(10**12, 10**12 + 50),
        IntDistribution(0, 10**15, step=10**5),
    ],
)
def test_extreme_ranges(dist: FloatDistribution | IntDistribution, rng: np.random.Generator) -> None:
    space = Space({"x": dist})
    for u in [0.0, 1.0, 0.5, *rng.random(200), *(10.0 ** -rng.uniform(0, 20, 50))]:
        params = space.decode([u])
        assert dist.low <= params["x"] <= dist.high
        assert space.decode(space.encode(params)) == params
    assert space.encode({"x": dist.low})[0] < space.encode({"x": dist.high})[0] or dist.single()


@pytest.mark.parametrize(
    ("dist", "error", "message"),
    [
        (FloatDistribution(0, math.inf), ValueError, "finite bounds"),
        (FloatDistribution(-1e308, 1e308), ValueError, "finite bounds"),
        (IntDistribution(0, 10**18), ValueError, "use a larger step or a float"),
        (FloatDistribution(1, 2, step=1e-14), ValueError, "use a larger step or a float"),
        (CategoricalDistribution([1, 1.0]), ValueError, "has duplicate choices"),
        ((0, 1), TypeError, "expected an Optuna"),
    ],
)
def test_a_distribution_that_cannot_be_used_is_named(dist: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"'x' .*{message}"):
        Space({"x": dist})


@pytest.mark.filterwarnings("ignore:Choices for a categorical distribution:UserWarning")
def test_choices_must_be_plain_values() -> None:
    with pytest.raises(TypeError, match="'x' has the choice"):
        Space({"x": CategoricalDistribution([[1, 2], [3]])})


def test_errors_name_the_parameter() -> None:
    space = Space({"a": IntDistribution(1, 3), "b": FloatDistribution(0, 1)})
    with pytest.raises(ValueError, match=r"missing \['b'\], unknown \['c'\]\); it has \['a', 'b'\]"):
        space.encode({"a": 1, "c": 2})
    with pytest.raises(ValueError, match=r"'a' is 7, expected an integer in \[1, 3\]"):
        space.encode({"a": 7, "b": 0.5})
    with pytest.raises(ValueError, match="continuous"):
        space.grid()
    with pytest.raises(ValueError, match=f"{GRID_LIMIT:,}"):
        Space({"a": IntDistribution(1, 10**6)}).grid()
    with pytest.raises(ValueError, match="at least one"):
        Space({})


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, r"\(missing \['lr'\]\); it has \['lr'\]$"),
        ({"lr": 0.1, "n": 1}, r"\(unknown \['n'\]\)"),
        ({"n": 1}, "missing.*unknown"),
    ],
)
def test_names_must_match(params, message):
    with pytest.raises(ValueError, match=f"parameters do not match the space {message}" if "(" in message else message):
        Space({"lr": FloatDistribution(0, 1)}).encode(params)
    with pytest.raises(ValueError, match=r"^a space needs at least one parameter, got none$"):
        Space({})


@pytest.mark.parametrize(
    ("dist", "words"),
    [
        (IntDistribution(1, 9), "an integer in [1, 9]"),
        (IntDistribution(1, 9, step=2), "an integer in [1, 9] in steps of 2"),
        (FloatDistribution(0, 1, step=0.25), "a number in [0, 1] in steps of 0.25"),
        (FloatDistribution(0, 4, step=1), "a number in [0, 4] in steps of 1"),
        (FloatDistribution(0, 1), "a number in [0, 1]"),
        (CategoricalDistribution([4, 2]), "one of [2, 4]"),
        (CategoricalDistribution(["b", "a"]), "one of ['b', 'a']"),
    ],
)
def test_what_is_expected_is_said_in_words(dist, words):
    with pytest.raises(ValueError, match=rf"^'p' is 'junk', expected {re.escape(words)}"):
        Space({"p": dist}).encode({"p": "junk"})


@pytest.mark.parametrize(
    ("dist", "value", "u"),
    [
        (IntDistribution(2, 8, step=2), 3, math.nan),  # between two steps: neither outside nor a value
        (IntDistribution(2, 8, step=2), 1, -math.inf),
        (IntDistribution(2, 8, step=2), 9, math.inf),
        (CategoricalDistribution([2, 4]), 3, math.nan),
        (CategoricalDistribution([2, 4]), 1, -math.inf),
        (CategoricalDistribution([2, 4]), 5, math.inf),
        (FloatDistribution(0, 1, step=0.5), 0.25, math.nan),
        (FloatDistribution(0, 1), "junk", math.nan),
    ],
)
def test_values_outside_and_values_between_are_told_apart(dist, value, u):
    np.testing.assert_array_equal(Space({"p": dist}).axes[0].encode([value]), [u])
