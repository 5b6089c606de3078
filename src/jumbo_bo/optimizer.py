"""Optimizer: ask for a configuration, tell its value, repeat.

Everything it suggests is a function of its arguments and of what it was told, in that order: a new process that is
told the same trials suggests the same next one, to the bit on the same kind of machine with the same libraries.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, Self, Unpack

import numpy as np
import numpy.typing as npt
from optuna.distributions import BaseDistribution

from jumbo_bo import checks
from jumbo_bo.asking import checked_beliefs, featuriser, held
from jumbo_bo.data.frames import Roles
from jumbo_bo.data.limits import Limits, checked_measured
from jumbo_bo.errors import InputError
from jumbo_bo.explain import Prediction, said
from jumbo_bo.extras import later
from jumbo_bo.given import given
from jumbo_bo.known import Known
from jumbo_bo.learning.features import FeatureNet
from jumbo_bo.learning.past import Past
from jumbo_bo.measured import Measured
from jumbo_bo.methods import DEFAULT, Recipe, Surrogate, View, name_of
from jumbo_bo.models.threads import one_thread
from jumbo_bo.notebook import InNotebooks
from jumbo_bo.paths import at_home
from jumbo_bo.quantities import Named, old_runs_of, with_measured
from jumbo_bo.remaining import Goal, chance
from jumbo_bo.retold import Retold
from jumbo_bo.search.argmax import Domain, domain_of
from jumbo_bo.search.candidates import allowed_of
from jumbo_bo.search.share import share_of
from jumbo_bo.shown import Shown
from jumbo_bo.space.space import Params, Space
from jumbo_bo.suggestion import BestTrial, Suggestion
from jumbo_bo.trials import Fits, Pending, Trial, Trials

pareto = later("jumbo_bo.pareto")

Array = npt.NDArray[np.float64]
Direction = Literal["minimize", "maximize"]
Directions = Direction | Mapping[str, Direction]

__all__ = ["BestTrial", "Direction", "Optimizer", "Suggestion"]


class Optimizer(Retold, InNotebooks):
    """Suggests configurations of `space` and learns from their values.

    history     old runs of related problems: a `History`, a table, or what was learned (`Optimizer.past`)
    direction   of the value; several goals as a dict of names, such as {"loss": "minimize", "time": "minimize"}, make
                it a `ParetoOptimizer`
    n_trials    the budget, if known: exploration fades towards its end
    method      a name from METHODS, or a recipe such as Jumbo(threshold=0.05)
    candidates  configurations to choose from, instead of the whole space
    cache       folder where what was learned is kept and shared between processes; None: learned here, not kept
    beliefs     what parameters are probably about, such as {"lr": about(1e-3)}; they fade as trials come in
    bounds      the smallest and the largest value that is possible, where intervals end; None: no such end
    limits      on quantities that are told with every value: name -> the lowest and the highest that is allowed
    columns     what the columns of a table are, as in `History.from_frame`; the rest is guessed
    """

    def __new__(cls, *args: Any, **options: Any) -> Self:
        several = isinstance(options.get("direction", args[2] if len(args) > 2 else None), Mapping)
        made: Self = super().__new__(pareto.ParetoOptimizer if several and cls is Optimizer else cls)
        return made

    def __init__(
        self,
        space: Space | Mapping[str, BaseDistribution],
        history: Any = None,
        direction: Directions = "minimize",
        n_trials: int | None = None,
        method: str | Recipe = DEFAULT,
        seed: int = 0,
        candidates: Sequence[Params] | None = None,
        cache: str | Path | None = None,
        bounds: tuple[float | None, float | None] = (None, None),
        limits: Limits | None = None,
        beliefs: Mapping[str, Any] | None = None,
        **columns: Unpack[Roles],
    ) -> None:
        self.direction = checks.checked_direction(direction)
        space, history = given(space, history, self.direction, columns)
        self.space, self.history = space, history
        self.n_trials = n_trials
        self.recipe = checks.checked_recipe(method, space, history, n_trials)
        self.method = method if isinstance(method, str) else name_of(method)
        self.bounds = checks.checked_bounds(bounds)
        self.beliefs = checked_beliefs(space, beliefs, self.recipe, self.method)
        self.seed = seed
        self.candidates, self._listed = allowed_of(space, candidates)
        self.cache = None if cache is None else Path(at_home(cache))
        self._sign = -1.0 if direction == "minimize" else 1.0
        self.limits = limits
        self._known = Known(history, self.recipe, space, seed, self.cache)
        self._measured = Measured(checks.checked_limits(limits, space, self.recipe), self._quantity)
        self._trials = with_measured(self._known, self._measured.about)
        self._n_old = len(self._trials)
        self._pending = Pending()
        self._fits = Fits(self.recipe.most_trials)
        self._memory: dict[Hashable, Any] = {}
        self._told: tuple[int, Trials] | None = None  # the last of `_finished`, and of how many trials
        self.suggestions: list[Suggestion] = []

    def ask(
        self,
        running: Sequence[Mapping[str, Any]] | None = None,
        share: tuple[int, int] | None = None,
        fixed: Mapping[str, Any] | None = None,
    ) -> Suggestion:
        """The next configuration to try. It stays pending until told or failed.

        `running` are the configurations being tried right now, where that is known better than from asks and tells,
        as in a storage that several processes share. When n of them ask at the same moment, they do not get the same
        configuration if the i-th one has the `share` (i, n). Parameters that are `fixed` have these values.
        """
        if running is not None:
            self._pending = Pending([self.space.encode(params) for params in running])
        with one_thread():
            view, listed = held(self.view(), self.candidates, fixed or {})
            if share is not None:
                view = replace(view, domain=share_of(view.domain, *share))
            suggestion = self._suggested(view, listed)
        self.suggestions.append(suggestion)
        # Encoded from what the user sees, so that telling by parameters in another process is the same to the bit.
        self._pending.add(suggestion.number, suggestion.params, self.space.encode(suggestion.params))
        return suggestion

    def _suggested(self, view: View, listed: Sequence[Params] | None) -> Suggestion:
        told, number = self._trials[self._n_old :], len(self.suggestions)
        return self._shown.suggestion(self.recipe(view), view, number, told, listed)

    def ask_many(self, n: int) -> list[Suggestion]:
        """n configurations to try at the same time; each knows of the ones before it."""
        if n < 1:
            raise InputError(f"n is {n}, expected at least 1")
        return [self.ask() for _ in range(n)]

    def tell(
        self,
        suggestion: Suggestion | Mapping[str, Any],
        value: float,
        measured: Mapping[str, float | None] | None = None,
    ) -> None:
        """The value of a suggestion, or of any configuration of the space, whether it meets the constraints or not. NaN
        and infinities count as failures. `measured` are the quantities that have limits; one that was not measured is
        NaN or left out."""
        also = checked_measured(measured, self._measured.about)
        self._finish(suggestion, self._sign * checks.told_number(value), also)

    def fail(self, suggestion: Suggestion | Mapping[str, Any]) -> None:
        """The configuration could not be evaluated. It is not proposed again, and less is expected of those like it."""
        self._finish(suggestion, checks.FAILED, {})

    @property
    def told(self) -> list[tuple[Params, float]]:
        """Every configuration told, in order, with its value in the user's units; NaN for a failed one."""
        return [(t.params, self._sign * t.y) for t in self._trials[self._n_old :]]

    def hear(self, params: Params, value: float, found: Mapping[str, float]) -> None:
        """A result of a study: of what was found beside the value, what matters here."""
        self.tell(params, value, {name: found.get(name) for name in self.limits or ()})

    def predict(self, configurations: Sequence[Mapping[str, Any]]) -> list[Prediction]:
        """What the model expects of these configurations, in the user's units, after all it was told."""
        with one_thread():
            view = self.view()
            surrogate = self._surrogate(view)
            u = np.array([self.space.encode(params) for params in configurations]).reshape(-1, self.space.d)
            return self._shown.predictions(said(surrogate, self._domain.featurise(u)), view)

    def remaining(self, gain: float = 0.0) -> float:
        """The probability that some configuration is better than the best one tried by more than `gain`, in the user's
        units. 1 before the first value, 0 when all configurations were tried.

        What was tried includes old data of the target, and not what is pending. It takes as long as several calls of
        `ask`, and changes no suggestion.
        """
        with one_thread():
            trials = self._finished()
            view = replace(self._view(trials), pending=np.zeros((0, self.space.d)))
            rivals = [t for t in self._trials if self.space.allows(t.params)]
            goal = Goal(view, rivals, trials.warp, gain, self.recipe.success(view), self._measured or None)
            gps = self._surrogate(view, joint=True).gps
            return 1.0 if self.best is None else chance(gps, goal)

    def _surrogate(self, view: View, joint: bool = False) -> Surrogate:
        """`joint`: one that knows how the values of several configurations vary together."""
        surrogate = self.recipe.surrogate(view)
        if surrogate is None or (joint and not surrogate.gps):
            raise InputError(f"{self.method} has no model that could predict values, or not yet")
        return surrogate

    def restarted(self, candidates: Sequence[Params] | None = None, seed: int | None = None) -> Self:
        """The same optimizer before it was told anything, perhaps with other candidates or another seed; what was
        learned from the old runs is shared, not learned again."""
        chosen = self.seed if seed is None else seed
        beliefs = self.beliefs.of if self.beliefs else None
        rest = self.n_trials, self.recipe, chosen, candidates, self.cache, self.bounds, self.limits, beliefs
        fresh = self._fresh(*rest)
        fresh.method, fresh.past, fresh._measured = self.method, self.past, self._measured.anew()
        if candidates is None:
            fresh.candidates, fresh._listed, fresh._domain = self.candidates, self._listed, self._domain
        return fresh

    def _fresh(self, *rest: Any) -> Self:
        return type(self)(self.space, self.history, self.direction, *rest)

    @property
    def best(self) -> BestTrial | None:
        """The best configuration told so far that meets the constraints and all limits; None before the first one."""
        top = max(self._counting(), key=lambda t: t.y, default=None)
        return None if top is None else BestTrial(top.params, self._sign * top.y)

    def _counting(self) -> list[Trial]:
        """Those told that have a value and meet the constraints and all limits."""
        told = [t for t in self._trials[self._n_old :] if not math.isnan(t.y) and self._measured.met(t)]
        return [t for t in told if self.space.allows(t.params)]

    @cached_property
    def past(self) -> Past | None:
        """What the method learned from the old runs, at its first use. None when there are none, when the method does
        not look at them, or when nothing could be learned."""
        self._measured.learn()
        return self._known.learn()

    @property
    def net(self) -> FeatureNet | None:
        """The past of a method that learned it as a net."""
        return self.past if isinstance(self.past, FeatureNet) else None

    @cached_property
    def _domain(self) -> Domain:
        parts = featuriser(self.space, self.past, self.beliefs, self._measured)
        return domain_of(self.space, parts, self._listed)

    @cached_property
    def _shown(self) -> Shown:
        return Shown(self._domain, self._known, self._measured, self._sign, self.bounds)

    def view(self) -> View:
        """What the recipe sees for its next choice. It stays as it is, whatever is told later."""
        return self._view(self._finished())

    def _finished(self) -> Trials:
        if self._told is None or self._told[0] != len(self._trials):
            warps, apart = self._known.warps, self.recipe.models_failures
            self._told = len(self._trials), Trials.of(self._trials, self._n_old, self.space.d, warps, apart)
        return self._told[1]

    def _view(self, trials: Trials) -> View:
        pending = self._pending.points
        return View(
            space=self.space,
            domain=self._domain,
            past=self.past,
            u=trials.u,
            z=trials.z,
            failed=trials.failed,
            old=trials.old,
            pending=np.array(pending).reshape(len(pending), self.space.d),
            t=len(self._trials) - self._n_old + len(pending) + 1,
            horizon=self.n_trials,
            seed=self.seed,
            fit=partial(self._fits.gp, self._domain.featurise, trials),
            earlier=lambda n: (trials.first(n).u, trials.first(n).z),
            memory=self._memory,
            beliefs=self.beliefs,
            unknown=np.setdiff1d(np.arange(len(trials)), trials.known(self.recipe.most_trials)),
            warp=trials.warp,
            limits=self._measured.seen(self._trials[self._n_old :], trials.rows),
        )

    def _quantity(self, about: Named) -> Optimizer:
        """The model of what is measured beside the value: told its values, never asked."""
        history = old_runs_of(self.history, about)
        return Optimizer(self.space, history, about.direction, method=self.recipe, seed=self.seed, cache=self.cache)

    def _finish(self, suggestion: Suggestion | Mapping[str, Any], y: float, also: Mapping[str, float]) -> None:
        if isinstance(suggestion, Suggestion):
            # By number and parameters: a copy that travelled between processes is as good as the original.
            u = self._pending.take(suggestion.number, suggestion.params)
            if u is None:
                raise checks.not_pending(suggestion, self.suggestions)
            self._trials.append(Trial(u, suggestion.params, y, also))
            return
        u = self.space.encode(suggestion)
        self._pending.remove(u)
        self._trials.append(Trial(u, self.space.present(suggestion), y, also))
