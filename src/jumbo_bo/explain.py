"""Why this point: what the old runs say, what the new trials say, and how much of it is exploration."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from jumbo_bo.gp import GP, Blocks, mean_by_term, posterior, prior_mean
from jumbo_bo.methods import Choice, View
from jumbo_bo.warp import Warp

Array = npt.NDArray[np.float64]

OLD_BLOCKS = ("g", "h", "m")


class Prediction(NamedTuple):
    """In the user's units; NaN when no model was asked."""

    mean: float
    sd: float


class Parts(NamedTuple):
    """How much better than the average finished trial the point looks, in standardised units, and from where:
    mean = average + old + new, with sd around it. Before the first trial, better than the average configuration."""

    old: float
    new: float
    mean: float
    sd: float


def parts(choice: Choice, blocks: Blocks) -> Parts | None:  # blocks of the one chosen point
    gp = choice.gp
    if gp is None:
        return None
    old, new = _by_source(gp, blocks)
    mean, sd = posterior(gp, blocks)
    if len(gp.y):
        old_before, new_before = _by_source(gp, gp.blocks)
        old, new = old - old_before.mean(), new - new_before.mean()
    return Parts(float(old[0]), float(new[0]), float(mean[0]), float(sd[0]))


def _by_source(gp: GP, blocks: Blocks) -> tuple[Array, Array]:  # (m, .) -> old (m,), new (m,); old + new = mean
    by_term = mean_by_term(gp, blocks)
    from_old = np.array([t.block in OLD_BLOCKS for t in gp.kernel.terms])
    return prior_mean(gp.kernel, blocks) + by_term[from_old].sum(axis=0), by_term[~from_old].sum(axis=0)


def predict(p: Parts | None, warp: Warp, sign: float) -> Prediction:
    if p is None:
        return Prediction(math.nan, math.nan)
    low, middle, high = sign * warp.inverse(np.array([p.mean - p.sd, p.mean, p.mean + p.sd]))
    return Prediction(float(middle), float(abs(high - low) / 2))


def why(p: Parts | None, choice: Choice, view: View, predicted: Prediction) -> str:
    if p is None:
        return f"{choice.note}."
    sentence = [_voices(p, choice, view)]
    if choice.inside_gate is not None:
        sentence.append("inside the warm gate" if choice.inside_gate else "outside the warm gate")
    sentence.append(_motive(p, choice, view))
    return f"{'; '.join(sentence)}; predicted {predicted.mean:.4g} ± {predicted.sd:.2g}."


def _voices(p: Parts, choice: Choice, view: View) -> str:
    assert choice.gp is not None
    n = len(view.z)
    trials = f"the {n} new trials" if n > 1 else "the one new trial"
    listens = choice.gp.kernel.mean is not None or any(t.block in OLD_BLOCKS for t in choice.gp.kernel.terms)
    if not listens:
        return f"{trials.capitalize()} say {_opinion(p.new)}"
    if n == 0:
        return f"The old runs say {_opinion(p.old)}, no new trial yet"
    return f"The old runs say {_opinion(p.old)}, {trials} {_opinion(p.new)}"


def _opinion(z: float) -> str:
    """Better or worse than the average so far, in standard deviations of the objective."""
    for bound, words in ((1.0, "much better"), (0.25, "better"), (-0.25, "as good"), (-1.0, "worse")):
        if z > bound:
            return f"{words} ({z:+.2f})"
    return f"much worse ({z:+.2f})"


def _motive(p: Parts, choice: Choice, view: View) -> str:
    """Exploits: expected to beat the best so far. Explores: only its uncertainty could."""
    if choice.beta is None or len(view.z) == 0:
        return "first look"
    return "exploits" if p.mean >= view.z.max() else "explores"
