"""Programs with time limits, the cache, the problem and the search, with a cheap stand-in for the simulators."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from rich.console import Console
from typer.testing import CliRunner

from jumbo_bo.bench.__main__ import app
from jumbo_bo.bench.circuit import TASK, evaluate, problem, programs, search, show, signals
from jumbo_bo.bench.circuit.design import SPACE, Design
from jumbo_bo.bench.circuit.evaluate import Cache, Result
from jumbo_bo.bench.circuit.measure import Specs
from jumbo_bo.bench.circuit.programs import Failed
from jumbo_bo.bench.run import Run, write
from jumbo_bo.bench.suites import SUITES
from jumbo_bo.errors import UserError

DESIGN = Design.of(SPACE.decode(np.full(8, 0.5)))
SPECS = Specs(gain=50, ugb=4e9, pm=70, power=0.6e-3, noise=7e-9, settling=0.5e-9, offset=0, step=0.2)


def pretend(design: Design, mode: str) -> Result:
    """Layouts are a bit worse than schematics; designs with a tiny current fail."""
    u = SPACE.encode(design.params)
    if u[0] < 0.1:
        return Result(None, math.nan, "no solution")
    value = -float(np.sum((u - (0.4 if mode == "layout" else 0.5)) ** 2))
    return Result(replace(SPECS, gain=50 + value), value)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The modes that were evaluated."""
    made: list[str] = []

    def counted(design: Design, mode: str) -> Result:
        made.append(mode)
        return pretend(design, mode)

    monkeypatch.setattr(evaluate, "evaluate", counted)
    return made


def test_a_program_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    start = time.monotonic()
    with pytest.raises(Failed, match="bash did not finish within 2 s"):
        programs.run(["bash", "-c", "sleep 61.25 & echo $! > child; wait"], tmp_path, 2.0)
    assert time.monotonic() - start < 50
    child = int((tmp_path / "child").read_text())
    for _ in range(100):
        stat = Path(f"/proc/{child}/stat")
        if not stat.exists() or stat.read_text().split()[2] == "Z":
            return
        time.sleep(0.05)
    raise AssertionError("the child lives on")


def test_a_crash_is_a_failed_trial(tmp_path: Path) -> None:
    with pytest.raises(Failed, match="killed by SIGSEGV: about to fail"):
        programs.run(["bash", "-c", "echo about to fail; kill -SEGV $$"], tmp_path, 10)


def test_a_missing_program_names_its_package(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="apt-get install --no-install-recommends nospice"):
        programs.run(["nospice"], tmp_path, 10)


def test_output_is_returned(tmp_path: Path) -> None:
    assert programs.run(["bash", "-c", "pwd; echo oops >&2"], tmp_path, 10) == f"{tmp_path}\noops\n"


def test_a_failed_simulation_is_a_result_and_leaves_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    used = []

    def fails(design: Design, mode: str, folder: Path) -> None:
        used.append(folder)
        raise Failed("timestep too small")

    monkeypatch.setattr(evaluate, "run", fails)
    results = list(evaluate.evaluate_many([DESIGN] * 3, "schematic", jobs=2))
    assert [result.error for result in results] == ["timestep too small"] * 3
    assert all(math.isnan(result.score) and result.specs is None for result in results)
    assert len(set(used)) == 3
    assert not any(folder.exists() for folder in used)


def test_an_unknown_mode_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'lay', expected one of"):
        evaluate.run(DESIGN, "lay", tmp_path)  # type: ignore[arg-type]


def test_the_cache_is_shared_and_survives(tmp_path: Path, calls: list[str]) -> None:
    path = tmp_path / "new" / "layouts.jsonl"
    one, two = Cache(path, "layout"), Cache(path, "layout")
    first = one(DESIGN)
    assert one(DESIGN) is first
    assert two(DESIGN) == first  # from the file
    assert len(calls) == 1
    with path.open("a") as file:
        file.write('{"key": "killed while wri')
    other = replace(DESIGN, ratio=3.0)
    assert two(other) == Cache(path, "layout")(other) == one(other)
    assert len(calls) == 2
    assert TASK in json.loads(path.read_text().splitlines()[0])["key"]
    assert Cache(path, "schematic")(DESIGN) != first  # another mode is another result
    assert len(calls) == 3


def test_failures_are_not_written(tmp_path: Path, calls: list[str]) -> None:
    cache = Cache(tmp_path / "c.jsonl", "layout")
    weak = replace(DESIGN, i_tail=50e-6)
    assert math.isnan(cache(weak).score)
    assert math.isnan(cache(weak).score)  # the same for one process
    assert len(calls) == 1
    assert not cache.path.exists()
    assert math.isnan(Cache(cache.path, "layout")(weak).score)
    assert len(calls) == 2


def test_several_may_append_at_the_same_time(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"

    def append(who: int) -> None:
        cache = Cache(path, "layout")
        for i in range(50):
            cache._append({"who": who, "i": i, "text": "x" * 20_000})

    with ThreadPoolExecutor(4) as pool:  # the lock is one of open files, so threads are like processes to it
        list(pool.map(append, range(4)))
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert sorted((row["who"], row["i"]) for row in rows) == [(who, i) for who in range(4) for i in range(50)]


@pytest.fixture
def best(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(problem, "best_known", lambda mode="layout": {"score": -0.1, "layout_score": -0.4})


@pytest.mark.usefixtures("best")
def test_the_problem(tmp_path: Path, calls: list[str]) -> None:
    made = problem.problem(100, tmp_path, count=60)
    failed = 60 - len(made.history.tasks[0].y)
    assert calls == ["schematic"] * 60
    assert 0 < failed < 30
    assert [task.name for task in made.history.tasks] == list(problem.TASKS)
    score, margin, bandwidth = made.history.tasks
    assert np.allclose(score.y, [-np.sum((u - 0.5) ** 2) for u in score.u])
    assert set(margin.y) == {70.0}
    assert np.allclose(bandwidth.y, np.log10(4e9))
    rng = np.random.default_rng(0)
    assert made.objective(DESIGN.params, rng) == pytest.approx(-8 * 0.1**2)
    assert made.regret(DESIGN.params) == 0.0  # better than the best known
    assert calls.count("layout") == 1  # the second one is from the cache
    other = SPACE.decode(np.full(8, 0.8))
    assert made.regret(other) == pytest.approx(8 * 0.4**2 - 0.1)
    weak = replace(DESIGN, i_tail=50e-6).params
    assert math.isnan(made.objective(weak, rng))
    assert made.regret(weak) == math.inf
    assert made.direction == "maximize"
    assert made.landmarks == pytest.approx({problem.SCHEMATIC: 0.3})


@pytest.mark.usefixtures("best")
def test_the_suite_prepares_seeds_and_takes_fewer_signals(
    tmp_path: Path, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUMBO_CACHE", str(tmp_path))
    monkeypatch.setattr(problem, "check_tools", lambda: None)
    suite = SUITES["circuit"]
    suite.prepare([TASK], {1, 0}, 2)
    assert calls == ["schematic"] * 2000
    all_three, one = suite(TASK, None, 0), suite(f"{TASK}@tasks=1", None, 0)
    assert [len(made.history.tasks) for made in (all_three, one)] == [3, 1]
    assert one.history.tasks[0].name == "schematic score"
    assert len(calls) == 2000
    for wrong, words in (("tasks=7", "expected 1 to 3"), ("rows=9", "write options as sky130-opamp-1@tasks=1")):
        with pytest.raises(ValueError, match=words):
            suite(f"{TASK}@{wrong}", None, 0)


@pytest.mark.parametrize("missing", ["ngspice", "magic", "sky130"])
def test_without_its_tools_no_run_begins(missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda program: None if program == missing else program)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=rf"run: (apt-get|pip) install .*{missing}"):
        problem.prepare([0], 1, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_finished_runs_need_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    write(Run("circuit", TASK, "random", 0, 2).path(tmp_path), [{}] * 3)
    command = ["circuit", "--methods", "random", "--trials", "2", "--out", str(tmp_path), "--seeds"]
    assert CliRunner().invoke(app, [*command, "1"]).exit_code == 0
    missing = CliRunner().invoke(app, [*command, "2"])
    assert isinstance(missing.exception, UserError)


def test_signals_that_agree_and_those_that_do_not() -> None:
    designs = [Design.of(SPACE.decode(u)) for u in SPACE.sample(np.random.default_rng(0), 50)]
    layouts = problem.tabulate(designs, [pretend(design, "layout") for design in designs])
    better = layouts.with_columns(pl.col("score") + 0.5, pm=pl.int_range(50.0), ugb=10 ** -pl.col("score"))
    found = signals.correlations(layouts, better)
    assert found["schematic score"] == pytest.approx((1, 1, 1))
    assert found["log UGB"] == pytest.approx((-1, -1, 0))
    assert abs(found["phase margin"][1]) < 0.5
    with pytest.raises(ValueError, match="the two tables have different designs"):
        signals.correlations(layouts, better.reverse())


@pytest.mark.usefixtures("best")
def test_old_runs_are_simulated_once_and_differ_by_seed(tmp_path: Path, calls: list[str]) -> None:
    one, again, other = (problem.problem(seed, tmp_path, count=60).history for seed in (100, 100, 101))
    assert len(calls) == 120
    assert one.fingerprint == again.fingerprint != other.fingerprint
    assert len(problem.problem(100, tmp_path, ["phase margin"], count=60).history.tasks) == 1
    with pytest.raises(ValueError, match="no old task"):
        problem.problem(100, tmp_path, ["gain"])


def test_when_nothing_works_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluate, "evaluate", lambda design, mode: Result(None, math.nan, "model not found"))
    with pytest.raises(UserError, match="20 of 20 schematic simulations failed, for example: model not found"):
        problem.offline(100, tmp_path, count=20)


def test_the_search_finds_the_best_and_repeats_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "RANDOM", 30)
    monkeypatch.setattr(search, "RUNS", ((60, 10), (30, 10)))
    monkeypatch.setattr(search, "POLISH", (30, 10))
    one, two = (search.search(lambda design: pretend(design, "layout"), 100) for _ in range(2))
    assert [row["score"] for row in one if row["score"] == row["score"]] == [
        row["score"] for row in two if row["score"] == row["score"]
    ]
    assert {row["part"] for row in one} == {"random", "cma-es 1", "cma-es 2", "polish"}
    assert max(row["score"] for row in one if row["score"] == row["score"]) > -0.2


@pytest.mark.parametrize("mode", evaluate.MODES)
def test_best_known_is_complete(mode: evaluate.Mode) -> None:
    best = search.best_known(mode)
    assert best["task"] == TASK
    assert best["search"]["evaluations"] >= 3000
    Design.of(best["design"])
    assert best["score"] == pytest.approx(evaluate.score(Specs(**best["specs"])))


def test_the_best_schematic_is_not_the_best_layout() -> None:
    assert search.best_known("schematic")["layout_score"] < search.best_known()["score"]


def test_tables_show_both_modes() -> None:
    console = Console(width=100, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(show.spec_table({"schematic": SPECS, "layout": replace(SPECS, ugb=1.5e9)}))
    console.print(show.device_table(DESIGN))
    console.file.close()
    text = console.export_text()
    assert ">= 3 GHz" in text
    assert "1.5 *" in text
    assert "-0.333" in text
    assert "M6" in text
