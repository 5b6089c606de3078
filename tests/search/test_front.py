"""Dominated volumes and what they gain, against brute force and samples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from jumbo_bo.search.acquisition import log_expected_improvement
from jumbo_bo.search.front import boxes, hypervolume, log_expected, reference, undominated

points = st.integers(1, 4).flatmap(
    lambda k: st.lists(st.lists(st.integers(0, 6), min_size=k, max_size=k), min_size=1, max_size=7)
)


def by_counting(f, r):
    """Unit cells between whole numbers that some point dominates."""
    if len(f) == 0:
        return 0
    cells = np.stack(np.meshgrid(*[np.arange(low, 7) for low in r], indexing="ij"), axis=-1).reshape(-1, len(r))
    return int(np.sum(np.any(np.all(f[:, None] >= cells[None] + 1, axis=2), axis=0)))


@given(points)
def test_volumes_are_those_that_cells_count(rows):
    f = np.array(rows, dtype=float)
    r = np.zeros(f.shape[1])
    assert hypervolume(f, r) == by_counting(f, r.astype(int))


@given(points, st.integers(0, 1_000))
def test_another_point_never_takes_volume_away_and_order_does_not_matter(rows, seed):
    f, rng = np.array(rows, dtype=float), np.random.default_rng(seed)
    k = f.shape[1]
    r, more = np.full(k, 0.5), rng.uniform(0, 7, (1, k))
    volume = hypervolume(f, r)
    assert hypervolume(np.vstack([f, more]), r) >= volume - 1e-9
    assert hypervolume(rng.permutation(f), r) == pytest.approx(volume)
    order = rng.permutation(k)
    assert hypervolume(f[:, order], r[order]) == pytest.approx(volume)
    assert hypervolume(f[undominated(f)], r) == pytest.approx(volume)


@given(points)
def test_undominated_is_what_its_definition_says(rows):
    f = np.array(rows, dtype=float)
    kept = undominated(f)
    for i, here in enumerate(f):
        beaten = any(np.all(other >= here) and np.any(other > here) for other in f)
        repeats = any(np.array_equal(f[j], here) for j in range(i))
        assert kept[i] == (not beaten and not repeats)


@given(points)
def test_boxes_are_all_that_is_not_dominated_once_each(rows):
    f = np.array(rows, dtype=float)
    k = f.shape[1]
    low, high = boxes(f[undominated(f)], np.zeros(k))
    cells = np.stack(np.meshgrid(*[np.arange(8)] * k, indexing="ij"), axis=-1).reshape(-1, k) + 0.5
    within = np.all((low[:, None] < cells) & (cells < high[:, None]), axis=2).sum(axis=0)
    dominated = np.any(np.all(f[:, None] >= cells, axis=2), axis=0)
    np.testing.assert_array_equal(within, ~dominated)


def expected(front, r, mean, sd):
    low, high = boxes(front, r)

    def log_ei(ends, k):
        finite = np.isfinite(ends)
        found = np.full((len(ends), len(mean)), -np.inf)
        found[finite] = log_expected_improvement(mean[:, k], sd[:, k], ends[finite][:, None])
        return found

    corners = ([log_ei(c[:, k], k) for k in range(len(r))] for c in (low, high))
    return np.exp(log_expected(*corners))


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_the_expected_gain_is_that_of_samples(k):
    rng = np.random.default_rng(k)
    f = rng.normal(size=(9, k))
    front, r = f[undominated(f)], np.full(k, -1.5)
    mean, sd = rng.normal(size=(4, k)), rng.uniform(0.2, 1.0, (4, k))
    found, before = expected(front, r, mean, sd), hypervolume(front, r)
    for i in range(4):
        z = norm.ppf((np.stack([rng.permutation(2_000) for _ in range(k)], axis=1) + 0.5) / 2_000)
        gains = [hypervolume(np.vstack([front, y]), r) - before for y in mean[i] + sd[i] * z]
        assert found[i] == pytest.approx(np.mean(gains), abs=5 * np.std(gains) / np.sqrt(len(gains)) + 1e-6)


def test_without_doubt_the_expected_gain_is_the_gain():
    front, r = np.array([[3.0, 1.0], [2.0, 2.0], [1.0, 3.0]]), np.zeros(2)
    mean = np.array([[2.5, 2.5], [0.5, 0.5], [4.0, 4.0], [0.5, 5.0]])
    gains = [hypervolume(np.vstack([front, y]), r) - hypervolume(front, r) for y in mean]
    np.testing.assert_allclose(expected(front, r, mean, np.full_like(mean, 1e-9)), gains, atol=1e-6)


def test_far_behind_the_front_gains_can_still_be_told_apart():
    front, r = np.array([[0.0, 0.0]]), np.full(2, -1.0)
    low, high = boxes(front, r)
    mean, sd = np.array([-30.0, -40.0]), np.full(2, 0.5)
    corners = []
    for c in (low, high):
        ei = np.full((2, len(c), 2), -np.inf)
        for k in range(2):
            finite = np.isfinite(c[:, k])
            ei[k, finite] = log_expected_improvement(mean, sd, c[finite, k][:, None])
        corners.append(list(ei))
    near, far = log_expected(*corners)
    assert np.isfinite([near, far]).all()
    assert near > far


def test_the_reference_point_lies_behind_the_front():
    f = np.array([[3.0, 1.0], [1.0, 5.0], [-90.0, -90.0]])
    np.testing.assert_allclose(reference(f), [1.0 - 0.2, 1.0 - 0.4])
    np.testing.assert_allclose(reference(f[1:]), [-90.0 - 9.1, -90.0 - 9.5])  # one point alone has no extent
    np.testing.assert_allclose(reference(f[:1]), [2.9, 0.9], atol=1.0)
