"""The suites of tables that others measured: what they hold, what an optimizer sees, which half a task is in."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from optuna.distributions import CategoricalDistribution

from jumbo_bo.bench.run import Run, run_one, split_names
from jumbo_bo.bench.sources import SOURCES, Source
from jumbo_bo.bench.suites import SUITES
from jumbo_bo.bench.transfer import tables
from jumbo_bo.errors import UserError

EVERY = pytest.mark.parametrize("name", SOURCES)


def found(source: Source) -> Path:
    try:
        return source.folder(None) / source.file
    except FileNotFoundError as error:
        pytest.skip(str(error))


def small(folder: Path, source: Source, **changes: pl.Expr) -> Path:
    """A made-up file of suzuki: 2 x 2 x 2 conditions, one of them missing, yields 0, 1, ... in every task."""
    rows = [(b, a, s) for b in "ab" for a in "cd" for s in "ef"][:7]
    frame = pl.DataFrame(rows, schema=source.parameters, orient="row").with_columns(yield_=pl.arange(7.0, eager=True))
    parts = [frame.with_columns(task=pl.lit(task)) for task in source.tasks.values()]
    whole = pl.concat(parts).rename({"yield_": "yield"}).select(*source.parameters, "task", "yield")
    whole.with_columns(**changes).write_parquet(folder / source.file)
    return folder


@EVERY
def test_names_are_plain_and_halves_are_apart(name: str) -> None:
    source, suite = SOURCES[name], SUITES[name]
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9.-]{0,24}", problem) for problem in source.tasks)
    assert len(set(source.tasks.values())) == len(source.tasks)
    assert not set(source.development) & set(source.report)
    assert {*source.development, *source.report} == set(source.tasks)
    assert suite.problems == source.report[:20]
    listed = [f"{problem}@rows=50,tasks=3" for problem in suite.problems]
    assert split_names(",".join(listed)) == listed
    assert Run(name, listed[0], "random", 0, 5).path(Path()).name == f"{listed[0]}.random.t5.s0000.jsonl"


def test_the_halves_stay_as_they_are() -> None:
    """Results are comparable only as long as nobody moves a task from one half to the other."""
    assert SOURCES["gpu"].development == ("w7800", "a100", "mi250x")
    assert SOURCES["suzuki"].development[:2] == ("triflate-acid", "iodide-trifluoroborate")
    assert SOURCES["lcbench"].development[:3] == ("christine", "miniboone", "bank-marketing")
    assert SOURCES["x264"].report[:3] == ("v39", "v129", "v20")
    assert SOURCES["buchwald"].report[:2] == ("cf3-iodide", "methoxy-bromide")
    assert {name: (len(s.development), len(s.report)) for name, s in SOURCES.items()} == {
        "lcbench": (15, 20),
        "x264": (75, 75),
        "gpu": (3, 3),
        "suzuki": (6, 6),
        "buchwald": (7, 8),
    }


@EVERY
def test_tuning_never_sees_a_report_task(name: str) -> None:
    source = SOURCES[name]
    for target in source.tasks:
        others = set(source.others(target))
        assert others == {*(source.development if target in source.development else source.tasks)} - {target}


@EVERY
def test_the_file_is_what_the_suite_says(name: str) -> None:
    source = SOURCES[name]
    path = found(source)
    frame = pl.read_parquet(path)
    assert frame.columns == [*source.parameters, "task", source.objective]
    assert set(frame["task"]) == set(source.tasks.values())
    space, parts = tables(source, path)
    assert sum(map(len, parts.values())) == len(frame)
    for table in parts.values():
        assert table.select(space.names).is_unique().all()
    if name != "lcbench":
        assert all(isinstance(d, CategoricalDistribution) for d in space.distributions.values())
    else:
        logs = [name for name, d in space.distributions.items() if getattr(d, "log", False)]
        assert tuple(logs) == source.log_scaled


@EVERY
def test_regret_goes_from_the_best_to_the_median(name: str) -> None:
    source, suite = SOURCES[name], SUITES[name]
    table = tables(source, found(source))[1][suite.problems[0]]
    problem = suite(suite.problems[0], None, 3)
    value = table[source.objective].to_numpy()
    rows = table.select(problem.space.names).to_dicts()
    regret = np.array([problem.regret(params) for params in rows])
    best = value.argmin() if source.direction == "minimize" else value.argmax()
    assert regret[best] == regret.min() == 0.0
    assert np.median(regret) == pytest.approx(1.0)
    sign = 1.0 if source.direction == "minimize" else -1.0
    assert (np.argsort(regret, kind="stable") == np.argsort(sign * value, kind="stable")).all()
    assert 1e-3 <= problem.floor == pytest.approx(max(1e-3, np.unique(regret)[1]))
    shown = problem.objective(rows[5], np.random.default_rng(0))
    assert shown == pytest.approx(np.log(value[5]) if name == "x264" else value[5])


@EVERY
def test_old_runs_are_those_of_other_tasks(name: str) -> None:
    source, suite = SOURCES[name], SUITES[name]
    parts = tables(source, found(source))[1]
    target = suite.problems[0]
    problem = suite(target, None, 3)
    names = [task.name for task in problem.history.tasks]
    assert set(names) <= set(source.others(target))
    assert len(names) == (60 if name == "x264" else len(source.tasks) - 1)
    old = problem.history.tasks[0]
    assert len(old.y) == (1000 if name == "gpu" else len(parts[old.name]))
    configurations = {
        tuple(problem.space.encode(row)) for row in parts[old.name].select(problem.space.names).to_dicts()
    }
    assert {tuple(u) for u in old.u} <= configurations
    few = [suite(f"{target}@rows=20,tasks=2", None, seed).history for seed in (3, 3, 4)]
    assert [len(task.y) for task in few[0].tasks] == [20, 20]
    assert few[0].fingerprint == few[1].fingerprint != few[2].fingerprint


@EVERY
def test_only_measured_configurations_are_tried(name: str) -> None:
    found(SOURCES[name])
    problem = SUITES[name](f"{SUITES[name].problems[0]}@rows=20,tasks=2", None, 3)
    assert (problem.candidates is None) == (name == "suzuki")  # the only complete grid
    for method in ("random", "gp-ucb", "tpe"):
        rows, _ = run_one(problem, method, 3, 6)
        assert all(np.isfinite(row["regret"]) for row in rows)


def test_a_missing_file_is_named_with_its_source(tmp_path: Path) -> None:
    with pytest.raises(
        FileNotFoundError, match=r"no lcbench\.parquet in .*ltiao/LCBenchLite @ 42ea3c2f .*momentum.*--data"
    ):
        SUITES["lcbench"]("adult", tmp_path, 0)
    assert SUITES["lcbench"].without_data(tmp_path) == tuple(SOURCES["lcbench"].tasks)


def test_unknown_problems_and_options_are_refused(tmp_path: Path) -> None:
    suite, folder = SUITES["suzuki"], small(tmp_path, SOURCES["suzuki"])
    with pytest.raises(ValueError, match="choose one of"):
        suite("nonsense", folder, 0)
    for wrong in ("tasks=12", "tasks=0", "rows=0", "rows=few"):
        with pytest.raises(ValueError, match="expected 1 to"):
            suite(f"triflate-trifluoroborate@{wrong}", folder, 0)
    with pytest.raises(ValueError, match="write options as triflate-trifluoroborate@rows=300,tasks=1"):
        suite("triflate-trifluoroborate@row=1", folder, 0)


def test_a_table_that_is_no_grid(tmp_path: Path) -> None:
    folder = small(tmp_path, SOURCES["suzuki"])
    problem = SUITES["suzuki"]("triflate-trifluoroborate", folder, 0)
    assert problem.candidates is not None
    assert len(problem.candidates) == 7
    assert [problem.regret(params) for params in problem.candidates] == [2.0, 5 / 3, 4 / 3, 1.0, 2 / 3, 1 / 3, 0.0]
    with pytest.raises(ValueError, match="was not measured"):
        problem.regret({"base": "b", "ligand": "d", "solvent": "f"})
    rows, _ = run_one(problem, "random", 0, 7)
    assert rows[-1]["regret"] == 0.0, "seven trials without repeats are all seven rows"


def test_files_that_are_not_what_they_should_be(tmp_path: Path) -> None:
    source = SOURCES["suzuki"]
    folder = small(tmp_path, source)
    pl.read_parquet(folder / source.file).drop("ligand").write_parquet(folder / source.file)
    with pytest.raises(UserError, match="has no column ligand; it has base, solvent, task, yield"):
        SUITES["suzuki"]("triflate-trifluoroborate", folder, 0)
    (other := tmp_path / "other").mkdir()
    with pytest.raises(UserError, match=r"has no rows of .*its tasks are x"):
        SUITES["suzuki"]("triflate-trifluoroborate", small(other, source, task=pl.lit("x")), 0)
    (flat := tmp_path / "flat").mkdir()
    with pytest.raises(UserError, match="half of the table has the best value"):
        SUITES["suzuki"]("triflate-trifluoroborate", small(flat, source, **{"yield": pl.col("yield").clip(0, 2)}), 0)
