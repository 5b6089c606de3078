"""Several processes that choose at the same moment, each from its own share."""

import numpy as np
import pytest
from optuna.distributions import FloatDistribution, IntDistribution

from jumbo_bo.data.history import History, Task
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.search.argmax import SpaceExhausted, domain_of
from jumbo_bo.search.share import share_of
from jumbo_bo.space.space import Space

GRID = Space({"a": IntDistribution(0, 39), "b": IntDistribution(0, 49)})
LINE = Space({"x": FloatDistribution(0, 1), "y": FloatDistribution(0, 1)})
NONE = np.zeros((0, 2))


def domain(space):
    return domain_of(space, lambda u: {"x": space.transform(u)})


def score(blocks):
    return -np.sum((blocks["x"] - 0.3) ** 2, axis=1)


@pytest.mark.parametrize("of", [2, 8, 32])
def test_the_best_of_each_share_is_the_best_of_the_rows_that_are_not_in_another(of):
    whole = domain(GRID)
    best = [share_of(whole, i, of).argmax(score, np.random.default_rng(0), NONE, NONE) for i in range(of)]
    assert len({b.index for b in best}) == of
    assert max(b.score for b in best) == whole.argmax(score, np.random.default_rng(0), NONE, NONE).score
    open_rows = [set(range(2000)) - set(share_of(whole, i, of).gone(NONE)) for i in range(of)]
    assert sum(map(len, open_rows)) == len(set.union(*open_rows)) == 2000
    values = score(whole.blocks)
    assert all(b.score == values[list(rows)].max() for b, rows in zip(best, open_rows, strict=True))


def test_who_has_nothing_left_of_its_share_chooses_from_all():
    whole = domain(GRID)
    mine = np.setdiff1d(np.arange(2000), share_of(whole, 3, 8).gone(NONE))
    taken = whole.u[mine]
    best = share_of(whole, 3, 8).argmax(score, np.random.default_rng(0), NONE, taken)
    assert best.index not in mine
    with pytest.raises(SpaceExhausted):
        share_of(whole, 3, 8).argmax(score, np.random.default_rng(0), NONE, whole.u)


def test_shares_of_a_continuous_space():
    best = [share_of(domain(LINE), i, 8).argmax(score, np.random.default_rng(0), NONE, NONE) for i in range(8)]
    assert len({b.u.tobytes() for b in best}) == 8
    assert min(b.score for b in best) > -1e-3, "all close to the best of all"


@pytest.mark.parametrize("method", ["jumbo-mixture", "gp-ucb", "random", "jumbo-joint"])
def test_optimizers_that_know_the_same_choose_differently(method):
    def suggested(which):
        optimizer = Optimizer(GRID, method=method, seed=1)
        for u in GRID.sample(np.random.default_rng(0), 12):
            params = GRID.decode(u)
            optimizer.tell(params, (params["a"] - 9) ** 2 + (params["b"] - 30) ** 2)
        return tuple(optimizer.ask([], (which, 8)).params.values())

    assert len({suggested(i) for i in range(8)}) == 8


def test_where_a_row_is_does_not_depend_on_the_share():
    whole = domain(GRID)
    for i in range(8):
        assert share_of(whole, i, 8).rows_of(whole.u[[7, 1234]]).tolist() == [7, 1234]


def test_shares_that_use_the_bounds_of_others_find_the_best():
    """Bounds are kept while trials are pending, by row of the table."""
    optimizers = [Optimizer(GRID, method="jumbo-mixture", seed=1) for _ in range(2)]
    for u in GRID.sample(np.random.default_rng(0), 12):
        params = GRID.decode(u)
        for optimizer in optimizers:
            optimizer.tell(params, (params["a"] - 9) ** 2 + (params["b"] - 30) ** 2)
    together, running = optimizers[0], []
    for share in (None, (0, 2), (1, 2), (3, 4), None):
        alone = optimizers[1].restarted()
        for params, value in together.told:
            alone.tell(params, value)
        found = together.ask(list(running), share).params
        assert ("bounds",) in together._memory
        assert len(together._memory["bounds",][2]) == GRID.cardinality
        assert found == alone.ask(list(running), share).params
        running.append(found)


def test_a_list_of_configurations_is_followed_in_every_share():
    """Best first: no other row takes the place of the one on the list."""
    u = GRID.grid()[::20]
    old = tuple(Task(f"old {k}", u, -np.sum((u - 0.2 * k) ** 2, axis=1)) for k in (1, 2))
    shared, whole = (Optimizer(GRID, History(GRID, old), method="best-first", seed=1) for _ in range(2))
    for i in range(3):
        assert shared.ask(share=(i, 4)).params == whole.ask().params
