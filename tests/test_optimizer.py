"""ask / tell: what a user may do, and every way to do it wrong."""

import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from optuna.distributions import FloatDistribution, IntDistribution

from jumbo_bo.data.history import History, Task
from jumbo_bo.explain import Explanation
from jumbo_bo.learning.pretrain import PRESETS, Pretraining, pretrain
from jumbo_bo.methods import GPUCB
from jumbo_bo.methods.jumbo import warm_kernel
from jumbo_bo.models import gp as gps
from jumbo_bo.models.kernel import cold_kernel
from jumbo_bo.optimizer import Optimizer, Suggestion
from jumbo_bo.space.space import Space

SPACE = Space({"x": FloatDistribution(0, 1), "n": IntDistribution(1, 5)})


def value(params):
    return (params["x"] - 0.3) ** 2 + 0.1 * (params["n"] - 2) ** 2


def told(n, **options):
    optimizer = Optimizer(SPACE, method="gp-ucb", n_trials=20, **options)
    for _ in range(n):
        suggestion = optimizer.ask()
        optimizer.tell(suggestion, value(suggestion.params))
    return optimizer


def test_best_follows_the_direction():
    for direction, best in (("minimize", 1.0), ("maximize", 3.0)):
        optimizer = Optimizer(SPACE, direction=direction, method="random")
        for v in (2.0, 1.0, 3.0, math.nan):
            optimizer.tell(optimizer.ask(), v)
        assert optimizer.best.value == best
        assert optimizer.best.params in [s.params for s in optimizer.suggestions]


def test_minimising_a_loss_is_maximising_its_negative():
    low = told(7)
    high = Optimizer(SPACE, direction="maximize", method="gp-ucb", n_trials=20)
    for _ in range(7):
        suggestion = high.ask()
        high.tell(suggestion, -value(suggestion.params))
    assert [s.params for s in low.suggestions] == [s.params for s in high.suggestions]
    assert low.suggestions[-1].predicted.mean == pytest.approx(-high.suggestions[-1].predicted.mean)


def test_prediction_is_in_the_users_units():
    optimizer = Optimizer(SPACE, method="gp-ucb", n_trials=20)
    for _ in range(12):
        suggestion = optimizer.ask()
        optimizer.tell(suggestion, 1000 + 50 * value(suggestion.params))
    mean, sd, low, high = optimizer.ask().predicted
    assert 990 < mean < 1100
    assert 0 <= sd < 60
    assert low < mean < high


def test_telling_by_parameters_settles_the_pending_suggestion():
    by_suggestion, by_params = told(5), told(5)
    for optimizer in (by_suggestion, by_params):
        suggestion = optimizer.ask()
        optimizer.tell(suggestion if optimizer is by_suggestion else dict(suggestion.params), 0.5)
    assert by_params.ask().params == by_suggestion.ask().params


def test_telling_another_configuration_settles_nothing():
    optimizer = told(3)
    pending = optimizer.ask()
    other = {"x": (pending.params["x"] + 0.01) % 1.0, "n": pending.params["n"]}
    optimizer.tell(other, 1.0)
    np.testing.assert_allclose(optimizer.view().pending, [SPACE.encode(pending.params)])
    optimizer.tell(pending, 2.0)
    assert optimizer.told[-2:] == [(other, 1.0), (pending.params, 2.0)]
    assert len(optimizer.view().pending) == 0


def test_what_a_recipe_sees():
    optimizer = told(5)
    optimizer.fail(optimizer.ask())
    running = optimizer.ask()
    view = optimizer.view()
    assert (len(view.u), len(view.z), len(view.pending), view.t, view.horizon) == (6, 6, 1, 8, 20)
    np.testing.assert_array_equal(view.u, [SPACE.encode(params) for params, _ in optimizer.told])
    np.testing.assert_array_equal(view.taken[-1], SPACE.encode(running.params))
    u, z = view.earlier(4)
    np.testing.assert_array_equal(u, view.u[:4])
    np.testing.assert_array_equal(np.argsort(z), np.argsort(view.z[:4]))
    kept = [view.kept("once", lambda: object()), optimizer.view().kept("once", lambda: object())]
    assert kept[0] is kept[1]
    assert optimizer.restarted().view().kept("once", lambda: None) is None
    kernel = cold_kernel(SPACE)
    assert view.fit(kernel, adam=True).theta[0] == 0.0  # the paper's fit leaves the amplitude at 1
    assert view.fit(kernel).theta[0] != 0.0
    assert (optimizer.direction, optimizer.n_trials, optimizer.seed) == ("minimize", 20, 0)


def test_a_view_is_a_snapshot():
    """What was asked of it before a tell and after is the same, also when other models were fitted in between."""
    optimizer = told(6)
    view, kernel = optimizer.view(), cold_kernel(SPACE)
    before = view.fit(kernel)
    optimizer.tell({"x": 0.9, "n": 5}, 100.0)
    other = cold_kernel(SPACE, per_parameter=False)
    optimizer.view().fit(other)
    after = view.fit(kernel)
    assert len(after.y) == len(view.z) == 6
    np.testing.assert_array_equal(after.theta, before.theta)
    np.testing.assert_array_equal(after.y, before.y)
    assert len(optimizer.view().fit(kernel).y) == 7
    # Hyperparameters belong to a kernel, whoever asks.
    assert len(optimizer.view().fit(other).theta) == len(other.priors[0]) != len(after.theta)


def test_chains_start_anew_after_the_same_trials_as_fits(monkeypatch):
    """Every ten trials, counted from the first that is no old data of the target."""
    history = History(SPACE, (), target=old_task("new", n=4, seed=1))
    optimizer = Optimizer(SPACE, history, n_trials=30, method="gp-ucb")
    chains, fits, fit = [], [], gps.fit

    def step(n, before):
        if before is None:
            chains.append(n)
        return n

    def spy(kernel, blocks, y, starts=(), iterations=100):
        if iterations == 100:
            fits.append(len(y))
        return fit(kernel, blocks, y, starts, iterations)

    monkeypatch.setattr(gps, "fit", spy)
    for i in range(12):
        optimizer.view().chain("test", step)
        optimizer.view().fit(cold_kernel(SPACE))
        optimizer.tell({"x": i / 12, "n": 1}, 1.0)
    assert chains == fits == [4, 14]


def test_trials_of_ones_own_are_welcome():
    optimizer = Optimizer(SPACE, method="gp-ucb")
    optimizer.tell({"x": 0.3, "n": 2}, 0.0)
    assert optimizer.best == ({"x": 0.3, "n": 2}, 0.0)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"x": 2.0, "n": 2}, r"'x' is 2.0, expected a number in \[0, 1\]"),
        ({"x": 0.5}, r"missing \['n'\]"),
        ({"x": 0.5, "n": 2, "y": 1}, r"unknown \['y'\]"),
        ({"x": "many", "n": 2}, "'x' is 'many'"),
        ({"x": 0.5, "n": 2.5}, "'n' is 2.5, expected an integer"),
    ],
)
def test_bad_parameters_are_named_and_lose_nothing(params, message):
    optimizer = told(2)
    with pytest.raises(ValueError, match=message):
        optimizer.tell(params, 1.0)
    assert len(optimizer._trials) == 2


def test_telling_twice_or_a_stranger_is_an_error():
    optimizer = told(1)
    first = optimizer.suggestions[0]
    with pytest.raises(ValueError, match="already told or failed"):
        optimizer.tell(first, 1.0)
    stranger = Optimizer(SPACE, method="random", seed=9).ask()
    optimizer.ask()
    with pytest.raises(ValueError, match="not from this optimizer"):
        optimizer.fail(stranger)


def test_a_copy_of_a_suggestion_is_as_good_as_the_original():
    optimizer = Optimizer(SPACE, method="random")
    suggestion = optimizer.ask()
    kept = suggestion.explanation.to_json()
    copy = Suggestion(suggestion.number, dict(suggestion.params), Explanation.from_json(kept))
    optimizer.tell(copy, 1.0)
    assert optimizer.best.value == 1.0


@pytest.mark.parametrize("bad", ["good", None, [1, 2]])
def test_a_value_that_is_no_number_is_an_error_and_the_suggestion_stays_pending(bad):
    optimizer = told(1)
    suggestion = optimizer.ask()
    with pytest.raises(TypeError, match="expected a number"):
        optimizer.tell(suggestion, bad)
    optimizer.tell(suggestion, 1.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "magic"}, "method is 'magic', expected one of jumbo-joint"),
        ({"direction": "up"}, "direction is 'up'"),
        ({"n_trials": 0}, "n_trials is 0"),
        ({"candidates": []}, "candidate list"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        Optimizer(SPACE, **options)


def test_history_of_another_space_is_refused():
    other = Space({"x": FloatDistribution(0, 2), "n": IntDistribution(1, 5)})
    with pytest.raises(ValueError, match="another space"):
        Optimizer(SPACE, History.empty(other))


def test_failures_are_avoided():
    """Everything with x > 0.5 fails: after a few trials most suggestions keep away from there."""
    optimizer = Optimizer(SPACE, method=GPUCB(beta0=1.0), n_trials=25)
    for _ in range(25):
        suggestion = optimizer.ask()
        if suggestion.params["x"] > 0.5:
            optimizer.fail(suggestion)
        else:
            optimizer.tell(suggestion, 1.0 - suggestion.params["x"])
    late = [s.params["x"] for s in optimizer.suggestions[12:]]
    assert np.mean(np.array(late) > 0.5) < 0.4


def test_a_failure_counts_as_the_worst_value_so_far():
    optimizer = Optimizer(SPACE, method="gp-ucb")
    optimizer.fail({"x": 0.9, "n": 1})
    assert optimizer.view().z.tolist() == [-1.0]  # nothing to compare it with yet
    for x, y in ((0.1, 2.0), (0.2, 1.0), (0.3, 7.0)):
        optimizer.tell({"x": x, "n": 1}, y)
    optimizer.tell({"x": 0.8, "n": 1}, math.inf)
    z = optimizer.view().z
    assert z[0] == z[4] == z[3]  # the largest loss
    assert z[3] < z[1] < z[2]
    assert optimizer.best.value == 1.0


def test_pending_points_are_hallucinated_not_forgotten():
    optimizer = told(6)
    lone = told(6).ask()
    batch = optimizer.ask_many(3)
    assert batch[0].params == lone.params
    assert batch[1].params != batch[0].params
    np.testing.assert_allclose(optimizer.view().pending.shape, (3, 2))


def test_candidates_from_a_frame_are_returned_as_they_are():
    for package in ("pandas", "pyarrow"):
        pytest.importorskip(package)
    frame = pl.DataFrame({"x": [0.1, 0.25, 0.9], "n": [1, 2, 3]})
    for rows in (frame, frame.to_pandas(), frame.to_arrow(), frame.to_dicts()):
        optimizer = Optimizer(SPACE, method="gp-ucb", candidates=rows)
        got = sorted(optimizer.ask().params["x"] for _ in range(3))
        assert got == [0.1, 0.25, 0.9]


def old_task(name, n=40, seed=0, shift=0.0):
    u = SPACE.sample(np.random.default_rng(seed), n)
    return Task(name, u, np.array([-value(SPACE.decode(row)) - shift for row in u]))


def test_old_data_of_the_target_counts_as_observed():
    history = History(SPACE, (old_task("a"),), target=old_task("new", n=6, seed=1))
    optimizer = Optimizer(SPACE, history, n_trials=10)
    optimizer.history = history
    assert len(optimizer.view().u) == 6
    assert optimizer.view().t == 1
    assert optimizer.best is None
    assert "6 new trials" in optimizer.ask().why


def test_hyperparameters_of_eq_1_are_a_start_of_the_fits(monkeypatch):
    """Old data of the target gave them; one length scale stands for all."""
    history = History(SPACE, (old_task("a"),), target=old_task("new", n=6, seed=1))
    optimizer = Optimizer(SPACE, history, n_trials=10, method="jumbo")
    optimizer.past = pretrain(history, replace(PRESETS["hpo"], max_steps=200))
    starts, limits, fit = [], [], gps.fit

    def spy(kernel, blocks, y, given=(), iterations=100):
        starts.append([np.asarray(start) for start in given])
        limits.append(iterations)
        return fit(kernel, blocks, y, given, iterations)

    monkeypatch.setattr(gps, "fit", spy)
    optimizer.recipe.models(optimizer.view())
    warm, cold = (optimizer.net.theta[name] for name in ("warm", "cold"))
    (median, from_warm), (_, from_cold) = starts
    np.testing.assert_array_equal(from_warm, warm)
    np.testing.assert_array_equal(from_cold, [cold[0], cold[1], cold[1], cold[2]])
    np.testing.assert_array_equal(median, warm_kernel(optimizer.view(), "h").priors[0])
    assert not np.allclose(median, from_warm)
    # Between two searches from scratch, a fit starts where the last one ended.
    optimizer.tell({"x": 0.5, "n": 2}, 0.3)
    optimizer.recipe.models(optimizer.view())
    assert [len(given) for given in starts] == [2, 2, 1, 1]
    assert limits == [100, 100, 10, 10]


def test_much_old_data_of_the_target_is_thinned_but_keeps_the_best():
    target = old_task("new", n=1000, seed=1)
    optimizer = Optimizer(SPACE, History(SPACE, (), target=target), method="gp-ucb")
    kept = optimizer.view()
    assert len(kept.u) == 300
    order = np.argsort(-target.y)

    def is_kept(row):
        return (target.u[row] == kept.u).all(axis=1).any()

    assert all(is_kept(row) for row in order[:100])  # the best third
    assert 0.1 < np.mean([is_kept(row) for row in order[100:]]) < 0.4  # and a sample of the rest


def test_a_net_and_the_history_it_came_from_suggest_the_same():
    history = History(SPACE, (old_task("a"), old_task("b", seed=1, shift=3.0)))
    a = Optimizer(SPACE, history, n_trials=10)
    b = Optimizer(SPACE, pretrain(history, seed=0), n_trials=10)
    for _ in range(3):
        first, second = a.ask(), b.ask()
        assert (first.params, first.why, first.predicted) == (second.params, second.why, second.predicted)
        assert len(first.explanation.nearest) == 3  # only a history remembers its runs
        assert second.explanation.nearest == ()
        a.tell(first, value(first.params))
        b.tell(second, value(second.params))


def test_another_process_suggests_the_same():
    code = """
from optuna.distributions import FloatDistribution, IntDistribution
from jumbo_bo import Optimizer, Space
optimizer = Optimizer(Space({"x": FloatDistribution(0, 1), "n": IntDistribution(1, 5)}), method="gp-ucb", n_trials=20)
for x, n, y in [(0.1, 1, 2.0), (0.5, 3, 1.0), (0.8, 5, 4.0), (0.3, 2, 0.5)]:
    optimizer.tell({"x": x, "n": n}, y)
print(optimizer.ask().params)
"""
    outputs = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout for _ in "ab"
    }
    optimizer = Optimizer(SPACE, method="gp-ucb", n_trials=20)
    for x, n, y in [(0.1, 1, 2.0), (0.5, 3, 1.0), (0.8, 5, 4.0), (0.3, 2, 0.5)]:
        optimizer.tell({"x": x, "n": n}, y)
    assert outputs == {f"{optimizer.ask().params}\n"}


def test_why_tells_what_old_runs_and_new_trials_say():
    net = pretrain(History(SPACE, (old_task("a"),)), Pretraining(max_steps=200))
    optimizer = Optimizer(SPACE, net, n_trials=10)
    assert "no new trial yet" in optimizer.ask().why
    optimizer.tell(optimizer.suggestions[0], value(optimizer.suggestions[0].params))
    contrast = optimizer.ask()
    assert "A contrast to the first trial" in contrast.why
    optimizer.tell(contrast, value(contrast.params))
    text = optimizer.ask().why
    assert "The old runs say" in text
    assert "the 2 new trials" in text
    assert "predicted" in text
