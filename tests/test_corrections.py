"""A study is corrected: everything that reads it goes on as if it had been right from the start; nothing is deleted."""

import math
import threading

import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import FloatDistribution, IntDistribution
from optuna.storages import InMemoryStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState, create_trial

from jumbo_bo import JumboSampler, corrected_trials, forget_trials, replace_value, restore_trials
from jumbo_bo.data.corrections import CORRECTED, Correction, Corrections, corrections, corrections_in, record
from jumbo_bo.data.readers import from_study
from jumbo_bo.errors import InputError
from jumbo_bo.space.space import Space

SPACE = {"x": FloatDistribution(0, 1), "n": IntDistribution(1, 5)}


@pytest.fixture(params=["memory", "sqlite", "journal"])
def storage(request, tmp_path):
    if request.param == "memory":
        return InMemoryStorage()
    if request.param == "sqlite":
        return RDBStorage(f"sqlite:///{tmp_path}/study.db")
    return JournalStorage(JournalFileBackend(str(tmp_path / "study.journal")))


def value(params):
    return (params["x"] - 0.3) ** 2 + abs(params["n"] - 2)


def study_of(values, storage=None, sampler=None):
    """Trials one after the other; None: failed."""
    study = optuna.create_study(storage=storage, study_name="s", sampler=sampler)
    for i, y in enumerate(values):
        state = TrialState.FAIL if y is None else TrialState.COMPLETE
        params = {"x": (i + 1) / 20, "n": 1 + i % 5}
        study.add_trial(create_trial(state=state, value=y, params=params, distributions=SPACE))
    return study


def seen(study):
    return [(t.number, t.value if t.state == TrialState.COMPLETE else None) for t in corrected_trials(study)]


def test_the_values_that_hold(storage):
    study = study_of([1.0, 2.0, None, 4.0], storage)
    replace_value(study, 1, 0.5, "comma")
    replace_value(study, 2, 3.0)
    replace_value(study, 3, None)
    forget_trials(study, [0], "the pump leaked")
    assert seen(study) == [(1, 0.5), (2, 3.0), (3, None)]
    replace_value(study, 1, math.nan)
    restore_trials(study, [0])
    assert seen(study) == [(0, 1.0), (1, None), (2, 3.0), (3, None)]
    assert [t.value for t in study.trials] == [1.0, 2.0, None, 4.0]  # nothing is deleted


def test_who_looks_sees_what_it_was_when_and_why(storage):
    study = study_of([1.0, 2.0], storage)
    replace_value(study, 1, 0.5, "comma")
    replace_value(study, 1, 0.25)
    forget_trials(study, [0, 1], "the pump leaked")
    entries = corrections(study._storage, study._study_id).entries
    assert [(e.what, e.trials, e.was, e.value, e.why) for e in entries] == [
        ("replaced", (1,), 2.0, 0.5, "comma"),
        ("replaced", (1,), 0.5, 0.25, ""),
        ("forgotten", (0, 1), None, None, "the pump leaked"),
    ]
    day = entries[0].when[:10]
    restore_trials(study, [1])
    (trial,) = corrected_trials(study)
    texts = trial.user_attrs[CORRECTED]
    assert [text.split(f" on {day} ")[0] for text in texts] == [
        "2 replaced by 0.5",
        "0.5 replaced by 0.25",
        "forgotten",
        "restored",
    ]
    assert texts[2].endswith(": the pump leaked")


def test_suggestions_are_those_of_a_study_that_was_right_from_the_start(storage):
    right = [0.9, 0.4, None, 0.6, 0.7]
    study = study_of(
        [0.9, 40.0, 0.1, 0.6, 0.2, 0.7], storage, JumboSampler(search_space=SPACE, method="gp-ucb", seed=3)
    )
    study.ask(SPACE)  # the sampler has followed the wrong ones
    study.tell(6, state=TrialState.FAIL)
    forget_trials(study, [6], "only asked")
    replace_value(study, 1, 0.4)
    replace_value(study, 2, None)
    forget_trials(study, [4], "odd")
    other = optuna.create_study(sampler=JumboSampler(search_space=SPACE, method="gp-ucb", seed=3))
    kept = [t for t in study.trials if t.number not in (4, 6)]
    for trial, y in zip(kept, right, strict=True):
        state = TrialState.FAIL if y is None else TrialState.COMPLETE
        other.add_trial(create_trial(state=state, value=y, params=trial.params, distributions=SPACE))
    assert study.ask(SPACE).params == other.ask(SPACE).params
    told = study.sampler._optimizer.told
    assert [None if math.isnan(y) else y for _, y in told] == right


def test_a_corrected_study_as_old_runs():
    study = study_of([1.0, 2.0, 3.0, None])
    replace_value(study, 0, 10.0)
    replace_value(study, 1, None)
    forget_trials(study, [2], "odd")
    replace_value(study, 3, 20.0)
    history = from_study(study, Space(SPACE))
    (task,) = history.tasks
    assert sorted(task.y) == [-20.0, -10.0]
    assert len(task.failed) == 1


def test_what_cannot_be_corrected():
    study = study_of([1.0, 2.0])
    study.ask(SPACE)
    study.enqueue_trial({"x": 0.5})
    forget_trials(study, [1], "the pump leaked")
    before = dict(study.user_attrs)
    for call, words in [
        (lambda: replace_value(study, 9, 1.0), "there is no trial 9 in this study; it has 0 to 3"),
        (lambda: replace_value(study, True, 1.0), "there is no trial True"),
        (lambda: replace_value(study, 2, 1.0), "trial 2 is still running; it can be corrected once"),
        (lambda: forget_trials(study, [0, 3], "odd"), "trial 3 is still waiting"),
        (lambda: forget_trials(study, [0, 1], "odd"), r"trial 1 is forgotten on .* \(the pump leaked\) already"),
        (lambda: replace_value(study, 1, 1.0), r"trial 1 is forgotten on .*; restore it first"),
        (lambda: restore_trials(study, [1, 0]), "trial 0 is not forgotten"),
        (lambda: replace_value(study, 0, math.inf), "the value of trial 0 is inf, expected a finite number"),
        (lambda: replace_value(study, 0, "high"), "the value of trial 0 is 'high', expected a number"),
    ]:
        with pytest.raises(InputError, match=words):
            call()
    assert study.user_attrs == before
    several = optuna.create_study(directions=["minimize", "maximize"])
    with pytest.raises(InputError, match="several goals"):
        replace_value(several, 0, 1.0)


def test_processes_that_correct_at_the_same_moment_lose_nothing(tmp_path):
    url = f"sqlite:///{tmp_path}/study.db"
    study_of([float(i) for i in range(12)], url)

    def work(numbers):
        mine = optuna.load_study(study_name="s", storage=url)
        for n in numbers:
            replace_value(mine, n, 100.0 + n)

    threads = [threading.Thread(target=work, args=(range(i, 12, 3),)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen(optuna.load_study(study_name="s", storage=url)) == [(i, 100.0 + i) for i in range(12)]


def test_a_study_of_an_earlier_version_and_an_attribute_that_is_not_ours():
    study = study_of([1.0, 2.0, 3.0])
    study.set_user_attr("forgotten", [2])
    study.set_user_attr("correction of my own", "text")
    assert seen(study) == [(0, 1.0), (1, 2.0)]
    restore_trials(study, [2])
    assert seen(study) == [(0, 1.0), (1, 2.0), (2, 3.0)]


NUMBERS = st.integers(0, 4)
ENTRIES = st.lists(
    st.one_of(
        st.builds(lambda n, y: Correction("replaced", (n,), "", "", y), NUMBERS, st.none() | st.floats(-9, 9)),
        st.builds(lambda n: Correction("forgotten", tuple(n), ""), st.sets(NUMBERS, min_size=1)),
        st.builds(lambda n: Correction("restored", tuple(n), ""), st.sets(NUMBERS, min_size=1)),
    ),
    max_size=12,
)


@given(ENTRIES)
def test_the_last_correction_of_a_trial_holds(entries):
    values = dict.fromkeys(range(5), 1.0)
    forgotten = set()
    for entry in entries:  # what they mean, one after the other
        for n in entry.trials:
            if entry.what == "replaced":
                values[n] = entry.value
            elif entry.what == "forgotten":
                forgotten.add(n)
            else:
                forgotten.discard(n)
    study = study_of([1.0] * 5)
    record(study._storage, study._study_id, entries)
    assert corrections_in(study.user_attrs) == Corrections(tuple(entries))
    assert seen(study) == [(n, values[n]) for n in range(5) if n not in forgotten]
