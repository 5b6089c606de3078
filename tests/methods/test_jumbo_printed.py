"""JUMBO as printed: its limits are GP-UCB and Offline DKL, its gate is Algorithm 1's, every option does something."""

import math

import numpy as np
import pytest

from jumbo_bo.methods import GPUCB, JumboJoint, JumboPrinted, OfflineDKL
from jumbo_bo.methods.jumbo_printed import warm_kernel
from jumbo_bo.models.kernel import cold_kernel
from jumbo_bo.search.acquisition import gated, in_gate, ucb
from small_problems import MIXED, SMALL, learned_nets, run


@pytest.fixture(scope="module")
def nets():
    return learned_nets()


def test_the_defaults_are_the_papers():
    assert JumboPrinted() == JumboPrinted(0.1, "h", False, "printed", 10.0, "paper", 3, False, "hpo")
    assert OfflineDKL() == OfflineDKL("h", 10.0, "paper", 3, False, "hpo")
    assert not JumboPrinted().old_scale
    assert not OfflineDKL().old_scale


def test_the_first_points_are_spread_and_without_old_runs_it_is_gp_ucb(nets):
    with_old = run("jumbo-printed", MIXED, nets[MIXED], 4)
    assert ["Initial point" in s.why for s in with_old.suggestions] == [True, True, True, False]
    one = run(JumboPrinted(initial=1), MIXED, nets[MIXED], 2)
    assert ["Initial point" in s.why for s in one.suggestions] == [True, False]
    for options in ({}, {"initial": 2}, {"beta0": 1.0}, {"schedule": "anytime"}, {"paper_fit": True}):
        alone, plain = run(JumboPrinted(**options), MIXED, None, 6), run(GPUCB(**options), MIXED, None, 6)
        assert [s.params for s in alone.suggestions] == [s.params for s in plain.suggestions]


@pytest.mark.parametrize("gate", ["printed", "constrained"])
def test_the_suggestion_is_line_8_of_algorithm_1(gate, nets):
    """Lines 4 to 8, recomputed from the two GPs over all points of the space."""
    view = run(JumboPrinted(gate=gate, threshold=0.3), SMALL, nets[SMALL], 5).view()
    choice = JumboPrinted(gate=gate, threshold=0.3)(view)
    warm_gp, cold_gp = JumboPrinted().models(view)
    warm, cold = ucb(warm_gp.predict, choice.beta), ucb(cold_gp.predict, choice.beta)
    blocks = view.domain.blocks
    scores = gated(warm, cold, warm(blocks).max(), 0.3, gate)(blocks)
    scores[view.domain.rows_of(view.taken)] = -np.inf
    assert choice.best.score == pytest.approx(scores.max())
    assert choice.best.index == int(scores.argmax())
    assert choice.surrogate.gps[0][1].kernel == (cold_gp if choice.inside_gate else warm_gp).kernel


def test_the_kernels_of_the_two_gps(nets):
    view = run("jumbo-printed", SMALL, nets[SMALL], 4).view()
    width = view.width("h")
    (term,) = warm_kernel(view, "h").terms
    assert (term.block, term.kind, term.groups) == ("h", "matern52", (0,) * width)
    assert term.length == pytest.approx((math.sqrt(width), 1.0))
    one, weights = warm_kernel(view, "g", linear=True).terms
    assert (one.block, one.kind, one.groups) == ("1", "linear", (0,))
    assert (weights.block, weights.kind, weights.groups) == ("g", "linear", (0,) * view.width("g"))
    assert weights.variance == pytest.approx((1 / view.width("g"), 1.0))
    warm, cold = JumboPrinted(paper_fit=True).models(view)
    assert cold.kernel == cold_kernel(SMALL, per_parameter=False)
    assert warm.theta[0] == cold.theta[0] == 0.0
    assert JumboPrinted().models(view)[1].kernel == cold_kernel(SMALL)


def test_offline_dkl_hands_its_options_on():
    options = {"warm": "g", "beta0": 2.0, "schedule": "anytime", "initial": 5, "paper_fit": True}
    as_jumbo = OfflineDKL(**options).as_jumbo
    assert {name: getattr(as_jumbo, name) for name in options} == options
    assert as_jumbo.threshold == -math.inf


@pytest.mark.parametrize("space", [MIXED, SMALL], ids=["mixed", "finite"])
@pytest.mark.parametrize("paper_fit", [False, True])
def test_infinite_threshold_gives_exactly_the_points_of_gp_ucb(space, paper_fit, nets):
    cold = run(GPUCB(paper_fit=paper_fit), space, nets[space], 8)
    jumbo = run(JumboPrinted(threshold=math.inf, paper_fit=paper_fit), space, nets[space], 8)
    assert [s.params for s in jumbo.suggestions] == [s.params for s in cold.suggestions]


@pytest.mark.parametrize("space", [MIXED, SMALL], ids=["mixed", "finite"])
@pytest.mark.parametrize("block", ["h", "g"])
def test_empty_gate_gives_exactly_the_points_of_offline_dkl(space, block, nets):
    warm = run(OfflineDKL(warm=block), space, nets[space], 8)
    jumbo = run(JumboPrinted(threshold=-1e-3, warm=block), space, nets[space], 8)
    assert [s.params for s in jumbo.suggestions] == [s.params for s in warm.suggestions]


def test_jumbo_stays_in_the_constrained_gate_and_reports_it(nets):
    optimizer = run(JumboPrinted(gate="constrained"), SMALL, nets[SMALL], 4)
    view = optimizer.view()
    choice = optimizer.recipe(view)
    assert choice.inside_gate
    assert "inside the warm gate" in optimizer.ask().why


def test_reported_gate_state_equals_algorithm_1(nets):
    """Recomputed from the two GPs of the view, over all points of the space."""
    optimizer = run(JumboPrinted(threshold=0.05), SMALL, nets[SMALL], 5)
    view = optimizer.view()
    choice = optimizer.recipe(view)
    warm = ucb(view.model(warm_kernel(view, "h")).predict, choice.beta)
    scores = warm(view.domain.blocks)
    assert choice.inside_gate == bool(in_gate(scores, scores.max(), 0.05)[choice.best.index])


@pytest.mark.parametrize(
    "recipe",
    [
        JumboPrinted(gate="constant"),
        JumboPrinted(gate="constrained", warm="g"),
        JumboPrinted(paper_fit=True, schedule="theory"),
        OfflineDKL(schedule="anytime"),
        JumboJoint(latent=True, schedule="theory"),
    ],
    ids=["constant", "constrained", "paper fit", "anytime", "latent"],
)
def test_options_of_the_recipes_work(recipe, nets):
    default = run(type(recipe)(), MIXED, nets[MIXED], 7)
    optimizer = run(recipe, MIXED, nets[MIXED], 7)
    assert optimizer.best is not None
    # An option that changes nothing is not wired.
    assert [s.params for s in optimizer.suggestions] != [s.params for s in default.suggestions]
