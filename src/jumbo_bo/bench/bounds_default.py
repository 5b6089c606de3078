"""The bounds of sum_theory.py along runs on FCNet: of `jumbo-joint`, a sum of two kernels, and of the default, an
average of two models. And the gate of `jumbo`: its size, and how often it holds the optimum.

Notation
    Psi     T points tell at most so much, in nats: about the part of the kernel that the old tasks explain (of rank r,
            by its formula) and about the rest (by greedy search), after hyperparameters as fitted to the last trial
    alone   the same for the cold-GP of that run
    I       what the T trials of the run told, of the joint GP and of the cold-GP
    bound   sqrt(C T beta_T Psi), and with I in place of Psi: the sharpest form that the proof of GP-UCB allows
    excess  log loss of the average minus that of a model, summed over the trials: each trial is predicted from those
            before it, with the hyperparameters fitted to these
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from rich.console import Console
from rich.progress import track

from jumbo_bo.bench import bounds_fcnet, fcnet, markdown
from jumbo_bo.bench.problem import Problem
from jumbo_bo.bench.tables import FCNET, table
from jumbo_bo.data.warp import fit_warp
from jumbo_bo.learning.features import FeatureNet
from jumbo_bo.methods.joint import JumboJoint, joint_kernel
from jumbo_bo.methods.jumbo import Jumbo
from jumbo_bo.methods.mixture import JumboMixture
from jumbo_bo.models.gp import GP, Blocks
from jumbo_bo.models.kernel import Kernel, cold_kernel, covariance, variance
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.search import sum_theory, theory
from jumbo_bo.search.acquisition import theory_beta
from jumbo_bo.search.argmax import Finite

Row = dict[str, Any]

TRIALS, DELTA = 50, 0.1
MODELS, PRIOR = ("population", "alone"), JumboMixture().prior
SOURCES = ("3 epochs", "other datasets", "unrelated")


def default_bounds(out: Path, seeds: int, command: str, data: Path | None = None) -> str:
    """Writes `<out>/theory/default.md` and `default.parquet`; returns the Markdown."""
    jobs = [(source, name, seed) for seed in range(seeds) for source in SOURCES for name in problems_of(source)]
    watched = track(jobs, "FCNet", console=Console(stderr=True), transient=True)
    rows = [row_of(source, name, seed, data) for source, name, seed in watched]
    folder = out / "theory"
    folder.mkdir(parents=True, exist_ok=True)
    pl.DataFrame(rows, infer_schema_length=None).write_parquet(folder / "default.parquet")
    text = report(rows) + markdown.made_by(command) + "\n"
    (folder / "default.md").write_text(text, encoding="utf-8")
    return text


def problems_of(source: str) -> Iterable[str]:
    return fcnet.EPOCH3 if source == "3 epochs" else fcnet.UNITS


def row_of(source: str, name: str, seed: int, data: Path | None, trials: int = TRIALS) -> Row:
    problem = fcnet.temporal(name, data) if source == "3 epochs" else fcnet.leave_one_out(name)
    if source == "unrelated":
        problem = bounds_fcnet.unrelated(problem, seed)
    joint = Optimizer(FCNET.space, problem.history, "minimize", trials, JumboJoint(), seed)
    label: Row = {"source": source, "problem": name, "seed": seed, "T": trials}
    sums = _sums(problem, joint, seed, trials)
    average = Optimizer(FCNET.space, joint.past, "minimize", trials, JumboMixture(), seed)
    return label | sums | losses(problem, average, seed, trials) | gate_of(problem, joint.net, seed, trials)


def gate_of(problem: Problem, net: FeatureNet | None, seed: int, trials: int) -> Row:
    """Along a run of `jumbo`: rounds with a gate, its share of the table, and how often it holds the optimum."""
    run = bounds_fcnet.trace(problem, Jumbo(), seed, trials, net)
    gated = [row for row in run.rows if "gate" in row]
    row: Row = {"gated": len(gated) / trials, "regret": run.rows[-1]["simple"] / problem.unit}
    for name in ("gate", "optimum_inside", "warm_sure_as_used"):
        row[name] = float(np.mean([found[name] for found in gated])) if gated else None
    row["largest_gate"] = max((found["gate"] for found in gated), default=None)
    return row


def _sums(problem: Problem, optimizer: Optimizer, seed: int, trials: int) -> Row:
    """Gains and bounds of the joint GP and of the cold-GP after a run."""
    known = table(FCNET, problem.name)
    mean, noise = known.values.mean(axis=1), np.random.default_rng([seed, 1])
    chosen, values = np.zeros(trials, np.intp), np.zeros(trials)
    for t in range(trials):
        suggestion = optimizer.ask()
        chosen[t] = known.row(suggestion.params)
        values[t] = problem.objective(suggestion.params, noise)
        optimizer.tell(suggestion, values[t])
    view = optimizer.view()
    assert isinstance(view.domain, Finite)
    f = fit_warp(-values, optimizer.net.warps if optimizer.net else ())(-mean)
    row: Row = {"cumulative": float(np.sum(f.max() - f[chosen])), "range": float(np.ptp(f))}
    blocks = {name: np.asarray(block, dtype=float) for name, block in view.domain.blocks.items()}
    for name, kernel in (("joint", joint_kernel(view)), ("alone", cold_kernel(view.space))):
        gp = view.fit(kernel)
        gain = sum_theory.sum_gain(kernel, gp.theta, blocks, trials)
        told = theory.information_gain(covariance(kernel, gp.theta, gp.blocks, gp.blocks), gp.noise)
        largest = float(variance(kernel, gp.theta, blocks).max())
        sharp = bound(trials, len(mean), theory.regret_constant(gp.noise, largest), told)
        whole = bound(trials, len(mean), theory.regret_constant(gp.noise, largest), float(gain.total[-1]))
        row |= {f"{name}_psi": float(gain.total[-1]), f"{name}_told": told, f"{name}_bound": whole}
        row |= {f"{name}_sharp": sharp, f"{name}_noise": gp.noise, f"{name}_variance": largest}
        if name == "joint":
            new = float(np.exp(gp.theta[_residual(gp)]))
            row |= {"rank": gain.rank, "psi_old": float(gain.old[-1]), "psi_new": float(gain.new[-1]), "residual": new}
    return row


def _residual(gp: GP) -> int:
    """Where theta has the log variance of the term that the old tasks do not explain."""
    return next(int(s.start) for term, s in gp.kernel.slices() if term.kind == "matern52")


def bound(rounds: int, points: int, constant: float, gain: float) -> float:
    """Of GP-UCB after this many rounds."""
    return math.sqrt(constant * rounds * theory_beta(points, 2 * DELTA)(rounds, None) * gain)


def losses(problem: Problem, optimizer: Optimizer, seed: int, trials: int) -> Row:
    """Log losses along a run of the default: of the average, and of each of its two models. A model whose weight has
    become negligible is not asked any more, but it is still compared."""
    noise, recipe = np.random.default_rng([seed, 1]), optimizer.recipe
    assert isinstance(recipe, JumboMixture)
    kernels: dict[bool, Kernel] = {}  # by whether the old tasks have a part in it
    values: list[float] = []
    single: list[list[float]] = []
    average: list[float] = []
    weight = recipe.prior
    for _ in range(trials):
        view = optimizer.view()
        suggestion = optimizer.ask()
        value = problem.objective(suggestion.params, noise)
        if values:
            heard = {gp.kernel.mean is not None: w for w, gp in recipe.models(view)}
            kernels |= {gp.kernel.mean is not None: gp.kernel for _, gp in recipe.models(view)}
            weight = heard.get(True, 0.0)
            z = fit_warp(-np.array(values), view.past.warps)(np.array([-value]))
            here = view.domain.featurise(view.space.encode(suggestion.params)[None])
            each = [log_density(view.fit(kernels[old]), here, float(z[0])) for old in (True, False)]
            single.append(each)
            total = [math.log(w) + each[0 if old else 1] for old, w in heard.items()]
            average.append(float(np.logaddexp.reduce(total)))
        values.append(value)
        optimizer.tell(suggestion, value)
    excess = np.cumsum(np.array(single) - np.array(average)[:, None], axis=0)  # (T - 1, 2)
    most = excess.max(axis=0)
    return {
        "weight": weight,
        "excess_population": float(excess[-1, 0]),
        "excess_alone": float(excess[-1, 1]),
        "most_population": float(most[0]),
        "most_alone": float(most[1]),
    }


def log_density(gp: GP, here: Blocks, z: float) -> float:
    mean, sd = gp.predict(here)
    var = float(sd[0]) ** 2 + gp.noise
    return -0.5 * math.log(2 * math.pi * var) - 0.5 * (z - float(mean[0])) ** 2 / var


def report(rows: list[Row]) -> str:
    frame = pl.DataFrame(rows, infer_schema_length=None)
    mean = frame.drop("problem").group_by("source", maintain_order=True).mean()
    first, second, third = [], [], []
    for row in mean.iter_rows(named=True):
        own = frame.filter(pl.col("source") == row["source"])
        first.append(
            [
                row["source"],
                f"{row['rank']:.0f}",
                f"{row['psi_old']:.0f} + {row['psi_new']:.0f} = {row['joint_psi']:.0f}",
                f"{row['alone_psi']:.0f}",
                f"{row['joint_told']:.0f} / {row['alone_told']:.0f}",
                f"{row['residual']:.2g}",
                f"{row['joint_bound']:.0f} / {row['alone_bound']:.0f}",
                f"{row['joint_sharp']:.0f} / {row['alone_sharp']:.0f}",
                f"{row['cumulative']:.0f}",
                f"{row['T'] * row['range']:.0f}",
            ]
        )
        peaks = {name: max(own[f"most_{name}"].to_list()) for name in MODELS}
        most = [f"{row[f'excess_{name}']:+.2f} (largest {peaks[name]:.2f})" for name in MODELS]
        second.append([row["source"], str(len(own)), f"{row['weight']:.2f}", *most])
        share, size = (f"{row[name]:.1%}" for name in ("optimum_inside", "gate"))
        third.append([row["source"], f"{row['gated']:.0%}", size, share, f"{row['warm_sure_as_used']:.0%}"])
    head = ["old task", "r", "Psi: old + new", "Psi, alone", "I, joint / alone", "residual variance"]
    head += ["bound, joint / alone", "with I", "R_T", "T times the range"]
    below = ["old task", "runs", "last weight of the old runs", *(f"excess over {name}" for name in MODELS)]
    seeds = frame["seed"].n_unique()
    title, over = "# The bounds of the default", f"means over problems and {seeds} seed(s); in nats."
    limits = f"{math.log(1 / PRIOR):.2f} (population) and {math.log(1 / (1 - PRIOR)):.2f} (alone)"
    note = f"Log loss summed over the trials. With fixed hyperparameters the excess is at most {limits}."
    parts = [title, f"FCNet, {TRIALS} trials, {over}", "## A sum of two kernels", markdown.table(head, first)]
    gates = ["old task", "rounds with a gate", "its share of the table", "holds the optimum"]
    gates += ["f(x*) in the warm-GP's interval"]
    parts += ["## An average of two models", note, markdown.table(below, second)]
    return markdown.document(*parts, "## The gate of `jumbo`", markdown.table(gates, third)) + "\n"
