"""Runs (problem, method, seed): one file per finished run, resumable.

A run is `<out>/<suite>/runs/<problem>.<method>.t<trials>.s<seed>.jsonl`: the first line is the stamp (what made it),
then one line per trial. The file appears complete or not at all, so a run that was killed is simply done again.
A run that raises leaves its traceback in `<out>/<suite>/failed/` and is tried again next time. Runs in a published
`<out>/<suite>/runs.parquet` count as finished; to make them again, give another folder.

Objective noise of a run comes from `default_rng([seed, 1])`; the optimizer and its pretrained net get `seed`.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import polars as pl
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from jumbo_bo.bench.problem import Problem
from jumbo_bo.bench.stamp import stamp
from jumbo_bo.bench.suites import SUITES
from jumbo_bo.bench.workers import serve, workers
from jumbo_bo.errors import InputError, MissingFile
from jumbo_bo.methods import METHODS
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.paths import whole
from jumbo_bo.space.space import Params

Row = dict[str, Any]
Start = Callable[["Run", Path, Path | None, str], str | None]  # does a run; None, or what went wrong
PAPER = "hpo"  # the preset of the paper's nets for hyperparameters


@dataclass(frozen=True)
class Run:
    suite: str
    problem: str
    method: str
    seed: int
    trials: int

    def path(self, out: Path) -> Path:
        name = (
            f"{quote(self.problem, safe='=,@+')}.{quote(self.method, safe='=,')}.t{self.trials}.s{self.seed:04d}.jsonl"
        )
        return out / self.suite / "runs" / name

    def failure_path(self, out: Path) -> Path:
        return out / self.suite / "failed" / self.path(out).with_suffix(".txt").name

    def finished(self, out: Path) -> bool:
        path = self.path(out)
        return path.exists() and path.read_text().count("\n") == self.trials + 1


def parse_method(text: str, net: str = PAPER) -> Any:
    """The recipe 'jumbo', or with fields replaced: 'jumbo:warm=g,beta0=1'. `net` takes the place of the paper's net for
    hyperparameters, where the paper has another one."""
    name, _, options = text.partition(":")
    if name not in METHODS:
        raise InputError(f"no method {name!r}; choose one of {sorted(METHODS)}")
    recipe: Any = METHODS[name]
    fields = [field.name for field in dataclasses.fields(recipe)]
    changes = {}
    for option in filter(None, options.split(",")):
        key, equals, value = option.partition("=")
        if not equals or key not in fields:
            raise InputError(
                f"{text!r}: {option!r} is not an option of {name}; write key=value with key one of {fields}"
            )
        changes[key] = _like(value, getattr(recipe, key))
    if net != PAPER and getattr(recipe, "preset", None) == PAPER:
        changes.setdefault("preset", net)
    return dataclasses.replace(recipe, **changes) if changes else recipe


def split_names(text: str) -> list[str]:
    """'jumbo:warm=g,beta0=1,gp-ucb' -> ['jumbo:warm=g,beta0=1', 'gp-ucb']: a piece 'key=value' belongs to the left.
    Methods write their options after a colon, problems after an @."""
    return re.split(r",(?![^,:@]*=)", text) if text else []


def run_one(problem: Problem, method: str, seed: int, trials: int, net: str = PAPER) -> tuple[list[Row], float]:
    """One row per trial, and the CPU seconds spent on the old runs before the first trial."""
    recipe = parse_method(method, net)
    start = time.process_time()
    optimizer = Optimizer(problem.space, problem.history, problem.direction, trials, recipe, seed, problem.candidates)
    _ = optimizer.past  # learned here, so that the first ask does not pay for it
    pretraining = time.process_time() - start
    return play(problem, lambda: optimizer.ask().params, optimizer.tell, seed, trials), pretraining


def play(
    problem: Problem, ask: Callable[[], Params], tell: Callable[[Params, float], None], seed: int, trials: int
) -> list[Row]:
    """The trials of a run, one row each."""
    noise = np.random.default_rng([seed, 1])
    better = np.fmin if problem.direction == "minimize" else np.fmax  # ignore NaN, a failed trial
    rows: list[Row] = []
    best, regret = math.nan, math.inf
    for trial in range(1, trials + 1):
        start = time.process_time()
        params = ask()
        asked = time.process_time()
        value = problem.objective(params, noise)
        evaluated = time.process_time()
        tell(params, value)
        told = time.process_time()
        best = float(better(best, value))
        regret = min(regret, problem.regret(params))
        times = {"cpu_ask": asked - start, "cpu_tell": told - evaluated}
        rows.append({"trial": trial, "value": value, "best_value": best, "regret": regret, **times})
    return rows


def execute(run: Run, out: Path, data: Path | None, command: str) -> None:
    """Does one run in this process and writes its file."""
    suite = SUITES[run.suite]
    problem = suite(run.problem, data, run.seed)
    rows, pretraining = run_one(problem, run.method, run.seed, run.trials, suite.net)
    save(run, out, problem, rows, {**stamp(command), "cpu_pretraining": pretraining})


def save(run: Run, out: Path, problem: Problem, rows: Iterable[Row], made: Row) -> None:
    """The file of a run. `made` says what made it: a stamp and the CPU seconds before the first trial."""
    head = {
        **asdict(run),
        **made,
        "history": problem.history.fingerprint,
        "unit": problem.unit,
        "floor": problem.floor,
        "landmarks": dict(problem.landmarks),
    }
    label = {"suite": run.suite, "problem": run.problem, "method": run.method, "seed": run.seed}
    write(run.path(out), [head, *({**label, **row} for row in rows)])


def write(path: Path, lines: Iterable[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole(path) as part:
        part.write_text("".join(json.dumps(line) + "\n" for line in lines))


def read_runs(out: Path, suite: str, trials: int | None = None) -> tuple[pl.DataFrame, list[Row]]:
    """All finished runs of `trials` trials (default: the longest): the trials' rows, and one stamp per run. What is not
    among the single runs is taken from the published `runs.parquet`, if there is one."""
    files = [path.read_text().splitlines() for path in sorted((out / suite / "runs").glob("*.jsonl"))]
    runs = [(json.loads(lines[0]), [json.loads(row) for row in lines[1:]]) for lines in files if lines]
    known = {_key(head) for head, _ in runs}
    if (out / suite / "runs.parquet").exists():
        published = pl.read_parquet(out / suite / "runs.parquet")
        for (head,), rows in published.group_by("stamp", maintain_order=True):
            if _key(json.loads(str(head))) not in known:
                runs.append((json.loads(str(head)), rows.drop("stamp").to_dicts()))
    finished = [(head, rows) for head, rows in runs if len(rows) == head["trials"]]
    if not finished:
        raise MissingFile(f"no finished runs in {out / suite}; run first: jumbo bench {suite}")
    trials = trials or max(head["trials"] for head, _ in finished)
    finished = [(head, rows) for head, rows in finished if head["trials"] == trials]
    if not finished:
        raise MissingFile(f"no finished runs of {trials} trials in {out / suite}")
    stamped = [{**row, "stamp": json.dumps(head)} for head, rows in finished for row in rows]
    return pl.DataFrame(stamped, infer_schema_length=None), [head for head, _ in finished]


def _published(out: Path, suite: str) -> set[tuple[Any, ...]]:
    path = out / suite / "runs.parquet"
    return {_key(json.loads(head)) for head in pl.read_parquet(path)["stamp"].unique()} if path.exists() else set()


def _key(head: Row) -> tuple[Any, ...]:
    return tuple(head.get(name) for name in ("problem", "method", "seed", "trials"))


@contextmanager
def in_workers() -> Iterator[Start]:
    """`execute` in single-threaded interpreters of their own."""
    with workers("jumbo_bo.bench.run") as do:
        yield lambda run, out, data, command: do(job_of(run, out, data, command))


def job_of(run: Run, out: Path, data: Path | None, command: str) -> Row:
    return {"run": asdict(run), "out": str(out), "data": str(data) if data else None, "command": command}


def _do(job: Row) -> None:
    execute(Run(**job["run"]), Path(job["out"]), Path(job["data"]) if job["data"] else None, job["command"])


def unfinished(runs: Sequence[Run], out: Path) -> list[Run]:
    published = {suite: _published(out, suite) for suite in {run.suite for run in runs}}
    return [run for run in runs if not run.finished(out) and _key(asdict(run)) not in published[run.suite]]


def run_suite(
    runs: Sequence[Run],
    out: Path,
    data: Path | None = None,
    command: str = "",
    jobs: int = 2,
    start: Start | None = None,
) -> dict[Run, str]:
    """Does what is not finished yet; returns the failures. `start` does a run, in a worker unless it is given."""
    if start is None:
        with in_workers() as start:
            return run_suite(runs, out, data, command, jobs, start)
    console = Console(stderr=True)
    todo = unfinished(runs, out)
    console.print(f"{len(runs)} runs, {len(runs) - len(todo)} already finished, {jobs} at a time")
    failures: dict[Run, str] = {}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    pool = ThreadPoolExecutor(jobs)
    try:
        with Progress(*columns, TextColumn("left"), TimeRemainingColumn(), console=console) as progress:
            bar = progress.add_task("runs", total=len(todo))
            futures = {pool.submit(start, run, out, data, command): run for run in todo}
            for future in as_completed(futures):
                run = futures[future]
                _settle(run, out, future.result(), failures)
                if run in failures:
                    last = failures[run].splitlines()[-1]
                    progress.console.print(f"failed: {run.problem} {run.method} seed {run.seed}: {last}", markup=False)
                progress.advance(bar)
    finally:  # after Ctrl-C, runs that have not started never do
        pool.shutdown(wait=True, cancel_futures=True)
    return failures


def _settle(run: Run, out: Path, error: str | None, failures: dict[Run, str]) -> None:
    path = run.failure_path(out)
    if error is None:
        path.unlink(missing_ok=True)
        return
    failures[run] = error
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(error + "\n")


def _like(text: str, example: Any) -> Any:
    """The option's text as the type of the value it replaces."""
    if isinstance(example, bool):
        if text.lower() not in ("true", "false"):
            raise InputError(f"{text!r} is neither true nor false")
        return text.lower() == "true"
    if isinstance(example, int) and re.fullmatch(r"[+-]?\d+", text):
        return int(text)
    if isinstance(example, str):
        return text
    if text.lower() == "none":
        return None
    try:
        return float(text)
    except ValueError:
        if isinstance(example, int | float):
            raise InputError(f"{text!r} is not a number") from None
        return text


if __name__ == "__main__":
    serve(_do)
