"""The BoTorch gate and searches against our own (make test-interop)."""

import math
from functools import partial

import numpy as np
import pytest

from jumbo_bo.methods import JumboPrinted, OfflineDKL
from jumbo_bo.methods.joint import joint_kernel
from jumbo_bo.models import gp as gps
from jumbo_bo.search.acquisition import gated, ucb
from untrained import CUBE, FINITE, MIXED, WHY, every_space, exact_blocks, random_net, study

pytestmark = pytest.mark.interop

torch = pytest.importorskip("torch", reason=WHY)
acquisition = pytest.importorskip("botorch.acquisition", reason=WHY)
optim = pytest.importorskip("botorch.optim", reason=WHY)
parts = pytest.importorskip("jumbo_bo.botorch", reason=WHY)


def unit_bounds(d):
    return torch.tensor([[0.0] * d, [1.0] * d], dtype=torch.double)


def gate_by_both(space, threshold, gate, net, new):
    optimizer = study(space, JumboPrinted(threshold, gate=gate), net=net)
    warm, cold = parts.jumbo_models(optimizer)
    view = optimizer.view()
    scores = []
    for model, block in ((warm, "h"), (cold, "x")):
        # Our GPs with the hyperparameters of the optimizer and the blocks in double precision.
        kernel = model.covar_module.kernel
        assert {t.block for t in kernel.terms} == {block}
        theta = model.covar_module.theta.numpy()
        scores.append(ucb(gps.build(kernel, theta, exact_blocks(space, net, view.u), view.z).predict, 2.5))
    blocks = exact_blocks(space, net, new)
    warm_best = float(scores[0](blocks).max())
    ours = gated(*scores, warm_best, threshold, gate)(blocks)
    assert parts.warm_best(warm, 2.5, torch.tensor(new)) == pytest.approx(warm_best, abs=1e-6)
    return ours, parts.Gate(warm, cold, 2.5, warm_best, threshold, gate)


@every_space
@pytest.mark.parametrize("gate", ["printed", "constrained"])
@pytest.mark.parametrize("threshold", [-1.0, 0.0, 0.3, math.inf])
def test_gate_equals_ours(space, gate, threshold, rng):
    new = space.sample(rng, 300)
    # A point whose warm score is exactly at the edge may fall on either side by rounding: at threshold 0, the best.
    ours, theirs = gate_by_both(space, threshold + 1e-9, gate, random_net(space), new)
    scores = theirs(torch.tensor(new).unsqueeze(1))
    assert scores.shape == (300,)
    np.testing.assert_allclose(scores.numpy(), ours, atol=1e-6)


def test_gate_has_points_on_both_sides_and_a_gradient_inside(rng):
    new = CUBE.sample(rng, 300)
    ours, gate = gate_by_both(CUBE, 0.3, "constrained", random_net(CUBE), new)
    inside = ours > -1e5
    assert 5 < inside.sum() < 295
    x = torch.tensor(new[inside][:3].clip(0.01, 0.99)).unsqueeze(1).requires_grad_()
    assert torch.autograd.gradcheck(gate, (x,), atol=1e-6)


def test_discrete_search_for_the_gate_finds_our_exact_argmax():
    grid = FINITE.grid()
    for gate in ("printed", "constrained"):
        ours, theirs = gate_by_both(FINITE, 0.3, gate, random_net(FINITE), grid)
        x, value = optim.optimize_acqf_discrete(theirs, q=1, choices=torch.tensor(grid))
        assert float(value) == pytest.approx(ours.max(), abs=1e-6)
        np.testing.assert_allclose(x[0].numpy(), grid[np.argmax(ours)])


@pytest.mark.parametrize("options", [{}, {"warm": "g", "paper_fit": True}], ids=["default", "as released"])
@pytest.mark.parametrize("method", [OfflineDKL, partial(JumboPrinted, math.inf)], ids=["warm", "cold"])
def test_jumbo_models_are_those_of_the_recipe(options, method, rng):
    optimizer = study(MIXED, method(**options))
    view, new = optimizer.view(), rng.random((40, 4))
    choice = optimizer.recipe(view)
    warm, cold = parts.jumbo_models(optimizer)
    mean, sd = gps.posterior(choice.surrogate.gps[0][1], view.domain.featurise(new))
    posterior = (cold if choice.inside_gate else warm).posterior(torch.tensor(new))
    np.testing.assert_allclose(posterior.mean[:, 0].numpy(), mean, atol=1e-5)
    np.testing.assert_allclose(posterior.variance[:, 0].sqrt().numpy(), sd, atol=1e-5)


def test_gate_is_refined_by_gradients_from_the_best_of_many_points(rng):
    """The recipe of docs/botorch.md for a continuous space."""
    warm, cold = parts.jumbo_models(study(CUBE, "jumbo"))
    choices = torch.tensor(rng.random((2000, 3)))
    gate = parts.Gate(warm, cold, 2.0, parts.warm_best(warm, 2.0, bounds=unit_bounds(3)), 0.3, "constrained")
    start, before = optim.optimize_acqf_discrete(gate, q=1, choices=choices)
    x, after = optim.optimize_acqf(
        gate, unit_bounds(3), q=1, num_restarts=1, batch_initial_conditions=start.unsqueeze(0)
    )
    assert float(before) > -1e5, "inside the gate"
    assert float(after) > float(before)
    assert not torch.equal(x, start)


def test_warm_best_by_search_is_at_least_the_best_of_many_points(rng):
    warm, _ = parts.jumbo_models(study(CUBE, "jumbo"))
    searched = parts.warm_best(warm, 2.0, bounds=unit_bounds(3))
    assert searched >= parts.warm_best(warm, 2.0, torch.tensor(rng.random((4096 + 500, 3)))) - 1e-6
    assert searched == parts.warm_best(warm, 2.0, bounds=unit_bounds(3))


def test_optimize_acqf_is_as_good_as_our_search():
    optimizer = study(CUBE)
    view, beta = optimizer.view(), 1.5
    gp = view.model(joint_kernel(view))
    ours = view.domain.argmax(ucb(gp.predict, beta), view.rng, view.hints, view.taken)
    score = acquisition.UpperConfidenceBound(parts.joint_model(optimizer), beta)
    x, value = optim.optimize_acqf(score, unit_bounds(3), q=1, num_restarts=5, raw_samples=256, options={"seed": 0})
    assert float(value) >= ours.score - 1e-4
    assert list(CUBE.decode(x[0].tolist())) == ["a", "b", "c"]


def test_monte_carlo_and_noisy_improvement_run():
    optimizer = study(CUBE)
    model, told = parts.joint_model(optimizer), torch.tensor(optimizer.view().u)
    noisy = acquisition.qLogNoisyExpectedImprovement(model, X_baseline=told)
    batch = acquisition.qUpperConfidenceBound(model, beta=2.0)
    improvement = acquisition.LogExpectedImprovement(model, best_f=model.train_targets.max())
    for score, q in ((noisy, 2), (batch, 3), (improvement, 1)):
        x, value = optim.optimize_acqf(
            score, unit_bounds(3), q=q, num_restarts=2, raw_samples=32, options={"seed": 1, "maxiter": 20}
        )
        assert x.shape == (q, 3)
        assert torch.isfinite(value).all()
    # For one point the Monte Carlo bound has a closed form.
    x = torch.tensor([[[0.2, 0.6, 0.4]]], dtype=torch.double)
    closed = acquisition.UpperConfidenceBound(model, beta=2.0)(x)
    assert float(batch(x)) == pytest.approx(float(closed), abs=0.02)
