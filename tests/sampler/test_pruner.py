"""JumboPruner: what it stops and what it lets run, with old curves and without, and that odd reports do no harm."""

import copy
import math

import numpy as np
import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState, create_trial
from sampled import SPACE

from jumbo_bo import JumboPruner, JumboSampler
from jumbo_bo.data.corrections import KEY
from jumbo_bo.data.readers import outcome
from jumbo_bo.errors import InputError
from jumbo_bo.pruner import EXPECTED, is_due

STEPS = 30
X = {"x": FloatDistribution(0, 1)}


def curve(x, scale=1.0, speed=0.15):
    """Loss after each epoch. It ends at about x; those that are bad start higher, as in practice."""
    steps = np.arange(1, STEPS + 1)
    return scale * (x + 0.05 + (0.5 + x) * np.exp(-speed * steps))


def study_of(xs, scale=1.0, direction="minimize", name="old", steps=range(STEPS), **shape):
    sign = 1 if direction == "minimize" else -1
    study = optuna.create_study(study_name=name, direction=direction)
    for x in xs:
        values = sign * curve(x, scale, **shape)
        reports = dict(zip(steps, map(float, values), strict=True))
        study.add_trial(
            create_trial(params={"x": x}, distributions=X, value=float(values[-1]), intermediate_values=reports)
        )
    return study


def run(study, pruner, x, scale=1.0, sign=1, steps=range(STEPS)):
    """How many epochs a trial gets."""
    trial = study.ask()
    study.pruner = pruner
    for n, (step, value) in enumerate(zip(steps, sign * curve(x, scale), strict=True), 1):
        trial.report(float(value), step)
        if n < STEPS and trial.should_prune():
            study.tell(trial, state=TrialState.PRUNED)
            return n
    study.tell(trial, float(sign * curve(x, scale)[-1]))
    return STEPS


@pytest.fixture
def past():
    rng = np.random.default_rng(0)
    return [study_of(rng.uniform(0, 1, 40), scale, name=f"old-{scale}") for scale in (0.5, 1.0, 2.0)]


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_hopeless_trials_end_early_and_good_ones_run_on(past, direction):
    study, sign = study_of([0.3, 0.5, 0.7], direction=direction, name="new"), 1 if direction == "minimize" else -1
    pruner = JumboPruner(source_studies=past)
    assert run(study, pruner, 0.9, sign=sign) <= 4
    assert run(study, pruner, 0.1, sign=sign) == STEPS
    kept = study.trials[3].user_attrs[EXPECTED]
    assert kept["chance"] < 0.5 / 4
    assert kept["low"] < kept["value"] < kept["high"]
    assert sign * kept["value"] > 0.5


def test_it_works_without_old_curves():
    rng = np.random.default_rng(1)
    study = study_of(rng.uniform(0.2, 1, 12), name="new")
    assert run(study, JumboPruner(), 0.95) < STEPS / 2
    assert run(study, JumboPruner(), 0.02) == STEPS


def test_nothing_is_pruned_before_enough_trials_are_complete(past):
    empty = optuna.create_study()
    assert run(empty, JumboPruner(source_studies=past), 0.9) == STEPS
    few = study_of([0.1, 0.2], name="new")
    assert run(few, JumboPruner(), 0.9) == STEPS
    assert JumboPruner().expect(empty, empty.ask()._get_latest_trial()) is None


def test_old_curves_that_mislead_do_not_stop_the_good_ones():
    """In the old studies a run that starts low ends high; in this one it is the other way round."""
    rng = np.random.default_rng(2)
    old = optuna.create_study(study_name="misleading")
    for x in rng.uniform(0, 1, 60):
        values = np.linspace(0.6 - 0.5 * x, x, STEPS)
        old.add_trial(create_trial(value=float(values[-1]), intermediate_values=dict(enumerate(map(float, values)))))
    pruner = JumboPruner(source_studies=old)
    for x in (0.05, 0.1):
        assert run(study_of(rng.uniform(0.2, 1, 8), name="new"), pruner, x) == STEPS


@pytest.mark.parametrize(
    "steps", [range(1, STEPS + 1), range(0, 1000 * STEPS, 1000), range(1000, 1000 * STEPS + 1, 1000)]
)
def test_steps_may_be_counted_otherwise_than_in_old_studies(past, steps):
    study = study_of([0.3, 0.5, 0.7], name="new", steps=steps)
    pruner = JumboPruner(source_studies=past)
    assert run(study, pruner, 0.9, steps=steps) <= 4
    assert run(study, pruner, 0.1, steps=steps) == STEPS


def test_a_training_that_diverges_is_ended_where_that_has_never_been_good(past):
    for values, ends in (([0.5, math.nan], True), ([0.5, math.inf], True)):
        study = study_of([0.3, 0.5, 0.7], name="new")
        study.pruner = JumboPruner(source_studies=past)
        trial = study.ask()
        for step, value in enumerate(values):
            trial.report(value, step)
        assert trial.should_prune() is ends
    gaps = optuna.create_study(pruner=JumboPruner())  # here no number means: not measured this time
    for x in (0.3, 0.5, 0.7):
        reports = {step: float(v) if step % 2 else math.nan for step, v in enumerate(curve(x))}
        gaps.add_trial(create_trial(value=x, intermediate_values=reports))
    trial = gaps.ask()
    trial.report(math.nan, 0)
    assert not trial.should_prune()


numbers = st.floats(allow_nan=True, allow_infinity=True)
reports = st.dictionaries(st.integers(0, 10**9), numbers, max_size=12)


@given(new=reports, known=st.lists(st.tuples(reports, st.floats(allow_nan=False)), max_size=5), up=st.booleans())
def test_odd_reports_never_raise(new, known, up):
    study = optuna.create_study(direction="maximize" if up else "minimize")
    for values, end in known:
        study.add_trial(create_trial(value=end, intermediate_values=values))
    study.add_trial(create_trial(state=TrialState.RUNNING, intermediate_values=new))
    pruner = JumboPruner(source_studies=study, n_startup_trials=1)
    assert pruner.prune(study, study.trials[-1]) in (True, False)


def test_it_decides_alike_in_every_process(past, tmp_path):
    storage = f"sqlite:///{tmp_path}/study.db"
    optuna.copy_study(from_study_name="old-1.0", from_storage=past[1]._storage, to_storage=storage)
    study = optuna.load_study(study_name="old-1.0", storage=storage)
    trial = study.ask()
    trial.report(1.2, 0)
    pruner = JumboPruner(source_studies=past)
    first = pruner.expect(study, trial._get_latest_trial())
    again = copy.deepcopy(pruner)
    elsewhere = optuna.load_study(study_name="old-1.0", storage=storage)
    assert again.expect(elsewhere, elsewhere.trials[-1]) == first


def test_the_study_is_read_only_when_a_trial_is_judged():
    assert [n for n in range(50) if is_due(n)] == [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48]
    study = study_of([0.1, 0.2, 0.3], name="new")
    trial = create_trial(state=TrialState.RUNNING, intermediate_values=dict.fromkeys(range(5), 9.0))
    study._storage = None  # whoever reads the study now fails
    assert not JumboPruner().prune(study, trial)


def test_the_best_trial_meets_its_constraints(past):
    """A trial that no constraint forbids is not compared with better ones that one does."""
    study = study_of([0.3, 0.5, 0.7], name="new")
    forbidden = [
        create_trial(value=t.value, intermediate_values=t.intermediate_values, constraints={"c": 1.0})
        for t in study.trials
    ]
    only = optuna.create_study()
    only.add_trials(forbidden)
    pruner = JumboPruner(source_studies=past)
    assert run(only, pruner, 0.9) == STEPS
    assert run(only, pruner, 0.2) == STEPS
    assert run(only, pruner, 1.0) < STEPS / 2


def test_the_best_trial_need_not_have_reported_anything(past):
    study = study_of([0.6, 0.7, 0.8], name="new")
    study.add_trial(create_trial(value=0.0))
    assert run(study, JumboPruner(source_studies=past), 0.4) < STEPS


def test_forgotten_trials_do_not_count(past):
    study = study_of([0.5, 0.6, 0.7], name="new")
    study.set_user_attr(f"{KEY}000001 00000000", {"what": "forgotten", "trials": [0, 1, 2], "when": "2026-01-01T00:00"})
    assert run(study, JumboPruner(source_studies=past), 0.9) == STEPS


def test_it_goes_with_the_sampler(past):
    def objective(trial):
        x = abs(trial.suggest_float("x", -5, 5) / 5) + 0.1 * abs(trial.suggest_int("n", 1, 6) - 2)
        for step, value in enumerate(curve(x)):
            trial.report(float(value), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return float(curve(x)[-1])

    sampler = JumboSampler(search_space=SPACE, n_trials=12, seed=0)
    study = optuna.create_study(sampler=sampler, pruner=JumboPruner(source_studies=past))
    study.optimize(objective, n_trials=12)
    pruned = [t for t in study.trials if t.state == TrialState.PRUNED]
    assert pruned
    assert all(EXPECTED in t.user_attrs for t in pruned)
    assert [outcome(t)[0] for t in pruned] == [t.intermediate_values[t.last_step] for t in pruned]
    assert study.best_value < 0.4


@pytest.mark.parametrize(
    ("options", "message"), [({"share": 0}, "share is 0"), ({"n_startup_trials": 0}, "n_startup_trials is 0")]
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        JumboPruner(**options)


def test_what_is_no_curves_is_refused():
    with pytest.raises(TypeError, match="curves is a str, expected Curves"):
        JumboPruner("curves.csv")
