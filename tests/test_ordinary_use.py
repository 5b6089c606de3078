"""What a user sees in an ordinary study: no training is paid for twice without a reason, old runs that fit are used,
what diverged stays away, and a broken program teaches nothing. Each of these goes wrong with `jumbo-joint`."""

from __future__ import annotations

import math

import numpy as np
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo.data.history import History, Task
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.space.space import Space

SPACE = Space(
    {
        "lr": FloatDistribution(1e-4, 1.0, log=True),
        "decay": FloatDistribution(1e-6, 1e-1, log=True),
        "width": IntDistribution(8, 128, log=True),
        "activation": CategoricalDistribution(["relu", "tanh"]),
    }
)
SEEDS = (100, 101, 102)
NOISE = 0.01
DIVERGES = 0.75  # of the range of lr: 0.1


def loss(u, rng, shift=0.0, level=0.1):
    """Of one training. Above a learning rate of 0.1 it diverges: 1e6, or no number at all."""
    if u[0] > DIVERGES:
        return 1e6 if u[3] < 0.5 else math.nan
    bowl = 3 * (u[0] - 0.5 - shift) ** 2 + 0.3 * (u[1] - 0.3) ** 2 + 0.5 * (u[2] - 0.8) ** 2 + 0.02 * (u[3] > 0.5)
    return level + bowl + NOISE * rng.standard_normal()


def old_runs(rng, n=60):
    tasks = []
    for k, shift in enumerate((-0.05, 0.0, 0.05)):
        u = SPACE.sample(rng, n)
        y = np.array([-loss(row, rng, shift, 0.1 + 0.02 * k) for row in u])
        tasks.append(Task(f"task {k}", u[np.isfinite(y)], y[np.isfinite(y)], u[~np.isfinite(y)]))
    return History(SPACE, tuple(tasks))


def studied(seed, trials=16, broken=0, forget=False, method="jumbo-mixture"):
    """A study, its suggestions, and the true loss of the best configuration after each trial. The first `broken` trials
    crash."""
    rng = np.random.default_rng(seed)
    optimizer = Optimizer(SPACE, old_runs(rng), n_trials=trials + broken, method=method, seed=seed)
    for suggestion in [optimizer.ask() for _ in range(broken)]:
        optimizer.fail(suggestion)
    if forget:
        optimizer.forget()
    suggestions = []
    for _ in range(trials):
        suggestions.append(optimizer.ask())
        optimizer.tell(suggestions[-1], loss(SPACE.encode(suggestions[-1].params), rng, 0.02, 0.13))
    return optimizer, suggestions


@pytest.fixture(scope="module", params=SEEDS)
def study(request):
    return studied(request.param)


def test_a_trial_next_to_another_is_a_repeat_and_called_so(study):
    _, suggestions = study
    t = SPACE.transform(np.array([SPACE.encode(s.params) for s in suggestions]))
    near = [i for i in range(1, len(t)) if np.abs(t[:i] - t[i]).max(axis=1).min() < 0.01]
    assert len(near) <= 3
    assert all(suggestions[i].explanation.repeats is not None for i in near)


def test_old_runs_that_fit_are_never_set_aside(study):
    _, suggestions = study
    trust = np.array([s.explanation.trust for s in suggestions])
    assert trust.min() > 0.5
    assert np.abs(np.diff(trust)).max() < 0.3
    assert not any("set aside" in s.why for s in suggestions)


def test_what_diverged_before_is_not_promising_now(study):
    _, suggestions = study
    assert all(s.explanation.predicted.mean > 0.03 for s in suggestions)
    beyond = [s for s in suggestions if SPACE.encode(s.params)[0] > DIVERGES]
    assert len(beyond) <= 1


def test_intervals_are_those_of_a_loss(study):
    """Positive, and after the first trials not wider than all that was ever seen."""
    _, suggestions = study
    ends = np.array([s.explanation.predicted[2:] for s in suggestions])
    assert ends.min() > 0
    assert np.all(ends[3:, 1] < 1e6)


def test_the_optimum_is_found(study):
    optimizer, _ = study
    assert optimizer.best.value < 0.165  # the best is 0.13 without noise


@pytest.mark.parametrize("forget", [True, False])
def test_crashes_of_a_broken_program_cost_little(forget):
    """Five crashes where the old runs promise most. Forgotten, they cost nothing; otherwise a few trials."""
    mended = [studied(seed, 10, broken=5, forget=forget)[0].best.value for seed in SEEDS]
    assert np.median(mended) < (0.15 if forget else 0.2)


def test_forgotten_crashes_leave_no_trace():
    assert [s.params for s in studied(100, 5, broken=5, forget=True)[1]] == [s.params for s in studied(100, 5)[1]]
