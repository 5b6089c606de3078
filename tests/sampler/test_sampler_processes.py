"""Threads, processes and copies of the sampler: never the same twice, learned once."""

import copy
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState
from sampled import GRID, QUICK, SPACE, cost, objective, on_the_grid

from jumbo_bo import JumboSampler, read_history, studies
from jumbo_bo.space.space import Space


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
    from sampled import GRID, QUICK, Space, cost

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
    out, err = process.communicate(timeout=600)
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
