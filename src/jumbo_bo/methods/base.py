"""What every recipe is given (`View`) and what it returns (`Choice`).

Notation
    u       (n, d) finished trials, then z (n,) their standardised values, larger is better; failures hold the worst z
    t, T    round (1, 2, ...) and budget, T = None when unknown
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from jumbo_bo.data.history import History
from jumbo_bo.learning.features import FeatureNet
from jumbo_bo.models.gp import GP, Blocks, Kernel, Normal, hallucinate
from jumbo_bo.search.acquisition import anytime_beta, paper_beta, theory_beta, theory_beta_continuous
from jumbo_bo.search.argmax import Best, Domain, Finite, sobol
from jumbo_bo.space.space import Space

Array = npt.NDArray[np.float64]
Made = TypeVar("Made")
Schedule = Literal["paper", "anytime", "theory"]

RESTART = 10  # every so many trials a model is searched from scratch, in between from the last optimum
FOLLOW_UP = 10  # iterations of a fit in between: one trial moves the optimum little


def from_scratch(n: int) -> bool:
    """Whether what follows the trials is searched anew after n of them."""
    return n % RESTART == 0


class Fitter(Protocol):
    def __call__(self, kernel: Kernel, start: Array | None = None, adam: bool = False) -> GP: ...


class Past(Protocol):
    """What a recipe has learned from the rows of the old runs."""

    def blocks(self, t: Array) -> Mapping[str, Array]: ...  # T(u) (m, D) -> name -> (m, .), computed once per point


@dataclass(frozen=True)
class View:
    """All a recipe may look at. Recipes are pure: the same view gives the same choice."""

    space: Space
    domain: Domain
    net: FeatureNet | None
    u: Array
    z: Array
    old: int  # the first so many trials are old data of the target
    pending: Array  # (p, d) proposed, not finished
    t: int
    horizon: int | None
    seed: int
    fit: Fitter  # fits a GP to the finished trials; warm-started and cached by kernel
    past: Any  # what the recipe's `learn` returned; None without old runs
    earlier: Callable[[int], tuple[Array, Array]]  # n -> u (n, d), z (n,), as they were after n trials
    memory: dict[Hashable, Any]  # of `kept`

    @property
    def rng(self) -> np.random.Generator:
        """The generator of this suggestion. Each call starts it anew, so the order of use does not matter."""
        return np.random.default_rng([self.seed, self.t])

    @property
    def taken(self) -> Array:
        return np.vstack([self.u, self.pending])

    @property
    def hints(self) -> Array:
        """The best finished trials, where a local search may start."""
        return self.u[np.argsort(-self.z, kind="stable")[:5]]

    def width(self, block: str) -> int:
        return int(self.domain.featurise(self.u[:0])[block].shape[1])

    def kept(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What `make` returned when it was first asked for this key. It may depend on the old runs, the seed and, if
        their number is in the key, on the first trials: then a resumed study makes the same again."""
        if key not in self.memory:
            self.memory[key] = make()
        made: Made = self.memory[key]
        return made

    def chain(self, name: str, step: Callable[[int, Made | None], Made]) -> Made:
        """The state after all n finished trials: step(n, the state after n - 1). Every RESTART trials it starts anew
        (None), so a resumed study has at most RESTART - 1 steps to repeat."""

        def at(n: int) -> Made:
            made = self.kept((name, n), lambda: step(n, None if from_scratch(n - self.old) else at(n - 1)))
            self.memory.pop((name, n - 1), None)  # nobody goes back
            return made

        return at(len(self.u))

    def model(self, kernel: Kernel, start: Array | None = None, adam: bool = False) -> GP:
        """The GP of the finished trials, with pending ones hallucinated."""
        return hallucinate(self.fit(kernel, start, adam), self.domain.featurise(self.pending))

    def pretrained(self, name: str, kernel: Kernel) -> Array | None:
        """Where Eq. 1 left the hyperparameters of the 'warm' or 'cold' GP, if there was old data of the target.
        Eq. 1 knows one length scale; a kernel with several starts with all of them there."""
        theta = self.net.theta.get(name) if self.net else None
        if theta is None:
            return None
        (term,) = kernel.terms
        return np.concatenate([theta[:1], np.full(term.n_groups, theta[1]), theta[2:]])

    def beta(self, schedule: Schedule, start: float, rate: float = 1.0) -> float:
        if schedule == "theory":
            n = len(self.domain.u) if isinstance(self.domain, Finite) else None
            return (theory_beta(n) if n else theory_beta_continuous(self.space.d))(self.t, self.horizon)
        beta = anytime_beta(start) if schedule == "anytime" else paper_beta(start, rate)
        return beta(self.t, self.horizon)


@dataclass(frozen=True)
class Choice:
    best: Best
    gp: GP | None = None  # the model whose prediction is shown
    beta: float | None = None
    inside_gate: bool | None = None
    normal: Normal | None = None  # prediction at the point, (1,) each, of a model that is no GP of ours
    noise: float = 0.0  # variance of one observation around `normal`
    note: str = ""  # why, when no GP of ours was asked
    aside: bool = False  # there are old runs, and the model leaves them out


class Recipe(Protocol):
    @property
    def preset(self) -> str | None: ...  # how the old runs are learned (pretrain.PRESETS); None: not at all
    @property
    def old_scale(self) -> bool: ...  # z is scaled with the help of the old tasks, not by the new values alone
    def __call__(self, view: View) -> Choice: ...


@runtime_checkable
class Choosy(Protocol):
    """A recipe that does not work everywhere."""

    def check(self, history: History) -> None: ...  # refuses old runs, possibly none, that it cannot use


@runtime_checkable
class Learner(Choosy, Protocol):
    """A recipe that learns from the rows of the old runs themselves instead of from the pretrained net."""

    def learn(self, history: History, seed: int) -> Past: ...  # once, before the first trial; at least one old task


def space_filling(view: View, n: int) -> Choice | None:
    """The next of `n` initial points, spread by one Sobol' sequence per study; None when they are done."""
    k = len(view.u) + len(view.pending)
    return spread(view, k, n) if k < n else None


def spread(view: View, k: int, n: int = 1) -> Choice:
    """Point k of n that are spread over the space."""
    point = sobol(view.space.d, 1 << n.bit_length(), np.random.default_rng(view.seed))[k]
    return Choice(closest(view, point), note=f"Initial point {k + 1} of {n}, spread evenly over the space")


def closest(view: View, u: Array) -> Best:  # (d,) ->
    """The free configuration closest to a point: that point itself unless it is taken or not listed."""
    target = view.space.transform(u[None])

    def nearness(blocks: Blocks) -> Array:
        distance: Array = np.sum((blocks["x"] - target) ** 2, axis=1)
        return -distance

    if isinstance(view.domain, Finite):
        return view.domain.argmax(nearness, view.rng, view.hints, view.taken)
    here = view.space.snap(u[None])
    if len(view.taken) and np.abs(view.taken - here).max(axis=1).min() < 1e-9:
        return view.domain.random(view.rng, view.taken)
    return Best(here[0], 0.0)
