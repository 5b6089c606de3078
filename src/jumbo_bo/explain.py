"""Why this point: what the old runs say, what the new trials say, and how much of it is exploration.

Notation, all in standardised units (larger is better)
    old, new    how much better than the average finished trial the old runs and the new trials say the point is
    mean, sd    of the posterior at the point
    trust       share of the posterior mean's variation over the space that comes from the old runs, 0 ... 1
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtrit

from jumbo_bo.data.history import History
from jumbo_bo.data.warp import Warp
from jumbo_bo.methods import Choice, View
from jumbo_bo.methods.base import Surrogate, Weighted
from jumbo_bo.models.gp import Blocks, mean_by_term, prior_mean
from jumbo_bo.space.space import Params, Space
from jumbo_bo.trials import Trial

Array = npt.NDArray[np.float64]

OLD_BLOCKS = ("g", "h", "m", "dev")
INTERVAL = 0.95  # quantile: nine of ten values should fall between low and high
OLD_TRIALS = 2  # that old runs are worth, as trials by which the scale of the values is known; not measured
# A point is chosen for an optimistic prediction of the hyperparameters that fit best, which is too sure of itself; more
# so where nothing but the trials tells of the scale and the noise. Both by benchmarks/coverage.py.
WIDER, WIDER_ALONE = 1.25, 1.5
WITNESSES = 5_000  # good old runs looked through for the nearest ones, of all tasks together
NEAREST = 3
AVERAGE = 0.25  # standard deviations: closer than this is called average
SAME = 0.01  # of a parameter's range: a trial this close in all of them may be one that is repeated


class Prediction(NamedTuple):
    """In the user's units; NaN when no model was asked."""

    mean: float
    sd: float  # of the function at this point
    low: float  # 90 % interval of the value a trial would show, observation noise included
    high: float


UNKNOWN = Prediction(math.nan, math.nan, math.nan, math.nan)


class OldRun(NamedTuple):
    """A good old run near a suggestion."""

    task: str
    params: Params
    value: float  # in the units of its task
    distance: float  # average over the parameters, as a share of each one's range; another choice counts 1


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
    repeats: int | None = None  # the trial that is repeated, as counted in `Optimizer.told`

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values (NaN becomes None), as kept in a storage."""
        plain = asdict(self) | {"predicted": self.predicted._asdict(), "nearest": [r._asdict() for r in self.nearest]}
        return dict(without_nan(plain))

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
            repeats=plain.get("repeats"),  # absent in studies of earlier versions
            **numbers,
        )


class Parts(NamedTuple):
    """mean = average of the finished trials + old + new. Before the first trial, the average is that of the space."""

    old: float
    new: float
    mean: float


@dataclass(frozen=True)
class Witnesses:
    """The good rows of every old task, few enough to look through at every suggestion."""

    space: Space
    u: Array  # (w, d)
    t: Array  # (w, D)
    task: tuple[str, ...]  # (w,)
    value: Array  # (w,) in the units of the task


def explained(
    choice: Choice, view: View, predicted: Prediction, told: Sequence[Trial], reference: Blocks, known: Witnesses | None
) -> Explanation:
    """`reference` as in `trust`, `known` as in `nearest`."""
    surrogate, p, repeats = choice.surrogate, None, None
    if surrogate is not None:
        blocks = view.domain.featurise(choice.best.u[None])
        p = parts(surrogate, blocks)
        repeats = repeated(view.space, choice.best.u, told) if _hidden_by_noise(surrogate, blocks) else None
    return Explanation(
        why=why(p, choice, view, predicted, repeats),
        predicted=predicted,
        old=p.old if p else math.nan,
        new=p.new if p else math.nan,
        trust=0.0 if choice.aside else trust(surrogate, reference),
        beta=choice.beta,
        inside_gate=choice.inside_gate,
        nearest=nearest(known, choice.best.u),
        repeats=repeats,
    )


def parts(surrogate: Surrogate, blocks: Blocks) -> Parts:  # blocks of the one chosen point
    mean, gps = float(surrogate.predict(blocks).mean[0]), surrogate.gps
    if not gps:
        return Parts(math.nan, math.nan, mean)
    old, new = _by_source(gps, blocks)
    (_, first), *_ = gps
    if len(first.y):
        old_before, new_before = _by_source(gps, first.blocks)
        old, new = old - old_before.mean(), new - new_before.mean()
    return Parts(float(old[0]), float(new[0]), mean)


def _by_source(gps: Weighted, blocks: Blocks) -> tuple[Array, Array]:  # (m, .) -> old (m,), new (m,); old + new = mean
    old, new = 0.0, 0.0
    for weight, gp in gps:
        by_term = mean_by_term(gp, blocks)
        from_old = np.array([t.block in OLD_BLOCKS for t in gp.kernel.terms])
        old = old + weight * (prior_mean(gp.kernel, blocks) + by_term[from_old].sum(axis=0))
        new = new + weight * by_term[~from_old].sum(axis=0)
    return np.asarray(old), np.asarray(new)


def predictions(surrogate: Surrogate, blocks: Blocks, warp: Warp, sign: float, reach: float) -> list[Prediction]:
    """In the user's units. `reach` is how many standard deviations of a value the interval goes to either side."""
    (mean, sd), far = surrogate.predict(blocks), reach * surrogate.observed(blocks).sd
    middle, below, above = sign * warp.inverse(np.stack([mean, mean - sd, mean + sd]))
    ends = sign * warp.straight(np.stack([mean - far, mean + far]))
    low, high = np.minimum(*ends), np.maximum(*ends)
    return [Prediction(*map(float, row)) for row in zip(middle, np.abs(above - below) / 2, low, high, strict=True)]


def interval_reach(trials: int, old_scale: bool) -> float:
    """Normal before the first trial, when nothing was estimated from trials. Then Student's, whose freedom is what the
    finished trials and the old runs tell of the scale; without old runs one trial is spent on the mean."""
    if trials == 0:
        return float(ndtri(INTERVAL))
    freedom, wider = (trials + OLD_TRIALS, WIDER) if old_scale else (max(1, trials - 1), WIDER_ALONE)
    return wider * float(stdtrit(freedom, INTERVAL))


def trust(surrogate: Surrogate | None, reference: Blocks) -> float | None:
    """None when the model does not split into old and new. `reference`: blocks of points spread over the space."""
    gps = surrogate.gps if surrogate else ()
    if all(gp.kernel.mean is None for _, gp in gps):
        return None
    old, new = _by_source(gps, reference)
    total = float(old.var() + new.var())
    return float(old.var()) / total if total > 0 else 0.0


def witnesses(history: History) -> Witnesses:
    """Of every task the best tenth, at most 200 rows and fewer when there are many tasks."""
    most = max(1, min(200, WITNESSES // max(1, len(history.tasks))))
    u, task, value = [np.zeros((0, history.space.d))], [], [np.zeros(0)]
    for t in history.tasks[:WITNESSES]:
        n = min(most, max(1, len(t.y) // 10), len(t.y))
        best = np.argpartition(-t.y, n - 1)[:n] if n else np.zeros(0, dtype=int)
        u.append(t.u[best])
        task += [t.name] * n
        value.append(history.sign(t.name) * t.y[best])
    points = np.vstack(u)
    return Witnesses(history.space, points, history.space.transform(points), tuple(task), np.concatenate(value))


def nearest(known: Witnesses | None, u: Array, n: int = NEAREST) -> tuple[OldRun, ...]:  # (d,) ->
    """The good old runs closest to a point, one per configuration and task."""
    if known is None or len(known.u) == 0:
        return ()
    distance = _apart(known.space, known.t, u).mean(axis=1)
    found: dict[tuple[str, bytes], OldRun] = {}
    for i in np.argsort(distance, kind="stable"):
        key = known.task[i], known.t[i].tobytes()
        if key not in found:
            params = known.space.decode(known.u[i])
            found[key] = OldRun(known.task[i], params, float(known.value[i]), float(distance[i]))
        if len(found) == n:
            break
    return tuple(found.values())


def _apart(space: Space, t: Array, u: Array) -> Array:  # (w, D), (d,) -> (w, d)
    """How far in each parameter, as a share of its range; another choice counts 1."""
    starts = np.flatnonzero(np.diff(space.groups, prepend=-1))
    return np.asarray(np.maximum.reduceat(np.abs(t - space.transform(u[None])), starts, axis=1))


def repeated(space: Space, u: Array, told: Sequence[Trial]) -> int | None:  # (d,) ->
    """The closest trial with a value that is as good as the same in every parameter."""
    if not told:
        return None
    far = _apart(space, space.transform(np.array([t.u for t in told])), u).max(axis=1)
    far[[math.isnan(t.y) for t in told]] = math.inf
    closest = int(np.argmin(far))
    return closest if far[closest] <= SAME else None


def _hidden_by_noise(surrogate: Surrogate, blocks: Blocks) -> bool:
    """Whether one more value here would be off by more than the function is in doubt. Otherwise a point close to a
    trial looks for a better one."""
    doubt = float(surrogate.predict(blocks).sd[0])
    return float(surrogate.observed(blocks).sd[0]) ** 2 - doubt**2 > doubt**2


def why(p: Parts | None, choice: Choice, view: View, predicted: Prediction, repeats: int | None = None) -> str:
    if p is None:
        return f"{choice.note}."
    gate = {None: "", True: "; inside the warm gate", False: "; outside the warm gate"}[choice.inside_gate]
    expected = f"expected {predicted.mean:.3g} (90%: {predicted.low:.3g} to {predicted.high:.3g})"
    return f"{choice.note or _voices(p, choice, view)}{gate}. {_motive(p, view, repeats)}: {expected}."


def _voices(p: Parts, choice: Choice, view: View) -> str:
    assert choice.surrogate is not None
    n, gps = len(view.z), choice.surrogate.gps
    trials, rate = (f"your {n} trials", "rate") if n != 1 else ("your one trial", "rates")
    listens = any(gp.kernel.mean or any(t.block in OLD_BLOCKS for t in gp.kernel.terms) for _, gp in gps)
    if choice.aside:
        return f"The old runs do not fit {trials} and are set aside; the trials rate this {_opinion(p.new)}"
    if not listens:
        return f"{trials.capitalize()} {rate} this {_opinion(p.new)}"
    if n == 0:
        return f"Old runs rate this {_opinion(p.old)}; no trials yet"
    agree = _side(p.old) == _side(p.new)
    says = f"; {trials} agree{'' if n != 1 else 's'}" if agree else f", {trials} {_opinion(p.new)}"
    return f"Old runs rate this {_opinion(p.old)}{says}"


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
        return "First trial"
    return "Exploiting" if p.mean >= view.z.max() else "Exploring"


def without_nan(value: Any) -> Any:
    """Plain JSON values: what is not finite becomes None."""
    if isinstance(value, dict):
        return {name: without_nan(v) for name, v in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
