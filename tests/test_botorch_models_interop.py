"""The BoTorch models against our own GPs; what does not fit, the extra, the page (make test-interop)."""

import importlib
import re
import sys
from dataclasses import replace

import numpy as np
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution

import test_docs
from jumbo_bo.learning.row_gp import RowGP
from jumbo_bo.methods import GPUCB, JumboJoint
from jumbo_bo.methods.joint import joint_kernel
from jumbo_bo.models import gp as gps
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.space.space import Space
from untrained import CUBE, MIXED, WHY, every_space, exact_blocks, exact_gp, kernels, loss, random_net, study

pytestmark = pytest.mark.interop

torch = pytest.importorskip("torch", reason=WHY)
pytest.importorskip("botorch.acquisition", reason=WHY)
parts = pytest.importorskip("jumbo_bo.botorch", reason=WHY)


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


def test_parameters_that_do_not_exist_have_fixed_columns(rng):
    kinds, x = CategoricalDistribution(("a", "b")), FloatDistribution(0, 1)
    space = Space({"kind": kinds, "x": x, "y": x}, {"y": "kind == 'b'"})
    features = parts.Features(space)
    u = torch.tensor(rng.random((4, 5, 3))).requires_grad_()
    found = features.transform(u)[..., list(features.columns("x"))]
    ours = space.transform(u.detach().numpy().reshape(20, 3))
    np.testing.assert_allclose(found.detach().numpy().reshape(20, -1), ours)
    found.sum().backward()
    np.testing.assert_array_equal(u.grad[..., 2] != 0, u.detach()[..., 0] >= 0.5)


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
