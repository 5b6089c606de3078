"""MT-GP, multi-task Bayesian optimization (Swersky, Snoek, Adams, NeurIPS 2013): one exact GP of the old rows and the
trials together, whose kernel learns how far each pair of tasks agrees (models/icm.py). Acquisition: UCB on the target.

Notation
    N, n    rows of the old runs, finished trials
    phi     hyperparameters: shared length scales, the root of the tasks' covariance, one noise per task

The hyperparameters are fitted to the old runs once, then to all rows every `refit` trials; in between the model is
only conditioned on the trials.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jumbo_bo.data.history import History
from jumbo_bo.errors import InputError
from jumbo_bo.learning.past import Past
from jumbo_bo.methods.base import Choice, Recipe, Schedule, Surrogate, View, most_promising
from jumbo_bo.methods.gp_ucb import gp_ucb_like
from jumbo_bo.models import icm
from jumbo_bo.models.gp import Blocks, Normal
from jumbo_bo.models.kernel import cold_kernel
from jumbo_bo.search.acquisition import noisy
from jumbo_bo.search.argmax import Finite

Array = npt.NDArray[np.float64]

EARLY = (0, 3, 6)  # trials of the first fits: at the start every trial teaches much


@dataclass(frozen=True, eq=False)
class OldRows(Past):
    prior: icm.Prior
    rows: icm.LabelledRows
    phi: Array  # of the old runs alone


@dataclass(frozen=True)
class MTGP(Recipe):
    beta0: float = 10.0
    schedule: Schedule = "paper"
    correlation: float = 0.7  # of two tasks, before there are data
    refit: int = 10
    iterations: int = 15  # of L-BFGS at a refit; 50 at the start
    most_rows: int = 2000  # of the old runs: the cost of a fit is cubic in them
    initial: int = 3  # space-filling points when there are no old runs

    learns = OldRows
    old_scale = True

    def check(self, history: History) -> None:
        if history.n_rows > self.most_rows:
            raise InputError(
                f"mt-gp is an exact GP of all old rows and takes at most {self.most_rows:,}, but there are "
                f"{history.n_rows:,}; use a method without this limit (jumbo-mixture, rgpe), or read a sample of the "
                f"rows: History.from_frame(frame.sample({self.most_rows}, seed=0), space, ...)"
            )

    def learn(self, history: History, seed: int) -> OldRows:
        (term,) = cold_kernel(history.space).terms
        prior = icm.Prior(term, len(history.tasks) + 1, correlation=self.correlation)
        task = np.repeat(np.arange(len(history.tasks)), [len(t.y) for t in history.tasks])
        x = history.space.transform(np.vstack([t.u for t in history.tasks]))
        rows = icm.LabelledRows(x, task, np.concatenate([t.z for t in history.tasks]))
        return OldRows.of(history, prior=prior, rows=rows, phi=icm.fit(prior, rows))

    def __call__(self, view: View) -> Choice:
        if view.past is None:
            return gp_ucb_like(self)(view)
        _, phi = self._last_phi(view)
        beta = view.beta(self.schedule, self.beta0)
        return most_promising(view, self.surrogate(view), beta, _note(view.past, phi, len(view.z)))

    def surrogate(self, view: View) -> Surrogate:
        if view.past is None:
            return gp_ucb_like(self).surrogate(view)
        past: OldRows = view.past
        last, phi = self._last_phi(view)
        model = icm.build(past.prior, phi, _with_trials(past, view, view.u, view.z))
        if len(view.pending):
            expected = icm.posterior(model, view.space.transform(view.pending)).mean
            rows = _with_trials(past, view, view.taken, np.append(view.z, expected))
            model = icm.build(past.prior, phi, rows)

        def predict(blocks: Blocks) -> Normal:
            explained = None
            if isinstance(view.domain, Finite) and blocks is view.domain.rough:
                explained = view.kept(("mt-gp explained", last), lambda: icm.explained_by_old(model, blocks["x"]))
            return icm.posterior(model, blocks["x"], explained)

        return Surrogate(predict, noisy(predict, float(past.prior.split(phi).noise[-1])))

    def _last_phi(self, view: View) -> tuple[int, Array]:
        """The hyperparameters in force, and after how many trials they were fitted."""
        last = last_refit(len(view.z), self.refit)
        return last, view.kept(("mt-gp", last), lambda: self._phi(view, last))

    def _phi(self, view: View, n: int) -> Array:
        """Hyperparameters after n trials, always from those of the old runs: a resumed study makes one fit."""
        past: OldRows = view.past
        if n == 0:
            return past.phi
        rows = _with_trials(past, view, *view.earlier(n))
        return icm.fit(past.prior, rows, past.phi, self.iterations)


def last_refit(n: int, every: int) -> int:
    """The number of trials at the last fit of the hyperparameters."""
    return max([k for k in EARLY if k <= n] + [n // every * every])


def _with_trials(past: OldRows, view: View, u: Array, z: Array) -> icm.LabelledRows:
    return past.rows.and_target(view.space.transform(u), z, past.prior.tasks - 1)


def _note(past: OldRows, phi: Array, n: int) -> str:
    b = past.prior.split(phi).b
    likeness = b[:-1, -1] / np.sqrt(np.diag(b)[:-1] * b[-1, -1])
    best = int(np.argmax(np.abs(likeness)))
    trials = f"your {n} trials" if n != 1 else "your one trial"
    return (
        f"The old runs (correlation with {past.tasks[best]!r}: {likeness[best]:.2f}) and {trials} predict a good result"
    )
