"""Tables read in batches: nothing that is counted or said depends on the batches or on the sample."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo.data.frames import Columns, Source
from jumbo_bo.data.history import History, collected
from jumbo_bo.data.stream import Collector
from jumbo_bo.space.space import Space

SPACE = Space(
    {
        "lr": FloatDistribution(1e-3, 1, log=True),
        "x": FloatDistribution(0, 1),
        "act": CategoricalDistribution(["relu", "tanh", None]),
        "layers": IntDistribution(1, 4),
        "lost": FloatDistribution(0, 1),  # no column has it
    }
)
COLUMNS: dict[str, Any] = {"task": "set", "objective": "loss"}
CELLS: dict[str, st.SearchStrategy[Any]] = {
    "lr": st.sampled_from([0.001, 0.01, 0.1, 1.0, 5.0, float("nan"), None]),
    "x": st.sampled_from(["0.5", "1", "auto", " 0.25", "nan", "2", None]),
    "act": st.sampled_from(["relu", "tanh", "lion", None]),
    "layers": st.sampled_from([1, 2, 3, 4, 7, None]),
    "loss": st.sampled_from([0.5, 1.0, 2.0, 1e7, float("inf"), float("nan"), None]),
    "set": st.sampled_from(["a", "b", "c", None]),
}
ROWS = st.lists(st.tuples(*CELLS.values()), min_size=1, max_size=80)


def read(frame: pl.DataFrame | pl.LazyFrame, batch: int, **options: Any) -> History:
    collector = Collector(SPACE, Columns.of({**COLUMNS, **options}), batch)
    collector.read(frame, Source("frame", "frame"))
    return collected(collector)


def table(rows: list[tuple[Any, ...]]) -> pl.DataFrame:
    types = {"lr": pl.Float64, "x": pl.String, "act": pl.String, "layers": pl.Int64, "loss": pl.Float64}
    return pl.DataFrame(rows, schema={**types, "set": pl.String}, orient="row")


@given(ROWS)
def test_batches_change_nothing(rows: list[tuple[Any, ...]]) -> None:
    frame = table(rows)
    whole = read(frame, 10**6)
    for batch in (1, 7):
        part = read(frame, batch)
        assert part.fingerprint == whole.fingerprint
        assert [list(r.read.items()) for r in part.reports] == [list(r.read.items()) for r in whole.reports]
        assert part.summary() == whole.summary()
        assert read(frame.lazy(), batch).fingerprint == whole.fingerprint


@given(ROWS, st.integers(1, 20))
def test_a_sample_changes_no_count_and_no_message(rows: list[tuple[Any, ...]], most: int) -> None:
    frame = table(rows * 5)
    whole = read(frame, 10**6)
    few = {batch: read(frame, batch, most_rows=most) for batch in (1, 7, 1000)}
    for part in few.values():
        assert part.fingerprint == few[1].fingerprint
        assert part.reports == whole.reports
        assert (part.n_usable, len(part.constant)) == (whole.n_rows, len(whole.constant))
        for kept, all_of_it in zip(part.tasks, whole.tasks, strict=True):
            assert kept.of == all_of_it.of == (len(all_of_it.y), len(all_of_it.failed))
            assert (kept.y.min(), kept.y.max()) == (all_of_it.y.min(), all_of_it.y.max())
            assert {*map(bytes, kept.u)} <= {*map(bytes, all_of_it.u)}
            assert {*map(bytes, kept.failed)} <= {*map(bytes, all_of_it.failed)}


@given(ROWS, st.integers(1, 20))
def test_the_first_bad_row_is_the_error(rows: list[tuple[Any, ...]], most: int) -> None:
    frame = table(rows)
    messages = []
    for options in ({"batch": 10**6}, {"batch": 7}, {"batch": 3, "most_rows": most}):
        try:
            read(frame, on_bad_rows="error", **options)
            messages.append("")
        except ValueError as error:
            messages.append(str(error))
    assert len(set(messages)) == 1


def many(n: int) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "lr": 10 ** rng.uniform(-3, 0, n),
            "x": rng.random(n),
            "act": rng.choice(["relu", "tanh"], n),
            "layers": rng.integers(1, 5, n),
            "loss": rng.random(n) + 1,
            "set": "a",
        }
    )


def test_a_sorted_table_gives_the_same_kind_of_sample() -> None:
    frame = many(40_000)
    for column in ("loss", "lr"):
        h = read(frame.sort(column), 1000, most_rows=4000)
        (task,) = h.tasks
        assert len(task.y) == 4000
        values = task.u[:, 0] if column == "lr" else 2 + task.y
        assert np.histogram(values, 5, (0, 1))[0] == pytest.approx(800, rel=0.15)
    assert "learning from a random sample of 4,000 of them" in h.summary()
    assert "40,000 / 40,000" in h.summary()


def test_failed_rows_are_bounded() -> None:
    frame = many(40_000).with_columns(loss=pl.when(pl.col("x") < 0.5).then(None).otherwise("loss"))
    h = read(frame, 1000, most_rows=2000)
    (task,) = h.tasks
    assert (len(task.y), len(task.failed), sum(task.of)) == (2000, 200, 40_000)
    assert f"{task.of[1]:,} failed" in h.summary()


def test_a_row_of_its_own_task_is_kept_among_many() -> None:
    frame = many(30_000)
    lonely = frame[:1].with_columns(set=pl.lit("b"))
    for place in (0, 15_000, 30_000):
        h = read(pl.concat([frame[:place], lonely, frame[place:]]), 1000, most_rows=500)
        assert {t.name: len(t.y) for t in h.tasks} == {"a": 499, "b": 1}


@pytest.mark.parametrize("most", [0, -1, 2.5, "all"])
def test_most_rows_is_a_whole_number(most: Any) -> None:
    with pytest.raises(ValueError, match=r"most_rows is .*, expected a whole number of at least 1"):
        read(many(3), 10, most_rows=most)
