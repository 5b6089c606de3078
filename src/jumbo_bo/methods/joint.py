"""The joint GP: one model whose prior holds the old runs and whose data are the new trials.

    mean    m(x), the average prediction of the old tasks
    kernel  constant + linear(g) + matern52(x)   (+ matern52(h) with latent=True)

Before the first trial the model believes the old runs. The linear term then gives every old task its own slope, which
may turn negative, so an inverted past still helps; the last term learns what no old task knows. The marginal
likelihood sets the amplitudes, so the data decide how far the past is used, and the posterior mean splits exactly into
what the old runs say (m, g, h) and what the new trials say (constant, x).

Old runs can also mislead. With each suggestion the trials judge them: when a model without them, matern52(x) alone,
explains the trials better by more than `guard` (in log p(theta | y) of the best theta, up to a constant), that model is
asked instead. Later trials may turn the verdict. Trials that all lie where the old runs are best could not tell, so the
second one is spread over the space: the old runs must explain how it differs from the first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from jumbo_bo.learning.training import Pretraining
from jumbo_bo.methods.base import Choice, Schedule, Surrogate, View, gp_surrogate, space_filling, spread
from jumbo_bo.methods.nets import NetRecipe
from jumbo_bo.models.gp import Kernel, LogNormal, Term, isotropic, posterior
from jumbo_bo.models.kernel import cold_kernel
from jumbo_bo.search.acquisition import remembered, ucb
from jumbo_bo.search.argmax import Best, Finite

# Turning exploration up was measured (docs/results.md, 'What made the difference'), these sizes were not.
PUSHES, FACTOR = 4, 4.0  # how often, and by how much beta grows each time
CLOSE = 0.01  # of a parameter's range
GAIN = 0.01  # of the standardised objective
CONTRAST = "A contrast to the first trial, to test the old runs"


@dataclass(frozen=True)
class JumboJoint(NetRecipe):
    beta0: float = 2.0
    rate: float = 3.0  # beta falls to exp(-rate) of its start over the budget; a stall turns it up again
    schedule: Schedule = "paper"
    initial: int = 3  # space-filling points when there are no old runs
    guard: float = 1.0  # infinite: the old runs are always asked
    contrast: bool = True  # the second trial does not ask the old runs
    latent: bool = False  # a fourth term on the latent features: slower, and on FCNet no better
    preset: str | Pretraining = "default"

    old_scale = True

    def __call__(self, view: View) -> Choice:
        if view.past is None and (first := space_filling(view, self.initial)):
            return first
        if view.past is not None and self.contrast and len(view.taken) == 1:
            return replace(spread(view, 0), note=CONTRAST)
        kernel = self._judged(view)
        gp = view.model(kernel)
        predict, beta = remembered(gp.predict), view.beta(self.schedule, self.beta0, self.rate)
        best = view.domain.argmax(ucb(predict, beta), view.rng, view.hints, view.taken)
        for _ in range(PUSHES):
            if not stalled(view, best, float(posterior(gp, view.domain.featurise(view.u)).mean.max(initial=-np.inf))):
                break
            beta *= FACTOR
            best = view.domain.argmax(ucb(predict, beta), view.rng, view.hints, view.taken)
        return Choice(best, gp_surrogate(gp), beta, aside=view.past is not None and kernel.mean is None)

    def surrogate(self, view: View) -> Surrogate:
        return gp_surrogate(view.model(self._judged(view)))

    def _judged(self, view: View) -> Kernel:
        return judged(view, joint_kernel(view, self.latent), self.guard)


def judged(view: View, kernel: Kernel, guard: float) -> Kernel:
    """This model, or the cold one when the trials speak against the old runs."""
    cold = cold_kernel(view.space)
    if view.past is None or len(view.u) < 2:
        return kernel
    against = view.fit(cold).log_posterior - view.fit(kernel).log_posterior
    return cold if against > guard else kernel


def stalled(view: View, best: Best, top: float) -> bool:
    """Even the most optimistic point promises nothing over the best finished trial, of which `top` is expected: the
    model has exhausted what it believes in, so it is wrong or done, and exploration is turned up. On a continuous space
    a small promise right next to a finished trial is no promise either, it can be made smaller for ever."""
    if len(view.u) == 0:
        return False
    gain = best.score - top
    if isinstance(view.domain, Finite):
        return bool(gain < 0)
    known, here = view.space.transform(view.u), view.space.transform(best.u[None])
    return bool(gain < GAIN and np.abs(known - here).max(axis=1).min() < CLOSE)


def joint_kernel(view: View, latent: bool = False) -> Kernel:
    cold = cold_kernel(view.space)
    if view.past is None:
        return cold
    heads = view.width("g")
    terms = [
        Term("1", "linear", (0,)),
        Term("g", "linear", tuple(range(heads)), variance=LogNormal(1.0 / heads, 1.0)),
        *cold.terms,
    ]
    if latent:
        width = view.width("h")
        length = LogNormal(math.sqrt(width), 1.0)
        terms.append(isotropic("h", width, variance=LogNormal(0.3, 1.0), length=length))
    return Kernel(tuple(terms), mean="m")
