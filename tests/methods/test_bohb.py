"""BOHB: rungs by HyperBand's rule, looks counted, the model of the right fidelity."""

import math

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution, IntDistribution
from optuna.trial import create_trial

from jumbo_bo.data.history import History, Task
from jumbo_bo.methods import BOHB
from jumbo_bo.methods.bohb import most_alike
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.space.space import Space

LINE = Space({"x": FloatDistribution(0.0, 1.0), "y": FloatDistribution(0.0, 1.0)})
ETA = 5
QUICK = BOHB(eta=ETA)


def old_runs(n=200, seed=0, best=0.3):
    u = LINE.sample(np.random.default_rng(seed), n)
    return History(LINE, (Task("old", u, -((u - best) ** 2).sum(axis=1)),))


def loss(params, best=0.3):
    return (params["x"] - best) ** 2 + (params["y"] - best) ** 2


def run(optimizer, trials, best=0.3):
    for _ in range(trials):
        suggestion = optimizer.ask()
        optimizer.tell(suggestion, loss(suggestion.params, best))
    return optimizer


def brackets(optimizer):
    return optimizer.recipe._brackets(optimizer.view())


def test_the_rung_decides_as_successive_halving_does():
    """Optuna's pruner, told the values of a whole rung, lets exactly the promoted row pass."""
    optimizer = run(Optimizer(LINE, old_runs(), method=QUICK), 12)
    done, z = brackets(optimizer), optimizer.past.z
    assert len(done.looked) == ETA * len(done.promoted)
    pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=3, reduction_factor=ETA)
    for i, promoted in enumerate(done.promoted):
        rung = done.looked[ETA * i : ETA * (i + 1)]
        for row in rung:
            study = optuna.create_study(direction="maximize", pruner=pruner)
            for other in set(rung) - {row}:
                study.add_trial(create_trial(value=z[other], system_attrs={"completed_rung_0": z[other]}))
            trial = study.ask()
            trial.report(z[row], step=3)
            assert trial.should_prune() == (row != promoted)


def test_every_third_trial_comes_from_the_rung_and_looks_are_counted():
    """HyperBand, Alg. 1, with s_max = 1: brackets of ceil(2 / (s + 1) * eta^s) configurations, one and two of which
    reach the full resource."""
    optimizer = Optimizer(LINE, old_runs(), method=QUICK)
    assert [math.ceil(2 / (s + 1) * ETA**s) for s in (1, 0)] == [ETA, 2]
    for trial in range(12):
        choice = QUICK(optimizer.view())
        assert f"{ETA * (trial // 3 + 1)} old values read" in choice.note
        promoted = optimizer.past.u[list(brackets(optimizer).promoted)]
        assert np.any(np.all(choice.best.u == promoted, axis=1)) == (trial % 3 == 0)
        run(optimizer, 1)
    assert len(set(brackets(optimizer).looked)) == ETA * 5  # the next bracket is due, no row was looked at twice


def test_a_look_costs_its_share_of_a_trial_by_default():
    assert BOHB().rung == 33  # 3 of 100 epochs: the rung costs as much as the trial it leads to
    with pytest.raises(ValueError, match="min_resource < max_resource"):
        Optimizer(LINE, method=BOHB(min_resource=100))
    with pytest.raises(ValueError, match="expected at least 2"):
        Optimizer(LINE, method=BOHB(min_resource=60))


def test_without_old_runs_it_is_tpe():
    optimizer = run(Optimizer(LINE, method=BOHB(random=0.0), seed=4), 9)
    z = optimizer.view().z
    seed = int(np.random.SeedSequence([4, 9, 0]).generate_state(1)[0])
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=5))
    for (params, _), value in zip(optimizer.told, z, strict=True):
        study.add_trial(create_trial(params=params, distributions=dict(LINE.distributions), value=value))
    assert optimizer.ask().params == pytest.approx(study.ask(dict(LINE.distributions)).params, rel=1e-9)


def test_used_up_rows_leave_tpe_over_the_whole_space():
    optimizer = run(Optimizer(LINE, old_runs(12), method=QUICK), 20)
    done = brackets(optimizer)
    assert sorted(done.looked) == list(range(12))
    assert len(done.promoted) == 3  # of 5, 5 and the last 2 rows
    assert len({tuple(p.values()) for p, _ in optimizer.told}) == 20


def test_trials_of_others_count_and_order_of_telling_does_not_break_a_resume():
    optimizer = Optimizer(LINE, old_runs(), method=QUICK, seed=2)
    for x in (0.1, 0.2, 0.6, 0.9):
        optimizer.tell({"x": x, "y": x}, loss({"x": x, "y": x}))
    assert len(brackets(optimizer).promoted) == 3  # four trials without a look: two brackets behind, and the next
    for suggestion in reversed(optimizer.ask_many(7)):
        optimizer.tell(suggestion, loss(suggestion.params))
    resumed = Optimizer(LINE, old_runs(), method=QUICK, seed=2)
    for params, value in optimizer.told:
        resumed.tell(params, value)
    assert brackets(resumed) == brackets(optimizer)
    assert resumed.ask().params == optimizer.ask().params


def test_only_listed_rows_are_looked_at():
    space = Space({"x": IntDistribution(0, 30)})
    u = space.grid()
    history = History(space, (Task("old", u, -((u[:, 0] - 0.5) ** 2)),))
    listed = [{"x": x} for x in range(0, 31, 3)]
    optimizer = Optimizer(space, history, method=QUICK, candidates=listed)
    for _ in range(len(listed)):
        suggestion = optimizer.ask()
        optimizer.tell(suggestion, abs(suggestion.params["x"] - 20))
    looked = [space.decode(optimizer.past.u[i]) for i in brackets(optimizer).looked]
    assert looked
    assert all(params in listed for params in looked)


def test_the_model_turns_to_the_new_problem_once_it_has_values():
    """The old optimum is at 0.3, the new one at 0.8: promoted rows cannot help, the points tried at once must."""
    optimizer = run(Optimizer(LINE, old_runs(), method=BOHB(eta=ETA, random=0.0)), 36, best=0.8)
    straight = np.array([list(p.values()) for i, (p, _) in enumerate(optimizer.told) if i % 3])
    assert np.abs(straight[-12:] - 0.8).mean() < 0.5 * np.abs(straight[:4] - 0.8).mean()
    assert optimizer.best.value < 0.01


def test_a_good_past_is_worth_more_than_none():
    best = [
        [run(Optimizer(LINE, h, method=BOHB(), seed=s), 4).best.value for s in range(4)] for h in (old_runs(), None)
    ]
    assert np.mean(best[0]) < 0.2 * np.mean(best[1])


def test_the_old_task_most_alike_is_looked_at():
    u = LINE.sample(np.random.default_rng(0), 60)
    good, bad = -((u - 0.3) ** 2).sum(axis=1), ((u - 0.3) ** 2).sum(axis=1)
    tasks = (Task("bad", u, bad), Task("good", u, good), Task("good too", u, good + 1e-3 * u[:, 0]))
    assert most_alike(History(LINE, tasks)).name.startswith("good")
    assert most_alike(History(LINE, tasks[1:], Task("new", u[:30], bad[:30]))).name.startswith("good")
    assert most_alike(History(LINE, tasks, Task("new", u[:30], bad[:30]))).name == "bad"
    more = Task("more", np.vstack([u, u]), np.concatenate([good, good]))
    assert most_alike(History(LINE, (tasks[1], more))).name == "more"
