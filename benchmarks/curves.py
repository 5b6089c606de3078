"""How many epochs a search needs with a pruner, on the curves of benchmarks/curves_data.py.

    python benchmarks/curves.py                                            # REPORT tasks, seeds 0 to 4
    python benchmarks/curves.py --tasks iris --sources digits-parity diabetes-bmi --first-seed 100    # to tune on

Each search may use as many epochs as TRIALS full trainings. Regret is that of the best *complete* trial: its last error
above the smallest one of the table, as a share of the gap from there to the median. Old curves are ROWS random ones of
every other task; JumboSampler knows the final values of the same runs as old runs, with every pruner. The first table
has the mean regret after shares of the epochs, the second one the share of the epochs after which the mean regret is
what it is without a pruner after all of them.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import optuna
from curves_data import DEVELOPMENT, EPOCHS, REPORT, SPACE, table
from optuna.pruners import HyperbandPruner, MedianPruner, NopPruner, SuccessiveHalvingPruner

from jumbo_bo import JumboSampler
from jumbo_bo.data.curves import Curve, Curves
from jumbo_bo.data.history import History, Task
from jumbo_bo.pruner import JumboPruner

TRIALS = {"tpe": 40, "random": 40, "jumbo": 15}
ROWS = 100  # old curves of each task
SHARES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0)
NONE = "none"
Array = np.ndarray[Any, np.dtype[np.float64]]


@cache
def errors(task: str, folder: Path | None) -> Array:  # (configurations, EPOCHS)
    return np.array(table(task, folder)["error"].to_list())


def drawn(task: str, sources: Sequence[str], seed: int) -> dict[str, Array]:
    """Rows of the other tasks that are known."""
    rng = np.random.default_rng([seed, 2])
    return {t: rng.choice(len(SPACE.grid()), ROWS, replace=False) for t in sources if t != task}


def old_curves(known: dict[str, Array], folder: Path | None) -> Curves:
    at = np.arange(1, EPOCHS + 1) / EPOCHS
    tables = {task: -errors(task, folder)[rows] for task, rows in known.items()}
    return Curves({task: tuple(Curve(at, v, float(v[-1])) for v in values) for task, values in tables.items()})


def old_runs(known: dict[str, Array], folder: Path | None) -> History:
    grid = SPACE.grid()
    tasks = tuple(Task(task, grid[rows], -errors(task, folder)[rows, -1]) for task, rows in known.items())
    return History(SPACE, tasks, direction="minimize")


def pruners(known: dict[str, Array], folder: Path | None) -> dict[str, Callable[[], optuna.pruners.BasePruner]]:
    return {
        NONE: NopPruner,
        "median": MedianPruner,
        "halving": SuccessiveHalvingPruner,
        "hyperband": lambda: HyperbandPruner(max_resource=EPOCHS),
        "jumbo": JumboPruner,
        "jumbo, old curves": lambda: JumboPruner(old_curves(known, folder)),
    }


def sampler_of(name: str, seed: int, known: dict[str, Array], folder: Path | None) -> optuna.samplers.BaseSampler:
    if name == "jumbo":
        return JumboSampler(old_runs(known, folder), n_trials=TRIALS[name], seed=seed)
    return {"tpe": optuna.samplers.TPESampler, "random": optuna.samplers.RandomSampler}[name](seed=seed)


def search(e: Array, sampler: optuna.samplers.BaseSampler, pruner: optuna.pruners.BasePruner, most: int) -> Any:
    """[epochs used, regret] after each trial, and how many of them were pruned."""
    row = {tuple(u): i for i, u in enumerate(SPACE.grid())}
    study = optuna.create_study(study_name="curves", sampler=sampler, pruner=pruner)
    least, gap = e[:, -1].min(), np.median(e[:, -1]) - e[:, -1].min()
    used, pruned, best, found = 0, 0, np.inf, []
    while used < most and len(found) < len(row):
        trial = study.ask(dict(SPACE.distributions))
        curve = e[row[tuple(SPACE.encode(trial.params))]]
        for epoch, error in enumerate(curve, 1):
            trial.report(float(error), epoch)
            used += 1
            if epoch < EPOCHS and trial.should_prune():
                study.tell(trial, state=optuna.trial.TrialState.PRUNED)
                pruned += 1
                break
        else:
            study.tell(trial, float(curve[-1]))
            best = min(best, curve[-1])
        if used <= most:
            found.append([used, round(float((best - least) / gap), 5) if np.isfinite(best) else None])
    return {"regret": found, "pruned": pruned}


def at(regret: Sequence[Sequence[float]], epochs: float) -> float:
    """1, that of the median configuration, before a trial is complete."""
    seen = [value for used, value in regret if used <= epochs and value is not None]
    return min(seen[-1], 1.0) if seen else 1.0


def show(runs: Sequence[dict[str, Any]], most: int) -> None:
    names = list(dict.fromkeys(r["pruner"] for r in runs))
    print(f"| pruner | {' | '.join(f'{s:.0%}' for s in SHARES)} | trials | of them pruned |")
    print("| --- |" + " --- |" * (len(SHARES) + 2))
    for name in names:
        own = [r for r in runs if r["pruner"] == name]
        cells = [f"{np.mean([at(r['regret'], s * most) for r in own]):.3f}" for s in SHARES]
        n, pruned = (np.mean(v) for v in zip(*((len(r["regret"]), r["pruned"]) for r in own), strict=True))
        print(f"| {name} | {' | '.join(cells)} | {n:.0f} | {pruned:.0f} |")
    print("\n| pruner | " + " | ".join(dict.fromkeys(r["task"] for r in runs)) + " | all |")
    print("| --- |" + " --- |" * (len({r["task"] for r in runs}) + 1))
    for name in names:
        print(f"| {name} | " + " | ".join(needed(runs, name, most)) + " |")


def needed(runs: Sequence[dict[str, Any]], name: str, most: int) -> list[str]:
    """The share of the epochs after which the mean regret is what it is in the end without a pruner."""
    cells = []
    for tasks in [[t] for t in dict.fromkeys(r["task"] for r in runs)] + [[r["task"] for r in runs]]:
        own = {p: [r["regret"] for r in runs if r["pruner"] == p and r["task"] in tasks] for p in (NONE, name)}
        goal = np.mean([at(r, most) for r in own[NONE]])
        shares = np.arange(1, 101) / 100
        good = [s for s in shares if np.mean([at(r, s * most) for r in own[name]]) <= goal * (1 + 1e-9)]
        cells.append(f"{good[0]:.0%}" if good else "not reached")
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sampler", choices=list(TRIALS), default="tpe")
    parser.add_argument("--tasks", nargs="+", choices=[*DEVELOPMENT, *REPORT], default=list(REPORT))
    parser.add_argument("--sources", nargs="+", choices=[*DEVELOPMENT, *REPORT], default=[*DEVELOPMENT, *REPORT])
    known_pruners = list(pruners({}, None))
    parser.add_argument("--pruners", nargs="+", choices=known_pruners, default=known_pruners)
    parser.add_argument("--folder", type=Path, help="of the curves; they are trained when they are not there")
    parser.add_argument("--out", type=Path, help="a JSON file for all regrets; runs in it are not repeated")
    options = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    most = TRIALS[options.sampler] * EPOCHS
    runs = json.loads(options.out.read_text()) if options.out and options.out.exists() else []
    done = {(r["sampler"], r["task"], r["pruner"], r["seed"]) for r in runs}
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        for task in options.tasks:
            known = drawn(task, options.sources, seed)
            for name in options.pruners:
                key = {"sampler": options.sampler, "task": task, "pruner": name, "seed": seed}
                if tuple(key.values()) not in done:
                    sampler = sampler_of(options.sampler, seed, known, options.folder)
                    pruner = pruners(known, options.folder)[name]()
                    runs.append({**key, **search(errors(task, options.folder), sampler, pruner, most)})
                    if options.out:
                        options.out.write_text(json.dumps(runs))
    show([r for r in runs if r["sampler"] == options.sampler and r["pruner"] in options.pruners], most)


if __name__ == "__main__":
    main()
