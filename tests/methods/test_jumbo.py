"""JUMBO at its best: its gate is Algorithm 1's with the joint GP as the warm-GP, its limit is GP-UCB."""

import math
from dataclasses import replace

import numpy as np
import pytest

from jumbo_bo.methods import METHODS, Jumbo, JumboJoint, JumboPrinted
from jumbo_bo.methods.joint import CONTRAST, joint_kernel
from jumbo_bo.methods.jumbo_printed import latin_hypercube
from jumbo_bo.models.gp import posterior
from jumbo_bo.models.kernel import cold_kernel
from jumbo_bo.search.acquisition import gated, in_gate, ucb
from small_problems import MIXED, SMALL, learned_nets, run


@pytest.fixture(scope="module")
def nets():
    return learned_nets()


@pytest.mark.parametrize("gate", ["printed", "constrained"])
def test_the_suggestion_is_line_8_with_the_joint_gp_as_the_warm_one(gate, nets):
    recipe = Jumbo(gate=gate, threshold=0.3, guard=math.inf)
    view = run(recipe, SMALL, nets[SMALL], 5).view()
    choice = recipe(view)
    warm, cold = (ucb(view.fit(k).predict, choice.beta) for k in (joint_kernel(view), cold_kernel(SMALL)))
    blocks = view.domain.blocks
    scores = gated(warm, cold, warm(blocks).max(), 0.3, gate)(blocks)
    scores[view.domain.rows_of(view.taken)] = -np.inf
    assert choice.best.index == int(scores.argmax())
    assert choice.inside_gate == bool(in_gate(warm(blocks), warm(blocks).max(), 0.3)[choice.best.index])
    assert choice.beta == pytest.approx(2.0 * math.exp(-3.0 * view.t / view.horizon))


def test_the_first_trial_is_the_old_tasks_and_the_second_a_contrast(nets):
    first, second, third = run("jumbo", SMALL, nets[SMALL], 3).suggestions
    assert first.params == run("jumbo-joint", SMALL, nets[SMALL], 1).suggestions[0].params
    assert "Initial point" not in first.why
    assert CONTRAST in second.why
    assert CONTRAST not in third.why
    plain = run(Jumbo(contrast=False), SMALL, nets[SMALL], 2).suggestions
    assert CONTRAST not in plain[1].why


def test_a_gate_of_all_points_is_the_cold_gp_and_an_empty_one_the_warm_gp(nets):
    view = run("jumbo", SMALL, nets[SMALL], 6).view()
    recipe = Jumbo(guard=math.inf)
    warm, cold = recipe.models(view)
    blocks, beta = view.domain.blocks, recipe(view).beta
    for threshold, gp in ((math.inf, cold), (-1.0, warm)):
        scores = ucb(gp.predict, beta)(blocks)
        scores[view.domain.rows_of(view.taken)] = -np.inf
        assert replace(recipe, threshold=threshold)(view).best.index == int(scores.argmax())


def test_old_runs_that_mislead_are_set_aside(nets):
    """A guard that is always in doubt: what is left is the cold-GP."""
    view = run("jumbo", SMALL, nets[SMALL], 6).view()
    doubting, believing = Jumbo(guard=-math.inf), Jumbo(guard=math.inf)
    choice = doubting(view)
    assert choice.aside
    assert choice.inside_gate is None
    assert not believing(view).aside
    warm, cold = doubting.models(view)
    assert warm.kernel == cold.kernel == cold_kernel(SMALL)
    scores = ucb(cold.predict, choice.beta)(view.domain.blocks)
    scores[view.domain.rows_of(view.taken)] = -np.inf
    assert choice.best.index == int(scores.argmax())


def test_without_old_runs_there_is_no_gate(nets):
    optimizer = run("jumbo", MIXED, None, 5)
    assert ["Initial point" in s.why for s in optimizer.suggestions] == [True, True, True, False, False]
    assert all(s.explanation.inside_gate is None for s in optimizer.suggestions)


@pytest.mark.parametrize("option", [{"linear": True}, {"gate": "constant"}, {"threshold": 0.01}, {"beta0": 20.0}])
def test_every_option_does_something(option, nets):
    plain = run(Jumbo(guard=math.inf), MIXED, nets[MIXED], 8)
    changed = run(Jumbo(guard=math.inf, **option), MIXED, nets[MIXED], 8)
    assert [s.params for s in plain.suggestions] != [s.params for s in changed.suggestions]


def test_the_regression_of_the_ablation_starts_at_the_old_tasks_mean(nets):
    """Against the textbook posterior of the weights around m."""
    recipe = Jumbo(linear=True, guard=math.inf)
    view = run(recipe, SMALL, nets[SMALL], 7).view()
    warm, _ = recipe.models(view)
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


def test_the_joint_gp_is_judged_in_the_same_way(nets):
    view = run("jumbo-joint", SMALL, nets[SMALL], 6).view()
    assert JumboJoint(guard=-math.inf).surrogate(view).gps[0][1].kernel == cold_kernel(SMALL)
    assert JumboJoint(guard=math.inf).surrogate(view).gps[0][1].kernel == joint_kernel(view)
