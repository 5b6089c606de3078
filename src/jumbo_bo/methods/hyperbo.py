"""HyperBO: mean and kernel of a GP are learned from the old tasks and stay as they are, whatever the trials say.

Z. Wang et al., 'Pre-trained Gaussian Processes for Bayesian Optimization', JMLR 2024.

Notation
    h       (m, W)  outputs of a small tanh net of the configuration
    prior   h w + c,  matern52(h, h') with a length scale per feature, noise: learned by the sum over the old tasks of
            their log marginal likelihoods
    level   an unknown number that all values of the target share
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from jumbo_bo.data.history import History
from jumbo_bo.learning.deep_gp import DeepGP, Shape, kernel_of
from jumbo_bo.methods.base import Choice, Recipe, Schedule, Surrogate, View, gp_surrogate, most_promising
from jumbo_bo.methods.gp_ucb import gp_ucb_like
from jumbo_bo.models.gp import GP, Term, build, hallucinate


@dataclass(frozen=True, eq=False)
class PretrainedGP(DeepGP):
    pass


@dataclass(frozen=True)
class HyperBO(Recipe):
    beta0: float = 10.0
    schedule: Schedule = "paper"
    initial: int = 3  # space-filling points when there are no old runs
    layers: tuple[int, ...] = (8, 8)  # widths; none: mean and kernel of the configuration itself
    steps: int = 10_000
    tasks: int = 4  # per step
    rows: int = 100  # of each of them
    rate: float = 1e-2
    offset: float = 1.0  # variance of the level

    learns = PretrainedGP
    old_scale = True

    @property
    def learning(self) -> Any:
        return [self.layers, self.steps, self.tasks, self.rows, self.rate]

    def learn(self, history: History, seed: int) -> PretrainedGP:
        from jumbo_bo.learning.learners import deep_kernel  # imports jax

        space = history.space
        shape = Shape((len(space.groups), *self.layers), tanh=True, linear=True, ard=True)
        plan = deep_kernel.Plan(self.tasks, self.rows, self.steps, self.rate)
        params, steps = deep_kernel.meta_train(deep_kernel.rows_of(history), shape, plan, seed)
        return PretrainedGP.of(history, params=params, shape=shape, steps=steps)

    def __call__(self, view: View) -> Choice:
        if view.past is None:
            return gp_ucb_like(self)(view)
        return most_promising(view, self.surrogate(view), view.beta(self.schedule, self.beta0))

    def surrogate(self, view: View) -> Surrogate:
        if view.past is None:
            return gp_ucb_like(self).surrogate(view)
        return gp_surrogate(hallucinate(self.gp(view), view.domain.featurise(view.pending)))

    def gp(self, view: View) -> GP:
        """The target's values are standardised by its trials, which are better than the old tasks' points on average:
        hence the level."""
        past: PretrainedGP = view.past
        kernel = kernel_of(past.shape, Term("1", "linear", (0,)))
        theta = np.insert(past.theta, -1, np.log(self.offset))
        return build(kernel, theta, view.domain.featurise(view.u), view.z)
