"""The list of what was best on average: its order by hand, with and without shared configurations, then gp-ucb."""

import numpy as np
import pytest
from optuna.distributions import FloatDistribution, IntDistribution

from jumbo_bo.data.history import History, Task
from jumbo_bo.methods import BestFirst
from jumbo_bo.methods.best_first import BestList, average_rank
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.space.space import Space

LINE = Space({"a": IntDistribution(0, 59)})
PLANE = Space({"a": FloatDistribution(0, 1), "b": FloatDistribution(0, 1)})


def on_the_line(*functions, where=range(60)):
    u = np.array([LINE.encode({"a": a}) for a in where])
    return History(LINE, tuple(Task(f"old {k}", u, np.array([f(a) for a in where])) for k, f in enumerate(functions)))


def apart():
    """Two tasks, one at even and one at odd numbers."""
    even = on_the_line(lambda a: -abs(a - 20), where=range(0, 60, 2)).tasks[0]
    odd = on_the_line(lambda a: -abs(a - 22), where=range(1, 60, 2)).tasks[0]
    return History(LINE, (even, Task("odd", odd.u, odd.y)))


APART = apart()


def suggested(space, history, n, method="best-first", seed=0, **options):
    optimizer = Optimizer(space, history, "maximize", 20, method, seed, **options)
    found = []
    for _ in range(n):
        suggestion = optimizer.ask()
        found.append(suggestion.params)
        optimizer.tell(suggestion, float(len(found)))
    return found


def test_average_rank_by_hand():
    # Ranks from below: task 0 gives 1 2 3, task 1 gives 3 1.5 1.5; the size of a difference does not matter.
    np.testing.assert_allclose(average_rank(np.array([[0.0, 9.0], [1.0, 5.0], [100.0, 5.0]])), [2.0, 1.75, 2.25])


def test_order_by_hand():
    """Task 0 likes 10, task 1 likes 14, with far larger values: by ranks the best is between them."""
    history = on_the_line(lambda a: -abs(a - 10), lambda a: -1000.0 * abs(a - 14) ** 3)
    order = [params["a"] for params in suggested(LINE, history, 10)]
    assert set(order[:5]) == {10, 11, 12, 13, 14}
    assert len(set(order)) == 10
    averages = counted_ranks(history)
    assert [averages[a] for a in order] == sorted(averages, reverse=True)[:10]


def counted_ranks(history):
    """Rank of each value counted one by one: those below, and half of the others that are equal."""
    _, z, _ = history.wide()
    return [
        float(np.mean([np.sum(column < column[i]) + 0.5 * (np.sum(column == column[i]) - 1) for column in z.T]))
        for i in range(len(z))
    ]


def test_the_order_is_the_same_for_every_seed_and_ignores_the_values():
    history = on_the_line(lambda a: -abs(a - 10), lambda a: -abs(a - 30))
    assert suggested(LINE, history, 10, seed=1) == suggested(LINE, history, 10, seed=2)


def test_after_the_list_it_is_gp_ucb():
    history = on_the_line(lambda a: -abs(a - 10))
    optimizers = {m: Optimizer(LINE, history, "maximize", 20, m) for m in (BestFirst(first=4), "gp-ucb")}
    for optimizer in optimizers.values():
        for a in (10, 9, 11, 8):
            optimizer.tell({"a": a}, -abs(a - 20.0))
    assert optimizers[BestFirst(first=4)].ask().params == optimizers["gp-ucb"].ask().params


def test_only_candidates_are_tried_in_the_order_of_the_list():
    history = on_the_line(lambda a: -abs(a - 10))
    candidates = [{"a": a} for a in (50, 13, 40, 9, 11)]
    order = [params["a"] for params in suggested(LINE, history, 5, candidates=candidates)]
    assert order[2:] == [13, 40, 50]
    assert set(order[:2]) == {9, 11}


def test_what_is_not_on_the_list_is_tried_by_closeness_to_the_best():
    history = on_the_line(lambda a: -abs(a - 58), where=range(0, 60))
    history = History(LINE, tuple(Task(t.name, t.u[5:], t.y[5:]) for t in history.tasks))
    order = [p["a"] for p in suggested(LINE, history, 3, candidates=[{"a": a} for a in (0, 3, 1)])]
    assert order == [3, 1, 0]


def test_tasks_that_share_nothing_are_compared_by_their_gps():
    order = [params["a"] for params in suggested(LINE, APART, 6)]
    assert all(17 <= a <= 25 for a in order)
    assert len(set(order)) == 6


def test_on_a_continuous_space_it_repeats_what_was_tried():
    rng = np.random.default_rng(0)
    points = [rng.random((40, 2)) for _ in range(2)]
    tasks = tuple(Task(f"old {k}", u, -((u - 0.5) ** 2).sum(axis=1)) for k, u in enumerate(points))
    tried = {tuple(np.round(u, 9)) for u in np.vstack(points)}
    found = suggested(PLANE, History(PLANE, tasks), 10)
    assert {(round(p["a"], 9), round(p["b"], 9)) for p in found} <= tried
    assert np.hypot(found[0]["a"] - 0.5, found[0]["b"] - 0.5) < 0.15


def test_what_was_learned_can_be_kept(tmp_path):
    for history in (APART, on_the_line(lambda a: float(a))):
        learned = BestFirst().learn(history, 0)
        learned.save(tmp_path / "list.safetensors")
        again = BestList.load(tmp_path / "list.safetensors", LINE)
        np.testing.assert_array_equal(again.u, learned.u)
        t = LINE.transform(learned.u[:3])
        assert again.blocks(t).keys() == learned.blocks(t).keys()


def test_refuses_an_empty_list():
    with pytest.raises(ValueError, match="first is 0, expected at least 1"):
        Optimizer(LINE, None, method=BestFirst(first=0))
