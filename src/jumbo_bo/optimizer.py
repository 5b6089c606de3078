"""Optimizer: ask for a configuration, tell its value, repeat.

Everything it suggests is a function of its arguments and of what it was told, in that order: a new process that is
told the same trials suggests the same next one, to the bit on the same kind of machine with the same libraries.
"""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController

from jumbo_bo.data.history import History
from jumbo_bo.data.warp import Warp
from jumbo_bo.explain import (
    Explanation,
    Prediction,
    Witnesses,
    interval_reach,
    nearest,
    parts,
    predict,
    trust,
    why,
    witnesses,
)
from jumbo_bo.learning.features import FeatureNet
from jumbo_bo.learning.nets import learned
from jumbo_bo.methods import METHODS, Choice, Learner, Recipe, View
from jumbo_bo.methods.base import Choosy, Past
from jumbo_bo.models import gp as gps
from jumbo_bo.paths import at_home
from jumbo_bo.search.argmax import Domain, domain_of, encode_candidates, listed, sobol
from jumbo_bo.space.space import Params, Space
from jumbo_bo.trials import Fits, Trial, Trials, old_trials

Array = npt.NDArray[np.float64]
Direction = Literal["minimize", "maximize"]

FAILED = math.nan


@dataclass(frozen=True)
class Suggestion:
    number: int  # 0, 1, ... within the study
    params: Params
    explanation: Explanation

    @property
    def why(self) -> str:
        return self.explanation.why

    @property
    def predicted(self) -> Prediction:
        """In the user's units."""
        return self.explanation.predicted


class BestTrial(NamedTuple):
    params: Params
    value: float


class Optimizer:
    """Suggests configurations of `space` and learns from their values.

    history     old runs of related problems, or a net already pretrained on them
    n_trials    the budget, if known: exploration fades towards its end
    method      a name from METHODS, or a recipe such as Jumbo(threshold=0.05)
    candidates  configurations to choose from, instead of the whole space
    cache       folder where pretrained nets are kept and shared between processes; None: learned here, not kept
    """

    def __init__(
        self,
        space: Space,
        history: History | FeatureNet | None = None,
        direction: Direction = "minimize",
        n_trials: int | None = None,
        method: str | Recipe = "jumbo-joint",
        seed: int = 0,
        candidates: Sequence[Params] | None = None,
        cache: str | Path | None = None,
    ) -> None:
        if direction not in ("minimize", "maximize"):
            raise ValueError(f"direction is {direction!r}, expected 'minimize' or 'maximize'")
        if n_trials is not None and n_trials < 1:
            raise ValueError(f"n_trials is {n_trials}, expected at least 1, or None when the budget is unknown")
        if isinstance(method, str) and method not in METHODS:
            raise ValueError(f"method is {method!r}, expected one of {', '.join(METHODS)}")
        made_for = (
            history.space_fingerprint
            if isinstance(history, FeatureNet)
            else getattr(history, "space", space).fingerprint
        )
        if made_for != space.fingerprint:
            raise ValueError("history was made for another space; read the old runs again with this one")
        self.space = space
        self.history = history
        self.direction = direction
        self.n_trials = n_trials
        self.recipe: Recipe = METHODS[method] if isinstance(method, str) else method
        if isinstance(self.recipe, Learner) and isinstance(history, FeatureNet):
            name = method if isinstance(method, str) else type(method).__name__
            raise ValueError(f"{name} learns from the old runs themselves, not from a net; pass their History")
        if isinstance(self.recipe, Choosy):
            self.recipe.check(history if isinstance(history, History) else History.empty(space))
        self.seed = seed
        self.candidates = [dict(c) for c in listed(candidates)] if candidates is not None else None
        self.cache = None if cache is None else Path(at_home(cache))
        self._sign = -1.0 if direction == "minimize" else 1.0
        self._listed = None if self.candidates is None else encode_candidates(space, self.candidates)
        self._trials = old_trials(space, history.target if isinstance(history, History) else None, seed)
        self._n_old = len(self._trials)
        self._pending: dict[int, tuple[Suggestion | None, Array]] = {}  # None: another process tries it
        self._fits = Fits()
        self._memory: dict[Hashable, Any] = {}
        self.suggestions: list[Suggestion] = []

    def ask(self, running: Sequence[Mapping[str, Any]] | None = None) -> Suggestion:
        """The next configuration to try. It stays pending until told or failed.

        `running` are the configurations being tried right now, where that is known better than from asks and tells,
        as in a storage that several processes share.
        """
        if running is not None:
            self._pending = {~i: (None, self.space.encode(params)) for i, params in enumerate(running)}
        with _one_thread():
            trials = self._finished()
            view = self._view(trials)
            choice = self.recipe(view)
            suggestion = self._suggestion(choice, view, trials.warp)
        self.suggestions.append(suggestion)
        # Encoded from what the user sees, so that telling by parameters in another process is the same to the bit.
        self._pending[suggestion.number] = (suggestion, self.space.encode(suggestion.params))
        return suggestion

    def ask_many(self, n: int) -> list[Suggestion]:
        """n configurations to try at the same time; each knows of the ones before it."""
        if n < 1:
            raise ValueError(f"n is {n}, expected at least 1")
        return [self.ask() for _ in range(n)]

    def tell(self, suggestion: Suggestion | Mapping[str, Any], value: float) -> None:
        """The value of a suggestion, or of any configuration of the space. NaN and infinities count as failures."""
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise TypeError(f"value is {value!r}, expected a number; use fail() for a trial without one") from None
        self._finish(suggestion, self._sign * number if math.isfinite(number) else FAILED)

    def fail(self, suggestion: Suggestion | Mapping[str, Any]) -> None:
        """The configuration could not be evaluated. It counts as bad as the worst seen and is not proposed again."""
        self._finish(suggestion, FAILED)

    @property
    def told(self) -> list[tuple[Params, float]]:
        """Every configuration told, in order, with its value in the user's units; NaN for a failed one."""
        return [(t.params, self._sign * t.y) for t in self._trials[self._n_old :]]

    def restarted(self) -> Optimizer:
        """The same optimizer before it was told anything; what was learned from the old runs is shared, not redone."""
        fresh = copy.copy(self)
        fresh._trials, fresh._pending = self._trials[: self._n_old], {}
        fresh._fits, fresh._memory, fresh.suggestions = Fits(), {}, []
        return fresh

    @property
    def best(self) -> BestTrial | None:
        """The best configuration told so far, None before the first value."""
        told = [t for t in self._trials[self._n_old :] if not math.isnan(t.y)]
        if not told:
            return None
        top = max(told, key=lambda t: t.y)
        return BestTrial(top.params, self._sign * top.y)

    @cached_property
    def net(self) -> FeatureNet | None:
        """The net of the old runs, pretrained at its first use. None when there is nothing to learn from or nothing
        could be learned, or when the method does not look at old runs."""
        if self.history is None or self.recipe.preset is None:
            return None
        if isinstance(self.history, FeatureNet):
            return self.history
        if not self.history.tasks:
            return None
        net = learned(self.history, self.recipe.preset, self.seed, self.cache, progress=sys.stderr.isatty())
        return None if net.empty else net

    @cached_property
    def past(self) -> Past | None:
        """What a method that looks at the rows of the old runs has learned from them, at its first use."""
        if not isinstance(self.recipe, Learner) or not isinstance(self.history, History) or not self.history.tasks:
            return None
        return self.recipe.learn(self.history, self.seed)

    @cached_property
    def _domain(self) -> Domain:
        learned = self.net or self.past

        def featurise(u: Array) -> gps.Blocks:
            x = self.space.transform(u)
            blocks = {"1": np.ones((len(u), 1)), "x": x}
            return blocks if learned is None else blocks | dict(learned.blocks(x))

        return domain_of(self.space, featurise, self._listed)

    def view(self) -> View:
        """What the recipe sees for its next choice. It stays as it is, whatever is told later."""
        return self._view(self._finished())

    def _finished(self) -> Trials:
        return Trials(tuple(self._trials), self._n_old, self.space.d, self._old_warps)

    def _view(self, trials: Trials) -> View:
        pending = [u for _, u in self._pending.values()]
        return View(
            space=self.space,
            domain=self._domain,
            net=self.net,
            u=trials.u,
            z=trials.z,
            old=trials.old,
            pending=np.array(pending).reshape(len(pending), self.space.d),
            t=len(trials) - trials.old + len(pending) + 1,
            horizon=self.n_trials,
            seed=self.seed,
            fit=partial(self._fits.gp, self._domain.featurise, trials),
            past=self.past,
            earlier=lambda n: (trials.first(n).u, trials.first(n).z),
            memory=self._memory,
        )

    def _suggestion(self, choice: Choice, view: View, warp: Warp) -> Suggestion:
        best = choice.best
        listed = self.candidates is not None and best.index is not None
        params = dict(self.candidates[best.index]) if listed else self.space.decode(best.u)  # type: ignore[index]
        reasons = parts(choice, self._domain.featurise(best.u[None]))
        prediction = predict(reasons, warp, self._sign, interval_reach(len(view.z), bool(self._old_warps)))
        explanation = Explanation(
            why=why(reasons, choice, view, prediction),
            predicted=prediction,
            old=reasons.old if reasons else math.nan,
            new=reasons.new if reasons else math.nan,
            trust=0.0 if choice.aside else trust(choice.gp, self._reference),
            beta=choice.beta,
            inside_gate=choice.inside_gate,
            nearest=nearest(self._witnesses, best.u),
        )
        return Suggestion(len(self.suggestions), params, explanation)

    @cached_property
    def _reference(self) -> gps.Blocks:
        """Points spread over the space, on which trust is measured."""
        return self._domain.featurise(self.space.snap(sobol(self.space.d, 256, np.random.default_rng(0))))

    @cached_property
    def _witnesses(self) -> Witnesses | None:
        listens = self.recipe.preset is not None or isinstance(self.recipe, Learner)
        return witnesses(self.history) if listens and isinstance(self.history, History) else None

    def _finish(self, suggestion: Suggestion | Mapping[str, Any], y: float) -> None:
        if isinstance(suggestion, Suggestion):
            # By number and parameters: a copy that travelled between processes is as good as the original.
            pending = self._pending.get(suggestion.number)
            if pending is None or pending[0] is None or pending[0].params != suggestion.params:
                known = any((s.number, s.params) == (suggestion.number, suggestion.params) for s in self.suggestions)
                problem = "was already told or failed" if known else "is not from this optimizer"
                raise ValueError(f"suggestion {suggestion.number} {problem}; to add a repeat, tell its .params")
            _, u = self._pending.pop(suggestion.number)
            self._trials.append(Trial(u, suggestion.params, y))
            return
        u = self.space.encode(suggestion)
        for number, (_, other) in list(self._pending.items()):
            if np.allclose(u, other, rtol=0.0, atol=1e-9):
                del self._pending[number]
                break
        self._trials.append(Trial(u, dict(suggestion), y))

    @cached_property
    def _old_warps(self) -> tuple[Warp, ...]:
        """How the old tasks' values are distributed."""
        if not self.recipe.old_scale:
            return ()
        if isinstance(self.history, FeatureNet):
            return self.history.warps
        return tuple(t.warp for t in self.history.tasks) if self.history else ()


_controller: list[ThreadpoolController] = []


def _one_thread() -> Any:
    """Small matrices are many times slower on several BLAS threads."""
    if not _controller:
        _controller.append(ThreadpoolController())
    return _controller[0].limit(limits=1, user_api="blas")
