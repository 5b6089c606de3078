"""A study whose space is changed in the middle: what counts, what becomes old runs, what is not used."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState, create_trial
from small_study import Log, evaluated, stored

from jumbo_bo.correct import forget, replace_values
from jumbo_bo.data.readers import from_storage
from jumbo_bo.data.spaces import Spaces, record_of
from jumbo_bo.runner.book import best, n_counted, opened_book
from jumbo_bo.runner.build import build_optimizer
from jumbo_bo.runner.kept import Sorter, old_runs
from jumbo_bo.runner.people import ask
from jumbo_bo.runner.run import run
from jumbo_bo.space.space import Space
from jumbo_bo.studies import follow
from jumbo_bo.study.study_file import StudyFile

X, KIND = FloatDistribution(0.0, 1.0), CategoricalDistribution(("a", "b"))
POINTS = [{"x": x, "kind": kind} for x, kind in ((0.25, "a"), (0.5, "b"), (0.75, "a"), (0.9, "b"))]


def with_space(
    study: StudyFile, defaults: dict[str, Any] | None = None, **distributions: BaseDistribution
) -> StudyFile:
    return replace(study, space=Space(distributions), defaults=defaults or {})


@pytest.fixture(params=["journal", "sqlite"])
def begun(request: pytest.FixtureRequest, study: StudyFile) -> StudyFile:
    """Four finished trials in the first space."""
    study = replace(study, storage=study.storage if request.param == "journal" else "sqlite:///study.db")
    with opened_book(study) as book:
        for params in POINTS:
            book.add(TrialState.COMPLETE, params, {}, params["x"])
    return study


def numbers(trials: Any) -> list[int]:
    return [t.number for t in trials]


def asked(study: StudyFile, n: int = 1) -> tuple[list[FrozenTrial], list[str]]:
    notes: list[str] = []
    with opened_book(study) as book:
        return list(ask(book, n, notes.append)), notes


def test_a_wider_range_keeps_everything(begun: StudyFile) -> None:
    wider = with_space(begun, x=FloatDistribution(-1.0, 2.0), kind=KIND)
    _, notes = asked(wider)
    assert notes == [
        "The space has changed (x: was 0.0 to 1.0, now -1.0 to 2.0): 4 of 4 finished trials count as before"
    ]
    assert asked(wider)[1] == []  # said once
    with opened_book(wider) as book:
        told = follow(build_optimizer(wider, 9, notes.append), book.trials()).told
        assert [params for params, _ in told] == POINTS


def test_what_is_outside_is_not_used_until_it_is_inside_again(begun: StudyFile) -> None:
    narrow = with_space(begun, x=FloatDistribution(0.4, 0.8), kind=KIND)
    with opened_book(narrow, create=False) as book:
        kept = book.kept()
        assert numbers(kept.trials) == [1, 2]
        assert kept.unused == (
            (0, "'x' is 0.25, expected a number in [0.4, 0.8]"),
            (3, "'x' is 0.9, expected a number in [0.4, 0.8]"),
        )
        assert str(kept).endswith(
            "2 of 4 finished trials count as before, 2 are not used "
            "(trial 0: 'x' is 0.25, expected a number in [0.4, 0.8])"
        )
        assert json.loads(json.dumps(kept.to_json()))["unused"][1]["trial"] == 3
        assert n_counted(book.trials()) == 2
        top = best(book.trials(), book.file)
        assert top is not None
        assert top.number == 1
    with opened_book(begun) as book:
        assert numbers(book.trials()) == [0, 1, 2, 3]


def test_another_choice_can_be_suggested_and_stored(begun: StudyFile) -> None:
    """Optuna itself refuses to store it."""
    more = with_space(begun, x=X, kind=CategoricalDistribution(("a", "b", "c")))
    trials, _ = asked(more, 12)
    assert {t.params["kind"] for t in trials} == {"a", "b", "c"}
    with opened_book(more) as book:
        assert {name for t in book.trials() for name in t.params} == {"x", "kind"}
        own = book.add(TrialState.COMPLETE, {"x": 0.1, "kind": "c"}, {}, 0.1)
        assert own.params == {"x": 0.1, "kind": "c"}
        assert numbers(book.trials()) == list(range(17))
        assert best(book.trials(), book.file) == own
        history = from_storage(book.storage, more.space, [more.name])
        assert len(history.tasks[0].y) == 5
    assert stored(more)[-1].params == {"x": 0.1, "kind [2]": "c"}
    with opened_book(begun) as book:  # and back: what has the choice 'c' is not used
        assert book.kept().unused[-1] == (16, "'kind' is 'c', expected one of ['a', 'b']")
        assert book.add(TrialState.COMPLETE, POINTS[0], {}, 3.0).params == POINTS[0]
    assert set(stored(more)[-1].params) == {"x", "kind"}


def test_a_run_goes_on_in_the_changed_space(begun: StudyFile) -> None:
    changed = with_space(begun, x=IntDistribution(0, 1), kind=CategoricalDistribution(("c", "b")))
    log = Log()
    ending = run(changed, 2, log)
    assert (ending.reason, ending.finished) == ("budget", 2)
    assert "0 of 4 finished trials count as before, 4 are not used" in log.notes[0]
    assert all(params["x"] in (0, 1) and params["kind"] in "bc" for params in evaluated(changed))


def test_a_new_parameter_with_a_default(begun: StudyFile) -> None:
    deeper = with_space(begun, {"depth": 2}, x=X, kind=KIND, depth=IntDistribution(1, 4))
    _, notes = asked(deeper)
    assert notes[0].endswith("4 of 4 finished trials count as before")
    with opened_book(deeper) as book:
        assert [t.params for t in book.trials()[:4]] == [params | {"depth": 2} for params in POINTS]
        assert [t.params for t in book.all_trials()[:4]] == [params | {"depth": 2} for params in POINTS]
        told = follow(build_optimizer(deeper, 9, notes.append), book.trials()).told
        assert [params["depth"] for params, _ in told] == [2, 2, 2, 2]
    assert [set(t.params) for t in stored(deeper)[:4]] == [{"x", "kind"}] * 4


def test_a_new_parameter_without_a_default_makes_old_runs(begun: StudyFile) -> None:
    deeper = replace(with_space(begun, x=X, kind=KIND, depth=IntDistribution(1, 4)), method="jumbo-mixture")
    with opened_book(deeper) as book:
        kept = book.kept()
        assert (numbers(kept.trials), numbers(kept.old_runs)) == ([], [0, 1, 2, 3])
        assert "4 are old runs of the same problem (trial 0 has no 'depth', which has no default)" in str(kept)
        assert kept.left_out == dict.fromkeys(range(4), "earlier")
        history = old_runs(deeper, kept.old_runs)
        assert history is not None
        (task,) = history.tasks
        assert task.name == "small, earlier space"
        np.testing.assert_allclose(-task.y, [0.25, 0.5, 0.75, 0.9])
        np.testing.assert_allclose(task.u[:, 0], [0.25, 0.5, 0.75, 0.9])
        optimizer = build_optimizer(deeper, 9, lambda text: None, earlier=kept.old_runs)
        assert optimizer.past is not None
        assert optimizer.past.tasks == ("small, earlier space",)
        assert build_optimizer(deeper, 9, lambda text: None).past is None


def test_a_parameter_that_is_gone_makes_old_runs(begun: StudyFile) -> None:
    with opened_book(begun) as book:
        book.add(TrialState.FAIL, {"x": 0.6, "kind": "a"}, {})
    fewer = with_space(begun, x=X)
    with opened_book(fewer) as book:
        kept = book.kept()
        assert (numbers(kept.trials), numbers(kept.old_runs)) == ([], [0, 1, 2, 3, 4])
        assert "(trial 0 has 'kind', which is gone)" in str(kept)
        history = old_runs(fewer, kept.old_runs)
        assert history is not None
        np.testing.assert_allclose(history.tasks[0].failed, [[0.6]])
    only = with_space(begun, x=X, kind=CategoricalDistribution(("b",)))  # fixed: these trials stay
    with opened_book(only) as book:
        assert numbers(book.trials()) == [1, 3]


def test_corrected_trials_of_an_earlier_space(begun: StudyFile) -> None:
    fewer = with_space(begun, x=X)
    with opened_book(fewer) as book:
        book.kept()
        replace_values(book.storage, book.study_id, {0: 7.0})
        forget(book.storage, book.study_id, [1], "odd")
        history = old_runs(fewer, book.kept().old_runs)
        assert history is not None
        assert sorted(-history.tasks[0].y) == [0.75, 0.9, 7.0]


def test_an_open_trial_of_the_earlier_space_can_be_told(begun: StudyFile) -> None:
    with opened_book(begun) as book:
        trial = book.add(TrialState.RUNNING, POINTS[0], {})
    with opened_book(with_space(begun, x=FloatDistribution(0.4, 0.8), kind=KIND)) as book:
        assert trial.number in numbers(book.trials())
        assert book.finish(trial, 1.0, {}) is not None
        assert trial.number not in numbers(book.trials())


def test_an_unchanged_space_is_never_looked_at(begun: StudyFile) -> None:
    """Whatever is in the study counts as before, also what others have added."""
    with opened_book(begun) as book:
        odd = {"x": 9.0}
        template = create_trial(value=1.0, params=odd, distributions={"x": FloatDistribution(0, 9)})
        book.storage.create_new_trial(book.study_id, template_trial=template)
        assert len(book.trials()) == 5
        assert book.kept().changes == ()
    reordered = with_space(begun, kind=KIND, x=X)
    assert asked(reordered)[1] == []


NAMES = ("p", "q", "r")
SPACES = st.dictionaries(
    st.sampled_from(NAMES),
    st.sampled_from(
        [FloatDistribution(0, 1), FloatDistribution(0.3, 0.7), IntDistribution(0, 1), CategoricalDistribution((0, 0.5))]
    ),
    min_size=1,
)


@given(SPACES, SPACES, st.dictionaries(st.sampled_from(NAMES), st.just(0.5)), st.integers(0, 99))
def test_every_trial_is_kept_as_exactly_one(
    before: dict[str, Any], after: dict[str, Any], values: dict[str, Any], seed: int
) -> None:
    """And those that count are points of the space."""
    was, space = Space(before), Space(after)
    defaults = {
        n: v for n, v in values.items() if n in after and np.isfinite(space.axes[space.names.index(n)].encode([v])[0])
    }
    file = StudyFile(Path("study.toml"), "s", space, defaults=defaults)
    rows = [was.decode(u) for u in was.sample(np.random.default_rng(seed), 8)]
    trials = [create_trial(value=1.0, params=params, distributions=before) for params in rows]
    for number, trial in enumerate(trials):
        trial.number = number
    kept = Sorter(file, Spaces((record_of(was), record_of(space)), {}, {})).sort(trials)
    found = [*numbers(kept.trials), *numbers(kept.old_runs), *(n for n, _ in kept.unused)]
    assert sorted(found) == list(range(8))
    for trial in kept.trials:
        space.encode({name: trial.params[name] for name in space.names})
    if set(before) == set(after):
        assert kept.old_runs == ()
    if defaults.keys() == after.keys() and set(before) <= set(after):
        assert kept.old_runs == ()
    assert str(kept) if before != after else True


def test_a_condition_that_changes(begun: StudyFile) -> None:
    """Where the parameter no longer exists its value is ignored; where it does, trials need one."""
    dists: dict[str, BaseDistribution] = {"x": X, "kind": KIND}
    some = replace(begun, space=Space(dists, conditions={"x": "kind == 'a'"}))
    _, notes = asked(some)
    assert notes == [
        "The space has changed (x: was 0.0 to 1.0, now 0.0 to 1.0, when kind == 'a'): 4 of 4 finished trials count as "
        "before"
    ]
    assert asked(some)[1] == []
    with opened_book(some) as book:
        told = follow(build_optimizer(some, 9, notes.append), book.trials()).told
        assert [params for params, _ in told] == [p if p["kind"] == "a" else {"kind": "b"} for p in POINTS]
        lacking = book.add(TrialState.COMPLETE, {"kind": "b"}, {}, 0.5)
    with opened_book(replace(some, space=Space(dists))) as book:
        assert numbers(book.kept().old_runs) == [lacking.number]
        assert old_runs(replace(some, space=Space(dists)), book.old_runs()) is not None
    with opened_book(replace(some, space=Space(dists), defaults={"x": 0.5})) as book:
        assert book.kept().old_runs == ()
