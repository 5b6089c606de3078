"""JumboSampler: Optuna's own suites, then what a user of Optuna expects from it."""

import copy
import json
import logging
import math
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.testing.pytest_samplers import BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase
from optuna.trial import TrialState, create_trial

from jumbo_bo import JumboSampler, read_history, studies
from jumbo_bo.data.readers import from_study
from jumbo_bo.learning.pretrain import pretrain
from jumbo_bo.learning.training import Pretraining
from jumbo_bo.methods import JumboJoint
from jumbo_bo.space.space import Space

SMALL = Pretraining(members=1, max_epochs=30, n_u=16)
QUICK = JumboJoint(preset=SMALL)
SPACE = {"x": FloatDistribution(-5, 5), "n": IntDistribution(1, 6)}
GRID = {"a": IntDistribution(0, 1), "b": IntDistribution(0, 2), "c": CategoricalDistribution(["p", "q"])}


def f(params, shift=0.0):
    return (params["x"] - 1 - shift) ** 2 + 0.5 * (params["n"] - 2) ** 2


def objective(trial):
    return f({"x": trial.suggest_float("x", -5, 5), "n": trial.suggest_int("n", 1, 6)})


def cost(params):
    return (params["a"] - 0.7) ** 2 + params["b"] + (params["c"] == "p")


def on_the_grid(trial):
    names = {"a": 1, "b": 2}
    params = {name: trial.suggest_int(name, 0, high) for name, high in names.items()}
    return cost(params | {"c": trial.suggest_categorical("c", ["p", "q"])})


def old_study(name="old", shift=0.3, n=60, storage=None):
    study = optuna.create_study(study_name=name, storage=storage)
    space = Space(SPACE)
    for row in space.sample(np.random.default_rng(len(name)), n):
        params = space.decode(row)
        study.add_trial(create_trial(params=params, distributions=SPACE, value=f(params, shift)))
    return study


@pytest.fixture(scope="module")
def shared_cache(tmp_path_factory):
    return tmp_path_factory.mktemp("nets")


@pytest.fixture(autouse=True)
def own_cache(shared_cache, monkeypatch):
    monkeypatch.setenv("JUMBO_CACHE", str(shared_cache))


@pytest.fixture(autouse=True)
def quiet():
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    yield
    optuna.logging.set_verbosity(level)


@pytest.fixture
def messages():
    """What the sampler says through Optuna's logger."""
    said = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    logger = logging.getLogger("optuna.jumbo_bo")
    logger.addHandler(handler)
    yield said
    logger.removeHandler(handler)


@pytest.fixture(scope="module")
def old():
    return [old_study("old-1", 0.3), old_study("old-22", -0.2)]


class TestOptunaSuites(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self):
        return JumboSampler


class TestOptunaSuitesWithASpace(BasicSamplerTestCase, SingleOnlySamplerTestCase):
    """The suite asks for parameters that are not in the space."""

    @pytest.fixture
    def sampler(self):
        return lambda: JumboSampler(search_space={"another": FloatDistribution(0, 1)}, method="random")


class TestOptunaSuitesWithOldRuns(SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self, old):
        return lambda: JumboSampler(source_studies=old, method=QUICK)


def test_finds_a_good_point_without_old_runs():
    study = optuna.create_study(sampler=JumboSampler(n_trials=25, seed=1))
    study.optimize(objective, n_trials=25)
    assert study.best_value < 0.02
    assert study.best_params["n"] == 2


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_old_runs_help_from_the_first_trial_on(seed, old):
    values = {}
    for name, past in (("with", old), ("without", ())):
        sampler = JumboSampler(search_space=SPACE, source_studies=past, method=QUICK, n_trials=6, seed=seed)
        study = optuna.create_study(sampler=sampler)
        study.optimize(objective, n_trials=6)
        values[name] = [t.value for t in study.trials]
    assert values["with"][0] < 2 < values["without"][0]
    assert min(values["with"]) < min(values["without"])


def test_maximises(old):
    sampler = JumboSampler(source_studies=old, method=QUICK, seed=0)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(lambda trial: -objective(trial), n_trials=4)
    assert study.best_value > -1


def test_one_sampler_serves_studies_of_both_directions(old):
    sampler = JumboSampler(source_studies=old, method=QUICK, seed=0)
    for direction in ("minimize", "maximize", "minimize"):
        study = optuna.create_study(direction=direction, sampler=sampler)
        study.optimize(objective, n_trials=2)
        assert f(study.trials[0].params) < 2


def test_the_reason_is_kept_with_the_trial_and_visible_in_the_objective(old):
    seen = []

    def looks(trial):
        y = objective(trial)
        seen.append(trial.user_attrs["why"])
        return y

    study = optuna.create_study(sampler=JumboSampler(source_studies=old, method=QUICK, seed=0))
    study.optimize(looks, n_trials=2)
    assert [t.user_attrs["why"] for t in study.trials] == seen
    assert seen[0].startswith("Old runs rate this")
    explanation = studies.explanation(study.trials[1])
    assert explanation.why == seen[1]
    assert explanation.nearest[0].task in ("old-1", "old-22")


def test_same_seed_same_trials_and_no_seed_differs():
    def run(seed):
        study = optuna.create_study(sampler=JumboSampler(search_space=SPACE, seed=seed))
        study.optimize(lambda t: objective(t) + t.suggest_float("outside", 0, 1), n_trials=5)
        return [t.params for t in study.trials]

    assert run(7) == run(7)
    assert run(7) != run(8)
    assert run(None) != run(None)


def test_without_a_seed_the_net_is_still_shared(old, tmp_path):
    for _ in range(2):
        sampler = JumboSampler(source_studies=old, method=QUICK, cache=tmp_path)
        optuna.create_study(sampler=sampler).optimize(objective, n_trials=1)
    assert len(list(tmp_path.glob("*.safetensors"))) == 1


def test_nothing_is_learned_before_the_first_suggestion(old, tmp_path):
    sampler = JumboSampler(source_studies=old, method=QUICK, cache=tmp_path)
    assert not list(tmp_path.iterdir())
    optuna.create_study(sampler=sampler).ask(SPACE)
    assert len(list(tmp_path.glob("*.safetensors"))) == 1


def test_default_cache_is_the_users_and_none_keeps_nothing(old, tmp_path, monkeypatch):
    monkeypatch.setenv("JUMBO_CACHE", str(tmp_path))
    optuna.create_study(sampler=JumboSampler(source_studies=old, method=QUICK, cache=None)).ask(SPACE)
    assert not list(tmp_path.iterdir())
    optuna.create_study(sampler=JumboSampler(source_studies=old, method=QUICK)).ask(SPACE)
    assert len(list(tmp_path.glob("*.safetensors"))) == 1


# Where the space and the old runs come from


def test_space_of_the_history_is_the_search_space(old):
    history = from_study(old, Space(SPACE))
    study = optuna.create_study(sampler=JumboSampler(history, method=QUICK, seed=0))
    assert study.ask().suggest_float("x", -5, 5) == pytest.approx(1, abs=1.5)
    assert "Old runs" in study.trials[0].user_attrs["why"]


def test_order_of_parameters_does_not_matter(old):
    history = from_study(old, Space(SPACE))
    JumboSampler(history, dict(reversed(SPACE.items())))


def test_history_and_studies_are_used_together(old):
    history = from_study(old[0], Space(SPACE))
    sampler = JumboSampler(history, source_studies=old[1], method=QUICK, seed=0)
    study = optuna.create_study(sampler=sampler)
    study.ask(SPACE)
    assert [t.name for t in sampler._optimizer.history.tasks] == ["old-1", "old-22"]


def test_space_of_source_studies_is_what_their_trials_share():
    studies_ = [optuna.create_study(study_name=name) for name in ("one", "two")]
    for study, high in zip(studies_, (1, 2), strict=True):
        for i in range(3):
            trial = study.ask()
            y = trial.suggest_float("x", 0, 1) + trial.suggest_float("y", 0, high) + trial.suggest_int("k", 1, 1)
            study.tell(trial, y + (trial.suggest_float("z", 0, 1) if i else 0))
    sampler = JumboSampler(source_studies=studies_, method="gp-ucb")
    assert sampler.infer_relative_search_space(studies_[0], None) == {"x": FloatDistribution(0, 1)}


def test_without_any_space_it_is_learned_from_the_study():
    study = optuna.create_study(sampler=JumboSampler(seed=0))
    study.optimize(lambda t: objective(t) + t.suggest_int("one", 1, 1), n_trials=3)
    assert [studies.NUMBERS in t.user_attrs for t in study.trials] == [False, True, True]
    assert study.sampler.infer_relative_search_space(study, None) == dict(sorted(SPACE.items()))


def test_a_net_needs_its_space(old):
    history = from_study(old, Space(SPACE))
    net = pretrain(history, SMALL)
    with pytest.raises(
        ValueError, match="does not know its parameters; pass the space it was made for as search_space="
    ):
        JumboSampler(net)
    with pytest.raises(ValueError, match="history was learned for another search space; learn from the old runs again"):
        JumboSampler(net, {"x": SPACE["x"]})
    with pytest.raises(ValueError, match="source_studies cannot be added to what was learned before"):
        JumboSampler(net, SPACE, source_studies=old)
    optuna.create_study(sampler=JumboSampler(net, SPACE)).optimize(objective, n_trials=2)


def test_mistakes_are_found_when_the_sampler_is_made(old):
    history = from_study(old, Space(SPACE))
    with pytest.raises(ValueError, match=r"'x' is FloatDistribution\(high=5.* there and .*high=4.* here; read the old"):
        JumboSampler(history, SPACE | {"x": FloatDistribution(-5, 4)})
    with pytest.raises(ValueError, match=r"'n' is IntDistribution.* there and missing here"):
        JumboSampler(history, {"x": SPACE["x"]})
    with pytest.raises(TypeError, match="history is a str, expected a History"):
        JumboSampler("runs.csv")
    with pytest.raises(ValueError, match="method is 'best', expected one of"):
        JumboSampler(method="best")
    with pytest.raises(ValueError, match="n_trials is 0"):
        JumboSampler(n_trials=0)
    with pytest.raises(ValueError, match="seed is -1"):
        JumboSampler(seed=-1)
    with pytest.raises(ValueError, match="at least one parameter"):
        JumboSampler(search_space={})
    with pytest.raises(ValueError, match=r"'empty'.* share no parameter with the same range; pass search_space="):
        JumboSampler(source_studies=[*old, optuna.create_study(study_name="empty")])


# Trials of every kind


def test_pruned_and_failed_trials_are_used():
    sampler = JumboSampler(search_space=SPACE, method="gp-ucb", seed=0)
    study = optuna.create_study(sampler=sampler)

    def ends_differently(trial):
        y = objective(trial)
        if trial.number == 1:
            raise ZeroDivisionError
        if trial.number == 2:
            trial.report(y + 1, 0)
            trial.report(y + 2, 1)
            raise optuna.TrialPruned
        return y

    study.optimize(ends_differently, n_trials=4, catch=ZeroDivisionError)
    study.ask(SPACE)
    params = [t.params for t in study.trials]
    told = sampler._optimizer.told
    assert [p for p, _ in told] == params[:4]
    assert [y for _, y in told] == pytest.approx([f(params[0]), math.nan, f(params[2]) + 2, f(params[3])], nan_ok=True)


def test_running_and_enqueued_trials_are_pending():
    study = optuna.create_study(sampler=JumboSampler(search_space=GRID, method="random", seed=0))
    study.enqueue_trial({"a": 0, "b": 0, "c": "q"})
    asked = [study.ask() for _ in range(11)]  # the enqueued one is the first
    for trial in asked[1:]:
        on_the_grid(trial)
    found = {tuple(trial.params.values()) for trial in asked[1:]}
    assert len(found) == 10
    assert (0, 0, "q") not in found


def test_trials_outside_the_space_are_counted_once(messages):
    sampler = JumboSampler(search_space=SPACE, method="gp-ucb", seed=0)
    study = optuna.create_study(study_name="mixed", sampler=sampler)
    wide = SPACE | {"x": FloatDistribution(-50, 50)}
    study.add_trial(create_trial(params={"x": 30.0, "n": 2}, distributions=wide, value=1.0))
    study.add_trial(create_trial(params={"n": 2}, distributions={"n": SPACE["n"]}, value=1.0))
    study.add_trial(create_trial(params={"x": 3.0, "n": 2}, distributions=SPACE, value=1.0))
    study.add_trial(create_trial(state=TrialState.FAIL))  # ended before it had a parameter: nothing to use
    study.optimize(objective, n_trials=2)
    assert len(sampler._optimizer.told) == 2  # the third, and the first of the two
    assert len(messages) == 1
    assert "2 finished trials of study 'mixed' are outside the search space" in messages[0]
    assert "trial 0: 'x' is 30.0, expected a number in [-5, 5]" in messages[0]


def test_enqueued_trials_out_of_range_do_not_disturb(messages):
    study = optuna.create_study(sampler=JumboSampler(search_space=SPACE, method="gp-ucb", seed=0))
    study.enqueue_trial({"x": 99.0})
    with pytest.warns(UserWarning, match="out of range"):
        study.optimize(objective, n_trials=1)
    study.optimize(objective, n_trials=2)
    assert study.trials[0].params["x"] == 99.0
    assert ["1 finished trials" in m for m in messages] == [True]


def test_conditional_parameters_are_drawn_at_random_with_one_message(messages):
    def conditional(trial):
        y = objective(trial)
        return y + (trial.suggest_float("p", 0, 1) if trial.number % 2 else trial.suggest_int("q", 0, 9))

    study = optuna.create_study(sampler=JumboSampler(search_space=SPACE, method="gp-ucb", seed=0))
    study.optimize(conditional, n_trials=6)
    assert all(t.state == TrialState.COMPLETE for t in study.trials)
    assert len({t.params.get("p", t.params.get("q")) for t in study.trials}) > 3
    assert len(messages) == 1
    assert "'q' is not in the search space, so it is drawn at random; add it to search_space=" in messages[0]


def test_conditional_parameters_in_the_space_keep_their_suggested_value(messages):
    space = SPACE | {"p": FloatDistribution(0, 1)}
    sampler = JumboSampler(search_space=space, method="gp-ucb", seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda t: objective(t) + (t.suggest_float("p", 0, 1) if t.number % 2 else 0), n_trials=4)
    study.ask(space)
    assert len(sampler._optimizer.told) == 4
    assert not messages


def test_a_narrower_range_in_the_objective_is_said_once(messages):
    study = optuna.create_study(sampler=JumboSampler(search_space=SPACE, method="random", seed=0))
    study.optimize(lambda t: t.suggest_float("x", 4.9, 5) + t.suggest_int("n", 1, 6), n_trials=3)
    assert all(4.9 <= t.params["x"] <= 5 for t in study.trials)
    assert ["'x' is requested with a range that does not contain the suggested value" in m for m in messages] == [True]


def test_without_a_space_the_message_waits_for_the_second_trial(messages):
    study = optuna.create_study(sampler=JumboSampler(seed=0))
    study.optimize(objective, n_trials=2)
    assert not messages
    study.optimize(lambda t: objective(t) + t.suggest_float("late", 0, 1), n_trials=2)
    assert ["'late' is not in every finished trial" in m for m in messages] == [True]


def test_an_exhausted_space_goes_on_at_random(messages):
    study = optuna.create_study(sampler=JumboSampler(search_space={"a": IntDistribution(0, 3)}, seed=0))
    study.optimize(lambda t: t.suggest_int("a", 0, 3), n_trials=8)
    assert sorted(t.params["a"] for t in study.trials[:4]) == [0, 1, 2, 3]
    assert len(study.trials) == 8
    assert len(messages) == 1
    assert "all 4 configurations have been tried or are pending" in messages[0]
    assert "From trial 4 on, parameters are drawn at random" in messages[0]


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_partial_fixed_sampler_searches_the_rest(old):
    """The best x is 1 for n = 2; held at n = 5, the search still moves x and never repeats itself."""
    sampler = JumboSampler(source_studies=old, method=QUICK, seed=0, n_trials=6)
    study = optuna.create_study(sampler=optuna.samplers.PartialFixedSampler({"n": 5}, sampler))
    study.optimize(objective, n_trials=6)
    assert {t.params["n"] for t in study.trials} == {5}
    assert len({t.params["x"] for t in study.trials}) == 6
    assert min(abs(t.params["x"] - 1) for t in study.trials) < 0.5
    kept = study.trials[0].user_attrs[studies.NUMBERS]["params"]
    assert kept == study.trials[0].params  # the reason is about the point that was tried


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_a_held_finite_space_is_tried_once_each(messages):
    sampler = JumboSampler(search_space=GRID, method="gp-ucb", seed=0)
    study = optuna.create_study(sampler=optuna.samplers.PartialFixedSampler({"a": 1}, sampler))
    study.optimize(on_the_grid, n_trials=7)
    assert len({(t.params["b"], t.params["c"]) for t in study.trials[:6]}) == 6
    assert ["all 6 configurations" in m for m in messages] == [True]


def test_an_enqueued_value_is_kept_and_the_rest_fits_it(old):
    study = optuna.create_study(sampler=JumboSampler(source_studies=old, method=QUICK, seed=0))
    study.enqueue_trial({"n": 6})
    study.optimize(objective, n_trials=1)
    (trial,) = study.trials
    assert trial.params["n"] == 6
    assert trial.user_attrs[studies.NUMBERS]["params"] == trial.params


def test_pruners_see_all_their_trials():
    pruner = optuna.pruners.HyperbandPruner(1, 4, 2)
    study = optuna.create_study(sampler=JumboSampler(search_space=SPACE, seed=0), pruner=pruner)

    def reports(trial):
        y = objective(trial)
        for step in range(4):
            trial.report(y + 4 - step, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return y

    study.optimize(reports, n_trials=8)
    assert len({t.params["x"] for t in study.trials}) == 8


# Threads, processes, copies


def test_two_threads_never_try_the_same():
    study = optuna.create_study(sampler=JumboSampler(search_space=GRID, seed=0, n_trials=12))
    study.optimize(on_the_grid, n_trials=12, n_jobs=2)
    assert len({tuple(t.params.values()) for t in study.trials}) == 12


def test_when_another_process_takes_the_same_at_the_same_time_another_is_chosen(monkeypatch):
    study = optuna.create_study(sampler=JumboSampler(search_space=GRID, method="gp-ucb", seed=0))
    rival = study.ask()
    write, copied = study._storage.set_trial_user_attr, []

    def and_the_rival_too(trial_id, key, value):
        write(trial_id, key, value)
        if key == studies.NUMBERS and not copied:
            copied.append(value["params"])
            write(rival._trial_id, key, value)

    monkeypatch.setattr(study._storage, "set_trial_user_attr", and_the_rival_too)
    trial = study.ask(GRID)
    assert len(copied) == 1
    assert trial.params != copied[0]
    assert study.trials[1].user_attrs[studies.NUMBERS]["params"] == trial.params


def test_a_copy_suggests_the_same(old):
    """By the protocol that pickling uses as well; that Ray Tune can keep its searcher is shown in integration/."""
    sampler = JumboSampler(source_studies=old, method=QUICK)
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=3)
    other = optuna.create_study(sampler=copy.deepcopy(sampler))
    other.add_trials(study.trials)
    assert other.ask(SPACE).params == study.ask(SPACE).params


WORKER = """
    import json, os, sys, time
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend
    from jumbo_bo import JumboSampler, read_history
    from jumbo_bo.methods import JumboJoint
    from test_sampler import GRID, QUICK, Space, cost

    address, n, method, go = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
    learn, learned = JumboJoint.learn, []
    JumboJoint.learn = lambda *args: (learned.append(1), learn(*args))[1]
    storage = address if "://" in address else JournalStorage(JournalFileBackend(address))
    method = QUICK if method == "quick" else method
    sampler = JumboSampler(read_history("old.csv", Space(GRID)), method=method, n_trials=12, seed=5)
    study = optuna.load_study(study_name="new", storage=storage, sampler=sampler)
    print("ready", flush=True)
    while go != "-" and not os.path.exists(go):
        time.sleep(0.01)
    for _ in range(n):
        trial = study.ask(GRID)
        study.tell(trial, cost(trial.params))
    print(json.dumps({"learned": len(learned)}))
"""


def start(folder, address, n, method="quick", go="-"):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WORKER), address, str(n), method, str(go)],
        cwd=folder,
        env=os.environ | {"JUMBO_CACHE": str(folder / "nets"), "PYTHONPATH": str(Path(__file__).parent)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return json.loads(out.splitlines()[-1])


@pytest.fixture
def folder(tmp_path):
    """With the old runs of a problem on the grid."""
    space, rows = Space(GRID), []
    for u in space.grid():
        params = space.decode(u)
        rows.append([*params.values(), cost(params) + 0.1 * params["b"]])
    lines = [",".join([*GRID, "value"]), *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "old.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_a_new_process_continues_where_the_last_one_stopped(folder):
    history = read_history(folder / "old.csv", Space(GRID))
    lists = []
    for storage, n in ((None, 7), (f"sqlite:///{folder}/new.db", 4)):
        sampler = JumboSampler(history, method=QUICK, n_trials=12, seed=5, cache=folder / "nets")
        study = optuna.create_study(study_name="new", storage=storage, sampler=sampler)
        for _ in range(n):
            trial = study.ask(GRID)
            study.tell(trial, cost(trial.params))
        lists.append([t.params for t in study.trials])
    assert finish(start(folder, "sqlite:///new.db", 3)) == {"learned": 0}
    assert [t.params for t in study.get_trials()] == lists[0]


@pytest.mark.parametrize(("kind", "method", "learned_by"), [("sqlite", "quick", [0, 1]), ("journal", "gp-ucb", [0, 0])])
def test_two_processes_share_a_study_and_learn_once(kind, method, learned_by, folder):
    address = f"sqlite:///{folder}/new.db" if kind == "sqlite" else f"{folder}/new.journal"
    storage = address if kind == "sqlite" else JournalStorage(JournalFileBackend(address))
    study = optuna.create_study(study_name="new", storage=storage)
    workers = [start(folder, address, 6, method, go=folder / "go") for _ in range(2)]
    for worker in workers:
        assert worker.stdout.readline() == "ready\n", worker.stderr.read()
    (folder / "go").touch()
    assert sorted(finish(worker)["learned"] for worker in workers) == learned_by
    trials = study.get_trials()
    assert [t.state for t in trials] == [TrialState.COMPLETE] * 12
    assert len({tuple(t.params.values()) for t in trials}) == 12
