from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import optuna
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import FloatDistribution
from optuna.trial import create_trial

from jumbo_bo.data.history import History
from jumbo_bo.data.limits import Limit, checked_measured, in_words, limits_of, met
from jumbo_bo.data.readers import from_study, measured, read_history
from jumbo_bo.errors import InputError
from jumbo_bo.space.space import Space

SPACE = Space({"x": FloatDistribution(0, 1)})
NUMBERS = st.floats(-1e6, 1e6)


def test_limits_in_words() -> None:
    assert str(Limit("latency_ms", high=20)) == "latency_ms <= 20"
    assert str(Limit("purity", low=95.5)) == "purity >= 95.5"
    assert str(Limit("ph", 6, 8)) == "6 <= ph <= 8"
    limits = limits_of({"latency_ms": (None, 20), "purity": (95, None)}, ["x"])
    assert in_words(limits, {"latency_ms": 25.0, "purity": 99}) == "latency_ms 25, not <= 20; purity 99"
    assert in_words(limits, {"purity": 90}) == "latency_ms not measured; purity 90, not >= 95"
    assert in_words((), {}) == ""


@given(NUMBERS, NUMBERS, NUMBERS)
def test_what_meets_a_limit_has_no_excess(low: float, high: float, value: float) -> None:
    for limit in (Limit("q", low=low), Limit("q", high=high), *([Limit("q", low, high)] if low < high else [])):
        assert limit.met(value) == (limit.excess(value) <= 0)
        assert limit.excess(value) == max(limit.low - value, value - limit.high)
        assert not limit.met(math.nan)


def test_a_limit_that_was_not_measured_is_not_met() -> None:
    limits = limits_of({"a": (None, 1), "b": (0, None)}, [])
    assert met(limits, {"a": 1.0, "b": 0.0})
    assert not met(limits, {"a": 1.0})
    assert met((), {})


@pytest.mark.parametrize(
    ("limits", "problem"),
    [
        ([("q", 1)], "expected a dict"),
        ({"x": (None, 1)}, "is a parameter"),
        ({"q": 20}, "expected the lowest and the highest value"),
        ({"q": ("a", None)}, "expected the lowest and the highest value"),
        ({"q": (None, None)}, "allow everything"),
        ({"q": (2, 1)}, "the smaller one first"),
        ({"q": (math.nan, 1)}, "the smaller one first"),
        ({"": (None, 1)}, "is not a name"),
    ],
)
def test_limits_that_make_no_sense(limits: object, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        limits_of(limits, SPACE.names)  # type: ignore[arg-type]


def test_what_is_told_of_quantities() -> None:
    limits = limits_of({"latency_ms": (None, 20)}, [])
    assert checked_measured({"latency_ms": 18}, limits) == {"latency_ms": 18.0}
    for nothing in (None, {}, {"latency_ms": None}, {"latency_ms": math.nan}, {"latency_ms": math.inf}):
        assert checked_measured(nothing, limits) == {}
    with pytest.raises(InputError, match="limits are on latency_ms; did you mean 'latency_ms'"):
        checked_measured({"latency": 18}, limits)
    with pytest.raises(InputError, match="there are no limits"):
        checked_measured({"latency": 18}, ())
    with pytest.raises(InputError, match="expected a number, or None"):
        checked_measured({"latency_ms": "fast"}, limits)


def frame(with_q: bool = True) -> pl.DataFrame:
    rows = {"task": ["a"] * 3 + ["b"] * 3, "x": [0.1, 0.2, 0.3] * 2, "loss": [1.0, 2.0, 3.0, 3.0, 2.0, 1.0]}
    return pl.DataFrame(rows | ({"q": [10.0, None, 30.0, 40.0, 50.0, math.nan]} if with_q else {}))


def test_a_quantity_has_a_history_of_its_own() -> None:
    history = History.from_frame(frame(), SPACE, task="task", objective="loss", limits=["q"])
    plain = History.from_frame(frame(), SPACE, task="task", objective="loss")
    assert history.fingerprint == plain.fingerprint
    assert plain.limits == {}
    assert [list(-t.y) for t in history.limits["q"].tasks] == [[10.0, 30.0], [40.0, 50.0]]
    assert "measured as well: q in 4 rows" in history.summary()
    assert "measured as well" not in plain.summary()


def test_files_with_and_without_the_column(tmp_path: Path) -> None:
    frame().filter(task="a").drop("task").write_csv(tmp_path / "a.csv")
    frame(with_q=False).filter(task="b").drop("task").write_csv(tmp_path / "b.csv")
    history = read_history([tmp_path / "a.csv", tmp_path / "b.csv"], SPACE, objective="loss", limits=["q"])
    assert [t.name for t in history.tasks] == ["a", "b"]
    assert [t.name for t in history.limits["q"].tasks] == ["a"]
    both = history + read_history(tmp_path / "b.csv", SPACE, objective="loss")
    assert [t.name for t in both.limits["q"].tasks] == ["a"]
    with pytest.raises(InputError, match="no column 'qq'"):
        read_history(tmp_path / "a.csv", SPACE, objective="loss", limits=["qq"])
    with pytest.raises(InputError, match="is the objective"):
        read_history(tmp_path / "a.csv", SPACE, objective="loss", limits=["loss"])
    with pytest.raises(InputError, match="expected a list of columns"):
        read_history(tmp_path / "a.csv", SPACE, objective="loss", limits="q")


def test_constraints_of_a_study_are_read(rng: np.random.Generator) -> None:
    study = optuna.create_study(study_name="old")
    for i in range(6):
        study.add_trial(
            create_trial(
                value=float(i),
                params={"x": i / 10},
                distributions=SPACE.distributions,
                constraints={"late": i - 2.5} if i else {},
                user_attrs={"measured": {"q": 10.0 * i}} if i < 4 else {},
            )
        )
    history = from_study(study, SPACE)
    assert len(history.tasks[0].y) == 6
    assert list(-history.limits["late"].tasks[0].y) == [-1.5, -0.5, 0.5, 1.5, 2.5]
    assert list(-history.limits["q"].tasks[0].y) == [0.0, 10.0, 20.0, 30.0]
    assert measured(study.trials[2]) == {"late": -0.5, "q": 20.0}
