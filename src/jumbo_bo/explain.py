"""Why this point: what the old runs say, what the new trials say, and how much of it is exploration."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from jumbo_bo.gp import Blocks, mean_by_term, posterior, prior_mean
from jumbo_bo.methods import Choice, View
from jumbo_bo.warp import Warp

OLD_BLOCKS = ("g", "h", "m")


class Prediction(NamedTuple):
    """In the user's units; NaN when no model was asked."""

    mean: float
    sd: float


class Parts(NamedTuple):
    """The predicted value in standardised units, split by where it comes from. mean = old + new."""

    old: float
    new: float
    sd: float


def parts(choice: Choice, blocks: Blocks) -> Parts | None:  # blocks of the one chosen point
    if choice.gp is None:
        return None
    by_term = mean_by_term(choice.gp, blocks)[:, 0]
    from_old = [t.block in OLD_BLOCKS for t in choice.gp.kernel.terms]
    old = float(prior_mean(choice.gp.kernel, blocks)[0] + by_term[from_old].sum())
    return Parts(old, float(by_term[np.logical_not(from_old)].sum()), float(posterior(choice.gp, blocks).sd[0]))


def predict(choice: Choice, blocks: Blocks, warp: Warp, sign: float) -> Prediction:
    p = parts(choice, blocks)
    if p is None:
        return Prediction(math.nan, math.nan)
    mean = p.old + p.new
    low, middle, high = sign * warp.inverse(np.array([mean - p.sd, mean, mean + p.sd]))
    return Prediction(float(middle), float(abs(high - low) / 2))


def why(choice: Choice, view: View, blocks: Blocks, predicted: Prediction) -> str:
    p = parts(choice, blocks)
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
    listens = choice.gp.kernel.mean is not None or any(t.block in OLD_BLOCKS for t in choice.gp.kernel.terms)
    if not listens:
        return f"The {n} new trials say {_opinion(p.new)}"
    if n == 0:
        return f"The old runs say {_opinion(p.old)}, no new trial yet"
    return f"The old runs say {_opinion(p.old)}, the {n} new trials {_opinion(p.new)}"


def _opinion(z: float) -> str:
    """Standardised units: 0 is an average configuration, 1 is one standard deviation better."""
    words = (
        "much better"
        if z > 1
        else "better"
        if z > 0.25
        else "average"
        if z > -0.25
        else "worse"
        if z > -1
        else "much worse"
    )
    return f"{words} ({z:+.2f})"


def _motive(p: Parts, choice: Choice, view: View) -> str:
    if choice.beta is None or len(view.z) == 0:
        return "first look"
    bonus = math.sqrt(choice.beta) * p.sd
    return "explores" if p.old + p.new + bonus > view.z.max() >= p.old + p.new else "exploits"
