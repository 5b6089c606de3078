"""GP-UCB (Srinivas et al., 2010): the cold-GP alone, blind to the old runs. JUMBO with l_alpha = inf."""

from __future__ import annotations

from dataclasses import dataclass

from jumbo_bo.methods.base import Choice, Schedule, View, space_filling
from jumbo_bo.models.kernel import cold_kernel
from jumbo_bo.search.acquisition import ucb


@dataclass(frozen=True)
class GPUCB:
    beta0: float = 10.0
    schedule: Schedule = "paper"
    initial: int = 3
    paper_fit: bool = False  # isotropic, 100 Adam steps
    preset: str | None = None
    old_scale: bool = False

    def __call__(self, view: View) -> Choice:
        if first := space_filling(view, self.initial):
            return first
        gp = view.model(cold_kernel(view.space, not self.paper_fit), adam=self.paper_fit)
        beta = view.beta(self.schedule, self.beta0)
        return Choice(view.domain.argmax(ucb(gp, beta), view.rng, view.hints, view.taken), gp, beta)
