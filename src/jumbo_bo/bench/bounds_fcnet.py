"""Does the pretrained net compress the space? The quantities of Theorem 1 on FCNet, kernels fitted by `jumbo-printed`.

Notation
    chi     the 62,208 configurations, as T(u);  Z: their features h
    f       (N,) minus the mean loss over the four training seeds, warped as the trials are: larger is better
    T, s    trials of the run, and how many of them were outside chi_g
    chi_g   'gate': the union of the run's gates, the complement is the union of theirs (see bounds_drawn.bound)
            'best 1 %': the configurations nearest the optimum, what the paper would like chi_g to be

Psi is greedy's estimate under the cold-GP (chi) or the warm-GP (Z) as fitted after the last trial. A GP that takes
more of the values for noise gains less from any set, so Psi of Z is also given at the cold-GP's ratio of variance to
noise: then only the distances between points differ.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from jumbo_bo.bench.problem import Problem
from jumbo_bo.bench.tables import FCNET, table
from jumbo_bo.data.history import History, Task
from jumbo_bo.data.warp import fit_warp
from jumbo_bo.learning.features import FeatureNet
from jumbo_bo.methods import METHODS
from jumbo_bo.methods.averaging import average
from jumbo_bo.methods.base import View
from jumbo_bo.methods.gp_ucb import GPUCB
from jumbo_bo.methods.jumbo import Jumbo
from jumbo_bo.methods.jumbo_printed import JumboPrinted
from jumbo_bo.models.gp import GP, Blocks
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.search import theory
from jumbo_bo.search.acquisition import Predict, in_gate, theory_beta, ucb
from jumbo_bo.search.argmax import Finite
from jumbo_bo.space.space import Array

Row = dict[str, Any]
Flags = npt.NDArray[np.bool_]

TRIALS, DELTA = 50, 0.1
NEAR = 0.01  # share of the table that 'best 1 %' holds
OLD_ROWS = 1000


class Trace(NamedTuple):
    rows: list[Row]  # one per trial
    chosen: npt.NDArray[np.intp]  # (T,) rows of the table
    outside: Flags  # (T,) x_t was outside the gate; the first, space-filling trials count as inside
    gates: Flags  # (N,) in some round inside the gate
    complements: Flags  # (N,) in some round outside
    models: tuple[GP, GP] | None  # warm and cold after the last trial, of `jumbo-printed`
    blocks: Blocks
    net: FeatureNet | None


def unrelated(problem: Problem, seed: int) -> Problem:
    """The same target with one old task that has nothing to do with it: a smooth random function."""
    rng = np.random.default_rng([seed, 2])
    u = FCNET.space.grid()[rng.choice(int(FCNET.space.cardinality or 0), OLD_ROWS, replace=False)]
    waves = rng.normal(size=(len(FCNET.space.groups), 30))
    y = np.cos(FCNET.space.transform(u) @ waves + rng.uniform(0, 2 * math.pi, 30)) @ rng.normal(size=30)
    return replace(problem, history=History(FCNET.space, (Task("unrelated", u, y),), direction="minimize"))


def trace(
    problem: Problem,
    recipe: Jumbo | JumboPrinted | GPUCB,
    seed: int,
    trials: int = TRIALS,
    net: FeatureNet | None = None,
) -> Trace:
    """One run. `net`: already pretrained on the problem's history with this seed."""
    known = table(FCNET, problem.name)
    mean = known.values.mean(axis=1)
    best = int(np.argmin(mean))
    noise = np.random.default_rng([seed, 1])
    optimizer = Optimizer(FCNET.space, net or problem.history, "minimize", trials, recipe, seed)
    width = math.sqrt(theory_beta(len(mean), DELTA)(trials, None))  # the theorem's, the widest of the run
    rows: list[Row] = []
    chosen, values = np.zeros(trials, np.intp), np.zeros(trials)
    outside, gates, complements = (np.zeros(n, np.bool_) for n in (trials, len(mean), len(mean)))
    for t in range(trials):
        view = optimizer.view()
        suggestion = optimizer.ask()
        row: Row = {"trial": t + 1}
        beta = suggestion.explanation.beta
        if isinstance(recipe, Jumbo | JumboPrinted) and suggestion.explanation.inside_gate is not None:
            warm, cold = _predictors(recipe, view)
            assert isinstance(view.domain, Finite)
            assert beta is not None
            score = ucb(warm, beta)
            scores = score(view.domain.blocks)
            reach = recipe.reach(view, score) if isinstance(recipe, Jumbo) else recipe.threshold
            gate = in_gate(scores, float(scores.max()), reach)
            gates |= gate
            complements |= ~gate
            outside[t] = not suggestion.explanation.inside_gate
            like = view.past.warps if recipe.old_scale else ()
            star = fit_warp(-values[:t], like)(-mean[best : best + 1])[0]  # f(x*) on the scale of this round
            row |= {"gate": float(gate.mean()), "optimum_inside": bool(gate[best]), "outside": bool(outside[t])}
            for name, predict in (("warm_sure", warm), ("cold_sure", cold)):
                at = predict({k: block[best : best + 1] for k, block in view.domain.blocks.items()})
                off = abs(star - at.mean[0]) / at.sd[0]
                row |= {name: bool(off <= width), f"{name}_as_used": bool(off <= math.sqrt(beta))}
        chosen[t] = known.row(suggestion.params)
        values[t] = problem.objective(suggestion.params, noise)
        optimizer.tell(suggestion, values[t])
        rows.append({**row, "regret": float(mean[chosen[t]] - mean[best])})
    final = optimizer.view()
    assert isinstance(final.domain, Finite)
    f = fit_warp(-values)(-mean)
    for t, row in enumerate(rows):
        row["scaled_regret"] = float(f[best] - f[chosen[t]])
        row["simple"] = min(r["regret"] for r in rows[: t + 1])
    models = recipe.models(final) if isinstance(recipe, JumboPrinted) and optimizer.net else None
    return Trace(rows, chosen, outside, gates, complements, models, final.domain.blocks, optimizer.net)


def _predictors(recipe: Jumbo | JumboPrinted, view: View) -> tuple[Predict, Predict]:
    """Of the warm and the cold model."""
    if isinstance(recipe, JumboPrinted):
        warm_gp, cold_gp = recipe.models(view)
        return warm_gp.predict, cold_gp.predict
    warm_gps, cold_gp = recipe.models(view)
    return partial(average, warm_gps), cold_gp.predict


def gains(problem: Problem, run: Trace) -> list[Row]:
    """Both sides of the comparison, for both choices of chi_g."""
    assert run.models is not None
    warm, cold = run.models
    loss = table(FCNET, problem.name).values.mean(axis=1)
    near = np.zeros(len(loss), np.bool_)
    near[np.argsort(loss, kind="stable")[: round(NEAR * len(loss))]] = True
    n = len(run.chosen)
    everything = theory.max_gain(cold.kernel, cold.theta, run.blocks, n)
    nothing = theory.Side(np.zeros(n + 1), 0.0)
    alone = theory.regret_bound(
        _betas(len(loss), 2 * DELTA, n), np.zeros(n, np.bool_), theory.Side(everything.lower, _constant(cold)), nothing
    )
    share = warm.theta.copy()
    share[-1] = warm.theta[0] + cold.theta[-1] - cold.theta[0]  # the cold-GP's ratio of variance to noise
    rows = []
    for region, inside, other, outside in (
        ("gate", run.gates, run.complements, run.outside),
        ("best 1 %", near, ~near, ~near[run.chosen]),
    ):
        s = int(outside.sum())
        on_cold, on_rest = _part(run.blocks, inside), _part(run.blocks, other)
        cold_gain = theory.max_gain(cold.kernel, cold.theta, on_cold, n).lower
        warm_gain = theory.max_gain(warm.kernel, warm.theta, on_rest, n).lower
        bound = theory.regret_bound(
            _betas(len(loss), DELTA, n),
            outside,
            theory.Side(cold_gain, _constant(cold)),
            theory.Side(warm_gain, _constant(warm)),
        )
        rows.append(
            {
                "region": region,
                "T": n,
                "s": s,
                "share_of_chi": float(inside.mean()),
                "psi_chi_g": float(cold_gain[n - s]),
                "psi_z_g": float(warm_gain[s]),
                "psi_chi": float(everything.lower[n]),
                "psi_chi_g_T": float(cold_gain[n]),
                "psi_complement_cold_T": float(theory.max_gain(cold.kernel, cold.theta, on_rest, n).lower[n]),
                "psi_complement_warm_T": float(warm_gain[n]),
                "psi_complement_same_T": float(theory.max_gain(warm.kernel, share, on_rest, n).lower[n]),
                "bound_jumbo": float(bound[-1]),
                "bound_gp_ucb": float(alone[-1]),
                "cumulative": float(sum(row["scaled_regret"] for row in run.rows)),
                "noise_cold": cold.noise / math.exp(cold.theta[0]),
                "noise_warm": warm.noise / math.exp(warm.theta[0]),
            }
        )
    return rows


def recipes() -> dict[str, JumboPrinted | GPUCB]:
    """The methods of experiment (c)."""
    jumbo, alone = METHODS["jumbo-printed"], METHODS["gp-ucb"]
    assert isinstance(jumbo, JumboPrinted)
    assert isinstance(alone, GPUCB)
    return {"jumbo-printed": jumbo, "jumbo-printed, constrained": replace(jumbo, gate="constrained"), "gp-ucb": alone}


def _betas(n: int, delta: float, rounds: int) -> Array:
    return np.array([theory_beta(n, delta)(t, None) for t in range(1, rounds + 1)])


def _constant(gp: GP) -> float:
    return theory.regret_constant(gp.noise, math.exp(gp.theta[0]))


def _part(blocks: Blocks, rows: Flags) -> Blocks:
    return {name: block[rows] for name, block in blocks.items()}
