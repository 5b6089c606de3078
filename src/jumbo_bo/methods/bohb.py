"""BOHB: HyperBand whose configurations are drawn from a density model (Falkner, Klein & Hutter, ICML 2018; HyperBand:
Li et al., JMLR 2018). The old task is the low fidelity, a trial of the new problem the full one.

Notation
    r, R        resource of an old run and of a trial (FCNet: 3 and 100 epochs); eta = R / r, so there are two rungs
    rows        the configurations of the old task and their values
    look        reading the old value of one row; it stands for r / R of a trial
    bracket     HyperBand alternates two: eta rows are looked at and the best is tried; two points are tried at once
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from optuna.samplers import TPESampler
from optuna.trial import TrialState

from jumbo_bo.data.history import History, Task
from jumbo_bo.errors import InputError
from jumbo_bo.learning.past import Past
from jumbo_bo.methods.base import Array, Choice, Recipe, View, closest
from jumbo_bo.methods.optuna_samplers import distributions, state_of, study_of, to_u, trial_of
from jumbo_bo.search.argmax import Finite

STRAIGHT = 2  # HyperBand, Alg. 1: with s_max = 1, bracket s = 0 has two configurations, on the full resource


@dataclass(frozen=True, eq=False)
class LowFidelity(Past):
    u: Array  # (N, d) distinct
    t: Array  # (N, D)
    z: Array  # (N,) larger is better


@dataclass(frozen=True)
class Brackets:
    """What HyperBand has done on the first rung."""

    looked: tuple[int, ...] = ()  # rows, in order
    promoted: tuple[int, ...] = ()  # the best row of each bracket


@dataclass(frozen=True)
class BOHB(Recipe):
    min_resource: int = 3
    max_resource: int = 100
    eta: float | None = None  # rows looked at for each one tried; None: as many as cost one trial
    random: float = 1 / 3  # share of configurations drawn without the model (rho of the paper)

    learns = LowFidelity

    @property
    def learning(self) -> Any:
        return None  # no option matters

    def check(self, history: History) -> None:
        if not 1 <= self.min_resource < self.max_resource:
            raise InputError(f"bohb needs 1 <= min_resource < max_resource, got {self}")
        if self.rung < 2:
            raise InputError(f"eta is {self.rung}, expected at least 2; set eta or a larger max_resource")

    def learn(self, history: History, seed: int) -> LowFidelity:
        u, z, _ = History(history.space, (most_alike(history),)).wide()
        return LowFidelity.of(history, u=u, t=history.space.transform(u), z=z[:, 0])

    @property
    def rung(self) -> int:
        return int(self.eta or self.max_resource / self.min_resource)

    def __call__(self, view: View) -> Choice:
        done = self._brackets(view)
        looks = f"{len(done.looked)} old values read so far"
        waiting = [view.past.u[i] for i in done.promoted if not _among(view.past.u[i], view.taken)]
        if waiting:
            note = f"The best old value of {self.rung} configurations that a density model drew, {looks}"
            return Choice(closest(view, waiting[0]), note=note)
        draw = Draw(self, view, done.looked, view.u, view.z, (len(view.taken), 0))
        for u in view.pending:
            draw.add(u)
        return Choice(closest(view, draw()), note=f"Drawn by a density model of the good configurations, {looks}")

    def _brackets(self, view: View) -> Brackets:
        """After each finished trial the brackets that are due are looked up, so a resumed study does the same again."""
        done = Brackets()
        if view.past is None:
            return done
        for n in range(_n_old(view), len(view.u) + 1):
            done = view.kept(("brackets", n), partial(self._due, view, done, n))
        return done

    def _due(self, view: View, done: Brackets, n: int) -> Brackets:
        """One bracket with looks for every STRAIGHT trials of the other kind, whoever chose them."""
        u, z = view.earlier(n)
        others = sum(not _among(x, view.past.u[list(done.promoted)]) for x in u[_n_old(view) :])
        while len(done.promoted) <= others // STRAIGHT:
            free = self._listed(view) & ~np.isin(np.arange(len(view.past.z)), done.looked)
            free &= [not _among(x, u) for x in view.past.u]
            if not free.any():
                break
            done = self._bracket(view, done, free, u, z)
        return done

    def _bracket(self, view: View, done: Brackets, free: npt.NDArray[np.bool_], u: Array, z: Array) -> Brackets:
        rows: LowFidelity = view.past
        draw = Draw(self, view, done.looked, u, z, (len(done.promoted), 1))
        drawn: list[int] = []
        for _ in range(min(self.rung, int(free.sum()))):
            apart = np.sum((rows.t - view.space.transform(draw()[None])) ** 2, axis=1)
            row = int(np.where(free, apart, np.inf).argmin())
            free[row] = False
            drawn.append(row)
            draw.add(rows.u[row], float(rows.z[row]))
        best = max(drawn, key=lambda row: rows.z[row])
        return Brackets((*done.looked, *drawn), (*done.promoted, best))

    def _listed(self, view: View) -> npt.NDArray[np.bool_]:  # -> (N,) rows that may be suggested
        if not isinstance(view.domain, Finite):
            return view.space.allowed(view.past.u)
        domain = view.domain
        return view.kept("listed", lambda: np.array([len(domain.rows_of(u[None])) > 0 for u in view.past.u]))


class Draw:
    """Draws points from the density model (TPE) of one fidelity: the full one once it has d + 3 values, else the low
    one (Falkner et al., Alg. 2)."""

    def __init__(
        self, recipe: BOHB, view: View, looked: tuple[int, ...], u: Array, z: Array, key: tuple[int, int]
    ) -> None:
        enough = view.space.d + 3
        self.low = view.past is not None and len(z) < enough
        self.space, self.random, self.rng = view.space, recipe.random, np.random.default_rng([view.seed, *key])
        if self.low:
            u, z = view.past.u[list(looked)], view.past.z[list(looked)]
        trials = [trial_of(view.space, x, y) for x, y in zip(u, z, strict=True)]
        self.study = study_of(trials, TPESampler(seed=state_of(view.seed, *key), n_startup_trials=enough))

    def __call__(self) -> Array:  # -> (d,)
        if self.rng.random() < self.random:
            point: Array = self.space.sample(self.rng, 1)[0]
            return point
        trial = self.study.ask(distributions(self.space))
        self.study.tell(trial, state=TrialState.FAIL)  # what is tried in its place is added instead
        return to_u(self.space, trial.params)

    def add(self, u: Array, low: float | None = None) -> None:
        """A point looked at or pending. To a model of the full fidelity it is a trial without a value yet."""
        self.study.add_trial(trial_of(self.space, u, low if self.low else None))


def most_alike(history: History) -> Task:
    """The old task whose order of configurations agrees best with the old data of the target; without such data, with
    the other old tasks; of equals the one with more rows."""
    names, rho = history.correlations(neighbours=True)
    known = np.where(np.isnan(rho), 0.0, rho)
    agreement = dict(zip(names, known[0] if history.target else known.sum(axis=1), strict=True))
    return max(history.tasks, key=lambda task: (round(agreement.get(task.name, -np.inf), 9), len(task.y)))


def _n_old(view: View) -> int:
    """Finished trials that are old data of the target."""
    return len(view.taken) + 1 - view.t


def _among(u: Array, others: Array) -> bool:  # (d,), (k, d)
    return len(others) > 0 and bool(np.abs(others - u).max(axis=1).min() < 1e-9)
