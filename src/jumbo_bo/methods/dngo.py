"""DNGO: Bayesian linear regression on the last hidden layer of a net that was trained by its squared error.

J. Snoek et al., 'Scalable Bayesian Optimization Using Deep Neural Networks', ICML 2015.

With old runs the basis functions are those of the net of all old tasks, pretrained once; only the regression sees the
new trials. Without, or with old=False, the net is trained on the new trials themselves, anew for every suggestion.

Notation
    h       (m, n_z)  standardised outputs of the last hidden layer; the basis is h and a constant
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jumbo_bo.data.history import History, Task
from jumbo_bo.learning.features import FeatureNet
from jumbo_bo.learning.training import Pretraining
from jumbo_bo.methods.base import Choice, Schedule, Surrogate, View, most_promising, space_filling
from jumbo_bo.methods.nets import NetRecipe
from jumbo_bo.models import blr
from jumbo_bo.models.gp import Blocks, Normal
from jumbo_bo.search.acquisition import noisy

Array = npt.NDArray[np.float64]
Basis = Callable[[Blocks], Array]

OWN = Pretraining(n_u=50, n_z=50, members=1, weight_decay=1.0, max_steps=500)  # on the new trials alone


@dataclass(frozen=True)
class DNGO(NetRecipe):
    old: bool = True  # False: blind to the old runs
    beta0: float = 10.0
    schedule: Schedule = "paper"
    initial: int = 3
    preset: str | Pretraining = "dngo"

    @property
    def learns(self) -> type[FeatureNet] | None:
        return FeatureNet if self.old else None

    def __call__(self, view: View) -> Choice:
        if first := space_filling(view, self.initial):
            return first
        note = f"The net of {'the old runs' if view.past else 'your trials'} predicts a good result"
        return most_promising(view, self.surrogate(view), view.beta(self.schedule, self.beta0), note)

    def surrogate(self, view: View) -> Surrogate:
        own = None if view.past else view.kept(("dngo", len(view.u)), lambda: _net_of_trials(view))

        def basis(blocks: Blocks) -> Array:
            h = own.blocks(blocks["x"])["h"].astype(blocks["x"].dtype) if own else blocks["h"]
            return np.hstack([h, np.ones_like(h[:, :1])])

        return regression(view, basis)


def _net_of_trials(view: View) -> FeatureNet:
    from jumbo_bo.learning.pretrain import pretrain  # imports jax

    return pretrain(History(view.space, (Task("new trials", view.u, view.z),)), OWN, view.seed)


def regression(view: View, basis: Basis) -> Surrogate:
    """Bayesian linear regression of the trials on these features, pending ones taken as they are predicted."""
    model = blr.fit(basis(view.domain.featurise(view.u)), view.z)
    model = blr.hallucinate(model, basis(view.domain.featurise(view.pending)))

    def predict(blocks: Blocks) -> Normal:
        return Normal(*blr.posterior(model, basis(blocks)))

    return Surrogate(predict, noisy(predict, float(np.exp(-model.theta[1]))))
