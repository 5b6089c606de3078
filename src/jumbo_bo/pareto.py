"""Several goals: an optimizer that looks for the configurations that no other one beats in all of them.

To the rest of it the first goal is the value, and the others are quantities that are measured with every trial
(quantities.py). What differs is the choice of a point (methods/pareto.py) and what is shown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self, Unpack

import numpy as np

from jumbo_bo import checks
from jumbo_bo.asking import featuriser
from jumbo_bo.data.frames import Roles, closest
from jumbo_bo.data.goals import FrontTrial, Values, goals_of, told_values
from jumbo_bo.data.limits import Limits, checked_measured
from jumbo_bo.errors import InputError, brief
from jumbo_bo.explain import SURE, Explanation, Parts, Prediction, doubt, in_digits, voices
from jumbo_bo.given import given
from jumbo_bo.learning.past import Past
from jumbo_bo.measured import with_limits
from jumbo_bo.methods import DEFAULT, Choice, Recipe, View
from jumbo_bo.methods.mixture import JumboMixture
from jumbo_bo.methods.pareto import Chosen, Voice, chance_to_join, chosen, volume
from jumbo_bo.notebook import drawing, several, summed_up
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.quantities import Quantities, with_measured
from jumbo_bo.search.argmax import Domain, domain_of
from jumbo_bo.search.front import undominated
from jumbo_bo.space.space import Params
from jumbo_bo.suggestion import Suggestion
from jumbo_bo.trials import Trial
from jumbo_bo.wording import in_words

if TYPE_CHECKING:
    import polars as pl


class ParetoOptimizer(Optimizer):
    """`Optimizer` for several goals; `Optimizer(..., direction={"loss": "minimize", "time": "minimize"})` makes one.
    Old runs that know all goals are read with `read_history(..., direction=...)`, the same.

    reference   goal -> the worst value that is still of use; where none is given, it is inferred from the trials
    """

    def __init__(
        self,
        space: Any,
        history: Any = None,
        direction: Any = None,
        n_trials: int | None = None,
        method: str | Recipe = DEFAULT,
        seed: int = 0,
        candidates: Sequence[Params] | None = None,
        cache: str | Path | None = None,
        bounds: tuple[float | None, float | None] = (None, None),
        limits: Limits | None = None,
        beliefs: Mapping[str, Any] | None = None,
        reference: Mapping[str, float | None] | None = None,
        **columns: Unpack[Roles],
    ) -> None:
        self.goals = goals_of(direction, space.names if hasattr(space, "names") else space)
        space, history = given(space, history, direction, columns)
        first, *others = self.goals
        rest = n_trials, method, seed, candidates, cache, bounds, limits, beliefs
        super().__init__(space, history, first.direction, *rest)
        if not isinstance(self.recipe, JumboMixture):
            raise InputError(f"{self.method} knows a single goal only; leave method out to use {DEFAULT!r}")
        if any(map(math.isfinite, self.bounds)):
            raise InputError("bounds are for a single goal; leave them out")
        if found := [name for name in limits or () if name in self.directions]:
            raise InputError(f"limits: {found[0]!r} is a goal; give its end as reference={{{found[0]!r}: ...}} instead")
        self.reference = self._checked_reference(reference)
        self._others = Quantities(others, self._quantity)
        self._trials = with_measured(self._known, (*self._measured.about, *others))

    @property
    def directions(self) -> dict[str, str]:
        return {goal.name: goal.direction for goal in self.goals}

    def tell(  # type: ignore[override]
        self,
        suggestion: Suggestion | Mapping[str, Any],
        value: Values,
        measured: Mapping[str, float | None] | None = None,
    ) -> None:
        """The values of a suggestion, or of any configuration of the space: a dict of the goals, or a list in their
        order. With None, NaN or an infinity for one of them the trial has failed. `measured` is for limits."""
        y, also = self._split(value)
        self._finish(suggestion, y, checked_measured(measured, self._measured.about) | also)

    def hear(self, params: Params, value: float, found: Mapping[str, float]) -> None:
        limits = {name: found.get(name) for name in self.limits or ()}
        self.tell(params, [value, *(found.get(goal.name) for goal in self.goals[1:])], limits)

    def replace(self, suggestion: Suggestion | Mapping[str, Any], value: Values) -> dict[str, float]:  # type: ignore[override]
        """Other values for a configuration that was told. Returns those that it had."""
        return self._values(self._replaced(suggestion, *self._split(value)))

    def _split(self, value: Any) -> tuple[float, dict[str, float]]:
        """The first goal as the rest of the optimizer sees it, and what is told beside it."""
        values = told_values(value, self.goals)
        if any(map(math.isnan, values.values())):
            return checks.FAILED, {}
        first, *others = self.goals
        return first.sign * values[first.name], {goal.name: values[goal.name] for goal in others}

    def _values(self, trial: Trial) -> dict[str, float]:
        """In the user's units; NaN for a failed one."""
        first, *others = self.goals
        found = {goal.name: trial.measured.get(goal.name, math.nan) for goal in others}
        return (
            dict.fromkeys(self.directions, math.nan)
            if math.isnan(trial.y)
            else {first.name: first.sign * trial.y, **found}
        )

    @property
    def told(self) -> list[tuple[Params, dict[str, float]]]:  # type: ignore[override]
        """Every configuration told, in order, with the values of the goals; NaN for a failed one."""
        return [(t.params, self._values(t)) for t in self._trials[self._n_old :]]

    @property
    def front(self) -> list[FrontTrial]:
        """The trials that no other one beats in all goals, of those that meet the constraints and all limits; the best
        in the first goal comes first. Of equal ones the first that was told."""
        trials = self._counting()
        if not trials:
            return []
        f = np.array(
            [[g.sign * value for g, value in zip(self.goals, self._values(t).values(), strict=True)] for t in trials]
        )
        kept = [trials[i] for i in np.flatnonzero(undominated(f))]
        return [FrontTrial(t.params, self._values(t)) for t in sorted(kept, key=lambda t: -t.y)]

    @property
    def best(self) -> NoReturn:
        raise InputError("with several goals no trial is the best; see optimizer.front")

    def remaining(self, gain: float = 0.0) -> NoReturn:
        raise InputError("what is left to gain is computed for a single goal only")

    def save(self, path: str | Path) -> NoReturn:
        raise InputError(
            "an optimizer with several goals cannot be saved as a file; keep what it was told, and the old runs, and "
            "tell a new one the same"
        )

    @property
    def trials(self) -> pl.DataFrame:
        """What was told, in order, one row each: parameters, goals, and the chance that was given to join the front."""
        return several(self)

    def plot(self, kind: Any = None) -> Any:
        """A Plotly figure: the front. For plots of one goal: `optimizer.models()["loss"].plot()`."""
        if kind not in (None, "front"):
            raise InputError(
                f"kind is {kind!r}, expected 'front'; for one goal: optimizer.models()[name].plot({kind!r})"
            )
        return drawing.front(self)

    def _repr_html_(self) -> str:
        n, results = len(self.front), [(params, list(values.values())) for params, values in self.told]
        goal = ", ".join(f"{direction} {name}" for name, direction in self.directions.items())
        return summed_up(self, goal, f"; {n} on the front", list(self.directions), results)

    def predict(self, configurations: Sequence[Mapping[str, Any]]) -> list[dict[str, Prediction]]:  # type: ignore[override]
        """What the models expect of these configurations, by goal, in the user's units."""
        first, *_others = self.goals
        self._others.follow(self._trials[self._n_old :])
        found = {first.name: super().predict(configurations)}
        found |= {q.about.name: q.model.predict(configurations) for q in self._others.quantities}
        return [dict(zip(found, row, strict=True)) for row in zip(*found.values(), strict=True)]

    def models(self) -> dict[str, Optimizer]:
        """By goal: an optimizer that was told no other one, for all that is said of one goal at a time."""
        told = self._trials[self._n_old :]
        self._others.follow(told)
        goal, rest = self.goals[0], (self.n_trials, self.recipe, self.seed)
        first = Optimizer(self.space, self.history, goal.direction, *rest, cache=self.cache)
        first.method, first.past = self.method, self.past
        for trial in told:
            first.tell(trial.params, goal.sign * trial.y)
        return {goal.name: first, **{q.about.name: q.model for q in self._others.quantities}}

    def restarted(self, candidates: Sequence[Params] | None = None, seed: int | None = None) -> Self:
        fresh = super().restarted(candidates, seed)
        fresh._others, fresh.reference = self._others.anew(), self.reference
        return fresh

    def _fresh(self, *rest: Any) -> Self:
        return type(self)(self.space, self.history, self.directions, *rest)

    @cached_property
    def past(self) -> Past | None:
        """What was learned of the first goal from the old runs; the others have learned by then, too."""
        self._others.learn()
        self._measured.learn()
        return self._known.learn()

    @cached_property
    def _domain(self) -> Domain:
        parts = featuriser(self.space, self.past, self.beliefs, self._measured, self._others)
        return domain_of(self.space, parts, self._listed)

    _score = staticmethod(volume)  # what a configuration is chosen for

    def _suggested(self, view: View, listed: Sequence[Params] | None) -> Suggestion:
        assert isinstance(self.recipe, JumboMixture)
        names = [goal.name for goal in self.goals[1:]]
        complete = np.array([all(name in t.measured for name in names) for t in self._finished().rows], dtype=bool)
        found = chosen(self.recipe, self._voices(view), complete, self._score)
        told, number = self._trials[self._n_old :], len(self.suggestions)
        suggestion = self._shown.suggestion(found.choice, view, number, told, listed)
        return replace(suggestion, explanation=self._explained(found, suggestion))

    def _voices(self, view: View) -> list[Voice]:
        self._others.follow(self._trials[self._n_old :])
        found = [Voice(view, lambda blocks: blocks, math.nan)]
        found += [
            Voice(replace(q.model.view(), pending=view.pending), q.own, math.nan) for q in self._others.quantities
        ]
        worst = [goal.sign * self.reference.get(goal.name, math.nan) for goal in self.goals]
        return [voice._replace(reference=end) for voice, end in zip(found, worst, strict=True)]

    def _explained(self, found: Chosen, suggestion: Suggestion) -> Explanation:
        """What is said of the first goal, then the same of all."""
        known, outlook = suggestion.explanation, found.outlook
        if outlook is None:
            return known
        shown = [self._shown, *(q.model._shown for q in self._others.quantities)]
        each, said = {}, []
        for goal, its, voice, surrogate in zip(self.goals, shown, outlook.voices, found.surrogates, strict=True):
            choice = Choice(found.choice.best, surrogate)
            if goal is self.goals[0]:
                each[goal.name] = replace(known, limits={})
            else:
                each[goal.name] = its.suggestion(choice, voice.view, suggestion.number, (), None).explanation
            one = each[goal.name]
            mean, low, high = in_digits(one.predicted)
            rated = voices(Parts(one.old, one.new, math.nan), choice, voice.view)
            said.append(f"{goal.name}: expected {mean} (90%: {low} to {high}). {rated}.")
        at = self._domain.featurise(found.choice.best.u[None])
        doubts = [doubt(len(v.view.z), bool(its.known.warps)) for v, its in zip(outlook.voices, shown, strict=True)]
        joins = chance_to_join(outlook, at, doubts)
        risk = [f"Chance of success: {known.success:.0%}."] if (known.success or 1.0) < SURE else []
        why = " ".join([f"Joins the front with {in_words(joins)}.", *said, *risk])
        return with_limits(replace(known, why=why, repeats=None, goals=each, joins=joins), known.limits)

    def _checked_reference(self, reference: Mapping[str, float | None] | None) -> dict[str, float]:
        if reference is not None and not isinstance(reference, Mapping):
            raise InputError(f"reference is {brief(reference)}, expected a dict of goals such as {{'loss': 0.5}}")
        for name, value in (reference or {}).items():
            if name not in self.directions:
                known = ", ".join(self.directions)
                raise InputError(
                    f"reference has {brief(name)}, but the goals are {known}{closest(name, self.directions)}"
                )
            if value is not None and not (isinstance(value, int | float) and math.isfinite(value)):
                raise InputError(f"the reference of {name!r} is {brief(value)}, expected a number, or None")
        return {name: float(value) for name, value in (reference or {}).items() if value is not None}
