"""The optimizer with limits on measured quantities: with old runs and without."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from optuna.distributions import FloatDistribution, IntDistribution

from jumbo_bo.bench.synthetic import random_smooth
from jumbo_bo.data.history import History, Task
from jumbo_bo.errors import InputError
from jumbo_bo.learning.training import Pretraining
from jumbo_bo.methods import JumboMixture
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.space.space import Space

SPACE = Space({"a": FloatDistribution(0, 1), "b": FloatDistribution(0, 1)})
QUICK = JumboMixture(preset=Pretraining(members=1, max_epochs=60, n_u=16))
LIMITS = {"latency_ms": (None, 15.0)}
BEST = 2 * (0.7 - 0.5) ** 2  # where a + b = 1


def loss(u, shift=0.0):
    return (u[..., 0] - 0.7 - shift) ** 2 + (u[..., 1] - 0.7 - shift) ** 2


def latency(u, shift=0.0):
    return 5 + 10 * (u[..., 0] + u[..., 1]) + 3 * shift


def old_runs(target=False):
    rng, tasks, times = np.random.default_rng(0), [], []
    for k, shift in enumerate((-0.1, 0.0, 0.1)):
        u = SPACE.sample(rng, 60)
        tasks.append(Task(f"task {k}", u, -loss(u, shift)))
        times.append(Task(f"task {k}", u[:50], -latency(u[:50], shift)))
    parts = [(ts[:2], ts[2]) if target else (ts, None) for ts in (tuple(tasks), tuple(times))]
    first, second = (History(SPACE, few, own) for few, own in parts)
    return replace(first, limits={"latency_ms": second})


@pytest.fixture(scope="module")
def history():
    return old_runs()


def played(history, trials, space=SPACE, **options):
    optimizer = Optimizer(space, history, n_trials=20, method=QUICK, limits=LIMITS, **options)
    for _ in range(trials):
        suggestion = optimizer.ask()
        u = np.array(list(suggestion.params.values())) / (1 if space is SPACE else 20)
        optimizer.tell(suggestion, float(loss(u)), {"latency_ms": float(latency(u))})
    return optimizer


def times(optimizer):
    return [float(latency(SPACE.encode(params))) for params, _ in optimizer.told]


def test_the_search_goes_where_limits_are_met(history):
    """The optimum without the limit is at a latency of 19."""
    wise, alone = played(history, 12), played(None, 16)
    for optimizer in (wise, alone):
        assert optimizer.best is not None
        assert latency(SPACE.encode(optimizer.best.params)) <= 15.0
        assert BEST <= optimizer.best.value < BEST + 0.05
    assert sum(t <= 15.5 for t in times(wise)) >= 7
    assert min(loss(SPACE.encode(p)) for p, _ in wise.told) < BEST, "a trial that misses the limit may be better"


def test_the_best_meets_all_limits():
    limits = {"q": (None, 1.0), "r": (0.0, 5.0)}
    optimizer = Optimizer(SPACE, limits=limits)
    for value, measured in (
        (0.1, {"q": 2.0, "r": 1.0}),
        (0.2, {"q": 0.5, "r": 6.0}),
        (0.3, {"q": 0.5}),
        (0.4, {"q": 0.5, "r": math.nan}),
        (0.5, None),
    ):
        optimizer.tell(SPACE.decode(np.full(2, value)), value, measured)
        assert optimizer.best is None
    assert optimizer.remaining() == 1.0
    optimizer.tell(SPACE.decode(np.full(2, 0.7)), 0.7, {"q": 1.0, "r": 5.0})
    assert optimizer.best.value == 0.7
    assert [value for _, value in optimizer.told] == [0.1, 0.2, 0.3, 0.4, 0.5, 0.7]


def test_a_trial_that_misses_a_limit_teaches_the_objective():
    """The models of values are those of an optimizer without limits that was told the same."""
    optimizer, plain = played(None, 8), Optimizer(SPACE, n_trials=20, method=QUICK)
    for params, value in optimizer.told:
        plain.tell(params, value)
    points = [SPACE.decode(u) for u in SPACE.sample(np.random.default_rng(1), 5)]
    assert optimizer.predict(points) == plain.predict(points)


def test_a_suggestion_says_how_likely_it_meets_each_limit(history):
    optimizer = played(history, 3)
    suggestion = optimizer.ask()
    (said,) = suggestion.explanation.limits.items()
    assert said[0] == "latency_ms <= 15"
    assert 0 < said[1] < 1
    assert "Meets latency_ms <= 15 with " in suggestion.why
    plain = type(suggestion.explanation).from_json(suggestion.explanation.to_json())
    assert plain.limits == suggestion.explanation.limits
    nothing = Optimizer(SPACE, method=QUICK, limits=LIMITS).ask()
    assert nothing.explanation.limits == {}
    assert "latency" not in nothing.why


def test_chances_come_true():
    """On smooth random functions, for suggestions that the search itself has chosen."""
    said, came = [], []
    for seed in range(12):
        rng = np.random.default_rng([seed, 5])
        f, q = random_smooth(rng, 2, 0.4), random_smooth(rng, 2, 0.4)
        optimizer = Optimizer(SPACE, method=QUICK, seed=seed, limits={"q": (None, 0.0)})
        for _ in range(12):
            suggestion = optimizer.ask()
            u = SPACE.encode(suggestion.params)[None]
            if len(optimizer.told) >= 4:
                said.append(suggestion.explanation.limits["q <= 0"])
                came.append(float(q(u)[0]) <= 0)
            optimizer.tell(suggestion, -float(f(u)[0]), {"q": float(q(u)[0])})
    said, came = np.array(said), np.array(came, dtype=float)
    sd = math.sqrt(np.sum(said * (1 - said))) / len(said)
    assert abs(said.mean() - came.mean()) < 0.05 + 2 * sd
    assert came[said > 0.8].mean() > 0.75
    assert came[said < 0.5].mean() < 0.6
    assert np.mean((said - came) ** 2) < came.var(), "better than always saying how many meet it"


def test_a_resumed_study_suggests_the_same(history):
    optimizer = played(history, 6)
    again = optimizer.restarted()
    for trial in optimizer._trials:
        again.tell(trial.params, -trial.y, trial.measured)
    assert again.ask().params == optimizer.ask().params
    assert again.ask().why == optimizer.ask().why


def test_forgotten_trials_are_forgotten_by_all_models(history):
    optimizer, without = played(history, 5), played(history, 4)
    gone = optimizer.forget([optimizer.told[-1][0]])
    assert len(gone) == 1
    assert optimizer.ask().params == without.ask().params


def test_a_batch_spreads_before_anything_meets_the_limit(history):
    optimizer = played(history, 1)
    points = np.array([list(s.params.values()) for s in optimizer.ask_many(4)])
    gaps = np.linalg.norm(points[:, None] - points[None], axis=2)[np.triu_indices(4, 1)]
    assert gaps.min() > 1e-3


def test_old_data_of_the_problem_knows_what_it_measured():
    optimizer = Optimizer(SPACE, old_runs(target=True), method=QUICK, limits=LIMITS)
    met = optimizer.view().limits.met
    values = latency(np.array([t.u for t in optimizer._trials]), 0.1)
    assert len(met) == 60
    assert met.sum() == (values[:50] <= 15).sum(), "the last ten were not measured"
    (quantity,) = optimizer._measured.quantities
    assert len(quantity.model.view().z) == 50, "each is known once"
    assert optimizer.best is None


def test_a_table_is_searched_as_well(history):
    space = Space({"a": IntDistribution(0, 20), "b": IntDistribution(0, 20)})
    optimizer = played(None, 14, space)
    assert optimizer.best.value <= 0.1
    assert sum(optimizer.best.params.values()) <= 20


def test_what_is_left_counts_only_what_meets_the_limits():
    """A table of which all rows that can meet the limit were tried."""
    space = Space({"a": IntDistribution(0, 20), "b": IntDistribution(0, 0)})
    rows = [{"a": a, "b": 0} for a in range(21)]
    free = Optimizer(space, method=QUICK)
    limited = Optimizer(space, method=QUICK, limits={"q": (None, 10.5)})
    for row in rows[:14]:  # the value falls, the quantity grows
        free.tell(row, -float(row["a"]))
        limited.tell(row, -float(row["a"]), {"q": float(row["a"])})
    assert free.remaining() > 0.9
    assert limited.best.value == -10.0
    assert limited.remaining() < 0.1


def test_without_a_column_of_it_the_quantity_is_learned_from_trials(history):
    optimizer = played(replace(history, limits={}), 10)
    assert optimizer.best is not None


def test_mistakes_lose_nothing(history):
    with pytest.raises(InputError, match="knows no limits"):
        Optimizer(SPACE, method="gp-ucb", limits=LIMITS)
    with pytest.raises(InputError, match="'a' is a parameter"):
        Optimizer(SPACE, limits={"a": (None, 1.0)})
    optimizer = Optimizer(SPACE, limits=LIMITS)
    suggestion = optimizer.ask()
    with pytest.raises(InputError, match="did you mean 'latency_ms'"):
        optimizer.tell(suggestion, 1.0, {"latency": 3.0})
    optimizer.tell(suggestion, 1.0, {"latency_ms": 3.0})
    assert optimizer.best.value == 1.0
