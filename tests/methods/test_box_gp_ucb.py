"""BOX-GP-UCB: the box by hand, the search inside it, and what happens when there is no box or nothing left in it."""

import numpy as np
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo.data.history import History, Task
from jumbo_bo.methods import BoxGPUCB
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.space.space import Space

SPACE = Space(
    {
        "lr": FloatDistribution(1e-4, 1.0, log=True),
        "width": FloatDistribution(0, 10),
        "layers": IntDistribution(1, 8),
        "act": CategoricalDistribution(["relu", "tanh", "gelu", "selu"]),
    }
)


def task(name, *rows):
    """Rows are configurations, the best first."""
    u = np.array([SPACE.encode(dict(zip(SPACE.names, row, strict=True))) for row in rows])
    return Task(name, u, -np.arange(len(rows), dtype=float))


HISTORY = History(
    SPACE,
    (
        task("a", (1e-3, 2.0, 3, "relu"), (1.0, 9.0, 8, "gelu")),
        task("b", (1e-2, 4.0, 5, "tanh"), (1e-4, 0.0, 1, "selu")),
        task("c", (3e-3, 3.0, 4, "relu"), (1.0, 0.0, 8, "gelu")),
    ),
)


def inside(p):
    return 1e-3 * 0.999 < p["lr"] < 1e-2 * 1.001 and 2 <= p["width"] < 4.000001 and 3 <= p["layers"] <= 5


def test_the_box_is_the_range_of_the_best_and_the_set_of_their_choices():
    box = BoxGPUCB().learn(HISTORY, 0)
    best = SPACE.transform(np.array([t.u[0] for t in HISTORY.tasks]))
    assert box.low.tolist() == best.min(axis=0).tolist()
    assert box.high.tolist() == best.max(axis=0).tolist()
    assert box.high[-4:].tolist() == [1.0, 1.0, 0.0, 0.0]  # relu and tanh were best somewhere
    out = SPACE.encode({"lr": 3e-3, "width": 5.0, "layers": 4, "act": "gelu"})
    distance = box.blocks(SPACE.transform(out[None]))["outside"][0, 0]
    assert distance == pytest.approx(0.1 + 1.0)  # a tenth of the width, and a choice that is not in the set


def test_every_suggestion_lies_in_the_box_and_the_search_still_finds_its_best():
    optimizer = Optimizer(SPACE, HISTORY, n_trials=20, method="box-gp-ucb")
    for _ in range(20):
        suggestion = optimizer.ask()
        p = suggestion.params
        assert inside(p)
        assert p["act"] in ("relu", "tanh")
        optimizer.tell(suggestion, (p["width"] - 3.5) ** 2 + (p["layers"] != 5) + (p["act"] != "tanh"))
    assert optimizer.best.value < 0.01


def test_a_box_of_one_point_is_left_by_the_shortest_way():
    space = Space({"a": IntDistribution(0, 4), "b": IntDistribution(0, 4)})
    u = space.encode({"a": 2, "b": 2})[None]
    history = History(space, (Task("1", u, np.zeros(1)), Task("2", u, np.zeros(1))))
    optimizer = Optimizer(space, history, n_trials=9, method="box-gp-ucb")
    tried = []
    for _ in range(9):
        suggestion = optimizer.ask()
        tried.append((suggestion.params["a"], suggestion.params["b"]))
        optimizer.tell(suggestion, 1.0)
    assert tried[0] == (2, 2)
    assert {abs(a - 2) + abs(b - 2) for a, b in tried[1:5]} == {1}


def test_a_box_without_width_in_a_continuous_space_still_gives_different_points():
    u = HISTORY.tasks[0].u[:1]
    history = History(SPACE, (Task("1", u, np.zeros(1)), Task("2", u, np.zeros(1))))
    optimizer = Optimizer(SPACE, history, n_trials=6, method="box-gp-ucb")
    for i in range(6):
        optimizer.tell(optimizer.ask(), float(i))
    assert len({str(params) for params, _ in optimizer.told}) == 6


def test_one_old_task_is_too_few_and_a_net_is_not_enough():
    with pytest.raises(ValueError, match=r"at least 2 old tasks to span a box, got 1; add old runs .* jumbo-mixture"):
        Optimizer(SPACE, History(SPACE, HISTORY.tasks[:1]), method="box-gp-ucb")
