"""The optimizer with several goals: with old runs and without, together with everything else it can do."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo.data.history import History, Task
from jumbo_bo.data.readers import read_history
from jumbo_bo.errors import InputError
from jumbo_bo.learning.training import Pretraining
from jumbo_bo.methods import JumboMixture
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.pareto import ParetoOptimizer
from jumbo_bo.search.front import hypervolume
from jumbo_bo.space.space import Space

SPACE = Space({"a": FloatDistribution(0, 1), "b": FloatDistribution(0, 1)})
TABLE = Space({"a": IntDistribution(0, 20), "b": IntDistribution(0, 20)})
QUICK = JumboMixture(preset=Pretraining(members=1, max_epochs=60, n_u=16))
GOALS = {"cost": "minimize", "purity": "maximize"}


def values(u, shift=0.0):
    """The front is b = 0.3 and a from 0.2 to 0.8."""
    far = (u[..., 1] - 0.3 - shift) ** 2
    return (u[..., 0] - 0.2) ** 2 + far, 3 - (u[..., 0] - 0.8) ** 2 - far


def rows():
    rng, found = np.random.default_rng(0), []
    for k, shift in enumerate((-0.1, 0.0, 0.1)):
        for u in rng.random((50, 2)):
            cost, purity = values(u, shift)
            found.append({"task": f"old {k}", "a": u[0], "b": u[1], "cost": cost, "purity": purity})
    return pl.DataFrame(found)


@pytest.fixture(scope="module")
def history():
    return History.from_frame(rows(), SPACE, task="task", direction=GOALS)


@pytest.fixture(scope="module")
def learned(history):
    """Whose past every other one shares."""
    optimizer = Optimizer(SPACE, history, GOALS, method=QUICK)
    _ = optimizer.past
    return optimizer


def followed(optimizer, trials, space=SPACE):
    for _ in range(trials):
        suggestion = optimizer.ask()
        cost, purity = values(space.encode(suggestion.params))
        optimizer.tell(suggestion, {"cost": float(cost), "purity": float(purity)})
    return optimizer


def dominated(optimizer):
    f = np.array([[-v["cost"], v["purity"]] for _, v in optimizer.told if not math.isnan(v["cost"])])
    return hypervolume(f, np.array([-0.6, 2.4]))


def test_several_directions_make_another_optimizer():
    assert type(Optimizer(SPACE, direction=GOALS)) is ParetoOptimizer
    assert type(Optimizer(SPACE, None, GOALS)) is ParetoOptimizer
    assert type(Optimizer(SPACE, direction="maximize")) is Optimizer
    assert Optimizer(SPACE, direction=GOALS).directions == GOALS


def test_old_runs_of_every_goal_help_from_the_first_trial_on(history, learned):
    assert [q.model.past is not None for q in learned._others.quantities] == [True]
    with_old, without = followed(learned.restarted(), 6), followed(Optimizer(SPACE, direction=GOALS), 6)
    assert dominated(with_old) > dominated(without)
    on_front = [params for params, _ in with_old.told if abs(params["b"] - 0.3) < 0.15]
    assert len(on_front) >= 5
    assert "Old runs rate" in with_old.suggestions[0].why


def test_the_front_is_found_without_old_runs():
    optimizer = followed(Optimizer(SPACE, direction=GOALS), 20)
    best = values(np.column_stack([np.linspace(0.2, 0.8, 200), np.full(200, 0.3)]))
    everything = hypervolume(np.column_stack([-best[0], best[1]]), np.array([-0.6, 2.4]))
    assert dominated(optimizer) > 0.95 * everything
    front = optimizer.front
    assert [t.values["cost"] for t in front] == sorted(t.values["cost"] for t in front)
    assert [t.values["purity"] for t in front] == sorted(t.values["purity"] for t in front)


def test_the_sign_of_a_goal_does_not_matter():
    one, other = Optimizer(SPACE, direction=GOALS), Optimizer(SPACE, direction={"cost": "minimize", "dirt": "minimize"})
    for _ in range(6):
        a, b = one.ask(), other.ask()
        assert a.params == b.params
        cost, purity = map(float, values(SPACE.encode(a.params)))
        one.tell(a, {"cost": cost, "purity": purity})
        other.tell(b, {"cost": cost, "dirt": -purity})


def test_what_was_told_decides(learned):
    first = followed(learned.restarted(), 5)
    again = learned.restarted()
    for params, told in first.told:
        again.tell(params, told)
    assert again.ask().params == first.ask().params
    assert again.told == first.told


def test_batches_spread_out(learned):
    batch = followed(learned.restarted(), 2).ask_many(4)
    points = np.array([list(s.params.values()) for s in batch])
    apart = np.linalg.norm(points[:, None] - points[None], axis=2)[np.triu_indices(4, 1)]
    assert apart.min() > 0.02
    assert len(Optimizer(TABLE, direction=GOALS).ask_many(6)) == 6


def test_a_trial_without_one_of_the_values_has_failed(learned):
    optimizer = learned.restarted()
    for missing in (None, math.nan, math.inf):
        optimizer.tell(optimizer.ask(), {"cost": 0.1, "purity": missing})
    assert all(math.isnan(v) for _, told in optimizer.told for v in told.values())
    assert optimizer.front == []
    assert "Chance of success" in optimizer.ask().why
    followed(optimizer, 2)
    assert 1 <= len(optimizer.front) <= 2
    assert len(optimizer.forget()) == 3
    assert len(optimizer.told) == 2


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"cost": 1.0}, "value has no 'purity'"),
        ({"cost": 1.0, "purty": 2.0}, "did you mean 'purity'"),
        ({"cost": 1.0, "purity": "much"}, "the value of 'purity' is 'much', expected a number"),
        ([1.0], "1 value for 2 goals"),
        ([1.0, 2.0, 3.0], "3 values for 2 goals"),
        (1.0, "expected one for each of cost, purity"),
        ("12", "expected one for each of cost, purity"),
    ],
)
def test_wrong_values_are_refused_and_nothing_is_lost(value, problem):
    optimizer = Optimizer(SPACE, direction=GOALS)
    suggestion = optimizer.ask()
    with pytest.raises(InputError, match=problem):
        optimizer.tell(suggestion, value)
    optimizer.tell(suggestion, [1.0, 2.0])
    assert optimizer.told == [(suggestion.params, {"cost": 1.0, "purity": 2.0})]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"direction": {}}, "expected two goals or more"),
        ({"direction": {"cost": "minimize"}}, "expected two goals or more"),
        ({"direction": {"cost": "minimize", "purity": "up"}}, "direction of 'purity' is 'up'"),
        ({"direction": {"cost": "minimize", "purity": None}}, "direction of 'purity' is None"),
        ({"direction": {"cost": "minimize", "a": "minimize"}}, "'a' is a parameter"),
        ({"direction": {"cost": "minimize", "": "minimize"}}, "is not a name"),
        ({"method": "gp-ucb"}, "gp-ucb knows a single goal only"),
        ({"bounds": (0, None)}, "bounds are for a single goal"),
        ({"limits": {"purity": (1, None)}}, "'purity' is a goal"),
        ({"reference": {"price": 1.0}}, "the goals are cost, purity"),
        ({"reference": {"cost": math.inf}}, "the reference of 'cost' is inf"),
        ({"reference": 3}, "reference is 3"),
    ],
)
def test_what_does_not_work_is_refused_at_once(options, problem):
    with pytest.raises(InputError, match=problem):
        Optimizer(SPACE, **({"direction": GOALS} | options))


def test_what_is_for_a_single_goal_says_so(tmp_path):
    optimizer = followed(Optimizer(SPACE, direction=GOALS), 4)
    for ask in (lambda: optimizer.best, optimizer.remaining, lambda: optimizer.save(tmp_path / "x")):
        with pytest.raises(InputError, match=r"single goal|no trial is the best|several goals"):
            ask()


def test_notebooks_show_all_goals():
    optimizer = followed(Optimizer(SPACE, direction=GOALS), 5)
    optimizer.tell({"a": 0.0, "b": 0.0}, [None, 1.0])
    table = optimizer.trials
    assert table.columns == ["trial", "a", "b", "cost", "purity", "state", "joins", "why"]
    assert table["state"].to_list() == ["done"] * 5 + ["failed"]
    assert table["cost"].to_list()[:5] == [told["cost"] for _, told in optimizer.told[:5]]
    html = optimizer._repr_html_()
    assert f"6 trials; {len(optimizer.front)} on the front" in html
    assert "minimize cost, maximize purity" in html
    (points,) = [t for t in optimizer.plot().data if t.name == "on the front"]
    assert sorted(points.x) == sorted(t.values["cost"] for t in optimizer.front)
    with pytest.raises(InputError, match="expected 'front'"):
        optimizer.plot("progress")
    assert optimizer.models()["purity"].plot("progress") is not None


def test_a_replaced_value_moves_the_front():
    optimizer = followed(Optimizer(SPACE, direction=GOALS), 5)
    params, before = optimizer.told[0]
    assert optimizer.replace(params, {"cost": -1.0, "purity": 9.0}) == before
    assert [t.params for t in optimizer.front] == [params]
    assert optimizer.ask().params  # its models have followed


def test_predictions_are_of_every_goal(learned):
    optimizer = followed(learned.restarted(), 4)
    (found,) = optimizer.predict([{"a": 0.5, "b": 0.3}])
    cost, purity = values(np.array([0.5, 0.3]))
    assert found["cost"].low <= cost <= found["cost"].high
    assert found["purity"].low <= purity <= found["purity"].high
    explanation = optimizer.ask().explanation
    assert list(explanation.goals) == ["cost", "purity"]
    assert 0 <= explanation.joins <= 1
    assert explanation.from_json(explanation.to_json()) == explanation


def test_a_given_reference_point_bounds_the_search(learned):
    line = [{"a": a, "b": 0.3} for a in np.linspace(0, 1, 41).tolist()]
    free, bound = learned.restarted(line), learned.restarted(line)
    bound.reference = {"cost": 0.05}
    costs = [[told["cost"] for _, told in followed(optimizer, 10).told] for optimizer in (free, bound)]
    assert sum(cost < 0.06 for cost in costs[1]) > sum(cost < 0.06 for cost in costs[0])
    made = Optimizer(SPACE, direction=GOALS, reference={"cost": 0.1, "purity": None})
    assert made.reference == made.restarted().reference == {"cost": 0.1}


def test_three_goals_limits_constraints_and_beliefs_at_once():
    from jumbo_bo.space.beliefs import about

    space = Space(dict(SPACE.distributions), constraints=["a + b <= 1"])
    goals, limits = GOALS | {"time": "minimize"}, {"heat": (None, 0.9)}
    optimizer = Optimizer(space, direction=goals, limits=limits, beliefs={"a": about(0.4)})
    for _ in range(8):
        suggestion = optimizer.ask()
        a, b = suggestion.params["a"], suggestion.params["b"]
        assert a + b <= 1 + 1e-9
        optimizer.tell(suggestion, [*map(float, values(np.array([a, b]))), 1 + b], {"heat": a + b})
    assert "Meets heat <= 0.9" in suggestion.why
    optimizer.tell({"a": 0.2, "b": 0.31}, [-5.0, 5.0, 0.0], {"heat": 2.0})  # the best of all, and too hot
    assert all(t.values["cost"] > -5 for t in optimizer.front)


def test_conditions_candidates_and_fixed_parameters():
    space = Space(
        {"kind": CategoricalDistribution(["x", "y"]), "a": FloatDistribution(0, 1)}, conditions={"a": "kind == 'x'"}
    )
    optimizer = Optimizer(space, direction=GOALS)
    for _ in range(6):
        suggestion = optimizer.ask()
        a = suggestion.params.get("a", 0.5)
        optimizer.tell(suggestion, [a, 1 - a])
    listed = [{"a": i, "b": 6} for i in range(21)]
    choosing = followed(Optimizer(TABLE, direction=GOALS, candidates=listed), 6, TABLE)
    assert all(params in listed for params, _ in choosing.told)
    assert followed(Optimizer(TABLE, direction=GOALS), 4, TABLE).ask(fixed={"b": 6}).params["b"] == 6


def test_goals_without_old_runs_are_learned_from_the_trials(history):
    only = History(history.space, history.tasks)
    optimizer = followed(Optimizer(SPACE, only, GOALS, method=QUICK), 4)
    assert optimizer.past is not None
    why = optimizer.ask().why
    assert "purity: expected" in why
    assert "Old runs rate" in why.partition("purity:")[0]
    assert "Old runs" not in why.partition("purity:")[2]


def test_tables_and_files_are_read_by_the_names_of_the_goals(history, tmp_path):
    rows().write_csv(tmp_path / "old.csv")
    read = read_history(tmp_path / "old.csv", SPACE, task="task", direction=GOALS)
    assert read.fingerprint == history.fingerprint
    assert read.limits["purity"].n_rows == 150
    given = Optimizer(SPACE, rows(), GOALS, task="task")
    assert given.history.fingerprint == history.fingerprint
    assert Optimizer(SPACE, rows(), GOALS).history.fingerprint == history.fingerprint  # the task is guessed
    with pytest.raises(InputError, match="leave out objective="):
        read_history(tmp_path / "old.csv", SPACE, task="task", objective="cost", direction=GOALS)
    with pytest.raises(InputError, match="no column 'price'"):
        read_history(tmp_path / "old.csv", SPACE, task="task", direction={"cost": "minimize", "price": "minimize"})


def test_old_data_of_the_target_counts(history):
    u = np.array([[0.5, 0.3], [0.9, 0.9], [0.1, 0.1]])
    cost, purity = values(u)
    first, second = Task("new", u, -cost), Task("new", u[:2], -purity[:2])  # quantities are read as losses
    target = History(SPACE, (), first, limits={"purity": History(SPACE, (), second)})
    optimizer = Optimizer(SPACE, target, GOALS)
    assert [sorted(t.measured) for t in optimizer._trials] == [["purity"], ["purity"], []]
    assert optimizer.front == []  # nothing was told
    followed(optimizer, 4)
    assert len(optimizer.told) == 4
