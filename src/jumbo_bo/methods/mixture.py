"""The default: models of the new problem, averaged by how well they predict its trials.

    population  the new problem is one more of the kind of the old ones (models/population.py)
    one of them it is much like one of the old ones; which one, the trials tell (`one_of=True`)
    alone       it is like nothing seen before

Notation
    w       (2 or 3,) weight of each model: its prior weight times p(y | model), the density of the trials in the order
                    they came, each predicted from those before it; hyperparameters are those that fit best
    EI      expected improvement over the best that the average model expects of the trials so far

Nothing is switched on or off: what is suggested, predicted and explained is that of the average. Old runs that mislead
predict badly and lose their weight; those that help keep it. The improvement that is expected is the average of all
models', so a region that one of them rules out is still searched when another expects much of it.

A configuration that may fail counts for what it is worth on average: its improvement times the probability that it has
a value (models/success.py). A failure says nothing of values, so the models above do not see it. Where quantities have
limits, also times the probability that a trial meets them (methods/limits.py), and the best so far is one that did.

Before the first trial only the old runs know anything. A trial is then chosen by its expected improvement over the
best average of the old tasks: among configurations about equally good on average the one on which they disagree, as it
may be far better on the new one. The level of the values is not known yet and the same everywhere: it is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from jumbo_bo.data.history import History
from jumbo_bo.errors import InputError
from jumbo_bo.learning.priors import level_variance
from jumbo_bo.learning.training import Pretraining
from jumbo_bo.methods.averaging import improvement, mixture, modest, possible, to_beat, worthwhile
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
from jumbo_bo.models.alternatives import alternative, extended, families, probabilities, with_pending
from jumbo_bo.models.gp import GP, Blocks, Kernel, build, optimistic, posterior
from jumbo_bo.models.kernel import term_covariance
from jumbo_bo.models.population import alone, informed, one_of_them, population
from jumbo_bo.models.success import MOST_ROWS, TYPICAL, Success, fit
from jumbo_bo.search.acquisition import Score
from jumbo_bo.search.argmax import Best, Cube, Finite
from jumbo_bo.search.evolution import Pool

Array = npt.NDArray[np.float64]

NEGLIGIBLE = 1e-4  # weight of a model that is not asked, as it would change nothing
FAINT = 3e-3  # weight of a single old task that is not asked; others were not tried
NEARBY = 200  # of the trials that the models left out, those that they are told of where the search would go
ROUNDS = 2  # of telling them and searching again; after one, a case of nine still went where trials spoke against it
SAME = 0.01  # of a parameter's range: where a search goes as close as this to the last one, it is done
BOUNDING = 32  # trials that bound the improvement in a table from above; more cost more, fewer leave more to look at
FURTHER = 24  # points that a search hands on to the one with a pending trial more


@dataclass(frozen=True)
class JumboMixture(NetRecipe):
    prior: float = 2 / 3  # weight of the old runs before the first trial
    one_of: bool = False  # also the model 'one of them', which has half of that weight
    initial: int = 3  # space-filling points when there are no old runs
    preset: str | Pretraining = "default"

    old_scale = True
    models_failures = True
    keeps_limits = True
    weighs_beliefs = True
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
            return best_by(view, *_first(view), chance)
        gps, left = self.models(view), view.unknown
        choice = _choice(view, gps, chance)
        for _ in range(ROUNDS if len(left) else 0):  # what the models left out near there may speak against it
            before, rows = choice.best.u, _nearby(view, gps[0][1], choice.best.u, left)
            new, z, left = view.domain.featurise(view.u[rows]), view.z[rows], np.setdiff1d(left, rows)
            gps = _each(gps, partial(extended, new=new, y=z))
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
        kernels = self.kernels(view)
        if len(kernels) == 1:
            return [(1.0, view.model(kernels[0]))]
        prior = [*[self.prior / (len(kernels) - 1)] * (len(kernels) - 1), 1.0 - self.prior]
        log_w = np.log(prior) + [view.fit(kernel).log_likelihood for kernel in kernels]
        w = np.exp(log_w - np.logaddexp.reduce(log_w))
        pending = view.domain.featurise(view.pending)
        gps = [gp for weight, kernel in zip(w, kernels, strict=True) for gp in _heard(view, weight, kernel, pending)]
        total = sum(weight for weight, _ in gps)
        return [(weight / total, gp) for weight, gp in gps]

    def kernels(self, view: View) -> list[Kernel]:
        """Of all models; the last one knows no old runs."""
        any_value = len(view.u) > 0
        cold = view.kept(("alone", any_value), lambda: _alone(view))
        if view.past is None:
            return [cold]
        known = view.kept(("population", any_value), lambda: _population(view))
        chosen = self.one_of and any_value and len(view.past.tasks) > 1
        return [known, one_of_them(known), cold] if chosen else [known, cold]


def _heard(view: View, weight: float, kernel: Kernel, pending: Blocks) -> Weighted:
    """The models of a kernel, one for each mean it may have."""
    gp = view.fit(kernel)
    if kernel.column is not None:
        heard = [(weight, gp)] if weight > NEGLIGIBLE else []
    else:
        heard = [(weight * p, alternative(gp, k)) for k, p in enumerate(probabilities(gp)) if weight * p > FAINT]
    return _each(heard, partial(with_pending, pending=pending))


def _each(gps: Weighted, change: Callable[[list[GP]], list[GP]]) -> Weighted:
    """A change of all models, by families."""
    changed = [gp for family in families(gps) for gp in change([gp for _, gp in family])]
    return [(w, gp) for (w, _), gp in zip(gps, changed, strict=True)]


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


def relative_to_level(view: View) -> tuple[GP, GP]:
    """What is known before the first trial: without the level of the values, and with it."""
    kernel = _alone(view) if view.past is None else _population(view)
    level, *others = kernel.terms
    blocks, theta = view.domain.featurise(view.u), kernel.priors[0]
    relative = build(replace(kernel, terms=tuple(others)), theta[level.n_params :], blocks, view.z)
    return relative, build(kernel, theta, blocks, view.z)


def _first(view: View) -> tuple[Score, Surrogate]:
    relative, whole = relative_to_level(view)
    if view.limits is None:
        top = view.domain.maximum(lambda at: posterior(relative, at).mean, view.rng, view.hints)
    else:
        top = modest(view, [(1.0, relative)])
    return improvement([(1.0, relative)], top), gp_surrogate(whole)


def _of_shortlist(view: View, cube: Cube, gps: Weighted, chance: Chance | None) -> Choice:
    """In a continuous space, from models without pending trials. There is one search until the next trial is finished:
    while trials are pending, the best points it has seen are scored again, and a short search starts from them. All of
    it depends on the trials, those pending and the seed alone, so a resumed study suggests the same."""
    before = view.before(0)

    def searched() -> tuple[Shortlist, Surrogate]:
        top = to_beat(before, gps, view.u)
        of_trials = improvement(gps, top, may_repeat=True), mixture(gps)
        score, surrogate = of_trials if len(view.u) else _first(before)
        return Shortlist(
            cube, cube.search(_worth(before, score, chance), before.rng, before.hints), gps, top
        ), surrogate

    found, surrogate = view.latest("shortlist", (len(view.u), len(view.failed)), searched)
    if len(view.pending) == 0:
        return _chosen(view, cube.best(found.pool, view.rng, view.taken), surrogate, chance)
    pool, told = _searched_again(view, found, chance)
    return _chosen(view, cube.best(pool, view.rng, view.taken), mixture(told), chance)


def _searched_again(view: View, found: Shortlist, chance: Chance | None) -> tuple[Pool, Weighted]:
    """With pending trials. A search also looks at what the one with a pending trial less has found, unless that is
    every few trials, so that a resumed study has few searches to repeat."""
    k, pending = len(view.pending), found.cube.featurise(view.pending)
    told = _each(found.gps, partial(with_pending, pending=pending))
    values = np.asarray(sum(w * gp.y[len(view.u) :] for w, gp in told))
    if view.limits is not None:
        values = values[view.limits.counting(view.pending, pending)[len(view.u) :]]
    top = float(np.max(values, initial=found.top))
    again = _worth(view, improvement(told, top, may_repeat=True, predict=found.joined), chance)
    score = _worth(view, improvement(told, top, may_repeat=True), chance)

    def searched() -> Pool:
        if from_scratch(k - 1):
            return found.search(again, score, view.rng, view.u[:0])
        before, _ = _searched_again(view.before(k - 1), found, chance)
        return found.search(again, score, view.rng, before.latest(FURTHER))

    key = len(view.u), len(view.failed), view.pending.tobytes()
    return view.latest("searched again", key, searched), told


def _choice(view: View, gps: Weighted, chance: Chance | None) -> Choice:
    tried = np.vstack([view.u, view.pending])
    top = to_beat(view, gps, tried, None if len(view.unknown) else gps[0][1].blocks)
    if not isinstance(view.domain, Finite):
        return best_by(view, improvement(gps, top, may_repeat=True), mixture(gps), chance)
    bound = improvement(gps, top, predict=partial(optimistic, first=BOUNDING))
    return best_by(view, improvement(gps, top), mixture(gps), chance, bound)


def _nearby(view: View, gp: GP, u: Array, left: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:  # (d,) -> rows
    """The trials most like this point among those that are left."""
    ((local, s),) = [(term, s) for term, s in gp.kernel.slices() if term.kind == "matern52"]
    x, here = view.space.transform(view.u[left]), view.space.transform(u[None])
    likeness = term_covariance(local, gp.theta[s], x, here)[:, 0]
    return left[np.argsort(-likeness, kind="stable")[:NEARBY]]


def best_by(
    view: View, score: Score, surrogate: Surrogate, chance: Chance | None, bound: Score | None = None
) -> Choice:
    """`bound` is nowhere below the score; it is for tables."""
    score, bound = _worth(view, score, chance), bound and possible(bound, chance)  # all that it leaves out is at most 1
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


def _worth(view: View, score: Score, chance: Chance | None) -> Score:
    """What the user believes counts as well."""
    return view.weighed(worthwhile(view, score, chance))
