"""What a method is (`Recipe`), what it is given (`View`) and what it returns (`Choice`).

Notation
    u       (n, d) finished trials, then z (n,) their standardised values, larger is better. Failures are among them
            with the worst z, or, for a method that models them, apart from them (`failed`)
    t, T    round (1, 2, ...) and budget, T = None when unknown
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, Literal, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from jumbo_bo.data.history import History
from jumbo_bo.data.warp import Warp
from jumbo_bo.learning.past import Past
from jumbo_bo.methods.limits import Limits
from jumbo_bo.models.gp import GP, Blocks, Kernel, hallucinate
from jumbo_bo.search.acquisition import (
    Predict,
    Score,
    anytime_beta,
    noisy,
    paper_beta,
    theory_beta,
    theory_beta_continuous,
    ucb,
)
from jumbo_bo.search.argmax import Best, Domain, Finite, sobol
from jumbo_bo.space.beliefs import Beliefs
from jumbo_bo.space.space import Space

Array = npt.NDArray[np.float64]
Made = TypeVar("Made")
Weighted = Sequence[tuple[float, GP]]  # GPs of the same trials; the weights sum to one
Chance = Callable[[Array], Array]  # x (m, D) -> probability of success (m,)
Schedule = Literal["paper", "anytime", "theory"]

UNSCALED = Warp(0, 0.0, 1.0)
FADE = 3.0  # trials: the power of a belief before the second one is this
RESTART = 10  # every so many trials a model is searched from scratch, in between from the last optimum
APART = 64  # points that each of the first ones of a space with constraints is chosen from
FOLLOW_UP = 10  # iterations of a fit in between: one trial moves the optimum little


def from_scratch(n: int) -> bool:
    """Whether what follows the trials is searched anew after n of them."""
    return n % RESTART == 0


class Fitter(Protocol):
    def __call__(self, kernel: Kernel, start: Array | None = None, adam: bool = False) -> GP: ...


@dataclass(frozen=True)
class View:
    """All a recipe may look at. Recipes are pure: the same view gives the same choice."""

    space: Space
    domain: Domain
    past: Any  # what the recipe's `learn` returned; None without old runs, or when nothing could be learned
    u: Array
    z: Array
    failed: Array  # (f, d) trials without a value, of a method that models them
    old: int  # the first so many trials are old data of the target
    pending: Array  # (p, d) proposed, not finished
    t: int
    horizon: int | None
    seed: int
    fit: Fitter  # fits a GP to the finished trials; warm-started and cached by kernel
    earlier: Callable[[int], tuple[Array, Array]]  # n -> u (n, d), z (n,), as they were after n trials
    memory: dict[Hashable, Any]  # of `kept`
    unknown: npt.NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, np.intp))  # rows of u that `fit` left out
    warp: Warp = UNSCALED  # of the values to z
    limits: Limits | None = None  # on quantities that are measured with every trial
    beliefs: Beliefs | None = None  # of the user; the block 'belief' has their logarithm

    @property
    def rng(self) -> np.random.Generator:
        """The generator of this suggestion. Each call starts it anew, so the order of use does not matter."""
        return np.random.default_rng([self.seed, self.t])

    def before(self, pending: int) -> View:
        """As it was when so many trials were pending, in the order they were proposed."""
        return replace(self, pending=self.pending[:pending], t=self.t - len(self.pending) + pending)

    @property
    def taken(self) -> Array:
        return np.vstack([self.u, self.failed, self.pending])

    @property
    def hints(self) -> Array:
        """The best finished trials, where a local search may start."""
        return self.u[np.argsort(-self.z, kind="stable")[:5]]

    def rivals(self, u: Array) -> Array:  # (k, d) -> (l, d)
        """Those of the points that meet the constraints, which an improvement is measured from; all when none does."""
        if not self.space.constraints:
            return u
        kept: Array = u[self.space.allowed(u)]
        return kept if len(kept) else u

    @property
    def credence(self) -> Array:  # -> (b,)
        """The power of each belief: it fades as trials come in, at once when the best of them contradicts it."""
        if self.beliefs is None:
            return np.zeros(0)
        best = self.beliefs.log_pi(self.hints[:1])
        return FADE / self.t * (np.exp(best[0]) if len(best) else np.ones(best.shape[1]))

    def weighed(self, score: Score) -> Score:
        """A score on a log scale, or in standard deviations, with what the user believes."""
        if self.beliefs is None:
            return score
        power = self.credence
        return lambda blocks: score(blocks) + blocks["belief"] @ power

    def width(self, block: str) -> int:
        return int(self.domain.featurise(self.u[:0])[block].shape[1])

    def kept(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What `make` returned when it was first asked for this key. It may depend on the old runs, the seed and, if
        their number is in the key, on the first trials: then a resumed study makes the same again."""
        if key not in self.memory:
            self.memory[key] = make()
        made: Made = self.memory[key]
        return made

    def latest(self, name: str, key: Hashable, make: Callable[[], Made]) -> Made:
        """`kept` for one key at a time: that of the last call."""
        if self.memory.get((name,), (None,))[0] != key:
            self.memory[name,] = key, make()
        made: Made = self.memory[name,][1]
        return made

    def while_pending_grows(self, name: str, make: Callable[[], Made]) -> Made:
        """What `make` returned, as long as no trial is finished and pending ones only join."""
        n, pending, made = self.memory.get((name,), (None, None, None))
        here = len(self.u), len(self.failed)
        if n != here or not np.array_equal(self.pending[: len(pending)], pending):
            made = make()
        self.memory[name,] = here, self.pending, made
        kept: Made = made
        return kept

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
        theta = self.past.theta.get(name) if self.past else None
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
class Surrogate:
    """A fitted model, on the scale of z."""

    predict: Predict  # of the function
    observed: Predict  # of what a trial would show, noise included
    gps: Weighted = ()  # a model that is an average of GPs: its mean splits into what old runs and new trials say


def gp_surrogate(gp: GP) -> Surrogate:
    return Surrogate(gp.predict, noisy(gp.predict, gp.noise), ((1.0, gp),))


@dataclass(frozen=True)
class Choice:
    best: Best
    surrogate: Surrogate | None = None  # the model whose prediction is shown
    beta: float | None = None
    inside_gate: bool | None = None
    note: str = ""  # why, where the split into old and new does not tell
    aside: bool = False  # there are old runs, and the model leaves them out
    success: float | None = None  # probability that the trial has a value; None: nothing ever failed


class Recipe:
    """A method is a frozen dataclass that derives from this; its fields are its options. What follows is what a method
    has that is blind to old runs, needs no extra and has no model."""

    old_scale: ClassVar[bool] = False  # z is scaled with the help of the old tasks, not by the new values alone
    models_failures: ClassVar[bool] = False  # they are not values for it, see `View.failed`
    keeps_limits: ClassVar[bool] = False  # it searches where `View.limits` are met
    weighs_beliefs: ClassVar[bool] = False  # what the user believes counts, see `View.weighed`
    most_trials: ClassVar[int | None] = None  # that a GP it fits is conditioned on, see `View.unknown`; None: all

    @property
    def needs(self) -> tuple[str, ...]:
        """Modules of extras."""
        return ()

    @property
    def learns(self) -> type[Past] | None:
        """What `learn` returns; None: it does not look at old runs."""
        return None

    def check(self, history: History) -> None:
        """Refuses options that make no sense, and old runs, possibly none, that it cannot use."""

    @property
    def learning(self) -> Any:
        """All that `learn` depends on beside its arguments, as JSON can write it: methods that learn the same share it.
        To be on the safe side, all options."""
        return asdict(self)  # type: ignore[call-overload]

    def learn(self, history: History, seed: int) -> Past:
        """Once, before the first trial, from at least one old task."""
        raise NotImplementedError

    def surrogate(self, view: View) -> Surrogate | None:
        """The model of the finished and pending trials."""
        return None

    def success(self, view: View) -> Chance | None:
        """The model of failures. None when it has no such model, or nothing ever failed."""
        return None

    def __call__(self, view: View) -> Choice:
        raise NotImplementedError


def most_promising(view: View, surrogate: Surrogate, beta: float, note: str = "", score: Score | None = None) -> Choice:
    """The free point with the largest upper confidence bound, or with the largest of another score."""
    weighed = view.weighed(score or ucb(surrogate.predict, beta))
    best = view.domain.argmax(weighed, view.rng, view.hints, view.taken)
    return Choice(best, surrogate, beta, note=note)


def space_filling(view: View, n: int) -> Choice | None:
    """The next of `n` initial points, spread by one Sobol' sequence per study; None when they are done."""
    k = len(view.taken)
    return spread(view, k, n) if k < n else None


def spread(view: View, k: int, n: int = 1) -> Choice:
    """Point k of n that are spread over the space."""
    rng = np.random.default_rng(view.seed)
    if view.space.constraints:
        point = well_apart(view.space, max(n, k + 1), rng)[k]
    else:
        point = sobol(view.space.d, 1 << n.bit_length(), rng)[k]
    if view.beliefs is not None and k == 0:  # the others tell whether it is right
        point = view.beliefs.placed(point)
    return Choice(closest(view, point), note=f"Initial point {k + 1} of {n}, spread evenly over the space")


def well_apart(space: Space, n: int, rng: np.random.Generator) -> Array:  # -> (n, d)
    """The first in the middle of what may be tried, each further one far from those before it."""
    u = space.sample(rng, APART * n)
    x = space.transform(u)
    chosen = [int(np.sum((x - x.mean(axis=0)) ** 2, axis=1).argmin())]
    apart = np.full(len(u), np.inf)
    while len(chosen) < n:
        apart = np.minimum(apart, np.sum((x - x[chosen[-1]]) ** 2, axis=1))
        chosen.append(int(apart.argmax()))
    return u[chosen]


def closest(view: View, u: Array) -> Best:  # (d,) ->
    """The free configuration closest to a point: that point itself unless it is taken or not listed."""
    target = view.space.transform(u[None])

    def nearness(blocks: Blocks) -> Array:
        return np.asarray(-np.sum((blocks["x"] - target) ** 2, axis=1))

    if isinstance(view.domain, Finite):
        return view.domain.argmax(nearness, view.rng, view.hints, view.taken)
    here = view.space.snap(u[None])
    if len(view.taken) and np.abs(view.taken - here).max(axis=1).min() < 1e-9:
        return view.domain.random(view.rng, view.taken)
    return Best(here[0], 0.0)
