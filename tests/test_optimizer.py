"""ask / tell: what a user may do, and every way to do it wrong."""

import math
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from optuna.distributions import FloatDistribution, IntDistribution

from bowl import SPACE, told, value
from jumbo_bo.data.history import History
from jumbo_bo.explain import Explanation
from jumbo_bo.methods import GPUCB
from jumbo_bo.optimizer import Optimizer, Suggestion
from jumbo_bo.space.space import Space


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
        ({"method": "magic"}, "method is 'magic', expected one of jumbo-mixture"),
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
