"""The BoTorch parts against our own GP, gate and search (make test-interop)."""

import importlib
import math
import re
import sys
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

import test_docs
from jumbo_bo.data.warp import Warp
from jumbo_bo.learning.features import FeatureNet
from jumbo_bo.learning.row_gp import RowGP
from jumbo_bo.methods import GPUCB, Jumbo, JumboJoint, OfflineDKL
from jumbo_bo.methods.joint import joint_kernel
from jumbo_bo.models import gp as gps
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.search.acquisition import gated, ucb
from jumbo_bo.space.space import Space

pytestmark = pytest.mark.interop

WHY = "make test-interop installs torch and botorch"
torch = pytest.importorskip("torch", reason=WHY)
acquisition = pytest.importorskip("botorch.acquisition", reason=WHY)
optim = pytest.importorskip("botorch.optim", reason=WHY)
parts = pytest.importorskip("jumbo_bo.botorch", reason=WHY)

CUBE = Space({"a": FloatDistribution(-1, 1), "b": FloatDistribution(0.01, 10, log=True), "c": FloatDistribution(0, 1)})
MIXED = Space(
    {
        "lr": FloatDistribution(1e-4, 1e-1, log=True),
        "units": IntDistribution(8, 512, log=True),
        "act": CategoricalDistribution(["relu", "tanh", "gelu"]),
        "batch": CategoricalDistribution([16, 32, 64]),
    }
)
FINITE = Space({"n": IntDistribution(0, 30), "m": IntDistribution(1, 9), "kind": CategoricalDistribution(["p", "q"])})
SPACES = {"cube": CUBE, "mixed": MIXED, "finite": FINITE}
every_space = pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)


def random_net(space, tasks=3, members=1):
    """Untrained, but with features as curved as those of a trained one; ten tasks give principal components."""
    rng = np.random.default_rng(5)
    widths = [len(space.groups), 8 * members, 4 * members, tasks]
    layers = tuple((rng.standard_normal((i, o)), 0.5 * rng.standard_normal(o)) for i, o in pairwise(widths))
    return FeatureNet.standardised(
        layers,
        space.transform(space.sample(rng, 300)),
        tasks=tuple(f"old {k}" for k in range(tasks)),
        warps=(Warp(0, 0.0, 1.0),) * tasks,
        space_fingerprint=space.fingerprint,
    )


def loss(space, u):
    t = space.transform(np.atleast_2d(u))
    return float(np.sum((t - 0.35) ** 2) + 0.2 * np.sin(9 * t[0, 0]))


def study(space, method="jumbo-joint", trials=12, net=None, **options):
    optimizer = Optimizer(space, net or random_net(space), n_trials=30, method=method, **options)
    for u in space.sample(np.random.default_rng(3), trials):
        optimizer.tell(space.decode(u), loss(space, u))
    return optimizer


def exact_blocks(space, net, u):
    """The blocks in double precision; `net.blocks` rounds to single on purpose."""
    x = space.transform(u)
    blocks = {"1": np.ones((len(u), 1)), "x": x}
    if net is None:
        return blocks
    heads = net.predictions(x)
    return blocks | {
        "h": (net.features(x) - net.h_mean) / net.h_sd,
        "g": (heads @ net.g_basis - net.g_mean) / net.g_sd,
        "m": heads.mean(axis=1, keepdims=True),
    }


def exact_gp(kernel, space, net, u, y):
    return gps.fit(kernel, exact_blocks(space, net, u), y, iterations=30)


def kernels(space, net):
    h, g = net.n_z, net.g_basis.shape[1]
    x = gps.Term("x", "matern52", space.groups)
    return {
        "cold": gps.Kernel((x,)),
        "warm-h": gps.Kernel((gps.isotropic("h", h),)),
        "warm-g": gps.Kernel((gps.ard("g", g),)),
        "linear-h": gps.Kernel((gps.Term("h", "linear", (0,) * h),)),
        "joint": gps.Kernel(
            (gps.Term("1", "linear", (0,)), gps.Term("g", "linear", tuple(range(g))), x, gps.isotropic("h", h)),
            mean="m",
        ),
    }


def unit_bounds(d):
    return torch.tensor([[0.0] * d, [1.0] * d], dtype=torch.double)


def with_gps(space, net):
    """Random GPs on rows, for two of the three tasks."""
    rng = np.random.default_rng(6)
    theta = np.log([0.8, *rng.uniform(0.3, 2.0, max(space.groups) + 1), 1e-3])

    def gp(rows, weight):
        return RowGP(space.groups, weight, space.transform(space.sample(rng, rows)), rng.normal(size=rows), theta)

    return replace(net, gps={"old 2": gp(30, 0.3), "old 0": gp(7, 0.95)})


@every_space
def test_gps_on_rows_are_in_the_features(space, rng):
    net = with_gps(space, random_net(space))
    u = space.sample(rng, 40)
    features = parts.Features(space, net)
    ours = exact_blocks(space, net, u)
    found = features.transform(torch.tensor(u)).numpy()
    for block in ("h", "g", "m"):  # our GPs are computed in single precision
        np.testing.assert_allclose(found[:, list(features.columns(block))], ours[block], rtol=0, atol=1e-4)
    assert np.abs(ours["g"] - exact_blocks(space, random_net(space), u)["g"]).max() > 0.1


def test_gps_on_rows_are_differentiable():
    features = parts.Features(CUBE, with_gps(CUBE, random_net(CUBE)))
    at_a_row = features.gps[0].x[0] / features.gps[0].inverse_length
    point = torch.stack([at_a_row, torch.tensor([0.2, 0.7, 0.4], dtype=torch.double)]).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: features.transform(x)[:, list(features.columns("m"))], point[1:])
    features.transform(point).sum().backward()
    assert torch.isfinite(point.grad).all()


@every_space
@pytest.mark.parametrize("tasks", [3, 10])
def test_posterior_equals_ours(space, tasks, rng):
    net = random_net(space, tasks)
    u, new = space.sample(rng, 15), rng.random((60, space.d))
    y = np.array([-loss(space, row) for row in u])
    for name, kernel in kernels(space, net).items():
        ours = exact_gp(kernel, space, net, u, y)
        mean, sd = gps.posterior(ours, exact_blocks(space, net, new))
        model = parts.gp_model(ours, u, space, net)
        one_by_one = model.posterior(torch.tensor(new).unsqueeze(1))
        np.testing.assert_allclose(one_by_one.mean[:, 0, 0].numpy(), mean, atol=1e-6, err_msg=name)
        np.testing.assert_allclose(one_by_one.variance[:, 0, 0].sqrt().numpy(), sd, atol=1e-6, err_msg=name)
        noisy = model.posterior(torch.tensor(new), observation_noise=True)
        np.testing.assert_allclose(noisy.variance[:, 0].numpy(), sd**2 + ours.noise, atol=1e-6, err_msg=name)


@every_space
def test_joint_covariance_equals_the_definition(space, rng):
    net = random_net(space)
    u, new = space.sample(rng, 10), rng.random((2, 5, space.d))
    ours = exact_gp(kernels(space, net)["joint"], space, net, u, rng.standard_normal(10))
    posterior = parts.gp_model(ours, u, space, net).posterior(torch.tensor(new))
    assert posterior.mean.shape == (2, 5, 1)
    assert posterior.rsample(torch.Size([7])).shape == (7, 2, 5, 1)
    for q, covariance in zip(new, posterior.covariance_matrix, strict=True):
        a, b = exact_blocks(space, net, u), exact_blocks(space, net, q)
        k = gps.covariance(ours.kernel, ours.theta, a, b)
        noisy = gps.covariance(ours.kernel, ours.theta, a, a) + ours.noise * np.eye(len(u))
        expected = gps.covariance(ours.kernel, ours.theta, b, b) - k.T @ np.linalg.solve(noisy, k)
        np.testing.assert_allclose(covariance.numpy(), expected, atol=1e-6)


@every_space
def test_conditioning_on_more_trials_equals_ours(space, rng):
    net, kernel = random_net(space), kernels(space, random_net(space))["joint"]
    u, more, new = space.sample(rng, 8), space.sample(rng, 3), rng.random((20, space.d))
    y = rng.standard_normal(11)
    ours = exact_gp(kernel, space, net, u, y[:8])
    model = parts.gp_model(ours, u, space, net)
    model.posterior(torch.tensor(new))
    updated = model.condition_on_observations(torch.tensor(more), torch.tensor(y[8:, None]))
    both = gps.build(kernel, ours.theta, exact_blocks(space, net, np.vstack([u, more])), y)
    mean, sd = gps.posterior(both, exact_blocks(space, net, new))
    posterior = updated.posterior(torch.tensor(new))
    np.testing.assert_allclose(posterior.mean[:, 0].numpy(), mean, atol=1e-6)
    np.testing.assert_allclose(posterior.variance[:, 0].sqrt().numpy(), sd, atol=1e-6)


@every_space
@pytest.mark.parametrize("trials", [0, 1, 12])
@pytest.mark.parametrize("method", [JumboJoint(), JumboJoint(latent=True), GPUCB()], ids=["joint", "latent", "cold"])
def test_joint_model_is_the_model_the_recipe_asks(space, trials, method, rng):
    """Against the optimizer's own posterior, whose features are in single precision."""
    optimizer = study(space, method, trials)
    optimizer.ask()  # pending: hallucinated in both
    view, new = optimizer.view(), rng.random((40, space.d))
    gp = view.model(joint_kernel(view, getattr(method, "latent", False)))
    mean, sd = gps.posterior(gp, view.domain.featurise(new))
    model = parts.joint_model(optimizer)
    assert (model.num_outputs, model.batch_shape, len(model.train_targets)) == (1, (), trials + 1)
    posterior = model.posterior(torch.tensor(new))
    np.testing.assert_allclose(posterior.mean[:, 0].numpy(), mean, atol=1e-5)
    np.testing.assert_allclose(posterior.variance[:, 0].sqrt().numpy(), sd, atol=1e-5)


def test_before_the_first_trial_the_model_is_the_old_runs_prediction(rng):
    net, new = random_net(CUBE, members=2), rng.random((20, 3))
    posterior = parts.joint_model(Optimizer(CUBE, net)).posterior(torch.tensor(new))
    np.testing.assert_allclose(posterior.mean[:, 0].numpy(), net.predictions(new).mean(axis=1), atol=1e-6)


def test_gradients_of_the_posterior(rng):
    net = random_net(CUBE)
    u = CUBE.sample(rng, 8)
    ours = exact_gp(kernels(CUBE, net)["joint"], CUBE, net, u, rng.standard_normal(8))
    model = parts.gp_model(ours, u, CUBE, net)

    def mean_and_covariance(x):
        posterior = model.posterior(x)
        return posterior.mean, posterior.distribution.covariance_matrix

    x = torch.tensor(0.05 + 0.9 * rng.random((2, 3, 3)), requires_grad=True)
    assert torch.autograd.gradcheck(mean_and_covariance, (x,), atol=1e-6)


def test_gradient_at_a_finished_trial_is_finite(rng):
    model = parts.joint_model(study(CUBE))
    x = torch.tensor(CUBE.sample(np.random.default_rng(3), 1), requires_grad=True)  # the first trial of the study
    model.posterior(x).variance.sum().backward()
    assert torch.isfinite(x.grad).all()


def test_gradient_is_zero_for_what_is_snapped(rng):
    model = parts.joint_model(study(MIXED))
    x = torch.tensor(rng.random((5, 4)), requires_grad=True)
    model.posterior(x).mean.sum().backward()
    assert (x.grad[:, 0] != 0).all()
    assert (x.grad[:, 1:] == 0).all()


def gate_by_both(space, threshold, gate, net, new):
    optimizer = study(space, Jumbo(threshold, gate=gate), net=net)
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
@pytest.mark.parametrize("method", [OfflineDKL, partial(Jumbo, math.inf)], ids=["warm", "cold"])
def test_jumbo_models_are_those_of_the_recipe(options, method, rng):
    optimizer = study(MIXED, method(**options))
    view, new = optimizer.view(), rng.random((40, 4))
    choice = optimizer.recipe(view)
    warm, cold = parts.jumbo_models(optimizer)
    mean, sd = gps.posterior(choice.surrogate.gp, view.domain.featurise(new))
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


def test_fantasies():
    model = parts.joint_model(study(MIXED))
    sampler = importlib.import_module("botorch.sampling.normal").SobolQMCNormalSampler(torch.Size([4]), seed=0)
    x = torch.tensor(MIXED.sample(np.random.default_rng(0), 2))
    model.posterior(x)
    dreamt = model.fantasize(x, sampler).posterior(x)
    assert dreamt.mean.shape == (4, 2, 1)
    assert (dreamt.variance < model.posterior(x).variance).all()


def test_what_does_not_fit_is_said(rng):
    net = random_net(CUBE)
    u = CUBE.sample(rng, 5)
    joint = exact_gp(kernels(CUBE, net)["joint"], CUBE, net, u, rng.standard_normal(5))
    with pytest.raises(ValueError, match="u has 4 points, but the GP is conditioned on 5"):
        parts.gp_model(joint, u[:4], CUBE, net)
    with pytest.raises(ValueError, match="the block 'g', which needs the pretrained net"):
        parts.gp_model(joint, u, CUBE)
    with pytest.raises(ValueError, match="has 3 columns in its block 'g', this space and net give 2"):
        parts.gp_model(joint, u, CUBE, random_net(CUBE, tasks=2))
    with pytest.raises(ValueError, match="trained for another space"):
        parts.gp_model(joint, u, CUBE, random_net(MIXED))
    model = parts.gp_model(joint, u, CUBE, net)
    with pytest.raises(ValueError, match="X has 4 columns, expected 3: a, b, c"):
        model.posterior(torch.rand(2, 4, dtype=torch.double))
    with pytest.raises(ValueError, match="there is no warm-GP; give the Optimizer a history"):
        parts.jumbo_models(Optimizer(CUBE))
    with pytest.raises(ValueError, match="expected 'printed' or 'constrained'"):
        parts.Gate(model, model, 1.0, 0.0, gate="open")
    with pytest.raises(ValueError, match=r"either choices \(N, d\), scored all, or bounds"):
        parts.warm_best(model, 1.0)
    with pytest.raises(AssertionError, match="q=1"):
        parts.Gate(model, model, 1.0, 0.0)(torch.rand(5, 2, 3, dtype=torch.double))


def test_without_the_extra_the_error_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "botorch.acquisition", None)  # as if it were not installed
    monkeypatch.delitem(sys.modules, "jumbo_bo.botorch")
    with pytest.raises(ImportError, match=re.escape("pip install 'jumbo-bo[botorch]'")):
        importlib.import_module("jumbo_bo.botorch")


folder_with_runs = test_docs.folder_with_runs


def test_the_page_runs(folder_with_runs, monkeypatch):
    """The blocks that make test leaves out because they need torch."""
    monkeypatch.setattr(test_docs, "NO_RUN", re.compile("(?!)"))
    page = test_docs.REPO / "docs" / "botorch.md"
    test_docs.run_page(page, folder_with_runs, shell=lambda code: None)  # what it installs is installed
