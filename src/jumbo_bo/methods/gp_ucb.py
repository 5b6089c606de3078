"""GP-UCB (Srinivas et al., 2010): the cold-GP alone, blind to the old runs. JUMBO with l_alpha = inf."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from jumbo_bo.methods.base import (
    Choice,
    Recipe,
    Schedule,
    Surrogate,
    View,
    gp_surrogate,
    most_promising,
    space_filling,
)
from jumbo_bo.models.kernel import cold_kernel


@dataclass(frozen=True)
class GPUCB(Recipe):
    beta0: float = 10.0
    schedule: Schedule = "paper"
    initial: int = 3
    paper_fit: bool = False  # isotropic, 100 Adam steps

    weighs_beliefs = True

    def __call__(self, view: View) -> Choice:
        if first := space_filling(view, self.initial):
            return first
        return most_promising(view, self.surrogate(view), view.beta(self.schedule, self.beta0))

    def surrogate(self, view: View) -> Surrogate:
        return gp_surrogate(view.model(cold_kernel(view.space, not self.paper_fit), adam=self.paper_fit))


class Options(Protocol):
    """Those of GP-UCB, which other methods have too."""

    @property
    def beta0(self) -> float: ...
    @property
    def schedule(self) -> Schedule: ...
    @property
    def initial(self) -> int: ...


def gp_ucb_like(method: Options) -> GPUCB:
    """What most methods are without old runs."""
    return GPUCB(method.beta0, method.schedule, method.initial)
