"""BoTorch as its tutorials use it, without old runs: a GP, log expected improvement, and its gradient from ten starts.

All is BoTorch's default: SingleTaskGP with its priors, which widen with the number of parameters, standardized values,
LogExpectedImprovement, and `optimize_acqf` with 10 restarts from 512 raw samples. The first three trials are Sobol'
points, as many as our own methods have.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Standardize
from botorch.optim import optimize_acqf
from columns import columns
from gpytorch.mlls import ExactMarginalLogLikelihood
from peer import Setting

from jumbo_bo.space.space import Params

PACKAGE = "botorch"
INITIAL = 3
RESTARTS, RAW_SAMPLES = 10, 512


@dataclass(eq=False)
class BotorchPeer:
    setting: Setting
    first: torch.Tensor  # (INITIAL, d)
    x: list[list[float]] = field(default_factory=list)
    y: list[float] = field(default_factory=list)

    def ask(self) -> Params:
        n = len(self.y)
        return self.setting.space.decode((self.first[n] if n < INITIAL else self.best()).numpy())

    def best(self) -> torch.Tensor:  # -> (d,)
        x, y = torch.tensor(self.x, dtype=torch.double), torch.tensor(self.y, dtype=torch.double)[:, None]
        model = SingleTaskGP(x, y, outcome_transform=Standardize(m=1))
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        score = LogExpectedImprovement(model, best_f=y.max())
        cube = torch.tensor([[0.0], [1.0]], dtype=torch.double).expand(2, x.shape[1])
        found, _ = optimize_acqf(score, cube, q=1, num_restarts=RESTARTS, raw_samples=RAW_SAMPLES)
        return found[0]

    def tell(self, params: Params, y: float) -> None:
        self.x.append(self.setting.space.encode(params).tolist())
        self.y.append(y)


def build(setting: Setting) -> BotorchPeer:
    others = [column.name for column in columns(setting.space) if column.kind != "number"]
    if others or setting.choices is not None:
        raise ValueError(f"botorch-logei takes numbers only; not {', '.join(others) or 'a list of configurations'}")
    warnings.simplefilter("ignore")
    torch.manual_seed(setting.seed)
    sobol = torch.quasirandom.SobolEngine(setting.space.d, scramble=True, seed=setting.seed)
    return BotorchPeer(setting, sobol.draw(INITIAL, dtype=torch.double))
