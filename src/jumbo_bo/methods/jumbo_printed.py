"""JUMBO (Hakhamaneshi et al., AAAI 2022) to the letter: of its text, and of its authors' code; its limit Offline DKL.

As printed, the warm-GP sees the pretrained net's latent features (`warm="h"`). The released code
(https://github.com/kouroshHakha/jumbo) passes the net's outputs (`warm="g"`), and with `released` both GPs are fitted
and the first points drawn as there. The cold-GP sees the raw inputs. Without old runs there is no warm-GP and JUMBO is
GP-UCB, its own limit. `jumbo.py` is the same structure at its best.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from jumbo_bo.learning.training import Pretraining
from jumbo_bo.methods.base import Choice, Schedule, Surrogate, View, closest, gp_surrogate, space_filling
from jumbo_bo.methods.gp_ucb import GPUCB
from jumbo_bo.methods.nets import NetRecipe
from jumbo_bo.models.gp import GP, Kernel, LogNormal, Term, isotropic
from jumbo_bo.models.kernel import cold_kernel
from jumbo_bo.search.acquisition import Gate, Score, blended, gated, in_gate, ucb
from jumbo_bo.search.argmax import Best

AMPLITUDE, NO_NOISE = LogNormal(10.0, 0.0), LogNormal(1e-8, 0.0)  # the released cold-GP: both fixed


def through_gate(
    view: View, warm: Score, cold: Score, threshold: float, gate: Gate | Literal["constant"]
) -> tuple[Best, bool | None]:
    """Lines 5 to 8 of Algorithm 1, and whether the point is inside the gate; None where lambda is constant."""
    if gate == "constant":
        return view.domain.argmax(blended(warm, cold), view.rng, view.hints, view.taken), None
    warm_best = view.domain.maximum(warm, view.rng, view.hints)  # line 5
    score = gated(warm, cold, warm_best, threshold, gate)  # lines 6-7
    smooth = threshold < 0 or threshold == math.inf  # an empty or a full gate has no edge
    best = view.domain.argmax(score, view.rng, view.hints, view.taken, smooth)  # line 8
    return best, bool(in_gate(warm(view.domain.featurise(best.u[None])), warm_best, threshold)[0])


@dataclass(frozen=True)
class JumboPrinted(NetRecipe):
    threshold: float = 0.1  # l_alpha
    warm: Literal["h", "g"] = "h"
    linear: bool = False  # the warm-GP becomes Bayesian linear regression, the ablation
    gate: Gate | Literal["constant"] = "printed"  # 'constant': lambda = 0.5 everywhere, the ablation
    beta0: float = 10.0
    schedule: Schedule = "paper"
    initial: int = 3
    paper_fit: bool = False  # isotropic, 100 Adam steps
    preset: str | Pretraining = "hpo"  # the paper's
    rate: float = 1.0  # beta falls to exp(-rate) of its start over the budget
    released: bool = False  # the cold-GP and the first points of the authors' code; fits as with `paper_fit`

    def __call__(self, view: View) -> Choice:
        if view.past is None:
            return self._cold(view)
        if first := (latin_hypercube if self.released else space_filling)(view, self.initial):
            return first
        beta = view.beta(self.schedule, self.beta0, self.rate)
        warm_gp, cold_gp = self.models(view)
        warm, cold = ucb(warm_gp.predict, beta), ucb(cold_gp.predict, beta)
        best, inside = through_gate(view, warm, cold, self.threshold, self.gate)
        return Choice(best, gp_surrogate(warm_gp if inside is False else cold_gp), beta, inside)

    def surrogate(self, view: View) -> Surrogate:
        """The cold-GP, which scores inside the gate; the warm-GP where the gate is always empty."""
        if view.past is None:
            return self._cold.surrogate(view)
        warm, cold = self.models(view)
        return gp_surrogate(warm if self.threshold < 0 else cold)

    @property
    def _cold(self) -> GPUCB:
        return GPUCB(self.beta0, self.schedule, self.initial, self._adam)

    @property
    def _adam(self) -> bool:
        return self.paper_fit or self.released

    def models(self, view: View) -> tuple[GP, GP]:
        """The warm- and the cold-GP."""
        warm, cold = warm_kernel(view, self.warm, self.linear), cold_kernel(view.space, not self._adam)
        if self.released:
            cold = replace(cold, terms=(replace(cold.terms[0], variance=AMPLITUDE),), noise=NO_NOISE)
        start = view.pretrained("warm", warm) if self.warm == "h" and not self.linear else None
        return (
            view.model(warm, start, self._adam),
            view.model(cold, view.pretrained("cold", cold), self._adam),
        )


@dataclass(frozen=True)
class OfflineDKL(NetRecipe):
    """The warm-GP alone. JUMBO with an empty gate (l_alpha < 0)."""

    warm: Literal["h", "g"] = "h"
    beta0: float = 10.0
    schedule: Schedule = "paper"
    initial: int = 3
    paper_fit: bool = False
    preset: str | Pretraining = "hpo"  # the paper's

    @property
    def as_jumbo(self) -> JumboPrinted:
        return JumboPrinted(
            -math.inf,
            self.warm,
            beta0=self.beta0,
            schedule=self.schedule,
            initial=self.initial,
            paper_fit=self.paper_fit,
        )

    def surrogate(self, view: View) -> Surrogate:
        return self.as_jumbo.surrogate(view)

    def __call__(self, view: View) -> Choice:
        return self.as_jumbo(view)


def warm_kernel(view: View, block: Literal["h", "g"], linear: bool = False) -> Kernel:
    """matern52 on the pretrained block, isotropic: with a few trials ARD overfits here. `linear`: Bayesian linear
    regression with an intercept and one prior variance for all weights, as a GP."""
    width = view.width(block)
    if linear:
        weights = Term(block, "linear", (0,) * width, variance=LogNormal(1.0 / width, 1.0))
        return Kernel((Term("1", "linear", (0,)), weights))
    return Kernel((isotropic(block, width, length=LogNormal(math.sqrt(width), 1.0)),))


def latin_hypercube(view: View, n: int) -> Choice | None:
    """The next of `n` initial points, one in every nth of each parameter's range; None when they are done."""
    k = len(view.taken)
    if k >= n:
        return None
    rng = np.random.default_rng(view.seed)
    strata = rng.permuted(np.tile(np.arange(n), (view.space.d, 1)), axis=1).T
    point = (strata[k] + rng.random((n, view.space.d))[k]) / n
    return Choice(closest(view, point), note=f"Initial point {k + 1} of {n}, one of a Latin hypercube")
