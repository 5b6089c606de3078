"""JumboSampler: the optimizer as a sampler for Optuna, and through Optuna for Ray Tune.

The sampler keeps no state of its own that matters. Each suggestion is computed from the trials in the storage and the
seed, so threads, processes and a study that is resumed all continue from the same truth.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna import Study
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.samplers import BaseSampler, PartialFixedSampler, RandomSampler
from optuna.trial import FrozenTrial, TrialState

from jumbo_bo import studies
from jumbo_bo.checks import constrained
from jumbo_bo.constraints import MET, Constraints
from jumbo_bo.data.history import History
from jumbo_bo.data.limits import Limits
from jumbo_bo.errors import InputError
from jumbo_bo.held import holding
from jumbo_bo.learning import cache as learned
from jumbo_bo.learning.past import Past
from jumbo_bo.methods import DEFAULT, Recipe
from jumbo_bo.optimizer import Directions, Optimizer
from jumbo_bo.sampled import Suggested, goals_in, other_choices, seen_in, space_and_history, studies_of
from jumbo_bo.search.argmax import SpaceExhausted
from jumbo_bo.space.constraints import Predicate
from jumbo_bo.space.space import Params, Space
from jumbo_bo.space.structure import learned_space

USER_CACHE = Path("~/.cache/jumbo-bo")  # stands for learned.default_folder(), which is looked up when a sampler is made
CONDITIONAL = "pass search_space=Space(..., conditions=...) to optimize it from the first trial on"
ANY = Space({"x": FloatDistribution(0, 1)})

_logger = optuna.logging.get_logger(f"optuna.{__name__}")  # below Optuna's, so its verbosity counts here too


class JumboSampler(BaseSampler):
    """Suggests what the old runs and the trials of the study promise together.

    history         old runs of related problems, or what was learned from them (`Optimizer.past`)
    search_space    the parameters to optimize: a Space, or a dict of distributions. Without it: those of the history,
                    else those of the source studies, else those of the finished trials of the running study (then there
                    are no old runs to learn from). Of parameters that not all of these trials have, it learns when they
                    exist
    method          a name from METHODS, or a recipe such as Jumbo(threshold=0.05)
    n_trials        the budget, if known: exploration fades towards its end
    seed            the same for all processes of a study, or None in all of them
    source_studies  old Optuna studies, used as old runs (in addition to `history`)
    cache           folder where what was learned is kept and shared between processes ($JUMBO_CACHE or
                    ~/.cache/jumbo-bo by default); None: learned by every process, not kept
    beliefs         what parameters are probably about, such as {"lr": about(1e-3)}; they fade as trials come in
    bounds          the smallest and the largest value that is possible, where intervals end; None: no such end
    constraints     what configurations have to meet, as in `Space`, such as ["x_a + x_b <= 1"]; instead of a Space with
                    constraints as `search_space`
    limits          of quantities that `history` has read, in their units: name -> lowest and highest value that is
                    allowed. For any other constraint, `Trial.set_constraint` is enough
    """

    def __init__(
        self,
        history: History | Past | None = None,
        search_space: Space | Mapping[str, BaseDistribution] | None = None,
        method: str | Recipe = DEFAULT,
        n_trials: int | None = None,
        seed: int | None = None,
        *,
        source_studies: Study | Iterable[Study] = (),
        cache: str | Path | None = USER_CACHE,
        bounds: tuple[float | None, float | None] = (None, None),
        constraints: Sequence[str | Predicate] = (),
        limits: Limits | None = None,
        beliefs: Mapping[str, Any] | None = None,
    ) -> None:
        if seed is not None and seed < 0:
            raise InputError(f"seed is {seed}, expected at least 0, or None for a different one each time")
        sources = studies_of(source_studies)
        space, self._history = space_and_history(history, search_space, sources, limits)
        self._space = constrained(space, search_space, constraints)
        self._constraints = Constraints.of(limits, self._space or ANY, sources)
        self._method = method
        self._n_trials = n_trials
        self._bounds, self._beliefs = bounds, beliefs
        self._fresh = seed is None
        self._seed = secrets.randbits(32) if seed is None else seed
        self._cache = learned.default_folder() if cache is USER_CACHE else cache
        self._said: set[str] = set()
        self._optimizer: Optimizer | None = None
        self._lock = threading.Lock()
        # Refuses a wrong method or budget now and not in the middle of a study.
        new = partial(Optimizer, self._space or ANY, self._history, n_trials=n_trials, method=method, bounds=bounds)
        new(limits=dict.fromkeys(limits or (), MET), beliefs=beliefs if self._space else None)

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        if self._space is not None:
            return dict(self._space.distributions)
        found = self._found(study)
        return {} if found is None else dict(found.distributions)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        if not search_space:
            return {}
        space = self._space or self._found(study)
        if space is None or not space.conditions:
            space = self._space or Space(search_space)
        fixed = _fixed(study, trial, space)
        if set(space.active(fixed)) <= set(fixed):
            return {}
        with self._lock:
            try:
                return Suggested(self._suggest(study, trial, space, fixed), search_space)
            except SpaceExhausted as error:
                self._say("exhausted", f"{error}. From trial {trial.number} on, parameters are drawn at random.")
                params = space.decode(space.sample(np.random.default_rng([self._seed, trial.number]), 1)[0])
        return {name: value for name, value in params.items() if name in search_space}

    def _found(self, study: Study) -> Space | None:
        """What the finished trials of the running study tell of its parameters."""
        trials = studies.remembered(study._storage, study._study_id)
        return learned_space([seen_in(trials, (TrialState.COMPLETE,))])

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        suggested = studies.known_params(trial)
        if isinstance(param_distribution, CategoricalDistribution) and param_name in suggested:
            trials = studies.remembered(study._storage, study._study_id)
            if other := other_choices(param_name, param_distribution, self._space, trials):
                self._say("choices", other)
            if suggested[param_name] in param_distribution.choices:
                return suggested[param_name]
        self._say_independent(study, trial, param_name)
        text = f"{self._seed} {trial.number} {param_name}"  # no generator whose state could get lost
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4])
        return RandomSampler(seed).sample_independent(study, trial, param_name, param_distribution)

    def reseed_rng(self) -> None:
        """Nothing to do: whatever is random depends on the seed and the trial's number alone."""

    def _suggest(self, study: Study, trial: FrozenTrial, space: Space, fixed: Params) -> Params:
        goals, history = goals_in(study, self._history)
        limits = self._constraints.now(studies.remembered(study._storage, study._study_id))
        direction = goals or study.direction.name.lower()
        optimizer = self._optimizer_of(space, history, direction, limits)  # type: ignore[arg-type]
        if fixed:
            optimizer = holding(optimizer, fixed, trial.number)
        trials: list[FrozenTrial] = []

        def read() -> list[FrozenTrial]:
            trials[:] = studies.remembered(study._storage, study._study_id, list(goals))
            return trials

        def store(attributes: Mapping[str, Any]) -> None:
            for key, value in attributes.items():
                study._storage.set_trial_user_attr(trial._trial_id, key, value)  # for other processes
                trial.user_attrs[key] = value  # for the objective, as Trial.set_user_attr does

        optimizer, suggestion = studies.decide(optimizer, read, trial.number, store)
        if not fixed:
            self._optimizer = optimizer
        self._say_unused(study, trials, optimizer)
        return suggestion.params

    def _optimizer_of(
        self, space: Space, history: History | Past | None, direction: Directions, limits: Limits | None
    ) -> Optimizer:
        known = self._optimizer
        now = known and (known.space, getattr(known, "directions", known.direction), known.limits)
        if known is not None and now == (space, direction, limits):
            return known
        new = partial(
            Optimizer,
            space,
            history,
            direction,
            self._n_trials,
            self._method,
            cache=self._cache,
            bounds=self._bounds,
            limits=limits,
            beliefs=self._beliefs,
        )
        # Without a seed only the suggestions differ from study to study; what is learned can be shared.
        return new(0).restarted(seed=self._seed) if self._fresh else new(self._seed)

    def _say_independent(self, study: Study, trial: FrozenTrial, name: str) -> None:
        if "independent" in self._said:
            return
        finished = study._get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        if self._space is None and not finished:
            return  # nobody knows the search space before the first trial
        if self._space is None and not any(name in t.params for t in finished):
            problem = f"{name!r} is in no finished trial yet"
            self._say("new", f"{problem}, so it is drawn at random; {CONDITIONAL}. This message is shown once.")
            return
        space = self._found(study) if self._space is None else self._space
        if space is not None and name in space.conditions and name not in space.active(trial.params):
            problem = f"{name!r} is asked for where its condition ({space.conditions[name]}) does not hold"
            fix = CONDITIONAL if self._space is None else "change the condition, or do not ask for it there"
        elif self._space is None:
            problem = f"{name!r} is not in every finished trial with the same range"
            fix = "pass search_space= to optimize it from the first trial on"
        elif name in self._space.distributions:
            problem = f"{name!r} is requested with a range that does not contain the suggested value"
            fix = "use the same range in the objective and in search_space="
        else:
            problem = f"{name!r} is not in the search space"
            fix = "add it to search_space= to optimize it, even if not every trial uses it"
        self._say("independent", f"{problem}, so it is drawn at random; {fix}. This message is shown once.")

    def _say_unused(self, study: Study, trials: Sequence[FrozenTrial], optimizer: Optimizer) -> None:
        if "unused" in self._said or sum(t.state.is_finished() for t in trials) == len(optimizer.told):
            return
        if unused := studies.unused(trials, optimizer.space):
            number, reason = unused[0]
            self._say(
                "unused",
                f"{len(unused)} finished trials of study {study.study_name!r} are outside the search space and "
                f"are not used; the first is trial {number}: {reason}. This message is shown once.",
            )

    def _say(self, kind: str, message: str) -> None:
        if kind not in self._said:
            self._said.add(kind)
            _logger.warning(message)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lock": None, "_optimizer": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())


def _fixed(study: Study, trial: FrozenTrial, space: Space) -> Params:
    """Values of this trial that are not ours to choose: enqueued ones, and those a PartialFixedSampler holds."""
    fixed: Params = {}
    sampler = study.sampler
    while isinstance(sampler, PartialFixedSampler):
        fixed = sampler._fixed_params | fixed
        sampler = sampler._base_sampler
    fixed |= trial.system_attrs.get("fixed_params", {})
    known = [(name, axis) for name, axis in zip(space.names, space.axes, strict=True) if name in fixed]
    return {name: fixed[name] for name, axis in known if np.isfinite(axis.encode([fixed[name]])[0])}
