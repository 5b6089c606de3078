"""Explanations: numbers that add up, intervals that cover, old runs that are really the nearest good ones."""

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution
from scipy.stats import t

from jumbo_bo.data.history import History, Task
from jumbo_bo.data.warp import Warp
from jumbo_bo.explain import (
    Explanation,
    Parts,
    Prediction,
    _without_this_point,
    in_digits,
    interval_reach,
    parts,
    predictions,
    said,
)
from jumbo_bo.explain import (
    voices as rated,
)
from jumbo_bo.learning.pretrain import Pretraining, pretrain
from jumbo_bo.methods import Choice, Surrogate
from jumbo_bo.methods.base import gp_surrogate
from jumbo_bo.models.gp import Kernel, Normal, ard, build, posterior
from jumbo_bo.neighbours import OldRun, nearest, witnesses
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.search.acquisition import noisy
from jumbo_bo.space.space import Space

SPACE = Space({"x": FloatDistribution(0, 1), "kind": CategoricalDistribution(["a", "b", "c"])})


def score(u):
    return 5 - (u[:, 0] - 0.4) ** 2 - 0.1 * (u[:, 1] > 0.5)


def task(name, n=120, seed=0):
    u = SPACE.sample(np.random.default_rng(seed), n)
    return Task(name, u, score(u))


HISTORY = History(SPACE, (task("one"), task("two", seed=1)))


def smooth(rng):
    """A bowl with a ripple, of random place, depth and levels."""
    centre, ripple, levels = rng.random(), rng.uniform(0, 0.5), rng.normal(scale=0.5, size=3)

    def function(u):
        level = levels[np.minimum((3 * u[:, 1]).astype(int), 2)]
        return level - 3 * (u[:, 0] - centre) ** 2 + ripple * np.sin(9 * u[:, 0])

    return function


def learned(tasks):
    return pretrain(History(SPACE, tuple(tasks)), Pretraining(max_steps=2_000), seed=0)


@pytest.fixture(scope="module")
def optimizer():
    """Twelve trials told, of which the last five were predicted before."""
    made = Optimizer(SPACE, HISTORY, "maximize", n_trials=12)
    for u in SPACE.sample(np.random.default_rng(3), 7):
        made.tell(SPACE.decode(u), float(score(u[None])[0]))
    for _ in range(5):
        suggestion = made.ask()
        made.tell(suggestion, float(score(SPACE.encode(suggestion.params)[None])[0]))
    return made


def test_old_and_new_add_up_to_the_posterior_mean(optimizer):
    """Relative to the average finished trial, which the GP's means at the trials give."""
    view = optimizer.view()
    choice = optimizer.recipe(view)
    blocks = view.domain.featurise(choice.best.u[None])
    gps = choice.surrogate.gps
    old, new, _ = _without_this_point(choice.surrogate, view, blocks)
    p = parts(choice.surrogate, said(choice.surrogate, blocks), old, new)
    average = sum(w * posterior(gp, gp.blocks).mean.mean() for w, gp in gps)
    assert p.old + p.new + average == pytest.approx(p.mean, abs=1e-9)
    assert p.mean == pytest.approx(sum(w * posterior(gp, blocks).mean[0] for w, gp in gps))


OLD = gp_surrogate(build(Kernel((ard("x", 1),), mean="m"), np.zeros(3), {"x": np.zeros((0, 1))}, np.zeros(0)))


def voices(old, new, n, aside=False):
    view = SimpleNamespace(failed=(), z=np.zeros(n))
    return rated(Parts(old, new, 0.0), Choice(None, OLD, aside=aside), view)


def test_the_sentence_tells_what_old_runs_and_trials_rate():
    assert voices(0.5, 0.4, 4) == "Old runs rate this 0.5 sd above average; your 4 trials agree"
    assert voices(0.1, -0.2, 1) == "Old runs rate this about average; your one trial agrees"
    assert voices(-1.23, 0.4, 2) == "Old runs rate this 1.2 sd below average, your 2 trials 0.4 sd above average"
    assert voices(0.5, 0.0, 1) == "Old runs rate this 0.5 sd above average, your one trial about average"
    assert voices(1.0, 0.0, 0) == "Old runs rate this 1.0 sd above average; no trials yet"
    set_aside = "The old runs do not fit your 6 trials and are set aside; the trials rate this 0.3 sd above average"
    assert voices(1.0, 0.3, 6, aside=True) == set_aside


def test_trust_is_a_share_and_starts_with_the_old_runs(optimizer):
    shares = [s.explanation.trust for s in optimizer.suggestions]
    assert all(0 <= share <= 1 for share in shares)
    assert Optimizer(SPACE, HISTORY, "maximize").ask().explanation.trust == 1.0
    assert Optimizer(SPACE, method="gp-ucb").ask().explanation.trust is None


def test_gate_and_beta_are_told():
    optimizer = Optimizer(SPACE, HISTORY, "maximize", n_trials=10, method="jumbo-printed")
    for _ in range(4):
        suggestion = optimizer.ask()
        optimizer.tell(suggestion, float(score(SPACE.encode(suggestion.params)[None])[0]))
    explanation = optimizer.ask().explanation
    assert isinstance(explanation.inside_gate, bool)
    assert explanation.beta == pytest.approx(10 * math.exp(-5 / 10))


@given(
    mean=st.floats(-2.5, 2.5), sd=st.floats(1e-3, 0.4), noise=st.floats(1e-6, 0.1), sign=st.sampled_from([-1.0, 1.0])
)
def test_the_interval_is_about_a_value_in_the_users_units(mean, sd, noise, sign):
    """Before the first trial: a value drawn from the model falls below low and above high once in twenty times each."""
    warp = Warp(0, 5.0, 3.0)

    def predict(_):
        return Normal(np.array([mean]), np.array([sd]))

    (p,) = predictions(said(Surrogate(predict, noisy(predict, noise)), {}), warp, sign, interval_reach(0, True))
    assert p.low <= p.mean <= p.high
    ends = sorted(warp(sign * np.array([p.low, p.high])))
    spread = math.sqrt(sd**2 + noise)
    if abs(mean) + 2 * spread < 3:  # where the warp is straight
        below, above = ((ends[0] - mean) / spread, (ends[1] - mean) / spread)
        assert 0.5 * math.erfc(-below / math.sqrt(2)) == pytest.approx(0.05, abs=1e-4)
        assert 0.5 * math.erfc(above / math.sqrt(2)) == pytest.approx(0.05, abs=1e-4)
        assert p.sd == pytest.approx(3.0 * sd)


def test_the_interval_narrows_with_trials_and_with_old_runs():
    assert interval_reach(3, True) == pytest.approx(1.25 * t(5).ppf(0.95))
    assert interval_reach(3, False) == pytest.approx(1.5 * t(2).ppf(0.95))
    assert interval_reach(1, False) == interval_reach(2, False) == pytest.approx(1.5 * t(1).ppf(0.95))
    assert interval_reach(10**9, True) == pytest.approx(1.25 * 1.6449, abs=1e-3)


def test_nearest_old_runs_are_the_nearest_of_the_good_ones():
    known = witnesses(HISTORY)
    assert len(known.u) == 24  # the best tenth of each
    for name in ("one", "two"):
        old = next(t for t in HISTORY.tasks if t.name == name)
        kept = [v for v, n in zip(known.value, known.task, strict=True) if n == name]
        assert sorted(kept) == pytest.approx(sorted(-np.sort(old.y)[-12:]))  # shown in the user's direction
    here = SPACE.encode({"x": 0.42, "kind": "b"})
    found = nearest(known, here, 4)
    distances = [run.distance for run in found]
    assert distances == sorted(distances)

    def apart(params):
        return (abs(params["x"] - 0.42) + (params["kind"] != "b")) / 2

    assert distances == pytest.approx(sorted(apart(SPACE.decode(u)) for u in known.u)[:4])
    assert [apart(run.params) for run in found] == pytest.approx(distances)


def test_many_tasks_keep_few_witnesses():
    tasks = tuple(Task(f"t{i}", np.full((3, 2), 0.5), np.arange(3.0)) for i in range(6000))
    assert len(witnesses(History(SPACE, tasks)).u) == 5000
    assert nearest(None, np.zeros(2)) == ()
    assert nearest(witnesses(History.empty(SPACE)), np.zeros(2)) == ()


def test_one_configuration_is_named_once_per_task():
    same = Task("repeated", np.tile([[0.5, 0.5]], (50, 1)), np.arange(50.0))
    assert len(nearest(witnesses(History(SPACE, (same,))), np.zeros(2))) == 1


def test_explanation_survives_json(optimizer):
    for explanation in (optimizer.suggestions[-1].explanation, Optimizer(SPACE, method="random").ask().explanation):
        text = json.dumps(explanation.to_json(), allow_nan=False)
        again = Explanation.from_json(json.loads(text))
        assert repr(again) == repr(explanation)


def test_explanation_of_an_old_run_keeps_its_parameters():
    run = OldRun("one", {"x": 0.5, "kind": "a"}, 0.25, 0.0)
    nothing = Prediction(math.nan, math.nan, math.nan, math.nan)
    explanation = Explanation("Why.", nothing, math.nan, 0.5, None, 1.0, True, (run,))
    again = Explanation.from_json(json.loads(json.dumps(explanation.to_json())))
    assert again.nearest == (run,)
    assert math.isnan(again.old)
    assert math.isnan(again.predicted.low)
    assert again.inside_gate is True


@pytest.mark.parametrize("old", [True, False], ids=["old runs", "no old runs"])
def test_nine_of_ten_intervals_hold_the_value_that_then_came(old):
    """The claim, on functions that nothing was tuned on, with little and with much noise. Of some 250 predictions that
    each hold with probability 0.9, a share outside these bounds is met once in five hundred times."""
    inside = []
    for seed in range(16):
        noise, rng = (0.02, 0.3)[seed % 2], np.random.default_rng(seed)
        functions = [smooth(rng) for _ in range(3)]
        rows = [SPACE.sample(rng, 60) for _ in functions[1:]]
        tasks = [
            Task(str(k), u, f(u) + noise * rng.normal(size=60))
            for k, (u, f) in enumerate(zip(rows, functions[1:], strict=True))
        ]
        optimizer = Optimizer(SPACE, learned(tasks) if old else None, "maximize", n_trials=19, seed=seed)
        for _ in range(17 if old else 19):
            suggestion = optimizer.ask()
            value = float(functions[0](SPACE.encode(suggestion.params)[None])[0] + noise * rng.normal())
            if not math.isnan(suggestion.predicted.low):
                inside.append(suggestion.predicted.low <= value <= suggestion.predicted.high)
            optimizer.tell(suggestion, value)
    assert 0.84 <= np.mean(inside) <= 0.96


@pytest.mark.parametrize(
    ("prediction", "shown"),
    [
        (Prediction(84.1234, 1.0, 82.31, 86.0), ("84.1", "82.3", "86")),
        (Prediction(1000.5021, 0.01, 1000.4811, 1000.5211), ("1000.5", "1000.48", "1000.52")),
        (Prediction(0.1723, 1.0, 2.514e-9, 1.15e7), ("0.17", "2.5e-09", "1.2e+07")),
        (Prediction(0.0, 1.0, -1.0, 1.0), ("0", "-1", "1")),
        (Prediction(5.0, 0.0, 5.0, 5.0), ("5", "5", "5")),
        (Prediction(-0.34567, 0.02, -0.39, -0.302), ("-0.35", "-0.39", "-0.3")),
    ],
)
def test_numbers_have_the_digits_they_deserve(prediction, shown):
    assert in_digits(prediction) == shown


def test_a_suggestion_is_explained_alike_by_a_process_that_made_the_ones_before_it_and_by_one_that_is_told_of_them():
    space = Space({"a": FloatDistribution(0, 1), "b": FloatDistribution(0, 1)})
    rng = np.random.default_rng(0)
    trials = [({"a": a, "b": b}, (a - 0.3) ** 2 + b) for a, b in rng.random((12, 2))]
    batch, resumed = Optimizer(space), Optimizer(space)
    for params, value in trials:
        batch.tell(params, value)
        resumed.tell(params, value)
    *before, last = batch.ask_many(5)
    again = resumed.ask(running=[s.params for s in before])
    assert (again.params, again.why) == (last.params, last.why)
    for name in ("old", "new", "predicted"):  # with and without pending trials the same up to rounding
        assert getattr(again.explanation, name) == pytest.approx(getattr(last.explanation, name), nan_ok=True)
