"""The GP against GPyTorch (make test-interop)."""

import numpy as np
import pytest

from jumbo_bo.models import gp as gps
from jumbo_bo.models.gp import Kernel, Term

pytestmark = pytest.mark.interop


def test_joint_kernel_equals_gpytorch():
    torch = pytest.importorskip("torch", reason="make test-interop installs torch and gpytorch")
    gpytorch = pytest.importorskip("gpytorch", reason="make test-interop installs torch and gpytorch")
    rng = np.random.default_rng(0)
    x, h, g = rng.random((25, 3)), rng.standard_normal((25, 2)), rng.standard_normal((25, 2))
    y = np.sin(5 * x[:, 0]) + 0.3 * g[:, 0]
    new = {"x": rng.random((40, 3)), "h": rng.standard_normal((40, 2)), "g": rng.standard_normal((40, 2))}
    kernel = Kernel((Term("g", "linear", (0, 0)), gps.isotropic("h", 2), gps.ard("x", 3)))
    theta = 0.5 * rng.standard_normal(len(kernel.priors[0]))
    ours = gps.build(kernel, theta, {"x": x, "h": h, "g": g}, y)
    v = np.exp(theta)

    def matern(dims, lengths, scale):
        base = gpytorch.kernels.MaternKernel(
            nu=2.5, active_dims=dims, ard_num_dims=len(lengths) if len(lengths) > 1 else None
        )
        base.lengthscale = torch.tensor(lengths)
        scaled = gpytorch.kernels.ScaleKernel(base)
        scaled.outputscale = scale
        return scaled

    class Exact(gpytorch.models.ExactGP):
        def __init__(self, inputs, targets, likelihood):
            super().__init__(inputs, targets, likelihood)
            self.mean_module = gpytorch.means.ZeroMean()
            linear = gpytorch.kernels.LinearKernel(active_dims=(5, 6))
            linear.variance = v[0]
            self.covar_module = linear + matern((3, 4), [v[2]], v[1]) + matern((0, 1, 2), v[4:7], v[3])

        def forward(self, inputs):
            return gpytorch.distributions.MultivariateNormal(self.mean_module(inputs), self.covar_module(inputs))

    inputs, targets = torch.tensor(np.hstack([x, h, g])), torch.tensor(y)
    likelihood = gpytorch.likelihoods.GaussianLikelihood(noise_constraint=gpytorch.constraints.GreaterThan(1e-9))
    model = Exact(inputs, targets, likelihood).double()
    likelihood.noise = v[-1]
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    model.train()
    theirs = mll(model(inputs), targets).item() * len(y)
    assert ours.log_likelihood == pytest.approx(theirs, abs=1e-6)
    model.eval()
    with torch.no_grad():
        predicted = model(torch.tensor(np.hstack([new["x"], new["h"], new["g"]])))
    mine = gps.posterior(ours, new)
    np.testing.assert_allclose(mine.mean, predicted.mean.numpy(), atol=1e-6)
    np.testing.assert_allclose(mine.sd**2, predicted.variance.numpy(), atol=1e-6)
