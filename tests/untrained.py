"""Untrained nets on three spaces and studies with them, for the comparisons with BoTorch."""

from itertools import pairwise

import numpy as np
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo.data.warp import Warp
from jumbo_bo.learning.features import FeatureNet
from jumbo_bo.models import gp as gps
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.space.space import Space

WHY = "make test-interop installs torch and botorch"
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
