"""JUMBO at its best: its gate is Algorithm 1's with the average of models as the warm-GP, its limit is GP-UCB."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from jumbo_bo.methods import METHODS, Jumbo, JumboPrinted
from jumbo_bo.methods.averaging import average, expected_by
from jumbo_bo.methods.jumbo import AVERAGE
from jumbo_bo.methods.jumbo_printed import latin_hypercube
from jumbo_bo.models.gp import posterior
from jumbo_bo.models.kernel import cold_kernel
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.search.acquisition import gated, in_gate, ucb
from small_problems import MIXED, SMALL, learned_nets, run

OPTIONS = [{"warm": "linear"}, {"warm": "joint"}, {"gate": "constant"}, {"threshold": 2.0}, {"beta0": 20.0}]


@pytest.fixture(scope="module")
def nets():
    return learned_nets()


@pytest.mark.parametrize("gate", ["printed", "constrained"])
def test_the_suggestion_is_line_8_with_the_average_as_the_warm_one(gate, nets):
    recipe = Jumbo(gate=gate, threshold=0.3, push=False)
    view = run(recipe, SMALL, nets[SMALL], 5).view()
    choice = recipe(view)
    warm = ucb(partial(average, AVERAGE.models(view)), choice.beta)
    cold = ucb(view.fit(cold_kernel(SMALL)).predict, choice.beta)
    blocks = view.domain.blocks
    reach = 0.3 * warm(blocks).std()
    scores = gated(warm, cold, warm(blocks).max(), reach, gate)(blocks)
    scores[view.domain.rows_of(view.taken)] = -np.inf
    assert choice.best.index == int(scores.argmax())
    assert choice.inside_gate == bool(in_gate(warm(blocks), warm(blocks).max(), reach)[choice.best.index])
    assert choice.beta == pytest.approx(2.0 * math.exp(-3.0 * view.t / view.horizon))


def test_the_first_trial_is_the_old_tasks(nets):
    recipe = Jumbo()
    first = run(recipe, SMALL, nets[SMALL], 1)
    assert "Initial point" not in first.suggestions[0].why
    view = Optimizer(SMALL, nets[SMALL], "maximize", 20, recipe).view()
    warm = ucb(partial(average, AVERAGE.models(view)), recipe(view).beta)
    assert recipe(view).best.index == int(warm(view.domain.blocks).argmax())


def test_a_gate_of_all_points_is_the_cold_gp_and_an_empty_one_the_warm_model(nets):
    view = run("jumbo", SMALL, nets[SMALL], 6).view()
    recipe = Jumbo(push=False)
    warm, cold = recipe.models(view)
    blocks, beta = view.domain.blocks, recipe(view).beta
    for threshold, predict in ((math.inf, cold.predict), (-1.0, partial(average, warm))):
        scores = ucb(predict, beta)(blocks)
        scores[view.domain.rows_of(view.taken)] = -np.inf
        assert replace(recipe, threshold=threshold)(view).best.index == int(scores.argmax())


@pytest.mark.parametrize("space", [SMALL, MIXED])
def test_the_threshold_is_a_share_of_the_warm_scores_spread(space, nets):
    """It does not depend on the scale of the values."""
    recipe = Jumbo()
    view = run(recipe, space, nets[space], 5).view()

    def warm(blocks):
        return np.asarray(blocks["x"]).sum(axis=1)

    reach = recipe.reach(view, warm)
    assert reach > 0
    assert recipe.reach(view, lambda blocks: 7.0 * warm(blocks) - 3.0) == pytest.approx(7.0 * reach)
    if space is SMALL:
        assert reach == pytest.approx(0.2 * warm(view.domain.blocks).std())
    assert [Jumbo(threshold=t).reach(view, warm) for t in (-1.0, 0.0, math.inf)] == [-1.0, 0.0, math.inf]


def test_exploration_is_turned_up_when_nothing_is_promised(nets):
    """All trials far above what the model believes in: what it expects elsewhere is less than the best of them."""
    recipe = Jumbo(beta0=1e-6)
    view = run(recipe, SMALL, nets[SMALL], 6).view()
    calm = replace(recipe, push=False)(view)
    top = expected_by(recipe.models(view)[0], view.domain.featurise(view.u)).max()
    promised = ucb(partial(average, recipe.models(view)[0]), calm.beta)(view.domain.featurise(calm.best.u[None]))[0]
    pushed = recipe(view).beta / calm.beta
    assert pushed == (1.0 if promised >= top else pytest.approx(4.0 ** round(math.log(pushed, 4.0))))
    assert (pushed > 1.0) == (promised < top)
    assert promised < top, "otherwise this test says nothing"


def test_without_old_runs_there_is_no_gate(nets):
    optimizer = run("jumbo", MIXED, None, 5)
    assert ["Initial point" in s.why for s in optimizer.suggestions] == [True, True, True, False, False]
    assert all(s.explanation.inside_gate is None for s in optimizer.suggestions)


@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_does_something(option, nets):
    plain = run(Jumbo(), MIXED, nets[MIXED], 8)
    changed = run(Jumbo(**option), MIXED, nets[MIXED], 8)
    assert [s.params for s in plain.suggestions] != [s.params for s in changed.suggestions]


def test_the_regression_of_the_ablation_starts_at_the_old_tasks_mean(nets):
    """Against the textbook posterior of the weights around m."""
    recipe = Jumbo(warm="linear")
    view = run(recipe, SMALL, nets[SMALL], 7).view()
    ((_, warm),), _ = recipe.models(view)
    intercept, weight, noise = np.exp(warm.theta)
    at = view.domain.blocks
    design, query = (np.hstack([b["1"], b["h"]]) for b in (warm.blocks, at))
    prior = np.diag([1 / intercept] + [1 / weight] * at["h"].shape[1])
    solved = np.linalg.solve(prior + design.T @ design / noise, design.T @ (warm.y - warm.blocks["m"][:, 0]) / noise)
    np.testing.assert_allclose(posterior(warm, at).mean, at["m"][:, 0] + query @ solved, atol=1e-5)


def test_the_three_presets_are_what_they_reproduce():
    assert METHODS["jumbo"] == Jumbo()
    assert METHODS["jumbo-printed"] == JumboPrinted()
    released = METHODS["jumbo-released"]
    assert released == JumboPrinted(warm="g", preset="released", rate=math.log(10), released=True)
    assert (released.threshold, released.gate, released.beta0, released.initial) == (0.1, "printed", 10.0, 3)


def test_the_released_gps_are_those_of_the_authors_code(nets):
    """Both isotropic; the cold one has amplitude 10 and noise 1e-8, the warm one amplitude 1 and a noise it learns."""
    recipe = METHODS["jumbo-released"]
    view = run(recipe, SMALL, nets[SMALL], 6).view()
    warm, cold = recipe.models(view)
    assert cold.theta[0] == pytest.approx(math.log(10.0))
    assert cold.theta[-1] == pytest.approx(math.log(1e-8))
    assert warm.theta[0] == 0.0
    assert [t.block for t in warm.kernel.terms] == ["g"]
    assert cold.theta.size == 3
    choice = recipe(view)
    assert choice.beta == pytest.approx(10 * 10 ** (-view.t / view.horizon))


def test_the_released_first_points_are_a_latin_hypercube(nets):
    optimizer = run(METHODS["jumbo-released"], MIXED, nets[MIXED], 4)
    assert ["Latin hypercube" in s.why for s in optimizer.suggestions] == [True, True, True, False]
    empty = replace(optimizer.view(), u=np.zeros((0, MIXED.d)), z=np.zeros(0), pending=np.zeros((0, MIXED.d)))
    points = []
    for k in range(3):
        points.append(latin_hypercube(replace(empty, u=np.zeros((k, MIXED.d)), z=np.zeros(k)), 3))
    (column,) = (i for i, name in enumerate(MIXED.names) if name == "lr")  # continuous: nothing is snapped
    assert sorted(int(3 * choice.best.u[column]) for choice in points) == [0, 1, 2]
    assert latin_hypercube(optimizer.view(), 3) is None
