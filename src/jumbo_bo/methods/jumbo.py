"""JUMBO (Hakhamaneshi et al., AAAI 2022), Algorithm 1, at its best: a warm-GP, a gate, and the cold-GP inside it.

    warm    the joint GP: what the old tasks predict is its mean and its linear features, what they do not know is on x
    gate    where the warm score is within l_alpha of its best; the search never leaves it
    cold    matern52(x), blind to the old runs: its score decides inside the gate

A gate is as good as its warm-GP. One on latent features alone, as printed (jumbo_printed.py), must learn from the
trials which features are good. This one believes the old tasks from the start, so the first trial is already theirs,
and it corrects them on x. docs/paper.md says what each step is worth.

Without old runs, and while the trials speak against them (`guard`, as in joint.py), the warm-GP is the cold-GP. Then
the best of the gate is the best of all: GP-UCB, JUMBO's own limit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from jumbo_bo.learning.training import Pretraining
from jumbo_bo.methods.base import Choice, Schedule, Surrogate, View, gp_surrogate, space_filling, spread
from jumbo_bo.methods.joint import CONTRAST, joint_kernel, judged
from jumbo_bo.methods.jumbo_printed import through_gate
from jumbo_bo.methods.nets import NetRecipe
from jumbo_bo.models.gp import GP, Kernel, LogNormal, Term
from jumbo_bo.models.kernel import cold_kernel
from jumbo_bo.search.acquisition import Gate, remembered, ucb


@dataclass(frozen=True)
class Jumbo(NetRecipe):
    threshold: float = 0.5  # l_alpha, in standard deviations of the objective
    linear: bool = False  # the warm-GP becomes Bayesian linear regression on the latent features, the ablation
    gate: Gate | Literal["constant"] = "constrained"  # 'constant': lambda = 0.5 everywhere, the ablation
    beta0: float = 2.0
    rate: float = 3.0  # beta falls to exp(-rate) of its start over the budget
    schedule: Schedule = "paper"
    initial: int = 3  # space-filling points when there are no old runs
    guard: float = 1.0  # infinite: the old runs are always asked
    contrast: bool = True  # the second trial does not ask the old runs
    preset: str | Pretraining = "default"

    old_scale = True

    def __call__(self, view: View) -> Choice:
        if view.past is None and (first := space_filling(view, self.initial)):
            return first
        if view.past is not None and self.contrast and len(view.taken) == 1:
            return replace(spread(view, 0), note=CONTRAST)
        beta = view.beta(self.schedule, self.beta0, self.rate)
        warm_gp, cold_gp = self.models(view)
        warm, cold = ucb(remembered(warm_gp.predict), beta), ucb(cold_gp.predict, beta)
        if len(view.u) == 0:  # the cold-GP knows nothing yet
            best = view.domain.argmax(warm, view.rng, view.hints, view.taken)
            return Choice(best, gp_surrogate(warm_gp), beta, True)
        aside = view.past is not None and warm_gp.kernel == cold_gp.kernel
        if aside or view.past is None:
            best = view.domain.argmax(cold, view.rng, view.hints, view.taken)
            return Choice(best, gp_surrogate(cold_gp), beta, aside=aside)
        best, inside = through_gate(view, warm, cold, self.threshold, self.gate)
        return Choice(best, gp_surrogate(warm_gp), beta, inside)

    def surrogate(self, view: View) -> Surrogate:
        """The warm-GP, which knows the old runs and the trials; the cold-GP chooses, but predicts worse."""
        return gp_surrogate(self.models(view)[0])

    def models(self, view: View) -> tuple[GP, GP]:
        """The warm- and the cold-GP."""
        cold = cold_kernel(view.space)
        warm = cold if view.past is None else regression(view) if self.linear else joint_kernel(view)
        return view.model(judged(view, warm, self.guard)), view.model(cold)


def regression(view: View) -> Kernel:
    """Bayesian linear regression on the latent features, around what the old tasks predict."""
    width = view.width("h")
    weights = Term("h", "linear", (0,) * width, variance=LogNormal(1.0 / width, 1.0))
    return Kernel((Term("1", "linear", (0,)), weights), mean="m")
