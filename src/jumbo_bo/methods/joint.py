"""The joint GP: one model whose kernel holds the old runs and the new trials side by side.

    k = constant + linear(g) + matern52(h) + matern52(x)

The marginal likelihood sets the amplitudes, so the data decide how far the past is used; a linear term may have a
negative slope, so an inverted past still helps; and the posterior mean splits exactly into what the old runs say
(g, h) and what the new trials say (constant, x).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from jumbo_bo.acquisition import ucb
from jumbo_bo.gp import Kernel, LogNormal, Term, isotropic
from jumbo_bo.methods.base import Choice, Schedule, View, cold_kernel, space_filling


@dataclass(frozen=True)
class JumboJoint:
    beta0: float = 1.0
    schedule: Schedule = "paper"
    initial: int = 3  # without old runs
    needs_net: bool = True

    def __call__(self, view: View) -> Choice:
        if view.net is None and (first := space_filling(view, self.initial)):
            return first
        gp = view.model("joint", joint_kernel(view))
        beta = view.beta(self.schedule, self.beta0)
        return Choice(view.domain.argmax(ucb(gp, beta), view.rng, view.hints, view.taken), gp, beta)


def joint_kernel(view: View) -> Kernel:
    cold = cold_kernel(view.space)
    if view.net is None:
        return cold
    heads, latent = view.width("g"), view.width("h")
    return Kernel(
        (
            Term("1", "linear", (0,)),
            Term("g", "linear", tuple(range(heads)), variance=LogNormal(1.0 / heads, 1.0)),
            isotropic("h", latent, variance=LogNormal(0.3, 1.0), length=LogNormal(math.sqrt(latent), 1.0)),
            *cold.terms,
        ),
        mean="m",
    )
