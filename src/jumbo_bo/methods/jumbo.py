"""JUMBO (Hakhamaneshi et al., AAAI 2022), Algorithm 1, at its best: a warm-GP, a gate, and the cold-GP inside it.

    warm    the average of models that our default uses (mixture.py): it believes the old tasks as far as they have
            predicted the trials
    gate    where the warm score is within l_alpha of its best; the search never leaves it. l_alpha is a share of how
            far the warm scores spread, so it means the same on every problem
    cold    matern52(x), blind to the old runs: its score decides inside the gate

A gate is as good as its warm-GP. One on latent features alone, as printed (jumbo_printed.py), must learn from the
trials which features are good. This one believes the old tasks from the start, so the first trial is already theirs.
When even the most optimistic point promises nothing, exploration is turned up, as in joint.py. docs/paper.md says what
each step is worth.

Without old runs the warm-GP is the cold-GP, and the best of the gate is the best of all: GP-UCB, JUMBO's own limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt

from jumbo_bo.learning.training import Pretraining
from jumbo_bo.methods.averaging import average, expected_by, mixture
from jumbo_bo.methods.base import Choice, Schedule, Surrogate, View, Weighted, space_filling
from jumbo_bo.methods.joint import FACTOR, PUSHES, joint_kernel, stalled
from jumbo_bo.methods.jumbo_printed import through_gate
from jumbo_bo.methods.mixture import JumboMixture
from jumbo_bo.methods.nets import NetRecipe
from jumbo_bo.models.gp import GP, Kernel, LogNormal, Term
from jumbo_bo.models.kernel import cold_kernel
from jumbo_bo.search.acquisition import Gate, Score, remembered, ucb
from jumbo_bo.search.argmax import Best, Finite, sobol

Array = npt.NDArray[np.float64]

AVERAGE = JumboMixture()
SPREAD_OVER = 256  # points on which the spread of a score is measured where the space has no list


@dataclass(frozen=True)
class Jumbo(NetRecipe):
    threshold: float = 0.2  # l_alpha, in standard deviations of the warm score over the space
    warm: Literal["average", "joint", "linear"] = "average"  # or the joint GP, or Bayesian linear regression on h
    gate: Gate | Literal["constant"] = "constrained"  # 'constant': lambda = 0.5 everywhere, the ablation
    beta0: float = 2.0
    rate: float = 3.0  # beta falls to exp(-rate) of its start over the budget
    schedule: Schedule = "paper"
    initial: int = 3  # space-filling points when there are no old runs
    push: bool = True  # exploration is turned up when nothing is promised
    preset: str | Pretraining = "default"

    old_scale = True

    def __call__(self, view: View) -> Choice:
        if view.past is None and (first := space_filling(view, self.initial)):
            return first
        calm = view.beta(self.schedule, self.beta0, self.rate)
        warm_gps, cold_gp = self.models(view)
        predict = remembered(partial(average, warm_gps))
        top = float(expected_by(warm_gps, view.domain.featurise(view.u)).max(initial=-np.inf))
        for pushes in range(1 + PUSHES * self.push):
            beta = calm * FACTOR**pushes
            warm, cold = ucb(predict, beta), ucb(cold_gp.predict, beta)
            best, inside = self._best(view, warm, cold)
            promised = Best(best.u, float(warm(view.domain.featurise(best.u[None]))[0]))
            if not stalled(view, promised, top):
                break
        return Choice(best, mixture(warm_gps), beta, inside)

    def _best(self, view: View, warm: Score, cold: Score) -> tuple[Best, bool | None]:
        if view.past is None:
            return view.domain.argmax(cold, view.rng, view.hints, view.taken), None
        if len(view.u) == 0:  # the cold-GP knows nothing yet
            return view.domain.argmax(warm, view.rng, view.hints, view.taken), True
        return through_gate(view, warm, cold, self.reach(view, warm), self.gate)

    def reach(self, view: View, warm: Score) -> float:
        """The threshold in units of the score."""
        if not 0 < self.threshold < np.inf:
            return self.threshold
        domain = view.domain
        blocks = domain.blocks if isinstance(domain, Finite) else domain.featurise(_spread(view))
        return self.threshold * float(np.std(warm(blocks)))

    def surrogate(self, view: View) -> Surrogate:
        """The warm-GP, which knows the old runs and the trials; the cold-GP chooses, but predicts worse."""
        return mixture(self.models(view)[0])

    def models(self, view: View) -> tuple[Weighted, GP]:
        """The warm model, an average of GPs, and the cold-GP."""
        cold = view.model(cold_kernel(view.space))
        if view.past is None:
            return [(1.0, cold)], cold
        if self.warm == "average":
            return AVERAGE.models(view), cold
        return [(1.0, view.model(joint_kernel(view) if self.warm == "joint" else regression(view)))], cold


def _spread(view: View) -> Array:
    return view.space.snap(sobol(view.space.d, SPREAD_OVER, np.random.default_rng(0)))


def regression(view: View) -> Kernel:
    """Bayesian linear regression on the latent features, around what the old tasks predict."""
    width = view.width("h")
    weights = Term("h", "linear", (0,) * width, variance=LogNormal(1.0 / width, 1.0))
    return Kernel((Term("1", "linear", (0,)), weights), mean="m")
