"""The table that columns are guessed from: all rows, or a sample of very many."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo.errors import UserError
from jumbo_bo.study import table
from jumbo_bo.study.guess import guess
from jumbo_bo.study.table import read_table

N = 5_000


def test_files_are_read_together(tmp_path: Path) -> None:
    pl.DataFrame({"x": [1, 2], "loss": [0.1, 0.2]}).write_csv(tmp_path / "a.csv")
    pl.DataFrame({"x": ["3", "auto"], "loss": [0.1, 0.2], "y": [1.5, 2.5]}).write_parquet(tmp_path / "b.parquet")
    (tmp_path / "c.jsonl").write_text('{"x": true, "loss": 3}\n')
    assert read_table(f"{tmp_path}/a.csv").frame.to_dict(as_series=False) == {"x": [1, 2], "loss": [0.1, 0.2]}
    both = read_table([f"{tmp_path}/*.csv", tmp_path / "b.parquet"]).frame
    assert both["x"].to_list() == ["1", "2", "3", "auto"]
    assert both["y"].to_list() == [None, None, 1.5, 2.5]
    assert read_table(tmp_path / x for x in ("a.csv", "b.parquet", "c.jsonl")).rows == 5


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").touch()
    (tmp_path / "head.csv").write_text("x,loss\n")
    (tmp_path / "bad.parquet").write_text("no parquet")
    for name, expected in [
        ("none.csv", "none.csv does not exist"),
        ("empty.csv", "empty.csv is empty"),
        ("head.csv", "no rows"),
        ("bad.parquet", "cannot be read as PARQUET"),
    ]:
        with pytest.raises(UserError, match=expected):
            read_table(tmp_path / name)


def long(**columns: object) -> pl.DataFrame:
    """A table that is long beside the bounds in the tests."""
    rng = np.random.default_rng(3)
    return pl.DataFrame({"x": rng.uniform(0.1, 0.9, N), "loss": rng.normal(size=N)} | columns)


def with_rare(common: object, **rare: object) -> list[object]:
    cells = [common] * N
    for at, value in rare.items():
        cells[int(at[1:])] = value
    return cells


def test_a_sample_has_what_is_rare_and_extreme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "BATCH", 512)
    monkeypatch.setattr(table, "FEW", 50)
    rng = np.random.default_rng(4)
    units = rng.integers(20, 400, N)
    units[3210], units[99] = 512, 16
    long(
        units=units,
        activation=with_rare("relu", _4321="swish", _17="tanh"),
        momentum=with_rare(0.9, _4999=0.5, _2500=float("inf"), _2600=None),
        auto=[*map(str, range(100, 100 + N - 1)), "auto"],
        step=range(N),
    ).write_parquet(tmp_path / "runs.parquet")
    frame, rows = read_table(tmp_path / "runs.parquet", most=200)
    assert rows == N
    assert 200 <= frame.height < 300
    found = guess(frame, rows=rows)
    assert dict(found.space.distributions) == {
        "x": FloatDistribution(0.1, 0.9),
        "units": IntDistribution(16, 512),
        "activation": CategoricalDistribution(("relu", "swish", "tanh")),
        "momentum": CategoricalDistribution((0.5, 0.9)),
        "auto": IntDistribution(100, 5200),
    }
    assert "counts the rows" in found.notes["step"]
    assert f"{frame.height:,} of 5,000 rows" in found.sample


def test_a_text_column_with_many_values_stays_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "FEW", 50)
    long(label=[f"run {i}" for i in range(N)]).write_csv(tmp_path / "runs.csv")
    frame, rows = read_table(tmp_path / "runs.csv", most=100)
    assert frame.height < 200  # not every one of them is rare
    assert "different values" in guess(frame, rows=rows).notes["label"]


def test_the_same_files_give_the_same_sample(tmp_path: Path) -> None:
    long().write_csv(tmp_path / "a.csv")
    long().write_parquet(tmp_path / "b.parquet")
    first, second = (read_table([tmp_path / "a.csv", tmp_path / "b.parquet"], most=300) for _ in range(2))
    assert first.frame.equals(second.frame)
    assert first.rows == 2 * N
    assert 300 <= first.frame.height < 350


def test_all_rows_up_to_the_bound(tmp_path: Path) -> None:
    whole = long()
    whole.write_parquet(tmp_path / "runs.parquet")
    read = read_table(tmp_path / "runs.parquet", most=N)
    assert read.frame.equals(whole)
    assert guess(read.frame, rows=read.rows).sample == ""


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    cells=st.lists(
        st.one_of(st.none(), st.floats(width=32), st.sampled_from([1.5, 2.5])), min_size=21, max_size=300
    ).filter(lambda cells: any(c is not None and np.isfinite(c) for c in cells)),
    size=st.integers(1, 64),
)
def test_extremes_and_few_values_are_always_there(cells: list[float | None], size: int, tmp_path: Path) -> None:
    path = tmp_path / "runs.parquet"
    pl.DataFrame({"x": cells}, schema={"x": pl.Float64}).write_parquet(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "BATCH", size)
        found = read_table(path, most=20).frame["x"].drop_nulls().to_list()
    finite = [c for c in cells if c is not None and np.isfinite(c)]
    assert {min(finite), max(finite)} <= set(found)
    assert {c for c in cells if c is not None and not np.isnan(c)} == {c for c in found if not np.isnan(c)}
