"""The verdict: every number in it is measured or computed, and it says nothing about what is not known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import FrozenTrial, create_trial

from jumbo_bo.data.history import History, Task
from jumbo_bo.optimizer import Direction, Optimizer
from jumbo_bo.report.rows import rows
from jumbo_bo.report.verdict import FEWEST, Stop, Verdict, verdict, worthwhile
from jumbo_bo.space.space import Space
from jumbo_bo.studies import REMAINING

SPACE = Space({"x": FloatDistribution(0, 1)})


def trials(points: dict[float, float]) -> list[FrozenTrial]:
    made = []
    for number, (x, y) in enumerate(points.items()):
        made.append(create_trial(params={"x": x}, distributions=SPACE.distributions, value=y))
        made[-1].number = number
    return made


def said(
    points: dict[float, float],
    history: History | None = None,
    direction: Direction = "minimize",
    stop: Stop | None = None,
    method: str = "gp-ucb",
) -> Verdict:
    optimizer = Optimizer(SPACE, history, direction, method=method)
    for x, y in points.items():
        optimizer.tell({"x": x}, y)
    found = trials(points)
    return verdict(rows(found, SPACE, direction), found, direction, optimizer, stop)


def old(x: float, y: float = 3.0) -> History:
    return History(SPACE, (Task("old", np.array([[x], [0.99]]), np.array([y, y - 1.0])),))


def test_before_the_first_value() -> None:
    assert said({}).sentences == ["No trial has a value yet."]


@pytest.mark.parametrize(
    ("points", "direction", "words"),
    [
        ({0.2: 2.0, 0.5: 1.5}, "minimize", "gave 2 here: the best trial is 25% better."),
        ({0.2: 2.0, 0.5: 3.0}, "maximize", "gave 2 here: the best trial is 50% better."),
        ({0.2: -1.0, 0.5: -1.5}, "minimize", "gave -1 here: the best trial is better by 0.5."),
        ({0.2: 0.0, 0.5: -1.5}, "minimize", "gave 0 here: the best trial is better by 1.5."),
        ({0.2: 1.0, 0.5: 1.5}, "minimize", "gave 1 here: no trial is better yet."),
    ],
)
def test_old_settings_that_were_tried(points: dict[float, float], direction: Direction, words: str) -> None:
    assert said(points, old(0.2), direction).old == f"The best settings of the old runs {words}"


def test_old_settings_that_were_not_tried_are_predicted() -> None:
    points = {x / 10: 1.0 + 5 * abs(x / 10 - 0.3) for x in range(0, 11, 2)} | {0.3: 1.0}
    sentence = said(points, old(0.95)).old
    assert "are expected to give 4." in sentence
    assert sentence.endswith("% better.")
    near = said(points, old(0.31)).old
    assert near.endswith((", though that is not certain.", "no trial is as good yet."))


def test_the_chance_is_that_of_the_optimizer_and_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    points = {x / 10: 1.0 + x for x in range(6)}
    asked = []

    def remaining(self: Optimizer, gain: float = 0.0) -> float:
        asked.append(gain)
        return likely

    monkeypatch.setattr(Optimizer, "remaining", remaining)
    for likely, advice in (  # noqa: B007 (it is what `remaining` returns)
        (0.02, "You can stop."),
        (0.12, "You can stop, unless a chance of 12% is worth more trials."),
        (0.7, "It is worth going on."),
    ):
        found = said(points)
        assert found.chance.startswith("Chance that any other configuration is more than 1% better: ")
        assert found.advice == advice
    assert asked == [pytest.approx(0.01)] * 3
    likely = 0.12
    assert said(points, stop=Stop(0.5, 0.2)).advice == "You can stop."
    assert said(points, stop=Stop(0.5, 0.2)).of == "that any other configuration is better by more than 0.5"
    few = dict(list(points.items())[: FEWEST - 1])
    assert said(few).advice == "It is too early to stop."


def test_without_a_model_there_is_no_chance_and_no_advice() -> None:
    found = said({0.1: 1.0, 0.2: 2.0}, old(0.5), method="random")
    assert found.sentences == ["Best so far: 1, in trial 0; 2 trials have a value."]


def test_without_the_optimizer_the_chance_is_the_one_kept_with_the_last_trial() -> None:
    found = trials({x / 10: 1.0 + x for x in range(6)})
    found[3].user_attrs[REMAINING] = {"gain": 0.5, "chance": 0.03}
    kept = verdict(rows(found, SPACE, "minimize"), found, "minimize")
    assert "better by more than 0.5, at trial 3: 3%." in kept.chance
    assert kept.advice == "You can stop."
    assert kept.old == ""


@pytest.mark.parametrize(
    ("values", "top", "gain", "words"),
    [
        ([2.0, 3.0, 4.0], 2.0, 0.02, "more than 1% better"),
        ([-4.0, -3.0, -2.0], -4.0, 0.04, "more than 1% better"),
        (
            [300.0, 301.0, 302.0],
            300.0,
            0.01,
            "better by more than 0.01 (1% of the way from the median trial to the best)",
        ),
        ([-1.0, 1.0, 3.0], -1.0, 0.02, "better by more than 0.02 (1% of the way from the median trial to the best)"),
        ([5.0, 5.0], 5.0, 0.0, "better"),
    ],
)
def test_a_gain_that_may_matter(values: list[float], top: float, gain: float, words: str) -> None:
    found, said = worthwhile(values, top)
    assert math.isclose(found, gain)
    assert said == words
