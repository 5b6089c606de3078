from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from jumbo_bo.bench import compression
from jumbo_bo.bench.suites import Suite
from jumbo_bo.bench.synthetic import problem


def test_share_of_known_variances() -> None:
    rng = np.random.default_rng(0)
    rotation, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    points = rng.normal(size=(200_000, 3)) * [3.0, 2.0, 1.0] @ rotation + 5.0
    assert compression.share(points) == pytest.approx([9 / 14, 13 / 14, 1.0], abs=0.01)
    assert compression.share(np.ones((10, 2))).tolist() == [1.0, 1.0]


def test_what_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "N_Z", 8)
    suite = Suite("", ("branin",), lambda name, _, seed: problem(name, seed), net="default")
    monkeypatch.setitem(compression.SUITES, "tiny", suite)
    text = compression.compression(tmp_path, "tiny", 1, "jumbo bench compression tiny")
    assert "| branin |" in text
    assert "    jumbo bench compression tiny" in text
    frame = pl.read_parquet(tmp_path / "tiny" / "compression.parquet")
    last = frame.group_by("kind").agg(pl.col("share").last(), pl.len())
    assert sorted(last["len"]) == [2, 32, 32]  # two parameters; four nets of eight features side by side
    assert last["share"].to_list() == pytest.approx([1.0] * 3)
    assert (tmp_path / "tiny" / "compression.png").exists()
