"""Several goals: the next trial is the one that is expected to add most to the volume that the trials dominate.

Each goal has models of its own, those of the default method (mixture.py), and they are taken as independent of each
other. So the improvement that is expected has a closed form for any number of goals (search/front.py). The front is
that of what is expected of the trials, finished ones and pending ones, as noise would make it too good.

The volume is that in the user's units. Models may see a goal on a log scale, where a loss that goes to 0 would be worth
infinitely much: a normal distribution there is taken for one in the user's units, whose sd is the way from its median
to what is one sd better.

Notation
    f       (n, k) values in the user's units, larger is better
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, stdtr

from jumbo_bo.methods.averaging import expected_by, mixture, said_by
from jumbo_bo.methods.base import Choice, Surrogate, View, Weighted, space_filling
from jumbo_bo.methods.limits import Doubt
from jumbo_bo.methods.mixture import JumboMixture, best_by, relative_to_level
from jumbo_bo.models.gp import Blocks
from jumbo_bo.search.acquisition import Score, log_expected_improvement
from jumbo_bo.search.argmax import Finite, Rows
from jumbo_bo.search.front import boxes, log_expected, reference, undominated
from jumbo_bo.search.sobol import over

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

# Points that the reference point is inferred from, too. Of the volume, log10 of the share that was missing after 40
# trials in five problems (seeds 100 to 102) was -0.82 on average with them and -0.66 without; in four, after 20 trials
# with old runs, -1.12 and -0.84.
SPREAD = 256
LEAST = 1e-12  # sd of a value, in units of it: floats are no finer
MOST = 50  # points of the front that are cut into boxes; of more, those that are most apart
STARTS = 5  # of the front, that a search starts from
AT_ONCE = 4_000_000  # numbers: boxes times points that are scored together


class Voice(NamedTuple):
    """One goal: its view, its blocks among those of the domain, its reference point as f has it, or NaN."""

    view: View
    own: Callable[[Blocks], Blocks]
    reference: float


@dataclass(frozen=True)
class Outlook:
    """What is expected of all goals."""

    voices: Sequence[Voice]
    gps: Sequence[Weighted]  # of each goal, told of pending trials
    f: Array  # (n + p, k) expected of the trials, finished ones and pending ones
    counting: Mask  # (n + p,) those that make up the front

    @cached_property
    def front(self) -> Array:  # (l, k)
        found = self.f[self.counting]
        return found[undominated(found)]

    @cached_property
    def reference(self) -> Array:  # (k,)
        """Where none is given, a little behind the front of what is expected: of the trials, and of points spread over
        the space, as the trials may be all in the middle of the front."""
        given, view = np.array([voice.reference for voice in self.voices]), self.voices[0].view
        tried = self.f[self.counting] if self.counting.any() else self.f
        elsewhere = self.expected(view.domain.featurise(over(view.space, SPREAD, view.rng)))
        return np.where(np.isnan(given), reference(np.vstack([tried, elsewhere])), given)

    def expected(self, blocks: Blocks) -> Array:  # (m, .) -> (m, k)
        parts = zip(self.gps, self.voices, strict=True)
        return np.column_stack([v.view.warp.inverse(expected_by(gps, v.own(blocks))) for gps, v in parts])


class Chosen(NamedTuple):
    choice: Choice  # with the model of the first goal
    surrogates: Sequence[Surrogate]  # of each goal
    outlook: Outlook | None  # None: no model was asked


def chosen(
    recipe: JumboMixture, voices: Sequence[Voice], complete: Mask, score: Callable[[Outlook], Score] | None = None
) -> Chosen:
    """`voices` begin with the first goal, whose view has all else: limits, beliefs, failures. `complete` (n,) are the
    trials that have a value of every goal."""
    view = voices[0].view
    if all(v.view.past is None for v in voices) and (first := space_filling(view, recipe.initial)):
        return Chosen(first, [], None)
    outlook = looking(recipe, voices, complete)
    surrogates = [mixture(gps) for gps in outlook.gps]
    best = best_by(_around(view, outlook), (score or volume)(outlook), surrogates[0], recipe.success(view))
    return Chosen(best, surrogates, outlook)


def looking(recipe: JumboMixture, voices: Sequence[Voice], complete: Mask) -> Outlook:
    view = voices[0].view
    tried = np.vstack([view.u, view.pending])
    if len(tried):
        gps = [recipe.models(v.view) for v in voices]
    else:
        gps = [[(1.0, relative_to_level(v.view)[0])] for v in voices]
    outlook = Outlook(voices, gps, np.zeros((0, len(voices))), np.zeros(0, bool))
    if len(tried) == 0:
        return outlook
    blocks = view.domain.featurise(tried)
    counting = np.concatenate([complete, np.ones(len(view.pending), bool)])
    if view.limits is not None:
        counting &= view.limits.counting(view.pending, {name: block[len(view.u) :] for name, block in blocks.items()})
    if view.space.constraints:
        counting &= view.space.allowed(tried)
    return replace(outlook, f=outlook.expected(blocks), counting=counting)


def _around(view: View, outlook: Outlook) -> View:
    """A search that starts from the front, too, and not only from the trials that are best in the first goal."""
    finished = outlook.f[: len(view.u)]
    kept = spread_out(finished[undominated(finished)], STARTS) if len(finished) else finished
    first = np.any(np.all(finished[:, None] == kept[None], axis=2), axis=1)
    return replace(view, z=first.astype(float))


def volume(outlook: Outlook) -> Score:
    """log of the expected gain in volume. In a continuous space a trial next to another one counts less, as in
    `improvement`, where noise would hide what it adds in every goal."""
    low, high = boxes(spread_out(outlook.front, MOST), outlook.reference)
    may_repeat = not isinstance(outlook.voices[0].view.domain, Finite)
    both = [np.concatenate(ends) for ends in zip(low.T, high.T, strict=True)]
    levels, at = zip(*(np.unique(ends, return_inverse=True) for ends in both), strict=True)
    b = len(low)

    def some(blocks: Blocks) -> Array:
        lows, highs, told = [], [], []
        for k, (gps, voice) in enumerate(zip(outlook.gps, outlook.voices, strict=True)):
            ei, new = _improvements(gps, voice, blocks, levels[k])
            lows.append(ei[at[k][:b]])
            highs.append(ei[at[k][b:]])
            told.append(new)
        found = log_expected(lows, highs)
        return found + np.max(told, axis=0) if may_repeat else found

    def score(blocks: Blocks) -> Array:
        m, size = len(blocks["x"]), max(1, AT_ONCE // b)
        parts = [some(Rows(blocks, np.arange(i, min(i + size, m)))) for i in range(0, m, size)] if m > size else []
        return np.concatenate(parts) if parts else some(blocks)

    return score


def _improvements(gps: Weighted, voice: Voice, blocks: Blocks, levels: Array) -> tuple[Array, Array]:
    """log EI over each level (l, m), -inf over an infinite one; log share of a trial that noise would not hide (m,)."""
    finite, inverse = levels[np.isfinite(levels)], voice.view.warp.inverse
    parts, told = [], []
    for (w, gp), (mean, sd) in zip(gps, said_by(gps, voice.own(blocks)), strict=True):
        mean, sd = np.asarray(mean, dtype=float), np.asarray(sd, dtype=float)
        middle, better = inverse(mean), inverse(mean + sd)
        spread = np.maximum(better - middle, LEAST * np.maximum(np.abs(middle), 1.0))
        parts.append(math.log(w) + log_expected_improvement(middle, spread, finite[:, None]))
        told.append(w * (1.0 - np.sqrt(gp.noise / (sd**2 + gp.noise))))
    found = np.full((len(levels), len(told[0])), -np.inf)
    found[np.isfinite(levels)] = np.logaddexp.reduce(parts)
    return found, np.log(np.sum(told, axis=0))


def spread_out(front: Array, n: int) -> Array:  # (l, k) -> (at most n, k)
    """The best of each goal, then those farthest from the ones that are kept."""
    if len(front) <= n:
        return front
    scaled = (front - front.min(axis=0)) / np.ptp(front, axis=0)
    kept = list(dict.fromkeys(front.argmax(axis=0).tolist()))
    apart = np.min([np.linalg.norm(scaled - scaled[i], axis=1) for i in kept], axis=0)
    while len(kept) < n:
        kept.append(int(apart.argmax()))
        apart = np.minimum(apart, np.linalg.norm(scaled - scaled[kept[-1]], axis=1))
    return front[kept]


def chance_to_join(outlook: Outlook, blocks: Blocks, doubts: Sequence[Doubt]) -> float:  # (1, .)
    """That no trial dominates what the trial of one point would show, noise included."""
    front = spread_out(outlook.front, MOST)
    scaled = [voice.view.warp(f) for f, voice in zip(front.T, outlook.voices, strict=True)]
    low, high = boxes(np.column_stack(scaled), np.full(len(outlook.voices), -np.inf))
    p = np.ones(len(low))
    for k, (gps, voice, doubt) in enumerate(zip(outlook.gps, outlook.voices, doubts, strict=True)):
        below = [np.zeros(len(low)), np.zeros(len(low))]
        for (w, gp), (mean, sd) in zip(gps, said_by(gps, voice.own(blocks)), strict=True):
            spread = doubt.wider * math.sqrt(float(sd[0]) ** 2 + gp.noise)
            for total, ends in zip(below, (low[:, k], high[:, k]), strict=True):
                z = (ends - float(mean[0])) / spread
                total += w * (ndtr(z) if math.isinf(doubt.freedom) else stdtr(doubt.freedom, z))
        p *= below[1] - below[0]
    return float(np.clip(p.sum(), 0.0, 1.0))
