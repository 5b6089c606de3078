"""Runs of a benchmark: every problem, method and seed once, kept in a file, and not repeated when they are in it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import optuna


def parsed(
    doc: str | None, trials: int, problems: Collection[str], methods: Collection[str], others: Collection[str] = ()
) -> Any:
    """The command line. `others` are methods that run only when they are named."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--trials", type=int, default=trials)
    parser.add_argument("--problems", nargs="+", choices=list(problems), default=list(problems))
    parser.add_argument("--methods", nargs="+", choices=[*methods, *others], default=list(methods))
    parser.add_argument("--cache", type=Path, default=Path("~/.cache/jumbo-bo").expanduser())
    parser.add_argument("--out", type=Path, help="a JSON file for all results; runs in it are not repeated")
    return parser.parse_args()


def all_runs(options: Any, run: Callable[[str, str, int, int, Path], dict[str, Any]]) -> list[dict[str, Any]]:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    found: list[dict[str, Any]] = json.loads(options.out.read_text()) if options.out and options.out.exists() else []
    done = {(r["problem"], r["method"], r["seed"]) for r in found}
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        for name in options.problems:
            for method in options.methods:
                if (name, method, seed) not in done:
                    found.append(run(name, method, seed, options.trials, options.cache))
                    if options.out:
                        options.out.write_text(json.dumps(found))
    return found
