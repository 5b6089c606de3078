"""A bounded sample of each task: exact up to the bound, the same in any batches, blind to the order of rows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumbo_bo.data.sample import BEST, Sample, by_task, water_level


def fill(sample: Sample, code: np.ndarray, key: np.ndarray, y: np.ndarray, size: int) -> None:
    """As the reader does: what is not wanted is only counted."""
    for start in range(0, len(code), size):
        part = slice(start, start + size)
        wanted = sample.wanted(code[part], key[part], y[part])
        sample.count(code[part][~wanted])
        sample.add(code[part][wanted], key[part][wanted], y[part][wanted], np.c_[y, key][part][wanted])


def rows(n: int, tasks: int = 1, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(tasks, size=n), rng.random(n), rng.standard_normal(n)


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=20), st.integers(60, 3000))
def test_the_cap_shares_what_there_is(counts: list[int], most: int) -> None:
    cap = water_level(np.array(counts), most)
    kept = sum(min(n, cap) for n in counts)
    if sum(counts) <= most:
        assert cap == math.inf
    else:
        assert most - len(counts) < kept <= most
        assert water_level(np.array([*counts, 7]), most) <= cap


def test_up_to_the_bound_all_rows_stay_in_order() -> None:
    code, key, y = rows(1000, tasks=3)
    sample = Sample(2, most=1000)
    fill(sample, code, key, y, 64)
    got_code, got_y, got_u = sample.rows()
    np.testing.assert_array_equal(got_code, code)
    np.testing.assert_array_equal(got_y, y)
    np.testing.assert_array_equal(got_u, np.c_[y, key])
    assert not sample.full


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 600),
    tasks=st.integers(1, 12),
    most=st.integers(1, 200),
    levels=st.sampled_from([1, 2, 5, 10**9]),
    best=st.booleans(),
)
def test_the_sample_is_the_same_in_any_batches(
    seed: int, n: int, tasks: int, most: int, levels: int, best: bool
) -> None:
    code, key, y = rows(n, tasks, seed)
    y = np.floor(y * levels) / levels  # ties
    kept = []
    for size in (1, 7, 1000):
        sample = Sample(2, most, best)
        fill(sample, code, key, y, size)
        np.testing.assert_array_equal(sample.counts, np.bincount(code))
        kept.append(sample.rows())
    for other in kept[1:]:
        for a, b in zip(kept[0], other, strict=True):
            np.testing.assert_array_equal(a, b)
    got_code, got_y, _ = kept[0]
    for k in np.unique(code) if best else ():
        assert got_y[got_code == k].max() == y[code == k].max()
        assert got_y[got_code == k].min() == y[code == k].min()
    assert len(got_code) <= max(most, 3 * tasks)


def test_the_best_stay_and_the_others_are_drawn_at_random() -> None:
    n, most = 100_000, 30_000
    _, key, y = rows(n)
    y = np.sort(y)  # a file sorted by value
    sample = Sample(2, most)
    fill(sample, np.zeros(n, np.int64), key, y, 1000)
    _, got, _ = sample.rows()
    assert len(got) == most
    np.testing.assert_array_equal(np.sort(got)[-BEST:], y[-BEST:])
    position = np.searchsorted(y, got) / n
    assert np.histogram(position, 10, (0, 1))[0] == pytest.approx(most / 10, rel=0.08)


def test_a_task_of_one_row_among_many_stays() -> None:
    code, key, y = rows(50_000, tasks=2)
    for place in (0, 25_000, 49_999):
        code[place] = 2
        sample = Sample(2, most=1000)
        fill(sample, code, key, y, 999)
        got_code, got_y, _ = sample.rows()
        assert got_y[got_code == 2].tolist() == y[code == 2].tolist()
        code[place] = 0


def test_rows_by_task() -> None:
    assert [rows.tolist() for rows in by_task(np.array([2, 0, 2, 1, 0]), 4)] == [[1, 4], [3], [0, 2], []]
    assert by_task(np.zeros(0, np.int64), 0) == []
