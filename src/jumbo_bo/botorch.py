"""Our GPs and JUMBO's gate as BoTorch parts (extra: pip install 'jumbo-bo[botorch]').

Notation
    X       (..., q, d)  double, points u of the unit cube, one coordinate per parameter (Space.encode, Space.decode)
    blocks  (..., q, P)  [1, T(u), h, g, m] side by side, the blocks of models/gp.py; a kernel term picks its columns
    values  standardised, larger is better, whatever the direction of the study

A model is BoTorch's own SingleTaskGP: T(u) and the pretrained net are its input transform, our kernel, prior mean and
noise are its modules. So everything that works on a SingleTaskGP works here: joint posteriors, sampling, fantasies.
Everything is in double precision; `FeatureNet.blocks`, built for speed, rounds the net's features to single.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from jumbo_bo.errors import InputError
from jumbo_bo.learning.features import FeatureNet
from jumbo_bo.learning.row_gp import RowGP
from jumbo_bo.methods import Jumbo, JumboJoint, JumboPrinted, OfflineDKL
from jumbo_bo.methods.joint import joint_kernel
from jumbo_bo.models.gp import GP, Kernel, Term
from jumbo_bo.models.kernel import SQRT5
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.search.acquisition import Gate as GateKind
from jumbo_bo.space.axes import Axis
from jumbo_bo.space.space import Space

try:
    import torch
    from botorch.acquisition import AcquisitionFunction, UpperConfidenceBound
    from botorch.models import SingleTaskGP
    from botorch.models.model import Model
    from botorch.models.transforms.input import InputTransform
    from botorch.optim import optimize_acqf
    from botorch.utils.sampling import manual_seed
    from botorch.utils.transforms import t_batch_mode_transform
    from gpytorch.constraints import Positive
    from gpytorch.kernels import Kernel as GPyTorchKernel
    from gpytorch.likelihoods import GaussianLikelihood
    from gpytorch.means import Mean
    from torch import Tensor
    from torch.nn import Module, ModuleList, ParameterDict, ParameterList
except ImportError as error:
    raise ImportError(
        f"jumbo_bo.botorch needs BoTorch ({error}); install it with: pip install 'jumbo-bo[botorch]'"
    ) from error

__all__ = ["Features", "Gate", "gp_model", "joint_model", "jumbo_models", "warm_best"]

Array = npt.NDArray[np.float64]

NET_BLOCKS = ("h", "g", "m")
CHUNK = 4096  # choices scored at once
RESTARTS, RAW_SAMPLES = 8, 512  # of the search for the warm maximum


class Features(InputTransform, Module):
    """u -> blocks. Differentiable in continuous parameters. Integers, steps and choices are snapped exactly as in
    Space.transform, so the model is constant within a cell and the gradient with respect to them is zero."""

    transform_on_train = transform_on_eval = transform_on_fantasize = True

    def __init__(self, space: Space, net: FeatureNet | None = None) -> None:
        super().__init__()
        self.space = space
        self.has_net = net is not None
        self.widths = {"1": 1, "x": len(space.groups)}
        if net is not None:
            if net.space_fingerprint != space.fingerprint:
                raise InputError("the net was trained for another space; pretrain again for this one")
            self.widths |= {"h": net.n_z, "g": net.g_basis.shape[1], "m": 1}
            self.weights = ParameterList(_tensor(weight) for weight, _ in net.layers)
            self.biases = ParameterList(_tensor(bias) for _, bias in net.layers)
            names = ("h_mean", "h_sd", "g_basis", "g_mean", "g_sd")
            self.scale = ParameterDict({name: _tensor(getattr(net, name)) for name in names})
            self.gps = ModuleList(RowMean(gp, net.tasks.index(task)) for task, gp in net.gps.items())
        self.requires_grad_(False)

    def columns(self, block: str) -> tuple[int, ...]:
        """Where a block is in what `transform` returns."""
        if block not in self.widths:
            raise InputError(f"the GP uses the block {block!r}, which needs the pretrained net; pass net=optimizer.net")
        start = sum(list(self.widths.values())[: list(self.widths).index(block)])
        return tuple(range(start, start + self.widths[block]))

    def transform(self, X: Tensor) -> Tensor:  # (..., d) -> (..., P)
        if X.shape[-1] != self.space.d:
            raise InputError(f"X has {X.shape[-1]} columns, expected {self.space.d}: {', '.join(self.space.names)}")
        x = torch.cat([_axis_columns(axis, X[..., i]) for i, axis in enumerate(self.space.axes)], dim=-1)
        if self.space.conditions:
            x = self._with_rest(x, X)
        blocks = [torch.ones_like(X[..., :1]), x]
        if self.has_net:
            h = 2.0 * x - 1.0
            for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
                h = torch.tanh(h @ weight + bias)
            heads = h @ self.weights[-1] + self.biases[-1]
            for gp in self.gps:
                heads = gp(heads, x)
            s = self.scale
            blocks.append((h - s["h_mean"]) / s["h_sd"])
            blocks.append((heads @ s["g_basis"] - s["g_mean"]) / s["g_sd"])
            blocks.append(heads.mean(dim=-1, keepdim=True))
        return torch.cat(blocks, dim=-1)

    def _with_rest(self, x: Tensor, X: Tensor) -> Tensor:  # (..., D), (..., d) -> (..., D)
        """Fixed columns for parameters that do not exist."""
        u = X.detach().cpu().numpy().reshape(-1, self.space.d)
        there = self.space.there(u)[:, list(self.space.groups)]
        fixed = torch.as_tensor(self.space.transform(u)).to(x).reshape(x.shape)
        return torch.where(torch.as_tensor(there).reshape(x.shape), x, fixed)


class RowMean(Module):
    """Our RowGP: gives its share to the prediction of its task."""

    def __init__(self, gp: RowGP, head: int) -> None:
        super().__init__()
        self.weight, self.head = gp.weight, head
        variance, *lengths = np.exp(gp.theta[:-1])
        self.register_buffer("inverse_length", _tensor(SQRT5 / np.array(lengths)[list(gp.groups)]))
        self.register_buffer("x", _tensor(gp.x) * self.inverse_length)
        self.register_buffer("alpha", _tensor(gp.alpha) * variance)

    def forward(self, heads: Tensor, x: Tensor) -> Tensor:  # (..., K), (..., D) -> (..., K)
        r = torch.cdist(x * self.inverse_length, self.x, compute_mode="donot_use_mm_for_euclid_dist")
        mean = ((1.0 + r + r**2 / 3.0) * torch.exp(-r)) @ self.alpha
        share = torch.zeros_like(heads)
        share[..., self.head] = self.weight
        return heads + share * (mean.unsqueeze(-1) - heads)


def _axis_columns(axis: Axis, u: Tensor) -> Tensor:  # (...) -> (..., width)
    if axis.levels is None:
        return u.clamp(0.0, 1.0).unsqueeze(-1)
    snapped = axis.transform(u.detach().reshape(-1).cpu().numpy())
    return torch.as_tensor(snapped, dtype=u.dtype, device=u.device).reshape(*u.shape, axis.width)


class Terms(GPyTorchKernel):
    """Our sum of terms (models/kernel.py) on the columns of `Features`, dense. GPyTorch's own sum of a linear and a
    Matern kernel takes a low-rank path that needs jitter."""

    def __init__(self, kernel: Kernel, theta: Array, features: Features) -> None:
        super().__init__()
        self.kernel = kernel
        self.columns = [list(features.columns(term.block)) for term in kernel.terms]
        for term, columns in zip(kernel.terms, self.columns, strict=True):
            if len(columns) != len(term.groups):
                raise InputError(
                    f"the GP has {len(term.groups)} columns in its block {term.block!r}, this space and net give "
                    f"{len(columns)}; give those it was fitted with"
                )
        self.register_buffer("theta", _tensor(theta))

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **_: Any) -> Tensor:
        return sum(
            _term(self, term, torch.exp(self.theta[s]), x1[..., columns], x2[..., columns], diag)
            for (term, s), columns in zip(self.kernel.slices(), self.columns, strict=True)
        )


def _term(kernel: Terms, term: Term, scale: Tensor, a: Tensor, b: Tensor, diag: bool) -> Tensor:
    groups = list(term.groups)
    if term.kind == "linear":
        a = a * scale[groups]
        return (a * b).sum(dim=-1) if diag else a @ b.mT
    inverse_length = SQRT5 / scale[1:][groups]
    r = kernel.covar_dist(a * inverse_length, b * inverse_length, diag=diag)  # sqrt(5) r, safe to differentiate at 0
    return scale[0] * (1.0 + r + r**2 / 3.0) * torch.exp(-r)


class Column(Mean):
    """The prior mean: one column of `Features`, or zero."""

    def __init__(self, column: int | None) -> None:
        super().__init__()
        self.column = column

    def forward(self, x: Tensor) -> Tensor:
        return torch.zeros_like(x[..., 0]) if self.column is None else x[..., self.column]


def gp_model(gp: GP, u: Array, space: Space, net: FeatureNet | None = None) -> SingleTaskGP:
    """The fitted GP over raw inputs. `u` (n, d) are the points it is conditioned on, in the order of gp.y; the net is
    needed when its kernel uses the blocks h, g or m. Hyperparameters are ours and stay as they are."""
    if len(u) != len(gp.y):
        raise InputError(f"u has {len(u)} points, but the GP is conditioned on {len(gp.y)}; give the points of gp.y")
    mean = gp.kernel.mean
    used = {term.block for term in gp.kernel.terms} | {mean}
    features = Features(space, net if used & set(NET_BLOCKS) else None)
    likelihood = GaussianLikelihood(noise_constraint=Positive()).double()
    likelihood.noise = torch.exp(_tensor(gp.theta[-1]))
    model = SingleTaskGP(
        _tensor(u).reshape(-1, space.d),
        _tensor(gp.y).reshape(-1, 1),
        likelihood=likelihood,
        covar_module=Terms(gp.kernel, gp.theta, features),
        mean_module=Column(None if mean is None else features.columns(mean)[0]),
        outcome_transform=None,
        input_transform=features,
    )
    return model.requires_grad_(False).eval()


def joint_model(optimizer: Optimizer) -> SingleTaskGP:
    """The joint GP after what the optimizer was told (methods/joint.py); its pending points are hallucinated.
    Without old runs, the cold-GP."""
    view = optimizer.view()
    latent = isinstance(optimizer.recipe, JumboJoint) and optimizer.recipe.latent
    return gp_model(view.model(joint_kernel(view, latent)), view.taken, view.space, view.past)


def jumbo_models(optimizer: Optimizer) -> tuple[SingleTaskGP, SingleTaskGP]:
    """The warm- and the cold-GP of Algorithm 1, with the options of the optimizer's recipe if it has them. `jumbo` has
    an average of several GPs for the warm one; here it is the joint GP, as an average is no SingleTaskGP."""
    view, recipe = optimizer.view(), optimizer.recipe
    if view.past is None:
        raise InputError(
            "there are no old runs, so there is no warm-GP; give the Optimizer a history and a method that uses it, "
            "such as method='jumbo'"
        )
    if isinstance(recipe, OfflineDKL):
        recipe = recipe.as_jumbo
    if isinstance(recipe, JumboPrinted):
        warm_gp, cold_gp = recipe.models(view)
    else:
        ((_, warm_gp),), cold_gp = Jumbo(warm="joint").models(view)
    return gp_model(warm_gp, view.taken, view.space, view.past), gp_model(cold_gp, view.taken, view.space)


class Gate(AcquisitionFunction):
    """Algorithm 1, lines 6-7 (acquisition.gated): the cold UCB where the warm UCB is within `threshold` of its best.

    Any two single-output models do. It jumps at the edge of the gate, so a gradient does not lead across:
    optimize_acqf_discrete, or optimize_acqf with many raw samples. `constrained` never leaves the gate.
    """

    def __init__(
        self,
        warm: Model,
        cold: Model,
        beta: float,
        warm_best: float,
        threshold: float = 0.1,
        gate: GateKind = "printed",
    ) -> None:
        if gate not in ("printed", "constrained"):
            raise InputError(f"gate is {gate!r}, expected 'printed' or 'constrained'")
        super().__init__(model=cold)
        self.warm, self.cold = UpperConfidenceBound(warm, beta), UpperConfidenceBound(cold, beta)
        self.warm_best, self.threshold = warm_best, threshold
        self.constrained = gate == "constrained" and threshold >= 0

    @t_batch_mode_transform(expected_q=1)
    def forward(self, X: Tensor) -> Tensor:  # (b, 1, d) -> (b,)
        warm = self.warm(X)
        inside = self.warm_best - warm <= self.threshold  # line 6
        return torch.where(inside, self.cold(X), warm - 1e6 if self.constrained else warm)  # line 7


def warm_best(
    warm: Model, beta: float, choices: Tensor | None = None, bounds: Tensor | None = None, seed: int = 0
) -> float:
    """The best warm UCB, Algorithm 1, line 5: exact over `choices` (N, d), or searched within `bounds` (2, d)."""
    score = UpperConfidenceBound(warm, beta)
    if (choices is None) == (bounds is None):
        raise InputError("warm_best needs either choices (N, d), scored all, or bounds (2, d), to search within")
    if choices is not None:
        with torch.no_grad():
            return max(float(score(part.unsqueeze(-2)).max()) for part in choices.split(CHUNK))
    with manual_seed(seed):  # optimize_acqf draws from torch's global generator, which is put back afterwards
        _, value = optimize_acqf(score, bounds, q=1, num_restarts=RESTARTS, raw_samples=RAW_SAMPLES)
    return float(value)


def _tensor(values: npt.ArrayLike) -> Tensor:
    return torch.tensor(values, dtype=torch.double)  # a copy: ours may be read-only
