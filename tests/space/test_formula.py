"""Conditions on parameters as text."""

from __future__ import annotations

import math
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumbo_bo.errors import InputError
from jumbo_bo.space.formula import Absent, parse

NAMES = ("a", "b", "kind", "on", "T (C)")


@pytest.mark.parametrize(
    ("text", "params", "expected"),
    [
        ("a + 2 * b <= 1", {"a": 0.2, "b": 0.4}, True),
        ("a + 2 * b < 1", {"a": 0.2, "b": 0.4}, False),
        ("a + b == 0.3", {"a": 0.1, "b": 0.2}, True),
        ("0 <= a < b", {"a": 1, "b": 2}, True),
        ("0 <= a < b", {"a": 2, "b": 2}, False),
        ("kind == 'x'", {"kind": "x"}, True),
        ("kind in ['x', 'y'] and not on", {"kind": "y", "on": False}, True),
        ("kind not in ('x', 'y') or on", {"kind": "y", "on": False}, False),
        ("not (a == 1 and b == 1)", {"a": 1, "b": 1}, False),
        ("`T (C)` - 10 > -5", {"T (C)": 6.0}, True),
        ("on", {"on": True}, True),
        ("on == True", {"on": True}, True),
        ("kind == None", {"kind": None}, True),
        ("a / b > 1", {"a": 1, "b": 0}, False),
        ("kind == 1", {"kind": "1"}, False),
    ],
)
def test_holds(text: str, params: dict[str, object], expected: bool) -> None:
    assert parse(text, NAMES).holds(params) is expected


def test_names_are_those_it_speaks_of_in_order() -> None:
    assert parse("b + a <= `T (C)` * b", NAMES).names == ("b", "a", "T (C)")


def test_a_parameter_that_is_not_there() -> None:
    formula = parse("kind == 'x' and a < 1", NAMES)
    assert not formula.holds({"kind": "y"})  # decided without a
    with pytest.raises(Absent):
        formula.holds({"kind": "x"})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected text"),
        ("a +", "cannot be read"),
        ("c < 1", "'c', which is no parameter"),
        ("1 < 2", "speaks of no parameter"),
        ("a + b", "neither true nor false"),
        ("-a", "neither true nor false"),
        ("a ** 2 < 1", "not understood"),
        ("__import__('os') == a", "not understood"),
        ("a.real < 1", "not understood"),
        ("a[0] < 1", "not understood"),
        ("(lambda: a)() == 1", "not understood"),
        ("kind in a", "expected a list after 'in'"),
        ("a == [1]", "may only follow 'in'"),
        ("a == 1j", "no value of a parameter"),
        ("a == b'x'", "no value of a parameter"),
        ("f'{a}' == 'x'", "not understood"),
        ("a < 1 if on else b < 1", "neither true nor false"),
        ("(a := 1) < 2", "not understood"),
        ("a < " + "(" * 300 + "1" + ")" * 300, "cannot be read"),
        ("a < " + "-" * 500 + "1", "nested too deeply"),
        ("a < " + "1" * 2000, "at most 1,000"),
    ],
)
def test_anything_else_is_refused(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words.replace("(", r"\(")):
        parse(text, NAMES)


@pytest.mark.parametrize("text", ["kind < 1", "kind + 1 < 2", "not a", "a and b < 1"])
def test_values_of_another_kind_are_named(text: str) -> None:
    with pytest.raises(InputError, match=r"no order|not a number|neither true nor false"):
        parse(text, NAMES).holds({"kind": "x", "a": 1, "b": 0})


numbers = st.floats(-100, 100).map(lambda v: round(v, 3))


@given(numbers, numbers, numbers)
def test_sums_are_those_of_python(a: float, b: float, c: float) -> None:
    assert parse(f"a - b * 2 <= {c}", NAMES).holds({"a": a, "b": b}) == (
        a - b * 2 <= c or math.isclose(a - b * 2, c, rel_tol=1e-9, abs_tol=1e-9)
    )


@given(st.text(max_size=40))
def test_any_text_is_a_formula_or_an_input_error(text: str) -> None:
    with suppress(InputError):
        assert parse(text, NAMES).text == text.strip()


def test_integers_beyond_all_floats_are_compared() -> None:
    huge = "9" * 400
    for text, expected in (
        (f"a == {huge}", False),
        (f"a != {huge}", True),
        (f"a < {huge}", True),
        (f"a > {huge}", False),
    ):
        assert parse(text, ["a"]).holds({"a": 1.5}) is expected


def test_a_chain_ends_where_it_fails() -> None:
    """What comes after decides nothing, even if it asks for a parameter that is not there."""
    assert not parse("1 < a < missing", ["a", "missing"]).holds({"a": 0})
    with pytest.raises(Absent):
        parse("1 < a < missing", ["a", "missing"]).holds({"a": 2})
