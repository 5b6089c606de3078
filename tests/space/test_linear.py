"""Which conditions are bounds on a weighted sum."""

from __future__ import annotations

import math

import pytest

from jumbo_bo.space.formula import parse
from jumbo_bo.space.linear import Linear, linear_parts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a + 2 * b <= 1", [Linear({"a": 1, "b": 2}, -math.inf, 1)]),
        ("1 - a >= b / 2", [Linear({"a": -1, "b": -0.5}, -1, math.inf)]),
        (
            "0.1 < a - b == c",
            [Linear({"a": 1, "b": -1}, 0.1, math.inf, True), Linear({"a": 1, "b": -1, "c": -1}, 0, 0)],
        ),
        ("a <= 0.5 and b >= 0.2", [Linear({"a": 1}, -math.inf, 0.5), Linear({"b": 1}, 0.2, math.inf)]),
        ("-(a + 1) * 3 <= 2", [Linear({"a": -3}, -math.inf, 5)]),
        ("a * b <= 1", None),
        ("a <= 0.5 or b >= 0.2", None),
        ("not a <= 0.5", None),
        ("a != 0.5", None),
        ("1 / a <= 2", None),
    ],
)
def test_bounds_on_sums_are_recognised(text: str, expected: list[Linear] | None) -> None:
    found = linear_parts(parse(text, "abc"))
    if expected is None:
        assert found is None
        return
    assert found is not None
    turned = [Linear(p.c, p.low, p.high, p.strict) for p in found]
    same = [(dict(p.c), p.low, p.high, p.strict) for p in turned]
    wanted = [(dict(p.c), p.low, p.high, p.strict) for p in expected]
    flipped = [({n: -w for n, w in c.items()}, -high, -low, strict) for c, low, high, strict in wanted]
    assert all(a in (b, c) for a, b, c in zip(same, wanted, flipped, strict=True))
