"""`jumbo run --retry-failed`: what a broken program left is tried again, once each, whenever the process is killed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import optuna
import pytest
from optuna.distributions import IntDistribution
from optuna.trial import FrozenTrial, TrialState
from small_study import SPACE, Log, evaluated, new_study, stored, write_objective

from jumbo_bo.correct import RETRY_OF, enqueue_failed, forget
from jumbo_bo.data.corrections import corrections_in
from jumbo_bo.data.storage import opened
from jumbo_bo.errors import UserError
from jumbo_bo.runner.book import Book, n_counted, opened_book
from jumbo_bo.runner.build import build_optimizer
from jumbo_bo.runner.run import run
from jumbo_bo.space.space import Params, Space
from jumbo_bo.studies import value
from jumbo_bo.study.study_file import StudyFile

A, B, C = ({"x": x, "kind": "a"} for x in (0.25, 0.5, 0.75))
BROKEN = "import no_such_module"


def one_at_a_time(study: StudyFile) -> StudyFile:
    return replace(study, job=replace(study.job, workers=1))


def params_of(trials: Sequence[FrozenTrial]) -> list[Params]:
    return [t.params or t.system_attrs["fixed_params"] for t in trials]


def forgotten(study: StudyFile) -> list[int]:
    with opened(study.address) as storage:
        return sorted(corrections_in(optuna.load_study(study_name=study.name, storage=storage).user_attrs).forgotten)


def failed(book: Book, *configurations: Params) -> None:
    for params in configurations:
        book.add(TrialState.FAIL, params, {})


@pytest.mark.parametrize("storage", ["sqlite:///study.db", "small.journal"])
def test_a_mended_program_starts_as_if_it_had_never_been_broken(study: StudyFile, storage: str) -> None:
    study = one_at_a_time(replace(study, storage=storage, method="gp-ucb"))
    write_objective(study.folder, BROKEN)
    with pytest.raises(UserError, match=r"the command is broken.*jumbo run .*study.toml --retry-failed"):
        run(study, 7, Log())
    broken = params_of(stored(study))
    assert len(broken) == 5

    write_objective(study.folder)
    watch = Log()
    ending = run(study, 7, watch, retry_failed=True)
    trials = stored(study)
    assert watch.notes[0] == "5 failed trials are forgotten and tried again"
    assert (ending.reason, ending.finished, len(trials)) == ("budget", 7, 12), "all of the budget was left"
    assert forgotten(study) == [0, 1, 2, 3, 4]
    assert [t.user_attrs.get(RETRY_OF) for t in trials[5:]] == [0, 1, 2, 3, 4, None, None]
    assert params_of(trials[5:10]) == broken
    assert [t.value for t in trials[5:]] == [t.params["x"] for t in trials[5:]]

    never_broken = build_optimizer(study, 7, watch.note)
    for trial in trials[5:11]:
        never_broken.tell(trial.params, value(trial))
    assert trials[11].params == never_broken.ask().params


def test_a_second_try_may_fail_and_be_tried_again(study: StudyFile) -> None:
    study = one_at_a_time(study)
    with opened_book(study) as book:
        failed(book, A)
    write_objective(study.folder, "if params['x'] == 0.25: sys.exit('still broken')")
    run(study, 2, Log(), retry_failed=True)
    write_objective(study.folder)
    run(study, 2, Log(), retry_failed=True)
    trials = stored(study)
    assert [(t.state.name, t.user_attrs.get(RETRY_OF)) for t in trials] == [
        ("FAIL", None),
        ("FAIL", 0),
        ("COMPLETE", None),
        ("COMPLETE", 1),
    ]
    assert forgotten(study) == [0, 1]
    assert trials[3].params == A


def test_only_the_failed_ones_and_only_once(study: StudyFile) -> None:
    with opened_book(study) as book:
        failed(book, A)
        book.add(TrialState.COMPLETE, B, {}, 0.5)
        book.add(TrialState.PRUNED, C, {})
    run(study, 3, Log(), retry_failed=True)
    watch = Log()
    run(study, 3, watch, retry_failed=True)
    assert watch.notes == ["There is no failed trial to try again"]
    assert evaluated(study) == [A]
    assert forgotten(study) == [0]


def test_without_failed_trials_it_runs(study: StudyFile) -> None:
    watch = Log()
    assert run(study, 2, watch, retry_failed=True).finished == 2
    assert watch.notes == ["There is no failed trial to try again"]


def test_unusable_parameters_are_not_tried_again(study: StudyFile) -> None:
    created = new_study(study)
    for params in ({"x": 7.0, "kind": "a"}, {"y": 1}):
        created.enqueue_trial(params)
    study = one_at_a_time(study)
    run(study, 3, Log())
    before = stored(study)
    assert [t.state.name for t in before] == ["FAIL", "FAIL", "COMPLETE"]
    watch = Log()
    run(study, 3, watch, retry_failed=True)
    assert watch.notes == ["There is no failed trial to try again"]
    assert len(stored(study)) == 3
    assert forgotten(study) == []


@pytest.mark.parametrize("storage", ["sqlite:///study.db", "small.journal"])
def test_killed_between_the_two_writes(study: StudyFile, storage: str) -> None:
    """Enqueued, not marked yet. Whoever comes next neither drops a configuration nor tries it twice."""
    study = replace(study, storage=storage)
    with opened_book(study) as book:
        failed(book, A, B)
        assert enqueue_failed(book.storage, book.study_id, SPACE) == [0, 1]
    assert forgotten(study) == []
    with opened_book(study) as book:
        failed(book, C)
        assert book.retry_failed() == [0, 1, 4]
        assert book.retry_failed() == []
    trials = stored(study)
    assert [t.user_attrs.get(RETRY_OF) for t in trials] == [None, None, 0, 1, None, 4]
    assert params_of(trials) == [A, B, A, B, C, C]
    assert forgotten(study) == [0, 1, 4]

    run(study, 3, Log())
    assert sorted(evaluated(study), key=lambda p: float(p["x"])) == [A, B, C]


def test_killed_while_enqueueing(study: StudyFile) -> None:
    with opened_book(study) as book:
        failed(book, A)
        enqueue_failed(book.storage, book.study_id, SPACE)
        failed(book, B)
        assert book.retry_failed() == [0, 2]
    assert params_of(stored(study)) == [A, A, B, B]


def test_killed_before_the_mark_and_the_second_try_is_over(study: StudyFile) -> None:
    """A run without --retry-failed evaluates what is enqueued; the mark is made up for later."""
    with opened_book(study) as book:
        failed(book, A)
        enqueue_failed(book.storage, book.study_id, SPACE)
    run(one_at_a_time(study), 2, Log())
    assert evaluated(study) == [A]
    with opened_book(study) as book:
        assert book.retry_failed() == [0]
        assert [t.number for t in book.trials()] == [1]
        assert len(book.all_trials()) == 2


def test_failures_count_once_a_trial_has_a_value(study: StudyFile) -> None:
    with opened_book(study) as book:
        failed(book, A, B)
        assert n_counted(book.trials()) == 0
        book.add(TrialState.RUNNING, C, {})
        assert n_counted(book.trials()) == 0
        book.add(TrialState.COMPLETE, C, {}, 1.0)
        assert n_counted(book.trials()) == 3
        forget(book.storage, book.study_id, [0], "odd")
        assert n_counted(book.trials()) == 2
        assert len(book.all_trials()) == 4


def test_a_forgotten_configuration_of_a_finite_space_is_free_again(study: StudyFile) -> None:
    study = replace(study, space=Space({"x": IntDistribution(1, 3)}))
    with opened_book(study) as book:
        failed(book, {"x": 1}, {"x": 2}, {"x": 3})
        assert book.exhausted(book.trials())
        forget(book.storage, book.study_id, [1], "odd")
        assert not book.exhausted(book.trials())
    ending = run(study, 50, Log())
    assert evaluated(study) == [{"x": 2}]
    assert (ending.reason, ending.finished) == ("exhausted", 3)
