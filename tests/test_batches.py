"""`ask_many`: a batch is what single asks with the same trials pending would be, also in another process."""

import numpy as np
import pytest
from optuna.distributions import FloatDistribution, IntDistribution

from jumbo_bo.methods.averaging import improvement
from jumbo_bo.methods.base import FOLLOW_UP
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.space.space import Space
from jumbo_bo.trials import CHAINED, CLOSE_ENOUGH

BOX = Space({f"x{i}": FloatDistribution(0, 1) for i in range(3)})
TABLE = Space({f"x{i}": IntDistribution(0, 19) for i in range(3)})


def told(space, n):
    rng = np.random.default_rng(0)
    trials = [space.decode(u) for u in space.sample(rng, n)]
    return [(params, sum(np.sin(i + v) for i, v in enumerate(params.values()))) for params in trials]


def after(space, trials):
    optimizer = Optimizer(space, seed=3)
    for params, value in trials:
        optimizer.tell(params, value)
    return optimizer


@pytest.mark.parametrize(("space", "n"), [(BOX, 8), (BOX, 0), (TABLE, 8)])
def test_a_resumed_batch_goes_on_as_it_would_have(space, n):
    trials = told(space, n)
    batch = [s.params for s in after(space, trials).ask_many(14)]
    assert len({tuple(p.values()) for p in batch}) == 14
    for k in (1, 10, 13):  # in the middle of a chain of searches, and where one begins
        assert after(space, trials).ask(running=batch[:k]).params == batch[k]


def test_a_result_starts_a_new_search():
    trials = told(BOX, 8)
    optimizer = after(BOX, trials)
    first, *others = optimizer.ask_many(3)
    optimizer.tell(first, -5.0)
    again = after(BOX, [*trials, (first.params, -5.0)])
    assert again.ask(running=[s.params for s in others]).params == optimizer.ask().params


def test_later_members_are_nearly_as_promising_as_those_of_a_search_of_their_own():
    optimizer, lost = after(BOX, told(BOX, 20)), []
    for k in range(12):
        view = optimizer.view()
        gps = optimizer.recipe.models(view)
        tried = np.vstack([view.u, view.pending])
        score = improvement(gps, float(gps[0][1].predict(view.domain.featurise(tried)).mean.max()), may_repeat=True)
        own = view.domain.argmax(score, view.rng, view.hints, view.taken).score
        suggestion = optimizer.ask()
        found = float(score(view.domain.featurise(BOX.encode(suggestion.params)[None]))[0])
        lost += [own - found] if k else []
    assert np.median(lost) < 0.1


def test_past_some_trials_a_resumed_study_repeats_two_fits(monkeypatch):
    from jumbo_bo.models import gp

    fits, fit = [], gp.best_theta
    monkeypatch.setattr(gp, "best_theta", lambda *args: fits.append(args[4]) or fit(*args))
    after(BOX, told(BOX, CHAINED + 17)).ask()
    assert fits == [{}, {"maxiter": FOLLOW_UP, **CLOSE_ENOUGH}]  # from scratch, then from there
