"""A suggestion that repeats a trial is called a repeat, where noise is the reason."""

import math

import numpy as np
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo.data.history import History, Task
from jumbo_bo.explain import Explanation
from jumbo_bo.neighbours import repeated
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.space.space import Space
from jumbo_bo.trials import Trial

SPACE = Space(
    {
        "lr": FloatDistribution(1e-4, 1e-0, log=True),
        "units": IntDistribution(0, 50),
        "kind": CategoricalDistribution(["a", "b", "c"]),
    }
)
LINE = Space({"x": FloatDistribution(0, 1)})


def trial(lr, units, kind, y=1.0):
    params = {"lr": lr, "units": units, "kind": kind}
    return Trial(SPACE.encode(params), params, y)


def test_every_parameter_has_to_be_the_same_within_a_hundredth_of_its_range():
    told = [trial(0.01, 10, "a"), trial(0.01, 10, "b"), trial(0.01, 11, "c")]
    assert repeated(SPACE, trial(0.01, 10, "b").u, told) == 1
    assert repeated(SPACE, trial(0.0108, 10, "b").u, told) == 1  # of four powers of ten
    assert repeated(SPACE, trial(0.0112, 10, "b").u, told) is None
    assert repeated(SPACE, trial(0.01, 10, "c").u, told) is None  # one of 50 steps is 2 %
    assert repeated(SPACE, trial(0.01, 10, "a").u, []) is None


def test_of_several_the_closest_that_has_a_value():
    told = [trial(0.0103, 10, "a"), trial(0.0101, 10, "a"), trial(0.01, 10, "a", math.nan)]
    assert repeated(SPACE, trial(0.01, 10, "a").u, told) == 1


def late(noise, history=None, trials=30):
    """Suggestions on a short line, where the search soon has nothing but the best place left to look at."""
    optimizer, rng = Optimizer(LINE, history, "minimize"), np.random.default_rng(0)
    for _ in range(trials):
        suggestion = optimizer.ask()
        optimizer.tell(suggestion, (suggestion.params["x"] - 0.3) ** 2 + noise * rng.normal())
    return optimizer


def test_repeats_under_noise_say_so_and_name_the_trial():
    optimizer = late(0.3)
    repeats = [s for s in optimizer.suggestions if s.explanation.repeats is not None]
    assert repeats
    for s in repeats:
        number = s.explanation.repeats
        assert number < s.number
        assert abs(optimizer.told[number][0]["x"] - s.params["x"]) <= 0.01
        assert f"Repeats trial {number}, as noise hides its true value: expected " in s.why
        assert "Exploring" not in s.why
        assert "Exploiting" not in s.why
        assert Explanation.from_json(s.explanation.to_json()).repeats == number


def test_without_noise_a_close_point_is_a_search_for_a_better_one():
    optimizer = late(0.0, trials=12)
    close = [
        s
        for s in optimizer.suggestions
        if any(abs(params["x"] - s.params["x"]) <= 0.01 for params, _ in optimizer.told[: s.number])
    ]
    assert close
    assert all("Exploiting" in s.why or "Exploring" in s.why for s in close if s.explanation.repeats is None)
    assert any(s.explanation.repeats is None for s in close)


def test_old_data_of_the_target_are_not_counted():
    u = np.linspace(0, 1, 20)[:, None]
    rng = np.random.default_rng(1)
    target = Task("new", u, -((u[:, 0] - 0.3) ** 2) + 0.3 * rng.normal(size=20))
    optimizer = late(0.3, History(LINE, (), target, direction="minimize"), trials=15)
    for s in optimizer.suggestions:
        assert s.explanation.repeats is None or s.explanation.repeats < s.number


def test_explanations_of_earlier_versions_can_be_read():
    plain = late(0.3, trials=4).suggestions[-1].explanation.to_json()
    del plain["repeats"]
    assert Explanation.from_json(plain).repeats is None
