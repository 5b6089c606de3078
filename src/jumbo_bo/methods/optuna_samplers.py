"""Optuna's own samplers behind our interface: what a user would pick instead, blind to the old runs.

    tpe         Bergstra et al., NeurIPS 2011; Watanabe, arXiv 2304.11127, 2023
    optuna-gp   a GP with log expected improvement (Ament et al., NeurIPS 2023)
    cma-es      Hansen, arXiv 1604.00772, 2016

Notation
    u, z    (n, d), (n,) finished trials; z is the value of a trial in the study, which maximises
    params  parameter name -> value in the study; choices are their index there: ordered ones an integer, others not

Each suggestion comes from a new study in memory that is given all trials, so a resumed study goes on the same.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import optuna
from optuna import Study
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.samplers import BaseSampler, CmaEsSampler, GPSampler, TPESampler
from optuna.trial import FrozenTrial, TrialState, create_trial

from jumbo_bo.methods.base import Array, Choice, Recipe, View, closest
from jumbo_bo.space.axes import Axis, Nominal, Ordinal, centres
from jumbo_bo.space.space import Params, Space

NEEDS = {"optuna-gp": ("torch",), "cma-es": ("cmaes",)}


@dataclass(frozen=True)
class OptunaSampler(Recipe):
    sampler: Literal["tpe", "optuna-gp", "cma-es"]
    multivariate: bool = True  # TPE: one density of all parameters, Optuna's default; False: one for each

    @property
    def needs(self) -> tuple[str, ...]:
        return NEEDS.get(self.sampler, ())

    def __call__(self, view: View) -> Choice:
        space, n = view.space, len(view.u)
        if self.sampler == "cma-es":
            study = self._replayed(view)
        else:
            study = study_of([trial_of(space, u, z) for u, z in zip(view.u, view.z, strict=True)])
        study.add_trials([trial_of(space, u) for u in view.pending])
        study.sampler = self._sampler(view.seed, len(view.taken))
        trial = study.ask(distributions(space))
        trials = f"{n} finished trials" if n != 1 else "one finished trial"
        note = f"Proposed by Optuna's {type(study.sampler).__name__} from {trials}"
        return Choice(closest(view, to_u(space, trial.params)), note=note)

    def _replayed(self, view: View) -> Study:
        """CMA-ES keeps its state in attributes of the trials it was asked for, so it is asked again for each of them,
        with what was tried in place of its answer. They depend on the order of the values alone, not on the scale of
        z: as long as that order stands, those of earlier trials are remembered."""
        order, known = view.memory.get("cma-es", ((), ()))
        if tuple(np.argsort(-view.z[: len(order)], kind="stable")) != order:
            known = ()
        study = study_of([trial_of(view.space, u, z, a) for u, z, a in zip(view.u, view.z, known, strict=False)])
        for i in range(len(known), len(view.u)):
            study.sampler = self._sampler(view.seed, i)
            study.enqueue_trial(to_params(view.space, view.u[i]))
            trial = study.ask(distributions(view.space))
            _ = trial.relative_params  # asks the sampler, which Optuna leaves out when all values are given
            study.tell(trial, view.z[i])
        attributes = tuple(trial.system_attrs for trial in study.get_trials(deepcopy=False))
        view.memory["cma-es"] = tuple(np.argsort(-view.z, kind="stable")), attributes
        return study

    def _sampler(self, seed: int, number: int) -> BaseSampler:
        state = state_of(seed, number + 1)
        match self.sampler:
            case "tpe":
                return TPESampler(seed=state, multivariate=self.multivariate)
            case "optuna-gp":
                return GPSampler(seed=state, warn_independent_sampling=False)
            case "cma-es":
                return CmaEsSampler(seed=state, warn_independent_sampling=False)


def state_of(*seed: int) -> int:
    """One seed as Optuna takes it, of several numbers."""
    return int(np.random.SeedSequence(seed).generate_state(1)[0])


def study_of(trials: list[FrozenTrial], sampler: BaseSampler | None = None) -> Study:
    with _unannounced():
        study = optuna.create_study(study_name="jumbo-bo", direction="maximize", sampler=sampler)
    study.add_trials(trials)
    return study


def trial_of(space: Space, u: Array, z: float | None = None, attributes: Params | None = None) -> FrozenTrial:  # u (d,)
    """A finished trial; without a value, one that is running."""
    return create_trial(
        state=TrialState.RUNNING if z is None else TrialState.COMPLETE,
        value=z,
        params=to_params(space, u),
        distributions=distributions(space),
        system_attrs=attributes,
    )


def distributions(space: Space) -> dict[str, BaseDistribution]:
    """Choices become indices, so that Optuna knows as much of their order as our own methods do."""

    def of(axis: Axis, dist: BaseDistribution) -> BaseDistribution:
        if isinstance(axis, Nominal):
            return CategoricalDistribution(range(axis.levels))
        return IntDistribution(0, len(axis.choices) - 1) if isinstance(axis, Ordinal) and axis.choices else dist

    return {name: of(axis, space.distributions[name]) for name, axis in zip(space.names, space.axes, strict=True)}


def to_params(space: Space, u: Array) -> Params:  # (d,) ->
    def value(axis: Axis, x: float) -> Any:
        return int(np.abs(centres(axis) - x).argmin()) if _indexed(axis) else axis.decode(x)

    return {name: value(axis, float(x)) for name, axis, x in zip(space.names, space.axes, u, strict=True)}


def to_u(space: Space, params: Params) -> Array:  # -> (d,)
    def coordinate(axis: Axis, value: Any) -> float:
        return float(centres(axis)[value] if _indexed(axis) else axis.encode([value])[0])

    return np.array([coordinate(axis, params[name]) for name, axis in zip(space.names, space.axes, strict=True)])


def _indexed(axis: Axis) -> bool:
    return isinstance(axis, Nominal) or (isinstance(axis, Ordinal) and axis.choices is not None)


@contextmanager
def _unannounced() -> Iterator[None]:
    """Optuna announces every new study in its log. Ours are of no interest; other threads keep their voice."""
    logger, me = logging.getLogger("optuna.storages._in_memory"), threading.get_ident()

    def others(record: logging.LogRecord) -> bool:
        return record.thread != me

    logger.addFilter(others)
    try:
        yield
    finally:
        logger.removeFilter(others)
