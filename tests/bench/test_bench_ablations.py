from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from jumbo_bo.bench import __main__ as command
from jumbo_bo.bench import ablations, interactive
from jumbo_bo.bench.ablations import ABLATIONS, Ablation, Variant
from jumbo_bo.bench.run import Run, parse_method, write
from jumbo_bo.bench.suites import SUITES
from jumbo_bo.learning.training import resolve

HEAD = {"commit": "a" * 40, "dirty": False, "versions": {"numpy": "2"}, "command": "c", "date": "2026-01-01"}


@pytest.fixture(autouse=True)
def small_script(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interactive, "share_plotly", lambda folder: (folder / "plotly.min.js").touch())


def put(out: Path, run: Run, regret: float) -> None:
    label = {"suite": run.suite, "problem": run.problem, "method": run.method, "seed": run.seed}
    times = {"cpu_ask": 0.0, "cpu_tell": 0.0}
    rows = [{**label, "trial": t, "regret": regret, **times} for t in range(1, run.trials + 1)]
    write(run.path(out), [{**label, "trials": run.trials, "unit": 1.0, "floor": 1.0, **HEAD}, *rows])


@pytest.mark.parametrize("name", ABLATIONS)
def test_every_variant_can_be_run(name: str) -> None:
    ablation = ABLATIONS[name]
    assert len({v.label for v in ablation.every}) == len(ablation.every)
    for run in ablation.runs([0, 1], 50):
        assert SUITES[ablation.suite].has(run.problem)
        recipe = parse_method(run.method)
        if hasattr(recipe, "preset"):
            resolve(recipe.preset)
    if ablation.axis:
        assert all(float(v.label.rpartition(" ")[2]) > 0 for v in ablation.variants)


def test_table_and_figure_of_made_up_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    variants = (Variant("A 10", "random", "rows=10"), Variant("A 100", "random", "rows=100"))
    ablation = Ablation("Which?", "fcnet-dt", ("naval", "slice"), variants, axis="rows")
    monkeypatch.setitem(ABLATIONS, "made-up", ablation)
    for run in ablation.runs(range(2), 5):  # GP-UCB ends at 10; A at 1000 or at 1, on either problem
        put(tmp_path, run, 10.0 if run.method == "gp-ucb" else 1000.0 if run.problem.endswith("rows=10") else 1.0)
    text = ablations.report(tmp_path, "made-up")
    assert "| GP-UCB | 1.00 ± 0.00 | 1.00 ± 0.00 | +0.00 ± 0.00 (4 runs) |" in text
    assert "| A 10 | 100.00 ± 0.00 | 100.00 ± 0.00 | +2.00 ± 0.00 (4 runs) |" in text
    assert "| A 100 | 0.10 ± 0.00 | 0.10 ± 0.00 | -1.00 ± 0.00 (4 runs) |" in text
    assert (tmp_path / "ablations" / "made-up.md").read_text() == text
    for suffix in (".png", ".html"):
        assert (tmp_path / "ablations" / "made-up.md").with_suffix(suffix).exists()
    assert len(pl.read_parquet(tmp_path / "fcnet-dt" / "runs.parquet")) == 12 * 5


def test_the_command_does_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ablation = Ablation("Which?", "fcnet-dt", ("naval",), (Variant("A", "random"),))
    monkeypatch.setitem(ABLATIONS, "made-up", ablation)
    asked: list[Run] = []

    def run_suite(runs: list[Run], out: Path, *_: object) -> dict[Run, str]:
        asked.extend(runs)
        for run in runs:
            put(out, run, 1.0)
        return {}

    monkeypatch.setattr(command, "run_suite", run_suite)
    words = ["ablation", "made-up", "--seeds", "2", "--trials", "3", "--out", str(tmp_path)]
    done = CliRunner().invoke(command.app, words)
    assert done.exit_code == 0, done.output
    assert {(run.method, run.seed, run.trials) for run in asked} == {
        (method, seed, 3) for method in ("gp-ucb", "random") for seed in (0, 1)
    }
    assert "| A | 1.00 ± 0.00 |" in done.output
    assert CliRunner().invoke(command.app, ["ablation", "nonsense"]).exit_code == 2
