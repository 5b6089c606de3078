"""Exact on finite sets, close on continuous ones, and never a point that is taken."""

import numpy as np
import polars as pl
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo.models import gp as gps
from jumbo_bo.search.acquisition import ucb
from jumbo_bo.search.argmax import (
    Cube,
    Finite,
    Rows,
    SpaceExhausted,
    domain_of,
    sobol,
)
from jumbo_bo.search.candidates import encode_candidates, listed
from jumbo_bo.search.evolution import Pool, keys_of
from jumbo_bo.space.space import Space

GRID = Space({"a": IntDistribution(0, 6), "b": CategoricalDistribution(["x", "y", "z"])})
BOX = Space({f"x{i}": FloatDistribution(0, 1) for i in range(5)})
NONE = np.zeros((0, 5))


def featurise(space):
    return lambda u: {"x": space.transform(u)}


def bump(centre):
    return lambda blocks: -np.sum((blocks["x"] - centre) ** 2, axis=1)


def test_small_spaces_are_enumerated_and_others_searched():
    assert isinstance(domain_of(GRID, featurise(GRID)), Finite)
    assert isinstance(domain_of(BOX, featurise(BOX)), Cube)
    wide = Space({"a": IntDistribution(0, 10**6), "b": IntDistribution(0, 10**6)})
    assert isinstance(domain_of(wide, featurise(wide)), Cube)


def test_rows_are_copied_for_the_blocks_that_a_score_asks_for(rng):
    asked = []

    class Blocks(dict):
        def __getitem__(self, name):
            asked.append(name)
            return super().__getitem__(name)

    blocks = Blocks(x=rng.random((9, 2)), heads=rng.random((9, 3)))
    some = Rows(blocks, np.array([7, 2]))
    assert np.array_equal(some["x"], dict(blocks)["x"][[7, 2]])
    assert some["x"] is some["x"]
    assert (list(some), len(some), asked) == (["x", "heads"], 2, ["x"])


def test_finite_argmax_is_the_best_of_all_and_skips_taken_points(rng):
    domain = domain_of(GRID, featurise(GRID))
    scores = rng.standard_normal(21)
    order = np.argsort(-scores)
    taken = np.zeros((0, 2))
    for rank in range(21):
        best = domain.argmax(lambda blocks: scores, rng, taken, taken)
        assert best.index == order[rank]
        assert best.score == scores[order[rank]]
        taken = np.vstack([taken, best.u])
    with pytest.raises(SpaceExhausted, match="all 21 configurations"):
        domain.argmax(lambda blocks: scores, rng, taken, taken)


@pytest.mark.parametrize("noise", [1e-1, 1e-6])
def test_single_precision_screening_finds_the_same_point_as_double_precision(noise):
    """Also where the kernel matrix is nearly singular and single precision loses most digits."""
    table = Space({f"x{i}": IntDistribution(0, 9) for i in range(4)})
    domain = domain_of(table, featurise(table))
    rng = np.random.default_rng(1)
    seen = table.sample(rng, 40)
    x = featurise(table)(seen)
    model = gps.build(
        gps.Kernel((gps.ard("x", 4),)), np.log([2.0, 2.0, 1.0, 2.0, 1.0, noise]), x, np.sin(6 * x["x"]).sum(axis=1)
    )
    for beta in (0.1, 2.0, 30.0):
        screened = domain.argmax(ucb(model.predict, beta), np.random.default_rng(0), seen, seen)
        full = domain.argmax(ucb(model.predict, beta), np.random.default_rng(0), seen, seen, smooth=False)
        assert screened.index == full.index


def test_ties_are_broken_at_random_not_by_position(rng):
    domain = domain_of(GRID, featurise(GRID))
    picks = {domain.argmax(lambda blocks: np.zeros(21), rng, GRID.grid()[:0], GRID.grid()[:0]).index for _ in range(60)}
    assert len(picks) > 10


def test_candidates_are_the_only_choices_and_equal_rows_go_together(rng):
    rows = [{"a": 1, "b": "x"}, {"a": 1, "b": "x"}, {"a": 5, "b": "z"}]
    domain = domain_of(GRID, featurise(GRID), encode_candidates(GRID, rows))
    first = domain.argmax(lambda blocks: np.array([1.0, 2.0, 0.0]), rng, GRID.grid()[:0], GRID.grid()[:0])
    assert first.index == 1
    second = domain.argmax(lambda blocks: np.array([1.0, 2.0, 0.0]), rng, first.u[None], first.u[None])
    assert second.index == 2


def test_candidates_come_as_rows_or_as_a_frame():
    rows = [{"a": 1, "b": "x"}, {"a": 5, "b": "z"}]
    frame = pl.DataFrame(rows)
    assert listed(rows) == listed(tuple(rows)) == listed(frame) == rows
    for package in ("pandas", "pyarrow"):
        pytest.importorskip(package)
    assert listed(frame.to_arrow()) == listed(frame.to_pandas()) == rows


@pytest.mark.parametrize("rows", [[], [{"a": 1}], [{"a": 1, "b": "x"}, {"a": 99, "b": "x"}]])
def test_bad_candidate_lists_are_named(rows):
    with pytest.raises(ValueError, match=r"candidate"):
        encode_candidates(GRID, rows)


@pytest.mark.parametrize("seed", range(3))
def test_continuous_argmax_finds_a_smooth_maximum(seed):
    rng = np.random.default_rng(seed)
    centre = rng.random(5)
    best = domain_of(BOX, featurise(BOX)).argmax(bump(centre), rng, NONE, NONE)
    assert np.abs(best.u - centre).max() < 0.01


def test_continuous_argmax_finds_a_maximum_in_a_corner(rng):
    best = domain_of(BOX, featurise(BOX)).argmax(lambda blocks: blocks["x"].sum(axis=1), rng, NONE, NONE)
    assert best.score > 4.99


def test_continuous_argmax_survives_a_discontinuous_score(rng):
    centre = np.full(5, 0.3)

    def gate(blocks):
        distance = np.sum((blocks["x"] - centre) ** 2, axis=1)
        return np.where(distance < 0.1, 10 + blocks["x"][:, 0], -distance)

    best = domain_of(BOX, featurise(BOX)).argmax(gate, rng, NONE, NONE, smooth=False)
    assert best.score > 10 + 0.3 + 0.98 * np.sqrt(0.1)


@pytest.mark.parametrize("seed", range(3))
def test_cma_es_follows_a_narrow_valley_that_is_not_along_an_axis(seed):
    """Screening ends far from the maximum, and one normal distribution per coordinate a thousand times as far off."""
    rng = np.random.default_rng(seed)
    turn, _ = np.linalg.qr(rng.standard_normal((5, 5)))
    steep = np.array([100.0, 30.0, 10.0, 3.0, 1.0])

    def valley(blocks):
        return -np.sum(steep * ((blocks["x"] - 0.55) @ turn) ** 2, axis=1)

    best = domain_of(BOX, featurise(BOX)).argmax(valley, rng, NONE, NONE, smooth=False)
    screened = valley({"x": sobol(5, 512, rng)}).max()
    assert screened < -0.05
    assert best.score > -1e-5


def test_one_dimension(rng):
    line = Space({"x": FloatDistribution(0, 1)})
    empty = np.zeros((0, 1))
    best = domain_of(line, featurise(line)).argmax(bump(0.123456), rng, empty, empty)
    assert best.u[0] == pytest.approx(0.123456, abs=1e-5)


@pytest.mark.parametrize("smooth", [True, False])
def test_hints_are_used(smooth):
    """A needle in a flat field, so thin that only a hint leads to it."""
    needle = np.full(5, 0.77)

    def score(blocks):
        return np.maximum(0.0, 1.0 - np.linalg.norm(blocks["x"] - needle, axis=1) / 0.03)

    domain, hint = domain_of(BOX, featurise(BOX)), needle[None] + 0.001
    assert domain.argmax(score, np.random.default_rng(0), hint, NONE, smooth).score > 0.9
    assert domain.argmax(score, np.random.default_rng(0), NONE, NONE, smooth).score < 0.01
    assert domain.maximum(score, np.random.default_rng(0), hint) > 0.9


def test_the_surroundings_of_a_hint_are_looked_at():
    """The best point lies a little off the hint; nothing in between or further away tells of it."""
    hint = np.full((1, 5), 0.4)

    def ring(blocks):
        r = np.linalg.norm(blocks["x"] - hint, axis=1)
        return np.where((r > 0.02) & (r < 0.1), 1.0, 0.0)

    found = [
        domain_of(BOX, featurise(BOX)).argmax(ring, np.random.default_rng(s), hint, NONE).score == 1 for s in range(5)
    ]
    assert all(found)


def test_the_surroundings_of_every_hint_are_looked_at():
    hints = np.vstack([np.full(5, 0.2), np.full(5, 0.8)])
    for good in hints:

        def ring(blocks, good=good):
            r = np.linalg.norm(blocks["x"] - good, axis=1)
            return np.where((r > 0.02) & (r < 0.1), 1.0, 0.0)

        assert domain_of(BOX, featurise(BOX)).argmax(ring, np.random.default_rng(0), hints, NONE).score == 1


def test_searches_start_at_the_best_points_that_are_well_apart():
    pool = Pool(BOX, lambda u: -u[:, 0])
    u = np.full((5, 5), 0.5)
    u[:, 0] = [0.3, 0.1, 0.15, 0.35, 0.9]
    pool.add(u)
    assert pool.spread(3)[:, 0].tolist() == [0.1, 0.35, 0.9]  # 0.15 and 0.3 are too near to 0.1
    assert pool.spread(2)[:, 0].tolist() == [0.1, 0.35]
    assert pool.best(u[1:2], lambda _: True).u[0] == 0.15
    assert pool.best(u, lambda _: True) is None


def test_a_search_prints_nothing(rng, capfd):
    domain_of(BOX, featurise(BOX)).argmax(bump(np.full(5, 0.5)), rng, NONE, NONE, smooth=False)
    assert capfd.readouterr() == ("", "")


def test_the_search_leaves_the_global_generator_alone(rng):
    state = np.random.get_state()[1].copy()  # noqa: NPY002 (the point of the test)
    domain_of(BOX, featurise(BOX)).argmax(bump(np.full(5, 0.5)), rng, NONE, NONE)
    np.testing.assert_array_equal(state, np.random.get_state()[1])  # noqa: NPY002


def test_same_seed_same_point():
    a, b = (
        domain_of(BOX, featurise(BOX)).argmax(bump(np.full(5, 0.4)), np.random.default_rng(3), NONE, NONE).u
        for _ in "ab"
    )
    np.testing.assert_array_equal(a, b)


def test_large_finite_space_never_repeats_a_taken_point(rng):
    wide = Space({"a": IntDistribution(0, 999), "b": IntDistribution(0, 999)})
    domain = domain_of(wide, featurise(wide))
    taken = np.zeros((0, 2))
    for _ in range(5):
        best = domain.argmax(bump(np.array([0.5, 0.5])), rng, taken, taken)
        assert wide.decode(best.u) not in [wide.decode(t) for t in taken]
        taken = np.vstack([taken, best.u])


def test_equal_scores_are_kept_in_order(monkeypatch):
    """The search meets equal scores wherever a parameter has steps. Numpy's default sort orders them differently on
    different processors, and with it every point that follows; a stable one does not."""
    steps = Space({"a": IntDistribution(0, 3), "x": FloatDistribution(0, 1)})
    sort, kinds = np.argsort, []

    def spy(a, *args, kind=None, **rest):
        kinds.append(kind)
        return sort(a, *args, kind=kind, **rest)

    monkeypatch.setattr(np, "argsort", spy)
    empty = np.zeros((0, 2))
    domain_of(steps, featurise(steps)).argmax(bump(np.array([0.5, 0.5])), np.random.default_rng(0), empty, empty)
    assert set(kinds) == {"stable"}


def test_a_search_and_a_random_draw_never_return_a_taken_point(rng):
    """Also where the space is finite but was too large to list."""
    domain = Cube(GRID, featurise(GRID))
    taken = np.delete(GRID.grid(), 13, axis=0)
    left = GRID.grid()[13]
    np.testing.assert_allclose(domain.random(rng, taken).u, left)
    np.testing.assert_allclose(domain.argmax(lambda blocks: blocks["x"][:, 0], rng, taken[:5], taken).u, left)
    for draw in (
        lambda: domain.random(rng, GRID.grid()),
        lambda: domain_of(GRID, featurise(GRID)).random(rng, GRID.grid()),
    ):
        with pytest.raises(SpaceExhausted, match="all 21 configurations have been tried or are pending"):
            draw()


def test_zero_and_minus_zero_are_the_same_point():
    taken = np.array([[-0.0, 1e-12, 0.3, 0.3 + 1e-12, -1e-12]])
    assert keys_of(taken) == keys_of(np.array([[0.0, 0.0, 0.3, 0.3, 0.0]]))
    assert keys_of(taken) != keys_of(np.array([[0.0, 0.0, 0.3, 0.3 + 1e-8, 0.0]]))


def test_random_skips_taken_points(rng):
    domain = domain_of(GRID, featurise(GRID))
    left = domain.random(rng, np.delete(GRID.grid(), 13, axis=0))
    assert left.index == 13
