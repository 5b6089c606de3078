"""Files large and elsewhere: types decided by the whole file, damaged files, addresses, the bar."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from optuna.distributions import FloatDistribution

from jumbo_bo.data.files import SMALL, count_rows, scan
from jumbo_bo.data.readers import read_history
from jumbo_bo.data.reading_bar import reading_bar
from jumbo_bo.space.space import Space

SPACE = Space({"a": FloatDistribution(0, 1), "b": FloatDistribution(0, 1)})
N = 40_000


def frame(n: int = N) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    return pl.DataFrame({"a": rng.random(n), "b": rng.random(n), "value": rng.random(n), "note": "x"})


@pytest.mark.parametrize("cell", ["0.5", "auto", "nan", "Infinity", "inf", "", "1e-3", "true"])
@pytest.mark.parametrize("column", ["a", "whole", "yes", "late", "note"])
def test_the_whole_file_decides_a_type(tmp_path: Path, column: str, cell: str) -> None:
    columns = {"whole": pl.int_range(N), "yes": pl.lit("true"), "late": pl.lit("")}
    text = frame().with_columns(**columns).cast(pl.String)
    last = pl.lit(cell) if cell else pl.lit(None)
    text = text.with_columns(pl.when(pl.int_range(N) == N - 1).then(last).otherwise(column).alias(column))
    file = tmp_path / "runs.csv"
    text.write_csv(file)
    assert file.stat().st_size > SMALL
    assert scan(file).collect_schema() == pl.scan_csv(file, infer_schema_length=None).collect_schema()


def test_kinds_of_files_agree_on_many_rows(tmp_path: Path) -> None:
    rows = frame()
    rows.write_csv(tmp_path / "runs.csv")
    rows.write_parquet(tmp_path / "runs.parquet", row_group_size=999)
    csv, parquet = (read_history(tmp_path / f"runs.{kind}", SPACE, most_rows=500) for kind in ("csv", "parquet"))
    assert csv.fingerprint == parquet.fingerprint
    assert (csv.n_rows, csv.n_usable) == (500, N)
    assert count_rows([tmp_path / "runs.csv", tmp_path / "runs.parquet"]) == 2 * N


def test_one_bound_for_all_files(tmp_path: Path) -> None:
    for i in range(4):
        frame(1000).write_parquet(tmp_path / f"{i}.parquet")
    h = read_history(tmp_path / "*.parquet", SPACE, most_rows=400)
    assert [(len(t.y), t.of[0]) for t in h.tasks] == [(100, 1000)] * 4


@pytest.mark.parametrize("kept", [100, 0.5, 0.99])
def test_a_file_cut_short(tmp_path: Path, kept: float) -> None:
    file = tmp_path / "runs.parquet"
    frame().write_parquet(file, row_group_size=1000)
    whole = file.read_bytes()
    file.write_bytes(whole[: int(kept if kept > 1 else kept * len(whole))])
    with pytest.raises(ValueError, match=r"runs\.parquet cannot be read as PARQUET: "):
        read_history(file, SPACE)


def test_a_damaged_page_in_the_middle(tmp_path: Path) -> None:
    file = tmp_path / "runs.parquet"
    frame().write_parquet(file, row_group_size=1000)
    data = bytearray(file.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 5000] = b"\xff" * 5000
    file.write_bytes(data)
    with pytest.raises(ValueError, match=r"runs\.parquet cannot be read as PARQUET: "):
        read_history(file, SPACE)


def test_addresses_are_read_by_polars(tmp_path: Path) -> None:
    for name in ("one", "two"):
        frame(100).write_parquet(tmp_path / f"{name}.parquet")
    here = read_history(tmp_path / "one.parquet", SPACE)
    assert read_history(f"file://{tmp_path}/one.parquet", SPACE).fingerprint == here.fingerprint
    (both,) = read_history(f"file://{tmp_path}/*.parquet", SPACE).tasks  # a pattern elsewhere is one table
    assert len(both.y) == 200


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("file:///no/such.parquet", "file:///no/such.parquet cannot be read as PARQUET: "),
        ("nosuch://x/runs.csv", "nosuch://x/runs.csv cannot be read as CSV: "),
        ("s3://bucket/runs.jsonl", r"unknown file type '.jsonl'; expected one of .csv, .tsv, .parquet"),
    ],
)
def test_addresses_that_cannot_be_read(address: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_history(address, SPACE)


def test_the_bar_shows_rows_and_speed_once_it_takes_long(capsys, monkeypatch) -> None:
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "120"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    with reading_bar(lambda: 1000) as seen:
        seen(500)
    assert capsys.readouterr().err == ""
    with reading_bar(lambda: 1000, patience=0.0) as seen:
        seen(500)
    assert "500 rows, " in capsys.readouterr().err


def test_no_bar_without_a_terminal(capsys) -> None:
    with reading_bar(lambda: 1000, patience=0.0) as seen:
        seen(500)
    captured = capsys.readouterr()
    assert captured.out + captured.err == ""
