"""The default: two models of the new problem, averaged by how well they predict its trials.

    population  the new problem is one more of the kind of the old ones (models/population.py)
    alone       it is like nothing seen before

Notation
    w       (2,)    weight of each model: its prior weight times p(y | model), the density of the trials in the order
                    they came, each predicted from those before it; hyperparameters are those that fit best
    EI      expected improvement over the best that the average model expects of the trials so far

Nothing is switched on or off: what is suggested, predicted and explained is that of the average. Old runs that mislead
predict badly and lose their weight; those that help keep it. The improvement that is expected is the average of both
models', so a region that one of them rules out is still searched when the other expects much of it.

A configuration that may fail counts for what it is worth on average: its improvement times the probability that it has
a value (models/success.py). A failure says nothing of values, so the two models above do not see it.

Before the first trial only the old runs know anything. A trial is then chosen by its expected improvement over the
best average of the old tasks: among configurations about equally good on average the one on which they disagree, as it
may be far better on the new one. The level of the values is not known yet and the same everywhere: it is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from jumbo_bo.data.history import History
from jumbo_bo.errors import InputError
from jumbo_bo.learning.priors import level_variance
from jumbo_bo.learning.training import Pretraining
from jumbo_bo.methods.base import (
    Chance,
    Choice,
    Surrogate,
    View,
    Weighted,
    from_scratch,
    gp_surrogate,
    space_filling,
)
from jumbo_bo.methods.nets import NetRecipe
from jumbo_bo.methods.shortlist import Shortlist
from jumbo_bo.models.gp import GP, Blocks, Kernel, Normal, build, expected, extend, hallucinate, optimistic, posterior
from jumbo_bo.models.kernel import term_covariance
from jumbo_bo.models.population import alone, informed, population
from jumbo_bo.models.success import MOST_ROWS, TYPICAL, Success, fit
from jumbo_bo.search.acquisition import Score, log_expected_improvement
from jumbo_bo.search.argmax import Best, Cube, Finite
from jumbo_bo.search.evolution import Pool

Array = npt.NDArray[np.float64]
Said = Callable[[GP, Blocks], Normal]

NEGLIGIBLE = 1e-4  # weight of a model that is not asked, as it would change nothing
NEARBY = 200  # of the trials that the models left out, those that they are told of where the search would go
ROUNDS = 2  # of telling them and searching again; after one, a case of nine still went where trials spoke against it
SAME = 0.01  # of a parameter's range: where a search goes as close as this to the last one, it is done
BOUNDING = 64  # trials that bound the improvement in a table from above
FURTHER = 24  # points that a search hands on to the one with a pending trial more
HOPELESS = 20.0  # log of a ratio of improvements that no difference in the chance of success makes up for


@dataclass(frozen=True)
class JumboMixture(NetRecipe):
    prior: float = 2 / 3  # weight of the old runs before the first trial
    initial: int = 3  # space-filling points when there are no old runs
    preset: str | Pretraining = "default"

    old_scale = True
    models_failures = True
    most_trials = 2_000  # a suggestion then takes about half a second

    def check(self, history: History) -> None:
        if not 0 < self.prior < 1:
            raise InputError(
                f"prior is {self.prior!r}, expected a weight between 0 and 1; without old runs, pass no history"
            )

    def __call__(self, view: View) -> Choice:
        if view.past is None and (first := space_filling(view, self.initial)):
            return first
        chance = self.success(view)
        if isinstance(view.domain, Cube) and len(view.unknown) == 0:
            return _of_shortlist(view, view.domain, self.models(view.before(0)), chance)
        if len(view.u) + len(view.pending) == 0:
            return _best(view, *_first(view), chance)
        gps, left = self.models(view), view.unknown
        choice = _choice(view, gps, chance)
        for _ in range(ROUNDS if len(left) else 0):  # what the models left out near there may speak against it
            before, rows = choice.best.u, _nearby(view, gps[0][1], choice.best.u, left)
            new, z, left = view.domain.featurise(view.u[rows]), view.z[rows], np.setdiff1d(left, rows)
            gps = [(w, extend(gp, new, np.concatenate([gp.y, z]))) for w, gp in gps]
            choice = _choice(view, gps, chance)
            if np.abs(choice.best.u - before).max() < SAME:
                break
        return choice

    def surrogate(self, view: View) -> Surrogate:
        return mixture(self.models(view))

    def success(self, view: View) -> Chance | None:
        old = view.past.success if view.past else None
        if old is None and len(view.failed) == 0:
            return None

        def before(x: Array) -> Array:
            typical = np.full(len(x), TYPICAL)
            return typical if old is None else old.probability(x, typical)

        def after() -> Success:
            u = np.vstack([view.u[-MOST_ROWS:], view.failed[-MOST_ROWS:]])
            x = view.space.transform(u)
            return fit(x, np.arange(len(u)) < min(len(view.u), MOST_ROWS), before(x), view.space.groups)

        n = len(view.u), len(view.failed)
        if sum(n) == 0:
            return before
        model = view.latest("success", n, after)
        return lambda x: model.probability(x, before(x))

    def models(self, view: View) -> Weighted:
        """Those that have a say, by weight; pending trials are hallucinated."""
        any_value = len(view.u) > 0
        cold = view.kept(("alone", any_value), lambda: _alone(view))
        if view.past is None:
            return [(1.0, view.model(cold))]
        known = view.kept(("population", any_value), lambda: _population(view))
        odds = math.log(self.prior) - math.log1p(-self.prior) + view.fit(known).log_likelihood
        w = 0.5 * (1.0 + math.tanh(0.5 * (odds - view.fit(cold).log_likelihood)))
        heard = [(weight, kernel) for weight, kernel in ((w, known), (1.0 - w, cold)) if weight > NEGLIGIBLE]
        return [(weight if len(heard) > 1 else 1.0, view.model(kernel)) for weight, kernel in heard]


def _alone(view: View) -> Kernel:
    if view.past is None:
        return alone(view.space)
    return _levelled(informed(alone(view.space), view.past.priors.get("alone")), view)


def _population(view: View) -> Kernel:
    kernel = population(view.space, view.width("dev"))
    return _levelled(informed(kernel, view.past.priors.get("population")), view)


def _levelled(kernel: Kernel, view: View) -> Kernel:
    """Before the first value, its level is as unsure as the old tasks tell: some kinds of task are all alike, others
    differ by factors of a thousand."""
    if len(view.u):
        return kernel
    level, *others = kernel.terms
    known = level.variance._replace(median=level_variance(view.past.warps))
    return replace(kernel, terms=(replace(level, variance=known), *others))


def _first(view: View) -> tuple[Score, Surrogate]:
    kernel = _alone(view) if view.past is None else _population(view)
    level, *others = kernel.terms
    blocks, theta = view.domain.featurise(view.u), kernel.priors[0]
    relative = build(replace(kernel, terms=tuple(others)), theta[level.n_params :], blocks, view.z)
    top = view.domain.maximum(lambda at: posterior(relative, at).mean, view.rng, view.hints)
    return improvement([(1.0, relative)], top), gp_surrogate(build(kernel, theta, blocks, view.z))


def _of_shortlist(view: View, cube: Cube, gps: Weighted, chance: Chance | None) -> Choice:
    """In a continuous space, from models without pending trials. There is one search until the next trial is finished:
    while trials are pending, the best points it has seen are scored again, and a short search starts from them. All of
    it depends on the trials, those pending and the seed alone, so a resumed study suggests the same."""
    before = view.before(0)

    def searched() -> tuple[Shortlist, Surrogate]:
        top = float(np.max(_expected(gps, cube.featurise(view.u)), initial=-np.inf))
        of_trials = improvement(gps, top, may_repeat=True), mixture(gps)
        score, surrogate = of_trials if len(view.u) else _first(before)
        return Shortlist(cube, cube.search(_feasible(score, chance), before.rng, before.hints), gps, top), surrogate

    found, surrogate = view.latest("shortlist", (len(view.u), len(view.failed)), searched)
    if len(view.pending) == 0:
        return _chosen(view, cube.best(found.pool, view.rng, view.taken), surrogate, chance)
    pool, told = _searched_again(view, found, chance)
    return _chosen(view, cube.best(pool, view.rng, view.taken), mixture(told), chance)


def _searched_again(view: View, found: Shortlist, chance: Chance | None) -> tuple[Pool, Weighted]:
    """With pending trials. A search also looks at what the one with a pending trial less has found, unless that is
    every few trials, so that a resumed study has few searches to repeat."""
    k, pending = len(view.pending), found.cube.featurise(view.pending)
    told = [(w, hallucinate(gp, pending)) for w, gp in found.gps]
    top = float(np.max(sum(w * gp.y[len(view.u) :] for w, gp in told), initial=found.top))
    again = _feasible(improvement(told, top, may_repeat=True, predict=found.joined), chance)
    score = _feasible(improvement(told, top, may_repeat=True), chance)

    def searched() -> Pool:
        if from_scratch(k - 1):
            return found.search(again, score, view.rng, view.u[:0])
        before, _ = _searched_again(view.before(k - 1), found, chance)
        return found.search(again, score, view.rng, before.latest(FURTHER))

    key = len(view.u), len(view.failed), view.pending.tobytes()
    return view.latest("searched again", key, searched), told


def _choice(view: View, gps: Weighted, chance: Chance | None) -> Choice:
    tried = np.vstack([view.u, view.pending])
    top = float(_expected(gps, view.domain.featurise(tried) if len(view.unknown) else gps[0][1].blocks).max())
    if not isinstance(view.domain, Finite):
        return _best(view, improvement(gps, top, may_repeat=True), mixture(gps), chance)
    bound = improvement(gps, top, predict=partial(optimistic, first=BOUNDING))
    return _best(view, improvement(gps, top), mixture(gps), chance, bound)


def _nearby(view: View, gp: GP, u: Array, left: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:  # (d,) -> rows
    """The trials most like this point among those that are left."""
    ((local, s),) = [(term, s) for term, s in gp.kernel.slices() if term.kind == "matern52"]
    x, here = view.space.transform(view.u[left]), view.space.transform(u[None])
    likeness = term_covariance(local, gp.theta[s], x, here)[:, 0]
    return left[np.argsort(-likeness, kind="stable")[:NEARBY]]


def _best(view: View, score: Score, surrogate: Surrogate, chance: Chance | None, bound: Score | None = None) -> Choice:
    """`bound` is nowhere below the score; it is for tables."""
    score, bound = _feasible(score, chance), bound and _feasible(bound, chance)
    search, where = view.domain, (view.rng, view.hints, view.taken)
    if bound and isinstance(search, Finite):
        best = search.argmax(score, *where, bounds=_bounds(view, search, bound))
    else:
        best = search.argmax(score, *where)
    return _chosen(view, best, surrogate, chance)


def _chosen(view: View, best: Best, surrogate: Surrogate, chance: Chance | None) -> Choice:
    likely = None if chance is None else float(chance(view.space.transform(best.u[None]))[0])
    return Choice(best, surrogate, success=likely)


def _bounds(view: View, table: Finite, bound: Score) -> Array:  # -> (N,)
    """Of a table's scores. A pending trial leaves expectations as they are and lowers doubt, so bounds stay valid, and
    are kept, until a trial is finished. Not where models are told of further trials in between."""

    if len(view.unknown):
        return bound(table.rough).astype(float)
    return view.while_pending_grows("bounds", lambda: bound(table.rough).astype(float))


def _feasible(score: Score, chance: Chance | None) -> Score:
    return score if chance is None else feasible(score, chance)


def feasible(score: Score, chance: Chance) -> Score:
    """log(improvement times probability of success). Where improvement is so small that not even certain success would
    make it the best, the probability is not computed."""

    def total(blocks: Blocks) -> Array:
        scores = np.array(score(blocks), dtype=float)
        close = scores > np.max(scores, initial=-np.inf) - HOPELESS
        scores[close] += np.log(chance(np.asarray(blocks["x"][close], dtype=float)))
        return scores

    return total


def improvement(gps: Weighted, best: float, may_repeat: bool = False, predict: Said = posterior) -> Score:
    """log sum_i w_i EI_i. Where a trial may be repeated, EI_i is multiplied by 1 - sqrt(s_i / (sd_i^2 + s_i)), s_i the
    noise variance (Huang et al., 'Global optimization of stochastic black-box systems via sequential kriging
    meta-models', 2006): a trial next to another one tells little, as noise would hide what it adds. If
    `predict` is `optimistic`, no less than that: improvement grows with the sd."""

    def part(w: float, gp: GP, blocks: Blocks) -> Array:
        mean, sd = predict(gp, blocks)
        told = np.log1p(-np.sqrt(gp.noise / (np.asarray(sd, dtype=float) ** 2 + gp.noise))) if may_repeat else 0.0
        return np.asarray(math.log(w) + log_expected_improvement(mean, sd, best) + told)

    return lambda blocks: np.asarray(np.logaddexp.reduce([part(w, gp, blocks) for w, gp in gps]))


def mixture(gps: Weighted) -> Surrogate:
    return Surrogate(partial(average, gps), partial(average, gps, noise=True), gps)


def _expected(gps: Weighted, blocks: Blocks) -> Array:  # (m, .) -> (m,)
    means = [expected(gp, blocks) for _, gp in gps]
    return np.asarray(np.array([weight for weight, _ in gps], dtype=means[0].dtype) @ np.array(means))


def average(gps: Weighted, blocks: Blocks, noise: bool = False) -> Normal:  # (m, .) -> mean (m,), sd (m,)
    """Mean and standard deviation of the mixture, of the function or of what a trial would show."""
    means, variances = [], []
    for _, gp in gps:
        mean, sd = posterior(gp, blocks)
        means.append(mean)
        variances.append(sd**2 + (gp.noise if noise else 0.0))
    w = np.array([weight for weight, _ in gps], dtype=means[0].dtype)
    middle = w @ np.array(means)
    return Normal(middle, np.sqrt(w @ (np.array(variances) + (np.array(means) - middle) ** 2)))
