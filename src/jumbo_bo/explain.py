"""Why this point: what the old runs say, what the new trials say, and how much of it is exploration.

Notation, all in standardised units (larger is better)
    old, new    how much better than the average finished trial the old runs and the new trials say the point is
    mean, sd    of the posterior at the point
    trust       share of the posterior mean's variation over the space that comes from the old runs, 0 ... 1
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtrit

from jumbo_bo.data.warp import Warp
from jumbo_bo.methods import Choice, View
from jumbo_bo.methods.base import Surrogate, Weighted
from jumbo_bo.methods.limits import Doubt
from jumbo_bo.models.gp import Blocks, Normal, mean_by_term, prior_mean
from jumbo_bo.neighbours import OldRun, Witnesses, nearest, repeated
from jumbo_bo.space.values import plain as in_plain
from jumbo_bo.trials import Trial

Array = npt.NDArray[np.float64]
Bounds = tuple[float, float]  # the values that are possible, in the user's units

OLD_BLOCKS = ("g", "h", "m", "dev", "heads")
INTERVAL = 0.95  # quantile: nine of ten values should fall between low and high
OLD_TRIALS = 2  # that old runs are worth, as trials by which the scale of the values is known; not measured
# A point is chosen for an optimistic prediction of the hyperparameters that fit best, which is too sure of itself; more
# so where nothing but the trials tells of the scale and the noise. Both by benchmarks/coverage.py.
WIDER, WIDER_ALONE = 1.25, 1.5
MOST_DIGITS = 6
SURE = 0.95  # a chance of success from here on is not mentioned
FADED = 0.1  # power of a belief: less is not mentioned
AVERAGE = 0.25  # standard deviations: closer than this is called average


class Prediction(NamedTuple):
    """In the user's units; NaN when no model was asked."""

    mean: float
    sd: float  # of the function at this point
    low: float  # 90 % interval of the value a trial would show, observation noise included
    high: float


ANY_VALUE: Bounds = (-math.inf, math.inf)
UNKNOWN = Prediction(math.nan, math.nan, math.nan, math.nan)


@dataclass(frozen=True)
class Explanation:
    """One sentence and the numbers behind it; NaN or None where the method has no such number."""

    why: str
    predicted: Prediction
    old: float
    new: float
    trust: float | None
    beta: float | None
    inside_gate: bool | None
    nearest: tuple[OldRun, ...]
    success: float | None = None  # probability that the trial has a value; None: nothing has failed yet
    repeats: int | None = None  # the trial that is repeated, as counted in `Optimizer.told`
    limits: Mapping[str, float] = field(default_factory=dict)  # limit in words -> probability that the trial meets it
    goals: Mapping[str, Explanation] = field(default_factory=dict)  # of several goals -> the same of each
    joins: float | None = None  # probability that no trial beats it in all of several goals

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values (NaN becomes None), as kept in a storage."""
        plain = asdict(self) | {"predicted": self.predicted._asdict(), "nearest": [r._asdict() for r in self.nearest]}
        return dict(without_nan(plain | {"goals": {name: goal.to_json() for name, goal in self.goals.items()}}))

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Explanation:
        numbers = {name: math.nan if plain[name] is None else float(plain[name]) for name in ("old", "new")}
        predicted = {name: math.nan if v is None else float(v) for name, v in plain["predicted"].items()}
        return cls(
            why=plain["why"],
            predicted=Prediction(**predicted),
            trust=plain["trust"],
            beta=plain["beta"],
            inside_gate=plain["inside_gate"],
            nearest=tuple(OldRun(**run) for run in plain["nearest"]),
            limits=plain.get("limits", {}),  # this and what follows are absent in studies of earlier versions
            goals={name: cls.from_json(goal) for name, goal in plain.get("goals", {}).items()},
            joins=plain.get("joins"),
            repeats=plain.get("repeats"),
            success=plain.get("success"),
            **numbers,
        )


class Parts(NamedTuple):
    """mean = average of the finished trials + old + new. Before the first trial, the average is that of the space."""

    old: float
    new: float
    mean: float


class Said(NamedTuple):
    """What a model says of some points."""

    blocks: Blocks
    function: Normal
    sd: Array  # of what a trial would show, noise included


def said(surrogate: Surrogate, blocks: Blocks) -> Said:
    return Said(blocks, surrogate.predict(blocks), surrogate.observed(blocks).sd)


def explained(
    choice: Choice,
    view: View,
    here: Said | None,
    predicted: Prediction,
    told: Sequence[Trial],
    reference: Blocks,
    known: Witnesses | None,
) -> Explanation:
    """`here` is what the choice's model says of it, `reference` as in `trust`, `known` as in `nearest`."""
    p, repeats, share = None, None, None
    if here is not None and choice.surrogate is not None:
        old, new, share = _without_this_point(choice.surrogate, view, reference)
        p = parts(choice.surrogate, here, old, new)
        repeats = repeated(view.space, choice.best.u, told) if _hidden_by_noise(here) else None
    return Explanation(
        why=why(p, choice, view, predicted, repeats),
        predicted=predicted,
        old=p.old if p else math.nan,
        new=p.new if p else math.nan,
        trust=0.0 if choice.aside else share,
        beta=choice.beta,
        inside_gate=choice.inside_gate,
        nearest=nearest(known, choice.best.u),
        repeats=repeats,
        success=choice.success,
    )


def _without_this_point(surrogate: Surrogate, view: View, reference: Blocks) -> tuple[float, float, float | None]:
    """The average of the trials as the old runs and as the trials have it, and `trust`. Pending trials do not change
    what is expected, so it is the same for all suggestions until a trial is finished."""

    def made() -> tuple[float, float, float | None]:
        before = (0.0, 0.0)
        if surrogate.gps and len(view.u):
            finished = slice(None if len(view.unknown) else len(view.u))
            some = {name: block[finished] for name, block in surrogate.gps[0][1].blocks.items()}
            old, new = _by_source(surrogate.gps, some)
            before = float(old.mean()), float(new.mean())
        return *before, trust(surrogate, reference)

    if len(view.unknown) or not surrogate.gps:
        return made()
    models = tuple((w, gp.theta.tobytes()) for w, gp in surrogate.gps)
    return view.latest("explained", (len(view.u), len(view.failed), models), made)


def parts(surrogate: Surrogate, here: Said, old_before: float = 0.0, new_before: float = 0.0) -> Parts:
    """Of one point; `old_before` and `new_before` of the average trial."""
    mean = float(here.function.mean[0])
    if not surrogate.gps:
        return Parts(math.nan, math.nan, mean)
    old, new = _by_source(surrogate.gps, here.blocks)
    return Parts(float(old[0]) - old_before, float(new[0]) - new_before, mean)


def _by_source(gps: Weighted, blocks: Blocks) -> tuple[Array, Array]:  # (m, .) -> old (m,), new (m,); old + new = mean
    old, new = 0.0, 0.0
    for weight, gp in gps:
        by_term = mean_by_term(gp, blocks)
        from_old = np.array([t.block in OLD_BLOCKS for t in gp.kernel.terms])
        old = old + weight * (prior_mean(gp.kernel, blocks) + by_term[from_old].sum(axis=0))
        new = new + weight * by_term[~from_old].sum(axis=0)
    return np.asarray(old), np.asarray(new)


def predictions(here: Said, warp: Warp, sign: float, reach: float, bounds: Bounds = ANY_VALUE) -> list[Prediction]:
    """In the user's units. `reach` is how many standard deviations of a value the interval goes to either side; it ends
    at the bounds of what is possible."""
    (mean, sd), far = here.function, reach * here.sd
    middle, below, above = sign * warp.inverse(np.stack([mean, mean - sd, mean + sd]))
    ends = sign * warp.straight(np.stack([mean - far, mean + far]))
    low, high = np.minimum(middle, np.min(ends, axis=0)), np.maximum(middle, np.max(ends, axis=0))
    middle, low, high = (np.clip(v, *bounds) for v in (middle, low, high))
    return [Prediction(*map(float, row)) for row in zip(middle, np.abs(above - below) / 2, low, high, strict=True)]


def interval_reach(trials: int, old_scale: bool) -> float:
    freedom, wider = doubt(trials, old_scale)
    return float(ndtri(INTERVAL)) if math.isinf(freedom) else wider * float(stdtrit(freedom, INTERVAL))


def doubt(trials: int, old_scale: bool) -> Doubt:
    """Normal before the first trial, when nothing was estimated from trials. Then Student's, whose freedom is what the
    finished trials and the old runs tell of the scale; without old runs one trial is spent on the mean."""
    if trials == 0:
        return Doubt(math.inf, 1.0)
    return Doubt(trials + OLD_TRIALS, WIDER) if old_scale else Doubt(max(1, trials - 1), WIDER_ALONE)


def trust(surrogate: Surrogate | None, reference: Blocks) -> float | None:
    """None when the model does not split into old and new. `reference`: blocks of points spread over the space."""
    gps = surrogate.gps if surrogate else ()
    if all(gp.kernel.mean is None for _, gp in gps):
        return None
    old, new = _by_source(gps, reference)
    total = float(old.var() + new.var())
    return float(old.var()) / total if total > 0 else 0.0


def _hidden_by_noise(here: Said) -> bool:
    """Whether one more value here would be off by more than the function is in doubt. Otherwise a point close to a
    trial looks for a better one."""
    doubt = float(here.function.sd[0])
    return float(here.sd[0]) ** 2 - doubt**2 > doubt**2


def why(p: Parts | None, choice: Choice, view: View, predicted: Prediction, repeats: int | None = None) -> str:
    if p is None:
        return f"{choice.note}."
    gate = {None: "", True: "; inside the warm gate", False: "; outside the warm gate"}[choice.inside_gate]
    mean, low, high = in_digits(predicted)
    expected = f"expected {mean} (90%: {low} to {high})"
    risk = f" Chance of success: {choice.success:.0%}." if (choice.success or 1.0) < SURE else ""
    believed = zip(view.beliefs.of, view.credence, strict=True) if view.beliefs else ()
    about = " and ".join(name for name, power in believed if power > FADED)
    belief = f" Your belief about {about} counts." if about else ""
    return f"{choice.note or voices(p, choice, view)}{gate}. {_motive(p, view, repeats)}: {expected}.{risk}{belief}"


def in_digits(p: Prediction) -> tuple[str, str, str]:
    """Mean, low and high with as many digits as they deserve: the last one of the mean is about a tenth of the way to
    the nearer end. At least two, as both ends may be far away."""
    way = min(abs(p.mean - p.low), abs(p.high - p.mean))
    deserved = math.ceil(math.log10(abs(p.mean) / way)) + 1 if p.mean and 0 < way < math.inf else 3
    digits = min(max(deserved, 2), MOST_DIGITS)
    return in_plain(p.mean, digits), in_plain(p.low, digits), in_plain(p.high, digits)


def voices(p: Parts, choice: Choice, view: View) -> str:
    assert choice.surrogate is not None
    n, gps = len(view.z), choice.surrogate.gps
    trials, rate = (f"your {n} trials", "rate") if n != 1 else ("your one trial", "rates")
    listens = any(gp.kernel.mean or any(t.block in OLD_BLOCKS for t in gp.kernel.terms) for _, gp in gps)
    if choice.aside:
        return f"The old runs do not fit {trials} and are set aside; the trials rate this {_opinion(p.new)}"
    if not listens:
        return f"{trials.capitalize()} {rate} this {_opinion(p.new)}"
    if n == 0:
        return f"Old runs rate this {_opinion(p.old)}; {_without_values(view)}"
    agree = _side(p.old) == _side(p.new)
    says = f"; {trials} agree{'' if n != 1 else 's'}" if agree else f", {trials} {_opinion(p.new)}"
    return f"Old runs rate this {_opinion(p.old)}{says}"


def _without_values(view: View) -> str:
    f = len(view.failed)
    return "no trials yet" if f == 0 else "your one trial failed" if f == 1 else f"your {f} trials failed"


def _opinion(z: float) -> str:
    """Against the average trial so far, in standard deviations of the objective."""
    return f"{abs(z):.1f} sd {_side(z)} average" if _side(z) else "about average"


def _side(z: float) -> str:
    return "" if abs(z) < AVERAGE else "above" if z > 0 else "below"


def _motive(p: Parts, view: View, repeats: int | None) -> str:
    """Exploiting: expected to beat the best so far. Exploring: only its uncertainty could."""
    if repeats is not None:
        return f"Repeats trial {repeats}, as noise hides its true value"
    if len(view.z) == 0:
        return "No value yet" if len(view.failed) else "First trial"
    counting = view.z if view.limits is None else view.z[view.limits.met]
    if len(counting) == 0:
        return "No trial meets the limits yet"
    return "Exploiting" if p.mean >= counting.max() else "Exploring"


def without_nan(value: Any) -> Any:
    """Plain JSON values: what is not finite becomes None."""
    if isinstance(value, dict):
        return {name: without_nan(v) for name, v in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
