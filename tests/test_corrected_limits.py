"""Measured limits where trials are corrected, parameters are held, beliefs count or the space changes."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState, create_trial

from jumbo_bo import about
from jumbo_bo.correct import forget_trials, replace_value
from jumbo_bo.data.readers import from_study
from jumbo_bo.data.spaces import keep
from jumbo_bo.errors import UserError
from jumbo_bo.methods.averaging import possible
from jumbo_bo.methods.mixture import _worth
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.report.rows import rows
from jumbo_bo.runner import people
from jumbo_bo.runner.book import best, opened_book
from jumbo_bo.runner.build import build_optimizer
from jumbo_bo.space.space import Space
from jumbo_bo.studies import follow
from jumbo_bo.study.study_file import load

SPACE = Space({"a": FloatDistribution(0, 1), "b": FloatDistribution(0, 1)})
LIMITS = {"latency_ms": (None, 20.0)}
POINTS = [({"a": a, "b": b}, a + b, 30 * a) for a, b in ((0.2, 0.3), (0.9, 0.1), (0.5, 0.9), (0.4, 0.2), (0.8, 0.8))]
STUDY = """
name = "fast"
trials = 6
[space]
a = { type = "float", low = 0, high = 1 }
b = { type = "float", low = 0, high = 1 }
[limits]
latency_ms = { max = 20 }
"""


def told(values=None, **options):
    optimizer = Optimizer(SPACE, limits=LIMITS, **options)
    for i, (params, y, latency) in enumerate(POINTS):
        optimizer.tell(params, (values or {}).get(i, y), {"latency_ms": latency})
    return optimizer


@pytest.fixture
def study(tmp_path):
    (tmp_path / "study.toml").write_text(STUDY)
    file = load(tmp_path / "study.toml")
    with opened_book(file) as book:
        people.tell(book, [people.Entry("", None, params, y, {"latency_ms": q}) for params, y, q in POINTS])
    return file


@pytest.mark.parametrize("value", [-3.0, math.nan])
def test_a_replaced_value_keeps_what_was_measured(value):
    optimizer, expected = told(), told({3: value})
    optimizer.predict([POINTS[0][0]])  # all models have followed
    optimizer.replace(POINTS[3][0], value)
    assert optimizer.best == expected.best
    a, b = optimizer.ask(), expected.ask()
    assert a.params == b.params
    assert a.explanation.limits == b.explanation.limits != {}


def test_the_best_of_corrected_trials_meets_the_limits():
    optimizer = told()
    optimizer.replace(POINTS[1][0], -9.0)  # 27 ms
    assert optimizer.best.params == POINTS[0][0]
    optimizer.forget([POINTS[0][0], POINTS[3][0]])
    assert optimizer.best.params == POINTS[2][0]


def test_held_parameters_and_beliefs_leave_limits_as_they_are():
    optimizer = told(beliefs={"b": about(0.3, within=0.05)})
    suggestion = optimizer.ask(fixed={"a": 0.35})
    assert suggestion.params["a"] == 0.35
    (chance,) = suggestion.explanation.limits.values()
    assert 0.5 < chance < 1
    copy = optimizer.restarted()
    assert (copy.limits, copy.beliefs.of) == (optimizer.limits, optimizer.beliefs.of)
    for params, y, latency in POINTS:
        copy.tell(params, y, {"latency_ms": latency})
    assert copy.ask(fixed={"a": 0.35}).params == suggestion.params


def test_a_score_counts_limits_success_and_beliefs():
    view = told(beliefs={"b": about(0.3)}).view()
    blocks = view.domain.featurise(SPACE.sample(np.random.default_rng(0), 50))
    score = lambda at: -np.sum(at["x"] ** 2, axis=1)  # noqa: E731
    half = lambda x: np.full(len(x), 0.5)  # noqa: E731
    parts = score(blocks) + view.limits.chance(view.pending)(blocks) + blocks["belief"] @ view.credence
    found = _worth(view, score, half)(blocks)
    close = found > found.max() - 5
    np.testing.assert_allclose(found[close], parts[close] + np.log(0.5))
    assert (possible(score, None)(blocks) >= _worth(view, score, None)(blocks)).all()


def test_a_corrected_study_with_limits(study):
    with opened_book(study) as book:
        assert best(book.trials(), study).number == 0
        book.replace({1: -9.0, 3: -1.0}, "typed wrongly")
        top = best(book.trials(), study)
        assert (top.number, top.value) == (3, -1.0)
        found = rows(book.all_trials(), study.space, study.direction, {0: "forgotten"}, study.limits)
        assert [r.quantities["latency_ms"] for r in found] == [latency for _, _, latency in POINTS]
        assert [r.number for r in found if r.improved] == [2, 3]
        optimizer = follow(build_optimizer(study, study.trials, print), book.trials())
        assert optimizer.best.params == POINTS[3][0]
        expected = told({1: -9.0, 3: -1.0})
        assert [t.measured for t in optimizer._trials] == [t.measured for t in expected._trials]
        book.forget([3], "leaked")
        assert best(book.trials(), study).number == 0
        assert follow(optimizer, book.trials()).best.params == POINTS[0][0]


def test_quantities_cannot_be_replaced_without_notice(study):
    with opened_book(study) as book:
        for entry in (
            people.Entry("line 1: ", 3, None, 0.1, {"latency_ms": 7.0}),
            people.Entry("", 3, None, 0.1, {"q": 1.0}),
        ):
            with pytest.raises(UserError, match="keeps what was measured"):
                people.replace(book, [entry], "")
        assert book.corrections().entries == ()


def test_trials_of_an_earlier_space_keep_what_they_measured(study):
    wider = replace(study, space=Space({**SPACE.distributions, "c": FloatDistribution(0, 1)}))
    with opened_book(wider) as book:
        kept = book.kept()
        assert kept.trials == ()
        assert len(kept.old_runs) == len(POINTS)
        optimizer = build_optimizer(wider, 6, print, whole=True, earlier=kept.old_runs)
        (task,) = optimizer.history.limits["latency_ms"].tasks
        np.testing.assert_allclose(np.sort(-task.y), sorted(latency for _, _, latency in POINTS))
        asked = list(people.ask(book, 1, print))
    assert set(asked[0].params) == {"a", "b", "c"}
    defaults = replace(wider, defaults={"c": 0.5})
    with opened_book(defaults) as book:
        assert best(book.trials(), defaults).number == 0  # 1 and 4 do not meet the limit


def test_quantities_of_corrected_old_studies():
    study = optuna.create_study()
    keep(study._storage, study._study_id, SPACE)
    for params, y, latency in POINTS:
        user = {"measured": {"latency_ms": latency}}
        dists = dict(SPACE.distributions)
        study.add_trial(
            create_trial(state=TrialState.COMPLETE, value=y, params=params, distributions=dists, user_attrs=user)
        )
    replace_value(study, 1, -9.0)
    forget_trials(study, [0], "leaked")
    history = from_study(study, SPACE)
    assert sorted(-history.tasks[0].y) == sorted([-9.0, *(y for _, y, _ in POINTS[2:])])
    (task,) = history.limits["latency_ms"].tasks
    np.testing.assert_allclose(np.sort(-task.y), sorted(latency for _, _, latency in POINTS[1:]))
