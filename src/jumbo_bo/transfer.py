"""How much each old task helps with the new problem, measured on the finished trials.

Notation
    z           (n,)    finished trials, standardised, larger is better
    head k      (n,)    what old task k predicts for them, in its standardised units
    weight      what one unit of head k adds to the joint model's prediction; below zero: good there is bad here
    gain        mean log density of a trial predicted from all others, minus the same for the cold-GP, which has no
                old runs. The density of a normal prediction is as large as its error is small, so a gain is an error
                that is smaller by the share 1 - exp(-gain), see `error`
    agreement   Spearman correlation of head k and z; 0 is no better than guessing

Each gain is that of a joint model with this one old task, so tasks can be compared; the gain of all is that of the
joint model itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jumbo_bo.data.likeness import spearman
from jumbo_bo.data.summary import SHOWN
from jumbo_bo.explain import trust
from jumbo_bo.learning.features import FeatureNet
from jumbo_bo.methods.base import View
from jumbo_bo.methods.joint import joint_kernel
from jumbo_bo.models import gp as gps
from jumbo_bo.models.kernel import cold_kernel
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.search.sobol import over

Array = npt.NDArray[np.float64]

ENOUGH = 5  # trials before a verdict
CLEAR = 0.05  # of a gain: less is no difference
ALIKE = 0.3  # rank agreement of old tasks that point the right way
MOST_TASKS = 20  # that get a model of their own, the ones with the largest weights
RECENT = 100  # trials a gain is measured on; each costs a fit per task


@dataclass(frozen=True)
class TaskTransfer:
    name: str
    weight: float
    gain: float  # NaN when not measured
    agreement: float  # NaN when either side is constant

    @property
    def error(self) -> float:
        """What the task does to the error of predictions: -0.2 means that it is 20 % smaller."""
        return error(self.gain)


def error(gain: float) -> float:
    """The change of the error of predictions that has this gain.

    >>> round(error(math.log(2)), 6)
    -0.5
    """
    return math.expm1(-gain)


@dataclass(frozen=True)
class TransferReport:
    tasks: tuple[TaskTransfer, ...]  # the most helpful first
    gain: float  # of all old tasks together; NaN before the second trial
    trust: float  # share of the predictions' variation that comes from the old runs; NaN when that cannot be said
    n_trials: int
    verdict: str

    def __str__(self) -> str:
        lines = [self.verdict]
        if self.tasks:
            width = max(8, *(len(t.name) for t in self.tasks[:SHOWN]))
            lines.append(f"{'old task':{width}}  weight   error  agreement")
            shown = self.tasks[:SHOWN]
            lines += [f"{t.name:{width}}  {t.weight:+6.2f}  {t.error:+6.0%}  {t.agreement:+9.2f}" for t in shown]
            lines += [f"... and {len(self.tasks) - SHOWN:,} more old tasks"] if len(self.tasks) > SHOWN else []
        return "\n".join(lines)


def transfer(optimizer: Optimizer) -> TransferReport:
    """The transfer report of a study as it stands."""
    view, net = optimizer.view(), optimizer.net
    n = len(view.z)
    if net is None:
        return TransferReport((), math.nan, 0.0, n, _without_old_runs(optimizer))
    points = view.u[-RECENT:]
    blocks, z = view.domain.featurise(points), view.z[-RECENT:]
    joint = gps.fit(joint_kernel(view), blocks, z)
    reference = view.domain.featurise(over(view.space, 256, np.random.default_rng(0)))
    share = trust(optimizer.recipe.surrogate(view), reference)  # of the model that makes the suggestions
    share = math.nan if share is None else share
    heads = net.predictions(view.space.transform(points))  # (n, K)
    weights = _weights(joint, net)
    cold = _density(gps.fit(cold_kernel(view.space), blocks, z))
    gain = _density(joint) - cold
    measured = set(np.argsort(-np.abs(weights), kind="stable")[:MOST_TASKS].tolist())
    tasks = [
        TaskTransfer(
            name,
            float(weights[k]),
            _density(_alone(view, blocks, heads[:, [k]], z)) - cold if k in measured else math.nan,
            spearman(heads[:, k], z),
        )
        for k, name in enumerate(net.tasks)
    ]
    tasks.sort(key=lambda t: -t.gain if math.isfinite(t.gain) else math.inf)
    return TransferReport(tuple(tasks), gain, share, n, _verdict(tasks, gain, share, n))


def _weights(joint: gps.GP, net: FeatureNet) -> Array:  # -> (K,)
    """The prior mean is the average of the heads; the linear term adds a slope per column of g."""
    k = len(net.tasks)
    if len(joint.y) == 0:
        return np.full(k, 1.0 / k)
    slices = {term.block: s for term, s in joint.kernel.slices()}
    slopes = np.exp(joint.theta[slices["g"]]) * (joint.alpha @ joint.blocks["g"])
    return 1.0 / k + net.g_basis @ (slopes / net.g_sd)


def _alone(view: View, blocks: gps.Blocks, head: Array, z: Array) -> gps.GP:
    """The joint model with one old task."""
    kernel = joint_kernel(view)
    terms = tuple(gps.Term("g", "linear", (0,)) if t.block == "g" else t for t in kernel.terms)
    return gps.fit(gps.Kernel(terms, kernel.noise, kernel.mean), {**blocks, "g": head, "m": head}, z)


def _density(gp: gps.GP) -> float:
    if len(gp.y) < 2:
        return math.nan
    mean, sd = gps.leave_one_out(gp)
    return float(np.mean(-0.5 * ((gp.y - mean) / sd) ** 2 - np.log(sd) - 0.5 * math.log(2 * math.pi)))


def _without_old_runs(optimizer: Optimizer) -> str:
    if optimizer.past is not None:
        return "This method uses the old runs in its own way, which this report cannot measure."
    if optimizer.recipe.learns is None:
        return "This method does not use old runs."
    if optimizer.history is not None and optimizer.history.tasks:
        return (
            "Nothing could be learned from the old runs: on held-out rows, no old task can be predicted better than by "
            "its average. Every suggestion comes from the new trials alone."
        )
    return "There are no old runs; every suggestion comes from the new trials alone."


def _verdict(tasks: list[TaskTransfer], gain: float, share: float, n: int) -> str:
    used = "" if math.isnan(share) else f"{share:.0%} of what the model predicts comes from the old runs"
    also = used and f", and {used}"
    if n < ENOUGH:
        return f"Too early to tell: {n} trial{'s' if n != 1 else ''}, {ENOUGH} needed{used and f'; {used}'}."
    best = tasks[0]
    if gain > CLEAR:
        reverse = " It is used in reverse: what was good there is bad here." if best.weight < -CLEAR else ""
        return (
            f"The old runs help: with them, the error of predictions is {-error(gain):.0%} smaller{also}. "
            f"Most of the help comes from {best.name} (rank agreement {best.agreement:+.2f}).{reverse}"
        )
    agreement = float(np.median([t.agreement for t in tasks if math.isfinite(t.agreement)] or [0.0]))
    typical = f"a typical old task ranks the new trials with an agreement of {agreement:+.2f}"
    if gain >= -CLEAR and agreement >= ALIKE:
        by_now = "but by now the new trials say as much on their own"
        return f"The old runs point the right way ({typical}), {by_now}{used and f'; {used}'}."
    if gain >= -CLEAR:
        without = "the new trials are predicted equally well without them"
        return f"The old runs make no difference: {without}; {typical}{also}."
    state = "are being ignored" if share < 0.2 else "mislead"
    return (
        f"The old runs {state}: with them, the error of predictions is {error(gain):.0%} larger; {typical}{also}. "
        "If this persists, start the study without them or with other old tasks."
    )
